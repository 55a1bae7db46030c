/* SPDX-License-Identifier: MIT-0 */
/* Float32 blocks for Advanced SIMD of A64 and A32: sums run in another order than the reference, within the stated
 * tolerance. */
#ifndef GLOW_NEON_F32_H
#define GLOW_NEON_F32_H

#if defined(__ARM_NEON)

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#if defined(__aarch64__)
/* the four sums of the lanes of a, b, c, d */
static inline float32x4_t glow_sums_f32x4(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
  return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}

static inline float32x4_t glow_fma_f32x4(float32x4_t acc, float32x4_t a, float32x4_t b) {
  return vfmaq_f32(acc, a, b);
}
#else
/* the four sums of the lanes of a, b, c, d */
static inline float32x4_t glow_sums_f32x4(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
  const float32x2_t a2 = vadd_f32(vget_low_f32(a), vget_high_f32(a));
  const float32x2_t b2 = vadd_f32(vget_low_f32(b), vget_high_f32(b));
  const float32x2_t c2 = vadd_f32(vget_low_f32(c), vget_high_f32(c));
  const float32x2_t d2 = vadd_f32(vget_low_f32(d), vget_high_f32(d));
  return vcombine_f32(vpadd_f32(a2, b2), vpadd_f32(c2, d2));
}

static inline float32x4_t glow_fma_f32x4(float32x4_t acc, float32x4_t a, float32x4_t b) {
  return vmlaq_f32(acc, a, b);
}
#endif

/* the sum of the lanes */
static inline float glow_sum_f32x4(float32x4_t x) {
  return vgetq_lane_f32(glow_sums_f32x4(x, x, x, x), 0);
}

/* the last k % 4 lanes set: what the last vector of k >= 4 elements adds to the whole ones before */
static inline uint32x4_t glow_rest_f32x4(int32_t k) {
  static const int32_t lanes[4] = {4, 3, 2, 1};
  return vcgeq_s32(vdupq_n_s32(k % 4), vld1q_s32(lanes));
}

static inline float32x4_t glow_load_f32x4(const float *from) {
  return vld1q_f32(from);
}

/* four int8 weights */
static inline float32x4_t glow_load_s8x4(const int8_t *from) {
  int32_t bytes;
  memcpy(&bytes, from, sizeof bytes);
  const int8x8_t codes = vreinterpret_s8_s32(vdup_n_s32(bytes));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(codes))));
}

static inline float32x4_t glow_masked_f32x4(const float *from, uint32x4_t mask) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(vld1q_f32(from)), mask));
}

static inline float32x4_t glow_limited_f32x4(float32x4_t x, float lo, float hi) {
  return vminq_f32(vmaxq_f32(x, vdupq_n_f32(lo)), vdupq_n_f32(hi));
}

/* Products of rows of x and of w (w_row apart), each of k >= 4 elements, four elements a step: sums s<i><j> of row i of x
 * with row j of w. W is the type of the weights, LOAD gets four of them. */
#define GLOW_DOTS_ROWS(W)         \
  const W *w1 = w + 1 * w_row;    \
  const W *w2 = w + 2 * w_row;    \
  const W *w3 = w + 3 * w_row;    \
  int32_t at = 0;
#define GLOW_DOTS_START(i)                      \
  const float *x##i = x[i];                     \
  float32x4_t s##i##0 = vdupq_n_f32(0.0f);      \
  float32x4_t s##i##1 = vdupq_n_f32(0.0f);      \
  float32x4_t s##i##2 = vdupq_n_f32(0.0f);      \
  float32x4_t s##i##3 = vdupq_n_f32(0.0f);
#define GLOW_DOTS_WEIGHTS(LOAD)               \
  const float32x4_t b0 = LOAD(w + at);        \
  const float32x4_t b1 = LOAD(w1 + at);       \
  const float32x4_t b2 = LOAD(w2 + at);       \
  const float32x4_t b3 = LOAD(w3 + at);
#define GLOW_DOTS_ADD(i, four)                  \
  const float32x4_t a##i = four;                \
  s##i##0 = glow_fma_f32x4(s##i##0, a##i, b0);  \
  s##i##1 = glow_fma_f32x4(s##i##1, a##i, b1);  \
  s##i##2 = glow_fma_f32x4(s##i##2, a##i, b2);  \
  s##i##3 = glow_fma_f32x4(s##i##3, a##i, b3);
#define GLOW_DOTS_STEP(i) GLOW_DOTS_ADD(i, vld1q_f32(x##i + at))
#define GLOW_DOTS_REST(i) GLOW_DOTS_ADD(i, glow_masked_f32x4(x##i + at, mask))
#define GLOW_DOTS_END(i) sums[i] = glow_sums_f32x4(s##i##0, s##i##1, s##i##2, s##i##3);

/* `each` of the rows of x, two or four: sums[i] are the products of x[i] with four rows of w */
#define GLOW_DOTS_TWO(part) part(0) part(1)
#define GLOW_DOTS_FOUR(part) part(0) part(1) part(2) part(3)
#define GLOW_DOTS(NAME, W, LOAD, EACH)                                                                       \
  static inline void NAME(float32x4_t *sums, const float *const *x, const W *w, int32_t w_row, int32_t k) {  \
    GLOW_DOTS_ROWS(W)                                                                                        \
    EACH(GLOW_DOTS_START)                                                                                    \
    for (; at + 4 <= k; at += 4) {                                                                           \
      GLOW_DOTS_WEIGHTS(LOAD)                                                                                \
      EACH(GLOW_DOTS_STEP)                                                                                   \
    }                                                                                                        \
    if (at < k) {                                                                                            \
      const uint32x4_t mask = glow_rest_f32x4(k);                                                            \
      at = k - 4;                                                                                            \
      GLOW_DOTS_WEIGHTS(LOAD)                                                                                \
      EACH(GLOW_DOTS_REST)                                                                                   \
    }                                                                                                        \
    EACH(GLOW_DOTS_END)                                                                                      \
  }

#if defined(__aarch64__)
GLOW_DOTS(glow_dots_f32_4x4, float, glow_load_f32x4, GLOW_DOTS_FOUR)
GLOW_DOTS(glow_dots_s8_4x4, int8_t, glow_load_s8x4, GLOW_DOTS_FOUR)
#else /* half of the registers */
GLOW_DOTS(glow_dots_f32_2x4, float, glow_load_f32x4, GLOW_DOTS_TWO)
GLOW_DOTS(glow_dots_s8_2x4, int8_t, glow_load_s8x4, GLOW_DOTS_TWO)

static inline void glow_dots_f32_4x4(float32x4_t *sums, const float *const *x, const float *w, int32_t w_row,
                                     int32_t k) {
  glow_dots_f32_2x4(sums, x, w, w_row, k);
  glow_dots_f32_2x4(sums + 2, x + 2, w, w_row, k);
}

static inline void glow_dots_s8_4x4(float32x4_t *sums, const float *const *x, const int8_t *w, int32_t w_row,
                                    int32_t k) {
  glow_dots_s8_2x4(sums, x, w, w_row, k);
  glow_dots_s8_2x4(sums + 2, x + 2, w, w_row, k);
}
#endif

/* Products of one row of x with row j of w in s<j>, for four rows of w or eight. */
#define GLOW_DOTS_LINE(j, W) const W *line##j = w + j * w_row;
#define GLOW_DOTS_ZERO(j, W) float32x4_t s##j = vdupq_n_f32(0.0f);
#define GLOW_DOTS_TO(j, LOAD) s##j = glow_fma_f32x4(s##j, a, LOAD(line##j + at));
#define GLOW_DOTS_LINES4(part, how) part(0, how) part(1, how) part(2, how) part(3, how)
#define GLOW_DOTS_LINES8(part, how) \
  GLOW_DOTS_LINES4(part, how) part(4, how) part(5, how) part(6, how) part(7, how)
#define GLOW_DOTS_OF_ONE(W, LOAD, EACH)                                      \
  EACH(GLOW_DOTS_LINE, W)                                                    \
  EACH(GLOW_DOTS_ZERO, W)                                                    \
  int32_t at = 0;                                                            \
  for (; at + 4 <= k; at += 4) {                                             \
    const float32x4_t a = vld1q_f32(x + at);                                 \
    EACH(GLOW_DOTS_TO, LOAD)                                                 \
  }                                                                          \
  if (at < k) {                                                              \
    at = k - 4;                                                              \
    const float32x4_t a = glow_masked_f32x4(x + at, glow_rest_f32x4(k));     \
    EACH(GLOW_DOTS_TO, LOAD)                                                 \
  }
#define GLOW_DOTS_ONE(TYPE, W, LOAD)                                                                               \
  static inline void glow_dots_##TYPE##_1x8(float32x4_t *sums, const float *x, const W *w, int32_t w_row,          \
                                            int32_t k) {                                                           \
    GLOW_DOTS_OF_ONE(W, LOAD, GLOW_DOTS_LINES8)                                                                    \
    sums[0] = glow_sums_f32x4(s0, s1, s2, s3);                                                                     \
    sums[1] = glow_sums_f32x4(s4, s5, s6, s7);                                                                     \
  }                                                                                                                \
  static inline float32x4_t glow_dots_##TYPE##_1x4(const float *x, const W *w, int32_t w_row, int32_t k) {         \
    GLOW_DOTS_OF_ONE(W, LOAD, GLOW_DOTS_LINES4)                                                                    \
    return glow_sums_f32x4(s0, s1, s2, s3);                                                                        \
  }
GLOW_DOTS_ONE(f32, float, glow_load_f32x4)
GLOW_DOTS_ONE(s8, int8_t, glow_load_s8x4)

#endif
#endif
