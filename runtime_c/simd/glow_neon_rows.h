/* SPDX-License-Identifier: MIT-0 */
/* Products of a vector of codes with four rows of weights (as of glow_rows.h) on Advanced SIMD, eight codes at a time as int16. */
#ifndef GLOW_NEON_ROWS_H
#define GLOW_NEON_ROWS_H

#include "glow_rows.h"

#if defined(__ARM_NEON)
#include <arm_neon.h>

GLOW_INLINE int32x4_t glow_neon_row8(int32x4_t sums, int16x8_t codes, const int8_t *weights) {
  const int16x8_t wide = vmovl_s8(vld1_s8(weights));
  sums = vmlal_s16(sums, vget_low_s16(codes), vget_low_s16(wide));
  return vmlal_s16(sums, vget_high_s16(codes), vget_high_s16(wide));
}

GLOW_INLINE int32_t glow_neon_total(int32x4_t sums) {
  const int32x2_t pairs = vadd_s32(vget_low_s32(sums), vget_high_s32(sums));
  return vget_lane_s32(pairs, 0) + vget_lane_s32(pairs, 1);
}

GLOW_HOT __attribute__((unused)) static void glow_neon_rows_s8(const int8_t *x, int32_t zp, const int8_t *w, int32_t stride,
                                                               int32_t n, int32_t *sums) {
  const int16x8_t zps = vdupq_n_s16((int16_t)zp);
  const int8_t *row0 = w;
  const int8_t *row1 = row0 + stride;
  const int8_t *row2 = row1 + stride;
  const int8_t *row3 = row2 + stride;
  int32x4_t sums0 = vdupq_n_s32(0);
  int32x4_t sums1 = sums0;
  int32x4_t sums2 = sums0;
  int32x4_t sums3 = sums0;
  for (; n >= 8; n -= 8, x += 8, row0 += 8, row1 += 8, row2 += 8, row3 += 8) {
    const int16x8_t codes = vsubq_s16(vmovl_s8(vld1_s8(x)), zps);
    sums0 = glow_neon_row8(sums0, codes, row0);
    sums1 = glow_neon_row8(sums1, codes, row1);
    sums2 = glow_neon_row8(sums2, codes, row2);
    sums3 = glow_neon_row8(sums3, codes, row3);
  }
  sums[0] += glow_neon_total(sums0);
  sums[1] += glow_neon_total(sums1);
  sums[2] += glow_neon_total(sums2);
  sums[3] += glow_neon_total(sums3);
  if (n > 0) {
    glow_rows_s8(x, zp, row0, stride, n, sums);
  }
}
#endif

#endif
