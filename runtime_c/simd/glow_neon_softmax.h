/* SPDX-License-Identifier: MIT-0 */
/* Softmax of rows of int8 codes on A64: entries of a table of exponentials, whose sums are in index order. */
#ifndef GLOW_NEON_SOFTMAX_H
#define GLOW_NEON_SOFTMAX_H

#if defined(__aarch64__)
#include "glow_neon.h"

/* The largest of n codes. */
static inline int8_t glow_neon_largest_s8(const int8_t *x, int32_t n) {
  int8_t max = -128;
  for (int32_t k = 0; n < 16 && k < n; k++) {
    max = x[k] > max ? x[k] : max;
  }
  if (n >= 16) {
    int8x16_t most = vld1q_s8(x + n - 16);
    for (int32_t k = 0; k + 16 < n; k += 16) {
      most = vmaxq_s8(most, vld1q_s8(x + k));
    }
    max = vmaxvq_s8(most);
  }
  return max;
}

/* Entries of the table below: of four neighbors in b, and their places of the exponent. */
static inline float32x4_t glow_neon_exponential(uint32_t a, uint32x4_t b, uint32x4_t place) {
  const uint64x2_t low = vmull_n_u32(vget_low_u32(b), a);
  const uint32x4_t product = vshrn_high_n_u64(vshrn_n_u64(low, 32), vmull_n_u32(vget_high_u32(b), a), 32);
  const int32x4_t power = vsubq_s32(vshrq_n_s32(vreinterpretq_s32_u32(place), 20), vdupq_n_s32(1));
  const int32x4_t more = vmaxq_s32(vminq_s32(power, vdupq_n_s32(0)), vdupq_n_s32(-32)); /* of denormals, negative */
  const int32x4_t drop = vaddq_s32(vreinterpretq_s32_u32(vsraq_n_u32(vdupq_n_u32(6u), product, 31)), vnegq_s32(more));
  const uint32x4_t rounded = vrshrq_n_u32(vshlq_u32(product, vnegq_s32(drop)), 1);
  const int32x4_t exponent = vshlq_n_s32(vmaxq_s32(power, vdupq_n_s32(0)), 23);
  return vreinterpretq_f32_u32(vaddq_u32(rounded, vreinterpretq_u32_s32(exponent)));
}

/* The table whose entry d has the mantissa a[d / 16] * b[d % 16], the biased exponent floor(top - d * fall); words: a[16], b[16], top,
 * fall. */
static inline void glow_neon_exponentials(const uint32_t *words, float *table) {
  static const uint32_t places[4] = {0u, 1u, 2u, 3u};
  const uint32x4_t fall0 = vmulq_n_u32(vld1q_u32(places), words[33]);
  const uint32x4_t fall4 = vaddq_u32(fall0, vdupq_n_u32(4u * words[33]));
  for (uint32_t d = 0u; d < 256u; d += 8u) {
    const uint32_t *b = words + 16u + d % 16u;
    const uint32x4_t place = vdupq_n_u32(words[32] - d * words[33]);
    const float32x4_t low = glow_neon_exponential(words[d / 16u], vld1q_u32(b), vsubq_u32(place, fall0));
    vst1q_f32(table + d + 4, glow_neon_exponential(words[d / 16u], vld1q_u32(b + 4), vsubq_u32(place, fall4)));
    vst1q_f32(table + d, low);
  }
}

/* Places in the table of eight codes, a byte each. */
static inline uint64_t glow_neon_away(int8x8_t max, int8x8_t codes) {
  return vget_lane_u64(vreinterpret_u64_s8(vsub_s8(max, codes)), 0);
}

/* Four rows: their codes, the largest ones, and the sums of their exponentials, which take turns as each waits for the one before
 * it. */
typedef struct {
  const int8_t *x[4];
  int8_t max[4];
  float sum[4];
} glow_neon_rows4_t;

/* Adds two entries of each row. */
#define GLOW_NEON_SUM4(low, high)                                                                                             \
  "ubfx %[i0], %[a], #" #low ", #8\n\tubfx %[i1], %[b], #" #low ", #8\n\t"                                                    \
  "ubfx %[i2], %[c], #" #low ", #8\n\tubfx %[i3], %[d], #" #low ", #8\n\t"                                                    \
  "ubfx %[i4], %[a], #" #high ", #8\n\tubfx %[i5], %[b], #" #high ", #8\n\t"                                                  \
  "ubfx %[i6], %[c], #" #high ", #8\n\tubfx %[i7], %[d], #" #high ", #8\n\t"                                                  \
  "ldr %s[e0], [%[table], %[i0], lsl #2]\n\tldr %s[e1], [%[table], %[i1], lsl #2]\n\t"                                        \
  "ldr %s[e2], [%[table], %[i2], lsl #2]\n\tldr %s[e3], [%[table], %[i3], lsl #2]\n\t"                                        \
  "ldr %s[e4], [%[table], %[i4], lsl #2]\n\tldr %s[e5], [%[table], %[i5], lsl #2]\n\t"                                        \
  "ldr %s[e6], [%[table], %[i6], lsl #2]\n\tldr %s[e7], [%[table], %[i7], lsl #2]\n\t"                                        \
  "fadd %s[s0], %s[s0], %s[e0]\n\tfadd %s[s1], %s[s1], %s[e1]\n\t"                                                            \
  "fadd %s[s2], %s[s2], %s[e2]\n\tfadd %s[s3], %s[s3], %s[e3]\n\t"                                                            \
  "fadd %s[s0], %s[s0], %s[e4]\n\tfadd %s[s1], %s[s1], %s[e5]\n\t"                                                            \
  "fadd %s[s2], %s[s2], %s[e6]\n\tfadd %s[s3], %s[s3], %s[e7]\n\t"

static inline void glow_neon_softmax_sums(glow_neon_rows4_t *rows, const float *table, int32_t n) {
  float sum0 = 0.0f;
  float sum1 = 0.0f;
  float sum2 = 0.0f;
  float sum3 = 0.0f;
  int32_t k = 0;
  for (int32_t r = 0; r < 4; r++) {
    rows->max[r] = glow_neon_largest_s8(rows->x[r], n);
  }
  const int8_t *const x0 = rows->x[0];
  const int8_t *const x1 = rows->x[1];
  const int8_t *const x2 = rows->x[2];
  const int8_t *const x3 = rows->x[3];
  const int8x8_t max0 = vdup_n_s8(rows->max[0]);
  const int8x8_t max1 = vdup_n_s8(rows->max[1]);
  const int8x8_t max2 = vdup_n_s8(rows->max[2]);
  const int8x8_t max3 = vdup_n_s8(rows->max[3]);
  for (; k + 8 <= n; k += 8) {
    const uint64_t a = glow_neon_away(max0, vld1_s8(x0 + k));
    const uint64_t b = glow_neon_away(max1, vld1_s8(x1 + k));
    const uint64_t c = glow_neon_away(max2, vld1_s8(x2 + k));
    const uint64_t d = glow_neon_away(max3, vld1_s8(x3 + k));
    uint64_t i0, i1, i2, i3, i4, i5, i6, i7;
    float e0, e1, e2, e3, e4, e5, e6, e7;
    __asm__(GLOW_NEON_SUM4(0, 8) GLOW_NEON_SUM4(16, 24) GLOW_NEON_SUM4(32, 40) GLOW_NEON_SUM4(48, 56)
            : [s0] "+&w"(sum0), [s1] "+&w"(sum1), [s2] "+&w"(sum2), [s3] "+&w"(sum3), [e0] "=&w"(e0), [e1] "=&w"(e1), [e2] "=&w"(e2),
              [e3] "=&w"(e3), [e4] "=&w"(e4), [e5] "=&w"(e5), [e6] "=&w"(e6), [e7] "=&w"(e7), [i0] "=&r"(i0), [i1] "=&r"(i1),
              [i2] "=&r"(i2), [i3] "=&r"(i3), [i4] "=&r"(i4), [i5] "=&r"(i5), [i6] "=&r"(i6), [i7] "=&r"(i7)
            : [a] "r"(a), [b] "r"(b), [c] "r"(c), [d] "r"(d), [table] "r"(table)
            : "memory");
  }
  rows->sum[0] = sum0;
  rows->sum[1] = sum1;
  rows->sum[2] = sum2;
  rows->sum[3] = sum3;
  for (; k < n; k++) {
    for (int32_t r = 0; r < 4; r++) {
      rows->sum[r] += table[rows->max[r] - rows->x[r][k]];
    }
  }
}

typedef struct {
  const float *table;
  float32x4_t steps, sum, inverse; /* `steps` of the exponentials, where the sum is not divided by it */
  int16x8_t zp;
} glow_neon_shares_t;

/* v16-v19 = the entries of 16 codes; the next codes are loaded. */
#define GLOW_NEON_ENTRIES                                                                                                     \
  "ubfx x9, %[a], #0, #8\n\tubfx x10, %[a], #32, #8\n\t"                                                                      \
  "ubfx x11, %[b], #0, #8\n\tubfx x12, %[b], #32, #8\n\t"                                                                     \
  "ubfx x13, %[a], #8, #8\n\tubfx x14, %[a], #40, #8\n\t"                                                                     \
  "ubfx x15, %[b], #8, #8\n\tubfx x16, %[b], #40, #8\n\t"                                                                     \
  "add x13, %[table], x13, lsl #2\n\tadd x14, %[table], x14, lsl #2\n\t"                                                      \
  "add x15, %[table], x15, lsl #2\n\tadd x16, %[table], x16, lsl #2\n\t"                                                      \
  "ldr s16, [%[table], x9, lsl #2]\n\tldr s17, [%[table], x10, lsl #2]\n\t"                                                   \
  "ldr s18, [%[table], x11, lsl #2]\n\tldr s19, [%[table], x12, lsl #2]\n\t"                                                  \
  "ld1 {v16.s}[1], [x13]\n\tld1 {v17.s}[1], [x14]\n\t"                                                                        \
  "ld1 {v18.s}[1], [x15]\n\tld1 {v19.s}[1], [x16]\n\t"                                                                        \
  "ubfx x9, %[a], #16, #8\n\tubfx x10, %[a], #48, #8\n\t"                                                                     \
  "ubfx x11, %[b], #16, #8\n\tubfx x12, %[b], #48, #8\n\t"                                                                    \
  "ubfx x13, %[a], #24, #8\n\tubfx x14, %[a], #56, #8\n\t"                                                                    \
  "ubfx x15, %[b], #24, #8\n\tubfx x16, %[b], #56, #8\n\t"                                                                    \
  "add x9, %[table], x9, lsl #2\n\tadd x10, %[table], x10, lsl #2\n\t"                                                        \
  "add x11, %[table], x11, lsl #2\n\tadd x12, %[table], x12, lsl #2\n\t"                                                      \
  "add x13, %[table], x13, lsl #2\n\tadd x14, %[table], x14, lsl #2\n\t"                                                      \
  "add x15, %[table], x15, lsl #2\n\tadd x16, %[table], x16, lsl #2\n\t"                                                      \
  "ld1 {v16.s}[2], [x9]\n\tld1 {v17.s}[2], [x10]\n\t"                                                                         \
  "ld1 {v18.s}[2], [x11]\n\tld1 {v19.s}[2], [x12]\n\t"                                                                        \
  "ld1 {v16.s}[3], [x13]\n\tld1 {v17.s}[3], [x14]\n\t"                                                                        \
  "ld1 {v18.s}[3], [x15]\n\tld1 {v19.s}[3], [x16]\n\t"                                                                        \
  "ldr %q[codes], [%[next]]\n\tsub %[codes].16b, %[from].16b, %[codes].16b\n\t"
/* v24-v27 = those / sum: a product with the inverse and one step of Newton, or two; in the places between, what is in p becomes
 * codes. */
#define GLOW_NEON_SHARES_ONCE(c, d, e)                                                                                        \
  "fmul v24.4s, v16.4s, %[inverse].4s\n\tfmul v25.4s, v17.4s, %[inverse].4s\n\t"                                              \
  "fmul v26.4s, v18.4s, %[inverse].4s\n\tfmul v27.4s, v19.4s, %[inverse].4s\n\t" c                                            \
  "fmls v16.4s, v24.4s, %[sum].4s\n\tfmls v17.4s, v25.4s, %[sum].4s\n\t"                                                      \
  "fmls v18.4s, v26.4s, %[sum].4s\n\tfmls v19.4s, v27.4s, %[sum].4s\n\t" d                                                    \
  "fmla v24.4s, v16.4s, %[inverse].4s\n\tfmla v25.4s, v17.4s, %[inverse].4s\n\t"                                              \
  "fmla v26.4s, v18.4s, %[inverse].4s\n\tfmla v27.4s, v19.4s, %[inverse].4s\n\t" e
#define GLOW_NEON_SHARES_TWICE(c, d, e)                                                                                       \
  "fmul v24.4s, v16.4s, %[inverse].4s\n\tfmul v25.4s, v17.4s, %[inverse].4s\n\t"                                              \
  "fmul v26.4s, v18.4s, %[inverse].4s\n\tfmul v27.4s, v19.4s, %[inverse].4s\n\t"                                              \
  c "mov v20.16b, v16.16b\n\tmov v21.16b, v17.16b\n\tmov v22.16b, v18.16b\n\tmov v23.16b, v19.16b\n\t"                        \
  "fmls v16.4s, v24.4s, %[sum].4s\n\tfmls v17.4s, v25.4s, %[sum].4s\n\t"                                                      \
  "fmls v18.4s, v26.4s, %[sum].4s\n\tfmls v19.4s, v27.4s, %[sum].4s\n\t" d                                                    \
  "fmla v24.4s, v16.4s, %[inverse].4s\n\tfmla v25.4s, v17.4s, %[inverse].4s\n\t"                                              \
  "fmla v26.4s, v18.4s, %[inverse].4s\n\tfmla v27.4s, v19.4s, %[inverse].4s\n\t" e                                            \
  "fmls v20.4s, v24.4s, %[sum].4s\n\tfmls v21.4s, v25.4s, %[sum].4s\n\t"                                                      \
  "fmls v22.4s, v26.4s, %[sum].4s\n\tfmls v23.4s, v27.4s, %[sum].4s\n\t"                                                      \
  "fmla v24.4s, v20.4s, %[inverse].4s\n\tfmla v25.4s, v21.4s, %[inverse].4s\n\t"                                              \
  "fmla v26.4s, v22.4s, %[inverse].4s\n\tfmla v27.4s, v23.4s, %[inverse].4s\n\t"
#define GLOW_NEON_PART_WHOLE ""
#define GLOW_NEON_PART_SCALED                                                                                                 \
  "fmul v16.4s, v16.4s, %[steps].4s\n\tfmul v17.4s, v17.4s, %[steps].4s\n\t"                                                  \
  "fmul v18.4s, v18.4s, %[steps].4s\n\tfmul v19.4s, v19.4s, %[steps].4s\n\t"
#define GLOW_NEON_SHARES_ENDS                                                                                                 \
  "sqxtn %[p0].4h, %[p0].4s\n\tsqxtn %[p2].4h, %[p2].4s\n\t",                                                                 \
      "sqxtn2 %[p0].8h, %[p1].4s\n\tsqxtn2 %[p2].8h, %[p3].4s\n\tmov %[a], %[codes].d[0]\n\tmov %[b], %[codes].d[1]\n\t",     \
      "sqadd %[p0].8h, %[p0].8h, %[zp].8h\n\tsqadd %[p2].8h, %[p2].8h, %[zp].8h\n\t"
#define GLOW_NEON_SHARES_AND(shares, ...) shares(__VA_ARGS__)

/* The codes of a row; out may be x. The last 16 codes are read first, as some of them may be written before; the first 16 are written
 * twice. Fewer are done in a copy. */
#define GLOW_NEON_SOFTMAX(name, part, shares)                                                                                 \
  GLOW_HOT static void name(const int8_t *x, int8_t *out, int32_t n, int8_t max, glow_neon_shares_t s) {                      \
    const int8x16_t from = vdupq_n_s8(max);                                                                                   \
    int8_t few[16];                                                                                                           \
    int8_t last[16];                                                                                                          \
    const int32_t count = n;                                                                                                  \
    int8_t *const whole = out;                                                                                                \
    if (n < 16) {                                                                                                             \
      vst1q_s8(few, vdupq_n_s8(-128));                                                                                        \
      memcpy(few, x, (size_t)n);                                                                                              \
      x = few;                                                                                                                \
      out = few;                                                                                                              \
      n = 16;                                                                                                                 \
    }                                                                                                                         \
    int8x16_t codes = vsubq_s8(from, vld1q_s8(x));                                                                            \
    uint64_t a = vgetq_lane_u64(vreinterpretq_u64_s8(codes), 0);                                                              \
    uint64_t b = vgetq_lane_u64(vreinterpretq_u64_s8(codes), 1);                                                              \
    int32x4_t p0 = vdupq_n_s32(0);                                                                                            \
    int32x4_t p1 = p0;                                                                                                        \
    int32x4_t p2 = p0;                                                                                                        \
    int32x4_t p3 = p0;                                                                                                        \
    int8_t *to = out;                                                                                                         \
    memcpy(last, x + n - 16, 16);                                                                                             \
    for (int32_t k = 0; k < n; k += 16) {                                                                                     \
      const int8_t *next = k + 16 < n - 16 ? x + k + 16 : last;                                                               \
      k = k > n - 16 ? n - 16 : k;                                                                                            \
      __asm__ volatile(GLOW_NEON_ENTRIES part GLOW_NEON_SHARES_AND(shares, GLOW_NEON_SHARES_ENDS)                             \
                       "sqxtn %[p0].8b, %[p0].8h\n\tfcvtns %[p1].4s, v25.4s\n\tfcvtns %[p3].4s, v27.4s\n\t"                   \
                       "sqxtn2 %[p0].16b, %[p2].8h\n\tfcvtns %[p2].4s, v26.4s\n\tstr %q[p0], [%[to]]\n\t"                     \
                       "fcvtns %[p0].4s, v24.4s"                                                                              \
                       : [p0] "+&w"(p0), [p1] "+&w"(p1), [p2] "+&w"(p2), [p3] "+&w"(p3), [codes] "=&w"(codes), [a] "+&r"(a),  \
                         [b] "+&r"(b)                                                                                         \
                       : [table] "r"(s.table), [steps] "w"(s.steps), [sum] "w"(s.sum), [inverse] "w"(s.inverse),              \
                         [zp] "w"(s.zp), [from] "w"(from), [next] "r"(next), [to] "r"(to)                                     \
                       : "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "v16", "v17", "v18", "v19", "v20", "v21",     \
                         "v22", "v23", "v24", "v25", "v26", "v27", "memory");                                                 \
      to = out + k;                                                                                                           \
    }                                                                                                                         \
    const int16x8_t low = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(p0), p1), s.zp);                                              \
    const int16x8_t high = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(p2), p3), s.zp);                                             \
    vst1q_s8(to, vqmovn_high_s16(vqmovn_s16(low), high));                                                                     \
    if (count < 16) {                                                                                                         \
      memcpy(whole, few, (size_t)count);                                                                                      \
    }                                                                                                                         \
  }

#endif
#endif
