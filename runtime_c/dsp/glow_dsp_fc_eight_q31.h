/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers of eight outputs at a time (glow_dsp_fc_eight.h) that end as those of glow_dsp_fc_q31.h. */
#ifndef GLOW_DSP_FC_EIGHT_Q31_H
#define GLOW_DSP_FC_EIGHT_Q31_H

#include "glow_dsp_fc_eight.h"
#include "glow_dsp_fc_q31.h"

#if GLOW_DSP_ASM
GLOW_DSP_FUNCTION glow_dsp_fc_q31_eight(GLOW_DSP_UNUSED const glow_dsp_eight_t *g) {
  GLOW_DSP_FC_EIGHT(GLOW_DSP_FC_Q31_CODES(DUAL, SIGNED), "vmov s12, s13, r10, r11\n",
                    "vmov r4, r5, s12, s13\n" "mov r6, r12\n" "mov r7, lr\n");
}
#else
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_fc_q31_eight(const glow_dsp_eight_t *g) {
  const uint32_t *w = (const uint32_t *)g->stream;
  const int32_t zp = (g->out_zp - 1) / 2;
  for (int32_t b = 0; b < g->blocks; b++, w += 10) {
    int32_t sum[8];
    w = glow_dsp_fc_eight_sums(sum, g, w);
    for (int32_t c = 0; c < 8; c++) {
      const uint32_t *ends = w + 5 * (c >> 2);
      const uint32_t places = (ends[0] >> (8 * (c & 3))) & 0xFFu;
      g->out[8 * b + c] = (int8_t)glow_dsp_q31_code(sum[c], ends[1 + (c & 3)], places, zp, -128, 127);
    }
  }
}
#endif

#endif
