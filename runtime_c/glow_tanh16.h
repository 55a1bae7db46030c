/* SPDX-License-Identifier: MIT-0 */
/* tanh between codes of 16 bits (glowc/graph/tanh_codes.py). Right shifts of negative numbers are arithmetic. */
#ifndef GLOW_TANH16_H
#define GLOW_TANH16_H

#include "glow_numeric.h"

/* The upper half of a product, rounded half up. */
GLOW_INLINE int32_t glow_tanh16_upper(int32_t a, int32_t b) { return (int32_t)(((int64_t)a * b + ((int64_t)1 << 31)) >> 32); }

/* x * 2^shift, saturated */
GLOW_INLINE int32_t glow_tanh16_up(int32_t x, int32_t shift) {
  const int32_t up = (int32_t)((uint32_t)x << shift);
  return up >> shift == x ? up : x < 0 ? INT32_MIN : INT32_MAX;
}

/* 2^16 of the code: the row of the table around the next multiple of 2^25, a polynomial of what is left. */
GLOW_INLINE int32_t glow_tanh16_sum(int32_t code, const int32_t *table, int32_t mul, int32_t shift, int32_t scale,
                                    int32_t start) {
  const int32_t x = glow_tanh16_up((int32_t)((int64_t)code * mul >> 15), shift);
  const int32_t *entry = table + 4 * (64 + (((x >> 24) + 1) >> 1));
  const int32_t part = (int32_t)((uint32_t)x << 7);
  int32_t y = entry[2] + glow_tanh16_upper(part, entry[3]);
  y = entry[1] + glow_tanh16_upper(part, y);
  y = entry[0] + glow_tanh16_upper(part, y);
  const int64_t sum = ((int64_t)y * scale >> 31) + start;
  return sum > INT32_MAX ? INT32_MAX : (int32_t)sum;
}

/* The code of a sum that is near the next one: as it is rounded, or the other one. `fixes` rises. */
GLOW_HOT __attribute__((unused, noinline)) static int32_t glow_tanh16_fixed(int32_t sum, int32_t code, int32_t near,
                                                                           const int16_t *fixes, int32_t count) {
  int32_t low = 0;
  int32_t high = count;
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (fixes[middle] < code) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const int is_fixed = low < count && fixes[low] == code;
  return (sum >> 16) - (((sum & 0xFFFF) >= near) == is_fixed ? 1 : 0);
}
GLOW_INLINE int32_t glow_tanh16_code(int32_t sum, int32_t code, int32_t near, const int16_t *fixes, int32_t count) {
  return (sum & 0xFFFF) < 2 * near ? glow_tanh16_fixed(sum, code, near, fixes, count) : sum >> 16;
}

#endif
