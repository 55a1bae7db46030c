/* SPDX-License-Identifier: MIT-0 */
/* The functions of glow_same.h of four floats by Advanced SIMD of A64: the same bits. */
#ifndef GLOW_NEON_SAME_H
#define GLOW_NEON_SAME_H

#if defined(__aarch64__) && defined(__ARM_NEON)
#include "glow_neon_elementary.h"

#define glow_neon_same_fn_all vdupq_n_f32
#define glow_neon_same_fn_add vaddq_f32
#define glow_neon_same_fn_ratio vdivq_f32
#define glow_neon_same_fn_plus glow_neon_fn_plus
#define glow_neon_same_fn_abs vabsq_f32
#define glow_neon_same_fn_from glow_neon_fn_from
#define glow_neon_same_fn_up_to glow_neon_fn_up_to
#define glow_neon_same_fn_signed glow_neon_fn_signed
#define glow_neon_same_fn_power glow_neon_fn_power

/* A product that is rounded before it is added. */
static inline float32x4_t glow_neon_same_fn_mul(float32x4_t x, float32x4_t y) {
  float32x4_t product = vmulq_f32(x, y);
  __asm__("" : "+w"(product));
  return product;
}
static inline float32x4_t glow_neon_same_fn_times(float32x4_t x, float c) {
  return glow_neon_same_fn_mul(x, vdupq_n_f32(c));
}
static inline float32x4_t glow_neon_same_fn_step(float32x4_t p, float32x4_t r, float c) {
  return vaddq_f32(glow_neon_same_fn_mul(p, r), vdupq_n_f32(c));
}

GLOW_ELEMENTARY(glow_neon_same_fn, float32x4_t)

#endif
#endif
