/* Bilinear interpolation of codes on Advanced SIMD of A64 and A32: the float32 operations of the definition in its order,
 * eight adjacent channels at a time.
 */
#ifndef GLOW_NEON_BILINEAR_H
#define GLOW_NEON_BILINEAR_H

#if defined(__ARM_NEON)
#include "glow_neon_codes.h"

typedef struct {
  float in_scale;
  float out_scale;
  int32_t in_zp;
  int32_t out_zp;
  float weights[4];
} glow_neon_bilinear_t;

static inline glow_neon_reals_t glow_neon_bilinear_reals(const glow_neon_bilinear_t *q, const int8_t *from) {
  const glow_neon_reals_t codes = glow_neon_reals(glow_neon_codes_s8(from), q->in_zp);
  const glow_neon_reals_t r = {vmulq_n_f32(codes.low, q->in_scale), vmulq_n_f32(codes.high, q->in_scale)};
  return r;
}

static inline glow_neon_reals_t glow_neon_bilinear_add(glow_neon_reals_t v, glow_neon_reals_t x, float weight) {
  const glow_neon_reals_t r = {glow_neon_scaled_sum(x.low, weight, v.low), glow_neon_scaled_sum(x.high, weight, v.high)};
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
#endif
#endif
