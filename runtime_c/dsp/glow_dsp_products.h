/* SPDX-License-Identifier: MIT-0 */
/* Products of rows of int16 by SMLALD, two at a time. */
#ifndef GLOW_DSP_PRODUCTS_H
#define GLOW_DSP_PRODUCTS_H

#include "glow_dsp_sixteen.h"
#include "glow_products.h"

/* acc + both products of 16 bits */
GLOW_INLINE int64_t glow_smlald(uint32_t a, uint32_t b, int64_t acc) {
#if GLOW_DSP_SIMD
  __asm__("smlald %Q0, %R0, %1, %2" : "+r"(acc) : "r"(a), "r"(b));
  return acc;
#else
  return acc + glow_low16(a) * glow_low16(b) + (int64_t)(glow_low16(a >> 16) * glow_low16(b >> 16));
#endif
}

/* sums[i] = sum x[k] * rows[i * pitch + k], i < 2 */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_two_dots16(const int16_t *x, const int16_t *rows, int32_t pitch, int32_t n,
                                                     int64_t *sums) {
  const int16_t *other = rows + pitch;
  int64_t first = 0;
  int64_t second = 0;
  for (; n >= 4; n -= 4, x += 4, rows += 4, other += 4) {
    const uint32_t low = glow_load_pair(x);
    const uint32_t high = glow_load_pair(x + 2);
    first = glow_smlald(low, glow_load_pair(rows), first);
    second = glow_smlald(low, glow_load_pair(other), second);
    first = glow_smlald(high, glow_load_pair(rows + 2), first);
    second = glow_smlald(high, glow_load_pair(other + 2), second);
  }
  for (; n > 0; n--, x++, rows++, other++) {
    first += *x * *rows;
    second += *x * *other;
  }
  sums[0] = first;
  sums[1] = second;
}

#endif
