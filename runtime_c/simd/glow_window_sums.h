/* SPDX-License-Identifier: MIT-0 */
/* Sums of inputs, for A64 and A32: where a weight is int8 plus the shift of its output, sum x * w is the sum of the
 * products with int8 plus shift * sum x, which accumulators start with. And the ends of rows, padded with zeros. */
#ifndef GLOW_WINDOW_SUMS_H
#define GLOW_WINDOW_SUMS_H

#if defined(__ARM_NEON)

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

/* the last count % 8 bytes of count >= 8 at `from`, then zeros */
static inline uint64_t glow_tail8(const int8_t *from, int32_t count) {
  uint64_t bytes;
  memcpy(&bytes, from + count - 8, sizeof bytes);
  return bytes >> (8 * (8 - count % 8));
}

/* the last count % 16 bytes of count >= 8 at `from`, then zeros */
static inline void glow_tail16(int8_t *to, const int8_t *from, int32_t count) {
  uint64_t words[2] = {0, 0};
  if (count % 16 >= 8) {
    memcpy(words, from + count / 16 * 16, 8);
  }
  if (count % 8 != 0) {
    words[count % 16 / 8] = glow_tail8(from, count);
  }
  memcpy(to, words, sizeof words);
}

/* the sum of count codes */
static inline int32_t glow_sum_s8(const int8_t *from, int32_t count) {
  int32x4_t sums = vdupq_n_s32(0);
  int32_t left = count;
  for (; left >= 64; left -= 64, from += 64) {
    const int16x8_t low = vpadalq_s8(vpaddlq_s8(vld1q_s8(from)), vld1q_s8(from + 16));
    sums = vpadalq_s16(sums, vpadalq_s8(vpadalq_s8(low, vld1q_s8(from + 32)), vld1q_s8(from + 48)));
  }
  for (; left >= 16; left -= 16, from += 16) {
    sums = vpadalq_s16(sums, vpaddlq_s8(vld1q_s8(from)));
  }
  int32x2_t two = vadd_s32(vget_low_s32(sums), vget_high_s32(sums));
  if (left >= 8) {
    two = vpadal_s16(two, vpaddl_s8(vld1_s8(from)));
    left -= 8;
    from += 8;
  }
  int32_t sum = vget_lane_s32(vpadd_s32(two, two), 0);
  for (; left > 0; left--) {
    sum += *from++;
  }
  return sum;
}

/* to[pixel][output] = bias[output] + shift[output] * sums[pixel], four outputs */
static inline void glow_starts(int32_t *to, const int32_t *bias, const int32_t *shift, const int32_t *sums,
                               int32_t pixels) {
  const int32x4_t start = vld1q_s32(bias);
  const int32x4_t shifts = vld1q_s32(shift);
  for (int32_t i = 0; i < pixels; i += 2) {
    const int32x2_t two = vld1_s32(sums + i);
    vst1q_s32(to + 4 * i, vmlaq_lane_s32(start, shifts, two, 0));
    vst1q_s32(to + 4 * i + 4, vmlaq_lane_s32(start, shifts, two, 1));
  }
}

#endif
#endif
