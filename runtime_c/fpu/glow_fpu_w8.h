/* SPDX-License-Identifier: MIT-0 */
/* The sums of glow_fpu.h with int8 weights, which become float32 on the way: exactly. */
#ifndef GLOW_FPU_W8_H
#define GLOW_FPU_W8_H

#include "glow_fpu.h"

GLOW_FPU_DOTS(glow_fpu_dots_w8_t, int8_t)

#if GLOW_FPU_ASM
GLOW_FPU_PLACES(glow_fpu_dots_w8_t);

#define GLOW_FPU_LOAD_W8(w, a, b) \
  "ldrsb r12, [" w "], #1\n" "ldrsb lr, [" w "], #1\n" "vmov s" #a ", s" #b ", r12, lr\n" \
  "vcvt.f32.s32 s" #a ", s" #a "\n" "vcvt.f32.s32 s" #b ", s" #b "\n"
#define GLOW_FPU_ONES_W8 \
  "ldrsb r12, [r8], #1\n" "ldrsb lr, [r9], #1\n" "vmov s24, s25, r12, lr\n" \
  "ldrsb r12, [r10], #1\n" "ldrsb lr, [r11], #1\n" "vmov s26, s27, r12, lr\n" \
  "vcvt.f32.s32 s24, s24\n" "vcvt.f32.s32 s25, s25\n" "vcvt.f32.s32 s26, s26\n" "vcvt.f32.s32 s27, s27\n"
#define GLOW_FPU_ONE_W8 \
  "vldmia r4!, {s16}\n" "vldmia r5!, {s18}\n" "vldmia r6!, {s20}\n" "vldmia r7!, {s22}\n" \
  GLOW_FPU_ONES_W8 \
  GLOW_FPU_MLA(0, 1, 2, 3, 16, 18, 20, 22, 24) GLOW_FPU_MLA(4, 5, 6, 7, 16, 18, 20, 22, 25) \
  GLOW_FPU_MLA(8, 9, 10, 11, 16, 18, 20, 22, 26) GLOW_FPU_MLA(12, 13, 14, 15, 16, 18, 20, 22, 27)
#define GLOW_FPU_SINGLE_W8 \
  "vldmia r4!, {s16}\n" GLOW_FPU_ONES_W8 \
  "vmla.f32 s0, s16, s24\n" "vmla.f32 s4, s16, s25\n" "vmla.f32 s8, s16, s26\n" "vmla.f32 s12, s16, s27\n"
#define GLOW_FPU_BEGIN_W8 GLOW_FPU_BEGIN_OF("") GLOW_FPU_TIMES

/* sums[4 * j + i] += sum over n of x[i][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_dots_w8_4x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_w8_t *d) {
  __asm__ volatile(
      ".syntax unified\n"
      GLOW_FPU_BEGIN_W8
      "5:\n"
      "asrs r0, r3, #1\n"
      "beq.w 2f\n"
      "1:\n"
      GLOW_FPU_PAIRS(GLOW_FPU_LOAD_W8)
      "subs r0, r0, #1\n"
      "bne.w 1b\n"
      "2:\n"
      "tst r3, #1\n"
      "beq.w 3f\n"
      GLOW_FPU_ONE_W8
      "3:\n"
      GLOW_FPU_AGAIN("")
      GLOW_FPU_END);
}

/* sums[4 * j] += sum over n of x[0][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_sums_w8_1x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_w8_t *d) {
  GLOW_FPU_RUNS("r0", "", GLOW_FPU_SINGLE_W8 GLOW_FPU_SINGLE_W8 GLOW_FPU_SINGLE_W8 GLOW_FPU_SINGLE_W8, GLOW_FPU_SINGLE_W8);
}

#else /* the same in C */

GLOW_FPU_TWINS(glow_fpu_dots_w8_4x4, glow_fpu_sums_w8_1x4, glow_fpu_dots_w8_t)
#endif

#endif
