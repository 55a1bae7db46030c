/* SPDX-License-Identifier: MIT-0 */
/* Cells of LSTM and GRU layers of codes: 12 fraction bits of gates (11 of the parts of a GRU's new gate), 15 of their functions
 * and of the state of a GRU, 11 of the cells of an LSTM. The right shift of a negative number is arithmetic. */
#ifndef GLOW_GATES_H
#define GLOW_GATES_H

#include "glow_numeric.h"

/* A table of 513 entries at an int16, 128 a step, linear between entries. */
GLOW_INLINE int32_t glow_gates_lookup(int32_t x, const int16_t *table) {
  const int16_t *entry = table + 256 + (x >> 7);
  return entry[0] + (((entry[1] - entry[0]) * (x & 127) + 64) >> 7);
}

/* The code of the state of a GRU. */
GLOW_INLINE int32_t glow_gates_code(int32_t state, float factor, int32_t zp) {
  return glow_round_clamp((float)state * factor, zp, -128, 127);
}

/* Advances a cell by its gates (input, output, forget, cell); returns the code of the state. */
GLOW_INLINE int32_t glow_lstm_cell(const int32_t *gate, int16_t *cell, const int16_t *sigmoid, const int16_t *tanh_table,
                                   float factor, int32_t zp) {
  const int32_t i = glow_gates_lookup(gate[0], sigmoid);
  const int32_t o = glow_gates_lookup(gate[1], sigmoid);
  const int32_t f = glow_gates_lookup(gate[2], sigmoid);
  const int32_t g = glow_gates_lookup(gate[3], tanh_table);
  const int32_t fresh = (i * g + 8) >> 4;
  const int32_t c = glow_clamp((f * *cell + fresh + 16384) >> 15, INT16_MIN, INT16_MAX);
  *cell = (int16_t)c;
  const int32_t product = o * glow_gates_lookup(glow_clamp(2 * c, INT16_MIN, INT16_MAX), tanh_table);
  return glow_round_clamp((float)product * factor, zp, -128, 127);
}

/* Advances the state of a GRU by its update and new gates; returns its code. */
GLOW_INLINE int32_t glow_gru_update(int32_t update, int32_t fresh, int16_t *state, const int16_t *sigmoid,
                                    const int16_t *tanh_table, float factor, int32_t zp) {
  const int32_t z = glow_gates_lookup(update, sigmoid);
  const int32_t n = glow_gates_lookup(fresh, tanh_table);
  const int32_t h = n + ((z * (*state - n) + 16384) >> 15);
  *state = (int16_t)h;
  return glow_gates_code(h, factor, zp);
}

/* Advances the state by its gates (update, reset, new of the inputs, new of the state); returns its code. */
GLOW_INLINE int32_t glow_gru_cell(const int32_t *gate, int16_t *state, const int16_t *sigmoid, const int16_t *tanh_table,
                                  float factor, int32_t zp) {
  const int32_t sum = gate[2] + ((glow_gates_lookup(gate[1], sigmoid) * gate[3] + 16384) >> 15);
  return glow_gru_update(gate[0], glow_clamp(2 * sum, INT16_MIN, INT16_MAX), state, sigmoid, tanh_table, factor, zp);
}

/* The code of a state that the reset gate leaves. */
GLOW_INLINE int32_t glow_gru_kept(int32_t reset, int32_t state, const int16_t *sigmoid, float factor, int32_t zp) {
  const int32_t r = glow_gates_lookup(reset, sigmoid);
  return glow_gates_code((r * state + 16384) >> 15, factor, zp);
}

#endif
