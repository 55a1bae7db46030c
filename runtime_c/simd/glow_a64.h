/* SPDX-License-Identifier: MIT-0 */
/* Blocks for A64: 8 pixels x 8 outputs (or 4, 2) by SDOT or SMMLA, 4 x 4 by SMULL, 1 x 8 and 1 x 4 for one row.
 *
 * The inputs of a block come in steps of 64 bytes (8 inputs of each of 8 pixels, or 16 of 4), the weights of a block
 * are one stream: biases (s32), scales (f32), then 64 bytes a step (glowc/kernels/simd/conv.py). A block is one
 * assembly text (a64_step.py, a64_end.py there), because gcc 12 spills accumulators of the same code in intrinsics; its
 * operands are
 *   at, w, n, to   inputs, stream, number of steps (or runs of steps), first pixel's outputs; all four are advanced
 *   next           bytes from a pixel's outputs to the next pixel's
 *   magic, zp, lo, hi
 * Results: clamp(rne(float32(acc) * scale) + zp, lo, hi).
 */
#ifndef GLOW_A64_H
#define GLOW_A64_H

#if defined(__aarch64__)

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "glow_runtime.h"
#include "glow_window_sums.h"

GLOW_SIZE(const int8_t *, 8); /* in lists of rows */

#define GLOW_A64_CLOBBERS                                                                                        \
  "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v16", "v17", "v18", \
      "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"

/* sums[i] += a[i] * b[i] */
static inline void glow_add_products8(int32_t *sums, int8x8_t a, int8x8_t b) {
  const int16x8_t products = vmull_s8(a, b);
  vst1q_s32(sums, vaddw_s16(vld1q_s32(sums), vget_low_s16(products)));
  vst1q_s32(sums + 4, vaddw_high_s16(vld1q_s32(sums + 4), products));
}

static inline void glow_add_products16(int32_t *sums, int8x16_t a, int8x16_t b) {
  glow_add_products8(sums, vget_low_s8(a), vget_low_s8(b));
  glow_add_products8(sums + 8, vget_high_s8(a), vget_high_s8(b));
}

/* eight pixels of `count` >= 8 inputs -> steps of 8 inputs of each */
static inline void glow_a64_gather8(int8_t *to, const int8_t *const *from, int32_t count) {
  const int8_t *f0 = from[0], *f1 = from[1], *f2 = from[2], *f3 = from[3];
  const int8_t *f4 = from[4], *f5 = from[5], *f6 = from[6], *f7 = from[7];
  int32_t i = 0;
  for (; i + 16 <= count; i += 16, to += 128) {
    const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(f0 + i)), b = vreinterpretq_s64_s8(vld1q_s8(f1 + i));
    const int64x2_t c = vreinterpretq_s64_s8(vld1q_s8(f2 + i)), d = vreinterpretq_s64_s8(vld1q_s8(f3 + i));
    const int64x2_t e = vreinterpretq_s64_s8(vld1q_s8(f4 + i)), f = vreinterpretq_s64_s8(vld1q_s8(f5 + i));
    const int64x2_t g = vreinterpretq_s64_s8(vld1q_s8(f6 + i)), h = vreinterpretq_s64_s8(vld1q_s8(f7 + i));
    vst1q_s8(to, vreinterpretq_s8_s64(vzip1q_s64(a, b)));
    vst1q_s8(to + 16, vreinterpretq_s8_s64(vzip1q_s64(c, d)));
    vst1q_s8(to + 32, vreinterpretq_s8_s64(vzip1q_s64(e, f)));
    vst1q_s8(to + 48, vreinterpretq_s8_s64(vzip1q_s64(g, h)));
    vst1q_s8(to + 64, vreinterpretq_s8_s64(vzip2q_s64(a, b)));
    vst1q_s8(to + 80, vreinterpretq_s8_s64(vzip2q_s64(c, d)));
    vst1q_s8(to + 96, vreinterpretq_s8_s64(vzip2q_s64(e, f)));
    vst1q_s8(to + 112, vreinterpretq_s8_s64(vzip2q_s64(g, h)));
  }
  if (i + 8 <= count) {
    for (int32_t j = 0; j < 8; j++) {
      memcpy(to + 8 * j, from[j] + i, 8);
    }
    to += 64;
  }
  if (count % 8 != 0) {
    for (int32_t j = 0; j < 8; j++) {
      const uint64_t bytes = glow_tail8(from[j], count);
      memcpy(to + 8 * j, &bytes, 8);
    }
  }
}

/* 16 inputs of `count` pixels, apart by `next` -> two planes of eight a pixel, apart by `plane` */
static inline void glow_a64_planes(int8_t *to, const int8_t *from, int32_t count, int64_t next, int32_t plane) {
  int8_t *second = to + plane;
  int64_t fours = count / 4;
  if (fours > 0) {
    __asm__ volatile(
        "1:\n"
        "ld1 {v0.2d}, [%[from]], %[next]\n" "ld1 {v1.2d}, [%[from]], %[next]\n"
        "ld1 {v2.2d}, [%[from]], %[next]\n" "ld1 {v3.2d}, [%[from]], %[next]\n"
        "zip1 v4.2d, v0.2d, v1.2d\n" "zip1 v5.2d, v2.2d, v3.2d\n"
        "zip2 v6.2d, v0.2d, v1.2d\n" "zip2 v7.2d, v2.2d, v3.2d\n"
        "subs %[n], %[n], #1\n"
        "stp q4, q5, [%[to]], #32\n" "stp q6, q7, [%[second]], #32\n"
        "b.ne 1b\n"
        : [from] "+&r"(from), [to] "+&r"(to), [second] "+&r"(second), [n] "+&r"(fours)
        : [next] "r"(next)
        : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7");
  }
  for (int32_t x = 0; x < count % 4; x++, from += next) {
    memcpy(to + 8 * x, from, 8);
    memcpy(second + 8 * x, from + 8, 8);
  }
}

/* four pixels of `count` >= 8 inputs -> steps of 16 inputs of each */
static inline void glow_a64_gather4(int8_t *to, const int8_t *const *from, int32_t count) {
  const int8_t *f0 = from[0], *f1 = from[1], *f2 = from[2], *f3 = from[3];
  int32_t i = 0;
  for (; i + 16 <= count; i += 16, to += 64) {
    const int8x16_t a = vld1q_s8(f0 + i), b = vld1q_s8(f1 + i), c = vld1q_s8(f2 + i), d = vld1q_s8(f3 + i);
    vst1q_s8(to, a);
    vst1q_s8(to + 16, b);
    vst1q_s8(to + 32, c);
    vst1q_s8(to + 48, d);
  }
  if (i < count) {
    for (int32_t j = 0; j < 4; j++) {
      glow_tail16(to + 16 * j, from[j], count);
    }
  }
}

#endif
#endif
