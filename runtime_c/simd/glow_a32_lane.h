/* SPDX-License-Identifier: MIT-0 */
/* Blocks of 4 pixels x 8 outputs for A32: products with one lane of a vector of inputs, in 32 bits from the start.
 *
 * Nothing is summed across lanes at the end, which pays where a window holds few inputs. The weights of a block are one
 * stream: biases (s32), scales (f32), then for each input eight weights of 16 bits, points: 8
 * (glowc/kernels/simd/conv_lane.py). Operands: w, to, k, next, head as in glow_a32.h; from (a cursor), step (bytes from a
 * pixel's inputs to the next's).
 */
#ifndef GLOW_A32_LANE_H
#define GLOW_A32_LANE_H

#include "glow_a32.h"
#include "glow_lane_rows.h"

#if defined(__arm__) && defined(__ARM_NEON)

/* accumulators q8..q15: outputs 0..3 and 4..7 of each pixel */
#define GLOW_A32_LANE_BEGIN                                         \
  "vld1.32 {d16-d19}, [%[head]]\n" "vld1.32 {d20-d23}, [%[head]]\n" \
  "vld1.32 {d24-d27}, [%[head]]\n" "vld1.32 {d28-d31}, [%[head]]!\n"

/* eight inputs of each pixel, of 8 or 16 bits -> q0..q3 */
#define GLOW_A32_LANE_LOAD_S8                                                                                 \
  "vld1.8 {d1}, [%[from]], %[step]\n" "vld1.8 {d3}, [%[from]], %[step]\n" "vld1.8 {d5}, [%[from]], %[step]\n" \
  "vld1.8 {d7}, [%[from]], %[step]\n" GLOW_A32_LANE_WIDEN(1, 3, 5, 7)
#define GLOW_A32_LANE_WIDEN(a, b, c, d) \
  "vmovl.s8 q0, d" #a "\n" "vmovl.s8 q1, d" #b "\n" "vmovl.s8 q2, d" #c "\n" "vmovl.s8 q3, d" #d "\n"
/* where the pixels are adjacent: bytes of q6, q7 */
#define GLOW_A32_LANE_LOAD_ADJACENT "vld1.8 {d12-d15}, [%[from]]\n" GLOW_A32_LANE_WIDEN(12, 13, 14, 15)
#define GLOW_A32_LANE_LOAD_S16                                                    \
  "vld1.16 {d0-d1}, [%[from]], %[step]\n" "vld1.16 {d2-d3}, [%[from]], %[step]\n" \
  "vld1.16 {d4-d5}, [%[from]], %[step]\n" "vld1.16 {d6-d7}, [%[from]], %[step]\n"

#define GLOW_A32_LANE_W1 "vld1.16 {d8-d9}, [%[w]]!\n"
#define GLOW_A32_LANE_W2 "vld1.16 {d8-d11}, [%[w]]!\n"
#define GLOW_A32_LANE_W4 GLOW_A32_LANE_W2 "vld1.16 {d12-d15}, [%[w]]!\n"
/* the same of weights of 8 bits */
#define GLOW_A32_LANE_W1_S8       \
  "vld1.8 {d9}, [%[w]]!\n"        \
  "vmovl.s8 q4, d9\n"
#define GLOW_A32_LANE_W2_S8     \
  "vld1.8 {d10-d11}, [%[w]]!\n" \
  "vmovl.s8 q4, d10\n" "vmovl.s8 q5, d11\n"
#define GLOW_A32_LANE_W4_S8     \
  "vld1.8 {d12-d15}, [%[w]]!\n" \
  "vmovl.s8 q4, d12\n" "vmovl.s8 q5, d13\n" "vmovl.s8 q6, d14\n" "vmovl.s8 q7, d15\n"

/* weights d<u>, d<v> of the input that is lane j of d<p> of each pixel (p: 0, or 1 for inputs 4 to 7) */
#define GLOW_A32_LANE_MAC_LOW(u, v, j) GLOW_A32_LANE_MAC(u, v, "0[" #j "]", "2[" #j "]", "4[" #j "]", "6[" #j "]")
#define GLOW_A32_LANE_MAC_HIGH(u, v, j) GLOW_A32_LANE_MAC(u, v, "1[" #j "]", "3[" #j "]", "5[" #j "]", "7[" #j "]")
#define GLOW_A32_LANE_MAC(u, v, a, b, c, d) \
  "vmlal.s16 q8, d" #u ", d" a "\n"         \
  "vmlal.s16 q9, d" #v ", d" a "\n"         \
  "vmlal.s16 q10, d" #u ", d" b "\n"        \
  "vmlal.s16 q11, d" #v ", d" b "\n"        \
  "vmlal.s16 q12, d" #u ", d" c "\n"        \
  "vmlal.s16 q13, d" #v ", d" c "\n"        \
  "vmlal.s16 q14, d" #u ", d" d "\n"        \
  "vmlal.s16 q15, d" #v ", d" d "\n"

#define GLOW_A32_LANE_ZP_NONE ""
#define GLOW_A32_LANE_ZP_ODD \
  "vadd.i16 q8, q8, q3\n" "vadd.i16 q9, q9, q3\n" "vadd.i16 q10, q10, q3\n" "vadd.i16 q11, q11, q3\n"
#define GLOW_A32_LANE_BOUND_FREE ""
#define GLOW_A32_LANE_BOUND_ANY                                                               \
  "vmax.s8 d0, d0, d8\n" "vmax.s8 d1, d1, d8\n" "vmax.s8 d2, d2, d8\n" "vmax.s8 d3, d3, d8\n" \
  "vmin.s8 d0, d0, d9\n" "vmin.s8 d1, d1, d9\n" "vmin.s8 d2, d2, d9\n" "vmin.s8 d3, d3, d9\n"
#define GLOW_A32_LANE_BOUND_SMALL "vld1.8 {d8-d9}, [%[k]]\n" GLOW_A32_LANE_BOUND_ANY

#define GLOW_A32_LANE_END(K, ZP, BOUND)                                                                   \
  "vld1.32 {d0-d3}, [%[head]]\n" GLOW_A32_LOAD_##K GLOW_A32_ROUND(K, 8, 0) GLOW_A32_ROUND(K, 9, 1)        \
      GLOW_A32_ROUND(K, 10, 0) GLOW_A32_ROUND(K, 11, 1) GLOW_A32_ROUND(K, 12, 0) GLOW_A32_ROUND(K, 13, 1) \
          GLOW_A32_ROUND(K, 14, 0) GLOW_A32_ROUND(K, 15, 1)                                               \
  "vmovn.i32 d16, q8\n" "vmovn.i32 d17, q9\n" "vmovn.i32 d18, q10\n" "vmovn.i32 d19, q11\n"               \
  "vmovn.i32 d20, q12\n" "vmovn.i32 d21, q13\n" "vmovn.i32 d22, q14\n"                                    \
  "vmovn.i32 d23, q15\n" GLOW_A32_LANE_ZP_##ZP                                                            \
  "vqmovn.s16 d0, q8\n" "vqmovn.s16 d1, q9\n" "vqmovn.s16 d2, q10\n"                                      \
  "vqmovn.s16 d3, q11\n" GLOW_A32_LANE_BOUND_##BOUND                                                      \
  "vst1.8 {d0}, [%[to]], %[next]\n" "vst1.8 {d1}, [%[to]], %[next]\n"                                     \
  "vst1.8 {d2}, [%[to]], %[next]\n" "vst1.8 {d3}, [%[to]], %[next]\n"

#endif
#endif
