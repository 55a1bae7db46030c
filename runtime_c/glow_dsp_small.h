/* Depthwise convolution in little code: four channels of one pixel at a time. */
#ifndef GLOW_DSP_SMALL_H
#define GLOW_DSP_SMALL_H

#include "glow_dsp.h"

/* sum + low halfword of a x low halfword of b; and of the high ones. */
static inline int32_t glow_smlabb(uint32_t a, uint32_t b, int32_t sum) {
#if GLOW_DSP_ASM
  __asm__("smlabb %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return sum + glow_low16(a) * glow_low16(b);
#endif
}

static inline int32_t glow_smlatt(uint32_t a, uint32_t b, int32_t sum) {
#if GLOW_DSP_ASM
  __asm__("smlatt %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return sum + glow_low16(a >> 16) * glow_low16(b >> 16);
#endif
}

/* Adds the products of a row of `cols` taps to the sums of four channels; steps are bytes from tap to tap. */
static inline void glow_dsp_taps(int32_t *sums, const int8_t *in, int32_t in_step, const int8_t *weights,
                                 int32_t weight_step, int32_t cols, uint32_t neg_zp) {
  int32_t s0 = sums[0];
  int32_t s1 = sums[1];
  int32_t s2 = sums[2];
  int32_t s3 = sums[3];
  for (; cols > 0; cols--, in += in_step, weights += weight_step) {
    const uint32_t x = glow_load4(in);
    const uint32_t w = glow_load4(weights);
    const uint32_t x0 = glow_sxtab16(neg_zp, x);
    const uint32_t x1 = glow_sxtab16_odd(neg_zp, x);
    const uint32_t w0 = glow_sxtab16(0u, w);
    const uint32_t w1 = glow_sxtab16_odd(0u, w);
    s0 = glow_smlabb(x0, w0, s0);
    s1 = glow_smlabb(x1, w1, s1);
    s2 = glow_smlatt(x0, w0, s2);
    s3 = glow_smlatt(x1, w1, s3);
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

#endif
