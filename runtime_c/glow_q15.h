/* SPDX-License-Identifier: MIT-0 */
/* Logistic and tanh of int16 numbers by TensorFlow Lite's table of 256 entries, and what its recurrent layers add up with.
 *
 * table[i] = 2^16 / (1 + exp(-i / 24)). The right shift of a negative number is arithmetic. */
#ifndef GLOW_Q15_H
#define GLOW_Q15_H

#include "glow_q31.h"
#include "glow_q31_root.h"

/* x * mul / 2^shift, rounded half up: 512 a step of the table */
GLOW_INLINE int32_t glow_q15_step(int32_t x, int32_t mul, int32_t shift) {
  return (x * mul + (int32_t)((1u << shift) >> 1)) >> shift;
}

/* 2^15 / (1 + exp(-x)) */
GLOW_INLINE int32_t glow_q15_logistic(int32_t x, int32_t mul, int32_t shift, const uint16_t *table) {
  const int32_t scaled = glow_q15_step(x, mul, shift);
  const uint32_t size = (uint32_t)(scaled < 0 ? -scaled : scaled), at = size >> 9;
  uint32_t y = 0x7FFFu << 10;
  if (at < 255u) {
    y = ((uint32_t)table[at] << 9) + (size & 511u) * ((uint32_t)table[at + 1u] - table[at]);
  }
  return (int32_t)((scaled < 0 ? (1u << 25) - y + 511u : y + 512u) >> 10);
}

/* 2^15 tanh(x) */
GLOW_INLINE int32_t glow_q15_tanh(int32_t x, int32_t mul, int32_t shift, const uint16_t *table) {
  const int32_t scaled = glow_q15_step(x, mul, shift);
  const uint32_t size = (uint32_t)(scaled < 0 ? -scaled : scaled), at = size >> 8;
  int32_t y = 0xFFFF << 8;
  if (at < 255u) {
    y = (int32_t)(((uint32_t)table[at] << 8) + (size & 255u) * ((uint32_t)table[at + 1u] - table[at]));
  }
  y -= 1 << 23;
  return (scaled < 0 ? 127 - y : y + 128) >> 8;
}

/* The same of gates of 12 fraction bits and of what they let in, and a number times a factor, saturated to int16, as functions
 * of their own: a cell of an LSTM has many of them. */
GLOW_HOT __attribute__((unused, noinline)) static int32_t glow_q15_gate(int32_t x, const uint16_t *table) {
  return glow_q15_logistic(x, 3, 0, table);
}
GLOW_HOT __attribute__((unused, noinline)) static int32_t glow_q15_new(int32_t x, int32_t mul, int32_t shift,
                                                                      const uint16_t *table) {
  return glow_q15_tanh(x, mul, shift, table);
}
GLOW_HOT __attribute__((unused, noinline)) static int32_t glow_q15_scaled(int32_t x, int32_t mul, int32_t shift) {
  return glow_q31_code(x, mul, shift, 0, INT16_MIN, INT16_MAX);
}

/* a table of 513 entries at x, saturated to int16: 128 a step, linear between entries */
GLOW_INLINE int32_t glow_q15_lookup(int32_t x, const int16_t *table) {
  const int32_t at = glow_clamp(x, INT16_MIN, INT16_MAX);
  const int16_t *entry = table + 256 + (at >> 7);
  return entry[0] + (((entry[1] - entry[0]) * (at & 127) + 64) >> 7);
}

/* x, saturated to int16 */
GLOW_INLINE int32_t glow_q15_saturated(int32_t x) { return glow_clamp(x, INT16_MIN, INT16_MAX); }

#endif
