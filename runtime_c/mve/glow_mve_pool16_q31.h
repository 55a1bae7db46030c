/* SPDX-License-Identifier: MIT-0 */
/* Averages of int16 codes as TensorFlow Lite rounds them (MVE). */
#ifndef GLOW_MVE_POOL16_Q31_H
#define GLOW_MVE_POOL16_Q31_H

#include "glow_mve_pool16.h"
#include "glow_mve_pool_q31.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

/* Stores `lanes` codes, at most eight, clamped. */
GLOW_INLINE void glow_mve_store_clamped16(int16_t *out, glow_mve_sums16_t codes, int32_t low, int32_t high, int32_t lanes) {
  const int32x4_t least = vdupq_n_s32(low);
  const int32x4_t most = vdupq_n_s32(high);
  glow_mve_store16x4(out, vminq_s32(vmaxq_s32(codes.first, least), most), lanes);
  if (lanes > 4) {
    glow_mve_store16x4(out + 4, vminq_s32(vmaxq_s32(codes.second, least), most), lanes - 4);
  }
}
#endif

#endif
