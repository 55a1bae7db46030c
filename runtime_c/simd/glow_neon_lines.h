/* SPDX-License-Identifier: MIT-0 */
/* Straight lines in integers on codes, on Advanced SIMD of A64 and A32: out = clamp((m * x + b) >> s), of a second line
 * from a code on. `s` is negative: a shift to the left.
 */
#ifndef GLOW_NEON_LINES_H
#define GLOW_NEON_LINES_H

#if defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  int32x4_t m;
  int32x4_t b;
  int32x4_t s;
} glow_neon_line_t;

typedef struct {
  int8x8_t least;
  int8x8_t most;
} glow_neon_limits_t;

static inline glow_neon_line_t glow_neon_line_of(const int32_t *l) {
  const glow_neon_line_t line = {vdupq_n_s32(l[0]), vdupq_n_s32(l[1]), vdupq_n_s32(l[2])};
  return line;
}

static inline glow_neon_line_t glow_neon_line_at(const int32_t *l) {
  const glow_neon_line_t line = {vld1q_s32(l), vld1q_s32(l + 4), vld1q_s32(l + 8)};
  return line;
}

static inline int16x4_t glow_neon_on_line(int32x4_t x, glow_neon_line_t l) {
  return vqmovn_s32(vshlq_s32(vmlaq_s32(l.b, x, l.m), l.s));
}

static inline glow_neon_line_t glow_neon_either(int32x4_t x, int32x4_t first, glow_neon_line_t a, glow_neon_line_t b) {
  const uint32x4_t second = vcgeq_s32(x, first);
  const glow_neon_line_t line = {vbslq_s32(second, b.m, a.m), vbslq_s32(second, b.b, a.b), vbslq_s32(second, b.s, a.s)};
  return line;
}

static inline int8x8_t glow_neon_limited(int16x4_t low, int16x4_t high, glow_neon_limits_t to) {
  return vmin_s8(vmax_s8(vqmovn_s16(vcombine_s16(low, high)), to.least), to.most);
}

/* Eight codes, of which `left` count where that is less. */
static inline int16x8_t glow_neon_lines_load(const int8_t *in, int32_t left) {
  if (left >= 8) {
    return vmovl_s8(vld1_s8(in));
  }
  int8_t codes[8] = {0};
  memcpy(codes, in, (size_t)left);
  return vmovl_s8(vld1_s8(codes));
}

static inline void glow_neon_lines_store(int8_t *out, int32_t left, int8x8_t y) {
  if (left >= 8) {
    vst1_s8(out, y);
    return;
  }
  int8_t codes[8];
  vst1_s8(codes, y);
  memcpy(out, codes, (size_t)left);
}

static inline int32x4_t glow_neon_low(int16x8_t x) { return vmovl_s16(vget_low_s16(x)); }
static inline int32x4_t glow_neon_high(int16x8_t x) { return vmovl_s16(vget_high_s16(x)); }

/* A line for each code: in fours {m[4], b[4], s[4]}. */
static inline int8x8_t glow_neon_lines1_s8x8(int16x8_t x, const int32_t *l, int32_t both, glow_neon_limits_t to) {
  const int16x4_t low = glow_neon_on_line(glow_neon_low(x), glow_neon_line_at(l));
  const int16x4_t high = both ? glow_neon_on_line(glow_neon_high(x), glow_neon_line_at(l + 12)) : low;
  return glow_neon_limited(low, high, to);
}

/* Two lines for each code: in fours {first[4], m[4], b[4], s[4], m'[4], b'[4], s'[4]}. */
static inline int16x4_t glow_neon_lines2_s16x4(int32x4_t x, const int32_t *l) {
  const glow_neon_line_t line =
      glow_neon_either(x, vld1q_s32(l), glow_neon_line_at(l + 4), glow_neon_line_at(l + 16));
  return glow_neon_on_line(x, line);
}

static inline int8x8_t glow_neon_lines2_s8x8(int16x8_t x, const int32_t *l, int32_t both, glow_neon_limits_t to) {
  const int16x4_t low = glow_neon_lines2_s16x4(glow_neon_low(x), l);
  const int16x4_t high = both ? glow_neon_lines2_s16x4(glow_neon_high(x), l + 28) : low;
  return glow_neon_limited(low, high, to);
}

#define GLOW_NEON_LINES(name, eight, words) \
  static inline void name(const int8_t *in, const int32_t *l, int8_t *out, int32_t n, glow_neon_limits_t to) { \
    for (; n >= 8; n -= 8, in += 8, out += 8, l += 8 * (words)) { \
      vst1_s8(out, eight(vmovl_s8(vld1_s8(in)), l, 1, to)); \
    } \
    if (n > 0) { \
      glow_neon_lines_store(out, n, eight(glow_neon_lines_load(in, n), l, n > 4, to)); \
    } \
  }
GLOW_NEON_LINES(glow_neon_lines1, glow_neon_lines1_s8x8, 3)
GLOW_NEON_LINES(glow_neon_lines2, glow_neon_lines2_s8x8, 7)

/* One line {m, b, s} for n codes. */
static inline void glow_neon_line1(const int8_t *in, const int32_t *l, int8_t *out, int32_t n, glow_neon_limits_t to) {
  const glow_neon_line_t line = glow_neon_line_of(l);
  for (; n > 0; n -= 8, in += 8, out += 8) {
    const int16x8_t x = glow_neon_lines_load(in, n);
    const int16x4_t low = glow_neon_on_line(glow_neon_low(x), line);
    glow_neon_lines_store(out, n, glow_neon_limited(low, glow_neon_on_line(glow_neon_high(x), line), to));
  }
}

/* Two lines {first, m, b, s, m', b', s'} for n codes. */
static inline void glow_neon_line2(const int8_t *in, const int32_t *l, int8_t *out, int32_t n, glow_neon_limits_t to) {
  const int16x8_t first = vdupq_n_s16((int16_t)l[0]);
  const glow_neon_line_t before = glow_neon_line_of(l + 1);
  const glow_neon_line_t behind = glow_neon_line_of(l + 4);
  for (; n > 0; n -= 8, in += 8, out += 8) {
    const int16x8_t x = glow_neon_lines_load(in, n);
    const int32x4_t low = glow_neon_low(x);
    const int32x4_t high = glow_neon_high(x);
    const int16x8_t y = vcombine_s16(glow_neon_on_line(low, before), glow_neon_on_line(high, before));
    const int16x8_t z = vcombine_s16(glow_neon_on_line(low, behind), glow_neon_on_line(high, behind));
    const int8x8_t code = vqmovn_s16(vbslq_s16(vcgeq_s16(x, first), z, y));
    glow_neon_lines_store(out, n, vmin_s8(vmax_s8(code, to.least), to.most));
  }
}
#endif
#endif
