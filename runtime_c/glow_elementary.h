/* SPDX-License-Identifier: MIT-0 */
/* exp, tanh, erf and what is made of them, of float32 numbers or vectors, without libm.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2, n by adding 1.5 * 2^23; exp(r) - 1 = r + r^2 q(r), q a polynomial of degree 4.
 * erf(|x|) = 1 - exp(-|x| u(|x|)), u a polynomial of degree 7 up to |x| = 4, beyond which erf is 1. Coefficients: least
 * largest relative error, fitted in float64. What is not a number stays so. Largest errors (tests/unit/test_elementary.py,
 * steps over all bit patterns, with each of the sets of operations), in units in the last place:
 *
 *   exp 2, expm1 3, erf 3, sigmoid 4, tanh 5; what is less than 2^-125 may be 0 or as much
 *   gelu 1.6e-7 and gelu_tanh 2e-7 of |x|
 */
#ifndef GLOW_ELEMENTARY_H
#define GLOW_ELEMENTARY_H

#include "glow_numeric.h"

/* _signed and _power of a single float */
GLOW_INLINE float glow_one_signed(float x, float y) {
  uint32_t bits;
  uint32_t sign;
  memcpy(&bits, &x, sizeof bits);
  memcpy(&sign, &y, sizeof sign);
  bits = (bits & 0x7FFFFFFFu) | (sign & 0x80000000u);
  memcpy(&x, &bits, sizeof bits);
  return x;
}
GLOW_INLINE float glow_one_power(float t, uint32_t bias) {
  uint32_t bits;
  memcpy(&bits, &t, sizeof bits);
  bits = (bits << 23) + bias;
  memcpy(&t, &bits, sizeof bits);
  return t;
}

/* The functions P##_exp ... of the type V by what the header that includes this one gives: P##_all(c), _add, _mul,
 * _ratio of two, _plus(x, c), _times(x, c), _step(p, r, c) = p * r + c, _from(x, c) and _up_to(x, c), the larger and
 * the smaller, _abs, _signed(x, y) = x with the sign of y, and _power(t, bias): the float of the bits (t << 23) + bias. */
#define GLOW_ELEMENTARY(P, V)                                                                      \
  typedef struct {                                                                                 \
    V less_one; /* exp(r) - 1 */                                                                   \
    V n;        /* 1.5 * 2^23 + n */                                                               \
  } P##_parts_t;                                                                                   \
  GLOW_INLINE P##_parts_t P##_parts(V x) {                                                       \
    const V n = P##_plus(P##_times(x, 1.44269504f), 12582912.0f);                                  \
    const V whole = P##_plus(n, -12582912.0f);                                                     \
    const V r = P##_add(P##_add(x, P##_times(whole, -0.693359375f)),                               \
                        P##_times(whole, 2.12194440e-4f));                                         \
    V q = P##_step(r, P##_all(0.0013882507f), 0.008366596f);                                       \
    q = P##_step(q, r, 0.0416672f);                                                                \
    q = P##_step(q, r, 0.16666543f);                                                               \
    q = P##_step(q, r, 0.49999997f);                                                               \
    const P##_parts_t parts = {P##_add(r, P##_mul(P##_mul(r, r), q)), n};                          \
    return parts;                                                                                  \
  }                                                                                                \
  /* exp(x) for x <= 89; 2^(n - 1) is 0 for the least n */                                         \
  GLOW_INLINE V P##_exp_below(V x) {                                                             \
    const P##_parts_t parts = P##_parts(P##_from(x, -87.33f));                                     \
    const V y = P##_mul(P##_plus(parts.less_one, 1.0f), P##_power(parts.n, 0x3F000000));           \
    return P##_add(y, y);                                                                          \
  }                                                                                                \
  GLOW_INLINE V P##_exp(V x) { return P##_exp_below(P##_up_to(x, 89.0f)); }                      \
  /* exp(x) - 1 for |x| <= 60 */                                                                   \
  GLOW_INLINE V P##_expm1(V x) {                                                                 \
    const P##_parts_t parts = P##_parts(x);                                                        \
    const V power = P##_power(parts.n, 0x3F800000);                                                \
    return P##_add(P##_mul(parts.less_one, power), P##_plus(power, -1.0f));                        \
  }                                                                                                \
  GLOW_INLINE V P##_tanh(V x) {                                                                  \
    const V e = P##_expm1(P##_from(P##_up_to(P##_add(x, x), 20.0f), -20.0f));                      \
    return P##_ratio(e, P##_plus(e, 2.0f));                                                     \
  }                                                                                                \
  GLOW_INLINE V P##_erf(V x) {                                                                   \
    const V a = P##_up_to(P##_abs(x), 4.0f);                                                       \
    V u = P##_step(a, P##_all(4.070793e-05f), -0.00038100072f);                                    \
    u = P##_step(u, a, 0.0012517469f);                                                             \
    u = P##_step(u, a, 0.00020571567f);                                                            \
    u = P##_step(u, a, -0.019321715f);                                                             \
    u = P##_step(u, a, 0.10281441f);                                                               \
    u = P##_step(u, a, 0.63661647f);                                                               \
    u = P##_step(u, a, 1.1283792f);                                                                \
    return P##_signed(P##_expm1(P##_mul(P##_times(a, -1.0f), u)), x);                              \
  }                                                                                                \
  GLOW_INLINE V P##_swish(V x, float alpha) {                                                    \
    const V e = P##_exp_below(P##_up_to(P##_times(x, -alpha), 87.0f));                             \
    return P##_ratio(x, P##_plus(e, 1.0f));                                                     \
  }                                                                                                \
  GLOW_INLINE V P##_quick_gelu(V x, float alpha) { return P##_swish(x, alpha); }                 \
  GLOW_INLINE V P##_sigmoid(V x) {                                                               \
    const V e = P##_exp_below(P##_up_to(P##_times(x, -1.0f), 87.0f));                              \
    return P##_ratio(P##_all(1.0f), P##_plus(e, 1.0f));                                         \
  }                                                                                                \
  GLOW_INLINE V P##_gelu(V x) {                                                                  \
    return P##_mul(P##_times(x, 0.5f), P##_plus(P##_erf(P##_times(x, 0.70710678f)), 1.0f));        \
  }                                                                                                \
  GLOW_INLINE V P##_gelu_tanh(V x) {                                                             \
    const V u = P##_mul(P##_mul(x, x), P##_times(x, 0.0713548163f));                               \
    return P##_mul(x, P##_sigmoid(P##_add(u, P##_times(x, 1.59576912f))));                         \
  }                                                                                                \
  GLOW_INLINE V P##_elu(V x, float alpha) {                                                      \
    const V e = P##_expm1(P##_from(P##_up_to(x, 0.0f), -60.0f));                                   \
    return P##_add(P##_from(x, 0.0f), P##_times(e, alpha));                                        \
  }                                                                                                \
  GLOW_INLINE V P##_selu(V x, float alpha, float gamma) {                                        \
    return P##_times(P##_elu(x, alpha), gamma);                                                    \
  }

#endif
