/* SPDX-License-Identifier: MIT-0 */
/* Sums and products of int16 codes around 0 that end by TensorFlow Lite's multipliers and shifts (glow_q31.h): SMMULR and
 * SMMLAR round as its products do.
 */
#ifndef GLOW_DSP_PAIRS16_H
#define GLOW_DSP_PAIRS16_H

#include "glow_dsp_codes16.h"
#include "glow_pairs16.h"
#include "glow_q31.h"

/* A code in the upper half of a word, the lower 0, times mul / 2^16, rounded half up; and any x times mul / 2^31, given
 * 2 mul - 2^32. */
GLOW_DSP_OF_TWO(int32_t, glow_dsp_scaled16, "smmulr %0, %1, %2", "=r",
                (int32_t)(((int64_t)glow_low16(a >> 16) * (int32_t)b + (1 << 15)) >> 16))
GLOW_DSP_OF_TWO(int32_t, glow_dsp_scaled, "smmlar %0, %1, %2, %1", "=r",
                glow_q31_high((int32_t)a, (int32_t)((b >> 1) | 0x40000000u)))

/* Twice x / 2^places, of which the half is to be rounded down: x / 2^places is rounded half away from zero then. */
GLOW_INLINE int32_t glow_dsp_twice(int32_t x, int32_t places) { return ((x + (x >> 31)) >> (places - 1)) + 1; }

/* A code in the upper half of a word times 2^15 mul 2^(shift - 31); 2^30 with the shift 0 is a half. */
GLOW_INLINE int32_t glow_dsp_term16(uint32_t x, int32_t mul, int32_t shift) {
  return shift == 0 ? (int32_t)x >> 2 : glow_dsp_twice(glow_dsp_scaled16(x, (uint32_t)mul), -shift) >> 1;
}

/* The code of a sum or product. How halves below 0 are rounded counts where those are. */
GLOW_INLINE uint32_t glow_dsp_ended16(int32_t x, const glow_pairs16_t *s) {
  const int32_t scaled = glow_dsp_scaled((uint32_t)x, 2u * (uint32_t)s->mul);
  int32_t twice = s->ends == 1 ? (scaled >> (-s->shift - 1)) + 1 : glow_dsp_twice(scaled, -s->shift);
#if GLOW_DSP_SIMD
  if (s->ends == 1) {
    __asm__("usat %0, #15, %0, asr #1" : "+r"(twice));
  } else {
    __asm__("ssat %0, #16, %0, asr #1" : "+r"(twice));
  }
  return (uint32_t)twice;
#else
  return (uint32_t)glow_clamp(twice >> 1, s->ends == 1 ? 0 : -32768, 32767);
#endif
}

/* The code of operands in the upper halves of words. */
GLOW_INLINE uint32_t glow_dsp_sum16_q31(const glow_pairs16_t *s, uint32_t x, uint32_t y) {
  const int32_t a = glow_dsp_term16(x, s->a_mul, s->a_shift);
  const int32_t b = glow_dsp_term16(y, s->b_mul, s->b_shift);
  return glow_dsp_ended16(s->minus != 0 ? a - b : a + b, s);
}

#define GLOW_DSP_SUM16_LOW(x, y) glow_dsp_sum16_q31(s, (x) << 16, (y) << 16)
#define GLOW_DSP_SUM16_HIGH(x, y) glow_dsp_sum16_q31(s, (x) & 0xFFFF0000u, (y) & 0xFFFF0000u)
#define GLOW_DSP_PRODUCT16_LOW(x, y) glow_dsp_ended16(glow_mul_low(x, y), s)
#define GLOW_DSP_PRODUCT16_HIGH(x, y) glow_dsp_ended16(glow_mul_high(x, y), s)

/* out[i] of n pairs of codes; out may be a or b. */
#define GLOW_DSP_PAIRS16_Q31(low_of, high_of) \
  for (; n > 0; n -= 2, a += 2, b += 2, out += 2) { \
    const uint32_t x = n > 1 ? glow_load_pair(a) : (uint32_t)*a; \
    const uint32_t y = n > 1 ? glow_load_pair(b) : (uint32_t)*b; \
    const uint32_t first = low_of(x, y); \
    uint32_t codes = glow_pack_low(first, high_of(x, y)); \
    if (s->ends == 2) { \
      codes = glow_min2(glow_max2(codes, glow_twice16(s->low)), glow_twice16(s->high)); \
    } \
    if (n > 1) { \
      glow_store_pair(out, codes); \
    } else { \
      *out = (int16_t)glow_low16(codes); \
    } \
  }

GLOW_DSP_INLINE void glow_dsp_add16_q31(const glow_pairs16_t *s, const int16_t *a, const int16_t *b, int16_t *out, int32_t n) {
  GLOW_DSP_PAIRS16_Q31(GLOW_DSP_SUM16_LOW, GLOW_DSP_SUM16_HIGH)
}

GLOW_DSP_INLINE void glow_dsp_mul16_q31(const glow_pairs16_t *s, const int16_t *a, const int16_t *b, int16_t *out, int32_t n) {
  GLOW_DSP_PAIRS16_Q31(GLOW_DSP_PRODUCT16_LOW, GLOW_DSP_PRODUCT16_HIGH)
}

#endif
