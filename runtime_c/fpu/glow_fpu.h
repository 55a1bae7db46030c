/* SPDX-License-Identifier: MIT-0 */
/* Sums of float32 products in blocks that stay in the FPU's registers (Cortex-M with FPU), with the same in C.
 *
 * VMLA rounds the product, then the sum: the bits of acc + x * w in C without contraction. So do VMUL and VADD, which
 * take one cycle each on Cortex-M4 and M33, where VMLA takes three (Arm DDI 0439B, table 7-1). Each sum adds its products
 * in the order of the reference kernels.
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

/* x[i] and w + j * stride are read `k` elements long, `times` times: x goes on `skip` elements further, w `w_skip`. */
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

#define GLOW_FPU_FUNCTION GLOW_HOT __attribute__((naked, noinline)) GLOW_FPU_UNUSED static void

/* Whether products and sums are instructions of their own; GLOW_LOOP_BYTES is that of Cortex-M4. */
#if defined(GLOW_LOOP_BYTES) || (__ARM_ARCH >= 8 && !defined(__ARM_FEATURE_MVE))
#define GLOW_FPU_MLA4(a, b, c, d, x0, x1, x2, x3, w0, w1, w2, w3) \
  "vmul.f32 s28, s" #x0 ", s" #w0 "\n" "vmul.f32 s29, s" #x1 ", s" #w1 "\n" \
  "vmul.f32 s30, s" #x2 ", s" #w2 "\n" "vmul.f32 s31, s" #x3 ", s" #w3 "\n" \
  "vadd.f32 s" #a ", s" #a ", s28\n" "vadd.f32 s" #b ", s" #b ", s29\n" \
  "vadd.f32 s" #c ", s" #c ", s30\n" "vadd.f32 s" #d ", s" #d ", s31\n"
#define GLOW_FPU_PRODUCT(x, w) "vmul.f32 s" #x ", s" #x ", s" #w "\n"
#define GLOW_FPU_SUM(to, x, w) "vadd.f32 s" #to ", s" #to ", s" #x "\n"
#else
#define GLOW_FPU_MLA4(a, b, c, d, x0, x1, x2, x3, w0, w1, w2, w3) \
  "vmla.f32 s" #a ", s" #x0 ", s" #w0 "\n" "vmla.f32 s" #b ", s" #x1 ", s" #w1 "\n" \
  "vmla.f32 s" #c ", s" #x2 ", s" #w2 "\n" "vmla.f32 s" #d ", s" #x3 ", s" #w3 "\n"
#define GLOW_FPU_PRODUCT(x, w)
#define GLOW_FPU_SUM(to, x, w) "vmla.f32 s" #to ", s" #x ", s" #w "\n"
#endif
/* Four sums, in sa-sd, of one w times four x; s28-s31 may be changed. */
#define GLOW_FPU_MLA(a, b, c, d, x0, x1, x2, x3, w) GLOW_FPU_MLA4(a, b, c, d, x0, x1, x2, x3, w, w, w, w)
/* Two products of each sum: row j of w, which `load` gets, times four x, whose pairs are in s16-s23. */
#define GLOW_FPU_LOAD(w) "vldmia " w "!, {s24, s25}\n"
#define GLOW_FPU_PAIR(load, w, a, b, c, d) \
  load(w) GLOW_FPU_MLA(a, b, c, d, 16, 18, 20, 22, 24) GLOW_FPU_MLA(a, b, c, d, 17, 19, 21, 23, 25)
#define GLOW_FPU_PAIRS(load) \
  "vldmia r4!, {s16, s17}\n" "vldmia r5!, {s18, s19}\n" "vldmia r6!, {s20, s21}\n" "vldmia r7!, {s22, s23}\n" \
  GLOW_FPU_PAIR(load, "r8", 0, 4, 8, 12) GLOW_FPU_PAIR(load, "r9", 1, 5, 9, 13) \
  GLOW_FPU_PAIR(load, "r10", 2, 6, 10, 14) GLOW_FPU_PAIR(load, "r11", 3, 7, 11, 15)
/* One product of each sum, `load` gets a column of w. */
#define GLOW_FPU_LOAD_ONES(a, b, c, d) \
  "vldmia r8!, {s" #a "}\n" "vldmia r9!, {s" #b "}\n" "vldmia r10!, {s" #c "}\n" "vldmia r11!, {s" #d "}\n"
#define GLOW_FPU_ONE(load) \
  "vldmia r4!, {s16}\n" "vldmia r5!, {s17}\n" "vldmia r6!, {s18}\n" "vldmia r7!, {s19}\n" load(20, 21, 22, 23) \
  GLOW_FPU_COLUMN
#define GLOW_FPU_COLUMN \
  GLOW_FPU_MLA(0, 4, 8, 12, 16, 17, 18, 19, 20) GLOW_FPU_MLA(1, 5, 9, 13, 16, 17, 18, 19, 21) \
  GLOW_FPU_MLA(2, 6, 10, 14, 16, 17, 18, 19, 22) GLOW_FPU_MLA(3, 7, 11, 15, 16, 17, 18, 19, 23)
#define GLOW_FPU_OUTER \
  "vldmia r4!, {s16}\n" "vldmia r5!, {s17}\n" "vldmia r6!, {s18}\n" "vldmia r7!, {s19}\n" \
  "vldmia r8, {s20-s23}\n" "add r8, r8, r2\n" GLOW_FPU_COLUMN
/* One row of x: four products of two sums in turn, of all four sums, and one of each. */
#define GLOW_FPU_TWO(v, w, a, b) \
  "vldmia " v "!, {s8-s11}\n" "vldmia " w "!, {s12-s15}\n" \
  GLOW_FPU_PRODUCT(8, 4) GLOW_FPU_PRODUCT(9, 5) GLOW_FPU_PRODUCT(10, 6) GLOW_FPU_PRODUCT(11, 7) \
  GLOW_FPU_PRODUCT(12, 4) GLOW_FPU_PRODUCT(13, 5) GLOW_FPU_PRODUCT(14, 6) GLOW_FPU_PRODUCT(15, 7) \
  GLOW_FPU_SUM(a, 8, 4) GLOW_FPU_SUM(b, 12, 4) GLOW_FPU_SUM(a, 9, 5) GLOW_FPU_SUM(b, 13, 5) \
  GLOW_FPU_SUM(a, 10, 6) GLOW_FPU_SUM(b, 14, 6) GLOW_FPU_SUM(a, 11, 7) GLOW_FPU_SUM(b, 15, 7)
#define GLOW_FPU_ROW "vldmia r4!, {s4-s7}\n" GLOW_FPU_TWO("r8", "r9", 0, 1) GLOW_FPU_TWO("r10", "r11", 2, 3)
#define GLOW_FPU_ROW_ONE(load) \
  "vldmia r4!, {s4}\n" load(8, 9, 10, 11) \
  GLOW_FPU_PRODUCT(8, 4) GLOW_FPU_PRODUCT(9, 4) GLOW_FPU_PRODUCT(10, 4) GLOW_FPU_PRODUCT(11, 4) \
  GLOW_FPU_SUM(0, 8, 4) GLOW_FPU_SUM(1, 9, 4) GLOW_FPU_SUM(2, 10, 4) GLOW_FPU_SUM(3, 11, 4)
/* An element of w has 1 << shift bytes. */
#define GLOW_FPU_OPERANDS(shift) \
  "ldm r1, {r4-r8}\n" \
  "ldrd r2, r3, [r1, #20]\n" \
  "add r9, r8, r2" shift "\n" "add r10, r9, r2" shift "\n" "add r11, r10, r2" shift "\n"
#define GLOW_FPU_BEGIN(shift) \
  "push {r0, r4-r11, lr}\n" "vpush {s16-s31}\n" "vldmia r0, {s0-s15}\n" GLOW_FPU_OPERANDS(shift)
#define GLOW_FPU_END "ldr r0, [sp, #64]\n" "vstmia r0, {s0-s15}\n" "vpop {s16-s31}\n" "add sp, sp, #4\n" "pop {r4-r11, pc}\n"
#define GLOW_FPU_BEGIN_ROW(shift) "push {r0, r4-r11, lr}\n" "vldmia r0, {s0-s3}\n" GLOW_FPU_OPERANDS(shift)
#define GLOW_FPU_END_ROW "ldr r0, [sp]\n" "vstmia r0, {s0-s3}\n" "add sp, sp, #4\n" "pop {r4-r11, pc}\n"
/* Runs of products: 1 << bits at a time by `some`, which leaves r0 alone, the rest by `one`. */
#define GLOW_FPU_RUNS(begin, end, shift, bits, some, one) \
  __asm__ volatile( \
        ".syntax unified\n" \
        begin(shift) \
        "ldr r2, [r1, #28]\n" \
        "5:\n" \
        "asrs r0, r3, #" #bits "\n" \
        "beq.w 2f\n" \
        "1:\n" \
        some \
        "subs r0, r0, #1\n" \
        "bne.w 1b\n" \
        "2:\n" \
        "ands r0, r3, #(1 << " #bits ") - 1\n" \
        "beq.w 4f\n" \
        "3:\n" \
        one \
        "subs r0, r0, #1\n" \
        "bne.w 3b\n" \
        "4:\n" \
        "subs r2, r2, #1\n" \
        "beq.w 6f\n" \
        "ldrd r0, r12, [r1, #32]\n" \
        "add r4, r4, r0, lsl #2\n" "add r5, r5, r0, lsl #2\n" "add r6, r6, r0, lsl #2\n" "add r7, r7, r0, lsl #2\n" \
        "add r8, r8, r12" shift "\n" "add r9, r9, r12" shift "\n" \
        "add r10, r10, r12" shift "\n" "add r11, r11, r12" shift "\n" \
        "b.w 5b\n" \
        "6:\n" \
        end)

/* sums[i][j] += sum over n of x[i][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_dots_4x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_t *d) {
  GLOW_FPU_RUNS(GLOW_FPU_BEGIN, GLOW_FPU_END, ", lsl #2", 2, GLOW_FPU_PAIRS(GLOW_FPU_LOAD) GLOW_FPU_PAIRS(GLOW_FPU_LOAD),
                GLOW_FPU_ONE(GLOW_FPU_LOAD_ONES));
}

/* sums[j] += sum over n of x[0][n] * w[j][n], in the order of n. */
GLOW_FPU_FUNCTION glow_fpu_dots_1x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_t *d) {
  GLOW_FPU_RUNS(GLOW_FPU_BEGIN_ROW, GLOW_FPU_END_ROW, ", lsl #2", 2, GLOW_FPU_ROW, GLOW_FPU_ROW_ONE(GLOW_FPU_LOAD_ONES));
}

/* sums[i][j] += sum over n of x[i][n] * w[n][j], in the order of n; once. */
GLOW_FPU_FUNCTION glow_fpu_outer_4x4(GLOW_FPU_UNUSED float *sums, GLOW_FPU_UNUSED const glow_fpu_dots_t *d) {
  __asm__ volatile(
      ".syntax unified\n"
      GLOW_FPU_BEGIN(", lsl #2")
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

#else /* the same in C */

#define GLOW_FPU_TWINS(dots_of_four, dots_of_one, name) \
  GLOW_INLINE float dots_of_one##_sum(float sum, const float *x, int32_t row, const name *d) { \
    for (int32_t t = 0; t < d->times; t++) { \
      for (int32_t n = t * d->k; n < (t + 1) * d->k; n++) { \
        sum += glow_rounded(x[n + t * d->skip] * (float)d->w[row * d->stride + n + t * d->w_skip]); \
      } \
    } \
    return sum; \
  } \
  GLOW_HOT GLOW_FPU_UNUSED static void dots_of_four(float *sums, const name *d) { \
    for (int32_t at = 0; at < 16; at++) { \
      sums[at] = dots_of_one##_sum(sums[at], d->x[at / 4], at % 4, d); \
    } \
  } \
  GLOW_HOT GLOW_FPU_UNUSED static void dots_of_one(float *sums, const name *d) { \
    for (int32_t j = 0; j < 4; j++) { \
      sums[j] = dots_of_one##_sum(sums[j], d->x[0], j, d); \
    } \
  }
GLOW_FPU_TWINS(glow_fpu_dots_4x4, glow_fpu_dots_1x4, glow_fpu_dots_t)

GLOW_HOT GLOW_FPU_UNUSED static void glow_fpu_outer_4x4(float *sums, const glow_fpu_dots_t *d) {
  for (int32_t at = 0; at < 16; at++) {
    for (int32_t n = 0; n < d->k; n++) {
      sums[at] += glow_rounded(d->x[at / 4][n] * d->w[n * d->stride + at % 4]);
    }
  }
}

#endif

#endif
