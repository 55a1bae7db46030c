/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers (glow_dsp_fc.h) that end by multiplier and shift (glow_dsp_q31.h).
 *
 * The stream is that of glow_dsp_gemm.h but for what a block of four channels ends with: a word with the places of all
 * four, four multipliers. `out_zp` of a call is 1 + 2 * zero point. Ends: r8, v8 where the sign does not count, n8, s8
 * where it does; v8, s8 with limits. */
#ifndef GLOW_DSP_FC_Q31_H
#define GLOW_DSP_FC_Q31_H

#include "glow_dsp_fc.h"
#include "glow_dsp_gemm_q31.h"

#if GLOW_DSP_ASM
#define GLOW_DSP_FC_WHOLE_DUAL "asr.w r4, r4, #8\n" "asr.w r5, r5, #8\n"
#define GLOW_DSP_FC_WHOLE_BYTES
#define GLOW_DSP_FC_WHOLE_WIDE
/* The sums of four outputs in r4, r6, r5, r7 to bytes of r4; r3 has 1 + 2 * zero point. */
#define GLOW_DSP_FC_Q31_CODES(form, sign) \
  GLOW_DSP_FC_SPLIT_##form GLOW_DSP_FC_WHOLE_##form \
  "ldmia.w r1!, {r2, r8-r11}\n" \
  GLOW_DSP_Q31_CODE(sign, "r4", "r8", "r2", "r3") "lsr.w r2, r2, #8\n" \
  GLOW_DSP_Q31_CODE(sign, "r6", "r9", "r2", "r3") "lsr.w r2, r2, #8\n" \
  GLOW_DSP_Q31_CODE(sign, "r5", "r10", "r2", "r3") "lsr.w r2, r2, #8\n" \
  GLOW_DSP_Q31_CODE(sign, "r7", "r11", "r2", "r3") \
  "bfi r4, r6, #8, #8\n" "bfi r4, r5, #16, #8\n" "bfi r4, r7, #24, #8\n"
#define GLOW_DSP_FC_Q31_DIRECT(name, form, sign, group_bytes) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { \
    GLOW_DSP_FC(form, group_bytes, "ldr r3, [sp, #4]\n" GLOW_DSP_FC_Q31_CODES(form, sign)); \
  }
#define GLOW_DSP_FC_Q31_UNITS(name, form, sign, limits, unit_bytes) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { \
    GLOW_DSP_FC_UNITS(form, unit_bytes, "", \
                      GLOW_DSP_CROSSED_##form "vmov r3, s13\n" GLOW_DSP_FC_Q31_CODES(form, sign) limits); \
  }
#else
#define GLOW_DSP_FC_Q31_DIRECT(name, form, sign, group_bytes) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_q31_twin(g, GLOW_DSP_##form, -1); }
#define GLOW_DSP_FC_Q31_UNITS(name, form, sign, limits, unit_bytes) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_q31_twin(g, GLOW_DSP_##form, -2); }
#endif

GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_dual_r8, DUAL, PLAIN, GLOW_DSP_FC_ALL, "92")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_dual_v8, DUAL, PLAIN, GLOW_DSP_FC_LIMITS, "92")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_dual_n8, DUAL, SIGNED, GLOW_DSP_FC_ALL, "92")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_dual_s8, DUAL, SIGNED, GLOW_DSP_FC_LIMITS, "92")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_wide, WIDE, SIGNED, GLOW_DSP_FC_LIMITS, "84")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_bytes, BYTES, SIGNED, GLOW_DSP_FC_LIMITS, "148")
GLOW_DSP_FC_Q31_DIRECT(glow_dsp_fc_q31_dual_r8, DUAL, PLAIN, "64")
GLOW_DSP_FC_Q31_DIRECT(glow_dsp_fc_q31_dual_n8, DUAL, SIGNED, "64")
GLOW_DSP_FC_Q31_DIRECT(glow_dsp_fc_q31_wide, WIDE, SIGNED, "52")
GLOW_DSP_FC_Q31_DIRECT(glow_dsp_fc_q31_bytes, BYTES, SIGNED, "84")

#endif
