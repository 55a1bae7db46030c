/* SPDX-License-Identifier: MIT-0 */
/* Products of two pixels (glow_dsp_gemm.h) that end by multiplier and shift (glow_dsp_q31.h).
 *
 * The stream is that of glow_dsp_gemm.h but for what a block of four channels ends with: a word with the places of all
 * four, four multipliers. `out_zp` of a call is 1 + 2 * zero point. Ends as of glow_dsp_quad_q31.h. */
#ifndef GLOW_DSP_GEMM_Q31_H
#define GLOW_DSP_GEMM_Q31_H

#include "glow_dsp_gemm.h"
#include "glow_dsp_q31.h"

#if !GLOW_DSP_ASM
GLOW_INLINE const uint32_t *glow_dsp_q31_codes(const glow_dsp_gemm_t *g, const int32_t *sum, const uint32_t *w, int8_t *out) {
  const int32_t zp = (g->out_zp - 1) / 2;
  for (int32_t c = 0; c < 4; c++) {
    const uint32_t places = (w[0] >> (8 * c)) & 0xFFu;
    out[c] = (int8_t)glow_dsp_q31_code(sum[c], w[1 + c], places, zp, glow_first8(g->low), glow_first8(g->high));
  }
  return w + 5;
}
#endif

#endif
