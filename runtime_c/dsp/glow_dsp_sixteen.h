/* SPDX-License-Identifier: MIT-0 */
/* Products of 16-bit inputs with int8 weights, two and four at a time, for CPUs with the DSP extension and an FPU. */
#ifndef GLOW_DSP_SIXTEEN_H
#define GLOW_DSP_SIXTEEN_H

#include "glow_dsp_round.h"
#include "glow_reach.h"

GLOW_INLINE uint32_t glow_load_pair(const int16_t *p) {
  uint32_t word;
  memcpy(&word, p, sizeof word);
  return word;
}

/* sum + the product of a halfword of a and one of b; modulo 2^32. */
#if GLOW_DSP_SIMD
#define GLOW_DSP_HALF_MAC(name, op, a_shift, b_shift) \
  GLOW_INLINE int32_t name(uint32_t a, uint32_t b, int32_t sum) { \
    __asm__(op " %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b)); \
    return sum; \
  }
#else
#define GLOW_DSP_HALF_MAC(name, op, a_shift, b_shift) \
  GLOW_INLINE int32_t name(uint32_t a, uint32_t b, int32_t sum) { \
    return (int32_t)((uint32_t)sum + (uint32_t)(glow_low16(a >> (a_shift)) * glow_low16(b >> (b_shift)))); \
  }
#endif
GLOW_DSP_HALF_MAC(glow_mla_low_low, "smlabb", 0, 0)
GLOW_DSP_HALF_MAC(glow_mla_high_low, "smlatb", 16, 0)
GLOW_DSP_HALF_MAC(glow_mla_low_high, "smlabt", 0, 16)
GLOW_DSP_HALF_MAC(glow_mla_high_high, "smlatt", 16, 16)

/* Adds to two sums the products of n inputs with two rows of weights, `stride` apart, of zero point zp. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_dots16(int32_t *sums, const int16_t *x, const int8_t *w, int32_t stride, int32_t n,
                                            int32_t zp) {
  const uint32_t neg_zp = glow_twice16(-zp);
  int32_t first = sums[0];
  int32_t second = sums[1];
  for (; n >= 4; n -= 4, x += 4, w += 4) {
    const uint32_t low = glow_load_pair(x);
    const uint32_t high = glow_load_pair(x + 2);
    const uint32_t even = glow_pack_low(low, high);
    const uint32_t odd = glow_pack_high(low, high);
    const uint32_t one = glow_load4(w);
    const uint32_t other = glow_load4(w + stride);
    first = glow_dsp_smlad(even, glow_sxtab16(neg_zp, one), first);
    first = glow_dsp_smlad(odd, glow_sxtab16_odd(neg_zp, one), first);
    second = glow_dsp_smlad(even, glow_sxtab16(neg_zp, other), second);
    second = glow_dsp_smlad(odd, glow_sxtab16_odd(neg_zp, other), second);
  }
  for (; n > 0; n--, x++, w++) {
    first += *x * (w[0] - zp);
    second += *x * (w[stride] - zp);
  }
  sums[0] = first;
  sums[1] = second;
}

#endif
