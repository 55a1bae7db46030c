/* SPDX-License-Identifier: MIT-0 */
/* sine: a neural network compiled by glowc 0.1.0+e2c21a6b for host.
 *
 * model   sha256:98c7ef8ca0cfb085
 * options --opt balanced
 *
 * Call sine_invoke() with your own buffers, or fill sine_input(), call sine_run() and read
 * sine_output() without a copy. Nothing is allocated at run time; README.md shows how.
 */
#ifndef SINE_H
#define SINE_H

#include <stddef.h>
#include <stdint.h>

#include "glow_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every byte that an inference writes, except the stack. */
#define SINE_ARENA_BYTES 17u
#define SINE_ARENA_ALIGN 16u
/* Constant data: weights, biases, scales and tables. */
#define SINE_WEIGHTS_BYTES 104u
#define SINE_LAYER_COUNT 2u
#define SINE_INPUT_COUNT 1u
#define SINE_OUTPUT_COUNT 1u

/* input "x": int8_t 1 x 1, real = 0.0246399418 * (q + 128) */
#define SINE_INPUT_TYPE int8_t
#define SINE_INPUT_RANK 2u
#define SINE_INPUT_SHAPE {1, 1}
#define SINE_INPUT_ELEMENTS 1u
#define SINE_INPUT_BYTES 1u
#define SINE_INPUT_OFFSET_BYTES 16u
#define SINE_INPUT_SCALE 0.024639942f
#define SINE_INPUT_ZERO_POINT (-128)

/* output "y": int8_t 1 x 1, real = 0.00862745102 * (q - 0) */
#define SINE_OUTPUT_TYPE int8_t
#define SINE_OUTPUT_RANK 2u
#define SINE_OUTPUT_SHAPE {1, 1}
#define SINE_OUTPUT_ELEMENTS 1u
#define SINE_OUTPUT_BYTES 1u
#define SINE_OUTPUT_OFFSET_BYTES 16u
#define SINE_OUTPUT_SCALE 0.008627451f
#define SINE_OUTPUT_ZERO_POINT 0

/* Runs one inference in the arena that belongs to this file. Returns GLOW_OK or GLOW_ERROR_NULL. */
int sine_invoke(const int8_t *input, int8_t *output);

/* The same in the caller's arena: at least SINE_ARENA_BYTES bytes, aligned to SINE_ARENA_ALIGN. Two models that
 * do not run at the same time may share one. Returns GLOW_OK or why not. */
int sine_invoke_in(void *arena, size_t arena_bytes, const int8_t *input, int8_t *output);

/* Zero-copy: the tensors inside the arena that belongs to this file. Write every input before each run (its
 * bytes may be reused during the run); read the outputs before the next one. */
int8_t *sine_input(void);
int8_t *sine_output(void);
int sine_run(void);

/* Zero-copy in the caller's arena: tensors lie at SINE_..._OFFSET_BYTES. */
int sine_run_in(void *arena, size_t arena_bytes);

/* Name of a layer in the user's own words, for profile hooks; "" when out of range. */
const char *sine_layer_name(uint32_t layer);

#ifdef __cplusplus
}
#endif

#endif
