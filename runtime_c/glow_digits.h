/* SPDX-License-Identifier: MIT-0 */
/* Floats as integers of 24 bits, for products with codes by blocks: in units of the largest magnitude of their block / 2^23,
 * as three digits of 8 bits with a sign. Sums of products are exact in each digit; a block ends in floats. */
#ifndef GLOW_DIGITS_H
#define GLOW_DIGITS_H

#include "glow_runtime.h"

#define GLOW_DIGITS_TOP 8355000.0f /* 127 in each digit is 8355711 */
#define GLOW_DIGITS_STEP 16        /* inputs that have their high digits together, then the middle ones, then the low ones */

/* `starts`: what the sums of the three digits start with */
typedef struct {
  float unit;
  int32_t starts[3];
} glow_digits_block_t;

/* The stream of weights; `steps` of 16 inputs in each block; codes of `bits`; `zeros`: words of zero points in a block;
 * limits of outputs. */
typedef struct {
  const uint32_t *weights;
  int32_t blocks, steps, bits, zeros, outputs;
  float lo, hi;
} glow_digits_layer_t;

/* Returns the unit of a block; NaN if an input is none of the numbers. */
GLOW_INLINE float glow_digits_unit(const float *x, int32_t count) {
  float max = 1e-30f;
  float none = 0.0f;
  for (int32_t i = 0; i < count; i++) {
    const float v = x[i] < 0.0f ? -x[i] : x[i];
    max = v > max ? v : max;
    none += v * 0.0f;
  }
  return max / GLOW_DIGITS_TOP + none;
}

/* x in units, rounded; 0 of what is none */
GLOW_INLINE int32_t glow_digits_whole(float x, float per_unit) {
  const float exact = x * per_unit;
  const float v = exact + (exact < 0.0f ? -0.5f : 0.5f);
  return v > -GLOW_DIGITS_TOP - 8.0f && v < GLOW_DIGITS_TOP + 8.0f ? (int32_t)v : 0;
}

GLOW_INLINE int32_t glow_digits_lowest(int32_t v) { return ((v + 128) & 255) - 128; }

/* Writes the digits of `count` inputs, the last ones 0 up to `block`; starts: sums of digits times -zero. */
GLOW_INLINE void glow_digits_block(glow_digits_block_t *info, int8_t *to, const float *x, int32_t count, int32_t block,
                                   int32_t zero) {
  int32_t sums[3] = {0, 0, 0};
  info->unit = glow_digits_unit(x, count);
  const float per_unit = 1.0f / info->unit;
  for (int32_t i = 0; i < block; i++) {
    const int32_t v = i < count ? glow_digits_whole(x[i], per_unit) : 0;
    const int32_t low = glow_digits_lowest(v);
    const int32_t rest = (v - low) / 256;
    const int32_t middle = glow_digits_lowest(rest);
    const int32_t high = (rest - middle) / 256;
    int8_t *digits = to + i / GLOW_DIGITS_STEP * 3 * GLOW_DIGITS_STEP + i % GLOW_DIGITS_STEP;
    digits[0] = (int8_t)high;
    digits[GLOW_DIGITS_STEP] = (int8_t)middle;
    digits[2 * GLOW_DIGITS_STEP] = (int8_t)low;
    sums[0] -= high;
    sums[1] -= middle;
    sums[2] -= low;
  }
  for (int32_t i = 0; i < 3; i++) {
    info->starts[i] = sums[i] * zero;
  }
}

/* Writes a row of `inputs`, and what its blocks start with. */
__attribute__((unused)) static void glow_digits_row(glow_digits_block_t *info, int8_t *to, const float *x, int32_t inputs,
                                               int32_t block, int32_t zero) {
  for (int32_t k = 0; k < inputs; k += block, to += 3 * block, info++) {
    glow_digits_block(info, to, x + k, inputs - k < block ? inputs - k : block, block, zero);
  }
}

/* All outputs of rows, `lanes` at a time: TILE(totals, weights, info, digits, layer, bits) computes those of one row, and the
 * weights of a tile are read once for all rows. */
#define GLOW_DIGITS_ROWS(lanes, TILE, bits_)                                                                              \
  do {                                                                                                                    \
    const uint32_t *w = layer->weights;                                                                                   \
    const int32_t words = (lanes) + layer->blocks * ((lanes) + layer->zeros + layer->steps * (bits_) / 2 * (lanes));      \
    for (int32_t n = 0; n < layer->outputs; n += (lanes), w += words) {                                                   \
      const int32_t count = layer->outputs - n < (lanes) ? layer->outputs - n : (lanes);                                  \
      for (int32_t r = 0; r < rows; r++) {                                                                                \
        float totals[lanes];                                                                                              \
        TILE(totals, w, info + r * layer->blocks, x + r * layer->blocks * layer->steps * 3 * GLOW_DIGITS_STEP, layer, bits_); \
        for (int32_t i = 0; i < count; i++) {                                                                             \
          to[r * layer->outputs + n + i] = glow_limited(totals[i], layer->lo, layer->hi);                                 \
        }                                                                                                                 \
      }                                                                                                                   \
    }                                                                                                                     \
  } while (0)

/* A function of this name for codes of any bits. */
#define GLOW_DIGITS_LAYER(name, TARGET, lanes, TILE)                                                                      \
  __attribute__((unused)) TARGET static void name(const glow_digits_layer_t *layer, const glow_digits_block_t *info,      \
                                                  const int8_t *x, float *to, int32_t rows) {                             \
    if (layer->bits == 4) {                                                                                               \
      GLOW_DIGITS_ROWS(lanes, TILE, 4);                                                                                   \
    } else if (layer->bits == 2) {                                                                                        \
      GLOW_DIGITS_ROWS(lanes, TILE, 2);                                                                                   \
    } else {                                                                                                              \
      GLOW_DIGITS_ROWS(lanes, TILE, 8);                                                                                   \
    }                                                                                                                     \
  }

#endif
