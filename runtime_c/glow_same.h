/* SPDX-License-Identifier: MIT-0 */
/* exp, tanh, erf ... (glow_elementary.h) of one float with the same bits on every CPU: a product is rounded before it is added,
 * a quotient is a division. For reals between codes of 16 bits, which a last bit could change. */
#ifndef GLOW_SAME_H
#define GLOW_SAME_H

#include "glow_elementary.h"

GLOW_INLINE float glow_same_fn_all(float c) { return c; }
GLOW_INLINE float glow_same_fn_add(float x, float y) { return glow_rounded(x + y); }
GLOW_INLINE float glow_same_fn_mul(float x, float y) { return glow_rounded(x * y); }
GLOW_INLINE float glow_same_fn_ratio(float x, float y) { return x / y; }
GLOW_INLINE float glow_same_fn_plus(float x, float c) { return glow_rounded(x + c); }
GLOW_INLINE float glow_same_fn_times(float x, float c) { return glow_rounded(x * c); }
GLOW_INLINE float glow_same_fn_step(float p, float r, float c) { return glow_rounded(glow_rounded(p * r) + c); }
GLOW_INLINE float glow_same_fn_from(float x, float c) { return x < c ? c : x; }
GLOW_INLINE float glow_same_fn_up_to(float x, float c) { return x > c ? c : x; }
GLOW_INLINE float glow_same_fn_abs(float x) { return x < 0.0f ? -x : x; }
#define glow_same_fn_signed glow_one_signed
#define glow_same_fn_power glow_one_power

GLOW_ELEMENTARY(glow_same_fn, float)

#endif
