/* SPDX-License-Identifier: MIT-0 */
/* Bilinear interpolation of codes over adjacent channels (MVE): the float32 operations of the definition in its order,
 * and that of codes as they are in integers.
 */
#ifndef GLOW_MVE_BILINEAR_H
#define GLOW_MVE_BILINEAR_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

typedef struct {
  float weights[4]; /* the assembly knows the offsets up to `minus_out_scale` */
  float in_scale;
  float r; /* 1 / out_scale, rounded */
  float minus_out_scale;
  int32_t in_zp, out_zp;
} glow_mve_bilinear_t;
GLOW_AT(glow_mve_bilinear_t, weights, 0); GLOW_AT(glow_mve_bilinear_t, in_scale, 16);
GLOW_AT(glow_mve_bilinear_t, r, 20); GLOW_AT(glow_mve_bilinear_t, minus_out_scale, 24);

#define GLOW_MVE_BILINEAR_REAL(from) \
  "vldrb.s32 q1, [%[" from "]], #4\nvsub.i32 q1, q1, %q[in_zp]\nvcvt.f32.s32 q1, q1\nvmul.f32 q1, q1, r12\n"
#define GLOW_MVE_BILINEAR_ADD(from, weight) \
  GLOW_MVE_BILINEAR_REAL(from) "vmul.f32 q1, q1, " weight "\nvadd.f32 q0, q0, q1\n"

/* n outputs. The quotient by out_scale is rounded correctly: two Newton steps with fused remainders. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_bilinear(const glow_mve_bilinear_t *q, const int8_t *a0,
                                                                       int32_t right, int32_t down, int8_t *out,
                                                                       int32_t n) {
  const int8_t *a1 = a0 + right;
  const int8_t *b0 = a0 + down;
  const int8_t *b1 = b0 + right;
  __asm__ volatile(
      "ldrd r8, r9, [%[q]]\nldrd r10, r11, [%[q], #8]\nldr r12, [%[q], #16]\nmov lr, %[n]\n"
      "ldrd %[q], %[n], [%[q], #20]\nwlstp.32 lr, lr, 2f\n"
      "1: " GLOW_MVE_BILINEAR_REAL("a0") "vmul.f32 q0, q1, r8\n" GLOW_MVE_BILINEAR_ADD("a1", "r9")
      GLOW_MVE_BILINEAR_ADD("b0", "r10") GLOW_MVE_BILINEAR_ADD("b1", "r11")
      "vmul.f32 q1, q0, %[q]\nvmov q2, q0\nvfma.f32 q2, q1, %[n]\nvfma.f32 q1, q2, %[q]\nvfma.f32 q0, q1, %[n]\n"
      "vfma.f32 q1, q0, %[q]\nvcvtn.s32.f32 q1, q1\nvqadd.s32 q1, q1, %q[out_zp]\nvmax.s32 q1, q1, %q[least]\n"
      "vmin.s32 q1, q1, %q[most]\nvstrb.32 q1, [%[out]], #4\nletp lr, 1b\n2:"
      : [a0] "+l"(a0), [a1] "+l"(a1), [b0] "+l"(b0), [b1] "+l"(b1), [out] "+l"(out), [q] "+r"(q), [n] "+r"(n)
      : [in_zp] "w"(vdupq_n_s32(q->in_zp)), [out_zp] "w"(vdupq_n_s32(q->out_zp)),
        [least] "w"(vdupq_n_s32(-128)), [most] "w"(vdupq_n_s32(127))
      : "r8", "r9", "r10", "r11", "r12", "lr", "q0", "q1", "q2", "cc", "memory");
}

#define GLOW_MVE_BILINEAR_CODE(from, first, weight) \
  "vldrb.s32 q1, [%[" from "]], #4\n" first " q0, q1, " weight "\n"
#define GLOW_MVE_BILINEAR_CODES(rounding) \
  "ldrd r8, r9, [%[w]]\nldrd r10, r11, [%[w], #8]\nwlstp.32 lr, %[n], 2f\n" \
  "1: " GLOW_MVE_BILINEAR_CODE("a0", "vmul.i32", "r8") \
  GLOW_MVE_BILINEAR_CODE("a1", "vmla.s32", "r9") GLOW_MVE_BILINEAR_CODE("b0", "vmla.s32", "r10") \
  GLOW_MVE_BILINEAR_CODE("b1", "vmla.s32", "r11") rounding "vshr.s32 q0, q0, #20\n" \
  "vstrb.32 q0, [%[out]], #4\nletp lr, 1b\n2:"

/* n outputs of codes as they are: sums with weights w in units of 2^-20, rounded down, or towards zero. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_bilinear_codes(const int32_t *w, const int8_t *a0,
                                                                             int32_t right, int32_t down, int8_t *out,
                                                                             int32_t n, int towards_zero) {
  const int8_t *a1 = a0 + right;
  const int8_t *b0 = a0 + down;
  const int8_t *b1 = b0 + right;
  if (towards_zero != 0) {
    __asm__ volatile(GLOW_MVE_BILINEAR_CODES("vshr.s32 q1, q0, #31\nvshr.u32 q1, q1, #12\nvadd.i32 q0, q0, q1\n")
                     : [a0] "+l"(a0), [a1] "+l"(a1), [b0] "+l"(b0), [b1] "+l"(b1), [out] "+l"(out)
                     : [n] "r"(n), [w] "r"(w)
                     : "r8", "r9", "r10", "r11", "lr", "q0", "q1", "cc", "memory");
  } else {
    __asm__ volatile(GLOW_MVE_BILINEAR_CODES("")
                     : [a0] "+l"(a0), [a1] "+l"(a1), [b0] "+l"(b0), [b1] "+l"(b1), [out] "+l"(out)
                     : [n] "r"(n), [w] "r"(w)
                     : "r8", "r9", "r10", "r11", "lr", "q0", "q1", "cc", "memory");
  }
}
#endif
#endif
