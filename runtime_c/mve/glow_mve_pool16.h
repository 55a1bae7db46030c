/* SPDX-License-Identifier: MIT-0 */
/* Maxima and averages of int16 codes (MVE): sums in 32 bits, or as reals of which every operation is rounded by itself. */
#ifndef GLOW_MVE_POOL16_H
#define GLOW_MVE_POOL16_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_pool.h"

GLOW_MVE_FOLD(glow_mve_max16, int16_t, int16x8_t, "16", "vldrht.u16", "vmax.s16")
GLOW_MVE_FOLD(glow_mve_add16x4, int16_t, int32x4_t, "32", "vldrht.s32", "vadd.i32")

GLOW_INLINE void glow_mve_store16(int16_t *out, int16x8_t codes, int32_t lanes) {
  __asm__ volatile("vctp.16 %[lanes]\nvpst\nvstrht.16 %q[codes], [%[out]]"
                   :
                   : [lanes] "r"(lanes), [codes] "w"(codes), [out] "r"(out)
                   : "cc", "memory");
}

GLOW_INLINE void glow_mve_store16x4(int16_t *out, int32x4_t codes, int32_t lanes) {
  __asm__ volatile("vctp.32 %[lanes]\nvpst\nvstrht.32 %q[codes], [%[out]]"
                   :
                   : [lanes] "r"(lanes), [codes] "w"(codes), [out] "l"(out)
                   : "cc", "memory");
}

/* Sum of n adjacent codes. */
GLOW_INLINE int32_t glow_mve_row_sum16(const int16_t *p, int32_t n) {
  int32_t sum = 0;
  __asm__ volatile("wlstp.16 lr, %[n], 2f\n1: vldrh.u16 q0, [%[p]], #16\nvaddva.s16 %[sum], q0\nletp lr, 1b\n2:"
                   : [sum] "+Te"(sum), [p] "+r"(p)
                   : [n] "r"(n)
                   : "lr", "q0", "cc", "memory");
  return sum;
}

typedef struct {
  int32x4_t first, second;
} glow_mve_sums16_t;

/* Adds `count` positions of eight channels, `step` elements apart, of which `lanes` count. */
GLOW_INLINE glow_mve_sums16_t glow_mve_sum16(glow_mve_sums16_t sums, const int16_t *p, int32_t step, int32_t count,
                                             int32_t lanes) {
  if (lanes >= 8) {
    __asm__ volatile("wls lr, %[count], 2f\n1: vldrh.s32 q0, [%[p]]\nvldrh.s32 q1, [%[p], #8]\nadd %[p], %[p], %[step]\n"
                     "vadd.i32 %q[first], %q[first], q0\nvadd.i32 %q[second], %q[second], q1\nle lr, 1b\n2:"
                     : [first] "+w"(sums.first), [second] "+w"(sums.second), [p] "+l"(p)
                     : [count] "r"(count), [step] "r"(step * (int32_t)sizeof(int16_t))
                     : "lr", "q0", "q1", "cc", "memory");
    return sums;
  }
  sums.first = glow_mve_add16x4(sums.first, p, step, count, lanes);
  if (lanes > 4) {
    sums.second = glow_mve_add16x4(sums.second, p + 4, step, count, lanes - 4);
  }
  return sums;
}

/* Stores `lanes` codes of sums, at most eight. */
GLOW_INLINE void glow_mve_store_codes16(int16_t *out, glow_mve_sums16_t sums, const glow_mve_codes_t *q, int32_t lanes) {
  glow_mve_store16x4(out, glow_mve_codes(sums.first, q), lanes);
  if (lanes > 4) {
    glow_mve_store16x4(out + 4, glow_mve_codes(sums.second, q), lanes - 4);
  }
}

/* sum + (code - zp) * scale of `count` positions of four channels, `step` elements apart, of which `lanes` count, in order */
GLOW_INLINE float32x4_t glow_mve_add_reals16(float32x4_t sum, const int16_t *p, int32_t step, int32_t count,
                                             int32_t lanes, int32_t zp, float scale) {
  __asm__ volatile("vctp.32 %[lanes]\nwls lr, %[count], 2f\n1: vpst\nvldrht.s32 q0, [%[p]]\nadd %[p], %[p], %[step]\n"
                   "vsub.i32 q0, q0, %[zp]\nvcvt.f32.s32 q0, q0\nvmul.f32 q0, q0, %[scale]\n"
                   "vadd.f32 %q[sum], %q[sum], q0\nle lr, 1b\n2:"
                   : [sum] "+w"(sum), [p] "+l"(p)
                   : [lanes] "r"(lanes), [count] "r"(count), [step] "r"(step * (int32_t)sizeof(int16_t)),
                     [zp] "r"(zp), [scale] "r"(glow_mve_bits(scale))
                   : "lr", "q0", "cc", "memory");
  return sum;
}

/* Stores the codes of the first `lanes` of four means. */
GLOW_INLINE void glow_mve_store_means16(int16_t *out, float32x4_t mean, const glow_mve_ends_t *e, int32_t lanes) {
  const int32x4_t code = vqsubq_n_s32(vcvtnq_s32_f32(vaddq_n_f32(mean, e->zero)), e->half);
  glow_mve_store16x4(out, vminq_s32(vmaxq_s32(code, vdupq_n_s32(e->low)), vdupq_n_s32(e->high)), lanes);
}
#endif

#endif
