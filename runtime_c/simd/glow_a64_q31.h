/* SPDX-License-Identifier: MIT-0 */
/* glow_a64.h, and ends of blocks by TensorFlow Lite's multiplier and shift (glow_q31.h).
 *
 * In a stream the multipliers stand in place of the scales, and after them one byte for each output, its shift.
 */
#ifndef GLOW_A64_Q31_H
#define GLOW_A64_Q31_H

#include "glow_a64.h"

#if defined(__aarch64__)

/* the shifts of eight channels as words */
static inline void glow_a64_shifts8(int32_t *to, const int8_t *from) {
  const int16x8_t shifts = vmovl_s8(vld1_s8(from));
  vst1q_s32(to, vmovl_s16(vget_low_s16(shifts)));
  vst1q_s32(to + 4, vmovl_high_s16(shifts));
}

/* clamp of eight sums times multipliers, shifted, + zp */
static inline int8x8_t glow_a64_fixed_s8x8(int32x4_t acc0, int32x4_t acc1, int32x4_t mul0, int32x4_t mul1,
                                           int8x8_t shifts, int16x8_t zp, int8x8_t lo, int8x8_t hi) {
  const int16x8_t places = vmovl_s8(shifts);
  const int32x4_t upper0 = vqrdmulhq_s32(acc0, mul0);
  const int32x4_t upper1 = vqrdmulhq_s32(acc1, mul1);
  const int32x4_t v0 = vrshlq_s32(vsraq_n_s32(upper0, upper0, 31), vmovl_s16(vget_low_s16(places)));
  const int32x4_t v1 = vrshlq_s32(vsraq_n_s32(upper1, upper1, 31), vmovl_high_s16(places));
  const int16x8_t codes = vqaddq_s16(vcombine_s16(vqmovn_s32(v0), vqmovn_s32(v1)), zp);
  return vmin_s8(vmax_s8(vqmovn_s16(codes), lo), hi);
}

#endif
#endif
