/* SPDX-License-Identifier: MIT-0 */
/* Kernels for cores without SIMD that compute codes near a rounding boundary by the definition in fixed point. Its name makes
 * it the first of their headers, whose glow_thumb_slow then knows that definition. */
#ifndef GLOW_FIXED_THUMB_H
#define GLOW_FIXED_THUMB_H

#if defined(GLOW_THUMB_BASE_H)
#error "include glow_fixed_thumb.h before other headers of these kernels"
#endif
#include "glow_q31.h"

#if defined(__thumb2__)
#include "glow_m3.h"
#else
#include "glow_m0.h"
#endif

#endif
