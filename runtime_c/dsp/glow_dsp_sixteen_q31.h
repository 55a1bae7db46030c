/* SPDX-License-Identifier: MIT-0 */
/* Layers with inputs of 16 bits that end by multiplier and shift (glow_q31.h). */
#ifndef GLOW_DSP_SIXTEEN_Q31_H
#define GLOW_DSP_SIXTEEN_Q31_H

#include "glow_dsp_shift.h"
#include "glow_dsp_sixteen.h"
#include "glow_q31.h"

#endif
