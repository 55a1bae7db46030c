/* SPDX-License-Identifier: MIT-0 */
/* Rows of codes whose zero point is known at run time, for the products of glow_dsp_quad.h. */
#ifndef GLOW_DSP_DYNAMIC_H
#define GLOW_DSP_DYNAMIC_H

#include "glow_dsp_quad.h"

/* Expands `inputs` codes of four rows less their zero point; `flip` is 0x80 for uint8 codes, whose zp is less by 128. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_expand_rows(uint32_t *to, const int8_t *const *from, int32_t inputs, uint32_t flip,
                                             int32_t zp) {
  const uint32_t neg_zp = glow_twice16(-zp);
  const uint32_t flips = flip * 0x01010101u;
  const int32_t tail = inputs % 4;
  for (int32_t i = 0; i < 4; i++) {
    const int8_t *row = from[i];
    uint32_t *word = to + i;
    for (const int8_t *end = row + (inputs - tail); row != end; row += 4, word += 8) {
      const uint32_t codes = glow_load4(row) ^ flips;
      word[0] = glow_sxtab16(neg_zp, codes);
      word[4] = glow_sxtab16_odd(neg_zp, codes);
    }
    if (tail != 0) {
      const uint32_t last = glow_load_tail(row, tail) ^ flips;
      int8_t rest[4];
      memcpy(rest, &last, sizeof rest);
      glow_dsp_quad_tail(word, rest, tail, neg_zp);
    }
  }
}

#endif
