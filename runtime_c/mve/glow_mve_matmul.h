/* SPDX-License-Identifier: MIT-0 */
/* Products of two int8 activations (MVE): columns of the right one are made rows, where they are not yet. */
#ifndef GLOW_MVE_MATMUL_H
#define GLOW_MVE_MATMUL_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_elementwise.h"

/* to[i] = from[i * step]; step below 8192 */
GLOW_INLINE void glow_mve_column(int8_t *to, const int8_t *from, int32_t step, int32_t n) {
  const uint16x8_t offsets = vmulq_n_u16(glow_mve_index16(), (uint16_t)step);
  GLOW_MVE_STRIDED("16", "vldrb.u16 q0, [%[from], %q[offsets]]", "vstrb.16 q0, [%[to]], #8", 8);
}

GLOW_MVE_TOTAL(glow_mve_total, int8_t, "8", "vldrb.8", "vaddva.s8")

/* Products of x with four rows `pitch` bytes apart, each of `n` codes. A function of its own: ten registers and LR are
 * more than the compiler can promise where it is inlined. */
GLOW_MVE_FUNCTION int32x4_t glow_mve_dots(GLOW_MVE_UNUSED const int8_t *x, GLOW_MVE_UNUSED const int8_t *rows,
                                          GLOW_MVE_UNUSED int32_t pitch, GLOW_MVE_UNUSED int32_t n) {
  __asm__(
      "push {r4-r8, lr}\n" "add r12, r1, r2\n" "add r5, r12, r2\n" "add r7, r5, r2\n"
      "movs r2, #0\n" "movs r4, #0\n" "movs r6, #0\n" "mov r8, r2\n"
      "wlstp.8 lr, r3, 2f\n"
      "1: vldrb.8 q0, [r0], #16\n" "vldrb.8 q1, [r1], #16\n" "vmladava.s8 r2, q0, q1\n"
      "vldrb.8 q2, [r12], #16\n" "vmladava.s8 r4, q0, q2\n" "vldrb.8 q1, [r5], #16\n" "vmladava.s8 r6, q0, q1\n"
      "vldrb.8 q2, [r7], #16\n" "vmladava.s8 r8, q0, q2\n" "letp lr, 1b\n"
      "2: vmov d0, r2, r4\n" "vmov d1, r6, r8\n" "pop {r4-r8, pc}\n");
}

/* Four columns of the right matrix times rows of the left one. The assembly knows the offsets. */
typedef struct {
  const int8_t *x;        /* 0: a row */
  int8_t *out;            /* 4 */
  int32_t x_step;         /* 8: of two rows */
  int32_t out_step;       /* 12: of two rows */
  int32_t x_apart;        /* 16: of the second row */
  int32_t out_apart;      /* 20 */
  const int32_t *terms;   /* 24: what a row's sums begin with */
  int32_t rest;           /* 28: codes of a row that come first, 1 to 16 */
  int32_t blocks;         /* 32: of 16, after them */
  const int8_t *columns;  /* 36: the codes of each block of all columns, 16 of each */
  int32_t pairs;          /* 40: of rows */
  int32_t lanes;          /* 44: columns that are written */
  union {
    float scale;
    int32_t mul;
  } factor;               /* 48 */
  int32_t zp;             /* 52 */
  int32_t low[4];         /* 56 */
  int32_t high[4];        /* 72 */
  int32_t sums[4];        /* 88: what a column's sums begin with */
  uint32_t places[4];     /* 104: of the columns in the output */
  int8_t *now;            /* 120: the output of the first row */
  int32_t shift;          /* 124: of a product with mul */
} glow_mve_rows4_t;
GLOW_AT(glow_mve_rows4_t, x, 0); GLOW_AT(glow_mve_rows4_t, x_step, 8); GLOW_AT(glow_mve_rows4_t, x_apart, 16);
GLOW_AT(glow_mve_rows4_t, terms, 24); GLOW_AT(glow_mve_rows4_t, blocks, 32); GLOW_AT(glow_mve_rows4_t, columns, 36);
GLOW_AT(glow_mve_rows4_t, pairs, 40); GLOW_AT(glow_mve_rows4_t, lanes, 44); GLOW_AT(glow_mve_rows4_t, factor, 48);
GLOW_AT(glow_mve_rows4_t, zp, 52); GLOW_AT(glow_mve_rows4_t, low, 56); GLOW_AT(glow_mve_rows4_t, high, 72);
GLOW_AT(glow_mve_rows4_t, sums, 88); GLOW_AT(glow_mve_rows4_t, places, 104);
GLOW_AT(glow_mve_rows4_t, now, 120); GLOW_AT(glow_mve_rows4_t, shift, 124);

/* 16 codes of both rows in q0 and q1 times those of four columns at r5 */
#define GLOW_MVE_ROWS4(mla) \
  "vldrw.32 q2, [r5], #16\n" mla " r0, q0, q2\n" "vldrw.32 q3, [r5], #16\n" mla " r2, q1, q2\n" mla " r4, q0, q3\n" \
  "vldrw.32 q2, [r5], #16\n" mla " r6, q1, q3\n" mla " r8, q0, q2\n" "vldrw.32 q3, [r5], #16\n" mla " r10, q1, q2\n" \
  mla " r12, q0, q3\n" mla " lr, q1, q3\n"
#define GLOW_MVE_ROWS4_FUNCTION(name, a, b, c) \
  GLOW_MVE_FUNCTION void name(GLOW_MVE_UNUSED glow_mve_rows4_t *d) { \
    __asm__( \
        "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "mov r11, r0\n" "add r0, r0, #56\n" "vldrw.32 q4, [r0]\n" \
        "vldrw.32 q5, [r0, #16]\n" "vldrw.32 q6, [r0, #32]\n" "vldrw.32 q7, [r0, #48]\n" \
        "1: ldrd r1, r2, [r11]\n" "ldrd r4, r6, [r11, #8]\n" "ldr r3, [r11, #16]\n" "ldrd r9, r7, [r11, #28]\n" \
        "add r4, r4, r1\n" "add r6, r6, r2\n" "ldr r5, [r11, #36]\n" "add r3, r3, r1\n" "strd r4, r6, [r11]\n" \
        "vctp.8 r9\n" "vpstt\n" "vldrbt.8 q0, [r1]\n" "vldrbt.8 q1, [r3]\n" "add r1, r1, r9\n" "add r3, r3, r9\n" \
        "str r2, [r11, #120]\n" GLOW_MVE_ROWS4("vmladav.s8") "cbz r7, 3f\n" \
        "2: vldrb.8 q0, [r1], #16\n" "vldrb.8 q1, [r3], #16\n" "subs r7, r7, #1\n" GLOW_MVE_ROWS4("vmladava.s8") "bne 2b\n" \
        "3: vmov d0, r0, r4\n" "ldr r5, [r11, #24]\n" "vmov d1, r8, r12\n" "ldrd r7, r9, [r5], #8\n" \
        "vadd.i32 q0, q0, q6\n" "vmov d2, r2, r6\n" "str r5, [r11, #24]\n" "vadd.i32 q0, q0, r7\n" "vmov d3, r10, lr\n" \
        "ldrd r0, r2, [r11, #48]\n" "ldr r12, [r11, #124]\n" a("q0") "vadd.i32 q1, q1, q6\n" b("q0") \
        "vadd.i32 q1, q1, r9\n" c("q0") "ldrd r4, r6, [r11, #40]\n" "vqadd.s32 q0, q0, r2\n" a("q1") \
        "vmax.s32 q0, q0, q4\n" b("q1") "vmin.s32 q0, q0, q5\n" c("q1") "ldr r8, [r11, #120]\n" "vqadd.s32 q1, q1, r2\n" \
        "ldr r3, [r11, #20]\n" "vmax.s32 q1, q1, q4\n" "vctp.32 r6\n" "add r3, r3, r8\n" "vmin.s32 q1, q1, q5\n" "vpstt\n" \
        "vstrbt.32 q0, [r8, q7]\n" "vstrbt.32 q1, [r3, q7]\n" "subs r4, r4, #1\n" "str r4, [r11, #40]\n" "bne 1b\n" \
        "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n"); \
  }
#define GLOW_MVE_ROWS4_REAL(q) "vcvt.f32.s32 " q ", " q "\n"
#define GLOW_MVE_ROWS4_SCALED(q) "vmul.f32 " q ", " q ", r0\n"
#define GLOW_MVE_ROWS4_ROUNDED(q) "vcvtn.s32.f32 " q ", " q "\n"
GLOW_MVE_ROWS4_FUNCTION(glow_mve_rows4, GLOW_MVE_ROWS4_REAL, GLOW_MVE_ROWS4_SCALED, GLOW_MVE_ROWS4_ROUNDED)

/* Sets d to n columns, 1 to 4, from `from` on, whose codes go to `to`: sums begin with `first` less zp times those of a column. */
GLOW_INLINE void glow_mve_rows4_columns(glow_mve_rows4_t *d, int8_t *to, const int8_t *from, int32_t step, int32_t between,
                                        int32_t n, int32_t k, int32_t first, int32_t zp) {
  d->columns = to;
  d->lanes = n < 4 ? n : 4;
  d->rest = (k - 1) % 16 + 1;
  d->blocks = (k - 1) / 16;
  for (int32_t c = 0; c < d->lanes; c++, to += 16, from += between) {
    int8_t *block = to;
    int32_t total = 0;
    for (int32_t i = 0, some = d->rest; i < k; i += some, some = 16, block += 64) {
      if (step == 1) {
        glow_mve_copy(block, from + i, some);
      } else {
        glow_mve_column(block, from + i * step, step, some);
      }
      total += zp == 0 ? 0 : glow_mve_total(block, some);
    }
    d->sums[c] = first - zp * total;
  }
}

/* Pairs of `m` rows from x, whose outputs begin at `out`. */
GLOW_INLINE void glow_mve_rows4_pairs(glow_mve_rows4_t *d, const int8_t *x, int32_t x_step, int8_t *out, int32_t out_step,
                                      const int32_t *terms, int32_t m) {
  d->x = x;
  d->out = out;
  d->x_step = 2 * x_step;
  d->out_step = 2 * out_step;
  d->x_apart = x_step;
  d->out_apart = out_step;
  d->terms = terms;
  d->pairs = m / 2;
}

/* One row at x, which is both rows of a pair. term[1] is overwritten. */
GLOW_INLINE void glow_mve_rows4_alone(glow_mve_rows4_t *d, const int8_t *x, int8_t *out, int32_t *term) {
  term[1] = term[0];
  glow_mve_rows4_pairs(d, x, 0, out, 0, term, 2);
}
#endif

#endif
