/* SPDX-License-Identifier: MIT-0 */
/* What every generated entry point returns. */
#ifndef GLOW_STATUS_H
#define GLOW_STATUS_H

typedef enum {
  GLOW_OK = 0,
  GLOW_ERROR_NULL = 1,        /* a pointer argument is NULL */
  GLOW_ERROR_ARENA_SIZE = 2,  /* the caller's arena is smaller than NAME_ARENA_BYTES */
  GLOW_ERROR_ARENA_ALIGN = 3, /* the caller's arena is not aligned to NAME_ARENA_ALIGN */
  GLOW_MORE = 4,              /* rows were taken, the inference needs more of them */
  GLOW_ERROR_ROWS = 5,        /* more rows than the input has left, or none */
  GLOW_BUSY = 6,              /* a step is done, the inference needs more of them */
  GLOW_ERROR_BEGIN = 7,       /* a step of no inference: NAME_begin() comes first */
  GLOW_ERROR_GUARD = 256      /* + n, with --guard only: NAME_layer_name(n) wrote outside of its tensors */
} glow_status_t;

#endif
