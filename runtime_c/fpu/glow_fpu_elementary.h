/* SPDX-License-Identifier: MIT-0 */
/* exp, tanh, erf ... of four floats side by side in the registers of an FPU (glow_elementary.h): no operation waits for the
 * one before it. The longest functions are of two floats where four are too much for the flash cache of a chip
 * (GLOW_LOOP_BYTES). */
#ifndef GLOW_FPU_ELEMENTARY_H
#define GLOW_FPU_ELEMENTARY_H

#include <stdint.h>
#include <string.h>

#include "glow_elementary.h"

typedef struct {
  float a, b, c, d;
} glow_fpu_four_t;
typedef struct {
  float a, b;
} glow_fpu_two_t;

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
#define glow_fpu_one_signed glow_one_signed
#define glow_fpu_one_power glow_one_power

/* The floats of a type, and what comes after an operation on them. In order: the compiler may put no operation on one of
 * them between those of the next one, where it waits for its result. This costs registers, which long functions lack
 * in any case. */
#define GLOW_FPU_TWO_IN_ORDER(of) of(a), of(b)
#define GLOW_FPU_FOUR_IN_ORDER(of) of(a), of(b), of(c), of(d)
#define GLOW_FPU_ANY_FOUR(of) of(a), of(b), of(c), of(d)
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && !defined(GLOW_NO_ASM)
#define GLOW_FPU_TWO_IN_ORDER_DONE(v) __asm__("" : "+t"((v).a), "+t"((v).b))
#define GLOW_FPU_FOUR_IN_ORDER_DONE(v) __asm__("" : "+t"((v).a), "+t"((v).b), "+t"((v).c), "+t"((v).d))
#else
#define GLOW_FPU_TWO_IN_ORDER_DONE(v) (void)(v)
#define GLOW_FPU_FOUR_IN_ORDER_DONE(v) (void)(v)
#endif
#define GLOW_FPU_ANY_FOUR_DONE(v) (void)(v)
#define GLOW_FPU_SIDE_BY_SIDE(P, V, each, name, parameters, of) \
  GLOW_INLINE V P##_##name parameters {                         \
    V floats = {each(of)};                                      \
    each##_DONE(floats);                                        \
    return floats;                                              \
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
/* P##_all ... of the type V, the floats of which `each` lists, and what is made of them. */
#define GLOW_FPU_ELEMENTARY(P, V, each)                                             \
  GLOW_INLINE V P##_all(float k) {                                                  \
    const V floats = {each(GLOW_FPU_OF_ALL)};                                       \
    return floats;                                                                  \
  }                                                                                 \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, add, (V x, V y), GLOW_FPU_OF_ADD)               \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, mul, (V x, V y), GLOW_FPU_OF_MUL)               \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, ratio, (V x, V y), GLOW_FPU_OF_RATIO)           \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, plus, (V x, float k), GLOW_FPU_OF_PLUS)         \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, times, (V x, float k), GLOW_FPU_OF_TIMES)       \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, step, (V x, V y, float k), GLOW_FPU_OF_STEP)    \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, from, (V x, float k), GLOW_FPU_OF_FROM)         \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, up_to, (V x, float k), GLOW_FPU_OF_UP_TO)       \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, abs, (V x), GLOW_FPU_OF_ABS)                    \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, signed, (V x, V y), GLOW_FPU_OF_SIGNED)         \
  GLOW_FPU_SIDE_BY_SIDE(P, V, each, power, (V x, uint32_t k), GLOW_FPU_OF_POWER)    \
  GLOW_ELEMENTARY(P, V)
GLOW_FPU_ELEMENTARY(glow_fpu_fn, glow_fpu_four_t, GLOW_FPU_ANY_FOUR)

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

#if defined(GLOW_LOOP_BYTES) && GLOW_LOOP_BYTES < 1536
#define GLOW_FPU_LONG_LANES 2
GLOW_FPU_ELEMENTARY(glow_fpu_long, glow_fpu_two_t, GLOW_FPU_TWO_IN_ORDER)
GLOW_INLINE glow_fpu_two_t glow_fpu_long_load(const float *from) {
  const glow_fpu_two_t two = {from[0], from[1]};
  return two;
}
GLOW_INLINE void glow_fpu_long_store(float *to, glow_fpu_two_t x, int32_t lanes) {
  to[0] = x.a;
  if (lanes > 1) {
    to[1] = x.b;
  }
}
#else
#define GLOW_FPU_LONG_LANES 4
GLOW_FPU_ELEMENTARY(glow_fpu_long, glow_fpu_four_t, GLOW_FPU_FOUR_IN_ORDER)
#define glow_fpu_long_load glow_fpu_fn_load
#define glow_fpu_long_store glow_fpu_fn_store
#endif

/* the sum of as many of them */
GLOW_INLINE float glow_fpu_fn_sum(glow_fpu_four_t x, int32_t lanes) {
  const float two = lanes > 1 ? x.a + x.b : x.a;
  return lanes > 3 ? two + (x.c + x.d) : (lanes > 2 ? two + x.c : two);
}

#endif
