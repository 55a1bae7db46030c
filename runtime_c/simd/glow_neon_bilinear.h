/* SPDX-License-Identifier: MIT-0 */
/* Bilinear interpolation of codes on Advanced SIMD of A64 and A32: the float32 operations of the definition in its
 * order, and that of codes as they are in integers; eight adjacent channels at a time.
 */
#ifndef GLOW_NEON_BILINEAR_H
#define GLOW_NEON_BILINEAR_H

#if defined(__ARM_NEON)
#include "glow_neon_codes.h"

typedef struct {
  float in_scale, out_scale;
  int32_t in_zp, out_zp;
  float weights[4];
} glow_neon_bilinear_t;

static inline glow_neon_reals_t glow_neon_bilinear_reals(const glow_neon_bilinear_t *q, const int8_t *from) {
  const glow_neon_reals_t codes = glow_neon_reals(glow_neon_codes_s8(from), q->in_zp);
  const glow_neon_reals_t r = {vmulq_n_f32(codes.low, q->in_scale), vmulq_n_f32(codes.high, q->in_scale)};
  return r;
}

static inline glow_neon_reals_t glow_neon_bilinear_add(glow_neon_reals_t v, glow_neon_reals_t x, float weight) {
  const glow_neon_reals_t r = {glow_neon_scaled_sum(x.low, weight, v.low),
                               glow_neon_scaled_sum(x.high, weight, v.high)};
  return r;
}

static inline int8x8_t glow_neon_bilinear(const glow_neon_bilinear_t *q, const int8_t *from, int32_t right,
                                          int32_t down) {
  glow_neon_reals_t v = glow_neon_bilinear_reals(q, from);
  v.low = vmulq_n_f32(v.low, q->weights[0]);
  v.high = vmulq_n_f32(v.high, q->weights[0]);
  __asm__("" : "+w"(v.low), "+w"(v.high)); /* not contracted */
  v = glow_neon_bilinear_add(v, glow_neon_bilinear_reals(q, from + right), q->weights[1]);
  v = glow_neon_bilinear_add(v, glow_neon_bilinear_reals(q, from + down), q->weights[2]);
  v = glow_neon_bilinear_add(v, glow_neon_bilinear_reals(q, from + down + right), q->weights[3]);
  const int16x8_t zp = vdupq_n_s16((int16_t)q->out_zp);
  return vqmovn_s16(glow_neon_round_s16x8(glow_neon_divided(v.low, q->out_scale),
                                          glow_neon_divided(v.high, q->out_scale), zp));
}

static inline int16x4_t glow_neon_bilinear_code(int32x4_t sum, int towards_zero) {
  if (towards_zero != 0) {
    const uint32x4_t negative = vreinterpretq_u32_s32(vshrq_n_s32(sum, 31));
    sum = vaddq_s32(sum, vreinterpretq_s32_u32(vshrq_n_u32(negative, 12)));
  }
  return vshrn_n_s32(vshrq_n_s32(sum, 4), 16);
}

typedef struct {
  int32x4_t low;
  int32x4_t high;
} glow_neon_bilinear_sums_t;

static inline glow_neon_bilinear_sums_t glow_neon_bilinear_plus(glow_neon_bilinear_sums_t s, const int8_t *from,
                                                                int32_t weight) {
  const int16x8_t codes = vmovl_s8(vld1_s8(from));
  s.low = vmlaq_n_s32(s.low, vmovl_s16(vget_low_s16(codes)), weight);
  s.high = vmlaq_n_s32(s.high, vmovl_s16(vget_high_s16(codes)), weight);
  return s;
}

/* Eight outputs of codes as they are: sums with weights w in units of 2^-20, rounded down, or towards zero. */
static inline int8x8_t glow_neon_bilinear_codes(const int32_t *w, const int8_t *from, int32_t right, int32_t down,
                                                int towards_zero) {
  glow_neon_bilinear_sums_t s = {vdupq_n_s32(0), vdupq_n_s32(0)};
  s = glow_neon_bilinear_plus(s, from, w[0]);
  s = glow_neon_bilinear_plus(s, from + right, w[1]);
  s = glow_neon_bilinear_plus(s, from + down, w[2]);
  s = glow_neon_bilinear_plus(s, from + down + right, w[3]);
  return vmovn_s16(
      vcombine_s16(glow_neon_bilinear_code(s.low, towards_zero), glow_neon_bilinear_code(s.high, towards_zero)));
}
#endif
#endif
