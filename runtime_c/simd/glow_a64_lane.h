/* SPDX-License-Identifier: MIT-0 */
/* Blocks of 8 pixels x 8 outputs for A64 from one lane of a vector of inputs: SMLAL by element, or SDOT of four bytes.
 *
 * Nothing is summed across lanes at the end, which pays where a window holds few inputs. The weights of a block are one
 * stream: biases (s32), scales (f32), then for each input eight weights of 16 bits (points: 8), or for each four inputs four bytes
 * of each output (glowc/kernels/simd/conv_lane.py). Operands: w, to, next, magic, zp, lo, hi as in glow_a64.h; head (the
 * stream's begin), from (a cursor), step (bytes from a pixel's inputs to the next's).
 */
#ifndef GLOW_A64_LANE_H
#define GLOW_A64_LANE_H

#include "glow_a64.h"
#include "glow_lane_rows.h"

#if defined(__aarch64__)

#define GLOW_A64_LANE_ALL(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)

/* Eight inputs of each pixel, of 8 or 16 bits -> v0..v7. No address waits for the one before: steps of two, three and four
 * pixels are step2, step3 and step4, half a cursor. */
#define GLOW_A64_LANE_LOAD(q)                                                                              \
  "add %[half], %[from], %[step4]\n" "ldr " q "0, [%[from]]\n" "ldr " q "1, [%[from], %[step]]\n"         \
  "ldr " q "2, [%[from], %[step2]]\n" "ldr " q "3, [%[from], %[step3]]\n" "ldr " q "4, [%[half]]\n"       \
  "ldr " q "5, [%[half], %[step]]\n" "ldr " q "6, [%[half], %[step2]]\n" "ldr " q "7, [%[half], %[step3]]\n"
#define GLOW_A64_LANE_WIDEN(i) "sxtl v" #i ".8h, v" #i ".8b\n"
#define GLOW_A64_LANE_LOAD_S8 GLOW_A64_LANE_LOAD("d") GLOW_A64_LANE_ALL(GLOW_A64_LANE_WIDEN)
#define GLOW_A64_LANE_LOAD_S16 GLOW_A64_LANE_LOAD("q")
/* where the pixels are adjacent */
#define GLOW_A64_LANE_LOAD_ADJACENT                              \
  "ld1 {v8.16b, v9.16b, v10.16b, v11.16b}, [%[from]]\n"          \
  "sxtl v0.8h, v8.8b\n" "sxtl2 v1.8h, v8.16b\n"                  \
  "sxtl v2.8h, v9.8b\n" "sxtl2 v3.8h, v9.16b\n"                  \
  "sxtl v4.8h, v10.8b\n" "sxtl2 v5.8h, v10.16b\n"                \
  "sxtl v6.8h, v11.8b\n" "sxtl2 v7.8h, v11.16b\n"

/* The weights of an input, or of two, to v<a>, v<b>: loaded, then widened where they have 8 bits. */
#define GLOW_A64_LANE_W1(a) "ldr q" #a ", [%[w]]\n" GLOW_A64_GO("%[w]", "#16")
#define GLOW_A64_LANE_W2(a, b) "ldp q" #a ", q" #b ", [%[w]]\n" GLOW_A64_GO("%[w]", "#32")
#define GLOW_A64_LANE_W1_S8(a) "ldr d" #a ", [%[w]]\n" GLOW_A64_GO("%[w]", "#8")
#define GLOW_A64_LANE_W2_S8(a, b) "ldr q" #b ", [%[w]]\n" GLOW_A64_GO("%[w]", "#16")
#define GLOW_A64_LANE_WIDEN1(a) GLOW_A64_LANE_WIDEN(a)
#define GLOW_A64_LANE_WIDEN2(a, b) "sxtl v" #a ".8h, v" #b ".8b\n" "sxtl2 v" #b ".8h, v" #b ".16b\n"

#endif
#endif
