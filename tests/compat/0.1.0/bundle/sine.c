/* SPDX-License-Identifier: MIT-0 */
/* sine, compiled by glowc 0.1.0+e2c21a6b for host: one C function per kernel, one call per layer.
 *
 * model   sha256:98c7ef8ca0cfb085
 * options --opt balanced
 */
#include "sine.h"

#include <string.h>

/* Places the code of the kernels, for example __attribute__((section(".itcm"))). */
#ifndef SINE_HOT_ATTR
#define SINE_HOT_ATTR
#endif
#undef GLOW_HOT
#define GLOW_HOT SINE_HOT_ATTR

#include "glow_numeric.h"
#include "glow_runtime.h"
#include "glow_q31.h"
#include "sine_weights.h"

/* Fully connected layer that ends in TensorFlow Lite's multiplier and shift.
 * Layer (FullyConnected): 0 hidden.
 * Sizes: in 1x1, out 1x15; no operand overlaps another. */
GLOW_KERNEL void sine_fc_s8q31__ref(const int8_t *restrict in, const int8_t *restrict weights,
    const int32_t *restrict bias, const int32_t *restrict mul, const int8_t *restrict shift, int8_t *restrict out) {
  for (int32_t r = 0; r < 1; r++) {
    const int8_t *x = in + r;
    const int8_t *w = weights;
    for (int32_t n = 0; n < 15; n++, w += 1) {
      int32_t acc = bias[n];
      for (int32_t k = 0; k < 1; k++) {
        acc += ((int32_t)x[k] + 128) * (int32_t)w[k];
      }
      out[r * 15 + n] = (int8_t)glow_q31_code(acc, mul[0], shift[0],
          -128, -128, 127);
    }
  }
}

/* Fully connected layer that ends in TensorFlow Lite's multiplier and shift.
 * Layer (FullyConnected): 1 y.
 * Sizes: in 1x15, out 1x1; no operand overlaps another. */
GLOW_KERNEL void sine_fc_s8q31_2__ref(const int8_t *restrict in, const int8_t *restrict weights,
    const int32_t *restrict bias, const int32_t *restrict mul, const int8_t *restrict shift, int8_t *restrict out) {
  for (int32_t r = 0; r < 1; r++) {
    const int8_t *x = in + r * 15;
    const int8_t *w = weights;
    for (int32_t n = 0; n < 1; n++, w += 15) {
      int32_t acc = bias[n];
      for (int32_t k = 0; k < 15; k++) {
        acc += ((int32_t)x[k] + 128) * (int32_t)w[k];
      }
      out[r + n] = (int8_t)glow_q31_code(acc, mul[0], shift[0],
          0, -128, 127);
    }
  }
}


GLOW_HOT static void sine_infer(uint8_t *arena) {
  /* 0: FullyConnected hidden */
  GLOW_LAYER_BEGIN(sine, 0u);
  sine_fc_s8q31__ref((const int8_t *)(arena + 16), sine_w_hidden_weights, sine_w_hidden_bias, sine_w_hidden_mul, sine_w_hidden_shift, (int8_t *)(arena + 0));
  GLOW_LAYER_END(sine, 0u);
  GLOW_LAYER_BARRIER();
  /* 1: FullyConnected y */
  GLOW_LAYER_BEGIN(sine, 1u);
  sine_fc_s8q31_2__ref((const int8_t *)(arena + 0), sine_w_y_1_weights, sine_w_y_1_bias, sine_w_y_1_mul, sine_w_y_1_shift, (int8_t *)(arena + 16));
  GLOW_LAYER_END(sine, 1u);
  GLOW_LAYER_BARRIER();
}

static int sine_check(const void *arena, size_t arena_bytes) {
  if (arena == NULL) {
    return GLOW_ERROR_NULL;
  }
  if (arena_bytes < SINE_ARENA_BYTES) {
    return GLOW_ERROR_ARENA_SIZE;
  }
  return (uintptr_t)arena % SINE_ARENA_ALIGN == 0u ? GLOW_OK : GLOW_ERROR_ARENA_ALIGN;
}

GLOW_HOT int sine_run_in(void *arena, size_t arena_bytes) {
  const int status = sine_check(arena, arena_bytes);
  if (status == GLOW_OK) {
    sine_infer((uint8_t *)arena);
  }
  return status;
}

GLOW_HOT int sine_invoke_in(void *arena, size_t arena_bytes, const int8_t *input, int8_t *output) {
  const int status = sine_check(arena, arena_bytes);
  if (status != GLOW_OK) {
    return status;
  }
  if (input == NULL || output == NULL) {
    return GLOW_ERROR_NULL;
  }
  uint8_t *bytes = (uint8_t *)arena;
  memcpy(bytes + SINE_INPUT_OFFSET_BYTES, input, SINE_INPUT_BYTES);
  sine_infer(bytes);
  memcpy(output, bytes + SINE_OUTPUT_OFFSET_BYTES, SINE_OUTPUT_BYTES);
  return GLOW_OK;
}

/* SINE_NO_STATIC_ARENA leaves out the arena of this file and what uses it. SINE_ARENA_ATTR places it, for
 * example __attribute__((section(".dtcm"))). */
#ifndef SINE_NO_STATIC_ARENA
#ifndef SINE_ARENA_ATTR
#define SINE_ARENA_ATTR
#endif

static _Alignas(16) uint8_t sine_arena[SINE_ARENA_BYTES] SINE_ARENA_ATTR;

GLOW_HOT int sine_invoke(const int8_t *input, int8_t *output) {
  return sine_invoke_in(sine_arena, sizeof sine_arena, input, output);
}

int8_t *sine_input(void) {
  return (int8_t *)(sine_arena + SINE_INPUT_OFFSET_BYTES);
}

int8_t *sine_output(void) {
  return (int8_t *)(sine_arena + SINE_OUTPUT_OFFSET_BYTES);
}

GLOW_HOT int sine_run(void) {
  return sine_run_in(sine_arena, sizeof sine_arena);
}
#endif

const char *sine_layer_name(uint32_t layer) {
  static const char *const names[] = {
      "hidden",
      "y",
      ""};
  return names[layer < SINE_LAYER_COUNT ? layer : SINE_LAYER_COUNT];
}
