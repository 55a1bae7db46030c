/* SPDX-License-Identifier: MIT-0 */
/* Codes of few bits, stored plus half of the codes in a byte each, less that half: two halfwords, or four bytes, by one
 * instruction. Codes of a palette by twos, from a table of all pairs. */
#ifndef GLOW_DSP_UNPACK_H
#define GLOW_DSP_UNPACK_H

#include "glow_dsp.h"

/* Each halfword of codes below 16, 256 * a + b, less the halves of both. */
GLOW_INLINE uint32_t glow_dsp_less_joined(uint32_t codes, uint32_t halves) {
#if GLOW_DSP_SIMD
  __asm__("ssub16 %0, %0, %1" : "+r"(codes) : "r"(halves));
  return codes;
#else
  return ((codes | 0x80008000u) - halves) ^ 0x80008000u;
#endif
}

/* Each byte of codes below 16 less its half. */
GLOW_INLINE uint32_t glow_dsp_less_bytes(uint32_t codes, uint32_t halves) {
#if GLOW_DSP_SIMD
  __asm__("ssub8 %0, %0, %1" : "+r"(codes) : "r"(halves));
  return codes;
#else
  return ((codes | 0x80808080u) - halves) ^ 0x80808080u;
#endif
}

/* All pairs of `count` codes: the first one's place counts most rarely, the last one is the low byte. */
GLOW_INLINE void glow_dsp_pairs_bytes(const int8_t *palette, int32_t count, uint16_t *pairs) {
  for (int32_t high = 0; high < count; high++) {
    const uint32_t upper = (uint32_t)(uint8_t)palette[high] << 8;
    for (int32_t low = 0; low < count; low++) {
      *pairs++ = (uint16_t)(upper | (uint8_t)palette[low]);
    }
  }
}

/* The same as 256 times the one plus the other. */
GLOW_INLINE void glow_dsp_pairs_joined(const int8_t *palette, int32_t count, uint16_t *pairs) {
  for (int32_t high = 0; high < count; high++) {
    const int32_t upper = 256 * palette[high];
    for (int32_t low = 0; low < count; low++) {
      *pairs++ = (uint16_t)(upper + palette[low]);
    }
  }
}

/* Two pairs in a word. */
GLOW_INLINE uint32_t glow_dsp_two_pairs(uint32_t low, uint32_t high) { return low | high << 16; }

#endif
