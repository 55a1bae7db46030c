/* SPDX-License-Identifier: MIT-0 */
/* Products of two pixels (glow_dsp_gemm.h) that end by multiplier and shift (glow_dsp_q31.h).
 *
 * The stream is that of glow_dsp_gemm.h but for what a block of four channels ends with: a word with the places of all
 * four, four multipliers. `out_zp` of a call is 1 + 2 * zero point. Ends as of glow_dsp_quad_q31.h. */
#ifndef GLOW_DSP_GEMM_Q31_H
#define GLOW_DSP_GEMM_Q31_H

#include "glow_dsp_gemm.h"
#include "glow_dsp_q31.h"

#if GLOW_DSP_ASM
#define GLOW_DSP_GEMM_WHOLE_DUAL "asr.w r4, r4, #8\n" "asr.w r5, r5, #8\n" "asr.w r6, r6, #8\n" "asr.w r7, r7, #8\n"
#define GLOW_DSP_GEMM_WHOLE_BYTES
#define GLOW_DSP_GEMM_WHOLE_WIDE
/* Of both pixels the sum of a channel, in a and b, to codes by the next multiplier; the places are r3's lowest byte. */
#define GLOW_DSP_GEMM_Q31_TWO(sign, a, b) \
  "ldr r2, [r1], #4\n" GLOW_DSP_Q31_CODE(sign, a, "r2", "r3", "r12") GLOW_DSP_Q31_CODE(sign, b, "r2", "r3", "r12")
#define GLOW_DSP_GEMM_Q31_LIMITS \
  "ldrd r3, r12, [sp, #12]\n" \
  "ssub8 r2, r4, r3\n" "sel r4, r4, r3\n" "ssub8 r2, r12, r4\n" "sel r4, r4, r12\n" \
  "ssub8 r2, r8, r3\n" "sel r8, r8, r3\n" "ssub8 r2, r12, r8\n" "sel r8, r8, r12\n"
#define GLOW_DSP_GEMM_Q31_ALL
/* Sums of the first pixel: r4, r8, r6, r10; of the second: r5, r9, r7, r11. */
#define GLOW_DSP_GEMM_Q31_CODES(form, sign, limits) \
  GLOW_DSP_SPLIT_##form GLOW_DSP_GEMM_WHOLE_##form \
  "ldr r12, [sp, #4]\n" "ldr r3, [r1], #4\n" \
  GLOW_DSP_GEMM_Q31_TWO(sign, "r4", "r5") "lsr.w r3, r3, #8\n" \
  GLOW_DSP_GEMM_Q31_TWO(sign, "r8", "r9") "lsr.w r3, r3, #8\n" \
  GLOW_DSP_GEMM_Q31_TWO(sign, "r6", "r7") "lsr.w r3, r3, #8\n" \
  GLOW_DSP_GEMM_Q31_TWO(sign, "r10", "r11") \
  "bfi r4, r8, #8, #8\n" "bfi r4, r6, #16, #8\n" "bfi r4, r10, #24, #8\n" \
  "bfi r5, r9, #8, #8\n" "bfi r5, r7, #16, #8\n" "bfi r5, r11, #24, #8\n" \
  "mov r8, r5\n" limits
#define GLOW_DSP_GEMM_Q31(name, form, sign, limits, group_bytes) \
  GLOW_DSP_GEMM_FUNCTION(name, form, group_bytes, GLOW_DSP_GEMM_Q31_CODES(form, sign, limits))
#else /* the same in C */
#define GLOW_DSP_GEMM_Q31_LIMITS
#define GLOW_DSP_GEMM_Q31_ALL
GLOW_INLINE const uint32_t *glow_dsp_q31_codes(const glow_dsp_gemm_t *g, const int32_t *sum, const uint32_t *w, int8_t *out) {
  const int32_t zp = (g->out_zp - 1) / 2;
  for (int32_t c = 0; c < 4; c++) {
    const uint32_t places = (w[0] >> (8 * c)) & 0xFFu;
    out[c] = (int8_t)glow_dsp_q31_code(sum[c], w[1 + c], places, zp, glow_first8(g->low), glow_first8(g->high));
  }
  return w + 5;
}

#define GLOW_DSP_GEMM_Q31(name, form, sign, limits, group_bytes) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, GLOW_DSP_##form, glow_dsp_q31_codes); }
#endif

GLOW_DSP_GEMM_Q31(glow_dsp_gemm_q31_dual_r8, DUAL, PLAIN, GLOW_DSP_GEMM_Q31_ALL, "96")
GLOW_DSP_GEMM_Q31(glow_dsp_gemm_q31_dual_v8, DUAL, PLAIN, GLOW_DSP_GEMM_Q31_LIMITS, "96")
GLOW_DSP_GEMM_Q31(glow_dsp_gemm_q31_dual_n8, DUAL, SIGNED, GLOW_DSP_GEMM_Q31_ALL, "96")
GLOW_DSP_GEMM_Q31(glow_dsp_gemm_q31_dual_s8, DUAL, SIGNED, GLOW_DSP_GEMM_Q31_LIMITS, "96")
GLOW_DSP_GEMM_Q31(glow_dsp_gemm_q31_bytes, BYTES, SIGNED, GLOW_DSP_GEMM_Q31_LIMITS, "120")
GLOW_DSP_GEMM_Q31(glow_dsp_gemm_q31_wide, WIDE, SIGNED, GLOW_DSP_GEMM_Q31_LIMITS, "88")

#endif
