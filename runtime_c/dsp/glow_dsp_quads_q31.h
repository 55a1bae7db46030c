/* SPDX-License-Identifier: MIT-0 */
/* Products of several quads of pixels (glow_dsp_quads.h) that end by multiplier and shift (glow_dsp_quad_q31.h). */
#ifndef GLOW_DSP_QUADS_Q31_H
#define GLOW_DSP_QUADS_Q31_H

#include "glow_dsp_quad_q31.h"
#include "glow_dsp_quads.h"

#if GLOW_DSP_ASM && (GLOW_DSP_QUAD_WORDS == 12 || __ARM_ARCH >= 8)
#define GLOW_DSP_QUADS_TO_Q31(name, sign, limits, one) \
  GLOW_DSP_QUADS_FUNCTION(name, Q31, DUAL, GLOW_DSP_QUAD_Q31_ROUND(DUAL, sign, limits) \
                                          GLOW_DSP_QUADS_STORE("r4", "r5", "r6", "r7"), )
#else
#define GLOW_DSP_QUADS_TO_Q31(name, sign, limits, one) GLOW_DSP_QUADS_BY_ONES(name, one)
#endif

GLOW_DSP_QUADS_TO_Q31(glow_dsp_quads_q31_dual_r8, PLAIN, GLOW_DSP_QUAD_NO_LIMITS, glow_dsp_quad_q31_dual_r8)
GLOW_DSP_QUADS_TO_Q31(glow_dsp_quads_q31_dual_v8, PLAIN, GLOW_DSP_QUAD_LIMITS, glow_dsp_quad_q31_dual_v8)
GLOW_DSP_QUADS_TO_Q31(glow_dsp_quads_q31_dual_n8, SIGNED, GLOW_DSP_QUAD_NO_LIMITS, glow_dsp_quad_q31_dual_n8)
GLOW_DSP_QUADS_TO_Q31(glow_dsp_quads_q31_dual_s8, SIGNED, GLOW_DSP_QUAD_LIMITS, glow_dsp_quad_q31_dual_s8)

#endif
