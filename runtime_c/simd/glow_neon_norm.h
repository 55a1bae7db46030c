/* SPDX-License-Identifier: MIT-0 */
/* Normalised rows of at least 16 int8 codes on A64. */
#ifndef GLOW_NEON_NORM_H
#define GLOW_NEON_NORM_H

#if defined(__aarch64__)
#include <math.h>

#include "glow_neon.h"
#include "glow_runtime.h"

typedef struct {
  int32x4_t sums, low, high; /* of codes, and of the squares of eight */
} glow_neon_moments_t;

static inline glow_neon_moments_t glow_neon_add_moments(glow_neon_moments_t m, int8x16_t codes) {
  m.low = vpadalq_s16(m.low, vmull_s8(vget_low_s8(codes), vget_low_s8(codes)));
  m.high = vpadalq_s16(m.high, vmull_high_s8(codes, codes));
  m.sums = vpadalq_s16(m.sums, vpaddlq_s8(codes));
  return m;
}

/* Sums of n codes and of their squares. */
static inline glow_neon_moments_t glow_neon_moments(const int8_t *x, int32_t n) {
  static const int8_t places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const uint8x16_t is_rest = vcgeq_s8(vld1q_s8(places), vdupq_n_s8((int8_t)(16 - n % 16)));
  glow_neon_moments_t m = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
  m = glow_neon_add_moments(m, vandq_s8(vld1q_s8(x + n - 16), vreinterpretq_s8_u8(is_rest)));
  for (int32_t k = 0; k + 16 <= n; k += 16) {
    m = glow_neon_add_moments(m, vld1q_s8(x + k));
  }
  return m;
}

typedef struct {
  int32x4_t first; /* less n times the zero point of the input, and the sum of the codes less it */
  int16x8_t n, zp;
  float32x4_t r;
} glow_neon_norm_t;

/* p = rne(((n * codes + first) * r) * gain + shift) of 16 codes, every operation rounded by itself; in the places between, what was p
 * becomes codes. */
#define GLOW_NEON_NORM(c, d, e, f, g, h)                                                                                      \
  do {                                                                                                                        \
    int32x4_t q0, q1, q2, q3, t0, t1, t2, t3;                                                                                 \
    __asm__ volatile("sxtl %[t0].8h, %[codes].8b\n\tsxtl2 %[t1].8h, %[codes].16b\n\t" c                                       \
                     "mov %[q0].16b, %[first].16b\n\tmov %[q1].16b, %[first].16b\n\t"                                         \
                     "mov %[q2].16b, %[first].16b\n\tmov %[q3].16b, %[first].16b\n\t"                                         \
                     "smlal %[q0].4s, %[t0].4h, %[n].4h\n\tsmlal2 %[q1].4s, %[t0].8h, %[n].8h\n\t"                            \
                     "smlal %[q2].4s, %[t1].4h, %[n].4h\n\tsmlal2 %[q3].4s, %[t1].8h, %[n].8h\n\t" d                          \
                     "scvtf %[q0].4s, %[q0].4s\n\tscvtf %[q1].4s, %[q1].4s\n\t"                                               \
                     "scvtf %[q2].4s, %[q2].4s\n\tscvtf %[q3].4s, %[q3].4s\n\t" e                                             \
                     "fmul %[q0].4s, %[q0].4s, %[r].4s\n\tldp %q[t0], %q[t1], [%[gain]]\n\t"                                  \
                     "fmul %[q1].4s, %[q1].4s, %[r].4s\n\tldp %q[t2], %q[t3], [%[gain], #32]\n\t"                             \
                     "fmul %[q2].4s, %[q2].4s, %[r].4s\n\tfmul %[q3].4s, %[q3].4s, %[r].4s\n\t" f                             \
                     "fmul %[q0].4s, %[q0].4s, %[t0].4s\n\tfmul %[q1].4s, %[q1].4s, %[t1].4s\n\t"                             \
                     "ldp %q[t0], %q[t1], [%[shift]]\n\tfmul %[q2].4s, %[q2].4s, %[t2].4s\n\t"                                \
                     "fmul %[q3].4s, %[q3].4s, %[t3].4s\n\tldp %q[t2], %q[t3], [%[shift], #32]\n\t" g                         \
                     "fadd %[q0].4s, %[q0].4s, %[t0].4s\n\tfadd %[q1].4s, %[q1].4s, %[t1].4s\n\t"                             \
                     "fadd %[q2].4s, %[q2].4s, %[t2].4s\n\tfadd %[q3].4s, %[q3].4s, %[t3].4s\n\t" h                           \
                     "fcvtns %[p0].4s, %[q0].4s\n\tfcvtns %[p1].4s, %[q1].4s\n\t"                                             \
                     "fcvtns %[p2].4s, %[q2].4s\n\tfcvtns %[p3].4s, %[q3].4s"                                                 \
                     : [p0] "+&w"(p0), [p1] "+&w"(p1), [p2] "+&w"(p2), [p3] "+&w"(p3), [q0] "=&w"(q0), [q1] "=&w"(q1),            \
                       [q2] "=&w"(q2), [q3] "=&w"(q3), [t0] "=&w"(t0), [t1] "=&w"(t1), [t2] "=&w"(t2), [t3] "=&w"(t3)         \
                     : [codes] "w"(codes), [first] "w"(s.first), [n] "w"(s.n), [r] "w"(s.r), [zp] "w"(s.zp),              \
                       [gain] "r"(gain + k), [shift] "r"(shift + k), [to] "r"(to)                                             \
                     : "memory");                                                                                             \
  } while (0)
#define GLOW_NEON_NORM_ENDS                                                                                                   \
  "sqxtn %[p0].4h, %[p0].4s\n\tsqxtn %[p2].4h, %[p2].4s\n\t", "sqxtn2 %[p0].8h, %[p1].4s\n\tsqxtn2 %[p2].8h, %[p3].4s\n\t",    \
      "sqadd %[p0].8h, %[p0].8h, %[zp].8h\n\tsqadd %[p2].8h, %[p2].8h, %[zp].8h\n\t", "sqxtn %[p0].8b, %[p0].8h\n\t",       \
      "sqxtn2 %[p0].16b, %[p2].8h\n\t", "str %q[p0], [%[to]]\n\t"
#define GLOW_NEON_NORM_AND(...) GLOW_NEON_NORM(__VA_ARGS__)

/* A row of n >= 16; out may be x. The last 16 codes are read first, as some of them may be written before; the first 16 are written
 * twice. */
static inline void glow_neon_normalise(const int8_t *x, const float *gain, const float *shift, int8_t *out, int32_t n,
                                       glow_neon_norm_t s) {
  const int8x16_t last = vld1q_s8(x + n - 16);
  int32x4_t p0 = s.first;
  int32x4_t p1 = s.first;
  int32x4_t p2 = s.first;
  int32x4_t p3 = s.first;
  int8_t *to = out;
  for (int32_t k = 0; k < n; k += 16) {
    const int is_last = k >= n - 16;
    k = is_last ? n - 16 : k;
    const int8x16_t codes = is_last ? last : vld1q_s8(x + k);
    GLOW_NEON_NORM_AND(GLOW_NEON_NORM_ENDS);
    to = out + k;
  }
  const int16x8_t low = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(p0), p1), s.zp);
  const int16x8_t high = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(p2), p3), s.zp);
  vst1q_s8(to, vqmovn_high_s16(vqmovn_s16(low), high));
}

typedef struct {
  int32_t n, in_zp, out_zp, centre; /* whether the mean is subtracted */
  float e;
} glow_neon_layer_norm_t;

/* Rows of n; out may be in. Fewer than 16 codes are done in a copy. */
GLOW_HOT __attribute__((unused)) static void glow_neon_layer_norm(const int8_t *in, const float *gain, const float *shift, int8_t *out,
                                                                  int32_t rows, glow_neon_layer_norm_t p) {
  const int32_t padded = p.n < 16 ? 16 : p.n;
  const int32_t squared = p.n * p.in_zp * p.in_zp;
  int8_t few[16] = {0};
  float gains[16] = {0.0f};
  float shifts[16] = {0.0f};
  if (p.n < 16) {
    memcpy(gains, gain, 4u * (size_t)p.n);
    memcpy(shifts, shift, 4u * (size_t)p.n);
    gain = gains;
    shift = shifts;
  }
  glow_neon_norm_t s;
  s.n = vdupq_n_s16((int16_t)p.n);
  s.zp = vdupq_n_s16((int16_t)p.out_zp);
  for (; rows > 0; rows--, in += p.n, out += p.n) {
    const int8_t *x = in;
    if (p.n < 16) {
      vst1q_s8(few, vdupq_n_s8(0));
      memcpy(few, in, (size_t)p.n);
      x = few;
    }
    const glow_neon_moments_t m = glow_neon_moments(x, padded);
    const int32_t sum = vaddvq_s32(m.sums);
    const int32_t s1 = p.centre != 0 ? sum - p.n * p.in_zp : 0;
    const int32_t s2 = vaddvq_s32(vaddq_s32(m.low, m.high)) - 2 * p.in_zp * sum + squared;
    const int64_t v = (int64_t)p.n * s2 - (int64_t)s1 * s1;
    const float root = sqrtf(glow_rounded((float)v) + p.e);
    s.r = vdupq_n_f32(root > 0.0f ? 1.0f / root : 0.0f);
    s.first = vdupq_n_s32(-(p.n * p.in_zp + s1));
    glow_neon_normalise(x, gain, shift, p.n < 16 ? few : out, padded, s);
    if (p.n < 16) {
      memcpy(out, few, (size_t)p.n);
    }
  }
}

#endif
#endif
