/* SPDX-License-Identifier: MIT-0 */
/* Products of codes whose zero points are known at run time, for CPUs with the DSP extension and an FPU. */
#ifndef GLOW_DSP_INTEGER_H
#define GLOW_DSP_INTEGER_H

#include "glow_dsp_round.h"
#include "glow_reach.h"

/* Zero points of inputs and of two rows of weights; flips are 0x80 for uint8 codes, whose zero points are less by 128. */
typedef struct {
  uint32_t x_flip, w_flip;
  int32_t x, first, second;
} glow_dsp_points_t;

GLOW_INLINE int32_t glow_signed_code(int8_t code, uint32_t flip) {
  return (int8_t)(uint8_t)((uint32_t)(uint8_t)code ^ flip);
}

/* Adds to two sums the products of n inputs with two rows of weights, `stride` apart. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_dots8(int32_t *sums, const int8_t *x, const int8_t *w, int32_t stride, int32_t n,
                                           const glow_dsp_points_t *z) {
  const uint32_t x_flip = z->x_flip * 0x01010101u;
  const uint32_t w_flip = z->w_flip * 0x01010101u;
  const uint32_t less = glow_twice16(-z->x);
  const uint32_t less_first = glow_twice16(-z->first);
  const uint32_t less_second = glow_twice16(-z->second);
  int32_t first = sums[0];
  int32_t second = sums[1];
  for (; n >= 4; n -= 4, x += 4, w += 4) {
    const uint32_t codes = glow_load4(x) ^ x_flip;
    const uint32_t even = glow_sxtab16(less, codes);
    const uint32_t odd = glow_sxtab16_odd(less, codes);
    const uint32_t one = glow_load4(w) ^ w_flip;
    const uint32_t other = glow_load4(w + stride) ^ w_flip;
    first = glow_dsp_smlad(even, glow_sxtab16(less_first, one), first);
    first = glow_dsp_smlad(odd, glow_sxtab16_odd(less_first, one), first);
    second = glow_dsp_smlad(even, glow_sxtab16(less_second, other), second);
    second = glow_dsp_smlad(odd, glow_sxtab16_odd(less_second, other), second);
  }
  for (; n > 0; n--, x++, w++) {
    const int32_t code = glow_signed_code(*x, z->x_flip) - z->x;
    first += code * (glow_signed_code(w[0], z->w_flip) - z->first);
    second += code * (glow_signed_code(w[stride], z->w_flip) - z->second);
  }
  sums[0] = first;
  sums[1] = second;
}

#endif
