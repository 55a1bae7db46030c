/* SPDX-License-Identifier: MIT-0 */
/* Layers whose input is quantised at run time (MVE). */
#ifndef GLOW_MVE_DYNAMIC_H
#define GLOW_MVE_DYNAMIC_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_f32.h"
#include "glow_mve_matmul.h"
#include "glow_mve_reals.h"

typedef struct {
  float low, high;
} glow_mve_bounds_t;

/* The least and the greatest of n numbers and 0. */
GLOW_INLINE glow_mve_bounds_t glow_mve_bounds(const float *x, int32_t n) {
  int32_t low = 0;
  int32_t high = 0;
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrw.32 q0, [%[x]], #16\nvminnmv.f32 %[low], q0\n"
                   "vmaxnmv.f32 %[high], q0\nletp lr, 1b\n2:"
                   : [x] "+r"(x), [low] "+r"(low), [high] "+r"(high)
                   : [n] "r"(n)
                   : "lr", "q0", "cc", "memory");
  glow_mve_bounds_t b;
  memcpy(&b.low, &low, sizeof low);
  memcpy(&b.high, &high, sizeof high);
  return b;
}

/* to[i] = x[i] ^ flip */
GLOW_INLINE void glow_mve_exclusive(int8_t *to, const void *x, int32_t flip, int32_t n) {
  const int8x16_t mask = vdupq_n_s8((int8_t)flip);
  __asm__ volatile("wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[x]], #16\nveor q0, q0, %q[mask]\n"
                   "vstrb.8 q0, [%[to]], #16\nletp lr, 1b\n2:"
                   : [to] "+r"(to), [x] "+r"(x)
                   : [n] "r"(n), [mask] "w"(mask)
                   : "lr", "q0", "cc", "memory");
}
#endif

#endif
