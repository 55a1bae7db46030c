/* SPDX-License-Identifier: MIT-0 */
/* Sums of int16 inputs times int8 weights on Advanced SIMD of A64 and A32: an output channel is a lane, an input times the
 * weights of eight channels a step; and how such sums end. */
#ifndef GLOW_NEON_WIDE_H
#define GLOW_NEON_WIDE_H

#if defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>

#include "glow_reach.h"

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

#if defined(__aarch64__)
#define GLOW_WIDE_MACS(s0, s1, s2, s3, low, high, x) \
  "smlal " s0 ".4s, " low ".4h, " x "\n" "smlal2 " s1 ".4s, " low ".8h, " x "\n" \
  "smlal " s2 ".4s, " high ".4h, " x "\n" "smlal2 " s3 ".4s, " high ".8h, " x "\n"
/* A load that moves its pointer waits for the products before it, on a core that keeps the order. */
#define GLOW_WIDE_LOAD16(q) "ldr " q ", [%[w]]\n" "add %[w], %[w], %[row]\n"
#define GLOW_WIDE_INPUTS16(q, x) "ldr " q ", [%[" x "]]\n" "add %[" x "], %[" x "], #16\n"
#define GLOW_WIDE_WIDEN16(w, low, high) "sxtl " low ".8h, " w ".8b\n" "sxtl2 " high ".8h, " w ".16b\n"
/* An input of four pixels, lane k, times the weights of 16 channels; `load` and `widen` those of later inputs. */
#define GLOW_WIDE_STEP16(low, high, k, load, widen) \
  GLOW_WIDE_MACS("v16", "v17", "v18", "v19", low, high, "v0.h[" k "]") load \
  GLOW_WIDE_MACS("v20", "v21", "v22", "v23", low, high, "v1.h[" k "]") widen \
  GLOW_WIDE_MACS("v24", "v25", "v26", "v27", low, high, "v2.h[" k "]") \
  GLOW_WIDE_MACS("v28", "v29", "v30", "v31", low, high, "v3.h[" k "]")
#define GLOW_WIDE_TWO16(k, l) \
  GLOW_WIDE_STEP16("v5", "v6", k, GLOW_WIDE_LOAD16("q4"), GLOW_WIDE_WIDEN16("v7", "v8", "v9")) \
  GLOW_WIDE_STEP16("v8", "v9", l, GLOW_WIDE_LOAD16("q7"), GLOW_WIDE_WIDEN16("v4", "v5", "v6"))
#define GLOW_WIDE_ZERO(a, b, c, d) \
  "movi v" a ".4s, #0\n" "movi v" b ".4s, #0\n" "movi v" c ".4s, #0\n" "movi v" d ".4s, #0\n"

/* sums[16 * j ...]: k inputs of pixel j times the weights of 16 channels, w_row from input to input */
static inline void glow_a64_wide_4x16(int32_t *sums, const int16_t *const *x, const int8_t *w, int64_t w_row, int32_t k) {
  const int16_t *x0 = x[0];
  const int16_t *x1 = x[1];
  const int16_t *x2 = x[2];
  const int16_t *x3 = x[3];
  int32_t blocks = k / 8;
  int32_t rest = k % 8;
  __asm__ volatile(
      GLOW_WIDE_ZERO("16", "17", "18", "19") GLOW_WIDE_ZERO("20", "21", "22", "23")
      GLOW_WIDE_ZERO("24", "25", "26", "27") GLOW_WIDE_ZERO("28", "29", "30", "31")
      "cbz %w[blocks], 2f\n"
      "1: " GLOW_WIDE_LOAD16("q4") GLOW_WIDE_INPUTS16("q0", "x0") GLOW_WIDE_INPUTS16("q1", "x1") GLOW_WIDE_LOAD16("q7")
      GLOW_WIDE_INPUTS16("q2", "x2") GLOW_WIDE_WIDEN16("v4", "v5", "v6") GLOW_WIDE_INPUTS16("q3", "x3")
      GLOW_WIDE_TWO16("0", "1") GLOW_WIDE_TWO16("2", "3") GLOW_WIDE_TWO16("4", "5")
      GLOW_WIDE_STEP16("v5", "v6", "6", "", GLOW_WIDE_WIDEN16("v7", "v8", "v9"))
      "subs %w[blocks], %w[blocks], #1\n" GLOW_WIDE_STEP16("v8", "v9", "7", "", "") "b.ne 1b\n"
      "2: cbz %w[rest], 4f\n"
      "3: ldr h0, [%[x0]], #2\n" "ldr h1, [%[x1]], #2\n" "ldr h2, [%[x2]], #2\n" "ldr h3, [%[x3]], #2\n"
      GLOW_WIDE_LOAD16("q4") GLOW_WIDE_WIDEN16("v4", "v5", "v6") GLOW_WIDE_STEP16("v5", "v6", "0", "", "")
      "subs %w[rest], %w[rest], #1\n" "b.ne 3b\n"
      "4: st1 {v16.4s-v19.4s}, [%[sums]], #64\n" "st1 {v20.4s-v23.4s}, [%[sums]], #64\n"
      "st1 {v24.4s-v27.4s}, [%[sums]], #64\n" "st1 {v28.4s-v31.4s}, [%[sums]]\n"
      : [sums] "+r"(sums), [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [w] "+r"(w),
        [blocks] "+r"(blocks), [rest] "+r"(rest)
      : [row] "r"(w_row)
      : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
        "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
}
#endif

/* Copies n numbers. */
static inline void glow_neon_wide_copy(int16_t *to, const int16_t *from, int32_t n) {
  for (; n >= 8; n -= 8, to += 8, from += 8) {
    vst1q_s16(to, vld1q_s16(from));
  }
  for (int32_t i = 0; i < n; i++) {
    to[i] = from[i];
  }
}

/* Copies n numbers by eights: up to seven more. */
static inline void glow_neon_wide_eights(int16_t *to, const int16_t *from, int32_t n) {
  for (int32_t i = 0; i < n; i += 8) {
    vst1q_s16(to + i, vld1q_s16(from + i));
  }
}

static inline void glow_neon_wide_set(int16_t *to, int32_t n, int32_t value) {
  for (int32_t i = 0; i < n; i++) {
    to[i] = (int16_t)value;
  }
}

/* `width` pixels of `channels` numbers (a channel apart by `plane`, a pixel by `column`), pixel by pixel */
static inline void glow_neon_wide_row(int16_t *to, const int16_t *from, int32_t width, int32_t channels, int32_t plane,
                                      int32_t column) {
  if (plane == 1 && column == channels) {
    glow_neon_wide_copy(to, from, width * channels);
    return;
  }
  const int32_t whole = channels == 3 && column == 1 ? width / 8 * 8 : 0;
  for (int32_t x = 0; x < whole; x += 8) {
    int16x8x3_t pixels;
    pixels.val[0] = vld1q_s16(from + x);
    pixels.val[1] = vld1q_s16(from + plane + x);
    pixels.val[2] = vld1q_s16(from + 2 * plane + x);
    vst3q_s16(to + 3 * x, pixels);
  }
  for (int32_t x = whole; x < width; x++) {
    for (int32_t c = 0; c < channels; c++) {
      to[x * channels + c] = from[x * column + c * plane];
    }
  }
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

/* rne(sum * scale) + zp, limited first */
static inline int32x4_t glow_neon_wide_rounded(int32x4_t sum, float32x4_t scale, int32_t zp, int32_t low, int32_t high) {
  float32x4_t value = vmulq_f32(vcvtq_f32_s32(sum), scale);
  value = vminq_f32(vmaxq_f32(value, vdupq_n_f32((float)(low - zp))), vdupq_n_f32((float)(high - zp)));
  const int32x4_t bits = vreinterpretq_s32_f32(vaddq_f32(value, vdupq_n_f32(12582912.0f)));
  return vaddq_s32(bits, vdupq_n_s32(zp - 0x4B400000));
}

/* The same; scale_step 0: one scale for all. */
static inline int32x4_t glow_neon_wide_scaled(int32x4_t sum, const float *scale, int32_t scale_step, int32_t zp,
                                              int32_t low, int32_t high) {
  return glow_neon_wide_rounded(sum, scale_step != 0 ? vld1q_f32(scale) : vdupq_n_f32(scale[0]), zp, low, high);
}

#if defined(__aarch64__)
/* The codes of sums[16 * j ...] of `count` pixels, whose channels begin at out[j], for the 16 channels from o on, whose biases
 * and scales are given. */
static inline void glow_a64_wide_codes(int16_t *const *out, int32_t o, int32_t count, const int32_t *sums,
                                       const int32_t *bias, const float *scale, int32_t scale_step, int32_t zp,
                                       int32_t low, int32_t high) {
  const float32x4_t one = vdupq_n_f32(scale[0]);
  const float32x4_t scale0 = scale_step != 0 ? vld1q_f32(scale) : one;
  const float32x4_t scale1 = scale_step != 0 ? vld1q_f32(scale + 4) : one;
  const float32x4_t scale2 = scale_step != 0 ? vld1q_f32(scale + 8) : one;
  const float32x4_t scale3 = scale_step != 0 ? vld1q_f32(scale + 12) : one;
  const int32x4x4_t biases = vld1q_s32_x4(bias);
  for (int32_t j = 0; j < count; j++, sums += 16) {
    const int32x4_t a = glow_neon_wide_rounded(vaddq_s32(vld1q_s32(sums), biases.val[0]), scale0, zp, low, high);
    const int32x4_t b = glow_neon_wide_rounded(vaddq_s32(vld1q_s32(sums + 4), biases.val[1]), scale1, zp, low, high);
    const int32x4_t c = glow_neon_wide_rounded(vaddq_s32(vld1q_s32(sums + 8), biases.val[2]), scale2, zp, low, high);
    const int32x4_t d = glow_neon_wide_rounded(vaddq_s32(vld1q_s32(sums + 12), biases.val[3]), scale3, zp, low, high);
    vst1q_s16(out[j] + o, vuzp1q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
    vst1q_s16(out[j] + o + 8, vuzp1q_s16(vreinterpretq_s16_s32(c), vreinterpretq_s16_s32(d)));
  }
}
#endif

static inline int16x4_t glow_neon_wide_limit(int32x4_t v, int32_t low, int32_t high) {
  return vmovn_s32(vminq_s32(vmaxq_s32(v, vdupq_n_s32(low)), vdupq_n_s32(high)));
}

/* Adds to sums of eight channels the products of n columns of a row of the window. */
static inline void glow_neon_wide_taps(int32x4_t *sums, const int16_t *x, int32_t x_step, const int8_t *w, int32_t w_step,
                                       int32_t n) {
  int32x4_t low = sums[0];
  int32x4_t high = sums[1];
  for (; n > 0; n--, x += x_step, w += w_step) {
    const int16x8_t inputs = vld1q_s16(x);
    const int16x8_t factors = vmovl_s8(vld1_s8(w));
    low = vmlal_s16(low, vget_low_s16(inputs), vget_low_s16(factors));
    high = vmlal_s16(high, vget_high_s16(inputs), vget_high_s16(factors));
  }
  sums[0] = low;
  sums[1] = high;
}

/* The sum of n products. */
static inline int32_t glow_neon_wide_dot(const int16_t *x, const int8_t *w, int32_t n) {
  int32x4_t low = vdupq_n_s32(0);
  int32x4_t high = low;
  const int32_t whole = n - n % 8;
  for (int32_t i = 0; i < whole; i += 8) {
    const int16x8_t inputs = vld1q_s16(x + i);
    const int16x8_t factors = vmovl_s8(vld1_s8(w + i));
    low = vmlal_s16(low, vget_low_s16(inputs), vget_low_s16(factors));
    high = vmlal_s16(high, vget_high_s16(inputs), vget_high_s16(factors));
  }
  low = vaddq_s32(low, high);
  const int32x2_t pair = vadd_s32(vget_low_s32(low), vget_high_s32(low));
  int32_t sum = vget_lane_s32(vpadd_s32(pair, pair), 0);
  for (int32_t i = whole; i < n; i++) {
    sum += x[i] * w[i];
  }
  return sum;
}

static inline int16x8_t glow_neon_wide_limited(int32x4_t a, int32x4_t b, int32_t low, int32_t high) {
  return vcombine_s16(glow_neon_wide_limit(a, low, high), glow_neon_wide_limit(b, low, high));
}

#endif
#endif
