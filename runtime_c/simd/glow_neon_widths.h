/* SPDX-License-Identifier: MIT-0 */
/* Codes of 8 bits to codes of 16 and back in integers on Advanced SIMD of A64 and A32 (kernels/common/widths.py). */
#ifndef GLOW_NEON_WIDTHS_H
#define GLOW_NEON_WIDTHS_H

#if defined(__ARM_NEON)

#include <arm_neon.h>
#include <stdint.h>

/* ((x * factor >> 16) + add) >> shift, saturated to 16 bits; the doubled product's upper half of x * 2^15. */
static inline int16x4_t glow_neon_width(int16x4_t x, int32_t factor, int32_t add, int32_t shift) {
  const int32x4_t product = vqdmulhq_s32(vshll_n_s16(x, 15), vdupq_n_s32(factor));
  return vqmovn_s32(vshlq_s32(vaddq_s32(product, vdupq_n_s32(add)), vdupq_n_s32(-shift)));
}

#endif

#endif
