/* SPDX-License-Identifier: MIT-0 */
/* exp, tanh, erf ... of four floats by Advanced SIMD of A64 and A32 (glow_elementary.h). */
#ifndef GLOW_NEON_ELEMENTARY_H
#define GLOW_NEON_ELEMENTARY_H

#if defined(__ARM_NEON)
#include "glow_elementary.h"
#include "glow_neon_f32.h"

#define glow_neon_fn_all vdupq_n_f32
#define glow_neon_fn_add vaddq_f32
#define glow_neon_fn_mul vmulq_f32
#define glow_neon_fn_abs vabsq_f32
static inline float32x4_t glow_neon_fn_plus(float32x4_t x, float c) { return vaddq_f32(x, vdupq_n_f32(c)); }
static inline float32x4_t glow_neon_fn_times(float32x4_t x, float c) { return vmulq_n_f32(x, c); }
static inline float32x4_t glow_neon_fn_step(float32x4_t p, float32x4_t r, float c) {
  return glow_fma_f32x4(vdupq_n_f32(c), p, r);
}
static inline float32x4_t glow_neon_fn_from(float32x4_t x, float c) { return vmaxq_f32(x, vdupq_n_f32(c)); }
static inline float32x4_t glow_neon_fn_up_to(float32x4_t x, float c) { return vminq_f32(x, vdupq_n_f32(c)); }

/* x / y by the estimate of 1 / y and two steps of Newton; 0 where y is infinite */
static inline float32x4_t glow_neon_fn_ratio(float32x4_t x, float32x4_t y) {
  float32x4_t inverse = vrecpeq_f32(y);
  inverse = vmulq_f32(inverse, vrecpsq_f32(y, inverse));
  inverse = vmulq_f32(inverse, vrecpsq_f32(y, inverse));
  return vmulq_f32(x, inverse);
}
static inline float32x4_t glow_neon_fn_signed(float32x4_t x, float32x4_t y) {
  return vbslq_f32(vdupq_n_u32(0x80000000u), y, x);
}
static inline float32x4_t glow_neon_fn_power(float32x4_t t, uint32_t bias) {
  return vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(t), 23), vdupq_n_u32(bias)));
}

GLOW_ELEMENTARY(glow_neon_fn, float32x4_t)

/* the first `lanes` of four floats, 1 to 4, and `rest` */
static inline float32x4_t glow_neon_fn_load_some(const float *from, int32_t lanes, float rest) {
  float four[4] = {rest, rest, rest, rest};
  for (int32_t i = 0; i < lanes; i++) {
    four[i] = from[i];
  }
  return vld1q_f32(four);
}

static inline void glow_neon_fn_store_some(float *to, float32x4_t v, int32_t lanes) {
  float four[4];
  vst1q_f32(four, v);
  for (int32_t i = 0; i < lanes; i++) {
    to[i] = four[i];
  }
}

/* the largest lane */
static inline float glow_neon_fn_most(float32x4_t x) {
  const float32x2_t two = vmax_f32(vget_low_f32(x), vget_high_f32(x));
  return vget_lane_f32(vpmax_f32(two, two), 0);
}

#endif
#endif
