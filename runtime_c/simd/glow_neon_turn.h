/* SPDX-License-Identifier: MIT-0 */
/* Matrices of bytes turned on Advanced SIMD of A64. */
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
static inline void glow_neon_turn8(const uint8_t *in, int32_t in_pitch, uint8_t *out, int32_t out_pitch) {
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

/* out[r * out_pitch + c] = in[c * in_pitch + r]; the last blocks of eight overlap those before. */
GLOW_HOT __attribute__((unused)) static void glow_neon_turn(const void *from, int32_t in_pitch, void *to, int32_t out_pitch,
                                                            int32_t rows, int32_t columns) {
  const uint8_t *in = from;
  uint8_t *out = to;
  for (int32_t i = 0; i < columns; i += 8) {
    const int32_t c = i + 8 <= columns || columns < 8 ? i : columns - 8;
    for (int32_t j = 0; j < rows; j += 8) {
      const int32_t r = j + 8 <= rows || rows < 8 ? j : rows - 8;
      if (c + 8 <= columns && r + 8 <= rows) {
        glow_neon_turn8(in + c * in_pitch + r, in_pitch, out + r * out_pitch + c, out_pitch);
        continue;
      }
      for (int32_t y = r; y < r + 8 && y < rows; y++) {
        for (int32_t x = c; x < c + 8 && x < columns; x++) {
          out[y * out_pitch + x] = in[x * in_pitch + y];
        }
      }
    }
  }
}

#endif
#endif
