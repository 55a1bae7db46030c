/* SPDX-License-Identifier: MIT-0 */
/* The functions of glow_same.h of four floats by MVE: the same bits, but that what is less than 2^-100 may be any of that.
 *
 * A quotient is brought to the correctly rounded one by fused remainders (Markstein 1990): of the inverse by three steps, of the
 * product with it by two. */
#ifndef GLOW_MVE_SAME_H
#define GLOW_MVE_SAME_H

#include "glow_mve_elementary.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#define glow_mve_same_fn_all vdupq_n_f32
#define glow_mve_same_fn_add vaddq_f32
#define glow_mve_same_fn_plus vaddq_n_f32
#define glow_mve_same_fn_abs vabsq_f32
#define glow_mve_same_fn_from glow_mve_fn_from
#define glow_mve_same_fn_up_to glow_mve_fn_up_to
#define glow_mve_same_fn_signed glow_mve_fn_signed
#define glow_mve_same_fn_power glow_mve_fn_power

/* A product that is rounded before it is added. */
GLOW_INLINE float32x4_t glow_mve_same_fn_mul(float32x4_t x, float32x4_t y) {
  float32x4_t product = vmulq_f32(x, y);
  __asm__("" : "+w"(product));
  return product;
}
GLOW_INLINE float32x4_t glow_mve_same_fn_times(float32x4_t x, float c) {
  float32x4_t product = vmulq_n_f32(x, c);
  __asm__("" : "+w"(product));
  return product;
}
GLOW_INLINE float32x4_t glow_mve_same_fn_step(float32x4_t p, float32x4_t r, float c) {
  return vaddq_n_f32(glow_mve_same_fn_mul(p, r), c);
}

/* x / y for y from 1 to 2^126 */
GLOW_INLINE float32x4_t glow_mve_same_fn_ratio(float32x4_t x, float32x4_t y) {
  const float32x4_t inverse = glow_mve_fn_inverse(y);
  float32x4_t ratio = vmulq_f32(x, inverse);
  for (int32_t i = 0; i < 2; i++) {
    ratio = vfmaq_f32(ratio, inverse, vfmsq_f32(x, ratio, y));
  }
  return ratio;
}

GLOW_ELEMENTARY(glow_mve_same_fn, float32x4_t)

#endif
#endif
