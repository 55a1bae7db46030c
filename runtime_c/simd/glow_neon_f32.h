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

/* products of rows of x and of w (w_row apart), each of k >= 4 elements, four elements a step */
#if defined(__aarch64__)
#define GLOW_DOTS_4X4(NAME, W, LOAD)                                                                                \
  /* sums[i] are the products of x[i] with four rows of w */                                                        \
  static inline void NAME(float32x4_t *sums, const float *const *x, const W *w, int32_t w_row, int32_t k) {         \
    const float *x0 = x[0];                                                                                         \
    const float *x1 = x[1];                                                                                         \
    const float *x2 = x[2];                                                                                         \
    const float *x3 = x[3];                                                                                         \
    const W *w1 = w + 1 * w_row;                                                                                    \
    const W *w2 = w + 2 * w_row;                                                                                    \
    const W *w3 = w + 3 * w_row;                                                                                    \
    float32x4_t s00 = vdupq_n_f32(0.0f), s01 = vdupq_n_f32(0.0f), s02 = vdupq_n_f32(0.0f), s03 = vdupq_n_f32(0.0f); \
    float32x4_t s10 = vdupq_n_f32(0.0f), s11 = vdupq_n_f32(0.0f), s12 = vdupq_n_f32(0.0f), s13 = vdupq_n_f32(0.0f); \
    float32x4_t s20 = vdupq_n_f32(0.0f), s21 = vdupq_n_f32(0.0f), s22 = vdupq_n_f32(0.0f), s23 = vdupq_n_f32(0.0f); \
    float32x4_t s30 = vdupq_n_f32(0.0f), s31 = vdupq_n_f32(0.0f), s32 = vdupq_n_f32(0.0f), s33 = vdupq_n_f32(0.0f); \
    int32_t at = 0;                                                                                                 \
    for (; at + 4 <= k; at += 4) {                                                                                  \
      const float32x4_t b0 = LOAD(w + at);                                                                          \
      const float32x4_t b1 = LOAD(w1 + at);                                                                         \
      const float32x4_t b2 = LOAD(w2 + at);                                                                         \
      const float32x4_t b3 = LOAD(w3 + at);                                                                         \
      const float32x4_t a0 = vld1q_f32(x0 + at);                                                                    \
      s00 = glow_fma_f32x4(s00, a0, b0);                                                                            \
      s01 = glow_fma_f32x4(s01, a0, b1);                                                                            \
      s02 = glow_fma_f32x4(s02, a0, b2);                                                                            \
      s03 = glow_fma_f32x4(s03, a0, b3);                                                                            \
      const float32x4_t a1 = vld1q_f32(x1 + at);                                                                    \
      s10 = glow_fma_f32x4(s10, a1, b0);                                                                            \
      s11 = glow_fma_f32x4(s11, a1, b1);                                                                            \
      s12 = glow_fma_f32x4(s12, a1, b2);                                                                            \
      s13 = glow_fma_f32x4(s13, a1, b3);                                                                            \
      const float32x4_t a2 = vld1q_f32(x2 + at);                                                                    \
      s20 = glow_fma_f32x4(s20, a2, b0);                                                                            \
      s21 = glow_fma_f32x4(s21, a2, b1);                                                                            \
      s22 = glow_fma_f32x4(s22, a2, b2);                                                                            \
      s23 = glow_fma_f32x4(s23, a2, b3);                                                                            \
      const float32x4_t a3 = vld1q_f32(x3 + at);                                                                    \
      s30 = glow_fma_f32x4(s30, a3, b0);                                                                            \
      s31 = glow_fma_f32x4(s31, a3, b1);                                                                            \
      s32 = glow_fma_f32x4(s32, a3, b2);                                                                            \
      s33 = glow_fma_f32x4(s33, a3, b3);                                                                            \
    }                                                                                                               \
    if (at < k) {                                                                                                   \
      const uint32x4_t mask = glow_rest_f32x4(k);                                                                   \
      at = k - 4;                                                                                                   \
      const float32x4_t b0 = LOAD(w + at);                                                                          \
      const float32x4_t b1 = LOAD(w1 + at);                                                                         \
      const float32x4_t b2 = LOAD(w2 + at);                                                                         \
      const float32x4_t b3 = LOAD(w3 + at);                                                                         \
      const float32x4_t a0 = glow_masked_f32x4(x0 + at, mask);                                                      \
      s00 = glow_fma_f32x4(s00, a0, b0);                                                                            \
      s01 = glow_fma_f32x4(s01, a0, b1);                                                                            \
      s02 = glow_fma_f32x4(s02, a0, b2);                                                                            \
      s03 = glow_fma_f32x4(s03, a0, b3);                                                                            \
      const float32x4_t a1 = glow_masked_f32x4(x1 + at, mask);                                                      \
      s10 = glow_fma_f32x4(s10, a1, b0);                                                                            \
      s11 = glow_fma_f32x4(s11, a1, b1);                                                                            \
      s12 = glow_fma_f32x4(s12, a1, b2);                                                                            \
      s13 = glow_fma_f32x4(s13, a1, b3);                                                                            \
      const float32x4_t a2 = glow_masked_f32x4(x2 + at, mask);                                                      \
      s20 = glow_fma_f32x4(s20, a2, b0);                                                                            \
      s21 = glow_fma_f32x4(s21, a2, b1);                                                                            \
      s22 = glow_fma_f32x4(s22, a2, b2);                                                                            \
      s23 = glow_fma_f32x4(s23, a2, b3);                                                                            \
      const float32x4_t a3 = glow_masked_f32x4(x3 + at, mask);                                                      \
      s30 = glow_fma_f32x4(s30, a3, b0);                                                                            \
      s31 = glow_fma_f32x4(s31, a3, b1);                                                                            \
      s32 = glow_fma_f32x4(s32, a3, b2);                                                                            \
      s33 = glow_fma_f32x4(s33, a3, b3);                                                                            \
    }                                                                                                               \
    sums[0] = glow_sums_f32x4(s00, s01, s02, s03);                                                                  \
    sums[1] = glow_sums_f32x4(s10, s11, s12, s13);                                                                  \
    sums[2] = glow_sums_f32x4(s20, s21, s22, s23);                                                                  \
    sums[3] = glow_sums_f32x4(s30, s31, s32, s33);                                                                  \
  }

GLOW_DOTS_4X4(glow_dots_f32_4x4, float, glow_load_f32x4)
GLOW_DOTS_4X4(glow_dots_s8_4x4, int8_t, glow_load_s8x4)
#else
#define GLOW_DOTS_2X4(NAME, W, LOAD)                                                                                \
  /* sums[i] are the products of x[i] with four rows of w */                                                        \
  static inline void NAME(float32x4_t *sums, const float *const *x, const W *w, int32_t w_row, int32_t k) {         \
    const float *x0 = x[0];                                                                                         \
    const float *x1 = x[1];                                                                                         \
    const W *w1 = w + 1 * w_row;                                                                                    \
    const W *w2 = w + 2 * w_row;                                                                                    \
    const W *w3 = w + 3 * w_row;                                                                                    \
    float32x4_t s00 = vdupq_n_f32(0.0f), s01 = vdupq_n_f32(0.0f), s02 = vdupq_n_f32(0.0f), s03 = vdupq_n_f32(0.0f); \
    float32x4_t s10 = vdupq_n_f32(0.0f), s11 = vdupq_n_f32(0.0f), s12 = vdupq_n_f32(0.0f), s13 = vdupq_n_f32(0.0f); \
    int32_t at = 0;                                                                                                 \
    for (; at + 4 <= k; at += 4) {                                                                                  \
      const float32x4_t b0 = LOAD(w + at);                                                                          \
      const float32x4_t b1 = LOAD(w1 + at);                                                                         \
      const float32x4_t b2 = LOAD(w2 + at);                                                                         \
      const float32x4_t b3 = LOAD(w3 + at);                                                                         \
      const float32x4_t a0 = vld1q_f32(x0 + at);                                                                    \
      s00 = glow_fma_f32x4(s00, a0, b0);                                                                            \
      s01 = glow_fma_f32x4(s01, a0, b1);                                                                            \
      s02 = glow_fma_f32x4(s02, a0, b2);                                                                            \
      s03 = glow_fma_f32x4(s03, a0, b3);                                                                            \
      const float32x4_t a1 = vld1q_f32(x1 + at);                                                                    \
      s10 = glow_fma_f32x4(s10, a1, b0);                                                                            \
      s11 = glow_fma_f32x4(s11, a1, b1);                                                                            \
      s12 = glow_fma_f32x4(s12, a1, b2);                                                                            \
      s13 = glow_fma_f32x4(s13, a1, b3);                                                                            \
    }                                                                                                               \
    if (at < k) {                                                                                                   \
      const uint32x4_t mask = glow_rest_f32x4(k);                                                                   \
      at = k - 4;                                                                                                   \
      const float32x4_t b0 = LOAD(w + at);                                                                          \
      const float32x4_t b1 = LOAD(w1 + at);                                                                         \
      const float32x4_t b2 = LOAD(w2 + at);                                                                         \
      const float32x4_t b3 = LOAD(w3 + at);                                                                         \
      const float32x4_t a0 = glow_masked_f32x4(x0 + at, mask);                                                      \
      s00 = glow_fma_f32x4(s00, a0, b0);                                                                            \
      s01 = glow_fma_f32x4(s01, a0, b1);                                                                            \
      s02 = glow_fma_f32x4(s02, a0, b2);                                                                            \
      s03 = glow_fma_f32x4(s03, a0, b3);                                                                            \
      const float32x4_t a1 = glow_masked_f32x4(x1 + at, mask);                                                      \
      s10 = glow_fma_f32x4(s10, a1, b0);                                                                            \
      s11 = glow_fma_f32x4(s11, a1, b1);                                                                            \
      s12 = glow_fma_f32x4(s12, a1, b2);                                                                            \
      s13 = glow_fma_f32x4(s13, a1, b3);                                                                            \
    }                                                                                                               \
    sums[0] = glow_sums_f32x4(s00, s01, s02, s03);                                                                  \
    sums[1] = glow_sums_f32x4(s10, s11, s12, s13);                                                                  \
  }

GLOW_DOTS_2X4(glow_dots_f32_2x4, float, glow_load_f32x4)
GLOW_DOTS_2X4(glow_dots_s8_2x4, int8_t, glow_load_s8x4)

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

/* one row of x, eight rows of w */
#define GLOW_DOTS_1X8(NAME, W, LOAD)                                                                            \
  static inline void NAME(float32x4_t *sums, const float *x, const W *w, int32_t w_row, int32_t k) {            \
    const W *w1 = w + 1 * w_row;                                                                                \
    const W *w2 = w + 2 * w_row;                                                                                \
    const W *w3 = w + 3 * w_row;                                                                                \
    const W *w4 = w + 4 * w_row;                                                                                \
    const W *w5 = w + 5 * w_row;                                                                                \
    const W *w6 = w + 6 * w_row;                                                                                \
    const W *w7 = w + 7 * w_row;                                                                                \
    float32x4_t s0 = vdupq_n_f32(0.0f), s1 = vdupq_n_f32(0.0f), s2 = vdupq_n_f32(0.0f), s3 = vdupq_n_f32(0.0f); \
    float32x4_t s4 = vdupq_n_f32(0.0f), s5 = vdupq_n_f32(0.0f), s6 = vdupq_n_f32(0.0f), s7 = vdupq_n_f32(0.0f); \
    int32_t at = 0;                                                                                             \
    for (; at + 4 <= k; at += 4) {                                                                              \
      const float32x4_t a = vld1q_f32(x + at);                                                                  \
      s0 = glow_fma_f32x4(s0, a, LOAD(w + at));                                                                 \
      s1 = glow_fma_f32x4(s1, a, LOAD(w1 + at));                                                                \
      s2 = glow_fma_f32x4(s2, a, LOAD(w2 + at));                                                                \
      s3 = glow_fma_f32x4(s3, a, LOAD(w3 + at));                                                                \
      s4 = glow_fma_f32x4(s4, a, LOAD(w4 + at));                                                                \
      s5 = glow_fma_f32x4(s5, a, LOAD(w5 + at));                                                                \
      s6 = glow_fma_f32x4(s6, a, LOAD(w6 + at));                                                                \
      s7 = glow_fma_f32x4(s7, a, LOAD(w7 + at));                                                                \
    }                                                                                                           \
    if (at < k) {                                                                                               \
      at = k - 4;                                                                                               \
      const float32x4_t a = glow_masked_f32x4(x + at, glow_rest_f32x4(k));                                      \
      s0 = glow_fma_f32x4(s0, a, LOAD(w + at));                                                                 \
      s1 = glow_fma_f32x4(s1, a, LOAD(w1 + at));                                                                \
      s2 = glow_fma_f32x4(s2, a, LOAD(w2 + at));                                                                \
      s3 = glow_fma_f32x4(s3, a, LOAD(w3 + at));                                                                \
      s4 = glow_fma_f32x4(s4, a, LOAD(w4 + at));                                                                \
      s5 = glow_fma_f32x4(s5, a, LOAD(w5 + at));                                                                \
      s6 = glow_fma_f32x4(s6, a, LOAD(w6 + at));                                                                \
      s7 = glow_fma_f32x4(s7, a, LOAD(w7 + at));                                                                \
    }                                                                                                           \
    sums[0] = glow_sums_f32x4(s0, s1, s2, s3);                                                                  \
    sums[1] = glow_sums_f32x4(s4, s5, s6, s7);                                                                  \
  }

GLOW_DOTS_1X8(glow_dots_f32_1x8, float, glow_load_f32x4)
GLOW_DOTS_1X8(glow_dots_s8_1x8, int8_t, glow_load_s8x4)

/* one row of x, four rows of w */
#define GLOW_DOTS_1X4(NAME, W, LOAD)                                                                            \
  static inline float32x4_t NAME(const float *x, const W *w, int32_t w_row, int32_t k) {                        \
    const W *w1 = w + 1 * w_row;                                                                                \
    const W *w2 = w + 2 * w_row;                                                                                \
    const W *w3 = w + 3 * w_row;                                                                                \
    float32x4_t s0 = vdupq_n_f32(0.0f), s1 = vdupq_n_f32(0.0f), s2 = vdupq_n_f32(0.0f), s3 = vdupq_n_f32(0.0f); \
    int32_t at = 0;                                                                                             \
    for (; at + 4 <= k; at += 4) {                                                                              \
      const float32x4_t a = vld1q_f32(x + at);                                                                  \
      s0 = glow_fma_f32x4(s0, a, LOAD(w + at));                                                                 \
      s1 = glow_fma_f32x4(s1, a, LOAD(w1 + at));                                                                \
      s2 = glow_fma_f32x4(s2, a, LOAD(w2 + at));                                                                \
      s3 = glow_fma_f32x4(s3, a, LOAD(w3 + at));                                                                \
    }                                                                                                           \
    if (at < k) {                                                                                               \
      at = k - 4;                                                                                               \
      const float32x4_t a = glow_masked_f32x4(x + at, glow_rest_f32x4(k));                                      \
      s0 = glow_fma_f32x4(s0, a, LOAD(w + at));                                                                 \
      s1 = glow_fma_f32x4(s1, a, LOAD(w1 + at));                                                                \
      s2 = glow_fma_f32x4(s2, a, LOAD(w2 + at));                                                                \
      s3 = glow_fma_f32x4(s3, a, LOAD(w3 + at));                                                                \
    }                                                                                                           \
    return glow_sums_f32x4(s0, s1, s2, s3);                                                                     \
  }

GLOW_DOTS_1X4(glow_dots_f32_1x4, float, glow_load_f32x4)
GLOW_DOTS_1X4(glow_dots_s8_1x4, int8_t, glow_load_s8x4)

#endif
#endif
