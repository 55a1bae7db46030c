/* SPDX-License-Identifier: MIT-0 */
/* Averages and means as TensorFlow Lite rounds them (MVE). */
#ifndef GLOW_MVE_POOL_Q31_H
#define GLOW_MVE_POOL_Q31_H

#include "glow_mve_fixed.h"
#include "glow_q31.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

/* Stores `lanes` codes, the even ones in `even`, clamped. */
GLOW_INLINE void glow_mve_store_clamped(int8_t *out, int32x4_t even, int32x4_t odd, int32_t low, int32_t high,
                                        int32_t lanes) {
  const int32x4_t least = vdupq_n_s32(low);
  const int32x4_t most = vdupq_n_s32(high);
  int16x8_t both = vreinterpretq_s16_s32(vminq_s32(vmaxq_s32(even, least), most));
  both = vmovntq_s32(both, vminq_s32(vmaxq_s32(odd, least), most));
  __asm__ volatile("vctp.16 %[lanes]\nvpst\nvstrbt.16 %q[both], [%[out]]"
                   :
                   : [lanes] "r"(lanes), [both] "w"(both), [out] "l"(out)
                   : "cc", "memory");
}

/* How sums are divided by a count, half away from zero: `scale` times the sum, of an even count times twice the sum less
 * its sign and one more, which is no half. The sums begin with `start`, the codes are `start` / count lower. */
typedef struct {
  float scale;
  int32_t even; /* 1 or 0 */
  int32_t start, half;
} glow_mve_average_t;

GLOW_INLINE glow_mve_average_t glow_mve_average(int32_t count, int32_t half) {
  const int32_t even = count % 2 == 0 ? 1 : 0;
  const glow_mve_average_t average = {1.0f / (float)(count << even), even, half * count, half};
  return average;
}

GLOW_INLINE int32x4_t glow_mve_averages(int32x4_t sums, const glow_mve_average_t *a) {
  const int32x4_t even = vdupq_n_s32(a->even);
  const int32x4_t whole = vaddq_n_s32(sums, a->start);
  const int32x4_t less = vsubq_s32(whole, vandq_s32(vshrq_n_s32(whole, 31), even));
  const int32x4_t no_half = vaddq_s32(vshlq_s32(less, even), even);
  return vsubq_n_s32(vcvtnq_s32_f32(vmulq_n_f32(vcvtq_f32_s32(no_half), a->scale)), a->half);
}
#endif

#endif
