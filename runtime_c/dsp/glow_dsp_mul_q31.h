/* SPDX-License-Identifier: MIT-0 */
/* Products of pairs of codes that end by TensorFlow Lite's multiplier and shift to the right (glow_dsp_q31.h). */
#ifndef GLOW_DSP_MUL_Q31_H
#define GLOW_DSP_MUL_Q31_H

#include "glow_dsp_codes.h"
#include "glow_dsp_q31.h"

typedef struct {
  int32_t a_zp, b_zp, out_zp, out_min, out_max, mul, shift;
} glow_dsp_mul_q31_t;

/* The code of a product, not limited: `factor` and `places` as the streams of layers have them, `end` is 1 + 2 * zp. */
GLOW_INLINE int32_t glow_dsp_fixed_product(int32_t product, int32_t factor, int32_t places, int32_t end) {
#if GLOW_DSP_ASM
  __asm__(GLOW_DSP_Q31_CODE(SIGNED, "%[x]", "%[factor]", "%[places]", "%[end]")
          : [x] "+r"(product)
          : [factor] "r"(factor), [places] "r"(places), [end] "r"(end));
  return product;
#else
  return glow_dsp_q31_code(product, (uint32_t)factor, (uint32_t)places, (end - 1) / 2, -128, 127);
#endif
}

#define GLOW_DSP_FIXED_NUMBERS \
  const int32_t factor = (int32_t)(2u * (uint32_t)m->mul); \
  const int32_t places = -m->shift - 1; \
  const int32_t end = 1 + 2 * m->out_zp;
#define GLOW_DSP_FIXED_PRODUCT(product) glow_dsp_fixed_product(product, factor, places, end)
GLOW_DSP_PRODUCTS(glow_dsp_mul_q31, glow_dsp_mul_q31_t, GLOW_DSP_FIXED_NUMBERS, GLOW_DSP_FIXED_PRODUCT)

#endif
