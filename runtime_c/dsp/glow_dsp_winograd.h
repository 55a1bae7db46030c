/* SPDX-License-Identifier: MIT-0 */
/* Winograd's F(2x2, 3x3) in integers, for CPUs with the DSP extension and an FPU: two tiles of 2x2 outputs at a time.
 *
 * Per output channel a tile's four sums are A' M A, M = sum over inputs of U * V (16 products, not 36), with
 *   V = B' d B        of the 4x4 codes d under the tile: |V| <= 512;
 *   U = 2G g (2G)'    of the 3x3 weights g, by the compiler: |U| <= 9 * 255, and sums come out four times as large.
 * V and U are int16, M and the sums int32 modulo 2^32; the compiler proved that four times a sum fits int32, so all is
 * exact. Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, arXiv:1509.09308.
 *
 * The 16 products (row i, column j) stand in the order j = 1, 2, 0, 3, and i = 0 .. 3 within. Per product:
 *   inputs   per two channels a word of the first tile and one of the second; of four channels 0 and 2, then 1 and 3;
 *   weights  per two input channels a word for each of four output channels;
 *   sums     per output channel the first tile's and the second tile's.
 * The stream of a block of four output channels: the weights of the 16 products, then bias and scale of each channel.
 */
#ifndef GLOW_DSP_WINOGRAD_H
#define GLOW_DSP_WINOGRAD_H

#include "glow_dsp.h"

/* Sums of two tiles to codes: `channels` (1 to 4) output channels of a block. */
typedef struct {
  const int32_t *sums;
  const uint32_t *ends; /* bias and scale of each channel */
  int8_t *upper;        /* four pixels of the upper row, out_c apart, and of the lower one */
  int8_t *lower;
  int32_t out_c, channels, out_zp;
  uint32_t low; /* limits of the output, in all four bytes */
  uint32_t high;
} glow_winograd_t;
#if GLOW_DSP_ASM
GLOW_AT(glow_winograd_t, sums, 0); GLOW_AT(glow_winograd_t, ends, 4); GLOW_AT(glow_winograd_t, upper, 8);
GLOW_AT(glow_winograd_t, lower, 12); GLOW_AT(glow_winograd_t, out_c, 16); GLOW_AT(glow_winograd_t, channels, 20);
GLOW_AT(glow_winograd_t, out_zp, 24); GLOW_AT(glow_winograd_t, low, 28); GLOW_AT(glow_winograd_t, high, 32);
#endif

#define GLOW_WINOGRAD_PRODUCTS 16
#define GLOW_WINOGRAD_STEPS 32 /* that are printed of a product; a power of two */

#if GLOW_DSP_ASM
_Static_assert(8 * GLOW_WINOGRAD_PRODUCTS == 1 << 7, "assembly shifts the inputs' steps by 7");

#define GLOW_WINOGRAD_STEP(first, next) \
  "ldrd r2, r3, [r0], #8\n" "ldrd r12, lr, [r1], #8\n" \
  first("r4", "r2", "r12") first("r5", "r3", "r12") first("r6", "r2", "lr") first("r7", "r3", "lr") \
  "ldrd r12, lr, [r1], #8\n" \
  next("r8", "r2", "r12") next("r9", "r3", "r12") next("r10", "r2", "lr") next("r11", "r3", "lr")
#define GLOW_WINOGRAD_BEGIN(sum, a, b) "smuad " sum ", " a ", " b "\n"
#define GLOW_WINOGRAD_ADD(sum, a, b) "smlad " sum ", " a ", " b ", " sum "\n"

/* The 16 products of two tiles with four output channels, more than one step each. Of the steps that are printed
 * the last ones that are needed come first; `more` repeats all of them until the product is complete. */
#define GLOW_WINOGRAD_PRODUCT(more) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      "add r4, r0, r2, lsl #7\n" \
      "vmov s0, s1, r4, r3\n" /* end of the inputs; sums */ \
      "lsl r5, r2, #3\n" \
      "add r6, r0, r5\n" \
      "vmov s2, s3, r6, r5\n" /* end of the product's inputs; their bytes */ \
      "rsb r2, r2, #1\n" \
      "and r2, r2, #" GLOW_TEXT(GLOW_WINOGRAD_STEPS) " - 1\n" \
      "mov r4, #44\n" \
      "mul r2, r2, r4\n" \
      "adr.w r4, 2f\n" \
      "add r2, r2, r4\n" \
      "orr r2, r2, #1\n" \
      "vmov s4, r2\n" \
      "1:\n" \
      GLOW_WINOGRAD_STEP(GLOW_WINOGRAD_BEGIN, GLOW_WINOGRAD_BEGIN) \
      "vmov lr, s4\n" \
      "bx lr\n" \
      ".balign 4\n" \
      "2:\n" \
      ".rept " GLOW_TEXT(GLOW_WINOGRAD_STEPS) "\n" \
      GLOW_WINOGRAD_STEP(GLOW_WINOGRAD_ADD, GLOW_WINOGRAD_ADD) \
      ".endr\n" \
      GLOW_DSP_CODE_BYTES("2", GLOW_TEXT(GLOW_WINOGRAD_STEPS) " * 44") \
      more \
      "vmov r2, r3, s0, s1\n" \
      "stmia.w r3!, {r4-r11}\n" \
      "vmov s1, r3\n" \
      "cmp r0, r2\n" \
      "bne.w 1b\n" \
      "pop {r4-r11, pc}\n")
#define GLOW_WINOGRAD_MORE \
  "vmov r2, r3, s2, s3\n" \
  "cmp r0, r2\n" \
  "bne.w 2b\n" \
  "add r2, r2, r3\n" \
  "vmov s2, r2\n"

#define GLOW_WINOGRAD_BOTH(op, a, b, c, d) op " " a ", " a ", " c "\n" op " " b ", " b ", " d "\n"
#define GLOW_WINOGRAD_TO(op, a, b) GLOW_WINOGRAD_BOTH(op, a, b, "r2", "r3")
#define GLOW_WINOGRAD_LOAD(at) "ldrd r2, r3, [r0, #" at "]\n"
/* Column 1 or 2 of M: row 0 of A' M of both tiles to (a, b), row 1 to (c, d). */
#define GLOW_WINOGRAD_COLUMN(a, b, c, d, at0, at1, at2, at3) \
  "ldrd " a ", " b ", [r0, #" at0 "]\n" "ldrd " c ", " d ", [r0, #" at1 "]\n" \
  GLOW_WINOGRAD_BOTH("add", a, b, c, d) \
  GLOW_WINOGRAD_LOAD(at2) GLOW_WINOGRAD_TO("add", a, b) GLOW_WINOGRAD_TO("sub", c, d) \
  GLOW_WINOGRAD_LOAD(at3) GLOW_WINOGRAD_TO("sub", c, d)
/* Sums of column 1 and 2 to a, differences to b. */
#define GLOW_WINOGRAD_CROSS(a, b) "add " a ", " a ", " b "\n" "sub " b ", " a ", " b ", lsl #1\n"
#define GLOW_WINOGRAD_EACH(do) do("r4") do("r5") do("r6") do("r7") do("r8") do("r9") do("r10") do("r11")
#define GLOW_WINOGRAD_BIAS(a) "add " a ", r2, " a ", asr #2\n"
#define GLOW_WINOGRAD_U8(a) "usat " a ", #8, " a "\n" "eor " a ", " a ", #128\n"
#define GLOW_WINOGRAD_N8(a) "qadd " a ", " a ", r2\n" "ssat " a ", #8, " a "\n"
#define GLOW_WINOGRAD_LIMIT(a, b, c, d) \
  "bfi " a ", " b ", #8, #8\n" "bfi " a ", " c ", #16, #8\n" "bfi " a ", " d ", #24, #8\n" \
  "ssub8 r2, " a ", r3\n" "sel " a ", " a ", r3\n" "ssub8 r2, r12, " a "\n" "sel " a ", " a ", r12\n" \
  "lsr " b ", " a ", #8\n" "lsr " c ", " a ", #16\n" "lsr " d ", " a ", #24\n"
/* As in glow_dsp_quad.h: u8: the zero point is -128, no limits; n8: no limits. */
#define GLOW_WINOGRAD_END_U8 GLOW_WINOGRAD_EACH(GLOW_WINOGRAD_U8)
#define GLOW_WINOGRAD_END_N8 "vmov r2, s9\n" GLOW_WINOGRAD_EACH(GLOW_WINOGRAD_N8)
#define GLOW_WINOGRAD_END_S8 \
  GLOW_WINOGRAD_END_N8 "ldrd r3, r12, [sp]\n" \
  GLOW_WINOGRAD_LIMIT("r4", "r5", "r6", "r7") GLOW_WINOGRAD_LIMIT("r8", "r9", "r10", "r11")

#define GLOW_WINOGRAD_CODES(end) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      "ldm r0, {r0, r1, r2, r3, r4, r5, r6, r7, r8}\n" \
      "add r5, r1, r5, lsl #3\n" "add r9, r4, r4, lsl #1\n" \
      "vmov s10, s11, r2, r3\n" "vmov s12, s13, r4, r9\n" "vmov s14, r5\n" "vmov s9, r6\n" \
      "push {r7, r8}\n" \
      "1:\n" \
      GLOW_WINOGRAD_COLUMN("r4", "r5", "r6", "r7", "0", "32", "64", "96") \
      GLOW_WINOGRAD_COLUMN("r8", "r9", "r10", "r11", "128", "160", "192", "224") \
      GLOW_WINOGRAD_CROSS("r4", "r8") GLOW_WINOGRAD_CROSS("r5", "r9") \
      GLOW_WINOGRAD_CROSS("r6", "r10") GLOW_WINOGRAD_CROSS("r7", "r11") \
      GLOW_WINOGRAD_LOAD("256") GLOW_WINOGRAD_TO("add", "r4", "r5") \
      GLOW_WINOGRAD_LOAD("288") GLOW_WINOGRAD_TO("add", "r4", "r5") GLOW_WINOGRAD_TO("add", "r6", "r7") \
      GLOW_WINOGRAD_LOAD("320") GLOW_WINOGRAD_TO("add", "r4", "r5") GLOW_WINOGRAD_TO("sub", "r6", "r7") \
      GLOW_WINOGRAD_LOAD("352") GLOW_WINOGRAD_TO("sub", "r6", "r7") \
      GLOW_WINOGRAD_LOAD("384") GLOW_WINOGRAD_TO("sub", "r8", "r9") \
      GLOW_WINOGRAD_LOAD("416") GLOW_WINOGRAD_TO("sub", "r8", "r9") GLOW_WINOGRAD_TO("sub", "r10", "r11") \
      GLOW_WINOGRAD_LOAD("448") GLOW_WINOGRAD_TO("sub", "r8", "r9") GLOW_WINOGRAD_TO("add", "r10", "r11") \
      GLOW_WINOGRAD_LOAD("480") GLOW_WINOGRAD_TO("add", "r10", "r11") \
      "add r0, r0, #8\n" \
      "ldr r2, [r1], #4\n" \
      "vldmia r1!, {s8}\n" \
      GLOW_WINOGRAD_EACH(GLOW_WINOGRAD_BIAS) \
      "vmov s0, s1, r4, r5\n" "vmov s2, s3, r6, r7\n" "vmov s4, s5, r8, r9\n" "vmov s6, s7, r10, r11\n" \
      "vcvt.f32.s32 s0, s0\n" "vcvt.f32.s32 s1, s1\n" "vcvt.f32.s32 s2, s2\n" "vcvt.f32.s32 s3, s3\n" \
      "vcvt.f32.s32 s4, s4\n" "vcvt.f32.s32 s5, s5\n" "vcvt.f32.s32 s6, s6\n" "vcvt.f32.s32 s7, s7\n" \
      "vmul.f32 s0, s0, s8\n" "vmul.f32 s1, s1, s8\n" "vmul.f32 s2, s2, s8\n" "vmul.f32 s3, s3, s8\n" \
      "vmul.f32 s4, s4, s8\n" "vmul.f32 s5, s5, s8\n" "vmul.f32 s6, s6, s8\n" "vmul.f32 s7, s7, s8\n" \
      "vcvtr.s32.f32 s0, s0\n" "vcvtr.s32.f32 s1, s1\n" "vcvtr.s32.f32 s2, s2\n" "vcvtr.s32.f32 s3, s3\n" \
      "vcvtr.s32.f32 s4, s4\n" "vcvtr.s32.f32 s5, s5\n" "vcvtr.s32.f32 s6, s6\n" "vcvtr.s32.f32 s7, s7\n" \
      "vmov r4, r5, s0, s1\n" "vmov r6, r7, s2, s3\n" "vmov r8, r9, s4, s5\n" "vmov r10, r11, s6, s7\n" \
      GLOW_WINOGRAD_END_##end \
      "vmov r2, r3, s10, s11\n" "vmov r12, lr, s12, s13\n" \
      "strb r4, [r2]\n" "strb r8, [r2, r12]\n" "strb r5, [r2, r12, lsl #1]\n" "strb r9, [r2, lr]\n" \
      "strb r6, [r3]\n" "strb r10, [r3, r12]\n" "strb r7, [r3, r12, lsl #1]\n" "strb r11, [r3, lr]\n" \
      "add r2, r2, #1\n" "add r3, r3, #1\n" \
      "vmov s10, s11, r2, r3\n" "vmov r2, s14\n" \
      "cmp r1, r2\n" \
      "bne.w 1b\n" \
      "add sp, sp, #8\n" \
      "pop {r4-r11, pc}\n")

#define GLOW_WINOGRAD_PRODUCT_FUNCTION(name, more) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const uint32_t *inputs, GLOW_DSP_UNUSED const uint32_t *stream, \
                         GLOW_DSP_UNUSED int32_t steps, GLOW_DSP_UNUSED int32_t *sums) { \
    GLOW_WINOGRAD_PRODUCT(more); \
  }
#define GLOW_WINOGRAD_CODES_FUNCTION(name, end) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_winograd_t *w) { GLOW_WINOGRAD_CODES(end); }
GLOW_WINOGRAD_PRODUCT_FUNCTION(glow_winograd_short, "")                 /* 2 steps to those printed */
GLOW_WINOGRAD_PRODUCT_FUNCTION(glow_winograd_long, GLOW_WINOGRAD_MORE) /* 2 steps and more */
GLOW_WINOGRAD_CODES_FUNCTION(glow_winograd_u8, U8)
GLOW_WINOGRAD_CODES_FUNCTION(glow_winograd_n8, N8)
GLOW_WINOGRAD_CODES_FUNCTION(glow_winograd_s8, S8)

#else /* the same in C */

GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_long(const uint32_t *inputs, const uint32_t *stream, int32_t steps,
                                               int32_t *sums) {
  for (int32_t n = 0; n < GLOW_WINOGRAD_PRODUCTS; n++, sums += 8) {
    for (int32_t i = 0; i < 8; i++) {
      sums[i] = 0;
    }
    for (int32_t k = 0; k < steps; k++, inputs += 2, stream += 4) {
      for (int32_t i = 0; i < 8; i++) {
        sums[i] = glow_dsp_smlad(inputs[i % 2], stream[i / 2], sums[i]);
      }
    }
  }
}

GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_short(const uint32_t *inputs, const uint32_t *stream, int32_t steps,
                                                int32_t *sums) {
  glow_winograd_long(inputs, stream, steps, sums);
}

/* Of the four values that are `step` apart, modulo 2^32: sum of the first three, or 1 less 2 less 3. */
GLOW_INLINE uint32_t glow_winograd_fold(const uint32_t *m, int32_t step, int32_t lower) {
  return lower != 0 ? m[step] - m[2 * step] - m[3 * step] : m[0] + m[step] + m[2 * step];
}

GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_s8(const glow_winograd_t *w) {
  static const int32_t at[4] = {2, 0, 1, 3}; /* where column j of M stands */
  for (int32_t c = 0; c < w->channels; c++) {
    float scale;
    memcpy(&scale, &w->ends[2 * c + 1], sizeof scale);
    for (int32_t i = 0; i < 8; i++) { /* pixel i / 2 of the row i % 2 */
      uint32_t columns[4];
      for (int32_t j = 0; j < 4; j++) {
        columns[j] = glow_winograd_fold((const uint32_t *)(const void *)w->sums + 32 * at[j] + 2 * c + i / 4, 8, i % 2);
      }
      const uint32_t four = glow_winograd_fold(columns, 1, i / 2 % 2); /* divisible by 4 */
      const int32_t sum = (int32_t)(w->ends[2 * c] + (uint32_t)((int32_t)four / 4));
      int8_t *row = i % 2 != 0 ? w->lower : w->upper;
      row[i / 2 * w->out_c + c] =
          (int8_t)glow_requant(sum, scale, w->out_zp, glow_first8(w->low), glow_first8(w->high));
    }
  }
}

GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_u8(const glow_winograd_t *w) { glow_winograd_s8(w); }
GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_n8(const glow_winograd_t *w) { glow_winograd_s8(w); }
#endif

#ifndef GLOW_DSP_INLINE
#define GLOW_DSP_INLINE GLOW_INLINE
#endif

GLOW_DSP_OF_TWO(uint32_t, glow_sadd16, "sadd16 %0, %1, %2", "=r",
                ((a + b) & 0xFFFFu) | ((a & 0xFFFF0000u) + (b & 0xFFFF0000u)))
GLOW_DSP_OF_TWO(uint32_t, glow_ssub16, "ssub16 %0, %1, %2", "=r",
                ((a - b) & 0xFFFFu) | ((a & 0xFFFF0000u) - (b & 0xFFFF0000u)))

/* Row i of V of two tiles, from the two input rows that it combines: their difference, or with `sum` their sum.
 * `to` is the place of product (i, 1), `step` the inputs of a column, `groups` fours of them. */
GLOW_DSP_INLINE void glow_winograd_row(uint32_t *to, const int8_t *a, const int8_t *b, int32_t step, int32_t groups,
                                       int sum) {
  uint32_t *const at[4] = {to + 8 * step, to, to + 4 * step, to + 12 * step}; /* of column j */
#define GLOW_WINOGRAD_LOADED(x) \
  const uint32_t word##x = sum ? glow_load4(b + x * step) : ~glow_load4(b + x * step); \
  const uint32_t first##x = glow_load4(a + x * step); \
  const uint32_t even##x = glow_sxtab16(glow_sxtab16(base, first##x), word##x); \
  const uint32_t odd##x = glow_sxtab16_odd(glow_sxtab16_odd(base, first##x), word##x);
#define GLOW_WINOGRAD_STORED(j, tile, op, x, y) \
  at[j][4 * g + tile] = op(even##x, even##y); \
  at[j][4 * g + tile + 2] = op(odd##x, odd##y);
  const uint32_t base = sum ? 0u : 0x00010001u; /* a - b = a + 1 + ~b */
  for (int32_t g = 0; g < groups; g++, a += 4, b += 4) {
    GLOW_WINOGRAD_LOADED(0)
    GLOW_WINOGRAD_LOADED(1)
    GLOW_WINOGRAD_LOADED(2)
    GLOW_WINOGRAD_STORED(0, 0, glow_ssub16, 0, 2)
    GLOW_WINOGRAD_STORED(1, 0, glow_sadd16, 1, 2)
    GLOW_WINOGRAD_STORED(2, 0, glow_ssub16, 2, 1)
    GLOW_WINOGRAD_LOADED(3)
    GLOW_WINOGRAD_STORED(3, 0, glow_ssub16, 1, 3)
    GLOW_WINOGRAD_LOADED(4)
    GLOW_WINOGRAD_STORED(0, 1, glow_ssub16, 2, 4)
    GLOW_WINOGRAD_STORED(1, 1, glow_sadd16, 3, 4)
    GLOW_WINOGRAD_STORED(2, 1, glow_ssub16, 4, 3)
    GLOW_WINOGRAD_LOADED(5)
    GLOW_WINOGRAD_STORED(3, 1, glow_ssub16, 3, 5)
  }
#undef GLOW_WINOGRAD_LOADED
#undef GLOW_WINOGRAD_STORED
}

/* V of two tiles: of the 4x6 codes below rows[0..3]. */
GLOW_DSP_INLINE void glow_winograd_inputs(uint32_t *to, const int8_t *const *rows, int32_t step, int32_t groups) {
  glow_winograd_row(to, rows[0], rows[2], step, groups, 0);
  glow_winograd_row(to + step, rows[1], rows[2], step, groups, 1);
  glow_winograd_row(to + 2 * step, rows[2], rows[1], step, groups, 0);
  glow_winograd_row(to + 3 * step, rows[1], rows[3], step, groups, 0);
}

#endif
