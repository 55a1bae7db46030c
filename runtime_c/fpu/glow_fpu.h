/* SPDX-License-Identifier: MIT-0 */
/* Sums of float32 products in blocks that stay in the FPU's registers (Cortex-M with FPU), with the same in C.
 *
 * VMLA rounds the product, then the sum: the bits of acc + x * w in C without contraction. Each sum adds its products in
 * the order of the reference kernels.
 */
#ifndef GLOW_FPU_H
#define GLOW_FPU_H

#include "glow_numeric.h"
#include "glow_runtime.h"

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && !defined(GLOW_NO_ASM)
#define GLOW_FPU_ASM 1
#else
#define GLOW_FPU_ASM 0
#endif

#if defined(__GNUC__)
#define GLOW_FPU_UNUSED __attribute__((unused))
#else
#define GLOW_FPU_UNUSED
#endif

/* x[i] and w + j * stride are read `k` elements long, `times` times: x goes on `skip` elements further, w `w_skip`.
 * stride: elements from row to row of w; times: dots_4x4 and sums_1x4 only. */
#define GLOW_FPU_DOTS(name, weight) \
  typedef struct { \
    const float *x[4]; \
    const weight *w; \
    int32_t stride, k, times, skip, w_skip; \
  } name;
GLOW_FPU_DOTS(glow_fpu_dots_t, float)
#if GLOW_FPU_ASM
#define GLOW_FPU_PLACES(name) \
  GLOW_AT(name, x, 0); GLOW_AT(name, w, 16); GLOW_AT(name, stride, 20); GLOW_AT(name, k, 24); \
  GLOW_AT(name, times, 28); GLOW_AT(name, skip, 32); GLOW_AT(name, w_skip, 36)
GLOW_FPU_PLACES(glow_fpu_dots_t);
#endif

/* As above; the rows of w are one after another, four of their floats wanted: sums[j][i] += x[i][n] * w[n][j]. */
typedef glow_fpu_dots_t glow_fpu_outer_t;

#if GLOW_FPU_ASM
#define GLOW_FPU_FUNCTION GLOW_HOT __attribute__((naked, noinline)) GLOW_FPU_UNUSED static void

#define GLOW_FPU_MLA(a, b, c, d, x0, x1, x2, x3, w) \
  "vmla.f32 s" #a ", s" #x0 ", s" #w "\n" "vmla.f32 s" #b ", s" #x1 ", s" #w "\n" \
  "vmla.f32 s" #c ", s" #x2 ", s" #w "\n" "vmla.f32 s" #d ", s" #x3 ", s" #w "\n"
/* Two products of each sum: row j of w, which `load` gets, times four x, whose pairs are in s16-s23. */
#define GLOW_FPU_LOAD(w, a, b) "vldmia " w "!, {s" #a ", s" #b "}\n"
#define GLOW_FPU_PAIR(load, w, a, b, c, d, e, f) \
  load(w, e, f) GLOW_FPU_MLA(a, b, c, d, 16, 18, 20, 22, e) GLOW_FPU_MLA(a, b, c, d, 17, 19, 21, 23, f)
#define GLOW_FPU_PAIRS(load) \
  "vldmia r4!, {s16, s17}\n" "vldmia r5!, {s18, s19}\n" "vldmia r6!, {s20, s21}\n" "vldmia r7!, {s22, s23}\n" \
  GLOW_FPU_PAIR(load, "r8", 0, 1, 2, 3, 24, 25) GLOW_FPU_PAIR(load, "r9", 4, 5, 6, 7, 26, 27) \
  GLOW_FPU_PAIR(load, "r10", 8, 9, 10, 11, 28, 29) GLOW_FPU_PAIR(load, "r11", 12, 13, 14, 15, 30, 31)
#define GLOW_FPU_ONE \
  "vldmia r4!, {s16}\n" "vldmia r5!, {s18}\n" "vldmia r6!, {s20}\n" "vldmia r7!, {s22}\n" \
  "vldmia r8!, {s24}\n" GLOW_FPU_MLA(0, 1, 2, 3, 16, 18, 20, 22, 24) \
  "vldmia r9!, {s25}\n" GLOW_FPU_MLA(4, 5, 6, 7, 16, 18, 20, 22, 25) \
  "vldmia r10!, {s26}\n" GLOW_FPU_MLA(8, 9, 10, 11, 16, 18, 20, 22, 26) \
  "vldmia r11!, {s27}\n" GLOW_FPU_MLA(12, 13, 14, 15, 16, 18, 20, 22, 27)
/* Four products of four sums: one row of w times one x in s16-s19. */
#define GLOW_FPU_FOUR(w, a, b, c, d) \
  "vldmia " w "!, {s20-s23}\n" \
  "vmla.f32 s" #a ", s16, s20\n" "vmla.f32 s" #b ", s17, s21\n" \
  "vmla.f32 s" #c ", s18, s22\n" "vmla.f32 s" #d ", s19, s23\n"
#define GLOW_FPU_FOURS \
  "vldmia r4!, {s16-s19}\n" \
  GLOW_FPU_FOUR("r8", 0, 1, 2, 3) GLOW_FPU_FOUR("r9", 4, 5, 6, 7) \
  GLOW_FPU_FOUR("r10", 8, 9, 10, 11) GLOW_FPU_FOUR("r11", 12, 13, 14, 15)
/* An element of w has 1 << shift bytes. */
#define GLOW_FPU_BEGIN_OF(shift) \
  "push {r0, r4-r11, lr}\n" \
  "vpush {s16-s31}\n" \
  "vldmia r0, {s0-s15}\n" \
  "ldm r1, {r4-r8}\n" \
  "ldrd r2, r3, [r1, #20]\n" \
  "add r9, r8, r2" shift "\n" "add r10, r9, r2" shift "\n" "add r11, r10, r2" shift "\n"
#define GLOW_FPU_BEGIN GLOW_FPU_BEGIN_OF(", lsl #2")
#define GLOW_FPU_TIMES "ldr r2, [r1, #28]\n"
#define GLOW_FPU_AGAIN(shift) \
  "subs r2, r2, #1\n" \
  "beq.w 6f\n" \
  "ldrd r0, r12, [r1, #32]\n" \
  "add r4, r4, r0, lsl #2\n" "add r5, r5, r0, lsl #2\n" "add r6, r6, r0, lsl #2\n" "add r7, r7, r0, lsl #2\n" \
  "add r8, r8, r12" shift "\n" "add r9, r9, r12" shift "\n" "add r10, r10, r12" shift "\n" "add r11, r11, r12" shift "\n" \
  "b.w 5b\n" \
  "6:\n"
#define GLOW_FPU_END \
  "ldr r0, [sp, #64]\n" \
  "vstmia r0, {s0-s15}\n" \
  "vpop {s16-s31}\n" \
  "add sp, sp, #4\n" \
  "pop {r4-r11, pc}\n"
#define GLOW_FPU_OUTER \
  "vldmia r4!, {s16}\n" "vldmia r5!, {s17}\n" "vldmia r6!, {s18}\n" "vldmia r7!, {s19}\n" \
  "vldmia r8, {s20-s23}\n" "add r8, r8, r2\n" \
  GLOW_FPU_MLA(0, 1, 2, 3, 16, 17, 18, 19, 20) GLOW_FPU_MLA(4, 5, 6, 7, 16, 17, 18, 19, 21) \
  GLOW_FPU_MLA(8, 9, 10, 11, 16, 17, 18, 19, 22) GLOW_FPU_MLA(12, 13, 14, 15, 16, 17, 18, 19, 23)

/* One row of x for all four rows of w: four products of a sum, and one. */
#define GLOW_FPU_ROW \
  "vldmia r4!, {s16-s19}\n" \
  GLOW_FPU_FOUR("r8", 0, 0, 0, 0) GLOW_FPU_FOUR("r9", 4, 4, 4, 4) \
  GLOW_FPU_FOUR("r10", 8, 8, 8, 8) GLOW_FPU_FOUR("r11", 12, 12, 12, 12)
#define GLOW_FPU_ROW_ONE \
  "vldmia r4!, {s16}\n" "vldmia r8!, {s20}\n" "vldmia r9!, {s21}\n" "vldmia r10!, {s22}\n" "vldmia r11!, {s23}\n" \
  "vmla.f32 s0, s16, s20\n" "vmla.f32 s4, s16, s21\n" "vmla.f32 s8, s16, s22\n" "vmla.f32 s12, s16, s23\n"
/* Runs of products: four at a time by `fours`, which leaves the register `count` alone, the rest by `one`. */
#define GLOW_FPU_RUNS(count, shift, fours, one) \
  __asm__ volatile( \
        ".syntax unified\n" \
        GLOW_FPU_BEGIN_OF(shift) \
        GLOW_FPU_TIMES \
        "5:\n" \
        "asrs " count ", r3, #2\n" \
        "beq.w 2f\n" \
        "1:\n" \
        fours \
        "subs " count ", " count ", #1\n" \
        "bne.w 1b\n" \
        "2:\n" \
        "ands r0, r3, #3\n" \
        "beq.w 4f\n" \
        "3:\n" \
        one \
        "subs r0, r0, #1\n" \
        "bne.w 3b\n" \
        "4:\n" \
        GLOW_FPU_AGAIN(shift) \
        GLOW_FPU_END)

/* sums[j][i] += sum over n of x[i][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_dots_4x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_t *d) {
  GLOW_FPU_RUNS("r12", ", lsl #2", GLOW_FPU_PAIRS(GLOW_FPU_LOAD) GLOW_FPU_PAIRS(GLOW_FPU_LOAD), GLOW_FPU_ONE);
}

/* parts[j][n % 4] += x[0][n] * w[j][n]; k is a multiple of four, at least four. */
GLOW_FPU_FUNCTION glow_fpu_dots_1x4(GLOW_FPU_UNUSED float *parts, GLOW_FPU_UNUSED const glow_fpu_dots_t *d) {
  __asm__ volatile(
      ".syntax unified\n"
      GLOW_FPU_BEGIN
      "tst r3, #4\n"
      "beq.w 1f\n"
      GLOW_FPU_FOURS
      "1:\n"
      "lsrs r3, r3, #3\n"
      "beq.w 3f\n"
      "2:\n"
      GLOW_FPU_FOURS GLOW_FPU_FOURS
      "subs r3, r3, #1\n"
      "bne.w 2b\n"
      "3:\n"
      GLOW_FPU_END);
}

/* sums[4 * j] += sum over n of x[0][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_sums_1x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_t *d) {
  GLOW_FPU_RUNS("r12", ", lsl #2", GLOW_FPU_ROW, GLOW_FPU_ROW_ONE);
}

/* sums[j][i] += sum over n of x[i][n] * w[n][j], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_outer_4x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_outer_t *d) {
  __asm__ volatile(
      ".syntax unified\n"
      GLOW_FPU_BEGIN
      "lsl r2, r2, #2\n"
      "asrs r12, r3, #1\n"
      "beq.w 2f\n"
      "1:\n"
      GLOW_FPU_OUTER GLOW_FPU_OUTER
      "subs r12, r12, #1\n"
      "bne.w 1b\n"
      "2:\n"
      "tst r3, #1\n"
      "beq.w 3f\n"
      GLOW_FPU_OUTER
      "3:\n"
      GLOW_FPU_END);
}

/* acc[c] += sum over n < taps of x[n][c] * w[n][c], eight channels; steps in floats. */
GLOW_FPU_FUNCTION glow_fpu_taps_8(GLOW_FPU_UNUSED float *acc, GLOW_FPU_UNUSED const float *x,
                                  GLOW_FPU_UNUSED const float *w, GLOW_FPU_UNUSED int32_t taps,
                                  GLOW_FPU_UNUSED int32_t x_step, GLOW_FPU_UNUSED int32_t w_step) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4, r5}\n"
      "vpush {s16-s23}\n"
      "ldrd r4, r5, [sp, #40]\n"
      "vldmia r0, {s0-s7}\n"
      "1:\n"
      "vldmia r1, {s8-s15}\n" "vldmia r2, {s16-s23}\n"
      "add r1, r1, r4, lsl #2\n" "add r2, r2, r5, lsl #2\n"
      "vmla.f32 s0, s8, s16\n" "vmla.f32 s1, s9, s17\n" "vmla.f32 s2, s10, s18\n" "vmla.f32 s3, s11, s19\n"
      "vmla.f32 s4, s12, s20\n" "vmla.f32 s5, s13, s21\n" "vmla.f32 s6, s14, s22\n" "vmla.f32 s7, s15, s23\n"
      "subs r3, r3, #1\n"
      "bne.w 1b\n"
      "vstmia r0, {s0-s7}\n"
      "vpop {s16-s23}\n"
      "pop {r4, r5}\n"
      "bx lr\n");
}

#else /* the same in C */

#define GLOW_FPU_TWINS(dots, sums_of_one, name) \
  GLOW_INLINE float dots##_one(float sum, const float *x, int32_t row, const name *d) { \
    for (int32_t t = 0; t < d->times; t++) { \
      for (int32_t n = t * d->k; n < (t + 1) * d->k; n++) { \
        sum += glow_rounded(x[n + t * d->skip] * (float)d->w[row * d->stride + n + t * d->w_skip]); \
      } \
    } \
    return sum; \
  } \
  GLOW_HOT GLOW_FPU_UNUSED static void dots(float *sums, const name *d) { \
    for (int32_t at = 0; at < 16; at++) { \
      sums[at] = dots##_one(sums[at], d->x[at % 4], at / 4, d); \
    } \
  } \
  GLOW_HOT GLOW_FPU_UNUSED static void sums_of_one(float *sums, const name *d) { \
    for (int32_t j = 0; j < 4; j++) { \
      sums[4 * j] = dots##_one(sums[4 * j], d->x[0], j, d); \
    } \
  }
GLOW_FPU_TWINS(glow_fpu_dots_4x4, glow_fpu_sums_1x4, glow_fpu_dots_t)

GLOW_HOT GLOW_FPU_UNUSED static void glow_fpu_dots_1x4(float *parts, const glow_fpu_dots_t *d) {
  for (int32_t j = 0; j < 4; j++) {
    for (int32_t n = 0; n < d->k; n++) {
      parts[4 * j + n % 4] += glow_rounded(d->x[0][n] * d->w[j * d->stride + n]);
    }
  }
}

GLOW_HOT GLOW_FPU_UNUSED static void glow_fpu_outer_4x4(float *sums, const glow_fpu_outer_t *d) {
  for (int32_t j = 0; j < 4; j++) {
    for (int32_t i = 0; i < 4; i++) {
      for (int32_t n = 0; n < d->k; n++) {
        sums[4 * j + i] += glow_rounded(d->x[i][n] * d->w[n * d->stride + j]);
      }
    }
  }
}

GLOW_HOT GLOW_FPU_UNUSED static void glow_fpu_taps_8(float *acc, const float *x, const float *w, int32_t taps, int32_t x_step,
                                            int32_t w_step) {
  for (int32_t n = 0; n < taps; n++) {
    for (int32_t c = 0; c < 8; c++) {
      acc[c] += glow_rounded(x[n * x_step + c] * w[n * w_step + c]);
    }
  }
}
#endif

#endif
