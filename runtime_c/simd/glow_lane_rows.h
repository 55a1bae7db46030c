/* SPDX-License-Identifier: MIT-0 */
/* Padded rows of an image of few channels, for A64 and A32: widened to 16 bits, or four bytes a pixel. */
#ifndef GLOW_LANE_ROWS_H
#define GLOW_LANE_ROWS_H

#if defined(__ARM_NEON)

#include <arm_neon.h>
#include <stdint.h>

static inline void glow_lane_set(int16_t *to, int32_t count, int32_t value) {
  for (int32_t i = 0; i < count; i++) {
    to[i] = (int16_t)value;
  }
}

/* count codes -> 16 bits */
static inline void glow_lane_widen(int16_t *to, const int8_t *from, int32_t count) {
  const int32_t whole = count / 16 * 16;
  for (int32_t i = 0; i < whole; i += 16) {
    const int8x16_t codes = vld1q_s8(from + i);
    vst1q_s16(to + i, vmovl_s8(vget_low_s8(codes)));
    vst1q_s16(to + i + 8, vmovl_s8(vget_high_s8(codes)));
  }
  for (int32_t i = whole; i < count; i++) {
    to[i] = from[i];
  }
}

/* `width` pixels of `channels` codes (a channel apart by `plane`, a pixel by `column`) -> 16 bits, pixel by pixel */
static inline void glow_lane_row(int16_t *to, const int8_t *from, int32_t width, int32_t channels, int32_t plane,
                                 int32_t column) {
  if (plane == 1 && column == channels) {
    glow_lane_widen(to, from, width * channels);
    return;
  }
  const int32_t whole = channels == 3 && column == 1 ? width / 8 * 8 : 0;
  for (int32_t x = 0; x < whole; x += 8) {
    int16x8x3_t pixels;
    pixels.val[0] = vmovl_s8(vld1_s8(from + x));
    pixels.val[1] = vmovl_s8(vld1_s8(from + plane + x));
    pixels.val[2] = vmovl_s8(vld1_s8(from + 2 * plane + x));
    vst3q_s16(to + 3 * x, pixels);
  }
  for (int32_t x = whole; x < width; x++) {
    for (int32_t c = 0; c < channels; c++) {
      to[x * channels + c] = from[x * column + c * plane];
    }
  }
}

/* the same -> four bytes a pixel; those after the channels are not written */
static inline void glow_lane_row4(int8_t *to, const int8_t *from, int32_t width, int32_t channels, int32_t plane,
                                  int32_t column) {
  const int32_t whole = channels >= 3 && column == 1 ? width / 16 * 16 : 0;
  for (int32_t x = 0; x < whole; x += 16) {
    int8x16x4_t pixels;
    pixels.val[0] = vld1q_s8(from + x);
    pixels.val[1] = vld1q_s8(from + plane + x);
    pixels.val[2] = vld1q_s8(from + 2 * plane + x);
    pixels.val[3] = vld1q_s8(from + (channels - 1) * plane + x);
    vst4q_s8(to + 4 * x, pixels);
  }
  for (int32_t x = whole; x < width; x++) {
    for (int32_t c = 0; c < channels; c++) {
      to[4 * x + c] = from[x * column + c * plane];
    }
  }
}

#endif
#endif
