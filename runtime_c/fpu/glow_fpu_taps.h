/* SPDX-License-Identifier: MIT-0 */
/* Sums over the windows of eight channels in the FPU's registers (Cortex-M with FPU), with the same in C. */
#ifndef GLOW_FPU_TAPS_H
#define GLOW_FPU_TAPS_H

#include "glow_fpu.h"
#include "glow_reach.h"

typedef struct {
  const float *x, *w;
  int32_t taps, times, x_step, w_step, x_skip, w_skip;
} glow_fpu_taps_t;

#if GLOW_FPU_ASM
GLOW_AT(glow_fpu_taps_t, x, 0); GLOW_AT(glow_fpu_taps_t, w, 4); GLOW_AT(glow_fpu_taps_t, taps, 8);
GLOW_AT(glow_fpu_taps_t, times, 12); GLOW_AT(glow_fpu_taps_t, x_step, 16); GLOW_AT(glow_fpu_taps_t, w_step, 20);
GLOW_AT(glow_fpu_taps_t, x_skip, 24); GLOW_AT(glow_fpu_taps_t, w_skip, 28);

/* acc[c] += the products of x[c] and w[c] at `taps` places `x_step` and `w_step` bytes apart, `times` times: x goes on `x_skip`
 * bytes further, w `w_skip`. Eight channels; at least one tap, once. */
GLOW_FPU_FUNCTION glow_fpu_taps_8(GLOW_FPU_UNUSED float *acc, GLOW_FPU_UNUSED const glow_fpu_taps_t *d) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r7, lr}\n"
      "vpush {s16-s23}\n"
      "vldmia r0, {s0-s7}\n"
      "ldm r1, {r1-r7, r12}\n"
      "5:\n"
      "mov lr, r3\n"
      "1:\n"
      "vldmia r1, {s8-s15}\n" "vldmia r2, {s16-s23}\n"
      "add r1, r1, r5\n" "add r2, r2, r6\n"
      GLOW_FPU_PRODUCT(8, 16) GLOW_FPU_PRODUCT(9, 17) GLOW_FPU_PRODUCT(10, 18) GLOW_FPU_PRODUCT(11, 19)
      GLOW_FPU_PRODUCT(12, 20) GLOW_FPU_PRODUCT(13, 21) GLOW_FPU_PRODUCT(14, 22) GLOW_FPU_PRODUCT(15, 23)
      GLOW_FPU_SUM(0, 8, 16) GLOW_FPU_SUM(1, 9, 17) GLOW_FPU_SUM(2, 10, 18) GLOW_FPU_SUM(3, 11, 19)
      GLOW_FPU_SUM(4, 12, 20) GLOW_FPU_SUM(5, 13, 21) GLOW_FPU_SUM(6, 14, 22) GLOW_FPU_SUM(7, 15, 23)
      "subs lr, lr, #1\n"
      "bne.w 1b\n"
      "add r1, r1, r7\n" "add r2, r2, r12\n"
      "subs r4, r4, #1\n"
      "bne.w 5b\n"
      "vstmia r0, {s0-s7}\n"
      "vpop {s16-s23}\n"
      "pop {r4-r7, pc}\n");
}

#else /* the same in C */

GLOW_HOT GLOW_FPU_UNUSED static void glow_fpu_taps_8(float *acc, const glow_fpu_taps_t *d) {
  for (int32_t n = 0; n < d->times * d->taps; n++) {
    const int32_t row = n / d->taps;
    for (int32_t c = 0; c < 8; c++) {
      acc[c] += glow_rounded(d->x[(n * d->x_step + row * d->x_skip) / 4 + c] * d->w[(n * d->w_step + row * d->w_skip) / 4 + c]);
    }
  }
}
#endif

#endif
