/* SPDX-License-Identifier: MIT-0 */
/* The sums of glow_fpu.h with int8 weights, which become float32 on the way: exactly. */
#ifndef GLOW_FPU_W8_H
#define GLOW_FPU_W8_H

#include "glow_fpu.h"

GLOW_FPU_DOTS(glow_fpu_dots_w8_t, int8_t)

#if GLOW_FPU_ASM
GLOW_FPU_PLACES(glow_fpu_dots_w8_t);

#define GLOW_FPU_LOAD_W8(w) \
  "ldrsb r12, [" w "], #1\n" "ldrsb lr, [" w "], #1\n" "vmov s24, s25, r12, lr\n" \
  "vcvt.f32.s32 s24, s24\n" "vcvt.f32.s32 s25, s25\n"
#define GLOW_FPU_LOAD_ONES_W8(a, b, c, d) \
  "ldrsb r12, [r8], #1\n" "ldrsb lr, [r9], #1\n" "vmov s" #a ", s" #b ", r12, lr\n" \
  "ldrsb r12, [r10], #1\n" "ldrsb lr, [r11], #1\n" "vmov s" #c ", s" #d ", r12, lr\n" \
  "vcvt.f32.s32 s" #a ", s" #a "\n" "vcvt.f32.s32 s" #b ", s" #b "\n" \
  "vcvt.f32.s32 s" #c ", s" #c "\n" "vcvt.f32.s32 s" #d ", s" #d "\n"
#define GLOW_FPU_ROW_W8 GLOW_FPU_ROW_ONE(GLOW_FPU_LOAD_ONES_W8)

/* sums[i][j] += sum over n of x[i][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_dots_w8_4x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_w8_t *d) {
  GLOW_FPU_RUNS(GLOW_FPU_BEGIN, GLOW_FPU_END, "", 1, GLOW_FPU_PAIRS(GLOW_FPU_LOAD_W8), GLOW_FPU_ONE(GLOW_FPU_LOAD_ONES_W8));
}

/* sums[j] += sum over n of x[0][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_dots_w8_1x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_w8_t *d) {
  GLOW_FPU_RUNS(GLOW_FPU_BEGIN_ROW, GLOW_FPU_END_ROW, "", 2, GLOW_FPU_ROW_W8 GLOW_FPU_ROW_W8 GLOW_FPU_ROW_W8 GLOW_FPU_ROW_W8,
                GLOW_FPU_ROW_W8);
}

#else /* the same in C */

GLOW_FPU_TWINS(glow_fpu_dots_w8_4x4, glow_fpu_dots_w8_1x4, glow_fpu_dots_w8_t)
#endif

#endif
