/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers (glow_dsp_fc.h) that end by multiplier and shift: `out_zp` of a call is 1 + 2 * zero point. */
#ifndef GLOW_DSP_FC_Q31_H
#define GLOW_DSP_FC_Q31_H

#include "glow_dsp_fc.h"
#include "glow_dsp_gemm_q31.h"

#endif
