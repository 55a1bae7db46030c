/* SPDX-License-Identifier: MIT-0 */
/* Layers with inputs of 16 bits (glow_neon_wide.h) that end by multiplier and shift (glow_q31.h). */
#ifndef GLOW_NEON_WIDE_Q31_H
#define GLOW_NEON_WIDE_Q31_H

#include "glow_neon_wide.h"
#include "glow_q31.h"

#if defined(__ARM_NEON)
/* (sum * factor + 2^30) >> 31, which is one rounding, plus zp; factors up to 2^31 */
static inline int32x4_t glow_neon_wide_high(int32x4_t sum, const int32_t *factor, int32_t zp) {
  return vqaddq_s32(vqrdmulhq_s32(sum, vld1q_s32(factor)), vdupq_n_s32(zp));
}
#endif

#endif
