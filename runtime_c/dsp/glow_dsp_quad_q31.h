/* SPDX-License-Identifier: MIT-0 */
/* Products of four pixels (glow_dsp_quad.h) that end by multiplier and shift (glow_dsp_q31.h).
 *
 * The stream has, per pair of channels: a word with the places of both in its lowest bytes, two multipliers, two biases,
 * the words of the steps. `out_zp` of q is 1 + 2 * zero point. Ends: r8, v8 where the sign does not count, n8, s8 where it does; v8, s8 with limits. */
#ifndef GLOW_DSP_QUAD_Q31_H
#define GLOW_DSP_QUAD_Q31_H

#include "glow_dsp_q31.h"
#include "glow_dsp_quads.h"

#define GLOW_DSP_Q31_HEAD 5 /* words of a pair before those of its steps */

#if !GLOW_DSP_ASM
GLOW_INLINE void glow_dsp_quad_q31_twin(const glow_dsp_quad_t *q, glow_dsp_quad_form_t form) {
  const uint32_t *w = q->stream;
  const int32_t steps = (int32_t)((q->acts_end - q->acts) / 4);
  const int32_t zp = (q->out_zp - 1) / 2;
  for (int32_t b = 0; b < q->blocks; b++, w += GLOW_DSP_Q31_HEAD + steps * glow_dsp_quad_words(form)) {
    for (int32_t i = 0; i < 8; i++) {
      const int32_t sum = glow_dsp_quad_sum(q, w + 1, form, i / 2, i % 2);
      const uint32_t places = (w[0] >> (8 * (i % 2))) & 0xFFu;
      q->out[i / 2][2 * b + i % 2] =
          (int8_t)glow_dsp_q31_code(sum, w[1 + i % 2], places, zp, glow_first8(q->low), glow_first8(q->high));
    }
  }
}
#endif

#endif
