/* SPDX-License-Identifier: MIT-0 */
/* Sums of int16 inputs times int8 weights on Advanced SIMD of A64 and A32: an output channel is a lane, an input times the
 * weights of eight channels a step; and how such sums end. */
#ifndef GLOW_NEON_WIDE_H
#define GLOW_NEON_WIDE_H

#if defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>

#if defined(__aarch64__)
#define GLOW_WIDE_HIGH(sum, w, x, lane) vmlal_high_lane_s16(sum, w, x, lane)
#else
#define GLOW_WIDE_HIGH(sum, w, x, lane) vmlal_lane_s16(sum, vget_high_s16(w), x, lane)
#endif
#define GLOW_WIDE_PIXEL(j, lane)                                       \
  low##j = vmlal_lane_s16(low##j, vget_low_s16(eight), x##j, lane);    \
  high##j = GLOW_WIDE_HIGH(high##j, eight, x##j, lane);
#define GLOW_WIDE_STEP(lane)                        \
  {                                                 \
    const int16x8_t eight = vmovl_s8(vld1_s8(w));   \
    w += w_row;                                     \
    GLOW_WIDE_PIXEL(0, lane)                        \
    GLOW_WIDE_PIXEL(1, lane)                        \
    GLOW_WIDE_PIXEL(2, lane)                        \
    GLOW_WIDE_PIXEL(3, lane)                        \
  }
#define GLOW_WIDE_LOAD(at, j) const int16x4_t x##j = at(x[j] + i);
#define GLOW_WIDE_LOADS(at) GLOW_WIDE_LOAD(at, 0) GLOW_WIDE_LOAD(at, 1) GLOW_WIDE_LOAD(at, 2) GLOW_WIDE_LOAD(at, 3)

/* sums[2 * j] and the one after it: k inputs of pixel j times the weights of eight channels, w_row from input to input */
static inline void glow_neon_wide_4x8(int32x4_t *sums, const int16_t *const *x, const int8_t *w, int32_t w_row,
                                      int32_t k) {
  int32x4_t low0 = vdupq_n_s32(0);
  int32x4_t low1 = low0;
  int32x4_t low2 = low0;
  int32x4_t low3 = low0;
  int32x4_t high0 = low0;
  int32x4_t high1 = low0;
  int32x4_t high2 = low0;
  int32x4_t high3 = low0;
  int32_t i = 0;
  for (; i + 4 <= k; i += 4) {
    GLOW_WIDE_LOADS(vld1_s16)
    GLOW_WIDE_STEP(0)
    GLOW_WIDE_STEP(1)
    GLOW_WIDE_STEP(2)
    GLOW_WIDE_STEP(3)
  }
  for (int32_t rest = k % 4; rest > 0; rest--, i++) {
    GLOW_WIDE_LOADS(vld1_dup_s16)
    GLOW_WIDE_STEP(0)
  }
  sums[0] = low0;
  sums[1] = high0;
  sums[2] = low1;
  sums[3] = high1;
  sums[4] = low2;
  sums[5] = high2;
  sums[6] = low3;
  sums[7] = high3;
}

/* ((sum * mul + offset) >> shift) + zp of two sums, rounded down */
static inline int32x2_t glow_neon_wide_shift(int32x2_t sum, int32x2_t mul, const int64_t *offset, int32_t shift,
                                             int32_t zp) {
  const int64x2_t value = vaddq_s64(vmull_s32(sum, mul), vld1q_s64(offset));
  return vqmovn_s64(vaddq_s64(vshlq_s64(value, vdupq_n_s64(-shift)), vdupq_n_s64(zp)));
}

static inline int32x4_t glow_neon_wide_shifted(int32x4_t sum, const int32_t *mul, const int64_t *offset, int32_t shift,
                                               int32_t zp) {
  const int32x4_t factor = vld1q_s32(mul);
  return vcombine_s32(glow_neon_wide_shift(vget_low_s32(sum), vget_low_s32(factor), offset, shift, zp),
                      glow_neon_wide_shift(vget_high_s32(sum), vget_high_s32(factor), offset + 2, shift, zp));
}

/* rne(sum * scale) + zp, limited first; scale_step 0: one scale for all */
static inline int32x4_t glow_neon_wide_scaled(int32x4_t sum, const float *scale, int32_t scale_step, int32_t zp,
                                              int32_t low, int32_t high) {
  const float32x4_t factor = scale_step != 0 ? vld1q_f32(scale) : vdupq_n_f32(scale[0]);
  float32x4_t value = vmulq_f32(vcvtq_f32_s32(sum), factor);
  value = vminq_f32(vmaxq_f32(value, vdupq_n_f32((float)(low - zp))), vdupq_n_f32((float)(high - zp)));
  const int32x4_t bits = vreinterpretq_s32_f32(vaddq_f32(value, vdupq_n_f32(12582912.0f)));
  return vaddq_s32(bits, vdupq_n_s32(zp - 0x4B400000));
}

static inline int16x4_t glow_neon_wide_limit(int32x4_t v, int32_t low, int32_t high) {
  return vmovn_s32(vminq_s32(vmaxq_s32(v, vdupq_n_s32(low)), vdupq_n_s32(high)));
}

static inline int16x8_t glow_neon_wide_limited(int32x4_t a, int32x4_t b, int32_t low, int32_t high) {
  return vcombine_s16(glow_neon_wide_limit(a, low, high), glow_neon_wide_limit(b, low, high));
}

#endif
#endif
