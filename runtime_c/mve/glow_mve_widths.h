/* SPDX-License-Identifier: MIT-0 */
/* Codes of 8 bits to codes of 16 and back in integers (MVE): y = clamp(((x * factor >> 16) + add) >> shift), sums within
 * 32 bits (kernels/common/widths.py).
 */
#ifndef GLOW_MVE_WIDTHS_H
#define GLOW_MVE_WIDTHS_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

typedef struct {
  int32_t factor, add, shift;
} glow_mve_widths_t;

/* VMULH takes the upper half of (x * 2^16) * factor. */
#define GLOW_MVE_WIDTHS(load, bytes, store, to_bytes, low, high)                                                       \
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: " load " q0, [%[in]], #" bytes "\nvshl.i32 q0, q0, #16\n"                \
                   "vmulh.s32 q0, q0, %q[factor]\nvadd.i32 q0, q0, %[add]\nvshl.s32 q0, %[shift]\n"                    \
                   "vmax.s32 q0, q0, %q[least]\nvmin.s32 q0, q0, %q[most]\n" store " q0, [%[out]], #" to_bytes "\n"    \
                   "letp lr, 1b\n2:"                                                                                   \
                   : [in] "+l"(in), [out] "+l"(out)                                                                    \
                   : [n] "r"(n), [factor] "w"(vdupq_n_s32(d->factor)), [add] "r"(d->add), [shift] "r"(-d->shift),      \
                     [least] "w"(vdupq_n_s32(low)), [most] "w"(vdupq_n_s32(high))                                      \
                   : "lr", "q0", "cc", "memory")

GLOW_INLINE void glow_mve_widen(const int8_t *in, int16_t *out, int32_t n, const glow_mve_widths_t *d) {
  GLOW_MVE_WIDTHS("vldrb.s32", "4", "vstrh.32", "8", -32768, 32767);
}

GLOW_INLINE void glow_mve_narrow(const int16_t *in, int8_t *out, int32_t n, const glow_mve_widths_t *d) {
  GLOW_MVE_WIDTHS("vldrh.s32", "8", "vstrb.32", "4", -128, 127);
}

#endif

#endif
