/* SPDX-License-Identifier: MIT-0 */
/* The product of two rows of bytes, for outputs that fill no block (SMLAD). */
#ifndef GLOW_DSP_SINGLE_H
#define GLOW_DSP_SINGLE_H

#include "glow_dsp_fc.h"

#if GLOW_DSP_ASM
static inline int32_t glow_dsp_add_products(uint32_t a, uint32_t b, int32_t sum) {
  __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}
#else
static inline int32_t glow_dsp_add_products(uint32_t a, uint32_t b, int32_t sum) { return glow_dsp_smlad(a, b, sum); }
#endif

static inline int32_t glow_dsp_dot4(uint32_t a, uint32_t b, int32_t sum) {
  sum = glow_dsp_add_products(glow_sxtab16(0u, a), glow_sxtab16(0u, b), sum);
  return glow_dsp_add_products(glow_sxtab16_odd(0u, a), glow_sxtab16_odd(0u, b), sum);
}

static inline int32_t glow_dsp_dot_s8(const int8_t *a, const int8_t *b, int32_t n) {
  int32_t sum = 0;
  for (; n >= 4; n -= 4, a += 4, b += 4) {
    sum = glow_dsp_dot4(glow_load4(a), glow_load4(b), sum);
  }
  return n > 0 ? glow_dsp_dot4(glow_load_tail(a, n), glow_load_tail(b, n), sum) : sum;
}

static inline int32_t glow_dsp_sum_s8(const int8_t *a, int32_t n) {
  int32_t sum = 0;
  for (int32_t i = 0; i < n; i++) {
    sum += a[i];
  }
  return sum;
}

#endif
