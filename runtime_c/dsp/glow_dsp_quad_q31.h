/* SPDX-License-Identifier: MIT-0 */
/* Products of four pixels (glow_dsp_quad.h) that end by multiplier and shift (glow_dsp_q31.h).
 *
 * The stream has, per pair of channels: a word with the places of both in its lowest bytes, two multipliers, two biases,
 * the words of the steps. Ends: r8, v8 where the sign does not count, n8, s8 where it does; v8, s8 with limits. */
#ifndef GLOW_DSP_QUAD_Q31_H
#define GLOW_DSP_QUAD_Q31_H

#include "glow_dsp_q31.h"
#include "glow_dsp_quad.h"

#define GLOW_DSP_Q31_HEAD 5 /* words of a pair before those of its steps */

#if GLOW_DSP_ASM
/* The word of the places waits in s5, or where the first step needs that, on the stack. */
#define GLOW_DSP_Q31_PLACES_DUAL "vmov r12, s5\n"
#define GLOW_DSP_QUAD_FRAME_Q31 "40"
#if __ARM_ARCH >= 8
#define GLOW_DSP_QUAD_BEGIN_Q31 "vldmia r1!, {s5-s7}\n" "ldrd r7, r11, [r1], #8\n"
#define GLOW_DSP_Q31_PLACES_BYTES GLOW_DSP_Q31_PLACES_DUAL
#define GLOW_DSP_Q31_PLACES_WIDE GLOW_DSP_Q31_PLACES_DUAL
#else
#define GLOW_DSP_Q31_KEEP "ldr.w lr, [r1], #4\n" "str.w lr, [sp, #32]\n"
#define GLOW_DSP_HEAD_Q31_DUAL "vldmia r1!, {s5-s7}\n" "ldmia.w r1!, {r7, r11, lr}\n"
#define GLOW_DSP_HEAD_Q31_BYTES GLOW_DSP_Q31_KEEP GLOW_DSP_HEAD_F32_BYTES
#define GLOW_DSP_HEAD_Q31_WIDE GLOW_DSP_Q31_KEEP GLOW_DSP_HEAD_F32_WIDE
#define GLOW_DSP_Q31_PLACES_BYTES "ldr.w r12, [sp, #32]\n"
#define GLOW_DSP_Q31_PLACES_WIDE GLOW_DSP_Q31_PLACES_BYTES
#endif
#define GLOW_DSP_Q31_WHOLE_DUAL GLOW_DSP_QUAD_SPLIT_DUAL GLOW_DSP_QUAD_WHOLE_DUAL
#define GLOW_DSP_Q31_WHOLE_BYTES
#define GLOW_DSP_Q31_WHOLE_WIDE

#define GLOW_DSP_QUAD_Q31_ROUND(form, sign, limits) \
  GLOW_DSP_Q31_WHOLE_##form GLOW_DSP_Q31_PLACES_##form \
  "vmov r2, r3, s6, s7\n" "lsr.w lr, r12, #8\n" "ldr.w r0, [sp, #20]\n" \
  GLOW_DSP_Q31_CODE(sign, "r4", "r2", "r12", "r0") GLOW_DSP_Q31_CODE(sign, "r5", "r2", "r12", "r0") \
  GLOW_DSP_Q31_CODE(sign, "r6", "r2", "r12", "r0") GLOW_DSP_Q31_CODE(sign, "r7", "r2", "r12", "r0") \
  GLOW_DSP_Q31_CODE(sign, "r8", "r3", "lr", "r0") GLOW_DSP_Q31_CODE(sign, "r9", "r3", "lr", "r0") \
  GLOW_DSP_Q31_CODE(sign, "r10", "r3", "lr", "r0") GLOW_DSP_Q31_CODE(sign, "r11", "r3", "lr", "r0") \
  GLOW_DSP_QUAD_PAIRS limits
#define GLOW_DSP_QUAD_Q31_CODES(form, sign, limits) \
  GLOW_DSP_QUAD_Q31_ROUND(form, sign, limits) GLOW_DSP_QUAD_STORE("r4", "r5", "r6", "r7")
#define GLOW_DSP_QUAD_TO_Q31(name, form, sign, limits) \
  GLOW_DSP_QUAD_FUNCTION(name, Q31, form, GLOW_DSP_QUAD_Q31_CODES(form, sign, limits), )
#else /* the same in C */
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
#define GLOW_DSP_QUAD_TO_Q31(name, form, sign, limits) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_quad_t *q) { glow_dsp_quad_q31_twin(q, GLOW_DSP_QUAD_AS_##form); }
#endif

/* `out_zp` of q is 1 + 2 * zero point here. */
GLOW_DSP_QUAD_TO_Q31(glow_dsp_quad_q31_dual_r8, DUAL, PLAIN, GLOW_DSP_QUAD_NO_LIMITS)
GLOW_DSP_QUAD_TO_Q31(glow_dsp_quad_q31_dual_v8, DUAL, PLAIN, GLOW_DSP_QUAD_LIMITS)
GLOW_DSP_QUAD_TO_Q31(glow_dsp_quad_q31_dual_n8, DUAL, SIGNED, GLOW_DSP_QUAD_NO_LIMITS)
GLOW_DSP_QUAD_TO_Q31(glow_dsp_quad_q31_dual_s8, DUAL, SIGNED, GLOW_DSP_QUAD_LIMITS)
GLOW_DSP_QUAD_TO_Q31(glow_dsp_quad_q31_bytes, BYTES, SIGNED, GLOW_DSP_QUAD_LIMITS)
GLOW_DSP_QUAD_TO_Q31(glow_dsp_quad_q31_wide, WIDE, SIGNED, GLOW_DSP_QUAD_LIMITS)

#endif
