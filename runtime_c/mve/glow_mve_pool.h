/* SPDX-License-Identifier: MIT-0 */
/* Averages of codes summed as reals (MVE): four channels at a time, every operation rounded by itself. */
#ifndef GLOW_MVE_POOL_H
#define GLOW_MVE_POOL_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_elementwise.h"
#include "glow_mve_reals.h"

/* sum + (code - zp) * scale of `count` positions of four channels, `step` elements apart, of which `lanes` count, in order */
#define GLOW_MVE_ADD_REALS(name, element, load)                                                                       \
  GLOW_INLINE float32x4_t name(float32x4_t sum, const element *p, int32_t step, int32_t count, int32_t lanes,         \
                               int32_t zp, float scale) {                                                              \
    __asm__ volatile("vctp.32 %[lanes]\nwls lr, %[count], 2f\n1: vpst\n" load " q0, [%[p]]\nadd %[p], %[p], %[step]\n" \
                     "vsub.i32 q0, q0, %[zp]\nvcvt.f32.s32 q0, q0\nvmul.f32 q0, q0, %[scale]\n"                        \
                     "vadd.f32 %q[sum], %q[sum], q0\nle lr, 1b\n2:"                                                    \
                     : [sum] "+w"(sum), [p] "+l"(p)                                                                    \
                     : [lanes] "r"(lanes), [count] "r"(count), [step] "r"(step * (int32_t)sizeof(element)),            \
                       [zp] "r"(zp), [scale] "r"(glow_mve_bits(scale))                                                 \
                     : "lr", "q0", "cc", "memory");                                                                    \
    return sum;                                                                                                        \
  }
GLOW_MVE_ADD_REALS(glow_mve_add_reals, int8_t, "vldrbt.s32")
GLOW_MVE_STORE(glow_mve_store8x4, int8_t, int32x4_t, "32", "vstrbt", "l")

GLOW_INLINE float32x4_t glow_mve_quotient(float32x4_t x, float divisor) {
  float32x4_t result;
  __asm__("vmov q0, %q[x]\n" GLOW_MVE_QUOTIENT "vmov %q[result], q1"
          : [result] "=w"(result)
          : [x] "w"(x), [minus] "r"(glow_mve_bits(-divisor)), [inverse] "r"(glow_mve_bits(1.0f / divisor))
          : "q0", "q1", "q2");
  return result;
}

typedef struct {
  float zero; /* added before rounding */
  int32_t half; /* taken off afterwards */
  int32_t low, high;
} glow_mve_ends_t;

GLOW_INLINE int32x4_t glow_mve_mean_codes(float32x4_t mean, const glow_mve_ends_t *e) {
  const int32x4_t code = vqsubq_n_s32(vcvtnq_s32_f32(vaddq_n_f32(mean, e->zero)), e->half);
  return vminq_s32(vmaxq_s32(code, vdupq_n_s32(e->low)), vdupq_n_s32(e->high));
}

/* Stores the codes of the first `lanes` of four means. */
GLOW_INLINE void glow_mve_store_means(int8_t *out, float32x4_t mean, const glow_mve_ends_t *e, int32_t lanes) {
  glow_mve_store8x4(out, glow_mve_mean_codes(mean, e), lanes);
}
#endif

#endif
