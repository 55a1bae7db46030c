/* SPDX-License-Identifier: MIT-0 */
/* Sums and products of int16 codes around 0 by TensorFlow Lite's multipliers and shifts on Advanced SIMD of A64 and A32. */
#ifndef GLOW_NEON_PAIRS16_H
#define GLOW_NEON_PAIRS16_H

#include "glow_neon_q31.h"
#include "glow_pairs16.h"

#if defined(__ARM_NEON)

/* Codes times 2^15 and their factor. */
static inline int32x4_t glow_neon_term16(int16x4_t x, int32_t mul, int32_t shift) {
  return shift == 0 ? vshll_n_s16(x, 14) : glow_neon_fixed_s32x4(vshll_n_s16(x, 15), mul, shift);
}

static inline int32x4_t glow_neon_sum16(const glow_pairs16_t *s, int16x4_t a, int16x4_t b) {
  const int32x4_t left = glow_neon_term16(a, s->a_mul, s->a_shift);
  const int32x4_t right = glow_neon_term16(b, s->b_mul, s->b_shift);
  return s->minus != 0 ? vsubq_s32(left, right) : vaddq_s32(left, right);
}

static inline int32x4_t glow_neon_product16(const glow_pairs16_t *s, int16x4_t a, int16x4_t b) {
  (void)s;
  return vmull_s16(a, b);
}

static inline int16x4_t glow_neon_ended16(const glow_pairs16_t *s, int32x4_t x) {
  const int16x4_t codes = vqmovn_s32(glow_neon_fixed_s32x4(x, s->mul, s->shift));
  return vmin_s16(vmax_s16(codes, vdup_n_s16((int16_t)s->low)), vdup_n_s16((int16_t)s->high));
}

/* out[i] of n pairs of codes; out may be a or b. */
#define GLOW_NEON_PAIRS16_Q31(name, of_four)                                                                           \
  static inline void name(const glow_pairs16_t *s, const int16_t *a, const int16_t *b, int16_t *out, int32_t n) {      \
    for (; n >= 8; n -= 8, a += 8, b += 8, out += 8) {                                                                 \
      const int16x8_t x = vld1q_s16(a);                                                                                \
      const int16x8_t y = vld1q_s16(b);                                                                                \
      const int32x4_t low = of_four(s, vget_low_s16(x), vget_low_s16(y));                                              \
      const int32x4_t high = of_four(s, vget_high_s16(x), vget_high_s16(y));                                           \
      vst1q_s16(out, vcombine_s16(glow_neon_ended16(s, low), glow_neon_ended16(s, high)));                             \
    }                                                                                                                  \
    for (; n > 0; n--, a++, b++, out++) {                                                                              \
      vst1_lane_s16(out, glow_neon_ended16(s, of_four(s, vld1_dup_s16(a), vld1_dup_s16(b))), 0);                       \
    }                                                                                                                  \
  }
GLOW_NEON_PAIRS16_Q31(glow_neon_add16_q31, glow_neon_sum16)
GLOW_NEON_PAIRS16_Q31(glow_neon_mul16_q31, glow_neon_product16)

#endif
#endif
