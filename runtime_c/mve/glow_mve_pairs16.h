/* SPDX-License-Identifier: MIT-0 */
/* Sums and products of int16 codes around 0 by TensorFlow Lite's multipliers and shifts, four at a time (MVE). */
#ifndef GLOW_MVE_PAIRS16_H
#define GLOW_MVE_PAIRS16_H

#include "glow_mve_fixed.h"
#include "glow_pairs16.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

/* A code times 2^15 and its factor. */
GLOW_INLINE int32x4_t glow_mve_term16(int32x4_t x, int32_t mul, int32_t shift) {
  return shift == 0 ? vshlq_n_s32(x, 14) : glow_mve_fixed_s32x4(vshlq_n_s32(x, 15), mul, shift, 0);
}

GLOW_INLINE int32x4_t glow_mve_pair_sum16(const glow_pairs16_t *s, int32x4_t a, int32x4_t b) {
  const int32x4_t left = glow_mve_term16(a, s->a_mul, s->a_shift);
  const int32x4_t right = glow_mve_term16(b, s->b_mul, s->b_shift);
  return s->minus != 0 ? vsubq_s32(left, right) : vaddq_s32(left, right);
}

/* out[i] of n pairs of codes; out may be a or b. */
#define GLOW_MVE_PAIRS16(name, value) \
  GLOW_INLINE void name(const glow_pairs16_t *s, const int16_t *a, const int16_t *b, int16_t *out, int32_t n) { \
    const glow_mve_fixed_t end = {s->mul, s->shift, 0, s->low, s->high}; \
    for (; n > 0; n -= 4, a += 4, b += 4, out += 4) { \
      const mve_pred16_t some = vctp32q((uint32_t)n); \
      const int32x4_t x = vldrhq_z_s32(a, some); \
      const int32x4_t y = vldrhq_z_s32(b, some); \
      vstrhq_p_s32(out, glow_mve_fixed_codes(value, &end), some); \
    } \
  }
GLOW_MVE_PAIRS16(glow_mve_add16_q31, glow_mve_pair_sum16(s, x, y))
GLOW_MVE_PAIRS16(glow_mve_mul16_q31, vmulq_s32(x, y))
#endif

#endif
