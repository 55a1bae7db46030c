/* SPDX-License-Identifier: MIT-0 */
/* Sum of the float32 products of two rows in the FPU's registers (Cortex-M with FPU), with the same in C. */
#ifndef GLOW_FPU_ROW_H
#define GLOW_FPU_ROW_H

#include "glow_fpu.h"

/* acc + x[0] * w[0] + x[1] * w[1] ..., in this order, products and sums rounded. */
GLOW_HOT GLOW_FPU_UNUSED static float glow_fpu_row(float acc, const float *x, const float *w, int32_t n) {
#if GLOW_FPU_ASM
  int32_t eights = n / 8;
  if (eights > 0) {
    n -= 8 * eights;
    __asm__ volatile(
        "1:\n\tvldmia %1!, {s0-s7}\n\tvldmia %2!, {s8-s15}\n\t"
        "vmla.f32 %0, s0, s8\n\tvmla.f32 %0, s1, s9\n\tvmla.f32 %0, s2, s10\n\tvmla.f32 %0, s3, s11\n\t"
        "vmla.f32 %0, s4, s12\n\tvmla.f32 %0, s5, s13\n\tvmla.f32 %0, s6, s14\n\tvmla.f32 %0, s7, s15\n\t"
        "subs %3, %3, #1\n\tbne 1b"
        : "+t"(acc), "+r"(x), "+r"(w), "+r"(eights)
        :
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "cc",
          "memory");
  }
#endif
  for (int32_t i = 0; i < n; i++) {
    acc += glow_rounded(x[i] * w[i]);
  }
  return acc;
}

#endif
