/* SPDX-License-Identifier: MIT-0 */
/* The matrix products of glow_mve_dot.h with the ends of TensorFlow Lite: a multiplier and a shift (glow_q31.h).
 *
 * In the stream 4 multipliers stand in place of the scales, and after them 4 bytes, the shifts. VQRDMULH gives the upper
 * half of twice the product, rounded half up. VRSHL by a negative number of places rounds half up again, which is half
 * away from zero after one was taken from what is negative (fixed); where no code is below the zero point, that makes no
 * difference (rectified).
 */
#ifndef GLOW_MVE_DOT_Q31_H
#define GLOW_MVE_DOT_Q31_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_dot.h"

/* one less where x is negative, by way of `free` */
#define GLOW_MVE_AWAY_FIXED(x, free) "vshr.s32 " free ", " x ", #31\n" "vadd.i32 " x ", " x ", " free "\n"
#define GLOW_MVE_AWAY_RECTIFIED(x, free) ""

#define GLOW_MVE_PAIR_END_FIRST_Q31(away) \
  "ldr r9, [r1, #4]\n" "vmov d2, r0, r4\n" "vmov d3, r8, r12\n" "vmov d0, r2, r6\n" "vldrw.32 q3, [r5, #16]\n" \
  "vadd.i32 q1, q1, q2\n" "vmov d1, r10, lr\n" "vqrdmulh.s32 q1, q1, q3\n" "vadd.i32 q0, q0, q2\n" \
  "ldrd r1, r3, [r9], #16\n" "vqrdmulh.s32 q0, q0, q3\n" "vldrb.s32 q2, [r5, #32]\n" away("q1", "q3") \
  "vrshl.s32 q1, q1, q2\n" "vldrb.8 q4, [r1], #16\n" away("q0", "q3") "vrshl.s32 q0, q0, q2\n" \
  "vldrb.8 q2, [r3], #16\n" "vldrb.8 q3, [r5, #36]!\n" "vmladav.s8 r2, q2, q3\n" "vqmovnb.s32 q1, q1\n" \
  "vmladav.s8 r0, q4, q3\n" "vldrb.8 q3, [r5, #16]!\n" "vmladav.s8 r4, q4, q3\n" "vqmovnt.s32 q1, q0\n" \
  "vmladav.s8 r6, q2, q3\n" "vldrb.8 q0, [r5, #16]!\n" "vmladav.s8 r8, q4, q0\n" "vqadd.s16 q1, q1, r7\n" \
  "vldrb.8 q3, [r5, #16]!\n" "vmladav.s8 lr, q2, q3\n" "vmax.s16 q1, q1, q6\n" "vmladav.s8 r12, q4, q3\n" \
  "vmin.s16 q1, q1, q7\n" "vstrb.16 q1, [r11, q5]\n" "add r11, r11, #4\n" "vmladav.s8 r10, q2, q0\n" \
  "vldrb.8 q2, [r5, #16]!\n"
#define GLOW_MVE_PAIR_END_Q31(away) \
  "vmov d6, r0, r4\n" "vmov d7, r8, r12\n" "vmov d8, r2, r6\n" "vmov d9, r10, lr\n" "vadd.i32 q3, q3, q2\n" \
  "vadd.i32 q4, q4, q2\n" "vldrw.32 q2, [r5, #16]\n" "vqrdmulh.s32 q3, q3, q2\n" "cmp r5, r3\n" \
  "vqrdmulh.s32 q4, q4, q2\n" away("q3", "q2") away("q4", "q2") "vldrb.s32 q2, [r5, #32]\n" \
  "vrshl.s32 q3, q3, q2\n" "vrshl.s32 q4, q4, q2\n" "vqmovnb.s32 q3, q3\n" "vqmovnt.s32 q3, q4\n"
#define GLOW_MVE_ONE_END_FIRST_Q31(away) \
  "vmov d0, r0, r2\n" "ldr r9, [r1, #4]\n" "ldrd r1, r3, [r9], #16\n" "vmov d1, r8, r10\n" \
  "vldrw.32 q1, [r5, #16]\n" "vadd.i32 q0, q0, q2\n" "vqrdmulh.s32 q0, q0, q1\n" "vldrb.8 q3, [r1], #16\n" \
  away("q0", "q1") "vldrb.s32 q1, [r5, #32]\n" "vrshl.s32 q0, q0, q1\n" "vldrb.8 q4, [r5, #36]!\n" \
  "vqmovnb.s32 q0, q0\n" "vldrb.8 q2, [r5, #16]!\n" "vmladav.s8 r2, q3, q2\n" "vldrb.8 q1, [r5, #16]!\n" \
  "vmladav.s8 r0, q3, q4\n" "vqadd.s16 q0, q0, r7\n" "vmladav.s8 r8, q3, q1\n" "vldrb.8 q2, [r5, #16]!\n" \
  "vmladav.s8 r10, q3, q2\n" "vmax.s16 q0, q0, q6\n" "vldrb.8 q2, [r5, #16]!\n" "vmin.s16 q0, q0, q7\n" \
  "vstrb.32 q0, [r4], #4\n"
#define GLOW_MVE_ONE_END_Q31(away) \
  "vmov d0, r0, r2\n" "vldrw.32 q3, [r5, #16]\n" "vmov d1, r8, r10\n" "cmp r5, r3\n" "vadd.i32 q0, q0, q2\n" \
  "vqrdmulh.s32 q0, q0, q3\n" "vldrb.s32 q2, [r5, #32]\n" away("q0", "q3") "vrshl.s32 q0, q0, q2\n"

#define GLOW_MVE_DOT_PAIR_Q31(n, away) \
  GLOW_MVE_DOT_PAIR(n, GLOW_MVE_PAIR_END_FIRST_Q31(away), GLOW_MVE_PAIR_END_Q31(away), "36")
#define GLOW_MVE_DOT_ONE_Q31(n, away) \
  GLOW_MVE_DOT_ONE(n, GLOW_MVE_ONE_END_FIRST_Q31(away), GLOW_MVE_ONE_END_Q31(away), "36")

GLOW_MVE_FUNCTION const uint32_t *glow_mve_dot2_fixed(GLOW_MVE_UNUSED glow_mve_dot_t *d) {
  __asm__(GLOW_MVE_DOT_PAIR_Q31("2f", GLOW_MVE_AWAY_FIXED));
}
GLOW_MVE_FUNCTION const uint32_t *glow_mve_dot1_fixed(GLOW_MVE_UNUSED glow_mve_dot_t *d) {
  __asm__(GLOW_MVE_DOT_ONE_Q31("1f", GLOW_MVE_AWAY_FIXED));
}
GLOW_MVE_FUNCTION const uint32_t *glow_mve_dot2_rectified(GLOW_MVE_UNUSED glow_mve_dot_t *d) {
  __asm__(GLOW_MVE_DOT_PAIR_Q31("2r", GLOW_MVE_AWAY_RECTIFIED));
}
GLOW_MVE_FUNCTION const uint32_t *glow_mve_dot1_rectified(GLOW_MVE_UNUSED glow_mve_dot_t *d) {
  __asm__(GLOW_MVE_DOT_ONE_Q31("1r", GLOW_MVE_AWAY_RECTIFIED));
}

#endif

#endif
