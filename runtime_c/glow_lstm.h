/* SPDX-License-Identifier: MIT-0 */
/* A cell of an LSTM of codes: 12 fraction bits of gates, 15 of their functions, 11 of cells. The right shift of a negative number
 * is arithmetic. */
#ifndef GLOW_LSTM_H
#define GLOW_LSTM_H

#include "glow_numeric.h"

/* A table of 513 entries at an int16, 128 a step, linear between entries. */
GLOW_INLINE int32_t glow_lstm_lookup(int32_t x, const int16_t *table) {
  const int16_t *entry = table + 256 + (x >> 7);
  return entry[0] + (((entry[1] - entry[0]) * (x & 127) + 64) >> 7);
}

/* Advances a cell by its gates (input, output, forget, cell); returns the code of the state. */
GLOW_INLINE int32_t glow_lstm_cell(const int32_t *gate, int16_t *cell, const int16_t *sigmoid, const int16_t *tanh_table,
                                   float factor, int32_t zp) {
  const int32_t i = glow_lstm_lookup(gate[0], sigmoid);
  const int32_t o = glow_lstm_lookup(gate[1], sigmoid);
  const int32_t f = glow_lstm_lookup(gate[2], sigmoid);
  const int32_t g = glow_lstm_lookup(gate[3], tanh_table);
  const int32_t fresh = (i * g + 8) >> 4;
  const int32_t c = glow_clamp((f * *cell + fresh + 16384) >> 15, INT16_MIN, INT16_MAX);
  *cell = (int16_t)c;
  const int32_t product = o * glow_lstm_lookup(glow_clamp(2 * c, INT16_MIN, INT16_MAX), tanh_table);
  return glow_round_clamp((float)product * factor, zp, -128, 127);
}

#endif
