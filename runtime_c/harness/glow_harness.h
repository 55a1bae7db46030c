/* SPDX-License-Identifier: MIT-0 */
/* Between the printed kernels and the harness's main: a table of functions with one calling convention. */
#ifndef GLOW_HARNESS_H
#define GLOW_HARNESS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Operands in argument order, parameters as 32-bit patterns in the order of the argument struct. */
typedef void (*glow_call_t)(void *const *op, const uint32_t *param, int32_t y_begin, int32_t y_end);

typedef struct {
  const char *name; /* kernel, variant and mode, for the report of a crash */
  glow_call_t call;
} glow_entry_t;

extern const glow_entry_t glow_entries[];
extern const uint32_t glow_entry_count;

#endif
