/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolutions of any kernel (glow_mve_dw.h) with the end of TensorFlow Lite (glow_mve_dot.h): per 16
 * channels 16 multipliers in place of the scales, then 16 bytes, the shifts, in the same order. */
#ifndef GLOW_MVE_DW_Q31_H
#define GLOW_MVE_DW_Q31_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_dw.h"

#define GLOW_MVE_DW_FIXED_PART(sums, m) \
  "vldrw.32 " m ", [r9], #16\n" "vqrdmulh.s32 " sums ", " sums ", " m "\n" "vshr.s32 " m ", " sums ", #31\n" \
  "vadd.i32 " sums ", " sums ", " m "\n"
#define GLOW_MVE_DW_SHIFT_PART(sums, m, at) "vldrb.s32 " m ", [r7, #" at "]\n" "vrshl.s32 " sums ", " sums ", " m "\n"
#define GLOW_MVE_DW_FACTORS \
  GLOW_MVE_DW_FIXED_PART("q0", "q4") GLOW_MVE_DW_FIXED_PART("q1", "q5") GLOW_MVE_DW_FIXED_PART("q2", "q6") \
  GLOW_MVE_DW_FIXED_PART("q3", "q7") "mov r7, r9\n" "add r9, r9, #16\n" GLOW_MVE_DW_SHIFT_PART("q0", "q4", "0") \
  GLOW_MVE_DW_SHIFT_PART("q1", "q5", "4") GLOW_MVE_DW_SHIFT_PART("q2", "q6", "8") \
  GLOW_MVE_DW_SHIFT_PART("q3", "q7", "12") \
  "vqmovnb.s32 q0, q0\n" "vqmovnb.s32 q2, q2\n" "vqmovnt.s32 q0, q1\n" "vqmovnt.s32 q2, q3\n" \
  "vqadd.s16 q0, q0, lr\n" "vqadd.s16 q2, q2, lr\n" "vqmovnb.s16 q0, q0\n" "vqmovnt.s16 q0, q2\n" GLOW_MVE_DW_CLAMP

GLOW_MVE_DW_FUNCTIONS(glow_mve_dw_factors, glow_mve_dw_offset_factors, glow_mve_dw_gathered_factors,
                      glow_mve_dw_gathered_offset_factors, GLOW_MVE_DW_FACTORS)

#endif

#endif
