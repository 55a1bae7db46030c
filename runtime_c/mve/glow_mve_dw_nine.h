/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolution of adjacent channels, 16 at a time (MVE): windows of nine taps, and the ends of all.
 *
 * VMULLB and VMULLT give 16-bit products of the even and the odd channels, VMOVLB and VMOVLT widen them: biases and
 * scales of 16 channels are in the order 0, 4, 8, 12, 2, 6, .., 1, 5, .., 3, 7, .. in which that leaves them.
 */
#ifndef GLOW_MVE_DW_NINE_H
#define GLOW_MVE_DW_NINE_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

/* q0 .. q3 times the scales q4 .. q7, which the texts `a` .. `d` load, to bytes in q0; zp: a register. Loads alternate
 * with conversions and products: each works while the other's result is on its way. */
#define GLOW_MVE_DW_CODES(a, b, c, d, zp, clamp) \
  "vcvt.f32.s32 q0, q0\n" a "vcvt.f32.s32 q1, q1\n" b "vmul.f32 q0, q0, q4\n" c "vcvt.f32.s32 q2, q2\n" d \
  "vmul.f32 q1, q1, q5\n" "vcvt.f32.s32 q3, q3\n" "vmul.f32 q2, q2, q6\n" "vcvtn.s32.f32 q0, q0\n" \
  "vmul.f32 q3, q3, q7\n" "vcvtn.s32.f32 q1, q1\n" "vqmovnb.s32 q0, q0\n" "vcvtn.s32.f32 q2, q2\n" \
  "vqmovnt.s32 q0, q1\n" "vcvtn.s32.f32 q3, q3\n" "vqmovnb.s32 q2, q2\n" "vqadd.s16 q0, q0, " zp "\n" \
  "vqmovnt.s32 q2, q3\n" "vqmovnb.s16 q0, q0\n" "vqadd.s16 q2, q2, " zp "\n" "vqmovnt.s16 q0, q2\n" clamp
/* Sums in integers, with the zero point and a half in them, to bytes: shifted to the left, times a multiplier / 2^31,
 * then shifted to the right, both downwards. */
#define GLOW_MVE_DW_SHIFT 11
#define GLOW_MVE_DW_FRACTION 16
#define GLOW_MVE_DW_FREE ""
#define GLOW_MVE_DW_CLAMP \
  "vldrb.8 q1, [r12, #0]\n" "vldrb.8 q2, [r12, #16]\n" "vmax.s8 q0, q0, q1\n" "vmin.s8 q0, q0, q2\n"

/* Kernels of nine taps. The constants: per 16 channels 16 biases, 16 scales, 16 weights per tap; of the last, fewer
 * channels the same, where the first three parts of the biases and of the scales have as many as the first one, the
 * fourth as many as it holds. Two products are summed in 16 bits: no channel has two weights of -128 at the taps 0
 * and 1, 2 and 3, 4 and 5, 6 and 7. The assembly knows the offsets. */
typedef struct {
  int8_t low[16];         /* 0 */
  int8_t high[16];        /* 16 */
  const int8_t *taps[9]; /* 32: of the first pixel */
  int32_t steps[3];      /* 68: by row of the kernel, to the next pixel from 16 bytes after the last block */
  int32_t lanes;         /* 80: channels that are left */
  int32_t part;          /* 84: bytes of one of the first three parts of their biases */
  int32_t weights;       /* 88: bytes of their weights of a tap */
  int32_t zp;            /* 92 */
  const int8_t *stream;  /* 96 */
  int32_t blocks;        /* 100: of 16 channels */
  int8_t *out;           /* 104 */
  const int8_t *end;     /* 108: of the output of the last pixel */
  const int8_t *straight; /* 112: as `end`, or NULL: channels are left, or there are steps to be made */
  int32_t numbers;        /* 116: bytes of the biases of the channels that are left */
} glow_mve_dw9_t;
GLOW_AT(glow_mve_dw9_t, low, 0); GLOW_AT(glow_mve_dw9_t, high, 16); GLOW_AT(glow_mve_dw9_t, taps, 32);
GLOW_AT(glow_mve_dw9_t, steps, 68); GLOW_AT(glow_mve_dw9_t, lanes, 80); GLOW_AT(glow_mve_dw9_t, part, 84);
GLOW_AT(glow_mve_dw9_t, weights, 88); GLOW_AT(glow_mve_dw9_t, zp, 92); GLOW_AT(glow_mve_dw9_t, stream, 96);
GLOW_AT(glow_mve_dw9_t, blocks, 100); GLOW_AT(glow_mve_dw9_t, out, 104); GLOW_AT(glow_mve_dw9_t, end, 108);
GLOW_AT(glow_mve_dw9_t, straight, 112); GLOW_AT(glow_mve_dw9_t, numbers, 116);

typedef void glow_mve_dw9_fn(glow_mve_dw9_t *);

/* on the stack: stream, blocks, d, straight */
#define GLOW_MVE_DW9_BEGIN \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "mov r12, r0\n" "ldr r10, [r12, #104]\n" \
  "ldrd r9, r11, [r12, #96]\n" "ldr lr, [r12, #112]\n" "push {r9, r11, r12, lr}\n" \
  "add r9, r12, #32\n" "ldm r9, {r0-r8}\n"
/* A whole block. The sums of the top halves grow by VQDMLAH with 2^15 in r12, those of the bottom halves by VMOVLB and
 * VADD, so that loads, products and the others take turns; of each two that follow one another none waits for the same
 * unit or for the other's result. r11: 2^GLOW_MVE_DW_SHIFT, or the zero point. */
#define GLOW_MVE_DW9_BLOCK_FIXED(clamp) \
  "vldrw.32 q4, [r9, #128]\n" "vldrb.8 q1, [r0], #16\n" "vmullt.s8 q2, q1, q4\n" "vldrb.8 q3, [r1], #16\n" \
  "vmullb.s8 q0, q1, q4\n" "vldrw.32 q5, [r9, #144]\n" "vmullt.s8 q6, q3, q5\n" "vldrw.32 q7, [r9, #176]\n" \
  "vadd.i16 q4, q2, q6\n" "vmullb.s8 q1, q3, q5\n" "vmovlt.s16 q2, q4\n" "vldrb.8 q6, [r3], #16\n" \
  "vmullb.s8 q5, q6, q7\n" "vldrb.8 q3, [r2], #16\n" "vmullt.s8 q7, q6, q7\n" "vldrw.32 q6, [r9, #160]\n" \
  "vadd.i16 q0, q0, q1\n" "vmullt.s8 q1, q3, q6\n" "vmovlb.s16 q4, q4\n" "vmullb.s8 q6, q3, q6\n" \
  "vadd.i16 q3, q1, q7\n" "vqdmlah.s32 q2, q3, r12\n" "vmovlt.s16 q1, q0\n" "vldrb.8 q7, [r4], #16\n" \
  "vadd.i16 q5, q6, q5\n" "vqdmlah.s32 q1, q5, r12\n" "vmovlb.s16 q6, q3\n" "vldrw.32 q3, [r9, #192]\n" \
  "vadd.i32 q4, q4, q6\n" "vmullt.s8 q6, q7, q3\n" "vmovlb.s16 q0, q0\n" "vmullb.s8 q3, q7, q3\n" \
  "vmovlb.s16 q7, q5\n" "vldrw.32 q5, [r9, #208]\n" "vadd.i32 q7, q0, q7\n" "vldrb.8 q0, [r5], #16\n" \
  "vmullb.s8 q5, q0, q5\n" "vadd.i16 q5, q3, q5\n" "vldrw.32 q3, [r9, #208]\n" "vmullt.s8 q3, q0, q3\n" \
  "vldrb.8 q0, [r6], #16\n" "vadd.i16 q3, q6, q3\n" "vqdmlah.s32 q2, q3, r12\n" "vmovlb.s16 q6, q3\n" \
  "vqdmlah.s32 q1, q5, r12\n" "vmovlb.s16 q3, q5\n" "vldrw.32 q5, [r9, #224]\n" "vadd.i32 q3, q7, q3\n" \
  "vmullt.s8 q7, q0, q5\n" "vadd.i32 q6, q4, q6\n" "vldrw.32 q4, [r9, #240]\n" "vmullb.s8 q0, q0, q5\n" \
  "vldrb.8 q5, [r7], #16\n" "vmullb.s8 q4, q5, q4\n" "vadd.i16 q4, q0, q4\n" "vldrw.32 q0, [r9, #240]\n" \
  "vmullt.s8 q5, q5, q0\n" "vldrb.8 q0, [r8], #16\n" "vadd.i16 q7, q7, q5\n" "vqdmlah.s32 q2, q7, r12\n" \
  "vmovlb.s16 q5, q4\n" "vqdmlah.s32 q1, q4, r12\n" "vmovlb.s16 q4, q7\n" "vldrw.32 q7, [r9, #256]\n" \
  "vadd.i32 q3, q3, q5\n" "vmullt.s8 q5, q0, q7\n" "vadd.i32 q6, q6, q4\n" "vqdmlah.s32 q2, q5, r12\n" \
  "vmovlb.s16 q4, q5\n" "vmullb.s8 q5, q0, q7\n" "vadd.i32 q7, q6, q4\n" "vqdmlah.s32 q1, q5, r12\n" \
  "vmovlb.s16 q0, q5\n" "vldrw.32 q4, [r9, #16]\n" "vadd.i32 q6, q3, q0\n" "vldrw.32 q5, [r9, #48]\n" \
  "vmla.s32 q4, q1, r11\n" "vldrw.32 q3, [r9, #80]\n" "vmla.s32 q5, q2, r11\n" "vldrw.32 q0, [r9], #272\n" \
  "vmla.s32 q0, q6, r11\n" "vldrw.32 q1, [r9, #-208]\n" "vqdmulh.s32 q2, q0, q1\n" "vldrw.32 q6, [r9, #-240]\n" \
  "vqdmulh.s32 q0, q4, q3\n" "vldrw.32 q1, [r9, #-160]\n" "vshrnb.i32 q0, q2, #" GLOW_TEXT(GLOW_MVE_DW_FRACTION) "\n" \
  "vqdmulh.s32 q3, q5, q1\n" "vldrw.32 q4, [r9, #-176]\n" "vmla.s32 q6, q7, r11\n" "vqmovnb.s16 q0, q0\n" \
  "vqdmulh.s32 q2, q6, q4\n" "vshrnb.i32 q3, q2, #" GLOW_TEXT(GLOW_MVE_DW_FRACTION) "\n" "vqmovnt.s16 q0, q3\n" clamp \
  "vstrb.8 q0, [r10], #16\n"
#define GLOW_MVE_DW9_BLOCK(clamp) \
  "vldrw.32 q6, [r9, #144]\n" "vldrb.8 q1, [r1], #16\n" "vmullt.s8 q2, q1, q6\n" "vldrw.32 q3, [r9, #128]\n" \
  "vmullb.s8 q4, q1, q6\n" "vldrb.8 q5, [r0], #16\n" "vmullb.s8 q0, q5, q3\n" "vldrw.32 q7, [r9, #160]\n" \
  "vadd.i16 q6, q0, q4\n" "vmullt.s8 q1, q5, q3\n" "vldrw.32 q0, [r9, #176]\n" "vmovlb.s16 q4, q6\n" \
  "vldrb.8 q5, [r3], #16\n" "vmullb.s8 q3, q5, q0\n" "vadd.i16 q1, q1, q2\n" "vmullt.s8 q2, q5, q0\n" \
  "vldrb.8 q0, [r2], #16\n" "vmullb.s8 q5, q0, q7\n" "vmovlt.s16 q6, q6\n" "vmullt.s8 q7, q0, q7\n" \
  "vadd.i16 q0, q5, q3\n" "vldrb.8 q5, [r4], #16\n" "vmovlb.s16 q3, q0\n" "vqdmlah.s32 q6, q0, r12\n" \
  "vadd.i32 q4, q4, q3\n" "vldrw.32 q0, [r9, #192]\n" "vadd.i16 q3, q7, q2\n" "vmullt.s8 q2, q5, q0\n" \
  "vmovlt.s16 q7, q1\n" "vqdmlah.s32 q7, q3, r12\n" "vmovlb.s16 q3, q3\n" "vmullb.s8 q5, q5, q0\n" \
  "vmovlb.s16 q0, q1\n" "vldrb.8 q1, [r5], #16\n" "vadd.i32 q0, q0, q3\n" "vldrw.32 q3, [r9, #208]\n" \
  "vmullb.s8 q3, q1, q3\n" "vadd.i16 q5, q5, q3\n" "vqdmlah.s32 q6, q5, r12\n" "vmovlb.s16 q3, q5\n" \
  "vldrw.32 q5, [r9, #208]\n" "vmullt.s8 q1, q1, q5\n" "vadd.i32 q4, q4, q3\n" "vldrb.8 q5, [r6], #16\n" \
  "vadd.i16 q3, q2, q1\n" "vqdmlah.s32 q7, q3, r12\n" "vmovlb.s16 q2, q3\n" "vldrw.32 q1, [r9, #224]\n" \
  "vmullt.s8 q3, q5, q1\n" "vadd.i32 q0, q0, q2\n" "vldrw.32 q2, [r9, #240]\n" "vmullb.s8 q1, q5, q1\n" \
  "vldrb.8 q5, [r7], #16\n" "vmullb.s8 q2, q5, q2\n" "vadd.i16 q2, q1, q2\n" "vqdmlah.s32 q6, q2, r12\n" \
  "vldrw.32 q1, [r9, #240]\n" "vmullt.s8 q1, q5, q1\n" "vldrb.8 q5, [r8], #16\n" "vadd.i16 q3, q3, q1\n" \
  "vqdmlah.s32 q7, q3, r12\n" "vmovlb.s16 q1, q3\n" "vldrw.32 q3, [r9, #256]\n" "vadd.i32 q0, q0, q1\n" \
  "vmullb.s8 q1, q5, q3\n" "vmovlb.s16 q2, q2\n" "vqdmlah.s32 q6, q1, r12\n" "vmovlb.s16 q1, q1\n" \
  "vmullt.s8 q5, q5, q3\n" "vadd.i32 q4, q4, q1\n" "vqdmlah.s32 q7, q5, r12\n" "vldrw.32 q3, [r9, #64]\n" \
  "vmovlb.s16 q1, q5\n" "vldrw.32 q5, [r9, #48]\n" "vadd.i32 q5, q7, q5\n" "vcvt.f32.s32 q5, q5\n" \
  "vldrw.32 q7, [r9, #112]\n" "vmul.f32 q5, q5, q7\n" "vldrw.32 q7, [r9, #32]\n" "vcvtn.s32.f32 q5, q5\n" \
  "vadd.i32 q0, q0, q1\n" "vldrw.32 q1, [r9, #16]\n" "vadd.i32 q7, q0, q7\n" "vcvt.f32.s32 q7, q7\n" \
  "vadd.i32 q4, q4, q2\n" "vldrw.32 q0, [r9, #96]\n" "vmul.f32 q7, q7, q0\n" "vldrw.32 q2, [r9, #80]\n" \
  "vcvtn.s32.f32 q7, q7\n" "vldrw.32 q0, [r9], #272\n" "vadd.i32 q0, q4, q0\n" "vcvt.f32.s32 q0, q0\n" \
  "vqmovnb.s32 q7, q7\n" "vmul.f32 q0, q0, q3\n" "vadd.i32 q1, q6, q1\n" "vcvtn.s32.f32 q0, q0\n" \
  "vqmovnt.s32 q7, q5\n" "vcvt.f32.s32 q1, q1\n" "vqmovnb.s32 q0, q0\n" "vmul.f32 q1, q1, q2\n" \
  "vqadd.s16 q7, q7, r11\n" "vcvtn.s32.f32 q1, q1\n" "vqmovnt.s32 q0, q1\n" "vqadd.s16 q0, q0, r11\n" \
  "vqmovnb.s16 q0, q0\n" "vqmovnt.s16 q0, q7\n" clamp "vstrb.8 q0, [r10], #16\n"
#define GLOW_MVE_DW9_END "add sp, #16\n" "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n"
/* The channels that are left, in the order of a whole block: r9 moves through weights, then scales, r11 through biases; lr is
 * how far. */
#define GLOW_MVE_DW9_LEFT_FIXED(clamp) \
  "ldr lr, [r12, #116]\n" "mov r11, r9\n" "add r9, r9, lr, lsl #1\n" "vpst\n" "vldrbt.8 q3, [r1], #16\n" "vpst\n" \
  "vldrbt.8 q1, [r0], #16\n" "vpst\n" "vldrbt.8 q2, [r9]\n" "vmullb.s8 q0, q1, q2\n" "ldr lr, [r12, #88]\n" \
  "mov r12, #32768\n" "add r9, r9, lr\n" "vmullt.s8 q4, q1, q2\n" "vpst\n" "vldrbt.8 q5, [r9]\n" \
  "vmullb.s8 q6, q3, q5\n" "vpst\n" "vldrbt.8 q7, [r2], #16\n" "vmullt.s8 q2, q3, q5\n" "add r9, r9, lr\n" \
  "vadd.i16 q1, q4, q2\n" "vpst\n" "vldrbt.8 q5, [r9]\n" "vmullt.s8 q3, q7, q5\n" "vpst\n" "vldrbt.8 q2, [r3], #16\n" \
  "vadd.i16 q4, q0, q6\n" "add r9, r9, lr\n" "vmullb.s8 q6, q7, q5\n" "vpst\n" "vldrbt.8 q0, [r9]\n" \
  "vmullt.s8 q7, q2, q0\n" "add r9, r9, lr\n" "vmullb.s8 q5, q2, q0\n" "vpst\n" "vldrbt.8 q2, [r4], #16\n" \
  "vadd.i16 q0, q6, q5\n" "vpst\n" "vldrbt.8 q6, [r9]\n" "vmullb.s8 q5, q2, q6\n" "vadd.i16 q3, q3, q7\n" \
  "vmullt.s8 q7, q2, q6\n" "vmovlt.s16 q6, q1\n" "vqdmlah.s32 q6, q3, r12\n" "vmovlb.s16 q2, q3\n" "add r9, r9, lr\n" \
  "vmovlb.s16 q3, q1\n" "vpst\n" "vldrbt.8 q1, [r5], #16\n" "vadd.i32 q3, q3, q2\n" "vpst\n" "vldrbt.8 q2, [r9]\n" \
  "vmullt.s8 q2, q1, q2\n" "vadd.i16 q7, q7, q2\n" "vqdmlah.s32 q6, q7, r12\n" "vmovlb.s16 q2, q7\n" "vpst\n" \
  "vldrbt.8 q7, [r9]\n" "vadd.i32 q3, q3, q2\n" "vmullb.s8 q2, q1, q7\n" "vmovlt.s16 q7, q4\n" \
  "vqdmlah.s32 q7, q0, r12\n" "vadd.i16 q1, q5, q2\n" "vqdmlah.s32 q7, q1, r12\n" "vmovlb.s16 q2, q4\n" \
  "add r9, r9, lr\n" "vpst\n" "vldrbt.8 q5, [r6], #16\n" "vmovlb.s16 q4, q0\n" "vpst\n" "vldrbt.8 q0, [r9]\n" \
  "vadd.i32 q2, q2, q4\n" "vmullt.s8 q4, q5, q0\n" "vmovlb.s16 q1, q1\n" "vmullb.s8 q5, q5, q0\n" \
  "vadd.i32 q2, q2, q1\n" "add r9, r9, lr\n" "vpst\n" "vldrbt.8 q0, [r7], #16\n" "vpst\n" "vldrbt.8 q1, [r9]\n" \
  "vmullb.s8 q1, q0, q1\n" "vadd.i16 q1, q5, q1\n" "vqdmlah.s32 q7, q1, r12\n" "vpst\n" "vldrbt.8 q5, [r9]\n" \
  "vmovlb.s16 q1, q1\n" "vmullt.s8 q5, q0, q5\n" "vadd.i32 q2, q2, q1\n" "vpst\n" "vldrbt.8 q0, [r8], #16\n" \
  "add r9, r9, lr\n" "vadd.i16 q1, q4, q5\n" "vqdmlah.s32 q6, q1, r12\n" "vmovlb.s16 q5, q1\n" "vpst\n" \
  "vldrbt.8 q4, [r9]\n" "vmullb.s8 q1, q0, q4\n" "vadd.i32 q3, q3, q5\n" "vmullt.s8 q5, q0, q4\n" \
  "vmovlb.s16 q4, q1\n" "vqdmlah.s32 q6, q5, r12\n" "vadd.i32 q2, q2, q4\n" "vqdmlah.s32 q7, q1, r12\n" \
  "ldr r12, [sp, #8]\n" "ldr lr, [r12, #84]\n" "ldr r9, [r12, #116]\n" \
  "mov r12, #1 << " GLOW_TEXT(GLOW_MVE_DW_SHIFT) "\n" "add r9, r9, r11\n" "vldrw.32 q0, [r11]\n" \
  "vmla.s32 q0, q2, r12\n" "vldrw.32 q4, [r9]\n" "vmovlb.s16 q1, q5\n" "add r9, r9, lr\n" "add r11, r11, lr\n" \
  "vldrw.32 q2, [r11]\n" "vmla.s32 q2, q7, r12\n" "vldrw.32 q5, [r9]\n" "add r9, r9, lr\n" "add r11, r11, lr\n" \
  "vadd.i32 q3, q3, q1\n" "vqdmulh.s32 q0, q0, q4\n" "vldrw.32 q7, [r9]\n" \
  "vqdmulh.s32 q2, q2, q5\n" "vldrw.32 q1, [r11]\n" \
  "vmla.s32 q1, q3, r12\n" "add r9, r9, lr\n" "add r11, r11, lr\n" "vldrw.32 q4, [r9]\n" \
  "vshrnb.i32 q2, q0, #" GLOW_TEXT(GLOW_MVE_DW_FRACTION) "\n" "vqdmulh.s32 q1, q1, q7\n" "vldrw.32 q5, [r11]\n" \
  "vmla.s32 q5, q6, r12\n" "vqmovnb.s16 q0, q2\n" \
  "vqdmulh.s32 q5, q5, q4\n" "ldr r12, [sp, #8]\n" "vshrnb.i32 q5, q1, #" GLOW_TEXT(GLOW_MVE_DW_FRACTION) "\n" \
  "ldr lr, [r12, #80]\n" "vqmovnt.s16 q0, q5\n" clamp \
  "vpst\n" "vstrbt.8 q0, [r10]\n" "add r10, r10, lr\n"
#define GLOW_MVE_DW9_LEFT_SCALED(clamp) \
  "ldr lr, [r12, #116]\n" "mov r11, r9\n" "add r9, r9, lr, lsl #1\n" "vpst\n" "vldrbt.8 q5, [r3], #16\n" "vpst\n" \
  "vldrbt.8 q1, [r9]\n" "ldr lr, [r12, #88]\n" "add r9, r9, lr\n" "vpst\n" "vldrbt.8 q2, [r0], #16\n" "vpst\n" \
  "vldrbt.8 q3, [r9]\n" "vmullt.s8 q4, q2, q1\n" "add r9, r9, lr\n" "vmullb.s8 q0, q2, q1\n" "vpst\n" \
  "vldrbt.8 q6, [r1], #16\n" "vmullt.s8 q7, q6, q3\n" "vpst\n" "vldrbt.8 q2, [r9]\n" "vmullb.s8 q1, q6, q3\n" \
  "vadd.i16 q6, q4, q7\n" "vpst\n" "vldrbt.8 q3, [r2], #16\n" "vadd.i16 q7, q0, q1\n" "vmullb.s8 q4, q3, q2\n" \
  "mov r12, #32768\n" "add r9, r9, lr\n" "vpst\n" "vldrbt.8 q0, [r9]\n" "vmullt.s8 q1, q3, q2\n" \
  "vmovlt.s16 q3, q6\n" "vmullt.s8 q2, q5, q0\n" "vmovlb.s16 q6, q6\n" "vmullb.s8 q5, q5, q0\n" \
  "vadd.i16 q0, q1, q2\n" "vqdmlah.s32 q3, q0, r12\n" "vmovlb.s16 q2, q0\n" "add r9, r9, lr\n" \
  "vadd.i16 q1, q4, q5\n" "vpst\n" "vldrbt.8 q0, [r9]\n" "add r9, r9, lr\n" "vadd.i32 q6, q6, q2\n" "vpst\n" \
  "vldrbt.8 q4, [r4], #16\n" "vmullt.s8 q5, q4, q0\n" "vmovlb.s16 q2, q1\n" "vmullb.s8 q0, q4, q0\n" \
  "vmovlt.s16 q4, q7\n" "vqdmlah.s32 q4, q1, r12\n" "vmovlb.s16 q1, q7\n" "vpst\n" "vldrbt.8 q7, [r9]\n" \
  "vadd.i32 q1, q1, q2\n" "vpst\n" "vldrbt.8 q2, [r5], #16\n" "vmullb.s8 q7, q2, q7\n" "vadd.i16 q7, q0, q7\n" \
  "vqdmlah.s32 q4, q7, r12\n" "vmovlb.s16 q0, q7\n" "vpst\n" "vldrbt.8 q7, [r9]\n" "vmullt.s8 q7, q2, q7\n" \
  "vadd.i32 q1, q1, q0\n" "add r9, r9, lr\n" "vpst\n" "vldrbt.8 q2, [r9]\n" "add r9, r9, lr\n" \
  "vadd.i16 q0, q5, q7\n" "vqdmlah.s32 q3, q0, r12\n" "vpst\n" "vldrbt.8 q5, [r6], #16\n" "vmullb.s8 q7, q5, q2\n" \
  "vmovlb.s16 q0, q0\n" "vmullt.s8 q5, q5, q2\n" "vpst\n" "vldrbt.8 q2, [r9]\n" "vadd.i32 q6, q6, q0\n" "vpst\n" \
  "vldrbt.8 q0, [r7], #16\n" "vmullt.s8 q2, q0, q2\n" "vadd.i16 q5, q5, q2\n" "vqdmlah.s32 q3, q5, r12\n" \
  "vmovlb.s16 q2, q5\n" "vpst\n" "vldrbt.8 q5, [r9]\n" "vmullb.s8 q5, q0, q5\n" "vadd.i32 q6, q6, q2\n" \
  "add r9, r9, lr\n" "vpst\n" "vldrbt.8 q0, [r9]\n" "vadd.i16 q2, q7, q5\n" "vqdmlah.s32 q4, q2, r12\n" "vpst\n" \
  "vldrbt.8 q5, [r8], #16\n" "vmullb.s8 q7, q5, q0\n" "vmovlb.s16 q2, q2\n" "vmullt.s8 q5, q5, q0\n" \
  "vmovlb.s16 q0, q7\n" "vqdmlah.s32 q4, q7, r12\n" "vadd.i32 q1, q1, q0\n" "vqdmlah.s32 q3, q5, r12\n" \
  "vmovlb.s16 q7, q5\n" "vldrw.32 q0, [r11]\n" "vadd.i32 q1, q1, q2\n" "ldr r12, [sp, #8]\n" "ldr r9, [r12, #116]\n" \
  "ldr lr, [r12, #84]\n" "vadd.i32 q0, q1, q0\n" "add r9, r9, r11\n" "add r11, r11, lr\n" "vldrw.32 q5, [r11]\n" \
  "vadd.i32 q5, q4, q5\n" "vcvt.f32.s32 q0, q0\n" "vldrw.32 q2, [r9]\n" "vmul.f32 q0, q0, q2\n" "add r11, r11, lr\n" \
  "add r9, r9, lr\n" "vldrw.32 q1, [r11]\n" "vadd.i32 q6, q6, q7\n" "vcvtn.s32.f32 q0, q0\n" "vadd.i32 q1, q6, q1\n" \
  "vcvt.f32.s32 q5, q5\n" "vldrw.32 q4, [r9]\n" "vqmovnb.s32 q0, q0\n" "vmul.f32 q5, q5, q4\n" "add r9, r9, lr\n" \
  "add r11, r11, lr\n" "vldrw.32 q2, [r11]\n" "vcvtn.s32.f32 q5, q5\n" "vadd.i32 q2, q3, q2\n" "vldrw.32 q7, [r9]\n" \
  "vqmovnt.s32 q0, q5\n" "vcvt.f32.s32 q1, q1\n" "add r9, r9, lr\n" "ldr lr, [r12, #92]\n" "vmul.f32 q1, q1, q7\n" \
  "vqadd.s16 q0, q0, lr\n" "vcvtn.s32.f32 q1, q1\n" "vqmovnb.s16 q0, q0\n" "vcvt.f32.s32 q2, q2\n" \
  "vldrw.32 q6, [r9]\n" "vmul.f32 q2, q2, q6\n" "vqmovnb.s32 q1, q1\n" "vcvtn.s32.f32 q2, q2\n" \
  "vqmovnt.s32 q1, q2\n" "vqadd.s16 q1, q1, lr\n" "ldr lr, [r12, #80]\n" "vqmovnt.s16 q0, q1\n" clamp \
  "vpst\n" "vstrbt.8 q0, [r10]\n" "add r10, r10, lr\n"
/* those channels, and the steps to the next pixel; lr: the end */
#define GLOW_MVE_DW9_LEFT(channels) \
  "4: ldr r12, [sp, #8]\n" "ldr r11, [r12, #80]\n" "cmp r11, #0\n" "beq 5f\n" "vctp.8 r11\n" channels \
  "5: ldrd r9, r11, [r12, #68]\n" "ldr lr, [r12, #76]\n" "add r0, r0, r9\n" "add r1, r1, r9\n" "add r2, r2, r9\n" \
  "add r3, r3, r11\n" "add r4, r4, r11\n" "add r5, r5, r11\n" "add r6, r6, lr\n" "add r7, r7, lr\n" \
  "add r8, r8, lr\n" "ldr lr, [r12, #108]\n"
/* `number`: what r11 holds */
#define GLOW_MVE_DW9_PIXELS(number, block, left) \
  GLOW_MVE_DW9_BEGIN number "mov r12, #32768\n" \
  "1: ldrd r9, lr, [sp]\n" "wls lr, lr, 4f\n" \
  "2: " block "le lr, 2b\n" \
  "ldr lr, [sp, #12]\n" "cmp r10, lr\n" "blo 1b\n" "bne 4f\n" \
  "3: " GLOW_MVE_DW9_END \
  left number "mov r12, #32768\n" "cmp r10, lr\n" "bne 1b\n" "b 3b\n"
#define GLOW_MVE_DW9_FREE GLOW_MVE_DW_FREE
#define GLOW_MVE_DW9_CLAMP "ldr r12, [sp, #8]\n" GLOW_MVE_DW_CLAMP "mov r12, #32768\n"
#define GLOW_MVE_DW9(clamp) \
  GLOW_MVE_DW9_PIXELS("ldr r11, [r12, #92]\n", GLOW_MVE_DW9_BLOCK(GLOW_MVE_DW9_##clamp), \
                      GLOW_MVE_DW9_LEFT(GLOW_MVE_DW9_LEFT_SCALED(GLOW_MVE_DW_##clamp)))
#define GLOW_MVE_DW9_FIXED(clamp) \
  GLOW_MVE_DW9_PIXELS("mov r11, #1 << " GLOW_TEXT(GLOW_MVE_DW_SHIFT) "\n", \
                      GLOW_MVE_DW9_BLOCK_FIXED(GLOW_MVE_DW9_##clamp), \
                      GLOW_MVE_DW9_LEFT(GLOW_MVE_DW9_LEFT_FIXED(GLOW_MVE_DW_##clamp)))

/* Pixels in a row, up to `end`. */
GLOW_MVE_FUNCTION void glow_mve_dw9(GLOW_MVE_UNUSED glow_mve_dw9_t *d) { __asm__(GLOW_MVE_DW9(FREE)); }
GLOW_MVE_FUNCTION void glow_mve_dw9_clamped(GLOW_MVE_UNUSED glow_mve_dw9_t *d) {
  __asm__(GLOW_MVE_DW9(CLAMP));
}

/* As these, where one multiplication in integers is proved to give the codes: glowc/kernels/mve/fixed.py. */
GLOW_MVE_FUNCTION void glow_mve_dw9_fixed(GLOW_MVE_UNUSED glow_mve_dw9_t *d) {
  __asm__(GLOW_MVE_DW9_FIXED(FREE));
}
GLOW_MVE_FUNCTION void glow_mve_dw9_fixed_clamped(GLOW_MVE_UNUSED glow_mve_dw9_t *d) {
  __asm__(GLOW_MVE_DW9_FIXED(CLAMP));
}

/* A row of the output. */
typedef struct {
  const int8_t *rows[3];
  int32_t columns[3];  /* how far the columns of a row are apart: 0 outside of the image */
  const int8_t *zeros; /* zero points of all channels */
  int32_t in_w, stride, dilation, pad, out_w, channels;
  int32_t merged;  /* adjacent pixels that are one of as many channels (glow_mve_dw9_repeat), or 1 */
  int32_t first;   /* pixels [first, last) have their windows inside of the row */
  int32_t last;
  int32_t passed; /* bytes by which the taps move on in a pixel, or in those that are one */
} glow_mve_dw9_row_t;

GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dw9_init(glow_mve_dw9_t *d, glow_mve_dw9_row_t *r,
                                                                       const int8_t *stream, int32_t zp, int32_t low,
                                                                       int32_t high) {
  const int32_t reach = r->in_w + r->pad - 2 * r->dilation - 1;
  const int32_t last = reach < 0 ? 0 : reach / r->stride + 1;
  r->first = (r->pad + r->stride - 1) / r->stride;
  r->last = last < r->out_w ? last : r->out_w;
  vst1q_s8(d->low, vdupq_n_s8((int8_t)low));
  vst1q_s8(d->high, vdupq_n_s8((int8_t)high));
  d->stream = stream;
  d->zp = zp;
  r->passed = (r->merged * r->channels + 15) / 16 * 16;
  d->blocks = r->channels / 16;
  d->lanes = r->channels % 16;
  d->part = r->merged > 1 ? 16 : (d->lanes + 3) / 4 * 4;
  d->numbers = r->merged > 1 ? 64 : 3 * d->part + d->lanes / 4 * 4;
  d->weights = r->merged > 1 ? 16 : d->lanes;
}

GLOW_INLINE void glow_mve_dw9_column(const int8_t **tap, const glow_mve_dw9_row_t *r, int32_t column) {
  const int32_t is_inside = (uint32_t)column < (uint32_t)r->in_w;
  tap[0] = is_inside ? r->rows[0] + column * r->columns[0] : r->zeros;
  tap[3] = is_inside ? r->rows[1] + column * r->columns[1] : r->zeros;
  tap[6] = is_inside ? r->rows[2] + column * r->columns[2] : r->zeros;
}

#define GLOW_MVE_DW9_BYTES 272 /* of the constants of a block */
/* The constants of adjacent pixels as of one, `blocks` whole ones, from the biases, scales and weights[9] of its channels. */
GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dw9_repeat(int8_t *to, const int8_t *from, int32_t channels,
                                                                          int32_t blocks) {
  static const uint8_t parts[4] = {0, 2, 1, 3};
  const int32_t *numbers = (const int32_t *)(const void *)from;
  const int8_t *weights = from + 8 * channels;
  const uint32x4_t fours = vmulq_n_u32(vidupq_n_u32(0, 1), 4);
  uint8_t at[16];
  uint32_t c = 0;
  for (int32_t i = 0; i < blocks; i++, to += GLOW_MVE_DW9_BYTES) {
    const uint8x16_t channel = viwdupq_wb_u8(&c, (uint32_t)channels, 1);
    int32_t *words = (int32_t *)(void *)to;
    vst1q_u8(at, channel);
    for (int32_t k = 0; k < 4; k++) {
      const uint32x4_t four = vldrbq_gather_offset_u32(at + parts[k], fours);
      vst1q_s32(words + 4 * k, vldrwq_gather_shifted_offset_s32(numbers, four));
      vst1q_s32(words + 16 + 4 * k, vldrwq_gather_shifted_offset_s32(numbers + channels, four));
    }
    for (int32_t k = 0; k < 9; k++) {
      vst1q_s8(to + 128 + 16 * k, vldrbq_gather_offset_s8(weights + k * channels, channel));
    }
  }
}

/* The pixels [x, x + count), of which no window but that of the first leaves the image on a side. */
GLOW_INLINE void glow_mve_dw9_pixels(glow_mve_dw9_t *d, glow_mve_dw9_fn *run, const glow_mve_dw9_row_t *r, int32_t x,
                                       int32_t count) {
  const int32_t left = x * r->stride - r->pad;
  glow_mve_dw9_column(d->taps, r, left);
  glow_mve_dw9_column(d->taps + 1, r, left + r->dilation);
  glow_mve_dw9_column(d->taps + 2, r, left + 2 * r->dilation);
  d->end = d->out + count * r->channels;
  d->straight = d->lanes == 0 && (count == 1 || (d->steps[0] | d->steps[1] | d->steps[2]) == 0) ? d->end : NULL;
  run(d);
  d->out += count * r->channels;
}

GLOW_INLINE void glow_mve_dw9_begin(glow_mve_dw9_t *d, const glow_mve_dw9_row_t *r, int8_t *out, int32_t next) {
  d->steps[0] = next * r->columns[0] - r->passed;
  d->steps[1] = next * r->columns[1] - r->passed;
  d->steps[2] = next * r->columns[2] - r->passed;
  d->out = out;
}

GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dw9_row(glow_mve_dw9_t *d, glow_mve_dw9_fn *run,
                                                                      const glow_mve_dw9_row_t *r, int8_t *out) {
  glow_mve_dw9_begin(d, r, out, r->stride);
  for (int32_t x = 0; x < r->out_w;) {
    const int32_t count = x == r->first && r->last > r->first ? r->last - r->first : 1;
    glow_mve_dw9_pixels(d, run, r, x, count);
    x += count;
  }
}

/* The same of merged pixels; the last of those whose windows are inside may be fewer. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dw9_merged_row(glow_mve_dw9_t *d, glow_mve_dw9_fn *run,
                                                                      const glow_mve_dw9_row_t *r, int8_t *out) {
  int32_t first = r->first;
  glow_mve_dw9_begin(d, r, out, r->merged);
  for (int32_t x = 0; x < r->out_w;) {
    int32_t count = x == first && r->last > first ? r->last - first : 1;
    if (count > r->merged) {
      count -= count % r->merged;
      first += count;
    }
    const uint32_t channels = (uint32_t)((count < r->merged ? count : r->merged) * r->channels);
    d->blocks = (int32_t)(channels / 16);
    d->lanes = (int32_t)(channels % 16);
    glow_mve_dw9_pixels(d, run, r, x, count);
    x += count;
  }
}

#endif

#endif
