/* SPDX-License-Identifier: MIT-0 */
/* TensorFlow Lite's multiplier and shift to the right (glow_q31.h) on Advanced SIMD of A64 and A32. */
#ifndef GLOW_NEON_Q31_H
#define GLOW_NEON_Q31_H

#include "glow_neon_codes.h"
#include "glow_q31.h"

#if defined(__ARM_NEON)

/* four sums times mul * 2^(shift - 31), -31 <= shift <= -1 */
static inline int32x4_t glow_neon_fixed_s32x4(int32x4_t sums, int32_t mul, int32_t shift) {
  const int32x4_t upper = vqrdmulhq_n_s32(sums, mul);
  return vrshlq_s32(vsraq_n_s32(upper, upper, 31), vdupq_n_s32(shift));
}

/* zp + eight sums times mul * 2^(shift - 31), saturated */
static inline int8x8_t glow_neon_fixed_s8x8(int32x4_t low, int32x4_t high, int32_t mul, int32_t shift, int16x8_t zp) {
  const int16x4_t first = vqmovn_s32(glow_neon_fixed_s32x4(low, mul, shift));
  const int16x4_t last = vqmovn_s32(glow_neon_fixed_s32x4(high, mul, shift));
  return vqmovn_s16(vqaddq_s16(vcombine_s16(first, last), zp));
}
#endif
#endif
