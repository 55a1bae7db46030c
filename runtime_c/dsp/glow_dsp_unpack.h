/* SPDX-License-Identifier: MIT-0 */
/* Codes of 4 bits, stored plus 8 in a byte each, less 8: two of a halfword, or bytes, in one instruction. */
#ifndef GLOW_DSP_UNPACK_H
#define GLOW_DSP_UNPACK_H

#include "glow_dsp.h"

/* Each halfword of codes below 16, 256 * a + b, less 256 * 8 + 8. */
GLOW_INLINE uint32_t glow_dsp_less_joined(uint32_t codes) {
#if GLOW_DSP_SIMD
  __asm__("ssub16 %0, %0, %1" : "+r"(codes) : "r"(0x08080808u));
  return codes;
#else
  return ((codes | 0x80008000u) - 0x08080808u) ^ 0x80008000u;
#endif
}

/* Each byte of codes below 16 less 8. */
GLOW_INLINE uint32_t glow_dsp_less_bytes(uint32_t codes) {
#if GLOW_DSP_SIMD
  __asm__("ssub8 %0, %0, %1" : "+r"(codes) : "r"(0x08080808u));
  return codes;
#else
  return ((codes | 0x80808080u) - 0x08080808u) ^ 0x80808080u;
#endif
}

#endif
