/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers of eight outputs at a time (glow_dsp_fc_eight.h) that end as those of glow_dsp_fc_q31.h. */
#ifndef GLOW_DSP_FC_EIGHT_Q31_H
#define GLOW_DSP_FC_EIGHT_Q31_H

#include "glow_dsp_fc_eight.h"
#include "glow_dsp_fc_q31.h"

#if GLOW_DSP_ASM
GLOW_DSP_FUNCTION glow_dsp_fc_q31_eight(GLOW_DSP_UNUSED const glow_dsp_eight_t *g) {
  GLOW_DSP_FC_EIGHT(4, "vmov s14, r3\n",
                    GLOW_DSP_EIGHT_BY_FOURS(GLOW_DSP_FC_Q31_CODES(DUAL, SIGNED), "vmov s12, s13, r10, r11\n",
                                            "vmov r4, r5, s12, s13\n" "mov r6, r12\n" "mov r7, lr\n"), "");
}

/* Where it is exact: twice the sum of two odd outputs, then of two even ones; twice a sum to a code. */
#define GLOW_DSP_EIGHT_TWICE_ODD(a, b) "rsb " a ", r8, " a ", lsl #1\n" "rsb " b ", r8, " b ", lsl #1\n"
#define GLOW_DSP_EIGHT_TWICE_EVEN(a, b, odd_a, odd_b) \
  "sub " a ", " a ", " odd_a ", asr #1\n" "sub " b ", " b ", " odd_b ", asr #1\n" \
  "asr.w " a ", " a ", #7\n" "asr.w " b ", " b ", #7\n"
#define GLOW_DSP_EIGHT_CODE(x) \
  "smmlar r0, " x ", r2, r3\n" "add.w r0, r0, " x ", asr #31\n" "asr.w r0, r0, r9\n" "ssat " x ", #8, r0\n"
/* s12-s15: mul, end, the products of the inputs as the sums are scaled, places, of which ASR sees the lowest byte. */
GLOW_DSP_FUNCTION glow_dsp_fc_q31_eight_common(GLOW_DSP_UNUSED const glow_dsp_eight_t *g) {
  GLOW_DSP_FC_EIGHT(
      6,
      "ldmia.w r1!, {r5-r8}\n"
      "cmp.w r8, #8\n"
      "ite eq\n"
      "rsbeq r3, r7, r3, lsl #8\n"
      "addne r3, r3, r3\n"
      "vmov s12, s13, r5, r6\n"
      "vmov s14, s15, r3, r8\n",
      "vmov r2, r3, s12, s13\n"
      "vmov r8, r9, s14, s15\n"
      "cmp.w r9, #8\n"
      "bne 3f\n"
      GLOW_DSP_EIGHT_COMMON_SCALE GLOW_DSP_EIGHT_COMMON_SATURATE("8")
      "4:\n"
      GLOW_DSP_EIGHT_COMMON_STORE,
      "3:\n"
      GLOW_DSP_EIGHT_TWICE_ODD("r6", "r7") GLOW_DSP_EIGHT_TWICE_ODD("r12", "lr")
      GLOW_DSP_EIGHT_TWICE_EVEN("r4", "r5", "r6", "r7") GLOW_DSP_EIGHT_TWICE_EVEN("r10", "r11", "r12", "lr")
      GLOW_DSP_EIGHT_CODE("r4") GLOW_DSP_EIGHT_CODE("r6") GLOW_DSP_EIGHT_CODE("r5") GLOW_DSP_EIGHT_CODE("r7")
      GLOW_DSP_EIGHT_CODE("r10") GLOW_DSP_EIGHT_CODE("r12") GLOW_DSP_EIGHT_CODE("r11") GLOW_DSP_EIGHT_CODE("lr")
      "b 4b\n");
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

GLOW_DSP_EIGHT_COMMON(glow_dsp_fc_q31_eight_common, glow_dsp_common_code)
#endif

#endif
