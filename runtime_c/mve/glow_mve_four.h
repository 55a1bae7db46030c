/* SPDX-License-Identifier: MIT-0 */
/* What LSTM, GRU and RNN of float32 do for four cells at a time (MVE). */
#ifndef GLOW_MVE_FOUR_H
#define GLOW_MVE_FOUR_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_elementary.h"
#include "glow_mve_f32.h"

/* sums[i] += the products of the n elements of x with those of row i of w. */
GLOW_INLINE void glow_mve_four(float *sums, const float *x, const float *w, int32_t n) {
  glow_mve_put_f32(sums, glow_mve_f32_row(glow_mve_get_f32(sums), x, w, n, n, 4));
}

/* Activations of four floats in their places. */
GLOW_INLINE void glow_mve_four_sigmoid(float *x) { glow_mve_put_f32(x, glow_mve_fn_sigmoid(glow_mve_get_f32(x))); }
GLOW_INLINE void glow_mve_four_tanh(float *x) { glow_mve_put_f32(x, glow_mve_fn_tanh(glow_mve_get_f32(x))); }
#endif

#endif
