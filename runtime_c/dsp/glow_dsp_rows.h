/* SPDX-License-Identifier: MIT-0 */
/* Products of a vector of codes with four rows of weights by SMLAD (as of glow_rows.h). */
#ifndef GLOW_DSP_ROWS_H
#define GLOW_DSP_ROWS_H

#include "glow_dsp_round.h"
#include "glow_rows.h"

/* As glow_rows_s8, of whole fours of codes, at least one. */
#if GLOW_DSP_SIMD
#define GLOW_DSP_ROW(load, sum) \
  load "sxtb16 r12, r11\n" "sxtb16 r11, r11, ror #8\n" "smlad " sum ", r10, r12, " sum "\n" "smlad " sum ", r9, r11, " sum "\n"
GLOW_HOT __attribute__((naked, noinline)) GLOW_DSP_UNUSED static void glow_dsp_rows_of_fours(
    GLOW_DSP_UNUSED const int8_t *x, GLOW_DSP_UNUSED int32_t zp, GLOW_DSP_UNUSED const int8_t *w,
    GLOW_DSP_UNUSED int32_t stride, GLOW_DSP_UNUSED int32_t n, GLOW_DSP_UNUSED int32_t *sums) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r11, lr}\n"
      "ldrd lr, r12, [sp, #36]\n"
      "ldm r12, {r4-r7}\n"
      "rsb r1, r1, #0\n"
      "pkhbt r1, r1, r1, lsl #16\n"
      "add r8, r3, r3, lsl #1\n"
      "add r8, r8, r2\n" /* the fourth row */
      "add lr, lr, r0\n"
      "1:\n"
      "ldr r9, [r0], #4\n" "sxtab16 r10, r1, r9\n" "sxtab16 r9, r1, r9, ror #8\n"
      GLOW_DSP_ROW("ldr r11, [r2, r3]\n", "r5") GLOW_DSP_ROW("ldr r11, [r2, r3, lsl #1]\n", "r6")
      GLOW_DSP_ROW("ldr r11, [r8], #4\n", "r7") GLOW_DSP_ROW("ldr r11, [r2], #4\n", "r4")
      "cmp r0, lr\n"
      "bne 1b\n"
      "ldr r12, [sp, #40]\n"
      "stm r12, {r4-r7}\n"
      "pop {r4-r11, pc}\n");
}
#else
#define glow_dsp_rows_of_fours glow_rows_s8
#endif

GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_rows_s8(const int8_t *x, int32_t zp, const int8_t *w, int32_t stride, int32_t n,
                                                      int32_t *sums) {
  const int32_t fours = n / 4 * 4;
  if (fours > 0) {
    glow_dsp_rows_of_fours(x, zp, w, stride, fours, sums);
  }
  if (fours < n) {
    glow_rows_s8(x + fours, zp, w + fours, stride, n - fours, sums);
  }
}

#endif
