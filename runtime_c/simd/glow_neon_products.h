/* SPDX-License-Identifier: MIT-0 */
/* Products of rows of int16 on Advanced SIMD, eight at a time; two products fit 32 bits but for -2^15 squared twice, so each
 * vector of products is added to the sums of 64 bits. */
#ifndef GLOW_NEON_PRODUCTS_H
#define GLOW_NEON_PRODUCTS_H

#include "glow_products.h"

#if defined(__ARM_NEON)
#include <arm_neon.h>

GLOW_INLINE int64x2_t glow_neon_dot8(int64x2_t sums, int16x8_t x, int16x8_t y) {
  sums = vpadalq_s32(sums, vmull_s16(vget_low_s16(x), vget_low_s16(y)));
  return vpadalq_s32(sums, vmull_s16(vget_high_s16(x), vget_high_s16(y)));
}

/* sums[i] = sum x[k] * rows[i * pitch + k], i < 2 */
GLOW_HOT __attribute__((unused)) static void glow_neon_two_dots16(const int16_t *x, const int16_t *rows, int32_t pitch, int32_t n,
                                                              int64_t *sums) {
  const int16_t *other = rows + pitch;
  int64x2_t first = vdupq_n_s64(0);
  int64x2_t second = first;
  for (; n >= 8; n -= 8, x += 8, rows += 8, other += 8) {
    const int16x8_t eight = vld1q_s16(x);
    first = glow_neon_dot8(first, eight, vld1q_s16(rows));
    second = glow_neon_dot8(second, eight, vld1q_s16(other));
  }
  sums[0] = vgetq_lane_s64(first, 0) + vgetq_lane_s64(first, 1);
  sums[1] = vgetq_lane_s64(second, 0) + vgetq_lane_s64(second, 1);
  for (; n > 0; n--, x++, rows++, other++) {
    sums[0] += *x * *rows;
    sums[1] += *x * *other;
  }
}
#endif

#endif
