/* SPDX-License-Identifier: MIT-0 */
/* Convolutions and fully connected layers whose weights have a zero point, by VMLADAVA (MVE).
 *
 * The sum of x * (w - zero point) is that of x * w, which VMLADAVA computes, less the zero point times the sum of x: that
 * is the same for all outputs of a pixel, and the sums of its products begin with it. Pixels lie in memory as a whole;
 * the constants are the stream of glow_mve_dot.h with one segment, and biases for weights less their zero point. Codes end
 * in a float32 scale, or (fixed) in a multiplier and a shift as those of glow_mve_dot.h.
 */
#ifndef GLOW_MVE_ZERO_H
#define GLOW_MVE_ZERO_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_gather.h"

/* The assembly knows the offsets of the members up to `places`. */
typedef struct glow_mve_zero {
  const int8_t *x0;         /* 0 */
  const int8_t *x1;         /* 4 */
  int32_t first0;           /* 8: what the sums begin with */
  int32_t first1;           /* 12 */
  int32_t blocks;           /* 16 */
  int32_t tail;             /* 20 */
  const int8_t *stream;     /* 24 */
  const int8_t *stream_end; /* 28 */
  int8_t *out;              /* 32 */
  int32_t zp;               /* 36 */
  int32_t last;             /* 40: lanes of the last group */
  int32_t low;              /* 44 */
  int32_t high;             /* 48 */
  uint16_t places[8];       /* 52: where the results of a pair go */
  int32_t inputs;
  int32_t rest; /* channels of the last group */
  int32_t neg_w_zp;
  void (*two)(const struct glow_mve_zero *d); /* compute two pixels, and one */
  void (*one)(const struct glow_mve_zero *d);
} glow_mve_zero_t;
GLOW_AT(glow_mve_zero_t, x0, 0); GLOW_AT(glow_mve_zero_t, x1, 4); GLOW_AT(glow_mve_zero_t, first0, 8);
GLOW_AT(glow_mve_zero_t, first1, 12); GLOW_AT(glow_mve_zero_t, blocks, 16); GLOW_AT(glow_mve_zero_t, tail, 20);
GLOW_AT(glow_mve_zero_t, stream, 24); GLOW_AT(glow_mve_zero_t, stream_end, 28); GLOW_AT(glow_mve_zero_t, out, 32);
GLOW_AT(glow_mve_zero_t, zp, 36); GLOW_AT(glow_mve_zero_t, last, 40); GLOW_AT(glow_mve_zero_t, low, 44);
GLOW_AT(glow_mve_zero_t, high, 48); GLOW_AT(glow_mve_zero_t, places, 52);

/* Two pixels: per group of four channels what sums begin with, blocks of 16 inputs, a tail, `last`: the codes in q3
 * (glowc/kernels/mve/dot_tile.py); `numbers`: bytes of a group's biases and ends. */
#define GLOW_MVE_ZERO_PAIR(numbers, block, tail, last) \
  GLOW_MVE_ZERO_GROUPS("r11", "mov r4, r0\n" "mov r6, r2\n" "mov r8, r0\n" "mov r10, r2\n" "mov r12, r0\n" "mov lr, r2\n", \
                       numbers, block, tail, last, "vstrb.16 q3, [r11, q5]\n", "vctp.16", "vstrbt.16 q3, [r11, q5]\n")
/* The same of one pixel. */
#define GLOW_MVE_ZERO_ONE(numbers, block, tail, last) \
  GLOW_MVE_ZERO_GROUPS("r4", "mov r2, r0\n" "mov r8, r0\n" "mov r10, r0\n", numbers, block, tail, last, \
                       "vstrb.32 q3, [r4]\n", "vctp.32", "vstrbt.32 q3, [r4]\n")
#define GLOW_MVE_ZERO_GROUPS(to, begin, numbers, block, tail, last, store, lanes, store_some) \
  "push {r3-r11, lr}\n" "vpush {d8-d15}\n" "mov r9, r0\n" "ldrd r1, r2, [r0, #44]\n" "vdup.16 q6, r1\n" \
  "vdup.16 q7, r2\n" "vldrh.16 q5, [r0, #52]\n" "ldr r5, [r9, #24]\n" "ldr " to ", [r9, #32]\n" \
  "1: ldrd r1, r3, [r9]\n" "ldrd r0, r2, [r9, #8]\n" "ldr r7, [r9, #16]\n" "vldrb.8 q2, [r5]\n" begin \
  "cmp r7, #0\n" "beq 3f\n" \
  "2:\n" block "subs r7, r7, #1\n" "bne 2b\n" \
  "3: ldr r7, [r9, #20]\n" "cmp r7, #0\n" "beq 4f\n" tail \
  "4: ldr r3, [r9, #28]\n" "ldr r7, [r9, #36]\n" last "add r5, r5, #" numbers "\n" "cmp r5, r3\n" \
  "beq 5f\n" store "add " to ", " to ", #4\n" "b 1b\n" \
  "5: ldr r0, [r9, #40]\n" lanes " r0\n" "vpst\n" store_some "vpop {d8-d15}\n" "pop {r3-r11, pc}\n"

/* Pixels of `inputs`, of which so many channels are computed; results of the second pixel of a pair go out_c bytes after
 * those of the first. `numbers`: bytes of biases and ends of a group, which `two` and `one` know. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_zero_init(glow_mve_zero_t *d, const int8_t *stream, int32_t numbers,
                                                        void (*two)(const glow_mve_zero_t *),
                                                        void (*one)(const glow_mve_zero_t *), int32_t out_c,
                                                        int32_t channels, int32_t inputs, int32_t w_zp, int32_t zp,
                                                        int32_t low, int32_t high) {
  const uint16x8_t index = glow_mve_index16();
  const uint16x8_t second = vandq_u16(index, vdupq_n_u16(1u));
  vst1q_u16(d->places, vmlaq_n_u16(vshrq_n_u16(index, 1), second, (uint16_t)out_c));
  d->stream = stream;
  d->stream_end = stream + (channels + 3) / 4 * (4 * inputs + numbers);
  d->two = two;
  d->one = one;
  d->blocks = inputs / 16;
  d->tail = inputs % 16;
  d->inputs = inputs;
  d->rest = (channels + 3) % 4 + 1;
  d->neg_w_zp = -w_zp;
  d->zp = zp;
  d->low = low;
  d->high = high;
}

/* What the sums of a pixel begin with. */
GLOW_HOT GLOW_MVE_UNUSED static int32_t glow_mve_zero_first(const glow_mve_zero_t *d, const int8_t *x) {
  int32_t sum = 0;
  for (int32_t left = d->inputs; left > 0; left -= 16, x += 16) {
    const mve_pred16_t lanes = vctp8q((uint32_t)left);
    sum = vaddvaq_p_s8(sum, vldrbq_z_s8(x, lanes), lanes);
  }
  return sum * d->neg_w_zp;
}

/* One pixel, or, where x1 is not NULL, two. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_zero(glow_mve_zero_t *d, const int8_t *x0,
                                                                   const int8_t *x1, int8_t *out) {
  d->x0 = x0;
  d->x1 = x1;
  d->first0 = glow_mve_zero_first(d, x0);
  d->out = out;
  d->last = d->rest;
  if (x1 != NULL) {
    d->first1 = glow_mve_zero_first(d, x1);
    d->last = 2 * d->rest;
    d->two(d);
  } else {
    d->one(d);
  }
}

/* `count` pixels in a row. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_zero_row(glow_mve_zero_t *d, const int8_t *x,
                                                                       int32_t x_step, int8_t *out, int32_t out_step,
                                                                       int32_t count) {
  for (; count > 0; count -= 2, x += 2 * x_step, out += 2 * out_step) {
    glow_mve_zero(d, x, count > 1 ? x + x_step : NULL, out);
  }
}

/* An image, whose row r is at r mod in_ring, and a kernel. */
typedef struct {
  int32_t in_h, in_w, in_c, in_row, in_col, in_ch, in_ring, in_zp, k_h, k_w, dil_h, dil_w;
} glow_mve_zero_window_t;

/* The inputs of a window, one after the other; outside of the image the zero point. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_zero_collect(int8_t *to, const int8_t *image,
                                                                           const glow_mve_zero_window_t *g, int32_t top,
                                                                           int32_t left) {
  const int32_t run = g->k_w * g->in_c;
  const int32_t is_dense = g->in_ch == 1 && g->in_col == g->in_c && g->dil_w == 1;
  for (int32_t ky = 0; ky < g->k_h; ky++, to += run) {
    const int32_t y = top + ky * g->dil_h;
    const int8_t *row = image + (y >= 0 ? y % g->in_ring : 0) * g->in_row;
    if (y < 0 || y >= g->in_h) {
      glow_mve_fill(to, g->in_zp, run);
      continue;
    }
    if (is_dense != 0) {
      glow_mve_copy_columns(to, row, left, g->k_w, g->in_w, g->in_c, g->in_zp);
      continue;
    }
    int8_t *tap = to;
    for (int32_t kx = 0; kx < g->k_w; kx++, tap += g->in_c) {
      const int32_t x = left + kx * g->dil_w;
      const int8_t *from = row + x * g->in_col;
      if (x < 0 || x >= g->in_w) {
        glow_mve_fill(tap, g->in_zp, g->in_c);
      } else if (g->in_ch == 1) {
        glow_mve_copy(tap, from, g->in_c);
      } else {
        for (int32_t c = 0; c < g->in_c; c++) {
          tap[c] = from[c * g->in_ch];
        }
      }
    }
  }
}

#endif

#endif
