/* SPDX-License-Identifier: MIT-0 */
/* Weights of a palette on Advanced SIMD: codes from their places in a vector of 16. */
#ifndef GLOW_NEON_PALETTE_H
#define GLOW_NEON_PALETTE_H

#if defined(__ARM_NEON)

#include <arm_neon.h>

#include "glow_palette.h"

/* The codes at places below 16. */
static inline int8x16_t glow_neon_palette(int8x16_t codes, uint8x16_t places) {
#if defined(__aarch64__)
  return vqtbl1q_s8(codes, places);
#else
  const int8x8x2_t both = {{vget_low_s8(codes), vget_high_s8(codes)}};
  const int8x16_t at = vreinterpretq_s8_u8(places);
  return vcombine_s8(vtbl2_s8(both, vget_low_s8(at)), vtbl2_s8(both, vget_high_s8(at)));
#endif
}

#endif
#endif
