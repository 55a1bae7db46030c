/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers whose weights have 4 bits, or are codes of a palette (SMLAD): a word has eight weights of an
 * output, stored plus 8, which an AND with a shift makes four pairs of halfwords; 8 times the sum of the inputs is taken
 * from the sums. Of a palette a word has places, and the pairs are looked up.
 *
 * Inputs are expanded to int16, in units of eight as pairs (0, 4), (1, 5), (2, 6), (3, 7). The constants are blocks of four
 * outputs: 4 words, one of each, for every unit; then 4 biases (zero point of the input inside) and 4 scales.
 */
#ifndef GLOW_DSP_NARROW_H
#define GLOW_DSP_NARROW_H

#include "glow_dsp_round.h"

/* Expand n inputs to whole units, filled up with zeros; return their sum. */
GLOW_INLINE int32_t glow_dsp_narrow_inputs(const int8_t *x, int32_t n, uint32_t *to) {
  int32_t sum = 0;
  for (; n > 0; n -= 8, x += 8, to += 4) {
    const uint32_t first = n >= 4 ? glow_load4(x) : glow_load_tail(x, n);
    const uint32_t second = n >= 8 ? glow_load4(x + 4) : n > 4 ? glow_load_tail(x + 4, n - 4) : 0u;
    const uint32_t even[2] = {glow_sxtab16(0u, first), glow_sxtab16(0u, second)};
    const uint32_t odd[2] = {glow_sxtab16_odd(0u, first), glow_sxtab16_odd(0u, second)};
    to[0] = glow_pack_low(even[0], even[1]);
    to[1] = glow_pack_low(odd[0], odd[1]);
    to[2] = glow_pack_high(even[0], even[1]);
    to[3] = glow_pack_high(odd[0], odd[1]);
    for (int32_t i = 0; i < 4; i++) {
      sum = glow_dsp_smlad(to[i], 0x00010001u, sum);
    }
  }
  return sum;
}

/* All pairs of `count` codes of a palette as halfwords, the first one below. */
GLOW_INLINE void glow_dsp_narrow_pairs(const int8_t *palette, int32_t count, uint32_t *pairs) {
  for (int32_t high = 0; high < count; high++) {
    const uint32_t upper = (uint32_t)palette[high] << 16;
    for (int32_t low = 0; low < count; low++) {
      *pairs++ = upper | ((uint32_t)palette[low] & 0xffffu);
    }
  }
}

#if !GLOW_DSP_ASM
/* The products of `units` of inputs with those of four outputs, in sums, as functions that are printed have them
 * (glowc/kernels/dsp/narrow_tile.py). Of weights of a palette a word has eight places of 4 bits of one output, or those of
 * 2 bits of two outputs, in the order of the pairs of the inputs. */
GLOW_INLINE void glow_dsp_narrow_twin(const uint32_t *x, const uint32_t *w, int32_t units, int32_t *sums, const uint32_t *pairs,
                                      int32_t bits) {
  const int32_t each = 16 / bits; /* pairs of a word */
  for (int32_t o = 0; o < 4; o++) {
    sums[o] = 0;
    for (int32_t i = 0; i < 4 * units; i++) {
      const int32_t at = 4 * o + i % 4;
      const uint32_t word = w[i / 4 * bits + at / each];
      const uint32_t place = (word >> (at % each * 2 * bits)) & ((1u << (2 * bits)) - 1u);
      sums[o] = glow_dsp_smlad(pairs != NULL ? pairs[place] : (word >> (i % 4 * 4)) & 0x000f000fu, x[i], sums[o]);
    }
  }
}
#endif

#endif
