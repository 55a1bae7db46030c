/* SPDX-License-Identifier: MIT-0 */
/* Softmax of int8 codes (MVE). */
#ifndef GLOW_MVE_SOFTMAX_H
#define GLOW_MVE_SOFTMAX_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_reals.h"

typedef struct {
  const float *table;
  float scale, steps; /* of the sum, and of the exponentials: one of them is 1 */
  int32_t zp;
} glow_mve_softmax_t;

/* q1 = table[from - x] of the next four codes; their sum in index order */
#define GLOW_MVE_ENTRIES(x) "vldrb.s32 q0, [%[" x "]], #4\nvsub.i32 q0, %q[from], q0\nvldrw.u32 q1, [%[table], q0, uxtw #2]\n"
#define GLOW_MVE_SUM(more, and) \
  "vadd.f32 %[sum], %[sum], s4\n" more "vadd.f32 %[sum], %[sum], s5\nvadd.f32 %[sum], %[sum], s6\n" \
  "vadd.f32 %[sum], %[sum], s7\n" and
/* The codes of q1 / sum: a product with the inverse and one step of Newton, with `copied` and `again` a second one. */
#define GLOW_MVE_SHARES(copied, again, more, then, and)                                                              \
  "vmul.f32 q2, q1, %[inverse]\n" copied more "vfma.f32 q1, q2, %[minus]\n" then "vfma.f32 q2, q1, %[inverse]\n" again \
  "vcvtn.s32.f32 q2, q2\nvqadd.s32 q2, q2, %[zp]\n" and "vmin.s32 q2, q2, %q[most]\nvstrb.32 q2, [%[out]], #4\n"
#define GLOW_MVE_SHARES_ONCE(more, then, and) GLOW_MVE_SHARES("", "", more, then, and)
#define GLOW_MVE_SHARES_TWICE(more, then, and) \
  GLOW_MVE_SHARES("vmov q3, q1\n", "vfma.f32 q3, q2, %[minus]\nvfma.f32 q2, q3, %[inverse]\n", more, then, and)
#define GLOW_MVE_PART_WHOLE ""
#define GLOW_MVE_PART_SCALED "vmul.f32 q1, q1, %[steps]\n"

/* Rows of softmax: e = table[max - in], out = clamp(rne(e * steps / sum) + zp), the sum in index order. Four codes are loaded while
 * those before them are worked at. */
#define GLOW_MVE_SOFTMAX(name, shares, part)                                                                                \
  GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void name(const int8_t *in, int8_t *out, int32_t rows,          \
                                                                      int32_t n, const glow_mve_softmax_t *s) {             \
    const int32x4_t most = vdupq_n_s32(127);                                                                                \
    for (; rows > 0; rows--, in -= -n & 3, out -= -n & 3) { /* the loops take whole fours */                                \
      const int8_t *x = in;                                                                                                 \
      int32_t max = -128;                                                                                                   \
      float sum = 0.0f;                                                                                                     \
      __asm__ volatile("wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[x]], #16\nvmaxv.s8 %[max], q0\nletp lr, 1b\n2:"             \
                       : [x] "+r"(x), [max] "+r"(max)                                                                       \
                       : [n] "r"(n)                                                                                         \
                       : "lr", "q0", "cc", "memory");                                                                       \
      const int32x4_t from = vdupq_n_s32(max);                                                                              \
      x = in;                                                                                                               \
      __asm__ volatile("lsrs lr, %[n], #2\nbeq 2f\n" GLOW_MVE_ENTRIES("x") "sub lr, lr, #1\nwls lr, lr, 3f\n1:"             \
                       GLOW_MVE_SUM("vldrb.s32 q0, [%[x]], #4\nvsub.i32 q0, %q[from], q0\n",                                \
                                    "vldrw.u32 q1, [%[table], q0, uxtw #2]\nle lr, 1b\n")                                   \
                       "3: " GLOW_MVE_SUM("", "") "2: and lr, %[n], #3\nwlstp.32 lr, lr, 5f\n4: " GLOW_MVE_ENTRIES("x")     \
                       GLOW_MVE_SUM("", "") "letp lr, 4b\n5:"                                                               \
                       : [x] "+l"(x), [sum] "+t"(sum)                                                                       \
                       : [n] "r"(n), [table] "r"(s->table), [from] "w"(from)                                                \
                       : "lr", "q0", "q1", "cc", "memory");                                                                 \
      sum *= s->scale;                                                                                                      \
      __asm__ volatile("lsrs lr, %[n], #2\nbeq 2f\n" GLOW_MVE_ENTRIES("in") part "sub lr, lr, #1\nwls lr, lr, 3f\n1:"       \
                       shares("vldrb.s32 q0, [%[in]], #4\n", "vsub.i32 q0, %q[from], q0\n",                                 \
                              "vldrw.u32 q1, [%[table], q0, uxtw #2]\n" part) "le lr, 1b\n"                                 \
                       "3: " shares("", "", "") "2: and lr, %[n], #3\nwlstp.32 lr, lr, 5f\n4: " GLOW_MVE_ENTRIES("in") part \
                       shares("", "", "") "letp lr, 4b\n5:"                                                                 \
                       : [in] "+l"(in), [out] "+l"(out)                                                                     \
                       : [n] "r"(n), [table] "r"(s->table), [steps] "r"(glow_mve_bits(s->steps)),                           \
                         [minus] "r"(glow_mve_bits(-sum)), [inverse] "r"(glow_mve_bits(1.0f / sum)), [zp] "r"(s->zp),       \
                         [from] "w"(from), [most] "w"(most)                                                                 \
                       : "lr", "q0", "q1", "q2", "q3", "cc", "memory");                                                     \
    }                                                                                                                       \
  }

#endif

#endif
