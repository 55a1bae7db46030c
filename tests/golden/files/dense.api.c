/* SPDX-License-Identifier: MIT-0 */
/* dense, compiled by glowc for cortex-m3: one C function per kernel, one call per layer.
 *
 * model   sha256:...
 * options --opt size
 */
#include "dense.h"

#if !defined(__thumb2__) || !defined(__thumb__)
#ifndef GLOW_ANY_CORE
#error "dense is made for cortex-m3 (-mthumb -mcpu=cortex-m3 -mfloat-abi=soft): compile it for that core, make it for yours with glowc --cpu, or define GLOW_ANY_CORE for portable C with equal results, many times slower"
#endif
#define GLOW_NO_ASM
#endif

#include <string.h>

/* Places the code of the kernels, for example __attribute__((section(".itcm"))). */
#ifndef DENSE_HOT_ATTR
#define DENSE_HOT_ATTR
#endif
#undef GLOW_HOT
#define GLOW_HOT DENSE_HOT_ATTR

#include "glow_numeric.h"
#include "glow_runtime.h"
#include "glow_m3.h"
#include "glow_thumb.h"
#include "glow_thumb_base.h"
#include "glow_thumb_codes.h"
#include "glow_thumb_plain.h"
#include "glow_thumb_pool.h"
#include "glow_thumb_rounds.h"
#include "dense_weights.h"

/* ... */

static int dense_check(const void *arena, size_t arena_bytes) {
  if (arena == NULL) {
    return GLOW_ERROR_NULL;
  }
  if (arena_bytes < DENSE_ARENA_BYTES) {
    return GLOW_ERROR_ARENA_SIZE;
  }
  return (uintptr_t)arena % DENSE_ARENA_ALIGN == 0u ? GLOW_OK : GLOW_ERROR_ARENA_ALIGN;
}

GLOW_HOT int dense_run_in(void *arena, size_t arena_bytes) {
  const int status = dense_check(arena, arena_bytes);
  if (status == GLOW_OK) {
    dense_infer((uint8_t *)arena);
  }
  return status;
}

GLOW_HOT int dense_invoke_in(void *arena, size_t arena_bytes, const int8_t *input, int8_t *output) {
  const int status = dense_check(arena, arena_bytes);
  if (status != GLOW_OK) {
    return status;
  }
  if (input == NULL || output == NULL) {
    return GLOW_ERROR_NULL;
  }
  uint8_t *bytes = (uint8_t *)arena;
  memcpy(bytes + DENSE_INPUT_OFFSET_BYTES, input, DENSE_INPUT_BYTES);
  dense_infer(bytes);
  memcpy(output, bytes + DENSE_OUTPUT_OFFSET_BYTES, DENSE_OUTPUT_BYTES);
  return GLOW_OK;
}

/* DENSE_NO_STATIC_ARENA leaves out the arena of this file and what uses it. DENSE_ARENA_ATTR places it, for
 * example __attribute__((section(".dtcm"))). */
#ifndef DENSE_NO_STATIC_ARENA
#ifndef DENSE_ARENA_ATTR
#define DENSE_ARENA_ATTR
#endif

static _Alignas(4) uint8_t dense_arena[DENSE_ARENA_BYTES] DENSE_ARENA_ATTR;

GLOW_HOT int dense_invoke(const int8_t *input, int8_t *output) {
  return dense_invoke_in(dense_arena, sizeof dense_arena, input, output);
}

int8_t *dense_input(void) {
  return (int8_t *)(dense_arena + DENSE_INPUT_OFFSET_BYTES);
}

int8_t *dense_output(void) {
  return (int8_t *)(dense_arena + DENSE_OUTPUT_OFFSET_BYTES);
}

GLOW_HOT int dense_run(void) {
  return dense_run_in(dense_arena, sizeof dense_arena);
}
#endif

const char *dense_layer_name(uint32_t layer) {
  static const char *const names[] = {
      "fc",
      "soft",
      ""};
  return names[layer < DENSE_LAYER_COUNT ? layer : DENSE_LAYER_COUNT];
}
