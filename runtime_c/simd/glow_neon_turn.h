/* SPDX-License-Identifier: MIT-0 */
/* Matrices of 1, 2 and 4 bytes an element turned on Advanced SIMD of A64, by blocks; two to four planes are interleaved to pixels, and
 * pixels to planes. */
#ifndef GLOW_NEON_TURN_H
#define GLOW_NEON_TURN_H

#if defined(__aarch64__)
#include <arm_neon.h>
#include <stdint.h>

#include "glow_runtime.h"

static inline uint8x16_t glow_neon_two_rows(const uint8_t *in, int32_t pitch) {
  return vcombine_u8(vld1_u8(in), vld1_u8(in + pitch));
}

static inline void glow_neon_put_rows(uint8_t *out, int32_t pitch, uint8x16_t rows) {
  vst1_u8(out, vget_low_u8(rows));
  vst1_u8(out + pitch, vget_high_u8(rows));
}

/* out[r][c] = in[c][r] of 8 x 8 bytes: three times each row takes turns with that four rows below. */
static inline void glow_neon_block_u8(const uint8_t *in, int32_t in_pitch, uint8_t *out, int32_t out_pitch) {
  const uint8x16_t a0 = glow_neon_two_rows(in, in_pitch);
  const uint8x16_t a1 = glow_neon_two_rows(in + 2 * in_pitch, in_pitch);
  const uint8x16_t a2 = glow_neon_two_rows(in + 4 * in_pitch, in_pitch);
  const uint8x16_t a3 = glow_neon_two_rows(in + 6 * in_pitch, in_pitch);
  const uint8x16_t b0 = vzip1q_u8(a0, a2);
  const uint8x16_t b1 = vzip2q_u8(a0, a2);
  const uint8x16_t b2 = vzip1q_u8(a1, a3);
  const uint8x16_t b3 = vzip2q_u8(a1, a3);
  const uint8x16_t c0 = vzip1q_u8(b0, b2);
  const uint8x16_t c1 = vzip2q_u8(b0, b2);
  const uint8x16_t c2 = vzip1q_u8(b1, b3);
  const uint8x16_t c3 = vzip2q_u8(b1, b3);
  glow_neon_put_rows(out, out_pitch, vzip1q_u8(c0, c2));
  glow_neon_put_rows(out + 2 * out_pitch, out_pitch, vzip2q_u8(c0, c2));
  glow_neon_put_rows(out + 4 * out_pitch, out_pitch, vzip1q_u8(c1, c3));
  glow_neon_put_rows(out + 6 * out_pitch, out_pitch, vzip2q_u8(c1, c3));
}

/* The same of 8 x 8 halfwords. */
#define GLOW_NEON_TURNS(b, a)                        \
  const uint16x8_t b##0 = vzip1q_u16(a##0, a##4);    \
  const uint16x8_t b##1 = vzip2q_u16(a##0, a##4);    \
  const uint16x8_t b##2 = vzip1q_u16(a##1, a##5);    \
  const uint16x8_t b##3 = vzip2q_u16(a##1, a##5);    \
  const uint16x8_t b##4 = vzip1q_u16(a##2, a##6);    \
  const uint16x8_t b##5 = vzip2q_u16(a##2, a##6);    \
  const uint16x8_t b##6 = vzip1q_u16(a##3, a##7);    \
  const uint16x8_t b##7 = vzip2q_u16(a##3, a##7);
static inline void glow_neon_block_u16(const uint16_t *in, int32_t in_pitch, uint16_t *out, int32_t out_pitch) {
  const uint16x8_t a0 = vld1q_u16(in);
  const uint16x8_t a1 = vld1q_u16(in + in_pitch);
  const uint16x8_t a2 = vld1q_u16(in + 2 * in_pitch);
  const uint16x8_t a3 = vld1q_u16(in + 3 * in_pitch);
  const uint16x8_t a4 = vld1q_u16(in + 4 * in_pitch);
  const uint16x8_t a5 = vld1q_u16(in + 5 * in_pitch);
  const uint16x8_t a6 = vld1q_u16(in + 6 * in_pitch);
  const uint16x8_t a7 = vld1q_u16(in + 7 * in_pitch);
  GLOW_NEON_TURNS(b, a)
  GLOW_NEON_TURNS(c, b)
  GLOW_NEON_TURNS(d, c)
  vst1q_u16(out, d0);
  vst1q_u16(out + out_pitch, d1);
  vst1q_u16(out + 2 * out_pitch, d2);
  vst1q_u16(out + 3 * out_pitch, d3);
  vst1q_u16(out + 4 * out_pitch, d4);
  vst1q_u16(out + 5 * out_pitch, d5);
  vst1q_u16(out + 6 * out_pitch, d6);
  vst1q_u16(out + 7 * out_pitch, d7);
}

/* The same of 8 x 8 words: pairs of columns are put into four rows each. */
static inline void glow_neon_quarter_u32(const uint32_t *in, int32_t in_pitch, uint32_t *out, int32_t out_pitch) {
  const uint32x4_t a0 = vld1q_u32(in);
  const uint32x4_t a1 = vld1q_u32(in + in_pitch);
  const uint32x4_t a2 = vld1q_u32(in + 2 * in_pitch);
  const uint32x4_t a3 = vld1q_u32(in + 3 * in_pitch);
  const uint32x4_t b0 = vzip1q_u32(a0, a2);
  const uint32x4_t b1 = vzip2q_u32(a0, a2);
  const uint32x4_t b2 = vzip1q_u32(a1, a3);
  const uint32x4_t b3 = vzip2q_u32(a1, a3);
  vst1q_u32(out, vzip1q_u32(b0, b2));
  vst1q_u32(out + out_pitch, vzip2q_u32(b0, b2));
  vst1q_u32(out + 2 * out_pitch, vzip1q_u32(b1, b3));
  vst1q_u32(out + 3 * out_pitch, vzip2q_u32(b1, b3));
}

static inline void glow_neon_block_u32(const uint32_t *in, int32_t in_pitch, uint32_t *out, int32_t out_pitch) {
  glow_neon_quarter_u32(in, in_pitch, out, out_pitch);
  glow_neon_quarter_u32(in + 4, in_pitch, out + 4 * out_pitch, out_pitch);
  glow_neon_quarter_u32(in + 4 * in_pitch, in_pitch, out + 4, out_pitch);
  glow_neon_quarter_u32(in + 4 * in_pitch + 4, in_pitch, out + 4 * out_pitch + 4, out_pitch);
}

/* out[r * out_pitch + c] = in[c * in_pitch + r], by blocks of eight rows and columns; the last of them overlap those before. Part of a
 * layer may have fewer. */
#define GLOW_NEON_TURN(kind, type)                                                                                     \
  static inline void glow_neon_each_##kind(const type *in, int32_t in_pitch, type *out, int32_t out_pitch,             \
                                           int32_t rows, int32_t columns) {                                            \
    for (int32_t r = 0; r < rows; r++) {                                                                               \
      for (int32_t c = 0; c < columns; c++) {                                                                          \
        out[r * out_pitch + c] = in[c * in_pitch + r];                                                                 \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  GLOW_HOT __attribute__((unused)) static void glow_neon_turn_##kind(const void *from, int32_t in_pitch, void *to,     \
                                                                     int32_t out_pitch, int32_t rows,                  \
                                                                     int32_t columns) {                                \
    const type *in = (const type *)from;                                                                               \
    type *out = (type *)to;                                                                                            \
    if (rows < 8) {                                                                                                    \
      glow_neon_each_##kind(in, in_pitch, out, out_pitch, rows, columns);                                              \
      return;                                                                                                          \
    }                                                                                                                  \
    for (int32_t i = 0; i < columns; i += 8) {                                                                         \
      const int32_t c = i + 8 <= columns ? i : columns - 8;                                                            \
      for (int32_t j = 0; j < rows; j += 8) {                                                                          \
        const int32_t r = j + 8 <= rows ? j : rows - 8;                                                                \
        glow_neon_block_##kind(in + c * in_pitch + r, in_pitch, out + r * out_pitch + c, out_pitch);                   \
      }                                                                                                                \
    }                                                                                                                  \
  }
GLOW_NEON_TURN(u8, uint8_t)
GLOW_NEON_TURN(u16, uint16_t)
GLOW_NEON_TURN(u32, uint32_t)

/* The same of n columns without gaps between them in `to`, and of n rows without gaps in `from`, by vectors. */
#define GLOW_NEON_GET2(kind, at) v.val[0] = vld1q_##kind(at), v.val[1] = vld1q_##kind(at + in_pitch)
#define GLOW_NEON_GET3(kind, at) GLOW_NEON_GET2(kind, at), v.val[2] = vld1q_##kind(at + 2 * in_pitch)
#define GLOW_NEON_GET4(kind, at) GLOW_NEON_GET3(kind, at), v.val[3] = vld1q_##kind(at + 3 * in_pitch)
#define GLOW_NEON_PUT2(kind, at) vst1q_##kind(at, v.val[0]), vst1q_##kind(at + out_pitch, v.val[1])
#define GLOW_NEON_PUT3(kind, at) GLOW_NEON_PUT2(kind, at), vst1q_##kind(at + 2 * out_pitch, v.val[2])
#define GLOW_NEON_PUT4(kind, at) GLOW_NEON_PUT3(kind, at), vst1q_##kind(at + 3 * out_pitch, v.val[3])
#define GLOW_NEON_WEAVE(what, n, kind, type, vector, lanes, is_whole, pixels, GET, PUT)                                \
  static inline void glow_neon_##what##n##_##kind(const void *from, int32_t in_pitch, void *to, int32_t out_pitch,     \
                                                  int32_t rows, int32_t columns) {                                     \
    const type *in = (const type *)from;                                                                               \
    type *out = (type *)to;                                                                                            \
    if (!(is_whole) || pixels < lanes) {                                                                               \
      glow_neon_each_##kind(in, in_pitch, out, out_pitch, rows, columns);                                              \
      return;                                                                                                          \
    }                                                                                                                  \
    for (int32_t i = 0; i < pixels; i += lanes) {                                                                      \
      const int32_t at = i + lanes <= pixels ? i : pixels - lanes;                                                     \
      vector##x##n##_t v;                                                                                              \
      GET;                                                                                                             \
      PUT;                                                                                                             \
    }                                                                                                                  \
  }
#define GLOW_NEON_WEAVES(n, kind, type, vector, lanes)                                                                 \
  GLOW_NEON_WEAVE(interleave, n, kind, type, vector, lanes, 1, rows, GLOW_NEON_GET##n(kind, in + at),                  \
                  vst##n##q_##kind(out + n * at, v))                                                                   \
  GLOW_NEON_WEAVE(deinterleave, n, kind, type, vector, lanes, rows == n, columns, v = vld##n##q_##kind(in + n * at),   \
                  GLOW_NEON_PUT##n(kind, out + at))
#define GLOW_NEON_WEAVES_OF(n)                    \
  GLOW_NEON_WEAVES(n, u8, uint8_t, uint8x16, 16)  \
  GLOW_NEON_WEAVES(n, u16, uint16_t, uint16x8, 8) \
  GLOW_NEON_WEAVES(n, u32, uint32_t, uint32x4, 4)
GLOW_NEON_WEAVES_OF(2)
GLOW_NEON_WEAVES_OF(3)
GLOW_NEON_WEAVES_OF(4)

#endif
#endif
