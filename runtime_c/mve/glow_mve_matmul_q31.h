/* SPDX-License-Identifier: MIT-0 */
/* Products of two int8 activations (glow_mve_matmul.h) that end as TensorFlow Lite's do. */
#ifndef GLOW_MVE_MATMUL_Q31_H
#define GLOW_MVE_MATMUL_Q31_H

#include "glow_mve_matmul.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#define GLOW_MVE_ROWS4_HIGH(q) "vqrdmulh.s32 " q ", " q ", r0\n"
#define GLOW_MVE_ROWS4_SIGN(q) "vshr.s32 q2, " q ", #31\n" "vadd.i32 " q ", " q ", q2\n"
#define GLOW_MVE_ROWS4_SHIFTED(q) "vrshl.s32 " q ", r12\n"
GLOW_MVE_ROWS4_FUNCTION(glow_mve_rows4_q31, GLOW_MVE_ROWS4_HIGH, GLOW_MVE_ROWS4_SIGN, GLOW_MVE_ROWS4_SHIFTED)
#endif

#endif
