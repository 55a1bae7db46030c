/* SPDX-License-Identifier: MIT-0 */
/* What LSTM, GRU and RNN of float32 do for four cells at a time (Cortex-M with FPU). */
#ifndef GLOW_FPU_FOUR_H
#define GLOW_FPU_FOUR_H

#include "glow_fpu.h"
#include "glow_fpu_elementary.h"

/* sums[j] += the products of the n elements of x with those of row j of w, in their order. */
GLOW_INLINE void glow_fpu_four(float *sums, const float *x, const float *w, int32_t n) {
  const glow_fpu_dots_t dots = {{x, x, x, x}, w, n, n, 1, 0, 0};
  glow_fpu_dots_1x4(sums, &dots);
}

/* Activations of four floats in their places. */
GLOW_HOT GLOW_FPU_UNUSED static void glow_fpu_four_sigmoid(float *x) {
  glow_fpu_fn_store(x, glow_fpu_fn_sigmoid(glow_fpu_fn_load(x)), 4);
}
GLOW_HOT GLOW_FPU_UNUSED static void glow_fpu_four_tanh(float *x) {
  glow_fpu_fn_store(x, glow_fpu_fn_tanh(glow_fpu_fn_load(x)), 4);
}

#endif
