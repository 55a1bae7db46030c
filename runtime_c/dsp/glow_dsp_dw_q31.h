/* SPDX-License-Identifier: MIT-0 */
/* Depthwise tiles (glow_dsp_dw.h) that end by multiplier and shift (glow_dsp_q31.h).
 *
 * The stream has, per four channels: biases 0, 2, 1, 3; weights; the multipliers of 0 and 2; a word of the places of 0, 2,
 * 1 and 3; the multipliers of 1 and 3. `out_zp` of a call is 1 + 2 * (zero point + 128) in both halfwords: SHADD16 adds it
 * and shifts the last place out, which gives a code less -128, of which USAT16 keeps eight bits. */
#ifndef GLOW_DSP_DW_Q31_H
#define GLOW_DSP_DW_Q31_H

#include "glow_dsp_dw.h"
#include "glow_dsp_q31.h"

#if !GLOW_DSP_ASM
GLOW_INLINE void glow_dsp_dw_q31_quad(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s, const int8_t *w,
                                      const int8_t *const *in, int8_t *out) {
  const int32_t zp = (glow_low16((uint32_t)d->out_zp) - 1) / 2 - 128;
  for (int32_t i = 0; i < 4 * s->outputs; i++) {
    const int32_t c = i % 4;
    uint32_t ends[5];
    int32_t sum;
    memcpy(&sum, w + 8 * (c % 2) + 2 * (c & 2), sizeof sum);
    memcpy(ends, w + 16 + 4 * s->k_h * s->k_w, sizeof ends);
    const int32_t place = c % 2 * 2 + c / 2;
    sum = glow_dsp_dw_sum(d, s, w + 16, in, i / 4, c, sum);
    const uint32_t mul = ends[place + (place > 1 ? 1 : 0)];
    const uint32_t places = (ends[2] >> (8 * place)) & 0xFFu;
    sum = glow_dsp_q31_code(sum, mul, places, zp, glow_first8(d->low), glow_first8(d->high));
    out[(i / 4) * d->out_step + c * s->mult] = (int8_t)sum;
  }
}

GLOW_INLINE void glow_dsp_dw_q31_twin(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s) {
  glow_dsp_dw_tiles(d, s, glow_dsp_dw_q31_quad, 36);
}
#endif

#endif
