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

typedef struct {
  uint8x16_t tops[4]; /* table indices: bytes 4i .. 4i + 3 to the tops of four lanes, zeros below */
  float32x4_t fixed;
  float32x4_t magic;
  float a_ratio;
  float b_ratio;
} glow_neon_sum_t;

/* rne(fma(a, a_ratio, fma(b, b_ratio, fixed))) - half by an even half; |the sum| <= 32000 */
static inline glow_neon_sum_t glow_neon_sum(float a_ratio, float b_ratio, float fixed, int32_t half) {
  static const uint32_t lanes[4] = {0x00FFFFFFu, 0x01FFFFFFu, 0x02FFFFFFu, 0x03FFFFFFu};
  const uint32x4_t first = vld1q_u32(lanes);
  glow_neon_sum_t s;
  for (uint32_t i = 0; i < 4u; i++) {
    s.tops[i] = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(i << 26)));
  }
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
  float a_scale;
  float b_scale;
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

/* Float kernels: sums run in another order than the reference, within the stated tolerance. */

/* the four sums of the lanes of a, b, c, d */
static inline float32x4_t glow_sums_f32x4(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
  return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}

static inline float32x4_t glow_fma_f32x4(float32x4_t acc, float32x4_t a, float32x4_t b) {
  return vfmaq_f32(acc, a, b);
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
