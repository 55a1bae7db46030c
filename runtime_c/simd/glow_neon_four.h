/* SPDX-License-Identifier: MIT-0 */
/* What LSTM, GRU and RNN of float32 do for four cells at a time (Advanced SIMD). */
#ifndef GLOW_NEON_FOUR_H
#define GLOW_NEON_FOUR_H

#if defined(__ARM_NEON)
#include "glow_neon_elementary.h"

/* sums[i] += the products of the n elements of x with those of row i of w. */
static inline void glow_neon_four(float *sums, const float *x, const float *w, int32_t n) {
  if (n >= 4) {
    vst1q_f32(sums, vaddq_f32(vld1q_f32(sums), glow_dots_f32_1x4(x, w, n, n)));
    return;
  }
  for (int32_t i = 0; i < 4 * n; i++) {
    sums[i / n] += x[i % n] * w[i];
  }
}

/* Activations of four floats in their places. */
static inline void glow_neon_four_sigmoid(float *x) { vst1q_f32(x, glow_neon_fn_sigmoid(vld1q_f32(x))); }
static inline void glow_neon_four_tanh(float *x) { vst1q_f32(x, glow_neon_fn_tanh(vld1q_f32(x))); }
#endif

#endif
