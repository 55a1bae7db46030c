/* SPDX-License-Identifier: MIT-0 */
/* Inputs of 16 bits for four pixels' products, and endings of their sums by multiplication and shift in 32 bits. */
#ifndef GLOW_DSP_SHIFT_H
#define GLOW_DSP_SHIFT_H

#include "glow_dsp_quad.h"
#include "glow_dsp_round.h"

#define GLOW_SHORT_BITS 22

/* The sum limited to so many bits: beyond them the compiler proved that the code is the same. */
GLOW_INLINE int32_t glow_short_sum(int32_t sum) {
#if GLOW_DSP_SIMD
  __asm__("ssat %0, #" GLOW_TEXT(GLOW_SHORT_BITS) ", %0" : "+r"(sum));
  return sum;
#else
  return glow_clamp(sum, -(1 << (GLOW_SHORT_BITS - 1)), (1 << (GLOW_SHORT_BITS - 1)) - 1);
#endif
}

/* (sum * mul + offset) >> shift as eight bits; the right shift of a negative number is arithmetic. */
GLOW_INLINE int32_t glow_short_code(int32_t sum, int32_t mul, int32_t offset, int32_t shift) {
  return glow_saturate8((glow_short_sum(sum) * mul + offset) >> shift);
}

/* Collects `count` inputs of one pixel, an even number, two a step; only those in [begin, end) exist, the others are
 * `fill`. */
GLOW_INLINE uint32_t *glow_collect16(uint32_t *to, const int16_t *from, int32_t begin, int32_t end, int32_t count,
                                     uint32_t fill) {
  if (begin == 0 && end == count) {
    for (int32_t j = 0; j < count; j += 2, to += 4) {
      memcpy(to, from + j, sizeof *to);
    }
    return to;
  }
  for (int32_t j = 0; j < count; j += 2, to += 4) {
    const uint32_t low = j >= begin && j < end ? (uint16_t)from[j] : fill;
    const uint32_t high = j + 1 >= begin && j + 1 < end ? (uint16_t)from[j + 1] : fill;
    *to = low | (high << 16);
  }
  return to;
}

/* Where the next step of a pixel goes; `low` is its first input, where that was collected already (`half`). */
typedef struct {
  uint32_t *to;
  uint32_t low;
  int32_t half;
} glow_collected_t;

GLOW_INLINE void glow_collect_half(glow_collected_t *h, uint32_t input) {
  if (h->half) {
    *h->to = h->low | (input << 16);
    h->to += 4;
  }
  h->low = input;
  h->half = !h->half;
}

/* The same for any number of inputs, which follow those before them. */
GLOW_INLINE void glow_collect_odd(glow_collected_t *h, const int16_t *from, int32_t begin, int32_t end, int32_t count,
                                  uint32_t fill) {
  if (begin != 0 || end != count) {
    for (int32_t j = 0; j < count; j++) {
      glow_collect_half(h, j >= begin && j < end ? (uint16_t)from[j] : fill);
    }
    return;
  }
  int32_t j = h->half;
  if (j != 0) {
    glow_collect_half(h, (uint16_t)from[0]);
  }
  for (; j + 1 < count; j += 2, h->to += 4) {
    memcpy(h->to, from + j, sizeof *h->to);
  }
  if (j < count) {
    glow_collect_half(h, (uint16_t)from[j]);
  }
}

#endif
