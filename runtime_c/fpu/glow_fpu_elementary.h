/* SPDX-License-Identifier: MIT-0 */
/* exp, tanh, erf ... of four floats side by side in the registers of an FPU (glow_elementary.h): no operation waits for the
 * one before it. */
#ifndef GLOW_FPU_ELEMENTARY_H
#define GLOW_FPU_ELEMENTARY_H

#include <stdint.h>
#include <string.h>

#include "glow_elementary.h"

typedef struct {
  float a, b, c, d;
} glow_fpu_four_t;

/* c where x is above it (gt) or below it (mi), else x, without a jump; what is not a number stays so */
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && !defined(GLOW_NO_ASM)
#define GLOW_FPU_ONE_LIMIT(name, condition, operation)                                          \
  GLOW_INLINE float name(float x, float c) {                                                  \
    __asm__("vcmp.f32 %0, %1\n\tvmrs APSR_nzcv, fpscr\n\tit " condition "\n\tvmov" condition    \
            ".f32 %0, %1"                                                                       \
            : "+t"(x)                                                                           \
            : "t"(c)                                                                            \
            : "cc");                                                                            \
    return x;                                                                                   \
  }
#else
#define GLOW_FPU_ONE_LIMIT(name, condition, operation) \
  GLOW_INLINE float name(float x, float c) { return x operation c ? c : x; }
#endif
GLOW_FPU_ONE_LIMIT(glow_fpu_one_up_to, "gt", >)
GLOW_FPU_ONE_LIMIT(glow_fpu_one_from, "mi", <)

GLOW_INLINE float glow_fpu_one_abs(float x) { return __builtin_fabsf(x); }
GLOW_INLINE float glow_fpu_one_signed(float x, float y) {
  uint32_t bits;
  uint32_t sign;
  memcpy(&bits, &x, sizeof bits);
  memcpy(&sign, &y, sizeof sign);
  bits = (bits & 0x7FFFFFFFu) | (sign & 0x80000000u);
  memcpy(&x, &bits, sizeof bits);
  return x;
}
GLOW_INLINE float glow_fpu_one_power(float t, uint32_t bias) {
  uint32_t bits;
  memcpy(&bits, &t, sizeof bits);
  bits = (bits << 23) + bias;
  memcpy(&t, &bits, sizeof bits);
  return t;
}

#define GLOW_FPU_BY_FOUR(name, parameters, of)                              \
  GLOW_INLINE glow_fpu_four_t glow_fpu_fn_##name parameters {             \
    const glow_fpu_four_t four = {of(a), of(b), of(c), of(d)};              \
    return four;                                                            \
  }
#define GLOW_FPU_OF_ALL(i) k
#define GLOW_FPU_OF_ADD(i) x.i + y.i
#define GLOW_FPU_OF_MUL(i) x.i * y.i
#define GLOW_FPU_OF_RATIO(i) x.i / y.i
#define GLOW_FPU_OF_PLUS(i) x.i + k
#define GLOW_FPU_OF_TIMES(i) x.i * k
#define GLOW_FPU_OF_STEP(i) x.i * y.i + k
#define GLOW_FPU_OF_FROM(i) glow_fpu_one_from(x.i, k)
#define GLOW_FPU_OF_UP_TO(i) glow_fpu_one_up_to(x.i, k)
#define GLOW_FPU_OF_ABS(i) glow_fpu_one_abs(x.i)
#define GLOW_FPU_OF_SIGNED(i) glow_fpu_one_signed(x.i, y.i)
#define GLOW_FPU_OF_POWER(i) glow_fpu_one_power(x.i, k)
GLOW_FPU_BY_FOUR(all, (float k), GLOW_FPU_OF_ALL)
GLOW_FPU_BY_FOUR(add, (glow_fpu_four_t x, glow_fpu_four_t y), GLOW_FPU_OF_ADD)
GLOW_FPU_BY_FOUR(mul, (glow_fpu_four_t x, glow_fpu_four_t y), GLOW_FPU_OF_MUL)
GLOW_FPU_BY_FOUR(ratio, (glow_fpu_four_t x, glow_fpu_four_t y), GLOW_FPU_OF_RATIO)
GLOW_FPU_BY_FOUR(plus, (glow_fpu_four_t x, float k), GLOW_FPU_OF_PLUS)
GLOW_FPU_BY_FOUR(times, (glow_fpu_four_t x, float k), GLOW_FPU_OF_TIMES)
GLOW_FPU_BY_FOUR(step, (glow_fpu_four_t x, glow_fpu_four_t y, float k), GLOW_FPU_OF_STEP)
GLOW_FPU_BY_FOUR(from, (glow_fpu_four_t x, float k), GLOW_FPU_OF_FROM)
GLOW_FPU_BY_FOUR(up_to, (glow_fpu_four_t x, float k), GLOW_FPU_OF_UP_TO)
GLOW_FPU_BY_FOUR(abs, (glow_fpu_four_t x), GLOW_FPU_OF_ABS)
GLOW_FPU_BY_FOUR(signed, (glow_fpu_four_t x, glow_fpu_four_t y), GLOW_FPU_OF_SIGNED)
GLOW_FPU_BY_FOUR(power, (glow_fpu_four_t x, uint32_t k), GLOW_FPU_OF_POWER)

GLOW_ELEMENTARY(glow_fpu_fn, glow_fpu_four_t)

GLOW_INLINE glow_fpu_four_t glow_fpu_fn_load(const float *from) {
  const glow_fpu_four_t four = {from[0], from[1], from[2], from[3]};
  return four;
}

/* to[i] = x for i < lanes, 1 to 4 */
GLOW_INLINE void glow_fpu_fn_store(float *to, glow_fpu_four_t x, int32_t lanes) {
  to[0] = x.a;
  if (lanes > 1) {
    to[1] = x.b;
  }
  if (lanes > 2) {
    to[2] = x.c;
  }
  if (lanes > 3) {
    to[3] = x.d;
  }
}

/* the sum of as many of them */
GLOW_INLINE float glow_fpu_fn_sum(glow_fpu_four_t x, int32_t lanes) {
  const float two = lanes > 1 ? x.a + x.b : x.a;
  return lanes > 3 ? two + (x.c + x.d) : (lanes > 2 ? two + x.c : two);
}

#endif
