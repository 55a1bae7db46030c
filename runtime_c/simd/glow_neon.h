/* SPDX-License-Identifier: MIT-0 */
/* Exact scaling on Advanced SIMD: float32 products rounded half to even, offset, saturated. */
#ifndef GLOW_NEON_H
#define GLOW_NEON_H

#if defined(__aarch64__)

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

/* Ends a float expression: what stands before is not contracted with what follows. */
static inline float32x4_t glow_rounded_f32x4(float32x4_t x) {
  __asm__("" : "+w"(x));
  return x;
}

/* A divisor, and 1 / divisor rounded once. */
typedef struct {
  float32x4_t divisor, inverse;
} glow_neon_divisor_t;

/* The quotient as it is rounded once: a product with the inverse, and two steps with fused remainders. Denormal remainders may
 * change what is less than 2^-100. */
static inline float32x4_t glow_neon_quotient(float32x4_t x, const glow_neon_divisor_t *by) {
  float32x4_t ratio = vmulq_f32(x, by->inverse);
  ratio = vfmaq_f32(ratio, vfmsq_f32(x, ratio, by->divisor), by->inverse);
  return vfmaq_f32(ratio, vfmsq_f32(x, ratio, by->divisor), by->inverse);
}

/* rne(v) + zp of eight values, saturated to 16 bits */
static inline int16x8_t glow_round_s16x8(float32x4_t low, float32x4_t high, int16x8_t zp) {
  return vqaddq_s16(vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(low)), vqmovn_s32(vcvtnq_s32_f32(high))), zp);
}

/* rne(v) + z of eight |v| <= 32000: magic is 1.5 * 2^23 + z with an even z, so that ties go to even v. The low
 * 16 bits of the sum are the result. */
static inline int16x8_t glow_small_s16x8(float32x4_t low, float32x4_t high, float32x4_t magic) {
  const int16x8_t a = vreinterpretq_s16_f32(vaddq_f32(glow_rounded_f32x4(low), magic));
  const int16x8_t b = vreinterpretq_s16_f32(vaddq_f32(glow_rounded_f32x4(high), magic));
  return vuzp1q_s16(a, b);
}

/* clamp(rne(float32(acc) * scale) + zp, lo, hi) of eight accumulators */
static inline int8x8_t glow_requant_s8x8(int32x4_t acc0, int32x4_t acc1, float32x4_t scale0, float32x4_t scale1,
                                         int16x8_t zp, int8x8_t lo, int8x8_t hi) {
  const float32x4_t v0 = vmulq_f32(vcvtq_f32_s32(acc0), scale0);
  const float32x4_t v1 = vmulq_f32(vcvtq_f32_s32(acc1), scale1);
  return vmin_s8(vmax_s8(vqmovn_s16(glow_round_s16x8(v0, v1, zp)), lo), hi);
}

/* table indices: bytes 4i .. 4i + 3 to the tops of four lanes, zeros below */
static inline void glow_neon_tops(uint8x16_t *tops) {
  static const uint32_t lanes[4] = {0x00FFFFFFu, 0x01FFFFFFu, 0x02FFFFFFu, 0x03FFFFFFu};
  const uint32x4_t first = vld1q_u32(lanes);
  for (uint32_t i = 0; i < 4u; i++) {
    tops[i] = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(i << 26)));
  }
}

typedef struct {
  uint8x16_t tops[4];
  int32x4_t start;
  int32x4_t a_factor;
  int32x4_t b_factor;
} glow_neon_fixed_t;

static inline glow_neon_fixed_t glow_neon_fixed(int32_t a_factor, int32_t b_factor, int32_t start) {
  glow_neon_fixed_t s;
  glow_neon_tops(s.tops);
  s.start = vdupq_n_s32(start);
  s.a_factor = vdupq_n_s32(a_factor);
  s.b_factor = vdupq_n_s32(b_factor);
  return s;
}

/* eight sums in fixed point: start + the products, the upper 16 of 32 bits (glowc/kernels/simd/add_terms.py) */
static inline int16x8_t glow_neon_fixed_s16x8(const glow_neon_fixed_t *s, uint8x16_t a, uint8x16_t b, int i) {
  const int32x4_t a0 = vreinterpretq_s32_u8(vqtbl1q_u8(a, s->tops[i]));
  const int32x4_t a1 = vreinterpretq_s32_u8(vqtbl1q_u8(a, s->tops[i + 1]));
  const int32x4_t b0 = vreinterpretq_s32_u8(vqtbl1q_u8(b, s->tops[i]));
  const int32x4_t b1 = vreinterpretq_s32_u8(vqtbl1q_u8(b, s->tops[i + 1]));
#if defined(__ARM_FEATURE_QRDMX)
  const int32x4_t v0 = vqrdmlahq_s32(vqrdmlahq_s32(s->start, a0, s->a_factor), b0, s->b_factor);
  const int32x4_t v1 = vqrdmlahq_s32(vqrdmlahq_s32(s->start, a1, s->a_factor), b1, s->b_factor);
  return vuzp2q_s16(vreinterpretq_s16_s32(v0), vreinterpretq_s16_s32(v1));
#else
  const int32x4_t v0 = vaddq_s32(s->start, vqrdmulhq_s32(a0, s->a_factor));
  const int32x4_t v1 = vaddq_s32(s->start, vqrdmulhq_s32(a1, s->a_factor));
  const int16x4_t low = vaddhn_s32(v0, vqrdmulhq_s32(b0, s->b_factor));
  return vaddhn_high_s32(low, v1, vqrdmulhq_s32(b1, s->b_factor));
#endif
}

static inline int8x16_t glow_neon_fixed_s8x16(const glow_neon_fixed_t *s, const int8_t *from_a, const int8_t *from_b) {
  const uint8x16_t a = vreinterpretq_u8_s8(vld1q_s8(from_a));
  const uint8x16_t b = vreinterpretq_u8_s8(vld1q_s8(from_b));
  const int16x8_t low = glow_neon_fixed_s16x8(s, a, b, 0);
  return vqrshrn_high_n_s16(vqrshrn_n_s16(low, 5), glow_neon_fixed_s16x8(s, a, b, 2), 5);
}

typedef struct {
  uint8x16_t tops[4];
  float32x4_t fixed;
  float32x4_t magic;
  float a_ratio, b_ratio;
} glow_neon_sum_t;

/* rne(fma(a, a_ratio, fma(b, b_ratio, fixed))) - half by an even half; |the sum| <= 32000 */
static inline glow_neon_sum_t glow_neon_sum(float a_ratio, float b_ratio, float fixed, int32_t half) {
  glow_neon_sum_t s;
  glow_neon_tops(s.tops);
  s.fixed = vdupq_n_f32(fixed);
  s.magic = vdupq_n_f32((float)(12582912 - half));
  s.a_ratio = a_ratio;
  s.b_ratio = b_ratio;
  return s;
}

static inline float32x4_t glow_neon_sum_s8x4(const glow_neon_sum_t *s, uint8x16_t a, uint8x16_t b, int i) {
  const float32x4_t fa = vcvtq_n_f32_s32(vreinterpretq_s32_u8(vqtbl1q_u8(a, s->tops[i])), 24);
  const float32x4_t fb = vcvtq_n_f32_s32(vreinterpretq_s32_u8(vqtbl1q_u8(b, s->tops[i])), 24);
  return vfmaq_n_f32(vfmaq_n_f32(s->fixed, fb, s->b_ratio), fa, s->a_ratio);
}

static inline float32x4_t glow_neon_sum_u8x4(const glow_neon_sum_t *s, uint8x16_t a, uint8x16_t b, int i) {
  const float32x4_t fa = vcvtq_n_f32_u32(vreinterpretq_u32_u8(vqtbl1q_u8(a, s->tops[i])), 24);
  const float32x4_t fb = vcvtq_n_f32_u32(vreinterpretq_u32_u8(vqtbl1q_u8(b, s->tops[i])), 24);
  return vfmaq_n_f32(vfmaq_n_f32(s->fixed, fb, s->b_ratio), fa, s->a_ratio);
}

/* sixteen sums of codes, not clamped to less than int8 */
static inline int8x16_t glow_neon_sum_s8x16(const glow_neon_sum_t *s, const int8_t *from_a, const int8_t *from_b) {
  const uint8x16_t a = vreinterpretq_u8_s8(vld1q_s8(from_a));
  const uint8x16_t b = vreinterpretq_u8_s8(vld1q_s8(from_b));
  const int16x8_t low = glow_small_s16x8(glow_neon_sum_s8x4(s, a, b, 0), glow_neon_sum_s8x4(s, a, b, 1), s->magic);
  const int16x8_t high = glow_small_s16x8(glow_neon_sum_s8x4(s, a, b, 2), glow_neon_sum_s8x4(s, a, b, 3), s->magic);
  return vqmovn_high_s16(vqmovn_s16(low), high);
}

/* the same of codes plus 128 */
static inline int8x16_t glow_neon_sum_u8x16(const glow_neon_sum_t *s, const int8_t *from_a, const int8_t *from_b) {
  const uint8x16_t a = veorq_u8(vreinterpretq_u8_s8(vld1q_s8(from_a)), vdupq_n_u8(0x80));
  const uint8x16_t b = veorq_u8(vreinterpretq_u8_s8(vld1q_s8(from_b)), vdupq_n_u8(0x80));
  const int16x8_t low = glow_small_s16x8(glow_neon_sum_u8x4(s, a, b, 0), glow_neon_sum_u8x4(s, a, b, 1), s->magic);
  const int16x8_t high = glow_small_s16x8(glow_neon_sum_u8x4(s, a, b, 2), glow_neon_sum_u8x4(s, a, b, 3), s->magic);
  return vqmovn_high_s16(vqmovn_s16(low), high);
}

/* sixteen of ((a - a_zp) * a_scale +- (b - b_zp) * b_scale) / out_scale, every operation rounded; then as above */
typedef struct {
  int8x8_t a_zp;
  int8x8_t b_zp;
  float32x4_t out_scale;
  int16x8_t zp;
  float a_scale, b_scale;
} glow_neon_add_t;

static inline float32x4_t glow_neon_add_f32x4(const glow_neon_add_t *s, int16x4_t a, int16x4_t b, int subtract) {
  const float32x4_t fa = glow_rounded_f32x4(vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(a)), s->a_scale));
  const float32x4_t fb = glow_rounded_f32x4(vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(b)), s->b_scale));
  return vdivq_f32(subtract ? vsubq_f32(fa, fb) : vaddq_f32(fa, fb), s->out_scale);
}

static inline int8x8_t glow_neon_add_s8x8(const glow_neon_add_t *s, int8x8_t a, int8x8_t b, int subtract) {
  const int16x8_t qa = vsubl_s8(a, s->a_zp);
  const int16x8_t qb = vsubl_s8(b, s->b_zp);
  const float32x4_t v0 = glow_neon_add_f32x4(s, vget_low_s16(qa), vget_low_s16(qb), subtract);
  const float32x4_t v1 = glow_neon_add_f32x4(s, vget_high_s16(qa), vget_high_s16(qb), subtract);
  return vqmovn_s16(glow_round_s16x8(v0, v1, s->zp));
}

static inline int8x16_t glow_neon_add_s8x16(const glow_neon_add_t *s, const int8_t *from_a, const int8_t *from_b,
                                            int subtract) {
  const int8x16_t a = vld1q_s8(from_a);
  const int8x16_t b = vld1q_s8(from_b);
  return vcombine_s8(glow_neon_add_s8x8(s, vget_low_s8(a), vget_low_s8(b), subtract),
                     glow_neon_add_s8x8(s, vget_high_s8(a), vget_high_s8(b), subtract));
}
#endif
#endif
