/* SPDX-License-Identifier: MIT-0 */
/* dense: a neural network compiled by glowc for cortex-m3.
 *
 * model   sha256:...
 * options --opt size
 *
 * Call dense_invoke() with your own buffers, or fill dense_input(), call dense_run() and read
 * dense_output() without a copy. Nothing is allocated at run time; README.md shows how.
 */
#ifndef DENSE_H
#define DENSE_H

#include <stddef.h>
#include <stdint.h>

#include "glow_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every byte that an inference writes, except the stack. */
#define DENSE_ARENA_BYTES 11u
#define DENSE_ARENA_ALIGN 4u
/* Constant data: weights, biases, scales and tables. */
#define DENSE_WEIGHTS_BYTES 180u
#define DENSE_LAYER_COUNT 2u
#define DENSE_INPUT_COUNT 1u
#define DENSE_OUTPUT_COUNT 1u

/* input "x": int8_t 1 x 8, real = 0.125 * (q + 5) */
#define DENSE_INPUT_TYPE int8_t
#define DENSE_INPUT_RANK 2u
#define DENSE_INPUT_SHAPE {1, 8}
#define DENSE_INPUT_ELEMENTS 8u
#define DENSE_INPUT_BYTES 8u
#define DENSE_INPUT_OFFSET_BYTES 0u
#define DENSE_INPUT_SCALE 0.125f
#define DENSE_INPUT_ZERO_POINT (-5)

/* output "soft_q": int8_t 1 x 3, real = 0.00390625 * (q + 128) */
#define DENSE_OUTPUT_TYPE int8_t
#define DENSE_OUTPUT_RANK 2u
#define DENSE_OUTPUT_SHAPE {1, 3}
#define DENSE_OUTPUT_ELEMENTS 3u
#define DENSE_OUTPUT_BYTES 3u
#define DENSE_OUTPUT_OFFSET_BYTES 8u
#define DENSE_OUTPUT_SCALE 0.00390625f
#define DENSE_OUTPUT_ZERO_POINT (-128)

/* Runs one inference in the arena that belongs to this file. Returns GLOW_OK or GLOW_ERROR_NULL. */
int dense_invoke(const int8_t *input, int8_t *output);

/* The same in the caller's arena: at least DENSE_ARENA_BYTES bytes, aligned to DENSE_ARENA_ALIGN. Two models that
 * do not run at the same time may share one. Returns GLOW_OK or why not. */
int dense_invoke_in(void *arena, size_t arena_bytes, const int8_t *input, int8_t *output);

/* Zero-copy: the tensors inside the arena that belongs to this file. Write every input before each run (its
 * bytes may be reused during the run); read the outputs before the next one. */
int8_t *dense_input(void);
int8_t *dense_output(void);
int dense_run(void);

/* Zero-copy in the caller's arena: tensors lie at DENSE_..._OFFSET_BYTES. */
int dense_run_in(void *arena, size_t arena_bytes);

/* Name of a layer in the user's own words, for profile hooks; "" when out of range. */
const char *dense_layer_name(uint32_t layer);

#ifdef __cplusplus
}
#endif

#endif
