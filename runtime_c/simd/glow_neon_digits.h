/* SPDX-License-Identifier: MIT-0 */
/* Products of rows of digits (glow_digits.h) with codes of 2, 4 or 8 bits on Advanced SIMD. The weights of four outputs are
 * one stream: biases; of each block scales, zero points where they differ (a byte each), and vectors of codes, whose lanes are the outputs.
 * The bits of a vector from 0 up are the codes of four inputs, those above are of the next four. Codes of 8 bits are
 * stored less 128, as their zero points. */
#ifndef GLOW_NEON_DIGITS_H
#define GLOW_NEON_DIGITS_H

#if defined(__ARM_NEON)

#include <arm_neon.h>

#include "glow_digits.h"

#define GLOW_NEON_DIGITS_LANES 4
#define GLOW_NEON_DIGITS_ALWAYS static inline __attribute__((always_inline, unused))

GLOW_NEON_DIGITS_ALWAYS float32x4_t glow_neon_digits_floats(const uint32_t *w) {
  return vreinterpretq_f32_u32(vld1q_u32(w));
}

GLOW_NEON_DIGITS_ALWAYS int32x4_t glow_neon_digits_zeros(const uint32_t *w) {
  return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(w[0])))));
}

/* code vector `j` of 16 inputs: those of the inputs 4 j and on */
#define GLOW_NEON_DIGITS_CODES(j)                                                                             \
  const uint8x16_t stored##j = vreinterpretq_u8_u32(vld1q_u32(w + (j) / (8 / bits) * 4));                     \
  const int8x16_t c##j = vreinterpretq_s8_u8(                                                                 \
      bits == 8   ? stored##j                                                                                 \
      : bits == 4 ? ((j) % 2 != 0 ? vshrq_n_u8(stored##j, 4) : vandq_u8(stored##j, mask))                     \
      : (j) == 3  ? vshrq_n_u8(stored##j, 6)                                                                  \
                  : vandq_u8((j) == 0 ? stored##j : vshrq_n_u8(stored##j, (j) == 1 ? 2 : 4), mask));

#if defined(__ARM_FEATURE_DOTPROD)
/* Returns sums and the products of 16 inputs. */
GLOW_NEON_DIGITS_ALWAYS int32x4_t glow_neon_digits_add(int32x4_t sums, const int8_t *x, int8x16_t c0, int8x16_t c1,
                                                       int8x16_t c2, int8x16_t c3, int32_t bits) {
  const int8x16_t v = vld1q_s8(x);
  (void)bits;
  sums = vdotq_laneq_s32(sums, c0, v, 0);
  sums = vdotq_laneq_s32(sums, c1, v, 1);
  sums = vdotq_laneq_s32(sums, c2, v, 2);
  return vdotq_laneq_s32(sums, c3, v, 3);
}
#else
GLOW_NEON_DIGITS_ALWAYS int8x8_t glow_neon_digits_four(const int8_t *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return vreinterpret_s8_s32(vdup_n_s32(four));
}

/* sums and those of pairs of pairs of lanes */
GLOW_NEON_DIGITS_ALWAYS int32x4_t glow_neon_digits_more(int32x4_t sums, int16x8_t low, int16x8_t high) {
  const int32x4_t a = vpaddlq_s16(low);
  const int32x4_t b = vpaddlq_s16(high);
#if defined(__aarch64__)
  return vaddq_s32(sums, vpaddq_s32(a, b));
#else
  const int32x2_t first = vpadd_s32(vget_low_s32(a), vget_high_s32(a));
  return vaddq_s32(sums, vcombine_s32(first, vpadd_s32(vget_low_s32(b), vget_high_s32(b))));
#endif
}

#define GLOW_NEON_DIGITS_PRODUCTS(j)                                    \
  const int8x8_t v##j = glow_neon_digits_four(x + 4 * (j));             \
  low = vmlal_s8(low, v##j, vget_low_s8(c##j));                         \
  high = vmlal_s8(high, v##j, vget_high_s8(c##j));                      \
  if (bits == 8) {                                                      \
    sums = glow_neon_digits_more(sums, low, high);                      \
    low = high = vdupq_n_s16(0);                                        \
  }

/* The same. Four products with codes below 16 fit 16 bits, and one of a code of 8 bits. */
GLOW_NEON_DIGITS_ALWAYS int32x4_t glow_neon_digits_add(int32x4_t sums, const int8_t *x, int8x16_t c0, int8x16_t c1,
                                                       int8x16_t c2, int8x16_t c3, int32_t bits) {
  int16x8_t low = vdupq_n_s16(0);
  int16x8_t high = low;
  GLOW_NEON_DIGITS_PRODUCTS(0)
  GLOW_NEON_DIGITS_PRODUCTS(1)
  GLOW_NEON_DIGITS_PRODUCTS(2)
  GLOW_NEON_DIGITS_PRODUCTS(3)
  return bits == 8 ? sums : glow_neon_digits_more(sums, low, high);
}
#endif

/* Four outputs of a row. */
GLOW_NEON_DIGITS_ALWAYS void glow_neon_digits_tile(float *totals, const uint32_t *w, const glow_digits_block_t *info,
                                                   const int8_t *x, const glow_digits_layer_t *layer, int32_t bits) {
  const uint8x16_t mask = vdupq_n_u8((uint8_t)((1 << bits) - 1));
  float32x4_t total = glow_neon_digits_floats(w);
  w += 4;
  for (int32_t b = 0; b < layer->blocks; b++, info++) {
    const float32x4_t scale = vmulq_n_f32(glow_neon_digits_floats(w), info->unit);
    const int32x4_t zero = layer->zeros != 0 ? glow_neon_digits_zeros(w + 4) : vdupq_n_s32(1);
    int32x4_t high = vmulq_n_s32(zero, info->starts[0]);
    int32x4_t middle = vmulq_n_s32(zero, info->starts[1]);
    int32x4_t low = vmulq_n_s32(zero, info->starts[2]);
    w += 4 + layer->zeros;
    for (int32_t s = 0; s < layer->steps; s++, w += 2 * bits, x += 3 * GLOW_DIGITS_STEP) {
      GLOW_NEON_DIGITS_CODES(0)
      GLOW_NEON_DIGITS_CODES(1)
      GLOW_NEON_DIGITS_CODES(2)
      GLOW_NEON_DIGITS_CODES(3)
      high = glow_neon_digits_add(high, x, c0, c1, c2, c3, bits);
      middle = glow_neon_digits_add(middle, x + GLOW_DIGITS_STEP, c0, c1, c2, c3, bits);
      low = glow_neon_digits_add(low, x + 2 * GLOW_DIGITS_STEP, c0, c1, c2, c3, bits);
    }
    const float32x4_t rest = vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(middle, 8), low));
    const float32x4_t sum = vaddq_f32(vmulq_n_f32(vcvtq_f32_s32(high), 65536.0f), rest);
    total = vaddq_f32(total, vmulq_f32(sum, scale));
  }
  vst1q_f32(totals, total);
}
GLOW_DIGITS_LAYER(glow_neon_digits, , GLOW_NEON_DIGITS_LANES, glow_neon_digits_tile)

#endif
#endif
