/* SPDX-License-Identifier: MIT-0 */
/* Sums and products of int16 codes by way of float32 (MVE), zero points 0. Every operation is rounded by itself. */
#ifndef GLOW_MVE_REALS16_H
#define GLOW_MVE_REALS16_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_reals.h"

#define GLOW_MVE_STORE_CODES16(q) \
  "vcvtn.s32.f32 " q ", " q "\nvmax.s32 " q ", " q ", %q[least]\nvmin.s32 " q ", " q ", %q[most]\n" \
  "vstrh.32 " q ", [%[out]], #8\n"

/* out[i] = clamp(rne((a[i] * a_scale + b[i] * b_scale) / out_scale)) */
GLOW_INLINE void glow_mve_add16(const int16_t *a, const int16_t *b, int16_t *out, int32_t n, float a_scale, float b_scale,
                                float out_scale, int32_t low, int32_t high) {
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrh.s32 q0, [%[a]], #8\nvldrh.s32 q1, [%[b]], #8\n"
                   "vcvt.f32.s32 q0, q0\nvcvt.f32.s32 q1, q1\nvmul.f32 q0, q0, %[a_scale]\n"
                   "vmul.f32 q1, q1, %[b_scale]\nvadd.f32 q0, q0, q1\n" GLOW_MVE_QUOTIENT GLOW_MVE_STORE_CODES16("q1")
                   "letp lr, 1b\n2:"
                   : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)
                   : [n] "r"(n), [a_scale] "r"(glow_mve_bits(a_scale)), [b_scale] "r"(glow_mve_bits(b_scale)),
                     [minus] "r"(glow_mve_bits(-out_scale)), [inverse] "r"(glow_mve_bits(1.0f / out_scale)),
                     [least] "w"(vdupq_n_s32(low)), [most] "w"(vdupq_n_s32(high))
                   : "lr", "q0", "q1", "q2", "cc", "memory");
}

/* out[i] = clamp(rne(a[i] * b[i] * scale)) */
GLOW_INLINE void glow_mve_multiply16(const int16_t *a, const int16_t *b, int16_t *out, int32_t n, float scale, int32_t low,
                                     int32_t high) {
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrh.s32 q0, [%[a]], #8\nvldrh.s32 q1, [%[b]], #8\n"
                   "vmul.i32 q0, q0, q1\nvcvt.f32.s32 q0, q0\nvmul.f32 q0, q0, %[scale]\n" GLOW_MVE_STORE_CODES16("q0")
                   "letp lr, 1b\n2:"
                   : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)
                   : [n] "r"(n), [scale] "r"(glow_mve_bits(scale)), [least] "w"(vdupq_n_s32(low)),
                     [most] "w"(vdupq_n_s32(high))
                   : "lr", "q0", "q1", "cc", "memory");
}

#endif

#endif
