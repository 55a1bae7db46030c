/* SPDX-License-Identifier: MIT-0 */
/* exp, tanh, erf ... of four floats by MVE (glow_elementary.h). */
#ifndef GLOW_MVE_ELEMENTARY_H
#define GLOW_MVE_ELEMENTARY_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_elementary.h"
#include "glow_mve.h"

#define glow_mve_fn_all vdupq_n_f32
#define glow_mve_fn_add vaddq_f32
#define glow_mve_fn_mul vmulq_f32
#define glow_mve_fn_abs vabsq_f32
#define glow_mve_fn_plus vaddq_n_f32
#define glow_mve_fn_times vmulq_n_f32
#define glow_mve_fn_step vfmasq_n_f32
GLOW_INLINE float32x4_t glow_mve_fn_from(float32x4_t x, float c) {
  return vpselq_f32(vdupq_n_f32(c), x, vcmpltq_n_f32(x, c));
}
GLOW_INLINE float32x4_t glow_mve_fn_up_to(float32x4_t x, float c) {
  return vpselq_f32(vdupq_n_f32(c), x, vcmpgtq_n_f32(x, c));
}

/* 1 / y for y from 1 to 2^126: its bits within 5 %, and three steps of Newton */
GLOW_INLINE float32x4_t glow_mve_fn_inverse(float32x4_t y) {
  float32x4_t inverse = vreinterpretq_f32_u32(vsubq_u32(vdupq_n_u32(0x7EF311C7u), vreinterpretq_u32_f32(y)));
  for (int32_t i = 0; i < 3; i++) {
    inverse = vfmaq_f32(inverse, inverse, vfmsq_f32(vdupq_n_f32(1.0f), inverse, y));
  }
  return inverse;
}
GLOW_INLINE float32x4_t glow_mve_fn_ratio(float32x4_t x, float32x4_t y) { return vmulq_f32(x, glow_mve_fn_inverse(y)); }
GLOW_INLINE float32x4_t glow_mve_fn_signed(float32x4_t x, float32x4_t y) {
  const uint32x4_t sign = vandq_u32(vreinterpretq_u32_f32(y), vdupq_n_u32(0x80000000u));
  return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(vabsq_f32(x)), sign));
}
GLOW_INLINE float32x4_t glow_mve_fn_power(float32x4_t t, uint32_t bias) {
  return vreinterpretq_f32_u32(vaddq_n_u32(vshlq_n_u32(vreinterpretq_u32_f32(t), 23), bias));
}

GLOW_ELEMENTARY(glow_mve_fn, float32x4_t)

GLOW_INLINE float glow_mve_fn_sum(float32x4_t x) {
  return (vgetq_lane_f32(x, 0) + vgetq_lane_f32(x, 1)) + (vgetq_lane_f32(x, 2) + vgetq_lane_f32(x, 3));
}

#endif
#endif
