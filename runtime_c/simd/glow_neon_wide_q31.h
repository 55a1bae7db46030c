/* SPDX-License-Identifier: MIT-0 */
/* Layers with inputs of 16 bits (glow_neon_wide.h) that end by multiplier and shift (glow_q31.h). */
#ifndef GLOW_NEON_WIDE_Q31_H
#define GLOW_NEON_WIDE_Q31_H

#include "glow_neon_wide.h"
#include "glow_q31.h"

#endif
