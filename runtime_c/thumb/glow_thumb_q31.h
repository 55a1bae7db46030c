/* SPDX-License-Identifier: MIT-0 */
/* Codes of linear forms on cores without SIMD, those near a rounding boundary by the definition in fixed point. */
#ifndef GLOW_THUMB_Q31_H
#define GLOW_THUMB_Q31_H

#if defined(__thumb2__)
#include "glow_m3.h"
#else
#include "glow_m0.h"
#endif
#include "glow_q31.h"

#endif
