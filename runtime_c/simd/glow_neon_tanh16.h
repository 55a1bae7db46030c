/* SPDX-License-Identifier: MIT-0 */
/* tanh between codes of 16 bits (A64), sixteen at a time. */
#ifndef GLOW_NEON_TANH16_H
#define GLOW_NEON_TANH16_H

#include "glow_runtime.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "glow_tanh16.h"

typedef struct {
  const int32_t *middle; /* of the table */
  const int16_t *fixes;
  int32_t mul, shift, scale, start, near, count;
} glow_neon_tanh16_t;

/* The row of the table at a distance in bytes, the lower or upper half of a number. */
GLOW_INLINE int64x2_t glow_neon_tanh16_row(const int32_t *middle, int64_t at) {
  return vreinterpretq_s64_s32(vld1q_s32((const int32_t *)(const void *)((const uint8_t *)middle + (int32_t)at)));
}
GLOW_INLINE int32x4_t glow_neon_tanh16_term(int64x2_t column, int32x4_t half, int32x4_t y) {
  return vaddq_s32(vreinterpretq_s32_s64(column), vqrdmulhq_s32(half, y));
}

/* glow_tanh16_sum of codes times 2^16. Of what the polynomial is of there is a half: SQRDMULH doubles. */
GLOW_INLINE int32x4_t glow_neon_tanh16_sum(int32x4_t codes, const glow_neon_tanh16_t *t) {
  const int32x4_t x = vqshlq_s32(vqdmulhq_n_s32(codes, t->mul), vdupq_n_s32(t->shift));
  const int32x4_t half = vshrq_n_s32(vshlq_n_s32(x, 7), 1);
  const int64x2_t at = vreinterpretq_s64_s32(vshlq_n_s32(vrshrq_n_s32(x, 25), 4));
  const int64_t two = vgetq_lane_s64(at, 0), more = vgetq_lane_s64(at, 1);
  const int32x4_t a = vreinterpretq_s32_s64(glow_neon_tanh16_row(t->middle, two));
  const int32x4_t b = vreinterpretq_s32_s64(glow_neon_tanh16_row(t->middle, two >> 32));
  const int32x4_t c = vreinterpretq_s32_s64(glow_neon_tanh16_row(t->middle, more));
  const int32x4_t d = vreinterpretq_s32_s64(glow_neon_tanh16_row(t->middle, more >> 32));
  const int64x2_t even = vreinterpretq_s64_s32(vtrn1q_s32(a, b)), of_even = vreinterpretq_s64_s32(vtrn1q_s32(c, d));
  const int64x2_t odd = vreinterpretq_s64_s32(vtrn2q_s32(a, b)), of_odd = vreinterpretq_s64_s32(vtrn2q_s32(c, d));
  int32x4_t y = vreinterpretq_s32_s64(vzip2q_s64(odd, of_odd));
  y = glow_neon_tanh16_term(vzip2q_s64(even, of_even), half, y);
  y = glow_neon_tanh16_term(vzip1q_s64(odd, of_odd), half, y);
  y = glow_neon_tanh16_term(vzip1q_s64(even, of_even), half, y);
  return vqaddq_s32(vqdmulhq_n_s32(y, t->scale), vdupq_n_s32(t->start));
}

/* The codes of 16 numbers; those near the next code are looked for one by one. */
GLOW_INLINE void glow_neon_tanh16_block(const int16_t *in, int16_t *out, const glow_neon_tanh16_t *t) {
  const int16x8_t zero = vdupq_n_s16(0), codes = vld1q_s16(in), more = vld1q_s16(in + 8);
  const int16x8_t a = vreinterpretq_s16_s32(glow_neon_tanh16_sum(vreinterpretq_s32_s16(vzip1q_s16(zero, codes)), t));
  const int16x8_t b = vreinterpretq_s16_s32(glow_neon_tanh16_sum(vreinterpretq_s32_s16(vzip2q_s16(zero, codes)), t));
  const int16x8_t c = vreinterpretq_s16_s32(glow_neon_tanh16_sum(vreinterpretq_s32_s16(vzip1q_s16(zero, more)), t));
  const int16x8_t d = vreinterpretq_s16_s32(glow_neon_tanh16_sum(vreinterpretq_s32_s16(vzip2q_s16(zero, more)), t));
  const uint16x8_t limit = vdupq_n_u16((uint16_t)(2 * t->near));
  const uint16x8_t near = vcltq_u16(vreinterpretq_u16_s16(vuzp1q_s16(a, b)), limit);
  const uint16x8_t also = vcltq_u16(vreinterpretq_u16_s16(vuzp1q_s16(c, d)), limit);
  const uint8x8_t bits = vshrn_n_u16(vreinterpretq_u16_u8(vuzp1q_u8(vreinterpretq_u8_u16(near), vreinterpretq_u8_u16(also))), 4);
  uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(bits), 0); /* four bits each */
  vst1q_s16(out, vuzp2q_s16(a, b));
  vst1q_s16(out + 8, vuzp2q_s16(c, d));
  if (mask != 0u) {
    int16_t code[16], sum[32];
    vst1q_s16(code, codes);
    vst1q_s16(code + 8, more);
    vst1q_s16(sum, a);
    vst1q_s16(sum + 8, b);
    vst1q_s16(sum + 16, c);
    vst1q_s16(sum + 24, d);
    do {
      const int32_t k = __builtin_ctzll(mask) / 4;
      out[k] = (int16_t)glow_tanh16_fixed(sum[2 * k + 1] * 65536 + (uint16_t)sum[2 * k], code[k], t->near, t->fixes, t->count);
      mask &= ~((uint64_t)15 << (4 * k));
    } while (mask != 0u);
  }
}

GLOW_INLINE void glow_neon_tanh16(const int16_t *in, int16_t *out, int32_t n, const glow_neon_tanh16_t *t) {
  int16_t rest[16] = {0};
  for (; n >= 16; n -= 16, in += 16, out += 16) {
    glow_neon_tanh16_block(in, out, t);
  }
  if (n > 0) {
    memcpy(rest, in, (size_t)n * sizeof *rest);
    glow_neon_tanh16_block(rest, rest, t);
    memcpy(out, rest, (size_t)n * sizeof *rest);
  }
}

#endif
#endif
