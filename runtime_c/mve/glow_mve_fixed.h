/* SPDX-License-Identifier: MIT-0 */
/* Sums and products that end by one multiplier and shift to the right, as TensorFlow Lite rounds (MVE). */
#ifndef GLOW_MVE_FIXED_H
#define GLOW_MVE_FIXED_H

#include "glow_mve_elementwise.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

/* four sums times mul * 2^(shift - 31), -31 <= shift <= -1, plus zp */
GLOW_INLINE int32x4_t glow_mve_fixed_s32x4(int32x4_t sums, int32_t mul, int32_t shift, int32_t zp) {
  const int32x4_t upper = vqrdmulhq_n_s32(sums, mul);
  return vaddq_n_s32(vrshlq_n_s32(vaddq_s32(upper, vshrq_n_s32(upper, 31)), shift), zp);
}

typedef struct {
  int32_t mul, shift, zp, low, high;
} glow_mve_fixed_t;

GLOW_INLINE int32x4_t glow_mve_fixed_codes(int32x4_t sums, const glow_mve_fixed_t *q) {
  const int32x4_t codes = glow_mve_fixed_s32x4(sums, q->mul, q->shift, q->zp);
  return vminq_s32(vmaxq_s32(codes, vdupq_n_s32(q->low)), vdupq_n_s32(q->high));
}

/* out[i] = clamp((a - a_zp) * (b - b_zp) * mul * 2^(shift - 31) + zp) */
GLOW_INLINE void glow_mve_multiply_fixed(const int8_t *a, const int8_t *b, int8_t *out, int32_t n, int32_t a_zp,
                                           int32_t b_zp, const glow_mve_fixed_t *q) {
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrb.s32 q0, [%[a]], #4\nvldrb.s32 q1, [%[b]], #4\n"
                   "vsub.i32 q0, q0, %q[a_zp]\nvsub.i32 q1, q1, %[b_zp]\nvmul.i32 q0, q0, q1\n"
                   "vqrdmulh.s32 q0, q0, %[mul]\nvshr.s32 q1, q0, #31\nvadd.i32 q0, q0, q1\n"
                   "vrshl.s32 q0, %[shift]\nvadd.i32 q0, q0, %q[zp]\n"
                   "vmax.s32 q0, q0, %q[least]\nvmin.s32 q0, q0, %q[most]\nvstrb.32 q0, [%[out]], #4\nletp lr, 1b\n2:"
                   : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)
                   : [n] "r"(n), [a_zp] "w"(vdupq_n_s32(a_zp)), [b_zp] "r"(b_zp), [mul] "r"(q->mul), [shift] "r"(q->shift),
                     [zp] "w"(vdupq_n_s32(q->zp)), [least] "w"(vdupq_n_s32(q->low)), [most] "w"(vdupq_n_s32(q->high))
                   : "lr", "q0", "q1", "cc", "memory");
}
#endif

#endif
