/* SPDX-License-Identifier: MIT-0 */
/* Weights of a palette: words of four codes from their places in it, one in each byte. */
#ifndef GLOW_PALETTE_H
#define GLOW_PALETTE_H

#include "glow_numeric.h"

/* Four codes as bytes. */
GLOW_INLINE uint32_t glow_palette_bytes(uint32_t places, const int8_t *palette) {
  const uint32_t first = (uint8_t)palette[places & 255u];
  const uint32_t second = (uint8_t)palette[(places >> 8) & 255u];
  const uint32_t third = (uint8_t)palette[(places >> 16) & 255u];
  const uint32_t fourth = (uint8_t)palette[places >> 24];
  return first | second << 8 | third << 16 | fourth << 24;
}

/* Four codes as two halfwords: the first plus 256 times the second, likewise the others. */
GLOW_INLINE uint32_t glow_palette_joined(uint32_t places, const int8_t *palette) {
  const int32_t low = palette[places & 255u] + 256 * palette[(places >> 8) & 255u];
  const int32_t high = palette[(places >> 16) & 255u] + 256 * palette[places >> 24];
  return ((uint32_t)low & 0xffffu) | (uint32_t)high << 16;
}

#endif
