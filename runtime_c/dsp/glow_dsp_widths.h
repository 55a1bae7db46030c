/* SPDX-License-Identifier: MIT-0 */
/* Codes of 8 bits to codes of 16 and back in integers, four at a time, for CPUs with the DSP extension, with the same
 * in C: y = clamp(((x * factor >> 16) + add) >> shift), shift from 1 to 31, sums within 32 bits (kernels/common/widths.py).
 */
#ifndef GLOW_DSP_WIDTHS_H
#define GLOW_DSP_WIDTHS_H

#include "glow_dsp_codes16.h"

typedef struct {
  int32_t factor, add;
} glow_dsp_widths_t;

/* (factor * a halfword >> 16) + add */
#if GLOW_DSP_SIMD
#define GLOW_DSP_WIDTHS_SUM(name, text, plain) \
  GLOW_INLINE int32_t name(uint32_t pair, const glow_dsp_widths_t *d) { \
    int32_t sum; \
    __asm__(text " %0, %1, %2, %3" : "=r"(sum) : "r"(d->factor), "r"(pair), "r"(d->add)); \
    return sum; \
  }
/* A literal shift that saturates to so many bits. */
#define GLOW_DSP_WIDTHS_CODE(sum, bits, shift) \
  __asm__("ssat %0, #" #bits ", %0, asr %1" : "+r"(sum) : "I"(shift))
#else
#define GLOW_DSP_WIDTHS_SUM(name, text, plain) \
  GLOW_INLINE int32_t name(uint32_t pair, const glow_dsp_widths_t *d) { \
    return (int32_t)((int64_t)glow_low16(plain) * d->factor >> 16) + d->add; \
  }
#define GLOW_DSP_WIDTHS_CODE(sum, bits, shift) \
  (sum) = glow_clamp((sum) >> (shift), -(1 << ((bits) - 1)), (1 << ((bits) - 1)) - 1)
#endif

GLOW_DSP_WIDTHS_SUM(glow_dsp_width_low, "smlawb", pair)
GLOW_DSP_WIDTHS_SUM(glow_dsp_width_high, "smlawt", pair >> 16)

#endif
