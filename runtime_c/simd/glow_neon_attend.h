/* SPDX-License-Identifier: MIT-0 */
/* Four rows, or four elements, of caches of floats or int8 codes (Advanced SIMD). */
#ifndef GLOW_NEON_ATTEND_H
#define GLOW_NEON_ATTEND_H

#if defined(__ARM_NEON)
#include "glow_neon_elementary.h"

typedef float32x4_t glow_neon_four_t;

/* How far the second to the fourth row are; rows that do not exist are the first one. */
typedef struct {
  int32_t b, c, d;
} glow_neon_rows_t;

static inline glow_neon_rows_t glow_neon_rows(int32_t step, int32_t rows) {
  const glow_neon_rows_t at = {rows > 1 ? step : 0, rows > 2 ? 2 * step : 0, rows > 3 ? 3 * step : 0};
  return at;
}

static inline float32x4_t glow_neon_column_f32(const float *x, glow_neon_rows_t at) {
  const float four[4] = {x[0], x[at.b], x[at.c], x[at.d]};
  return vld1q_f32(four);
}
static inline float32x4_t glow_neon_column_s8(const int8_t *x, glow_neon_rows_t at) {
  const int32_t four[4] = {x[0], x[at.b], x[at.c], x[at.d]};
  return vcvtq_f32_s32(vld1q_s32(four));
}
#define glow_neon_row_f32 vld1q_f32
static inline float32x4_t glow_neon_row_s8(const int8_t *x) {
  int32_t word;
  memcpy(&word, x, sizeof word);
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(word))))));
}

static inline float32x4_t glow_neon_more(float32x4_t sum, float32x4_t x, float k) {
  return glow_fma_f32x4(sum, x, vdupq_n_f32(k));
}
static inline float glow_neon_largest(float32x4_t x, float least) {
  const float most = glow_neon_fn_most(x);
  return most > least ? most : least;
}
static inline float glow_neon_first(float32x4_t x) { return vgetq_lane_f32(x, 0); }
#define glow_neon_weights vst1q_f32

#endif
#endif
