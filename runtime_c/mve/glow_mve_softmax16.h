/* SPDX-License-Identifier: MIT-0 */
/* Softmax of int16 codes (MVE). */
#ifndef GLOW_MVE_SOFTMAX16_H
#define GLOW_MVE_SOFTMAX16_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_reals.h"

/* The factors of exp for four differences from the maximum, in q1 and q2. */
#define GLOW_MVE_FACTORS16(x) \
  "vldrh.s32 q0, [" x "], #8\nvsub.i32 q0, %q[from], q0\nvshr.u32 q1, q0, #8\nvbic.i32 q0, #0xff00\n" \
  "vldrw.u32 q2, [%[high], q1, uxtw #2]\nvldrw.u32 q1, [%[low], q0, uxtw #2]\n"

/* One row: e = high[d / 256] * low[d % 256] of d = max - in, out = clamp(rne(e * steps / sum) + zp), the sum in index order of
 * products by the FPU, which keeps what is denormal; in the quotients it would be 0 in any case. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_softmax16(const int16_t *in, const float *high, int16_t *out,
                                                                        int32_t n, float steps, int32_t zp) {
  const float *low = high + 256;
  const int16_t *x = in;
  int32_t max = -32768;
  float sum = 0.0f;
  __asm__ volatile("wlstp.16 lr, %[n], 2f\n1: vldrh.u16 q0, [%[x]], #16\nvmaxv.s16 %[max], q0\nletp lr, 1b\n2:"
                   : [x] "+r"(x), [max] "+r"(max)
                   : [n] "r"(n)
                   : "lr", "q0", "cc", "memory");
  const int32x4_t from = vdupq_n_s32(max);
  x = in;
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: " GLOW_MVE_FACTORS16("%[x]")
                   "vmul.f32 s4, s4, s8\nvmul.f32 s5, s5, s9\nvmul.f32 s6, s6, s10\nvmul.f32 s7, s7, s11\n"
                   "vadd.f32 %[sum], %[sum], s4\nvadd.f32 %[sum], %[sum], s5\nvadd.f32 %[sum], %[sum], s6\n"
                   "vadd.f32 %[sum], %[sum], s7\nletp lr, 1b\n2:"
                   : [x] "+l"(x), [sum] "+t"(sum)
                   : [n] "r"(n), [high] "r"(high), [low] "r"(low), [from] "w"(from)
                   : "lr", "q0", "q1", "q2", "cc", "memory");
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: " GLOW_MVE_FACTORS16("%[in]")
                   "vmul.f32 q0, q2, q1\nvmul.f32 q0, q0, %[steps]\n" GLOW_MVE_QUOTIENT
                   "vcvtn.s32.f32 q1, q1\nvqadd.s32 q1, q1, %[zp]\nvmax.s32 q1, q1, %q[least]\n"
                   "vmin.s32 q1, q1, %q[most]\nvstrh.32 q1, [%[out]], #8\nletp lr, 1b\n2:"
                   : [in] "+l"(in), [out] "+l"(out)
                   : [n] "r"(n), [high] "r"(high), [low] "r"(low), [steps] "r"(glow_mve_bits(steps)),
                     [minus] "r"(glow_mve_bits(-sum)), [inverse] "r"(glow_mve_bits(1.0f / sum)), [zp] "r"(zp),
                     [from] "w"(from), [least] "w"(vdupq_n_s32(-32768)), [most] "w"(vdupq_n_s32(32767))
                   : "lr", "q0", "q1", "q2", "cc", "memory");
}
#endif

#endif
