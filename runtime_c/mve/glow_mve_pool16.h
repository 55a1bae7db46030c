/* SPDX-License-Identifier: MIT-0 */
/* Maxima and averages of int16 codes (MVE): sums in 32 bits, or as reals of which every operation is rounded by itself. */
#ifndef GLOW_MVE_POOL16_H
#define GLOW_MVE_POOL16_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_pool.h"

GLOW_MVE_FOLD(glow_mve_max16, int16_t, int16x8_t, "16", "vldrht.u16", "vmax.s16")
GLOW_MVE_FOLD(glow_mve_add16x4, int16_t, int32x4_t, "32", "vldrht.s32", "vadd.i32")
GLOW_MVE_STORE(glow_mve_store16, int16_t, int16x8_t, "16", "vstrht", "r")
GLOW_MVE_STORE(glow_mve_store16x4, int16_t, int32x4_t, "32", "vstrht", "l")
GLOW_MVE_TOTAL(glow_mve_row_sum16, int16_t, "16", "vldrh.u16", "vaddva.s16")
GLOW_MVE_ADD_REALS(glow_mve_add_reals16, int16_t, "vldrht.s32")

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

/* Stores the codes of the first `lanes` of four means. */
GLOW_INLINE void glow_mve_store_means16(int16_t *out, float32x4_t mean, const glow_mve_ends_t *e, int32_t lanes) {
  glow_mve_store16x4(out, glow_mve_mean_codes(mean, e), lanes);
}
#endif

#endif
