/* SPDX-License-Identifier: MIT-0 */
/* Four rows, or four elements, of caches of floats or int8 codes in the registers of an FPU. */
#ifndef GLOW_FPU_ATTEND_H
#define GLOW_FPU_ATTEND_H

#include <math.h>

#include "glow_fpu_elementary.h"

/* How far the second to the fourth row are; rows that do not exist are the first one. */
typedef struct {
  int32_t b, c, d;
} glow_fpu_rows_t;

GLOW_INLINE glow_fpu_rows_t glow_fpu_rows(int32_t step, int32_t rows) {
  const glow_fpu_rows_t at = {rows > 1 ? step : 0, rows > 2 ? 2 * step : 0, rows > 3 ? 3 * step : 0};
  return at;
}

#define GLOW_FPU_ATTEND(kind, T) \
  GLOW_INLINE glow_fpu_four_t glow_fpu_column_##kind(const T *x, glow_fpu_rows_t at) { \
    const glow_fpu_four_t four = {(float)x[0], (float)x[at.b], (float)x[at.c], (float)x[at.d]}; \
    return four; \
  } \
  GLOW_INLINE glow_fpu_four_t glow_fpu_row_##kind(const T *x) { \
    const glow_fpu_four_t four = {(float)x[0], (float)x[1], (float)x[2], (float)x[3]}; \
    return four; \
  }
GLOW_FPU_ATTEND(f32, float)
GLOW_FPU_ATTEND(s8, int8_t)

/* sum + x * k, by two instructions of a cycle each where VFMA takes three */
GLOW_INLINE glow_fpu_four_t glow_fpu_more(glow_fpu_four_t sum, glow_fpu_four_t x, float k) {
  return glow_fpu_fn_add(sum, glow_fpu_fn_times(x, k));
}

GLOW_INLINE float glow_fpu_largest(glow_fpu_four_t x, float least) {
  return glow_fpu_one_from(glow_fpu_one_from(glow_fpu_one_from(glow_fpu_one_from(least, x.a), x.b), x.c), x.d);
}

GLOW_INLINE float glow_fpu_first(glow_fpu_four_t x) { return x.a; }

GLOW_INLINE void glow_fpu_weights(float *to, glow_fpu_four_t x) {
  to[0] = x.a;
  to[1] = x.b;
  to[2] = x.c;
  to[3] = x.d;
}

#endif
