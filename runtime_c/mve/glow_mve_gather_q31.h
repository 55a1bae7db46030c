/* SPDX-License-Identifier: MIT-0 */
/* Products of many pixels of few inputs (glow_mve_run.h, glow_mve_gather.h) with the ends of glow_mve_dot_q31.h. */
#ifndef GLOW_MVE_GATHER_Q31_H
#define GLOW_MVE_GATHER_Q31_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_dot_q31.h"
#include "glow_mve_gather.h"

/* The sums q<low>, q<high> to products; q<m>, q<b> are free; `biases` is where biases, multipliers and shifts are. */
#define GLOW_MVE_RUN_PRODUCTS(low, high, m, b, biases, away) \
  "vldrw.32 " b ", [r5, #" biases "]\n" "vldrw.32 " m ", [r5, #" biases "+16]\n" "vadd.i32 " low ", " low ", " b "\n" \
  "vqrdmulh.s32 " low ", " low ", " m "\n" "vadd.i32 " high ", " high ", " b "\n" "add r4, r5, #" biases "+32\n" \
  "vqrdmulh.s32 " high ", " high ", " m "\n" "vldrb.s32 " b ", [r4]\n" away(low, m) "vrshl.s32 " low ", " low ", " b "\n" \
  away(high, m) "vrshl.s32 " high ", " high ", " b "\n"
#define GLOW_MVE_RUN_LAST_Q31(biases, clamp, away) \
  "vmov d0, r0, r4\n" "vmov d1, r8, r12\n" "vmov d2, r2, r6\n" "vmov d3, r10, lr\n" \
  GLOW_MVE_RUN_PRODUCTS("q0", "q1", "q3", "q2", biases, away) "vldrb.s16 q2, [r3, #32]\n" "vqmovnb.s32 q0, q0\n" \
  "vqmovnt.s32 q0, q1\n" "vqadd.s16 q0, q0, q2\n" clamp("q0", "q1") "vldrh.16 q1, [r3]\n" "vstrb.16 q0, [r9, q1]\n"

#define GLOW_MVE_RUN_HELD_Q31(load, n, mla, clamp, away) \
  GLOW_MVE_RUN_BEGIN("36") GLOW_MVE_RUN_HELD_WEIGHTS(load, n) \
  GLOW_MVE_RUN_PAIRS(GLOW_MVE_RUN_HELD_FIRST(load, n, mla), GLOW_MVE_RUN_HELD_NEXT_Q31(load, n, mla, clamp, away), \
                     GLOW_MVE_RUN_LAST_Q31("4*" n, clamp, away))
#define GLOW_MVE_RUN_HELD_NEXT_Q31(load, n, mla, clamp, away) \
  "vmov d0, r0, r4\n" "vldrw.32 q1, [r5, #4*" n "]\n" "vmov d1, r8, r12\n" "vmov d4, r2, r6\n" "vmov d5, r10, lr\n" \
  "vadd.i32 q0, q0, q1\n" "vldrw.32 q3, [r5, #4*" n "+16]\n" "vqrdmulh.s32 q0, q0, q3\n" "vadd.i32 q2, q2, q1\n" \
  "vldrb.s32 q1, [r5, #4*" n "+32]\n" "vqrdmulh.s32 q2, q2, q3\n" away("q0", "q3") "vrshl.s32 q0, q0, q1\n" \
  away("q2", "q3") load " q3, [r1, #2*" n "]!\n" "vrshl.s32 q2, q2, q1\n" mla " r8, q3, q6\n" \
  "vqmovnb.s32 q0, q0\n" "vldrb.s16 q1, [r3, #32]\n" "subs r11, r11, #1\n" mla " r4, q3, q5\n" \
  "vqmovnt.s32 q0, q2\n" mla " r12, q3, q7\n" load " q2, [r1, #" n "]\n" mla " r2, q2, q4\n" \
  "vqadd.s16 q0, q0, q1\n" mla " lr, q2, q7\n" clamp("q0", "q1") mla " r6, q2, q5\n" "vldrh.16 q1, [r3]\n" \
  mla " r10, q2, q6\n" "vstrb.16 q0, [r9, q1]\n" "add r9, r9, r7\n" mla " r0, q3, q4\n"

/* Places in q6, zero points in q7. */
#define GLOW_MVE_RUN_READ(numbers) GLOW_MVE_RUN_BEGIN(numbers) "vldrh.16 q6, [r3]\n" "vldrb.s16 q7, [r3, #32]\n"
#define GLOW_MVE_RUN_2_Q31(n, clamp, away) \
  GLOW_MVE_RUN_READ("36") GLOW_MVE_RUN_PAIRS(GLOW_MVE_RUN_2_FIRST(n), GLOW_MVE_RUN_2_NEXT_Q31(n, clamp, away), \
                                             GLOW_MVE_RUN_LAST_Q31("64+4*" n, clamp, away))
#define GLOW_MVE_RUN_2_NEXT_Q31(n, clamp, away) \
  "vmov d0, r2, r6\n" "vmov d1, r10, lr\n" "vmov d6, r0, r4\n" "vmov d7, r8, r12\n" \
  GLOW_MVE_RUN_PRODUCTS("q3", "q0", "q1", "q2", "64+4*" n, away) "vldrw.32 q4, [r5, #32]\n" "subs r11, r11, #1\n" \
  "vqmovnb.s32 q3, q3\n" "vldrw.32 q2, [r5, #48]\n" GLOW_MVE_RUN_2_REST(n, clamp)
#define GLOW_MVE_RUN_2_REST(n, clamp) \
  "vldrb.8 q1, [r1, #64]!\n" "vmladav.s8 r12, q1, q2\n" "vqmovnt.s32 q3, q0\n" \
  "vmladav.s8 r8, q1, q4\n" "vldrb.8 q0, [r1, #32]\n" "vmladav.s8 r10, q0, q4\n" "vldrw.32 q4, [r5, #16]\n" \
  "vmladav.s8 r4, q1, q4\n" "vqadd.s16 q3, q3, q7\n" "vmladav.s8 lr, q0, q2\n" clamp("q3", "q5") \
  "vmladav.s8 r6, q0, q4\n" "vldrw.32 q2, [r5, #0]\n" "vmladav.s8 r2, q0, q2\n" "vldrw.32 q5, [r5, #64+" n "]\n" \
  "vmladav.s8 r0, q1, q2\n" "vldrb.8 q4, [r1, #48]\n" "vmladava.s8 r6, q4, q5\n" "vldrw.32 q0, [r5, #64+2*" n "]\n" \
  "vmladava.s8 r10, q4, q0\n" "vldrw.32 q2, [r5, #64]\n" "vmladava.s8 r2, q4, q2\n" "vldrb.8 q1, [r1, #16]\n" \
  "vmladava.s8 r4, q1, q5\n" "vmladava.s8 r8, q1, q0\n" "vldrw.32 q5, [r5, #64+3*" n "]\n" \
  "vmladava.s8 r12, q1, q5\n" "vstrb.16 q3, [r9, q6]\n" "vmladava.s8 r0, q1, q2\n" "add r9, r9, r7\n" \
  "vmladava.s8 lr, q4, q5\n"

#define GLOW_MVE_RUN_3_Q31(n, clamp, away) \
  GLOW_MVE_RUN_READ("36") GLOW_MVE_RUN_PAIRS(GLOW_MVE_RUN_3_FIRST(n), GLOW_MVE_RUN_3_NEXT_Q31(n, clamp, away), \
                                             GLOW_MVE_RUN_LAST_Q31("128+4*" n, clamp, away))
#define GLOW_MVE_RUN_3_NEXT_Q31(n, clamp, away) \
  "vmov d2, r0, r4\n" "vmov d4, r2, r6\n" "vmov d3, r8, r12\n" "vmov d5, r10, lr\n" \
  GLOW_MVE_RUN_PRODUCTS("q1", "q2", "q4", "q0", "128+4*" n, away) "vldrw.32 q3, [r5, #16]\n" \
  "vldrb.8 q5, [r1, #96]!\n" "vqmovnb.s32 q1, q1\n" "vldrw.32 q4, [r5, #32]\n" "vqmovnt.s32 q1, q2\n" \
  GLOW_MVE_RUN_3_REST(n, clamp)
#define GLOW_MVE_RUN_3_REST(n, clamp) \
  "vmladav.s8 r8, q5, q4\n" \
  "vldrb.8 q2, [r1, #48]\n" "vmladav.s8 r10, q2, q4\n" "vqadd.s16 q1, q1, q7\n" "vmladav.s8 r4, q5, q3\n" \
  clamp("q1", "q0") "vmladav.s8 r6, q2, q3\n" "vldrw.32 q4, [r5, #0]\n" "vmladav.s8 r2, q2, q4\n" \
  "subs r11, r11, #1\n" "vldrb.8 q0, [r1, #16]\n" "vmladav.s8 r0, q5, q4\n" "vldrw.32 q3, [r5, #48]\n" \
  "vmladav.s8 r12, q5, q3\n" "vldrb.8 q4, [r1, #64]\n" "vmladav.s8 lr, q2, q3\n" "vldrw.32 q5, [r5, #64]\n" \
  "vmladava.s8 r0, q0, q5\n" "vldrw.32 q2, [r5, #128+" n "]\n" "vmladava.s8 r2, q4, q5\n" "vldrw.32 q3, [r5, #80]\n" \
  "vmladava.s8 r6, q4, q3\n" "vldrw.32 q5, [r5, #128+3*" n "]\n" "vmladava.s8 r4, q0, q3\n" \
  "vldrw.32 q3, [r5, #112]\n" "vmladava.s8 r12, q0, q3\n" "vstrb.16 q1, [r9, q6]\n" "vmladava.s8 lr, q4, q3\n" \
  "vldrb.8 q1, [r1, #80]\n" "vmladava.s8 lr, q1, q5\n" "vldrw.32 q3, [r5, #96]\n" "vmladava.s8 r10, q4, q3\n" \
  "vldrw.32 q4, [r5, #128]\n" "vmladava.s8 r2, q1, q4\n" "add r9, r9, r7\n" "vmladava.s8 r8, q0, q3\n" \
  "vldrw.32 q0, [r5, #128+2*" n "]\n" "vmladava.s8 r6, q1, q2\n" "vldrb.8 q3, [r1, #32]\n" "vmladava.s8 r8, q3, q0\n" \
  "vmladava.s8 r0, q3, q4\n" "vmladava.s8 r12, q3, q5\n" "vmladava.s8 r4, q3, q2\n" "vmladava.s8 r10, q1, q0\n"

/* glow_mve_run<inputs>_fixed, _rectified, and the same with a clamp */
#define GLOW_MVE_RUN_DEFINE_END(inputs, end, away, form, ...)                                               \
  GLOW_MVE_FUNCTION void glow_mve_run##inputs##end(GLOW_MVE_UNUSED glow_mve_run_t *d) {                     \
    __asm__(form(__VA_ARGS__, GLOW_MVE_RUN_NARROW, away));                                                  \
  }                                                                                                         \
  GLOW_MVE_FUNCTION void glow_mve_run##inputs##end##_clamped(GLOW_MVE_UNUSED glow_mve_run_t *d) {           \
    __asm__(form(__VA_ARGS__, GLOW_MVE_RUN_CLAMP, away));                                                   \
  }
#define GLOW_MVE_RUN_DEFINE_Q31(inputs, form, ...)                                                          \
  GLOW_MVE_RUN_DEFINE_END(inputs, _fixed, GLOW_MVE_AWAY_FIXED, form, __VA_ARGS__)                           \
  GLOW_MVE_RUN_DEFINE_END(inputs, _rectified, GLOW_MVE_AWAY_RECTIFIED, form, __VA_ARGS__)
GLOW_MVE_RUN_DEFINE_Q31(8, GLOW_MVE_RUN_HELD_Q31, "vldrb.s16", "8", "vmladav.s16")
GLOW_MVE_RUN_DEFINE_Q31(16, GLOW_MVE_RUN_HELD_Q31, "vldrb.8", "16", "vmladav.s8")
GLOW_MVE_RUN_DEFINE_Q31(24, GLOW_MVE_RUN_2_Q31, "8")
GLOW_MVE_RUN_DEFINE_Q31(32, GLOW_MVE_RUN_2_Q31, "16")
GLOW_MVE_RUN_DEFINE_Q31(40, GLOW_MVE_RUN_3_Q31, "8")
GLOW_MVE_RUN_DEFINE_Q31(48, GLOW_MVE_RUN_3_Q31, "16")

#endif

#endif
