/* SPDX-License-Identifier: MIT-0 */
/* Products of int8 codes on Advanced SIMD of A64 and A32, with TensorFlow Lite's multiplier and shift to the right. */
#ifndef GLOW_NEON_MUL_Q31_H
#define GLOW_NEON_MUL_Q31_H

#include "glow_neon_mul.h"
#include "glow_neon_q31.h"

#if defined(__ARM_NEON)

typedef struct {
  int8x8_t a_zp;
  int8x8_t b_zp;
  int16x8_t zp;
  int8x8_t lo;
  int8x8_t hi;
  int32_t mul;
  int32_t shift;
} glow_neon_mul_q31_t;

static inline int8x8_t glow_neon_mul_q31_s8x8(const glow_neon_mul_q31_t *m, int8x8_t a, int8x8_t b) {
  const int16x8_t qa = vsubl_s8(a, m->a_zp);
  const int16x8_t qb = vsubl_s8(b, m->b_zp);
  const int32x4_t low = vmull_s16(vget_low_s16(qa), vget_low_s16(qb));
  const int32x4_t high = vmull_s16(vget_high_s16(qa), vget_high_s16(qb));
  return vmin_s8(vmax_s8(glow_neon_fixed_s8x8(low, high, m->mul, m->shift, m->zp), m->lo), m->hi);
}
#endif
#endif
