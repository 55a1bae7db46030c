/* SPDX-License-Identifier: MIT-0 */
/* Codes to reals and back, sums and windows on Advanced SIMD of A64 and A32. */
#ifndef GLOW_NEON_CODES_H
#define GLOW_NEON_CODES_H

#if defined(__ARM_NEON)

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "glow_neon.h"
#include "glow_reach.h"

/* a / b of every lane; A32 divides scalars only */
static inline float32x4_t glow_neon_divided(float32x4_t a, float b) {
#if defined(__aarch64__)
  return vdivq_f32(a, vdupq_n_f32(b));
#else
  float lanes[4];
  vst1q_f32(lanes, a);
  for (int32_t i = 0; i < 4; i++) {
    lanes[i] /= b;
  }
  return vld1q_f32(lanes);
#endif
}

/* x, or what every code saturates where it is not a number; A32's rounding below sees to that */
static inline float32x4_t glow_neon_number(float32x4_t x) {
#if defined(__aarch64__)
  return vmaxnmq_f32(x, vdupq_n_f32(-8388608.0f));
#else
  return x;
#endif
}

/* a * b + c, both rounded */
static inline float32x4_t glow_neon_scaled_sum(float32x4_t a, float b, float32x4_t c) {
  float32x4_t product = vmulq_n_f32(a, b);
  __asm__("" : "+w"(product)); /* not contracted */
  return vaddq_f32(c, product);
}

/* rne(v) + zp of eight values, saturated to 16 bits. A32 rounds by 1.5 * 2^23 within +-32000; NaN counts as the lowest. */
static inline int16x8_t glow_neon_round_s16x8(float32x4_t low, float32x4_t high, int16x8_t zp) {
#if defined(__aarch64__)
  return glow_round_s16x8(low, high, zp);
#else
  const float32x4_t least = vdupq_n_f32(-32000.0f);
  const float32x4_t most = vdupq_n_f32(32000.0f);
  const float32x4_t magic = vdupq_n_f32(12582912.0f);
  const float32x4_t v[2] = {low, high};
  int16x4_t codes[2];
  for (int32_t i = 0; i < 2; i++) {
    const uint32x4_t number = vceqq_f32(v[i], v[i]);
    float32x4_t real = vminq_f32(vmaxq_f32(vbslq_f32(number, v[i], least), least), most);
    __asm__("" : "+w"(real)); /* not contracted */
    codes[i] = vmovn_s32(vreinterpretq_s32_f32(vaddq_f32(real, magic)));
  }
  return vqaddq_s16(vcombine_s16(codes[0], codes[1]), zp);
#endif
}

typedef struct {
  float32x4_t low;
  float32x4_t high;
} glow_neon_reals_t;

/* eight codes minus zp as floats */
static inline glow_neon_reals_t glow_neon_reals(int16x8_t codes, int32_t zp) {
  const int16x8_t moved = vsubq_s16(codes, vdupq_n_s16((int16_t)zp));
  glow_neon_reals_t r;
  r.low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(moved)));
  r.high = vcvtq_f32_s32(vmovl_s16(vget_high_s16(moved)));
  return r;
}

static inline int16x8_t glow_neon_codes_s8(const int8_t *from) { return vmovl_s8(vld1_s8(from)); }

static inline int16x8_t glow_neon_codes_u8(const uint8_t *from) {
  return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from)));
}

/* eight codes of 16 bits minus zp as floats */
static inline glow_neon_reals_t glow_neon_reals_s16(const int16_t *from, int32_t zp) {
  const int16x8_t codes = vld1q_s16(from);
  glow_neon_reals_t r;
  r.low = vcvtq_f32_s32(vsubq_s32(vmovl_s16(vget_low_s16(codes)), vdupq_n_s32(zp)));
  r.high = vcvtq_f32_s32(vsubq_s32(vmovl_s16(vget_high_s16(codes)), vdupq_n_s32(zp)));
  return r;
}

static inline glow_neon_reals_t glow_neon_reals_u16(const uint16_t *from, int32_t zp) {
  const uint16x8_t codes = vld1q_u16(from);
  glow_neon_reals_t r;
  r.low = vcvtq_f32_s32(vsubq_s32(vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(codes))), vdupq_n_s32(zp)));
  r.high = vcvtq_f32_s32(vsubq_s32(vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(codes))), vdupq_n_s32(zp)));
  return r;
}

/* the sum of `count` adjacent codes */
static inline int32_t glow_neon_row_sum(const int8_t *from, int32_t count) {
  int32x4_t sums = vdupq_n_s32(0);
  int32_t i = 0;
  for (; i + 16 <= count; i += 16) {
    sums = vpadalq_s16(sums, vpaddlq_s8(vld1q_s8(from + i)));
  }
  int32_t lanes[4];
  vst1q_s32(lanes, sums);
  int32_t sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
  for (; i < count; i++) {
    sum += from[i];
  }
  return sum;
}

typedef struct {
  int32x4_t low;
  int32x4_t high;
} glow_neon_sums_t;

/* eight sums of `count` codes, `step` apart */
static inline glow_neon_sums_t glow_neon_column_sums(const int8_t *from, int32_t step, int32_t count) {
  glow_neon_sums_t s = {vdupq_n_s32(0), vdupq_n_s32(0)};
  for (int32_t done = 0; done < count;) {
    const int32_t end = count - done < 255 ? count : done + 255;
    int16x8_t sum = vdupq_n_s16(0);
    for (; done < end; done++, from += step) {
      sum = vaddw_s8(sum, vld1_s8(from));
    }
    s.low = vaddw_s16(s.low, vget_low_s16(sum));
    s.high = vaddw_s16(s.high, vget_high_s16(sum));
  }
  return s;
}
#endif
#endif
