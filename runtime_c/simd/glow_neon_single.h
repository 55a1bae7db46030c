/* SPDX-License-Identifier: MIT-0 */
/* The product of two rows of bytes, for outputs that fill no block (Advanced SIMD). */
#ifndef GLOW_NEON_SINGLE_H
#define GLOW_NEON_SINGLE_H

#if defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>

static inline int32_t glow_neon_dot_s8(const int8_t *a, const int8_t *b, int32_t n) {
  int32x4_t sums = vdupq_n_s32(0);
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const int8x16_t x = vld1q_s8(a + i);
    const int8x16_t y = vld1q_s8(b + i);
    sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(x), vget_low_s8(y)));
    sums = vpadalq_s16(sums, vmull_s8(vget_high_s8(x), vget_high_s8(y)));
  }
  const int32x2_t pairs = vadd_s32(vget_low_s32(sums), vget_high_s32(sums));
  int32_t sum = vget_lane_s32(pairs, 0) + vget_lane_s32(pairs, 1);
  for (; i < n; i++) {
    sum += a[i] * b[i];
  }
  return sum;
}
#endif

#endif
