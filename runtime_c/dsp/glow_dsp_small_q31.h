/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolution in little code (glow_dsp_small.h) that ends by multiplier and shift (glow_dsp_q31.h): `scale` points to
 * the words of the multipliers, `out_zp` is 1 + 2 * zero point. */
#ifndef GLOW_DSP_SMALL_Q31_H
#define GLOW_DSP_SMALL_Q31_H

#include "glow_dsp_q31.h"
#include "glow_dsp_small.h"

typedef struct {
  glow_dsp_small_t pixel;
  const int8_t *places; /* of the channels */
} glow_dsp_small_q31_t;

#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_small_q31_t, places, 80);

/* The places' pointer takes the word that is unused. */
#define GLOW_DSP_SMALL_Q31_BEGIN "ldr r1, [r0]\n" "str r1, [sp, #24]\n"
#define GLOW_DSP_SMALL_Q31_CODES \
  "ldrd r1, r2, [sp, #36]\n" \
  "ldm r1, {r0, r8, r9, lr}\n" \
  "add r1, r1, r2\n" "str r1, [sp, #36]\n" \
  "ldr r1, [sp, #24]\n" "ldr r2, [r1], #4\n" "str r1, [sp, #24]\n" \
  "ldr r3, [sp, #52]\n" \
  GLOW_DSP_Q31_CODE(SIGNED, "r4", "r0", "r2", "r3") "lsr.w r2, r2, #8\n" \
  GLOW_DSP_Q31_CODE(SIGNED, "r5", "r8", "r2", "r3") "lsr.w r2, r2, #8\n" \
  GLOW_DSP_Q31_CODE(SIGNED, "r6", "r9", "r2", "r3") "lsr.w r2, r2, #8\n" \
  GLOW_DSP_Q31_CODE(SIGNED, "r7", "lr", "r2", "r3") \
  "bfi r4, r5, #8, #8\n" "bfi r4, r6, #16, #8\n" "bfi r4, r7, #24, #8\n" \
  "ldrd r2, r3, [sp, #56]\n"

GLOW_DSP_FUNCTION glow_dsp_small_q31(GLOW_DSP_UNUSED const glow_dsp_small_q31_t *d) {
  __asm__ volatile(
      GLOW_DSP_SMALL("sxtb16 r9, r8, ror #8\n" "sxtb16 r8, r8\n", GLOW_DSP_SMALL_Q31_BEGIN, GLOW_DSP_SMALL_Q31_CODES));
}

/* The same with the weights' zero point. */
GLOW_DSP_FUNCTION glow_dsp_small_q31_offset(GLOW_DSP_UNUSED const glow_dsp_small_q31_t *d) {
  __asm__ volatile(
      GLOW_DSP_SMALL("ldr r3, [sp, #76]\n" "sxtab16 r9, r3, r8, ror #8\n" "sxtab16 r8, r3, r8\n",
                     GLOW_DSP_SMALL_Q31_BEGIN, GLOW_DSP_SMALL_Q31_CODES));
}
#else
GLOW_INLINE void glow_dsp_small_q31_twin(const glow_dsp_small_q31_t *d, int32_t less) {
  const glow_dsp_small_t *s = &d->pixel;
  for (int32_t c = 0; s->out + c != s->out_end; c++) {
    const int32_t sum = glow_dsp_small_sum(s, c, less);
    uint32_t mul;
    memcpy(&mul, s->scale + c, sizeof mul);
    s->out[c] = (int8_t)glow_dsp_q31_code(sum, mul, (uint32_t)d->places[c], (s->out_zp - 1) / 2, glow_first8(s->low),
                                          glow_first8(s->high));
  }
}

GLOW_DSP_UNUSED GLOW_INLINE void glow_dsp_small_q31(const glow_dsp_small_q31_t *d) { glow_dsp_small_q31_twin(d, 0); }
GLOW_DSP_UNUSED GLOW_INLINE void glow_dsp_small_q31_offset(const glow_dsp_small_q31_t *d) {
  glow_dsp_small_q31_twin(d, glow_low16(d->pixel.neg_w_zp));
}
#endif

#endif
