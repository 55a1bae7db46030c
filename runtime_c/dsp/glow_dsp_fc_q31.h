/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers (glow_dsp_fc.h) that end by multiplier and shift (glow_dsp_q31.h).
 *
 * The stream is that of glow_dsp_gemm.h but for what a block of four channels ends with: a word with the places of all
 * four, four multipliers. `out_zp` of a call is 1 + 2 * zero point. Ends: r8, v8 where the sign does not count, n8, s8
 * where it does; v8, s8 with limits.
 *
 * common: four words in front of the blocks stand for all factors (glowc/kernels/dsp/common_factor.py): mul, end, more,
 * places; `more` is in the biases of the even outputs too. Units have 0 places. */
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
#define GLOW_DSP_FC_LIMITS \
  "vmov r3, r12, s14, s15\n" \
  "ssub8 r2, r4, r3\n" "sel r4, r4, r3\n" "ssub8 r2, r12, r4\n" "sel r4, r4, r12\n"
#define GLOW_DSP_FC_ALL
#define GLOW_DSP_FC_Q31_DIRECT(name, form, sign, group_bytes) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { \
    GLOW_DSP_FC(form, group_bytes, "ldr r3, [sp, #4]\n" GLOW_DSP_FC_Q31_CODES(form, sign)); \
  }
#define GLOW_DSP_FC_Q31_UNITS(name, form, sign, limits, unit_bytes) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { \
    GLOW_DSP_FC_UNITS(form, unit_bytes, "", \
                      GLOW_DSP_CROSSED_##form "vmov r3, s13\n" GLOW_DSP_FC_Q31_CODES(form, sign) limits); \
  }
/* One factor for all outputs: 256 times the sum and `more`, here of odd sums a and b less products of inputs, which are in
 * `less` with it, then of the even ones; to a code of 0 places. */
#define GLOW_DSP_COMMON_ODD(a, b, less) \
  "rsb " a ", " less ", " a ", lsl #8\n" "rsb " b ", " less ", " b ", lsl #8\n"
#define GLOW_DSP_COMMON_EVEN(a, b, odd_a, odd_b) \
  "sub " a ", " a ", " odd_a ", asr #8\n" "sub " b ", " b ", " odd_b ", asr #8\n"
#define GLOW_DSP_COMMON_CODE(x, mul, end) \
  "smmlar " x ", " x ", " mul ", " end "\n" "ssat " x ", #8, " x ", asr #8\n"
#define GLOW_DSP_COMMON_CODES4(a, b, c, d, mul, end) \
  GLOW_DSP_COMMON_CODE(a, mul, end) GLOW_DSP_COMMON_CODE(b, mul, end) \
  GLOW_DSP_COMMON_CODE(c, mul, end) GLOW_DSP_COMMON_CODE(d, mul, end)
#define GLOW_DSP_COMMON_BYTES(a, b, c, d) \
  "bfi " a ", " b ", #8, #8\n" "bfi " a ", " c ", #16, #8\n" "bfi " a ", " d ", #24, #8\n"
#define GLOW_DSP_FC_Q31_COMMON(name, limits) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { \
    GLOW_DSP_FC_UNITS( \
        DUAL, "92", \
        "mov r5, r9\n" "ldmia.w r1!, {r8-r11}\n" "rsb r10, r10, r5, lsl #8\n" \
        "vmov s0, s1, r8, r9\n" "vmov s2, r10\n", \
        "vmov r2, r3, s0, s1\n" "vmov r8, s2\n" \
        GLOW_DSP_COMMON_ODD("r6", "r7", "r8") GLOW_DSP_COMMON_EVEN("r4", "r5", "r6", "r7") \
        GLOW_DSP_COMMON_CODES4("r4", "r6", "r5", "r7", "r2", "r3") GLOW_DSP_COMMON_BYTES("r4", "r6", "r5", "r7") \
        limits); \
  }
#else
#define GLOW_DSP_FC_LIMITS
#define GLOW_DSP_FC_ALL
#define GLOW_DSP_FC_Q31_DIRECT(name, form, sign, group_bytes) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_q31_twin(g, GLOW_DSP_##form, -1); }
#define GLOW_DSP_FC_Q31_UNITS(name, form, sign, limits, unit_bytes) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_q31_twin(g, GLOW_DSP_##form, -2); }
#define GLOW_DSP_FC_Q31_COMMON(name, limits) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_common_twin(g); }

/* The code of a sum by the words in front of a stream, which they are. */
GLOW_INLINE int32_t glow_dsp_common_code(int32_t sum, const int32_t *by) {
  const int32_t places = by[3];
  const int64_t product = places == 0 ? (INT64_C(256) * sum + by[2]) * by[0] : INT64_C(2) * sum * by[0];
  const int64_t high = ((product + INT64_C(2147483648)) >> 32) + by[1];
  return glow_clamp((int32_t)(places == 0 ? high >> 8 : (high - (sum < 0 ? 1 : 0)) >> places), -128, 127);
}

GLOW_INLINE void glow_dsp_common_twin(const glow_dsp_gemm_t *g) {
  const int32_t *by = (const int32_t *)g->stream;
  const uint32_t *w = (const uint32_t *)g->stream + 4;
  for (int32_t b = 0; b < g->blocks; b++) {
    int32_t sum[4];
    w = glow_dsp_sums(sum, g, w, GLOW_DSP_DUAL, -2);
    for (int32_t c = 0; c < 4; c++) {
      const int32_t code = glow_dsp_common_code(sum[c], by);
      g->out0[4 * b + c] = (int8_t)glow_clamp(code, glow_first8(g->low), glow_first8(g->high));
    }
  }
}
#endif

GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_dual_r8, DUAL, PLAIN, GLOW_DSP_FC_ALL, "92")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_dual_v8, DUAL, PLAIN, GLOW_DSP_FC_LIMITS, "92")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_dual_n8, DUAL, SIGNED, GLOW_DSP_FC_ALL, "92")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_dual_s8, DUAL, SIGNED, GLOW_DSP_FC_LIMITS, "92")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_wide, WIDE, SIGNED, GLOW_DSP_FC_LIMITS, "84")
GLOW_DSP_FC_Q31_UNITS(glow_dsp_fc_q31_units_bytes, BYTES, SIGNED, GLOW_DSP_FC_LIMITS, "148")
GLOW_DSP_FC_Q31_COMMON(glow_dsp_fc_q31_units_common_r8, GLOW_DSP_FC_ALL)
GLOW_DSP_FC_Q31_COMMON(glow_dsp_fc_q31_units_common_v8, GLOW_DSP_FC_LIMITS)
GLOW_DSP_FC_Q31_DIRECT(glow_dsp_fc_q31_dual_r8, DUAL, PLAIN, "64")
GLOW_DSP_FC_Q31_DIRECT(glow_dsp_fc_q31_dual_n8, DUAL, SIGNED, "64")
GLOW_DSP_FC_Q31_DIRECT(glow_dsp_fc_q31_wide, WIDE, SIGNED, "52")
GLOW_DSP_FC_Q31_DIRECT(glow_dsp_fc_q31_bytes, BYTES, SIGNED, "84")

#endif
