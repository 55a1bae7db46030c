/* SPDX-License-Identifier: MIT-0 */
/* Averages of codes (glow_dsp_codes.h) in fixed point (glow_q31.h). */
#ifndef GLOW_DSP_CODES_Q31_H
#define GLOW_DSP_CODES_Q31_H

#include "glow_dsp_codes.h"
#include "glow_q31.h"

#endif
