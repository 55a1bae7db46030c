/* SPDX-License-Identifier: MIT-0 */
/* Four rows, or four elements, of caches of floats or int8 codes (MVE). */
#ifndef GLOW_MVE_ATTEND_H
#define GLOW_MVE_ATTEND_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_elementary.h"

typedef float32x4_t glow_mve_four_t;
typedef uint32x4_t glow_mve_rows_t;

/* Where four rows are; rows that do not exist are the last one. */
GLOW_INLINE uint32x4_t glow_mve_rows(int32_t step, int32_t rows) {
  const uint32x4_t lane = vminq_u32(glow_mve_index32(), vdupq_n_u32((uint32_t)(rows - 1)));
  return vmulq_n_u32(lane, (uint32_t)step);
}

GLOW_INLINE float32x4_t glow_mve_column_f32(const float *x, uint32x4_t at) {
  return vldrwq_gather_shifted_offset_f32(x, at);
}
GLOW_INLINE float32x4_t glow_mve_column_s8(const int8_t *x, uint32x4_t at) {
  return vcvtq_f32_s32(vldrbq_gather_offset_s32(x, at));
}
#define glow_mve_row_f32 glow_mve_get_f32
GLOW_INLINE float32x4_t glow_mve_row_s8(const int8_t *x) { return vcvtq_f32_s32(vldrbq_s32(x)); }

#define glow_mve_more vfmaq_n_f32
GLOW_INLINE float glow_mve_largest(float32x4_t x, float least) { return vmaxnmvq_f32(least, x); }
GLOW_INLINE float glow_mve_first(float32x4_t x) { return vgetq_lane_f32(x, 0); }
#define glow_mve_weights glow_mve_put_f32

#endif
#endif
