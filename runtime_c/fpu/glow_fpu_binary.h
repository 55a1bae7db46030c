/* SPDX-License-Identifier: MIT-0 */
/* Sums, differences, products and quotients of floats, eight at a time (Cortex-M with FPU), with the same in C. */
#ifndef GLOW_FPU_BINARY_H
#define GLOW_FPU_BINARY_H

#include "glow_fpu.h"

/* Eights of a and b. An operand that is one float for all has eight copies of it, and a step of 0 instead of 8. */
typedef struct {
  float *out;
  const float *a;
  const float *b;
  int32_t eights; /* at least one */
  int32_t a_step, b_step;
  float low, high;
} glow_fpu_binary_t;
#if GLOW_FPU_ASM
GLOW_AT(glow_fpu_binary_t, out, 0); GLOW_AT(glow_fpu_binary_t, a, 4); GLOW_AT(glow_fpu_binary_t, b, 8);
GLOW_AT(glow_fpu_binary_t, eights, 12); GLOW_AT(glow_fpu_binary_t, a_step, 16); GLOW_AT(glow_fpu_binary_t, b_step, 20);
GLOW_AT(glow_fpu_binary_t, low, 24); GLOW_AT(glow_fpu_binary_t, high, 28);
#endif

#if GLOW_FPU_ASM
#define GLOW_FPU_LEAST(v) "vcmp.f32 s" #v ", s16\nvmrs APSR_nzcv, fpscr\nit mi\nvmovmi.f32 s" #v ", s16\n"
#define GLOW_FPU_MOST(v) "vcmp.f32 s" #v ", s17\nvmrs APSR_nzcv, fpscr\nit gt\nvmovgt.f32 s" #v ", s17\n"
#define GLOW_FPU_EACH(limit) limit(0) limit(1) limit(2) limit(3) limit(4) limit(5) limit(6) limit(7)
#define GLOW_FPU_ANY(v)
#define GLOW_FPU_FROM(v) GLOW_FPU_LEAST(v)
#define GLOW_FPU_BETWEEN(v) GLOW_FPU_LEAST(v) GLOW_FPU_MOST(v)
#define GLOW_FPU_BINARY(name, op, operation, limit) \
  GLOW_FPU_FUNCTION name(GLOW_FPU_UNUSED const glow_fpu_binary_t *d) { \
    __asm__ volatile( \
        ".syntax unified\n" \
        "push {r4-r6}\n" \
        "vpush {s16-s17}\n" \
        "vldr s16, [r0, #24]\n" \
        "vldr s17, [r0, #28]\n" \
        "ldm r0, {r1-r6}\n" /* out, a, b, eights, steps */ \
        "1:\n" \
        "vldmia r2, {s0-s7}\n" "vldmia r3, {s8-s15}\n" \
        "add r2, r2, r5, lsl #2\n" "add r3, r3, r6, lsl #2\n" \
        op " s0, s0, s8\n" op " s1, s1, s9\n" op " s2, s2, s10\n" op " s3, s3, s11\n" \
        op " s4, s4, s12\n" op " s5, s5, s13\n" op " s6, s6, s14\n" op " s7, s7, s15\n" \
        GLOW_FPU_EACH(limit) \
        "vstmia r1!, {s0-s7}\n" \
        "subs r4, r4, #1\n" \
        "bne.w 1b\n" \
        "vpop {s16-s17}\n" \
        "pop {r4-r6}\n" \
        "bx lr\n"); \
  }
#else
#define GLOW_FPU_ANY(v) (v)
#define GLOW_FPU_FROM(v) ((v) < d->low ? d->low : (v))
#define GLOW_FPU_BETWEEN(v) glow_limited((v), d->low, d->high)
#define GLOW_FPU_BINARY(name, op, operation, limit) \
  GLOW_HOT GLOW_FPU_UNUSED static void name(const glow_fpu_binary_t *d) { \
    for (int32_t at = 0; at < d->eights; at++) { \
      for (int32_t i = 0; i < 8; i++) { \
        const float value = d->a[at * d->a_step + i] operation d->b[at * d->b_step + i]; \
        d->out[8 * at + i] = limit(value); \
      } \
    } \
  }
#endif

#define GLOW_FPU_LIMITS(name, op, operation) \
  GLOW_FPU_BINARY(glow_fpu_##name, op, operation, GLOW_FPU_ANY) \
  GLOW_FPU_BINARY(glow_fpu_##name##_from, op, operation, GLOW_FPU_FROM) \
  GLOW_FPU_BINARY(glow_fpu_##name##_between, op, operation, GLOW_FPU_BETWEEN)
GLOW_FPU_LIMITS(add, "vadd.f32", +)
GLOW_FPU_LIMITS(sub, "vsub.f32", -)
GLOW_FPU_LIMITS(mul, "vmul.f32", *)
GLOW_FPU_LIMITS(div, "vdiv.f32", /)

#endif
