/* SPDX-License-Identifier: MIT-0 */
/* Sums of int16 codes, and reals to codes, on Advanced SIMD of A64 and A32. */
#ifndef GLOW_NEON_CODES16_H
#define GLOW_NEON_CODES16_H

#if defined(__ARM_NEON)
#include "glow_neon_codes.h"

/* Eight sums and the codes of one position. */
static inline glow_neon_sums_t glow_neon_add_codes16(glow_neon_sums_t s, const int16_t *from) {
  const int16x8_t codes = vld1q_s16(from);
  s.low = vaddw_s16(s.low, vget_low_s16(codes));
  s.high = vaddw_s16(s.high, vget_high_s16(codes));
  return s;
}

/* The sum of `count` adjacent codes. */
static inline int32_t glow_neon_row_sum16(const int16_t *from, int32_t count) {
  int32x4_t sums = vdupq_n_s32(0);
  for (; count >= 8; count -= 8, from += 8) {
    sums = vpadalq_s16(sums, vld1q_s16(from));
  }
  int32_t lanes[4];
  vst1q_s32(lanes, sums);
  int32_t sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
  for (; count > 0; count--) {
    sum += *from++;
  }
  return sum;
}

/* Eight codes minus zp as floats. */
static inline glow_neon_reals_t glow_neon_reals16(const int16_t *from, int32_t zp) {
  const int16x8_t codes = vld1q_s16(from);
  glow_neon_reals_t r;
  r.low = vcvtq_f32_s32(vsubq_s32(vmovl_s16(vget_low_s16(codes)), vdupq_n_s32(zp)));
  r.high = vcvtq_f32_s32(vsubq_s32(vmovl_s16(vget_high_s16(codes)), vdupq_n_s32(zp)));
  return r;
}

typedef struct {
  float32x4_t least, most; /* between which values are rounded */
  int32x4_t zp;
} glow_neon_ends16_t;

static inline glow_neon_ends16_t glow_neon_ends16(int32_t zp, int32_t low, int32_t high) {
  const glow_neon_ends16_t e = {vdupq_n_f32((float)(low - zp)), vdupq_n_f32((float)(high - zp)), vdupq_n_s32(zp)};
  return e;
}

static inline int16x4_t glow_neon_end16(float32x4_t v, const glow_neon_ends16_t *e) {
  const float32x4_t bounded = vminq_f32(vmaxq_f32(v, e->least), e->most);
#if defined(__aarch64__)
  return vmovn_s32(vaddq_s32(vcvtnq_s32_f32(bounded), e->zp));
#else
  const float32x4_t magic = vdupq_n_f32(12582912.0f); /* 1.5 * 2^23: the low bits of the sum are the number */
  return vmovn_s32(vaddq_s32(vreinterpretq_s32_f32(vaddq_f32(bounded, magic)), e->zp));
#endif
}

/* clamp(rne(v) + zp) of eight values */
static inline int16x8_t glow_neon_code16(float32x4_t low, float32x4_t high, const glow_neon_ends16_t *e) {
  return vcombine_s16(glow_neon_end16(low, e), glow_neon_end16(high, e));
}

/* clamp(rne(float32(sum) * scale) + zp) of eight sums */
static inline int16x8_t glow_neon_requant16(glow_neon_sums_t s, float scale, const glow_neon_ends16_t *e) {
  return glow_neon_code16(vmulq_n_f32(vcvtq_f32_s32(s.low), scale), vmulq_n_f32(vcvtq_f32_s32(s.high), scale), e);
}

/* Sums as they are, or, where `even` is 1, twice each sum less its sign and one more: divided by twice an even number, those
 * are no halves and round as the sums do half away from zero. */
static inline int32x4_t glow_neon_no_half(int32x4_t sums, int32x4_t even) {
  const int32x4_t less = vsubq_s32(sums, vandq_s32(vshrq_n_s32(sums, 31), even));
  return vaddq_s32(vshlq_s32(less, even), even);
}

/* Means of eight sums of a count whose reciprocal, or half of it where `even` is 1, is the factor: half away from zero. */
static inline int16x8_t glow_neon_mean16(glow_neon_sums_t s, int32x4_t even, float factor, const glow_neon_ends16_t *e) {
  const glow_neon_sums_t sums = {glow_neon_no_half(s.low, even), glow_neon_no_half(s.high, even)};
  return glow_neon_requant16(sums, factor, e);
}

/* The same of sums of 16 bits, to which `first` is added. */
static inline int8x8_t glow_neon_mean8(int16x8_t sum, int32x4_t first, int32x4_t even, float factor,
                                       const glow_neon_ends16_t *e) {
  const glow_neon_sums_t sums = {vaddw_s16(first, vget_low_s16(sum)), vaddw_s16(first, vget_high_s16(sum))};
  return vmovn_s16(glow_neon_mean16(sums, even, factor, e));
}
#endif
#endif
