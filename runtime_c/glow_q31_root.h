/* SPDX-License-Identifier: MIT-0 */
/* Inverse square roots and logarithms of TensorFlow Lite in fixed point; a number of n integer bits is x / 2^(31 - n). */
#ifndef GLOW_Q31_ROOT_H
#define GLOW_Q31_ROOT_H

#include "glow_q31.h"

/* zeros above the highest bit of x > 0 */
GLOW_INLINE int32_t glow_q31_zeros(int32_t x) {
  int32_t zeros = 0;
  while (((uint32_t)x << zeros) < 0x80000000u) {
    zeros++;
  }
  return zeros;
}

/* a factor: mul * 2^(shift - 31) */
typedef struct {
  int32_t mul, shift;
} glow_q31_factor_t;

/* 1 / sqrt(x) for x >= 0, where 0 counts as 1: five Newton steps */
GLOW_INLINE glow_q31_factor_t glow_q31_inverse_root(int32_t x) {
  glow_q31_factor_t factor = {INT32_MAX, 0};
  if (x <= 1) {
    return factor;
  }
  int32_t right = 11;
  while (x >= 1 << 29) {
    x /= 4;
    right++;
  }
  const int32_t pairs = (glow_q31_zeros(x) - 1) / 2 - 1;
  right -= pairs;
  const int32_t value = (x << (2 * pairs)) >> 1, half = glow_q31_divide(value, 1);
  int32_t root = 1 << 28;
  for (int32_t i = 0; i < 5; i++) {
    const int32_t cube = glow_q31_up(glow_q31_high(glow_q31_high(root, root), root), 6);
    root = glow_q31_up(glow_q31_high((1 << 28) + (1 << 27), root) - glow_q31_high(half, cube), 3);
  }
  factor.mul = glow_q31_high(root, 1518500250);
  if (right < 0) {
    factor.mul = glow_q31_left(factor.mul, -right);
  } else {
    factor.shift = -right;
  }
  return factor;
}

/* log(x) of 5 integer bits, for x >= 1 of 12 */
GLOW_INLINE int32_t glow_q31_log(int32_t x) {
  const int32_t above = glow_q31_zeros(x), root_half = 1518500250, fourth = 1805811301;
  const int32_t r_a = glow_q31_up(glow_q31_high(glow_q31_up(x, above - 1), root_half), 1);
  const int32_t headroom = glow_q31_zeros(glow_q31_high(x, root_half)) - 1;
  const int32_t r_b = glow_q31_up(x, headroom);
  const int32_t power_a = (12 - above) * (1 << 25) + (1 << 23), power_b = (12 - headroom) * (1 << 25) - (1 << 23);
  const int32_t r = r_a < r_b ? r_a : r_b, power = power_a > power_b ? power_a : power_b;
  const int64_t twice = (int64_t)r + fourth;
  const int32_t p = (int32_t)((twice + 1) / 2), q = 2 * (r - fourth);
  const int32_t square = glow_q31_high(q, q);
  const int32_t top = glow_q31_high(q, r) + glow_q31_high(glow_q31_high(q, square), 117049297);
  const int32_t bottom = glow_q31_high(p, 1057819769 + q + glow_q31_high(127690142, square)) + glow_q31_high(638450708, q);
  const int32_t part = glow_q31_high(glow_q31_divide(top, 6), glow_q31_up(glow_q31_newton(bottom), 1));
  return glow_q31_up(glow_q31_high(power, 1488522236) + part, 1);
}

#endif
