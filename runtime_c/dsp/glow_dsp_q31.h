/* SPDX-License-Identifier: MIT-0 */
/* Endings of sums by TensorFlow Lite's multiplier and shift (glow_q31.h) with SMMLAR.
 *
 * Of each channel the stream has 2 mul - 2^32, which is an int32 as mul has 31 bits, and the places that are shifted
 * right less one: SMMLAR gives sum + (sum * (2 mul - 2^32) + 2^31 >> 32) = sum * mul / 2^31, rounded half up. That,
 * less one where it is negative and the sign counts, shifted right by all places but one, plus 1 + 2 * zero point, is
 * saturated while the last place is shifted out: a half is rounded away from zero. */
#ifndef GLOW_DSP_Q31_H
#define GLOW_DSP_Q31_H

#include "glow_dsp.h"
#include "glow_q31.h"

#if GLOW_DSP_ASM
/* The sign counts unless the least code is the zero point. */
#define GLOW_DSP_Q31_SIGNED(x) "add.w " x ", " x ", " x ", asr #31\n"
#define GLOW_DSP_Q31_PLAIN(x)
/* The sum x to a code, by the multiplier m and the shift; `end` is 1 + 2 * zero point. */
#define GLOW_DSP_Q31_CODE(sign, x, m, shift, end) \
  "smmlar " x ", " x ", " m ", " x "\n" GLOW_DSP_Q31_##sign(x) "asr.w " x ", " x ", " shift "\n" \
  "add.w " x ", " x ", " end "\n" "ssat " x ", #8, " x ", asr #1\n"
#else
/* The code of a sum; `word` and `places` are what the stream has. */
GLOW_INLINE int32_t glow_dsp_q31_code(int32_t sum, uint32_t word, uint32_t places, int32_t zp, int32_t lo, int32_t hi) {
  int32_t factor;
  memcpy(&factor, &word, sizeof factor);
  const int64_t high = (sum * (factor + INT64_C(4294967296)) + INT64_C(2147483648)) >> 32;
  const int64_t code = (((high - (high < 0 ? 1 : 0)) >> places) + 1 + 2 * zp) >> 1;
  return (int32_t)(code < lo ? lo : (code > hi ? hi : code));
}
#endif

#endif
