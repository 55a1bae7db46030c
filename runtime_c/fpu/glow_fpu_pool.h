/* SPDX-License-Identifier: MIT-0 */
/* Four adjacent floats of a window's columns at a time (Cortex-M with FPU), with the same in C. */
#ifndef GLOW_FPU_POOL_H
#define GLOW_FPU_POOL_H

#include "glow_fpu.h"
#include "glow_reach.h"

/* name(held, p, step, count) joins `count` fours, `step` floats apart, with the four at `held`: by `text` the FPU's s0-s3
 * with s4-s7, by `joined` the floats a and b. */
#if GLOW_FPU_ASM
#define GLOW_FPU_COLUMNS(name, text, joined) \
  GLOW_INLINE void name(float *held, const float *p, int32_t step, int32_t count) { \
    if (count > 0) { \
      __asm__ volatile( \
          "vldmia %2, {s0-s3}\n\t1:\n\tvldmia %0, {s4-s7}\n\tadd %0, %0, %3, lsl #2\n\t" text \
          "subs %1, %1, #1\n\tbne 1b\n\tvstmia %2, {s0-s3}" \
          : "+&r"(p), "+&r"(count) \
          : "r"(held), "r"(step) \
          : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "cc", "memory"); \
    } \
  }
#else
#define GLOW_FPU_COLUMNS(name, text, joined) \
  GLOW_INLINE void name(float *held, const float *p, int32_t step, int32_t count) { \
    for (; count > 0; count--, p += step) { \
      for (int32_t i = 0; i < 4; i++) { \
        const float a = held[i]; \
        const float b = p[i]; \
        held[i] = joined; \
      } \
    } \
  }
#endif

GLOW_FPU_COLUMNS(glow_fpu_greatest,
                 "vmaxnm.f32 s0, s0, s4\n\tvmaxnm.f32 s1, s1, s5\n\tvmaxnm.f32 s2, s2, s6\n\tvmaxnm.f32 s3, s3, s7\n\t",
                 b > a ? b : a) /* FPv5 */
#define GLOW_FPU_GREATER(a, b) "vcmp.f32 " b ", " a "\n\tvmrs apsr_nzcv, fpscr\n\tit gt\n\tvmovgt.f32 " a ", " b "\n\t"
GLOW_FPU_COLUMNS(glow_fpu_greatest_compared,
                 GLOW_FPU_GREATER("s0", "s4") GLOW_FPU_GREATER("s1", "s5") GLOW_FPU_GREATER("s2", "s6")
                 GLOW_FPU_GREATER("s3", "s7"),
                 b > a ? b : a)
GLOW_FPU_COLUMNS(glow_fpu_sum,
                 "vadd.f32 s0, s0, s4\n\tvadd.f32 s1, s1, s5\n\tvadd.f32 s2, s2, s6\n\tvadd.f32 s3, s3, s7\n\t", a + b)

#endif
