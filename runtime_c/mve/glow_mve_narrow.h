/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers whose weights have 4 or 2 bits (MVE): the constants are those of glow_mve_dot.h with such
 * weights, stored plus half of the codes (glow_mve_unpack.h), which is taken from the sums instead; or as places in a
 * palette.
 */
#ifndef GLOW_MVE_NARROW_H
#define GLOW_MVE_NARROW_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

/* Sum of n codes, n a multiple of 16. */
GLOW_INLINE int32_t glow_mve_narrow_sum(const int8_t *x, int32_t n) {
  int32_t sum = 0;
  __asm__ volatile("wls lr, %[n], 2f\n1: vldrb.8 q0, [%[x]], #16\nvaddva.s8 %[sum], q0\nle lr, 1b\n2:"
                   : [sum] "+Te"(sum), [x] "+l"(x)
                   : [n] "r"(n / 16)
                   : "lr", "q0", "cc", "memory");
  return sum;
}

#define GLOW_MVE_NARROW_SUMS(mask, loop) \
  __asm__ volatile("vmov.i8 q2, #" mask "\nwls lr, %[n], 2f\n1: vldrb.8 q0, [%[x]], #16\n" loop "le lr, 1b\n2:" \
                   : [a] "+Te"(sums[0]), [b] "+Te"(sums[1]), [c] "+Te"(sums[2]), [d] "+Te"(sums[3]), [x] "+l"(x), \
                     [w] "+l"(w) \
                   : [n] "r"(n / 16) \
                   : "lr", "q0", "q1", "q2", "q3", "cc", "memory")

/* Add the products of n codes with those of four outputs to their sums; return the constants after them. */
GLOW_INLINE const uint32_t *glow_mve_narrow_sums_s4(const int8_t *x, const uint32_t *w, int32_t n, int32_t *sums) {
  GLOW_MVE_NARROW_SUMS("15",
                       "vldrw.u32 q1, [%[w]], #16\nvand q3, q1, q2\nvmladava.s8 %[a], q0, q3\nvshr.u8 q1, q1, #4\n"
                       "vldrw.u32 q3, [%[w]], #16\nvmladava.s8 %[b], q0, q1\nvand q1, q3, q2\n"
                       "vmladava.s8 %[c], q0, q1\nvshr.u8 q3, q3, #4\nvmladava.s8 %[d], q0, q3\n");
  return w;
}

GLOW_INLINE const uint32_t *glow_mve_narrow_sums_s2(const int8_t *x, const uint32_t *w, int32_t n, int32_t *sums) {
  GLOW_MVE_NARROW_SUMS("3",
                       "vldrw.u32 q1, [%[w]], #16\nvand q3, q1, q2\nvmladava.s8 %[a], q0, q3\nvshr.u8 q1, q1, #2\n"
                       "vand q3, q1, q2\nvmladava.s8 %[b], q0, q3\nvshr.u8 q1, q1, #2\nvand q3, q1, q2\n"
                       "vmladava.s8 %[c], q0, q3\nvshr.u8 q1, q1, #2\nvmladava.s8 %[d], q0, q1\n");
  return w;
}

#define GLOW_MVE_PALETTE_SUMS(mask, loop) \
  __asm__ volatile("vmov.i8 q2, #" mask "\nwls lr, %[n], 2f\n1: vldrb.8 q0, [%[x]], #16\n" loop "le lr, 1b\n2:" \
                   : [a] "+Te"(sums[0]), [b] "+Te"(sums[1]), [c] "+Te"(sums[2]), [d] "+Te"(sums[3]), [x] "+l"(x), \
                     [w] "+l"(w) \
                   : [n] "r"(n / 16), [palette] "r"(palette) \
                   : "lr", "q0", "q1", "q2", "q3", "q4", "cc", "memory")
#define GLOW_MVE_PALETTE_FIRST(sum) \
  "vand q3, q1, q2\nvldrb.u8 q4, [%[palette], q3]\nvmladava.s8 %[" sum "], q0, q4\n"
#define GLOW_MVE_PALETTE_LAST(sum) "vldrb.u8 q4, [%[palette], q1]\nvmladava.s8 %[" sum "], q0, q4\n"
#define GLOW_MVE_PALETTE_WORD "vldrw.u32 q1, [%[w]], #16\n"

/* The same of weights of a palette. */
GLOW_INLINE const uint32_t *glow_mve_narrow_sums_p4(const int8_t *x, const uint32_t *w, const int8_t *palette, int32_t n,
                                                    int32_t *sums) {
  GLOW_MVE_PALETTE_SUMS("15",
                        GLOW_MVE_PALETTE_WORD GLOW_MVE_PALETTE_FIRST("a") "vshr.u8 q1, q1, #4\n" GLOW_MVE_PALETTE_LAST("b")
                        GLOW_MVE_PALETTE_WORD GLOW_MVE_PALETTE_FIRST("c") "vshr.u8 q1, q1, #4\n"
                        GLOW_MVE_PALETTE_LAST("d"));
  return w;
}

GLOW_INLINE const uint32_t *glow_mve_narrow_sums_p2(const int8_t *x, const uint32_t *w, const int8_t *palette, int32_t n,
                                                    int32_t *sums) {
  GLOW_MVE_PALETTE_SUMS("3",
                        GLOW_MVE_PALETTE_WORD GLOW_MVE_PALETTE_FIRST("a") "vshr.u8 q1, q1, #2\n" GLOW_MVE_PALETTE_FIRST("b")
                        "vshr.u8 q1, q1, #2\n" GLOW_MVE_PALETTE_FIRST("c") "vshr.u8 q1, q1, #2\n"
                        GLOW_MVE_PALETTE_LAST("d"));
  return w;
}

/* Codes of four sums, of which `left` are stored where that is less; `w`: biases, then scales. */
GLOW_INLINE void glow_mve_narrow_codes(const int32_t *sums, const uint32_t *w, int32_t zp, int32_t low, int32_t high,
                                       int8_t *out, int32_t left) {
  const float32x4_t scales = vreinterpretq_f32_u32(vldrwq_u32(w + 4));
  const int32x4_t acc = vaddq_s32(glow_mve_get_s32(sums), vreinterpretq_s32_u32(vldrwq_u32(w)));
  const int32x4_t y = vqaddq_n_s32(vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(acc), scales)), zp);
  vstrbq_p_s32(out, vminq_s32(vmaxq_s32(y, vdupq_n_s32(low)), vdupq_n_s32(high)), vctp32q((uint32_t)left));
}

#endif
#endif
