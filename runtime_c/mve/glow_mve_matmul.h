/* SPDX-License-Identifier: MIT-0 */
/* Products of two int8 activations (MVE): columns of the right one are made rows, where they are not yet. */
#ifndef GLOW_MVE_MATMUL_H
#define GLOW_MVE_MATMUL_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_elementwise.h"

/* to[i] = from[i * step]; step below 8192 */
GLOW_INLINE void glow_mve_column(int8_t *to, const int8_t *from, int32_t step, int32_t n) {
  const uint16x8_t offsets = vmulq_n_u16(glow_mve_index16(), (uint16_t)step);
  GLOW_MVE_STRIDED("16", "vldrb.u16 q0, [%[from], %q[offsets]]", "vstrb.16 q0, [%[to]], #8", 8);
}

GLOW_MVE_TOTAL(glow_mve_total, int8_t, "8", "vldrb.8", "vaddva.s8")

/* Products of x with four rows `pitch` bytes apart, each of `n` codes. A function of its own: ten registers and LR are
 * more than the compiler can promise where it is inlined. */
GLOW_MVE_FUNCTION int32x4_t glow_mve_dots(GLOW_MVE_UNUSED const int8_t *x, GLOW_MVE_UNUSED const int8_t *rows,
                                          GLOW_MVE_UNUSED int32_t pitch, GLOW_MVE_UNUSED int32_t n) {
  __asm__(
      "push {r4-r8, lr}\n" "add r12, r1, r2\n" "add r5, r12, r2\n" "add r7, r5, r2\n"
      "movs r2, #0\n" "movs r4, #0\n" "movs r6, #0\n" "mov r8, r2\n"
      "wlstp.8 lr, r3, 2f\n"
      "1: vldrb.8 q0, [r0], #16\n" "vldrb.8 q1, [r1], #16\n" "vmladava.s8 r2, q0, q1\n"
      "vldrb.8 q2, [r12], #16\n" "vmladava.s8 r4, q0, q2\n" "vldrb.8 q1, [r5], #16\n" "vmladava.s8 r6, q0, q1\n"
      "vldrb.8 q2, [r7], #16\n" "vmladava.s8 r8, q0, q2\n" "letp lr, 1b\n"
      "2: vmov d0, r2, r4\n" "vmov d1, r6, r8\n" "pop {r4-r8, pc}\n");
}

/* Stores four codes `step` bytes apart, the first `lanes` of them. */
GLOW_INLINE void glow_mve_scatter(int8_t *out, int32_t step, int32x4_t codes, int32_t lanes) {
  const uint32x4_t offsets = vmulq_n_u32(glow_mve_index32(), (uint32_t)step);
  __asm__ volatile("vctp.32 %[lanes]\nvpst\nvstrbt.32 %q[codes], [%[out], %q[offsets]]"
                   :
                   : [lanes] "r"(lanes), [codes] "w"(codes), [out] "r"(out), [offsets] "w"(offsets)
                   : "cc", "memory");
}
#endif

#endif
