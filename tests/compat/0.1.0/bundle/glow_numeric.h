/* SPDX-License-Identifier: MIT-0 */
/* Exact scaling of integers: float32 product, round half to even, zero point, saturation.
 *
 * Every function gives the same bits on every CPU. With an FPU the float32 product is rounded by adding
 * 1.5 * 2^23 (after clamping, so the sum stays in range); without one, integer arithmetic rounds exactly as
 * IEEE 754 does. GLOW_SOFT_REQUANT=1 selects the integer form on any CPU.
 */
#ifndef GLOW_NUMERIC_H
#define GLOW_NUMERIC_H

#include "glow_numeric.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where functions lie: NAME.c defines this as the firmware's NAME_HOT_ATTR. */
#ifndef GLOW_HOT
#define GLOW_HOT
#endif
#define GLOW_INLINE GLOW_HOT static inline

/* A kernel is not inlined where it is called once: there it would share registers with the calls around it. */
#if defined(__GNUC__) && !defined(__OPTIMIZE_SIZE__)
#define GLOW_KERNEL GLOW_HOT __attribute__((noinline)) static
#else
#define GLOW_KERNEL GLOW_HOT static
#endif

#ifdef __FAST_MATH__
#error "glowc: results are exact only without -ffast-math"
#endif

#ifndef GLOW_SOFT_REQUANT
#if defined(__arm__) && !defined(__ARM_FP)
#define GLOW_SOFT_REQUANT 1
#else
#define GLOW_SOFT_REQUANT 0
#endif
#endif

/* Ends a float expression: the compiler cannot contract what stands before with what follows (fused
 * multiply-add would skip a rounding). Costs no instruction. */
GLOW_INLINE float glow_rounded(float x) {
#if defined(__GNUC__) && defined(__SSE__)
  __asm__("" : "+x"(x));
#elif defined(__GNUC__) && defined(__aarch64__)
  __asm__("" : "+w"(x));
#elif defined(__GNUC__) && defined(__ARM_FP)
  __asm__("" : "+t"(x));
#elif defined(__GNUC__)
  __asm__("" : "+r"(x));
#else
  volatile float stored = x;
  x = stored;
#endif
  return x;
}

/* x between two limits; NaN stays. */
GLOW_INLINE float glow_limited(float x, float low, float high) { return x < low ? low : (x > high ? high : x); }

/* x * factor + term, rounded once; x is a code. Without the instruction in double, where the product is exact: a sum
 * halfway between two floats is moved to the side of what double left out of it. */
GLOW_INLINE float glow_fma(float x, float factor, float term) {
#if defined(__ARM_FEATURE_FMA) || defined(__FMA__)
  return __builtin_fmaf(x, factor, term);
#else
  const double product = (double)x * (double)factor;
  double sum = product + (double)term;
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if ((bits & 0x1FFFFFFFu) == 0x10000000u) {
    const double part = sum - product;
    const double rest = (product - (sum - part)) + ((double)term - part);
    if (rest > 0.0 || rest < 0.0) {
      bits = (rest > 0.0) == (sum > 0.0) ? bits + 1u : bits - 1u;
      memcpy(&sum, &bits, sizeof sum);
    }
  }
  return (float)sum;
#endif
}

/* The nearest number of float16, half to even; from 65520 on infinity. */
GLOW_INLINE float glow_half(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits & 0x80000000u;
  bits ^= sign;
  if (bits < 0x38800000u) { /* below 2^-14: a multiple of 2^-24, which is the last place of 0.5 */
    const float half = 0.5f;
    float sum;
    memcpy(&sum, &bits, sizeof sum);
    sum = glow_rounded(sum + half) - half;
    memcpy(&bits, &sum, sizeof bits);
  } else if (bits >= 0x477FF000u) {
    bits = bits > 0x7F800000u ? bits : 0x7F800000u;
  } else {
    bits = (bits + 0xFFFu + (bits >> 13 & 1u)) & 0xFFFFE000u;
  }
  bits |= sign;
  memcpy(&x, &bits, sizeof x);
  return x;
}

GLOW_INLINE int32_t glow_clamp(int32_t x, int32_t lo, int32_t hi) {
  return x < lo ? lo : (x > hi ? hi : x);
}

/* clamp(rne(v) + zp, lo, hi); |lo - zp| and |hi - zp| below 2^22; v is not NaN. */
GLOW_INLINE int32_t glow_round_clamp(float v, int32_t zp, int32_t lo, int32_t hi) {
  const float low = (float)(lo - zp);
  const float high = (float)(hi - zp);
  const float bounded = v < low ? low : (v > high ? high : v);
  const float magic = glow_rounded(bounded) + 12582912.0f;
  int32_t bits;
  memcpy(&bits, &magic, sizeof bits);
  return bits - 0x4B400000 + zp;
}

#if GLOW_SOFT_REQUANT
GLOW_INLINE uint32_t glow_bit_length(uint32_t x) {
#if defined(__GNUC__)
  return x != 0u ? 32u - (uint32_t)__builtin_clz(x) : 0u;
#else
  uint32_t n = 0u;
  for (; x != 0u; x >>= 1) {
    n++;
  }
  return n;
#endif
}

/* x / 2^shift for x up to 2^31, rounded half to even; shift may be 0 and more than 31. */
GLOW_INLINE uint32_t glow_shift_rne(uint32_t x, uint32_t shift) {
  if (shift == 0u) {
    return x;
  }
  if (shift > 31u) {
    return 0u;
  }
  const uint32_t half = (uint32_t)1 << (shift - 1u);
  const uint32_t rest = x & ((half << 1) - 1u);
  const uint32_t whole = x >> shift;
  return whole + (uint32_t)(rest > half || (rest == half && (whole & 1u) != 0u));
}

/* rne(float32(acc) * scale) + zp, saturated: the float32 conversion and product are rounded to 24 bits. */
GLOW_INLINE int32_t glow_requant(int32_t acc, float scale, int32_t zp, int32_t lo, int32_t hi) {
  uint32_t bits;
  memcpy(&bits, &scale, sizeof bits);
  const uint32_t biased = (bits >> 23) & 0xFFu;
  const uint32_t mantissa = (bits & 0x7FFFFFu) | (biased != 0u ? 0x800000u : 0u);
  int32_t power = (biased != 0u ? (int32_t)biased : 1) - 150; /* scale = mantissa * 2^power */
  uint32_t a = acc < 0 ? 0u - (uint32_t)acc : (uint32_t)acc;
  if (a >= 0x1000000u) {
    const uint32_t over = glow_bit_length(a) - 24u;
    a = glow_shift_rne(a, over);
    power += (int32_t)over;
  }
  const uint64_t product = (uint64_t)a * mantissa;
  const uint32_t high = (uint32_t)(product >> 32);
  uint32_t top = (uint32_t)product;
  if (high != 0u) { /* the upper 32 bits, the last of which says whether one below is set */
    const uint32_t down = glow_bit_length(high);
    const uint32_t lost = top << (32u - down);
    top = high << (32u - down) | top >> down | (uint32_t)(lost != 0u);
    power += (int32_t)down;
  }
  if (top >= 0x1000000u) {
    const uint32_t over = glow_bit_length(top) - 24u;
    top = glow_shift_rne(top, over);
    power += (int32_t)over;
  }
  if (power < 0) {
    top = glow_shift_rne(top, (uint32_t)-power);
  } else {
    top = power > 29 || top > 0x3FFFFFFFu >> power ? (top != 0u ? 0x3FFFFFFFu : 0u) : top << power;
  }
  const int32_t whole = (int32_t)top;
  return glow_clamp(((acc < 0) != ((bits >> 31) != 0u) ? -whole : whole) + zp, lo, hi);
}
#else
/* clamp(rne(float32(acc) * scale) + zp, lo, hi) */
GLOW_INLINE int32_t glow_requant(int32_t acc, float scale, int32_t zp, int32_t lo, int32_t hi) {
  return glow_round_clamp((float)acc * scale, zp, lo, hi);
}
#endif

#endif
