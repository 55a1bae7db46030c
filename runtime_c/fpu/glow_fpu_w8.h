/* SPDX-License-Identifier: MIT-0 */
/* The sums of glow_fpu.h with int8 weights, which become float32 on the way: exactly. */
#ifndef GLOW_FPU_W8_H
#define GLOW_FPU_W8_H

#include "glow_fpu.h"

typedef struct {
  const float *x[4];
  const int8_t *w;
  int32_t stride, k, times, skip, w_skip;
} glow_fpu_dots_w8_t;
#if GLOW_FPU_ASM
GLOW_AT(glow_fpu_dots_w8_t, x, 0); GLOW_AT(glow_fpu_dots_w8_t, w, 16); GLOW_AT(glow_fpu_dots_w8_t, stride, 20);
GLOW_AT(glow_fpu_dots_w8_t, k, 24); GLOW_AT(glow_fpu_dots_w8_t, times, 28); GLOW_AT(glow_fpu_dots_w8_t, skip, 32);
GLOW_AT(glow_fpu_dots_w8_t, w_skip, 36);
#endif

#if GLOW_FPU_ASM
#define GLOW_FPU_LOAD_W8(w, a, b) \
  "ldrsb r12, [" w "], #1\n" "ldrsb lr, [" w "], #1\n" "vmov s" #a ", s" #b ", r12, lr\n" \
  "vcvt.f32.s32 s" #a ", s" #a "\n" "vcvt.f32.s32 s" #b ", s" #b "\n"
#define GLOW_FPU_PAIR_W8(w, a, b, c, d, e, f) \
  GLOW_FPU_LOAD_W8(w, e, f) \
  GLOW_FPU_MLA(a, b, c, d, 16, 18, 20, 22, e) GLOW_FPU_MLA(a, b, c, d, 17, 19, 21, 23, f)
#define GLOW_FPU_PAIRS_W8 \
  "vldmia r4!, {s16, s17}\n" "vldmia r5!, {s18, s19}\n" "vldmia r6!, {s20, s21}\n" "vldmia r7!, {s22, s23}\n" \
  GLOW_FPU_PAIR_W8("r8", 0, 1, 2, 3, 24, 25) GLOW_FPU_PAIR_W8("r9", 4, 5, 6, 7, 26, 27) \
  GLOW_FPU_PAIR_W8("r10", 8, 9, 10, 11, 28, 29) GLOW_FPU_PAIR_W8("r11", 12, 13, 14, 15, 30, 31)
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
#define GLOW_FPU_AGAIN_W8 \
  "subs r2, r2, #1\n" \
  "beq.w 6f\n" \
  GLOW_FPU_SKIP \
  "add r8, r8, r12\n" "add r9, r9, r12\n" "add r10, r10, r12\n" "add r11, r11, r12\n" \
  "b.w 5b\n" \
  "6:\n"
#define GLOW_FPU_BEGIN_W8 \
  "push {r0, r4-r11, lr}\n" \
  "vpush {s16-s31}\n" \
  "vldmia r0, {s0-s15}\n" \
  "ldm r1, {r4-r8}\n" \
  "ldrd r2, r3, [r1, #20]\n" \
  "add r9, r8, r2\n" "add r10, r9, r2\n" "add r11, r10, r2\n" \
  GLOW_FPU_TIMES

/* sums[4 * j + i] += sum over n of x[i][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_dots_w8_4x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_w8_t *d) {
  __asm__ volatile(
      ".syntax unified\n"
      GLOW_FPU_BEGIN_W8
      "5:\n"
      "asrs r0, r3, #1\n"
      "beq.w 2f\n"
      "1:\n"
      GLOW_FPU_PAIRS_W8
      "subs r0, r0, #1\n"
      "bne.w 1b\n"
      "2:\n"
      "tst r3, #1\n"
      "beq.w 3f\n"
      GLOW_FPU_ONE_W8
      "3:\n"
      GLOW_FPU_AGAIN_W8
      GLOW_FPU_END);
}

/* sums[4 * j] += sum over n of x[0][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_sums_w8_1x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_w8_t *d) {
  __asm__ volatile(
      ".syntax unified\n"
      GLOW_FPU_BEGIN_W8
      "5:\n"
      "asrs r0, r3, #2\n"
      "beq.w 2f\n"
      "1:\n"
      GLOW_FPU_SINGLE_W8 GLOW_FPU_SINGLE_W8 GLOW_FPU_SINGLE_W8 GLOW_FPU_SINGLE_W8
      "subs r0, r0, #1\n"
      "bne.w 1b\n"
      "2:\n"
      "ands r0, r3, #3\n"
      "beq.w 4f\n"
      "3:\n"
      GLOW_FPU_SINGLE_W8
      "subs r0, r0, #1\n"
      "bne.w 3b\n"
      "4:\n"
      GLOW_FPU_AGAIN_W8
      GLOW_FPU_END);
}

#else /* the same in C */

GLOW_FPU_UNUSED static void glow_fpu_dots_w8_4x4(float *sums, const glow_fpu_dots_w8_t *d) {
  for (int32_t at = 0; at < 16; at++) {
    for (int32_t t = 0; t < d->times; t++) {
      for (int32_t n = t * d->k; n < (t + 1) * d->k; n++) {
        const float w = (float)d->w[at / 4 * d->stride + n + t * d->w_skip];
        sums[at] += glow_rounded(d->x[at % 4][n + t * d->skip] * w);
      }
    }
  }
}

GLOW_FPU_UNUSED static void glow_fpu_sums_w8_1x4(float *sums, const glow_fpu_dots_w8_t *d) {
  for (int32_t j = 0; j < 4; j++) {
    for (int32_t t = 0; t < d->times; t++) {
      for (int32_t n = t * d->k; n < (t + 1) * d->k; n++) {
        const float w = (float)d->w[j * d->stride + n + t * d->w_skip];
        sums[4 * j] += glow_rounded(d->x[0][n + t * d->skip] * w);
      }
    }
  }
}
#endif

#endif
