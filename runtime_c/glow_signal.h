/* SPDX-License-Identifier: MIT-0 */
/* Whole numbers of the signal operators: highest bits, rounded roots, logarithms by a table, gains by parabolas. */
#ifndef GLOW_SIGNAL_H
#define GLOW_SIGNAL_H

#include "glow_numeric.h"

/* how many bits x has without leading zeros */
GLOW_INLINE int32_t glow_bits_u32(uint32_t x) {
#if defined(__GNUC__)
  return x == 0 ? 0 : 32 - __builtin_clz((unsigned)x);
#else
  int32_t bits = 0;
  for (; x != 0; x >>= 1) {
    bits++;
  }
  return bits;
#endif
}

/* The root of x rounded to nearest, at most 2^16 - 1: two bits of x give one of the root. */
GLOW_INLINE uint32_t glow_root_u32(uint32_t x) {
  uint32_t root = 0, rest = x;
  for (uint32_t bit = 1u << 30; bit != 0; bit >>= 2) {
    const uint32_t trial = root + bit;
    root >>= 1;
    if (rest >= trial) {
      rest -= trial;
      root += bit;
    }
  }
  return rest > root && root != UINT16_MAX ? root + 1 : root;
}

/* The same of 64 bits, at most 2^32 - 1. */
GLOW_INLINE uint32_t glow_root_u64(uint64_t x) {
  if ((x >> 32) == 0) {
    return glow_root_u32((uint32_t)x);
  }
  uint64_t root = 0, rest = x;
  const int32_t top = (31 + glow_bits_u32((uint32_t)(x >> 32))) & ~1;
  for (uint64_t bit = (uint64_t)1 << top; bit != 0; bit >>= 2) {
    const uint64_t trial = root + bit;
    root >>= 1;
    if (rest >= trial) {
      rest -= trial;
      root += bit;
    }
  }
  return (uint32_t)(rest > root && root != UINT32_MAX ? root + 1 : root);
}

/* 2^16 * ln(x), x > 1: the highest bit, the bits below it, and the table's line between log2(1 + k / 128) - k / 128 */
GLOW_INLINE uint32_t glow_log_u32(uint32_t x, const uint16_t *table) {
  const int32_t whole = glow_bits_u32(x) - 1;
  const uint32_t rest = x - ((uint32_t)1 << whole);
  const uint32_t fraction = whole < 16 ? rest << (16 - whole) : rest >> (whole - 16);
  const uint32_t segment = fraction >> 9;
  const int32_t line = (((int32_t)table[segment + 1] - table[segment]) * (int32_t)(fraction & 511)) >> 16;
  const uint32_t log2 = ((uint32_t)whole << 16) + fraction + (uint32_t)(table[segment] + line);
  return (uint32_t)(((uint64_t)45426 * log2 + (1u << 15)) >> 16);
}

/* The gain for a noise: the first three are given, then a parabola for each highest bit; sums modulo 2^32. */
GLOW_INLINE uint32_t glow_pcan_gain(uint32_t noise, const int16_t *gains) {
  if (noise <= 2) {
    return (uint32_t)(int32_t)gains[noise];
  }
  const int32_t bits = glow_bits_u32(noise);
  const int16_t *curve = gains + 4 * bits - 6;
  const uint32_t rest = (bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 1023;
  const uint32_t slope = (uint32_t)((curve[2] * (int32_t)rest) >> 5) + ((uint32_t)(int32_t)curve[1] << 5);
  const uint32_t sum = slope * rest + (1u << 14);
  int32_t high;
  memcpy(&high, &sum, sizeof high);
  return (uint32_t)(int32_t)(int16_t)((high >> 15) + curve[0]);
}

#endif
