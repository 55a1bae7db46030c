/* SPDX-License-Identifier: MIT-0 */
/* Codes of few bits, stored plus half of the codes in a byte each, less that half: two halfwords, or four bytes, by one
 * instruction. */
#ifndef GLOW_DSP_UNPACK_H
#define GLOW_DSP_UNPACK_H

#include "glow_dsp.h"

/* Each halfword of codes below 16, 256 * a + b, less the halves of both. */
GLOW_INLINE uint32_t glow_dsp_less_joined(uint32_t codes, uint32_t halves) {
#if GLOW_DSP_SIMD
  __asm__("ssub16 %0, %0, %1" : "+r"(codes) : "r"(halves));
  return codes;
#else
  return ((codes | 0x80008000u) - halves) ^ 0x80008000u;
#endif
}

/* Each byte of codes below 16 less its half. */
GLOW_INLINE uint32_t glow_dsp_less_bytes(uint32_t codes, uint32_t halves) {
#if GLOW_DSP_SIMD
  __asm__("ssub8 %0, %0, %1" : "+r"(codes) : "r"(halves));
  return codes;
#else
  return ((codes | 0x80808080u) - halves) ^ 0x80808080u;
#endif
}

#endif
