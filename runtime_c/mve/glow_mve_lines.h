/* SPDX-License-Identifier: MIT-0 */
/* Straight lines in integers on codes (MVE): out = clamp((m * x + b) >> s), of a second line from a code on. `s` is
 * negative: a shift to the left.
 */
#ifndef GLOW_MVE_LINES_H
#define GLOW_MVE_LINES_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

#define GLOW_MVE_LINES_STORE \
  "vmax.s32 q0, q0, %q[least]\nvmin.s32 q0, q0, %q[most]\nvstrb.32 q0, [%[out]], #4\nletp lr, 1b\n2:"

/* A line for each code: in fours {m[4], b[4], s[4]}. */
GLOW_INLINE void glow_mve_lines1(const int8_t *in, const int32_t *lines, int8_t *out, int32_t n, int32x4_t least,
                                   int32x4_t most) {
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrb.s32 q0, [%[in]], #4\nvldrw.32 q1, [%[l]], #48\n"
                   "vmul.i32 q0, q0, q1\nvldrw.32 q1, [%[l], #-32]\nvadd.i32 q0, q0, q1\nvldrw.32 q1, [%[l], #-16]\n"
                   "vshl.s32 q0, q0, q1\n" GLOW_MVE_LINES_STORE
                   : [in] "+l"(in), [out] "+l"(out), [l] "+r"(lines)
                   : [n] "r"(n), [least] "w"(least), [most] "w"(most)
                   : "lr", "q0", "q1", "cc", "memory");
}

/* Two lines for each code: in fours {first[4], m[4], b[4], s[4], m'[4], b'[4], s'[4]}. */
GLOW_INLINE void glow_mve_lines2(const int8_t *in, const int32_t *lines, int8_t *out, int32_t n, int32x4_t least,
                                   int32x4_t most) {
  __asm__ volatile(
      "wlstp.32 lr, %[n], 2f\n1: vldrb.s32 q1, [%[in]], #4\nvldrw.32 q4, [%[l]], #112\nvldrw.32 q2, [%[l], #-96]\n"
      "vmul.i32 q0, q1, q2\nvldrw.32 q2, [%[l], #-80]\nvadd.i32 q0, q0, q2\nvldrw.32 q2, [%[l], #-64]\n"
      "vshl.s32 q0, q0, q2\nvldrw.32 q2, [%[l], #-48]\nvldrw.32 q3, [%[l], #-32]\nvldrw.32 q5, [%[l], #-16]\n"
      "vpttt.s32 ge, q1, q4\nvmult.i32 q0, q1, q2\nvaddt.i32 q0, q0, q3\nvshlt.s32 q0, q0, q5\n" GLOW_MVE_LINES_STORE
      : [in] "+l"(in), [out] "+l"(out), [l] "+r"(lines)
      : [n] "r"(n), [least] "w"(least), [most] "w"(most)
      : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "cc", "memory");
}

/* One line {m, b, s} for n codes. */
GLOW_INLINE void glow_mve_line1(const int8_t *in, const int32_t *line, int8_t *out, int32_t n, int32x4_t least,
                                  int32x4_t most) {
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrb.s32 q0, [%[in]], #4\nvmlas.s32 q0, %q[m], %[b]\nvshl.s32 q0, %[s]\n"
                   GLOW_MVE_LINES_STORE
                   : [in] "+l"(in), [out] "+l"(out)
                   : [n] "r"(n), [m] "w"(vdupq_n_s32(line[0])), [b] "r"(line[1]), [s] "r"(line[2]),
                     [least] "w"(least), [most] "w"(most)
                   : "lr", "q0", "cc", "memory");
}

/* Two lines {first, m, b, s, m', b', s'} for n codes. Four of its numbers are in high registers: without optimisation
 * the compiler would look for low ones for all, and has not got them. */
GLOW_INLINE void glow_mve_line2(const int8_t *in, const int32_t *line, int8_t *out, int32_t n, int32x4_t least,
                                  int32x4_t most) {
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrb.s32 q0, [%[in]], #4\nvpttee.s32 ge, q0, %[first]\n"
                   "vmlast.s32 q0, %q[m2], %[b2]\nvshlt.s32 q0, %[s2]\nvmlase.s32 q0, %q[m], %[b]\nvshle.s32 q0, %[s]\n"
                   GLOW_MVE_LINES_STORE
                   : [in] "+l"(in), [out] "+l"(out)
                   : [n] "r"(n), [first] "r"(line[0]), [m] "w"(vdupq_n_s32(line[1])), [b] "h"(line[2]),
                     [s] "h"(line[3]), [m2] "w"(vdupq_n_s32(line[4])), [b2] "h"(line[5]), [s2] "h"(line[6]),
                     [least] "w"(least), [most] "w"(most)
                   : "lr", "q0", "cc", "memory");
}
#endif
#endif
