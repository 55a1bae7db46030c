/* SPDX-License-Identifier: MIT-0 */
/* Blocks for A64: 8 pixels x 8 outputs (or 4, 2) by SDOT or SMMLA, 4 x 4 by SMULL, 1 x 8 and 1 x 4 for one row.
 *
 * The inputs of a block come in steps of 64 bytes (8 inputs of each of 8 pixels, or 16 of 4), the weights of a block
 * are one stream: biases (s32), scales (f32), then 64 bytes a step (glowc/kernels/simd/conv.py). The macros are parts of
 * one assembly text, because gcc 12 spills accumulators of the same code in intrinsics; its operands are
 *   at, w, n, to   inputs, stream, number of steps (or runs of steps), first pixel's outputs; all four are advanced
 *   next           bytes from a pixel's outputs to the next pixel's
 *   magic, zp, lo, hi
 * Results: clamp(rne(float32(acc) * scale) + zp, lo, hi). Where the packer proved |float32(acc) * scale| <= 32000
 * (GLOW_A64_SMALL), the product is rounded half to even by adding 1.5 * 2^23, plus the zero point where that is even
 * (an odd one would move the ties); the low 16 bits of the sum then are the result. Otherwise FCVTNS rounds and
 * saturates (GLOW_A64_ANY).
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

/* v<a>: four sums -> four products, rounded, in the low 16 bits of each lane */
#define GLOW_A64_ROUND_SMALL(a, s)             \
  "scvtf v" #a ".4s, v" #a ".4s\n"             \
  "fmul v" #a ".4s, v" #a ".4s, v" #s ".4s\n"  \
  "fadd v" #a ".4s, v" #a ".4s, %[magic].4s\n"

#define GLOW_A64_ROUND_ANY(a, s)               \
  "scvtf v" #a ".4s, v" #a ".4s\n"             \
  "fmul v" #a ".4s, v" #a ".4s, v" #s ".4s\n"  \
  "fcvtns v" #a ".4s, v" #a ".4s\n"

/* the same of four vectors, or eight, each step of all before the next: an in-order pipeline need not wait */
#define GLOW_A64_FLOATS(a, c, d, e)                                 \
  "scvtf v" #a ".4s, v" #a ".4s\n" "scvtf v" #c ".4s, v" #c ".4s\n" \
  "scvtf v" #d ".4s, v" #d ".4s\n" "scvtf v" #e ".4s, v" #e ".4s\n"
#define GLOW_A64_TIMES(a, c, d, e, s, u, x, z)                                            \
  "fmul v" #a ".4s, v" #a ".4s, v" #s ".4s\n" "fmul v" #c ".4s, v" #c ".4s, v" #u ".4s\n" \
  "fmul v" #d ".4s, v" #d ".4s, v" #x ".4s\n" "fmul v" #e ".4s, v" #e ".4s, v" #z ".4s\n"
#define GLOW_A64_NEAREST_SMALL(a, c, d, e)                                                  \
  "fadd v" #a ".4s, v" #a ".4s, %[magic].4s\n" "fadd v" #c ".4s, v" #c ".4s, %[magic].4s\n" \
  "fadd v" #d ".4s, v" #d ".4s, %[magic].4s\n" "fadd v" #e ".4s, v" #e ".4s, %[magic].4s\n"
#define GLOW_A64_NEAREST_ANY(a, c, d, e)                              \
  "fcvtns v" #a ".4s, v" #a ".4s\n" "fcvtns v" #c ".4s, v" #c ".4s\n" \
  "fcvtns v" #d ".4s, v" #d ".4s\n" "fcvtns v" #e ".4s, v" #e ".4s\n"

#define GLOW_A64_ROUND4_FLOATS(K, a, c, d, e, s, u, x, z) \
  GLOW_A64_FLOATS(a, c, d, e) GLOW_A64_TIMES(a, c, d, e, s, u, x, z) GLOW_A64_NEAREST_##K(a, c, d, e)
#define GLOW_A64_ROUND4_SMALL(a, c, d, e, s, u, x, z) GLOW_A64_ROUND4_FLOATS(SMALL, a, c, d, e, s, u, x, z)
#define GLOW_A64_ROUND4_ANY(a, c, d, e, s, u, x, z) GLOW_A64_ROUND4_FLOATS(ANY, a, c, d, e, s, u, x, z)

/* eight, of which each second one has the scales v<u> */
#define GLOW_A64_ROUND8_FLOATS(K, a, c, d, e, f, g, h, i, s, u)                   \
  GLOW_A64_FLOATS(a, c, d, e) GLOW_A64_FLOATS(f, g, h, i)                         \
  GLOW_A64_TIMES(a, c, d, e, s, u, s, u) GLOW_A64_TIMES(f, g, h, i, s, u, s, u)   \
  GLOW_A64_NEAREST_##K(a, c, d, e) GLOW_A64_NEAREST_##K(f, g, h, i)
#define GLOW_A64_ROUND8_SMALL(a, c, d, e, f, g, h, i, s, u) GLOW_A64_ROUND8_FLOATS(SMALL, a, c, d, e, f, g, h, i, s, u)
#define GLOW_A64_ROUND8_ANY(a, c, d, e, f, g, h, i, s, u) GLOW_A64_ROUND8_FLOATS(ANY, a, c, d, e, f, g, h, i, s, u)

/* what an end reads besides: only those of glow_a64_q31.h do */
#define GLOW_A64_MORE_SMALL(loads) ""
#define GLOW_A64_MORE_ANY(loads) ""

/* v<a>, v<c> -> eight 16 bit values in v<d> */
#define GLOW_A64_PACK_SMALL(d, a, c) "uzp1 v" #d ".8h, v" #a ".8h, v" #c ".8h\n"

#define GLOW_A64_PACK_ANY(d, a, c)     \
  "sqxtn v" #d ".4h, v" #a ".4s\n"     \
  "sqxtn2 v" #d ".8h, v" #c ".4s\n"

#define GLOW_A64_ZP_SMALL(d) "add v" #d ".8h, v" #d ".8h, %[zp].8h\n"
#define GLOW_A64_ZP_ANY(d) "sqadd v" #d ".8h, v" #d ".8h, %[zp].8h\n"
#define GLOW_A64_ZP_NONE(d) ""

/* v0, v1: sixteen values of 16 bits -> 8 bits in v<d> */
#define GLOW_A64_BYTES(d)            \
  "sqxtn v" #d ".8b, v0.8h\n"        \
  "sqxtn2 v" #d ".16b, v1.8h\n"

#define GLOW_A64_LOW(d) "smax v" #d ".16b, v" #d ".16b, %[lo].16b\n"
#define GLOW_A64_HIGH(d) "smin v" #d ".16b, v" #d ".16b, %[hi].16b\n"
#define GLOW_A64_FREE(d) ""

#define GLOW_A64_GO(base, by) "add " base ", " base ", " by "\n"
#define GLOW_A64_PUT8(v, lane) "st1 {v" #v ".d}[" #lane "], [%[to]]\n" GLOW_A64_GO("%[to]", "%[next]")
#define GLOW_A64_PUT4(v, lane) "st1 {v" #v ".s}[" #lane "], [%[to]]\n" GLOW_A64_GO("%[to]", "%[next]")
#define GLOW_A64_PUT2(v, lane) "st1 {v" #v ".h}[" #lane "], [%[to]]\n" GLOW_A64_GO("%[to]", "%[next]")

/* 8 x 8: accumulators v16..v31, outputs 0..3 and 4..7 of each pixel; `head` is the stream's begin */
#define GLOW_A64_BEGIN_8X8                                                                                        \
  "ldp q16, q17, [%[head]]\n" "ldp q18, q19, [%[head]]\n" "ldp q20, q21, [%[head]]\n" "ldp q22, q23, [%[head]]\n" \
  "ldp q24, q25, [%[head]]\n" "ldp q26, q27, [%[head]]\n" "ldp q28, q29, [%[head]]\n" "ldp q30, q31, [%[head]]\n"

/* four times four sums v<a>, v<c>, v<d>, v<e>, each with its scales -> bytes of v<r> */
#define GLOW_A64_SIXTEEN(K, ZP, LOW, HIGH, r, a, scale_a, c, scale_c, d, scale_d, e, scale_e)              \
  GLOW_A64_ROUND4_##K(a, c, d, e, scale_a, scale_c, scale_d, scale_e)                                      \
  GLOW_A64_PACK_##K(0, a, c) GLOW_A64_PACK_##K(1, d, e) GLOW_A64_ZP_##ZP(0) GLOW_A64_ZP_##ZP(1)            \
  GLOW_A64_BYTES(r) GLOW_A64_##LOW(r) GLOW_A64_##HIGH(r)

/* four pixels of eight outputs */
#define GLOW_A64_PUT_EIGHTS(v, u) \
  "str d" #v ", [%[to]]\n" "str d" #u ", [%[to], %[next]]\n" GLOW_A64_GO("%[to]", "%[next], lsl #1")
#define GLOW_A64_EIGHTS(K, ZP, LOW, HIGH, a, c, d, e, f, g, h, i)                                       \
  GLOW_A64_ROUND8_##K(a, c, d, e, f, g, h, i, 8, 9)                                                     \
  GLOW_A64_PACK_##K(0, a, c) GLOW_A64_PACK_##K(1, d, e) GLOW_A64_PACK_##K(2, f, g) GLOW_A64_PACK_##K(3, h, i) \
  GLOW_A64_ZP_##ZP(0) GLOW_A64_ZP_##ZP(1) GLOW_A64_ZP_##ZP(2) GLOW_A64_ZP_##ZP(3)                       \
  "sqxtn v0.8b, v0.8h\n" "sqxtn v1.8b, v1.8h\n" "sqxtn v2.8b, v2.8h\n" "sqxtn v3.8b, v3.8h\n"           \
  GLOW_A64_##LOW(0) GLOW_A64_##LOW(1) GLOW_A64_##LOW(2) GLOW_A64_##LOW(3)                               \
  GLOW_A64_##HIGH(0) GLOW_A64_##HIGH(1) GLOW_A64_##HIGH(2) GLOW_A64_##HIGH(3)                           \
  GLOW_A64_PUT_EIGHTS(0, 1) GLOW_A64_PUT_EIGHTS(2, 3)

#define GLOW_A64_END_8X8(K, ZP, LOW, HIGH)                                                              \
  "ldp q8, q9, [%[head], #32]\n" GLOW_A64_MORE_##K(GLOW_A64_SHIFTS_8X8)                                 \
      GLOW_A64_EIGHTS(K, ZP, LOW, HIGH, 16, 17, 18, 19, 20, 21, 22, 23)                                 \
      GLOW_A64_EIGHTS(K, ZP, LOW, HIGH, 24, 25, 26, 27, 28, 29, 30, 31)

/* four pixels of four outputs, scales v<s> -> bytes of two in v2, and of two in v3, which need not wait for v2 */
#define GLOW_A64_FOUR_PIXELS(K, ZP, LOW, HIGH, s, a, c, d, e)                                             \
  GLOW_A64_ROUND4_##K(a, c, d, e, s, s, s, s)                                                              \
  GLOW_A64_PACK_##K(0, a, c) GLOW_A64_PACK_##K(1, d, e) GLOW_A64_ZP_##ZP(0) GLOW_A64_ZP_##ZP(1)            \
  "sqxtn v2.8b, v0.8h\n" "sqxtn v3.8b, v1.8h\n"                                                            \
  GLOW_A64_##LOW(2) GLOW_A64_##LOW(3) GLOW_A64_##HIGH(2) GLOW_A64_##HIGH(3)
#define GLOW_A64_PUT_FOURS \
  "mov s0, v2.s[1]\n" "mov s1, v3.s[1]\n" "str s2, [%[to]]\n" "str s0, [%[to], %[next]]\n" \
  GLOW_A64_GO("%[to]", "%[next], lsl #1") "str s3, [%[to]]\n" "str s1, [%[to], %[next]]\n" \
  GLOW_A64_GO("%[to]", "%[next], lsl #1")
#define GLOW_A64_PUT_TWOS GLOW_A64_PUT2(2, 0) GLOW_A64_PUT2(2, 2) GLOW_A64_PUT2(3, 0) GLOW_A64_PUT2(3, 2)

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

#if defined(__ARM_FEATURE_DOTPROD)

/* 8 x 4 and 8 x 2: accumulators v16..v23, one for a pixel */
#define GLOW_DOT_BEGIN_NARROW(q)         \
  "ldr " q "16, [%[head]]\n"             \
  "ldr " q "17, [%[head]]\n"             \
  "ldr " q "18, [%[head]]\n"             \
  "ldr " q "19, [%[head]]\n"             \
  "ldr " q "20, [%[head]]\n"             \
  "ldr " q "21, [%[head]]\n"             \
  "ldr " q "22, [%[head]]\n"             \
  "ldr " q "23, [%[head]]\n"
#define GLOW_DOT_BEGIN_4 GLOW_DOT_BEGIN_NARROW("q")
#define GLOW_DOT_BEGIN_2 GLOW_DOT_BEGIN_NARROW("d")

#define GLOW_DOT_END_4(K, ZP, LOW, HIGH)                                                                       \
  "ldr q8, [%[head], #16]\n" GLOW_A64_MORE_##K(GLOW_DOT_SHIFTS_4)                                              \
      GLOW_A64_FOUR_PIXELS(K, ZP, LOW, HIGH, 8, 16, 17, 18, 19) GLOW_A64_PUT_FOURS      \
      GLOW_A64_FOUR_PIXELS(K, ZP, LOW, HIGH, 8, 20, 21, 22, 23) GLOW_A64_PUT_FOURS
#define GLOW_DOT_END_2(K, ZP, LOW, HIGH)                                                                       \
  "ldr d8, [%[head], #8]\n" GLOW_A64_MORE_##K(GLOW_DOT_SHIFTS_2)                                               \
      GLOW_A64_FOUR_PIXELS(K, ZP, LOW, HIGH, 8, 16, 17, 18, 19) GLOW_A64_PUT_TWOS        \
      GLOW_A64_FOUR_PIXELS(K, ZP, LOW, HIGH, 8, 20, 21, 22, 23) GLOW_A64_PUT_TWOS
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8)

#define GLOW_I8MM_COPY(a, c, d, e) \
  "mov v" #a ".16b, v16.16b\n" "mov v" #c ".16b, v17.16b\n" "mov v" #d ".16b, v18.16b\n" "mov v" #e ".16b, v19.16b\n"

/* accumulators v16..v31: for a pair of pixels outputs (0,1), (2,3), (4,5), (6,7), each of both pixels */
#define GLOW_I8MM_BEGIN                                                                       \
  "ld1r {v16.2d}, [%[w]], #8\n" "ld1r {v17.2d}, [%[w]], #8\n" "ld1r {v18.2d}, [%[w]], #8\n"   \
  "ld1r {v19.2d}, [%[w]], #8\n" "ld1r {v8.2d}, [%[w]], #8\n" "ld1r {v9.2d}, [%[w]], #8\n"     \
  "ld1r {v10.2d}, [%[w]], #8\n"                                                               \
  "ld1r {v11.2d}, [%[w]], #8\n" GLOW_I8MM_COPY(20, 21, 22, 23) GLOW_I8MM_COPY(24, 25, 26, 27) \
      GLOW_I8MM_COPY(28, 29, 30, 31)

#define GLOW_I8MM_TWO(K, ZP, LOW, HIGH, r, a, c, d, e) GLOW_A64_SIXTEEN(K, ZP, LOW, HIGH, r, a, 8, c, 9, d, 10, e, 11)

/* two pairs of pixels: bytes of both pixels alternate by outputs (0,1), (2,3) ... */
#define GLOW_I8MM_FOUR(K, ZP, LOW, HIGH, a, c, d, e, f, g, h, i)                                \
  GLOW_I8MM_TWO(K, ZP, LOW, HIGH, 2, a, c, d, e) GLOW_I8MM_TWO(K, ZP, LOW, HIGH, 3, f, g, h, i) \
  "uzp1 v0.8h, v2.8h, v3.8h\n"                                                                  \
  "uzp2 v1.8h, v2.8h, v3.8h\n" GLOW_A64_PUT8(0, 0) GLOW_A64_PUT8(1, 0) GLOW_A64_PUT8(0, 1)      \
      GLOW_A64_PUT8(1, 1)

#define GLOW_I8MM_END(K, ZP, LOW, HIGH)                                     \
  GLOW_A64_MORE_##K(GLOW_I8MM_SHIFTS)                                       \
  GLOW_I8MM_FOUR(K, ZP, LOW, HIGH, 16, 17, 18, 19, 20, 21, 22, 23)          \
  GLOW_I8MM_FOUR(K, ZP, LOW, HIGH, 24, 25, 26, 27, 28, 29, 30, 31)

/* 8 x 4: accumulators v16..v23, two for a pair of pixels */
#define GLOW_I8MM_BEGIN_4                                     \
  "ld1r {v16.2d}, [%[w]], #8\n" "ld1r {v17.2d}, [%[w]], #8\n" \
  "ld1r {v8.2d}, [%[w]], #8\n" "ld1r {v9.2d}, [%[w]], #8\n"   \
  "mov v18.16b, v16.16b\n"                                    \
  "mov v19.16b, v17.16b\n" GLOW_I8MM_COPY(20, 21, 22, 23)

/* two pairs of pixels: halves of pixels 0, 1, 0, 1 and 2, 3, 2, 3 */
#define GLOW_I8MM_FOUR_4(K, ZP, LOW, HIGH, a, c, d, e)                      \
  GLOW_A64_SIXTEEN(K, ZP, LOW, HIGH, 2, a, 8, c, 9, d, 8, e, 9)             \
  "uzp1 v0.8h, v2.8h, v2.8h\n"                                              \
  "uzp2 v1.8h, v2.8h, v2.8h\n"                                              \
  GLOW_A64_PUT4(0, 0) GLOW_A64_PUT4(1, 0) GLOW_A64_PUT4(0, 1) GLOW_A64_PUT4(1, 1)

#define GLOW_I8MM_END_4(K, ZP, LOW, HIGH) \
  GLOW_A64_MORE_##K(GLOW_I8MM_SHIFTS_4)   \
  GLOW_I8MM_FOUR_4(K, ZP, LOW, HIGH, 16, 17, 18, 19) GLOW_I8MM_FOUR_4(K, ZP, LOW, HIGH, 20, 21, 22, 23)
#endif

/* accumulators v16..v31, four to a pixel: lanes of one output, summed across at the end; the bias starts lane 0 */
#define GLOW_A64_BEGIN                                                                                       \
  "ldp s16, s17, [%[w]]\n" "ldp s18, s19, [%[w], #8]\n" "ldp s20, s21, [%[w]]\n" "ldp s22, s23, [%[w], #8]\n" \
  "ldp s24, s25, [%[w]]\n" "ldp s26, s27, [%[w], #8]\n" "ldp s28, s29, [%[w]]\n" "ldp s30, s31, [%[w], #8]\n" \
  "add %[w], %[w], #32\n"

/* four accumulators of one pixel -> its four outputs in v<a> */
#define GLOW_A64_SUM(a, c, d, e)                                                         \
  "addp v" #a ".4s, v" #a ".4s, v" #c ".4s\n" "addp v" #d ".4s, v" #d ".4s, v" #e ".4s\n" \
  "addp v" #a ".4s, v" #a ".4s, v" #d ".4s\n"

/* pairs of lanes of four pairs of vectors: twice, and four pixels are summed */
#define GLOW_A64_PAIRS(a, c, d, e, g, h, i, j) \
  "addp v" #a ".4s, v" #a ".4s, v" #c ".4s\n" "addp v" #d ".4s, v" #d ".4s, v" #e ".4s\n" \
  "addp v" #g ".4s, v" #g ".4s, v" #h ".4s\n" "addp v" #i ".4s, v" #i ".4s, v" #j ".4s\n"

#define GLOW_A64_END(K, ZP, LOW, HIGH) \
  "ldr q10, [%[head], #16]\n" GLOW_A64_MORE_##K(GLOW_A64_SHIFTS_END) \
  GLOW_A64_PAIRS(16, 17, 18, 19, 20, 21, 22, 23) GLOW_A64_PAIRS(24, 25, 26, 27, 28, 29, 30, 31) \
  GLOW_A64_PAIRS(16, 18, 20, 22, 24, 26, 28, 30) \
  GLOW_A64_FOUR_PIXELS(K, ZP, LOW, HIGH, 10, 16, 20, 24, 28) GLOW_A64_PUT_FOURS

/* one row x 8 outputs, or 4: accumulators v16..v23, lanes of one output; weights v4..v7, v24..v27 */
#define GLOW_A64_ROW_BEGIN_4                           \
  "ldp s16, s17, [%[w]]\n" "ldp s18, s19, [%[w], #8]\n" \
  "ldr q10, [%[w], #16]\n"                              \
  "add %[w], %[w], #32\n"

#define GLOW_A64_ROW_BEGIN_8                                                         \
  "ldp s16, s17, [%[w]]\n" "ldp s18, s19, [%[w], #8]\n" "ldp s20, s21, [%[w], #16]\n" \
  "ldp s22, s23, [%[w], #24]\n" "ldp q10, q11, [%[w], #32]\n"                         \
  "add %[w], %[w], #64\n"

#define GLOW_A64_ROW_END_4(K, ZP, LOW, HIGH)                                                 \
  GLOW_A64_SUM(16, 17, 18, 19) GLOW_A64_MORE_##K(GLOW_A64_ROW_SHIFTS_4)                      \
  GLOW_A64_ROUND_##K(16, 10) GLOW_A64_PACK_##K(0, 16, 16) GLOW_A64_ZP_##ZP(0)                \
  "sqxtn v2.8b, v0.8h\n" GLOW_A64_##LOW(2) GLOW_A64_##HIGH(2) "str s2, [%[to]]\n"

#define GLOW_A64_ROW_END_8(K, ZP, LOW, HIGH)                                                            \
  GLOW_A64_PAIRS(16, 17, 18, 19, 20, 21, 22, 23) "addp v16.4s, v16.4s, v18.4s\n" "addp v20.4s, v20.4s, v22.4s\n" \
  GLOW_A64_MORE_##K(GLOW_A64_ROW_SHIFTS_8)                                                              \
  GLOW_A64_ROUND_##K(16, 10) GLOW_A64_ROUND_##K(20, 11) GLOW_A64_PACK_##K(0, 16, 20) GLOW_A64_ZP_##ZP(0) \
  "sqxtn v2.8b, v0.8h\n" GLOW_A64_##LOW(2) GLOW_A64_##HIGH(2) "str d2, [%[to]]\n"
#endif
#endif
