/* SPDX-License-Identifier: MIT-0 */
/* TensorFlow Lite's scaling of integers: a multiplier of 31 bits, then a shift, each rounded.
 *
 * A factor is mul * 2^(shift - 31), 2^30 <= mul < 2^31. The right shift of a negative number is arithmetic. */
#ifndef GLOW_Q31_H
#define GLOW_Q31_H

#include "glow_numeric.h"

/* a * b / 2^31, rounded half up; not both -2^31 */
GLOW_INLINE int32_t glow_q31_high(int32_t a, int32_t b) { return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31); }

/* x / 2^exponent, rounded half away from zero; 0 <= exponent <= 31 */
GLOW_INLINE int32_t glow_q31_divide(int32_t x, int32_t exponent) {
  const int32_t rest = (int32_t)((1u << exponent) - 1u);
  return (x >> exponent) + ((x & rest) > (rest >> 1) + (x < 0 ? 1 : 0) ? 1 : 0);
}

/* x * 2^left modulo 2^32 */
GLOW_INLINE int32_t glow_q31_left(int32_t x, int32_t left) {
  const uint32_t bits = (uint32_t)x << left;
  int32_t result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

/* x * mul * 2^(shift - 31); the product of x and 2^shift is taken modulo 2^32 */
GLOW_INLINE int32_t glow_q31_scale(int32_t x, int32_t mul, int32_t shift) {
  return shift > 0 ? glow_q31_high(glow_q31_left(x, shift), mul) : glow_q31_divide(glow_q31_high(x, mul), -shift);
}

/* clamp(x * mul * 2^(shift - 31) + zp, lo, hi) */
GLOW_INLINE int32_t glow_q31_code(int32_t x, int32_t mul, int32_t shift, int32_t zp, int32_t lo, int32_t hi) {
  return glow_clamp(glow_q31_scale(x, mul, shift) + zp, lo, hi);
}

/* The same of a sum of up to 48 bits, with the multiplier reduced to 16: rounded once, half up. */
GLOW_INLINE int32_t glow_q15_code(int64_t x, int32_t mul, int32_t shift, int32_t zp, int32_t lo, int32_t hi) {
  const int64_t reduced = mul < 0x7FFF0000 ? (mul + (1 << 15)) >> 16 : 0x7FFF;
  const int64_t code = ((x * reduced + ((int64_t)1 << (14 - shift))) >> (15 - shift)) + zp;
  return (int32_t)(code < lo ? lo : (code > hi ? hi : code));
}

/* The upper word of x * factor, rounded half up. */
GLOW_INLINE int32_t glow_q15_high(int32_t x, int32_t factor, int32_t zp, int32_t lo, int32_t hi) {
  return glow_clamp((int32_t)(((int64_t)x * factor + ((int64_t)1 << 31)) >> 32) + zp, lo, hi);
}

/* x * 2^bits, saturated; bits up to 31 */
GLOW_INLINE int32_t glow_q31_up(int32_t x, int32_t bits) {
  const int64_t y = (int64_t)x * ((int64_t)1 << bits);
  return (int32_t)(y < INT32_MIN ? INT32_MIN : (y > INT32_MAX ? INT32_MAX : y));
}

/* 2 / (1 + a) of two integer bits, for a in [0, 1) of none: three Newton steps on 48/17 - 32/17 x */
GLOW_INLINE int32_t glow_q31_newton(int32_t a) {
  const int32_t half = (int32_t)(((int64_t)a + INT32_MAX + 1) >> 1);
  int32_t x = 1515870810 + glow_q31_high(half, -1010580540);
  for (int32_t i = 0; i < 3; i++) {
    x += glow_q31_up(glow_q31_high(x, (1 << 29) - glow_q31_high(half, x)), 2);
  }
  return x;
}

/* 1 / x = factor * 2^(-31 - exponent - (31 - integer bits)), of a sum x > 0 with so many integer bits */
typedef struct {
  int32_t factor, exponent;
} glow_q31_ratio_t;

GLOW_INLINE glow_q31_ratio_t glow_q31_ratio(int32_t sum, int32_t integer_bits) {
  int32_t headroom = 0;
  while (((uint32_t)sum << headroom) < 0x80000000u) {
    headroom++;
  }
  const uint32_t mantissa = ((uint32_t)sum << headroom) - 0x80000000u;
  const glow_q31_ratio_t ratio = {glow_q31_up(glow_q31_newton((int32_t)mantissa), 1), integer_bits - headroom};
  return ratio;
}

/* a / b * mul * 2^(shift - 31), with the reciprocal of b in fixed point; 0 where b is */
GLOW_INLINE int32_t glow_q31_quotient(int32_t a, int32_t b, int32_t mul, int32_t shift) {
  if (a == 0 || b == 0) {
    return 0;
  }
  const int32_t top = b < 0 ? -a : a;
  const glow_q31_ratio_t ratio = glow_q31_ratio(b < 0 ? -b : b, 31);
  int32_t headroom = 0;
  while (((uint32_t)(top < 0 ? ~top : top) << headroom) < 0x40000000u && headroom < 31) {
    headroom++;
  }
  const int32_t quotient = glow_q31_high(glow_q31_left(top, headroom), ratio.factor);
  const int32_t right = ratio.exponent + headroom - shift;
  return right > 31 ? 0 : glow_q31_scale(quotient, mul, -right);
}

/* clamp(round(v) + zp, lo, hi), half away from zero; v is not NaN. From 2^23 on floats are whole numbers. */
GLOW_INLINE int32_t glow_q31_round_away(float v, int32_t zp, int32_t lo, int32_t hi) {
  const float size = v < 0.0f ? -v : v;
  if (size >= 8388608.0f) {
    const int64_t whole = size >= 4294967296.0f ? INT64_C(4294967296) : (int64_t)size;
    const int64_t code = (v < 0.0f ? -whole : whole) + zp;
    return (int32_t)(code < lo ? lo : (code > hi ? hi : code));
  }
  const int32_t below = (int32_t)size;
  const int32_t whole = below + (size - (float)below >= 0.5f ? 1 : 0);
  const int64_t code = (int64_t)(v < 0.0f ? -whole : whole) + zp;
  return (int32_t)(code < lo ? lo : (code > hi ? hi : code));
}

#endif
