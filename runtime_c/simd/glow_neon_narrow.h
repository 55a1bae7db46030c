/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers whose weights have 4 or 2 bits (A64): blocks of eight outputs, stored plus half of the codes, which
 * is taken from the sums instead; or as places in a palette.
 */
#ifndef GLOW_NEON_NARROW_H
#define GLOW_NEON_NARROW_H

#if defined(__aarch64__)

#include "glow_neon.h"

/* Two products of a code and 15 are at most 3840 in magnitude: so many of such sums fit 16 bits. */
enum { GLOW_NEON_NARROW_STEPS = 8 };

/* Add the products of 16 inputs with 16 weights in 16 bits. */
static inline int16x8_t glow_neon_narrow_add(int16x8_t sum, int8x16_t x, uint8x16_t codes) {
  const int8x16_t w = vreinterpretq_s8_u8(codes);
  return vmlal_high_s8(vmlal_s8(sum, vget_low_s8(x), vget_low_s8(w)), x, w);
}

/* Add the products of 16 inputs with 16 weights above -128: two of them fit 16 bits. */
static inline int32x4_t glow_neon_narrow_palette(int32x4_t sum, int8x16_t x, int8x16_t w) {
  return vpadalq_s16(sum, vmlal_high_s8(vmull_s8(vget_low_s8(x), vget_low_s8(w)), x, w));
}

/* Sum of n codes, n a multiple of 16. */
static inline int32_t glow_neon_narrow_sum(const int8_t *x, int32_t n) {
  int32x4_t sum = vdupq_n_s32(0);
  for (int32_t i = 0; i < n; i += 16) {
    sum = vpadalq_s16(sum, vpaddlq_s8(vld1q_s8(x + i)));
  }
  return vaddvq_s32(sum);
}

/* Sums of four outputs, each in four parts, and their biases, less `more`. */
static inline int32x4_t glow_neon_narrow_four(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d, const uint32_t *biases,
                                              int32_t more) {
  const int32x4_t sums = vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
  return vsubq_s32(vaddq_s32(sums, vreinterpretq_s32_u32(vld1q_u32(biases))), vdupq_n_s32(more));
}

static inline float32x4_t glow_neon_narrow_scales(const uint32_t *scales) {
  return vreinterpretq_f32_u32(vld1q_u32(scales));
}

#endif
#endif
