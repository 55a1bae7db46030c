/* SPDX-License-Identifier: MIT-0 */
/* Products of many pixels of few inputs (MVE).
 *
 * A group of four output channels takes all pixels before the next group follows, so that its biases and scales, and
 * up to 16 inputs' weights, stay in registers. Pixels lie one after the other, `pitch` bytes apart, which is a
 * multiple of 16 or the 8 inputs themselves; bytes after the inputs are 0. The constants are the stream of
 * glow_mve_dot.h, where the channels that fill the last group up are copies of its last real one: they give the same
 * code for the same place.
 *
 * A group ends by scales, or by a line in integers that was proved to give the same codes
 * (glowc/kernels/mve/stream.py): floor((sum * 2^GLOW_MVE_LINE_SHIFT + offset) * mul / 2^47), where the stream has
 * -offset instead of the biases and -mul instead of the scales. The sign tells: no scale is negative.
 */
#ifndef GLOW_MVE_RUN_H
#define GLOW_MVE_RUN_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

#define GLOW_MVE_LINE_SHIFT 10

typedef struct {
  uint16_t places[8]; /* where the results of a pair go */
  int8_t low[8];
  int8_t high[8];
  int8_t zp[8]; /* of the output */
} glow_mve_where_t;
GLOW_AT(glow_mve_where_t, places, 0); GLOW_AT(glow_mve_where_t, low, 16); GLOW_AT(glow_mve_where_t, high, 24);
GLOW_AT(glow_mve_where_t, zp, 32);
GLOW_SIZE(glow_mve_where_t, 40);

/* The assembly knows the offsets of the members up to `where`. */
typedef struct {
  const int8_t *x;           /* 0 */
  int8_t *out;               /* 4 */
  int32_t pairs;             /* 8 */
  int32_t out_step;          /* 12: of two pixels */
  const int8_t *stream;      /* 16 */
  int32_t weights_bytes;     /* 20: of a group */
  int32_t groups;            /* 24: to come */
  int32_t pair_bytes;        /* 28: of the inputs */
  glow_mve_where_t where[2]; /* 32: of all groups but the last, of the last */
  const int8_t *stream_begin;
  int32_t groups_all;
  int32_t rest; /* channels of the last group */
} glow_mve_run_t;
GLOW_AT(glow_mve_run_t, x, 0); GLOW_AT(glow_mve_run_t, out, 4); GLOW_AT(glow_mve_run_t, pairs, 8);
GLOW_AT(glow_mve_run_t, out_step, 12); GLOW_AT(glow_mve_run_t, stream, 16); GLOW_AT(glow_mve_run_t, weights_bytes, 20);
GLOW_AT(glow_mve_run_t, groups, 24); GLOW_AT(glow_mve_run_t, pair_bytes, 28); GLOW_AT(glow_mve_run_t, where, 32);

typedef void glow_mve_run_fn(glow_mve_run_t *);

/* on the stack: places, lowest and highest codes of 16 bits, registers, d; r2: biases; r3: where */
#define GLOW_MVE_RUN_BEGIN(numbers) \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "sub sp, #48\n" "ldr r7, [r0, #12]\n" "add r3, r0, #32\n" \
  "vldrb.s16 q0, [r3, #16]\n" "vstrh.16 q0, [sp, #16]\n" "vldrb.s16 q0, [r3, #24]\n" "vstrh.16 q0, [sp, #32]\n" \
  "1: ldr r0, [sp, #112]\n" "ldrd r5, r2, [r0, #16]\n" "ldrd r1, r9, [r0]\n" "ldr r11, [r0, #8]\n" \
  "add r2, r2, r5\n" "add r4, r2, #" numbers "\n" "str r4, [r0, #16]\n" "add r4, r9, #4\n" "str r4, [r0, #4]\n" \
  "add r3, r0, #32\n" "ldr r4, [r0, #24]\n" "subs r4, r4, #1\n" "it eq\n" "addeq r3, r3, #40\n" "str r4, [r0, #24]\n" \
  "ldr r4, [r0, #28]\n" "sub r1, r1, r4\n"
#define GLOW_MVE_RUN_PLACES "vldrh.16 q6, [r3]\n" "vstrh.16 q6, [sp]\n"
#define GLOW_MVE_RUN_END \
  "ldr r0, [sp, #112]\n" "ldr r4, [r0, #24]\n" "cmp r4, #0\n" "bgt 1b\n" "add sp, #48\n" "vpop {d8-d15}\n" \
  "pop {r0, r4-r11, pc}\n"
#define GLOW_MVE_RUN_NARROW(codes, free) "vqmovnb.s16 " codes ", " codes "\n"
#define GLOW_MVE_RUN_CLAMP(codes, free) \
  "vldrh.16 " free ", [sp, #16]\n" "vmax.s16 " codes ", " codes ", " free "\n" \
  "vldrh.16 " free ", [sp, #32]\n" "vmin.s16 " codes ", " codes ", " free "\n"
#define GLOW_MVE_RUN_STORE(clamp) "vldrh.16 q3, [sp]\n" clamp("q0", "q1") "vstrb.16 q0, [r9, q3]\n"
/* The sums of the last pair to its codes; biases and scales are at r5, after the weights, the zero point is in r3. */
#define GLOW_MVE_RUN_LAST(biases, clamp) GLOW_MVE_RUN_SCALED(biases) GLOW_MVE_RUN_STORE(clamp)
#define GLOW_MVE_RUN_SCALED(biases) \
  "vmov d0, r0, r4\n" "vmov d2, r2, r6\n" "vmov d1, r8, r12\n" "vmov d3, r10, lr\n" "vldrw.32 q2, [r5, #" biases "]\n" \
  "vadd.i32 q0, q0, q2\n" "vcvt.f32.s32 q0, q0\n" "vadd.i32 q1, q1, q2\n" "vcvt.f32.s32 q1, q1\n" \
  "vldrw.32 q3, [r5, #" biases "+16]\n" "vmul.f32 q0, q0, q3\n" "vcvtn.s32.f32 q0, q0\n" \
  "vmul.f32 q1, q1, q3\n" "vqmovnb.s32 q0, q0\n" "vcvtn.s32.f32 q1, q1\n" "vqmovnt.s32 q0, q1\n" \
  "vqadd.s16 q0, q0, r3\n"
/* The same by a line; r3: -2^GLOW_MVE_LINE_SHIFT. */
#define GLOW_MVE_RUN_LAST_LINE(biases, clamp) GLOW_MVE_RUN_LINE(biases) GLOW_MVE_RUN_STORE(clamp)
#define GLOW_MVE_RUN_LINE(biases) \
  "vmov d0, r0, r4\n" "vmov d2, r2, r6\n" "vmov d1, r8, r12\n" "vmov d3, r10, lr\n" "vldrw.32 q2, [r5, #" biases "]\n" \
  "vmla.s32 q2, q0, r3\n" "vldrw.32 q0, [r5, #" biases "]\n" "vmla.s32 q0, q1, r3\n" \
  "vldrw.32 q1, [r5, #" biases "+16]\n" "vqdmulh.s32 q2, q2, q1\n" "vqdmulh.s32 q0, q0, q1\n" \
  "vshrnb.i32 q0, q2, #16\n"
/* The products of the first pair, then those of each next one in the pauses of the end of that before. */
#define GLOW_MVE_RUN_PAIRS(products, next, last) products GLOW_MVE_RUN_REST("2", "3", next, last) GLOW_MVE_RUN_END
#define GLOW_MVE_RUN_REST(again, done, next, last) \
  "subs r11, r11, #1\n" "ble " done "f\n" again ": " next "bgt " again "b\n" done ": " last
/* The same of groups with either end. */
#define GLOW_MVE_RUN_EITHER(products, next, last, next_line, last_line) \
  "ldr r4, [r2, #16]\n" "ldrsb r3, [r3, #32]\n" "cmp r4, #0\n" "itt lt\n" \
  "movlt r3, #1 << " GLOW_TEXT(GLOW_MVE_LINE_SHIFT) "\n" "rsblt r3, r3, #0\n" products "cmn r3, #1 << " GLOW_TEXT(GLOW_MVE_LINE_SHIFT) "\n" "beq 5f\n" GLOW_MVE_RUN_REST("2", "3", next, last) "b 4f\n" \
  "5: " GLOW_MVE_RUN_REST("6", "7", next_line, last_line) "4: " GLOW_MVE_RUN_END

/* Weights in q4 .. q7. */
#define GLOW_MVE_RUN_HELD(load, n, mla, clamp) \
  GLOW_MVE_RUN_BEGIN("32") GLOW_MVE_RUN_PLACES GLOW_MVE_RUN_HELD_WEIGHTS(load, n) \
  GLOW_MVE_RUN_EITHER(GLOW_MVE_RUN_HELD_FIRST(load, n, mla), GLOW_MVE_RUN_HELD_NEXT(load, n, mla, clamp), \
                      GLOW_MVE_RUN_LAST("4*" n, clamp), GLOW_MVE_RUN_HELD_NEXT_LINE(load, n, mla, clamp), \
                      GLOW_MVE_RUN_LAST_LINE("4*" n, clamp))
#define GLOW_MVE_RUN_HELD_WEIGHTS(load, n) \
  load " q4, [r5]\n" load " q5, [r5, #" n "]\n" load " q6, [r5, #2*" n "]\n" load " q7, [r5, #3*" n "]\n"
#define GLOW_MVE_RUN_HELD_FIRST(load, n, mla) \
  load " q0, [r1, #2*" n "]!\n" mla " r0, q0, q4\n" load " q1, [r1, #" n "]\n" mla " r2, q1, q4\n" \
  mla " r4, q0, q5\n" mla " r6, q1, q5\n" mla " r8, q0, q6\n" mla " r10, q1, q6\n" \
  mla " r12, q0, q7\n" mla " lr, q1, q7\n"
#define GLOW_MVE_RUN_HELD_NEXT(load, n, mla, clamp) \
  "vmov d0, r2, r6\n" "vmov d2, r0, r4\n" "vmov d1, r10, lr\n" "vmov d3, r8, r12\n" "vldrw.32 q2, [r5, #4*" n "]\n" \
  "vadd.i32 q1, q1, q2\n" "vcvt.f32.s32 q1, q1\n" "vldrw.32 q3, [r5, #4*" n "+16]\n" "vmul.f32 q1, q1, q3\n" \
  "vadd.i32 q0, q0, q2\n" "vcvt.f32.s32 q0, q0\n" load " q2, [r1, #2*" n "]!\n" "vcvtn.s32.f32 q1, q1\n" \
  "vmul.f32 q0, q0, q3\n" "vqmovnb.s32 q1, q1\n" "vcvtn.s32.f32 q0, q0\n" load " q3, [r1, #" n "]\n" \
  mla " r10, q3, q6\n" "vqmovnt.s32 q1, q0\n" mla " lr, q3, q7\n" mla " r8, q2, q6\n" \
  "vqadd.s16 q1, q1, r3\n" mla " r2, q3, q4\n" "vldrh.16 q0, [sp]\n" mla " r6, q3, q5\n" clamp("q1", "q3") \
  mla " r0, q2, q4\n" mla " r4, q2, q5\n" "vstrb.16 q1, [r9, q0]\n" mla " r12, q2, q7\n" "add r9, r9, r7\n" \
  "subs r11, r11, #1\n"
#define GLOW_MVE_RUN_HELD_NEXT_LINE(load, n, mla, clamp) \
  "vmov d2, r2, r6\n" "vmov d0, r0, r4\n" "vldrw.32 q2, [r5, #4*" n "]\n" "vmov d1, r8, r12\n" "vmov d3, r10, lr\n" \
  "vmla.s32 q2, q0, r3\n" "vldrw.32 q0, [r5, #4*" n "]\n" "vmla.s32 q0, q1, r3\n" "vldrw.32 q1, [r5, #4*" n "+16]\n" \
  "vqdmulh.s32 q2, q2, q1\n" load " q3, [r1, #2*" n "]!\n" "vqdmulh.s32 q0, q0, q1\n" mla " r12, q3, q7\n" \
  "vshrnb.i32 q0, q2, #16\n" mla " r8, q3, q6\n" "vldrh.16 q1, [sp]\n" mla " r0, q3, q4\n" clamp("q0", "q2") \
  mla " r4, q3, q5\n" load " q3, [r1, #" n "]\n" mla " r2, q3, q4\n" "vstrb.16 q0, [r9, q1]\n" mla " r6, q3, q5\n" \
  "add r9, r9, r7\n" "subs r11, r11, #1\n" mla " lr, q3, q7\n" mla " r10, q3, q6\n"

/* Two pixels, one block: where the inputs of both are, and the weights, `n` bytes apart. */
#define GLOW_MVE_RUN_BLOCK(mla, x0, x1, weights, n) \
  "vldrw.32 q2, [r5, #" weights "]\n" "vldrb.8 q0, [r1, #" x0 "\n" mla " r0, q0, q2\n" "vldrb.8 q1, [r1, #" x1 "]\n" \
  mla " r2, q1, q2\n" "vldrw.32 q3, [r5, #" weights "+" n "]\n" mla " r4, q0, q3\n" \
  "vldrw.32 q2, [r5, #" weights "+2*" n "]\n" mla " r6, q1, q3\n" mla " r8, q0, q2\n" \
  "vldrw.32 q3, [r5, #" weights "+3*" n "]\n" mla " r10, q1, q2\n" mla " r12, q0, q3\n" mla " lr, q1, q3\n"
#define GLOW_MVE_RUN_2(n, clamp) \
  GLOW_MVE_RUN_BEGIN("32") GLOW_MVE_RUN_PLACES \
  GLOW_MVE_RUN_EITHER(GLOW_MVE_RUN_2_FIRST(n), GLOW_MVE_RUN_2_NEXT(n, clamp), GLOW_MVE_RUN_LAST("64+4*" n, clamp), \
                      GLOW_MVE_RUN_2_NEXT_LINE(n, clamp), GLOW_MVE_RUN_LAST_LINE("64+4*" n, clamp))
#define GLOW_MVE_RUN_2_FIRST(n) \
  GLOW_MVE_RUN_BLOCK("vmladav.s8", "64]!", "32", "0", "16") GLOW_MVE_RUN_BLOCK("vmladava.s8", "16]", "48", "64", n)
#define GLOW_MVE_RUN_2_NEXT(n, clamp) \
  "vmov d9, r8, r12\n" "vmov d8, r0, r4\n" "vmov d10, r2, r6\n" "vldrw.32 q7, [r5, #64+4*" n "]\n" \
  "vadd.i32 q4, q4, q7\n" "vmov d11, r10, lr\n" "vcvt.f32.s32 q4, q4\n" "vadd.i32 q5, q5, q7\n" \
  "vcvt.f32.s32 q5, q5\n" "vldrw.32 q7, [r5, #64+4*" n "+16]\n" "vmul.f32 q4, q4, q7\n" "vldrb.8 q0, [r1, #64]!\n" \
  "vcvtn.s32.f32 q4, q4\n" "vldrb.8 q1, [r1, #32]\n" "vmul.f32 q5, q5, q7\n" "vqmovnb.s32 q4, q4\n" \
  "vcvtn.s32.f32 q5, q5\n" "vldrw.32 q3, [r5, #16]\n" "vmladav.s8 r6, q1, q3\n" "vqmovnt.s32 q4, q5\n" \
  "vmladav.s8 r4, q0, q3\n" "vldrw.32 q3, [r5, #48]\n" "vmladav.s8 lr, q1, q3\n" "vqadd.s16 q4, q4, r3\n" \
  "vldrw.32 q2, [r5, #0]\n" "vmladav.s8 r2, q1, q2\n" clamp("q4", "q5") "vmladav.s8 r0, q0, q2\n" \
  "subs r11, r11, #1\n" "vmladav.s8 r12, q0, q3\n" "vldrw.32 q2, [r5, #32]\n" "vmladav.s8 r10, q1, q2\n" \
  "vldrb.8 q1, [r1, #48]\n" "vmladav.s8 r8, q0, q2\n" "vldrw.32 q2, [r5, #64]\n" "vmladava.s8 r2, q1, q2\n" \
  "vldrb.8 q0, [r1, #16]\n" "vmladava.s8 r0, q0, q2\n" "vldrw.32 q2, [r5, #64+2*" n "]\n" "vmladava.s8 r10, q1, q2\n" \
  "vstrb.16 q4, [r9, q6]\n" "vmladava.s8 r8, q0, q2\n" "vldrw.32 q3, [r5, #64+" n "]\n" "vmladava.s8 r4, q0, q3\n" \
  "add r9, r9, r7\n" "vmladava.s8 r6, q1, q3\n" "vldrw.32 q3, [r5, #64+3*" n "]\n" "vmladava.s8 lr, q1, q3\n" \
  "vmladava.s8 r12, q0, q3\n"
#define GLOW_MVE_RUN_2_NEXT_LINE(n, clamp) \
  "vmov d8, r0, r4\n" "vldrw.32 q7, [r5, #64+4*" n "]\n" "vmov d9, r8, r12\n" "vmov d11, r10, lr\n" \
  "vmov d10, r2, r6\n" "vmla.s32 q7, q4, r3\n" "vldrw.32 q4, [r5, #64+4*" n "]\n" "vmla.s32 q4, q5, r3\n" \
  "vldrw.32 q5, [r5, #64+4*" n "+16]\n" "vqdmulh.s32 q7, q7, q5\n" "vldrw.32 q2, [r5, #0]\n" \
  "vqdmulh.s32 q4, q4, q5\n" "vldrb.8 q0, [r1, #64]!\n" "vmladav.s8 r0, q0, q2\n" "vldrw.32 q3, [r5, #16]\n" \
  "vmladav.s8 r4, q0, q3\n" "vldrb.8 q1, [r1, #32]\n" "vmladav.s8 r2, q1, q2\n" "vshrnb.i32 q4, q7, #16\n" \
  "vmladav.s8 r6, q1, q3\n" "vldrw.32 q2, [r5, #32]\n" "vmladav.s8 r8, q0, q2\n" "vldrw.32 q3, [r5, #48]\n" \
  "vmladav.s8 r12, q0, q3\n" clamp("q4", "q5") "vmladav.s8 lr, q1, q3\n" "vldrw.32 q3, [r5, #64+" n "]\n" \
  "vmladav.s8 r10, q1, q2\n" "vldrb.8 q1, [r1, #48]\n" "vmladava.s8 r6, q1, q3\n" "vldrw.32 q2, [r5, #64]\n" \
  "vmladava.s8 r2, q1, q2\n" "vldrb.8 q0, [r1, #16]\n" "vmladava.s8 r0, q0, q2\n" "vldrw.32 q2, [r5, #64+2*" n "]\n" \
  "vmladava.s8 r10, q1, q2\n" "vstrb.16 q4, [r9, q6]\n" "vmladava.s8 r8, q0, q2\n" "add r9, r9, r7\n" \
  "subs r11, r11, #1\n" "vmladava.s8 r4, q0, q3\n" "vldrw.32 q3, [r5, #64+3*" n "]\n" "vmladava.s8 r12, q0, q3\n" \
  "vmladava.s8 lr, q1, q3\n"
#define GLOW_MVE_RUN_3(n, clamp) \
  GLOW_MVE_RUN_BEGIN("32") GLOW_MVE_RUN_PLACES \
  GLOW_MVE_RUN_EITHER(GLOW_MVE_RUN_3_FIRST(n), GLOW_MVE_RUN_3_NEXT(n, clamp), GLOW_MVE_RUN_LAST("128+4*" n, clamp), \
                      GLOW_MVE_RUN_3_NEXT_LINE(n, clamp), GLOW_MVE_RUN_LAST_LINE("128+4*" n, clamp))
#define GLOW_MVE_RUN_3_FIRST(n) \
  GLOW_MVE_RUN_BLOCK("vmladav.s8", "96]!", "48", "0", "16") \
  GLOW_MVE_RUN_BLOCK("vmladava.s8", "16]", "64", "64", "16") GLOW_MVE_RUN_BLOCK("vmladava.s8", "32]", "80", "128", n)
#define GLOW_MVE_RUN_3_NEXT(n, clamp) \
  "vmov d10, r2, r6\n" "vldrw.32 q7, [r5, #128+4*" n "]\n" "vmov d11, r10, lr\n" "vmov d9, r8, r12\n" \
  "vmov d8, r0, r4\n" "vadd.i32 q5, q5, q7\n" "vcvt.f32.s32 q5, q5\n" "vadd.i32 q4, q4, q7\n" "vcvt.f32.s32 q4, q4\n" \
  "vldrw.32 q7, [r5, #128+4*" n "+16]\n" "vmul.f32 q4, q4, q7\n" "vldrb.8 q0, [r1, #96]!\n" "vmul.f32 q5, q5, q7\n" \
  "vldrb.8 q1, [r1, #48]\n" "vcvtn.s32.f32 q4, q4\n" "vldrw.32 q2, [r5, #0]\n" "vmladav.s8 r2, q1, q2\n" \
  "vldrw.32 q3, [r5, #16]\n" "vcvtn.s32.f32 q5, q5\n" "vqmovnb.s32 q4, q4\n" "vmladav.s8 r0, q0, q2\n" \
  "vldrw.32 q2, [r5, #32]\n" "vmladav.s8 r8, q0, q2\n" "vqmovnt.s32 q4, q5\n" "vmladav.s8 r10, q1, q2\n" \
  "vldrw.32 q2, [r5, #64]\n" "vmladav.s8 r4, q0, q3\n" "vqadd.s16 q4, q4, r3\n" "vmladav.s8 r6, q1, q3\n" \
  "vldrw.32 q3, [r5, #48]\n" "vmladav.s8 lr, q1, q3\n" "vldrb.8 q1, [r1, #64]\n" "vmladav.s8 r12, q0, q3\n" \
  "vldrb.8 q0, [r1, #16]\n" "vmladava.s8 r2, q1, q2\n" "vldrw.32 q3, [r5, #80]\n" "vmladava.s8 r4, q0, q3\n" \
  clamp("q4", "q5") "vmladava.s8 r0, q0, q2\n" "vldrw.32 q2, [r5, #96]\n" "vmladava.s8 r6, q1, q3\n" \
  "vldrw.32 q3, [r5, #112]\n" "vmladava.s8 lr, q1, q3\n" "subs r11, r11, #1\n" "vmladava.s8 r12, q0, q3\n" \
  "vldrw.32 q3, [r5, #128+" n "]\n" "vmladava.s8 r10, q1, q2\n" "vldrb.8 q1, [r1, #80]\n" "vmladava.s8 r6, q1, q3\n" \
  "vstrb.16 q4, [r9, q6]\n" "vmladava.s8 r8, q0, q2\n" "vldrw.32 q2, [r5, #128]\n" "vmladava.s8 r2, q1, q2\n" \
  "vldrb.8 q0, [r1, #32]\n" "vmladava.s8 r4, q0, q3\n" "vldrw.32 q3, [r5, #128+3*" n "]\n" "vmladava.s8 r0, q0, q2\n" \
  "vldrw.32 q2, [r5, #128+2*" n "]\n" "vmladava.s8 r8, q0, q2\n" "add r9, r9, r7\n" "vmladava.s8 r10, q1, q2\n" \
  "vmladava.s8 lr, q1, q3\n" "vmladava.s8 r12, q0, q3\n"
#define GLOW_MVE_RUN_3_NEXT_LINE(n, clamp) \
  "vldrb.8 q0, [r1, #96]!\n" "vmov d9, r8, r12\n" "vmov d8, r0, r4\n" "vldrw.32 q7, [r5, #128+4*" n "]\n" \
  "vmov d11, r10, lr\n" "vmov d10, r2, r6\n" "vmla.s32 q7, q4, r3\n" "vldrw.32 q4, [r5, #128+4*" n "]\n" \
  "vmla.s32 q4, q5, r3\n" "vldrw.32 q2, [r5, #0]\n" "vmladav.s8 r0, q0, q2\n" "vldrw.32 q3, [r5, #16]\n" \
  "vmladav.s8 r4, q0, q3\n" "vldrw.32 q5, [r5, #128+4*" n "+16]\n" "vqdmulh.s32 q4, q4, q5\n" \
  "vldrb.8 q1, [r1, #48]\n" "vmladav.s8 r2, q1, q2\n" "vldrw.32 q2, [r5, #32]\n" "vmladav.s8 r6, q1, q3\n" \
  "vldrw.32 q3, [r5, #48]\n" "vqdmulh.s32 q7, q7, q5\n" "subs r11, r11, #1\n" "vmladav.s8 lr, q1, q3\n" \
  "vshrnb.i32 q4, q7, #16\n" "vmladav.s8 r10, q1, q2\n" "vldrb.8 q1, [r1, #64]\n" "vmladav.s8 r8, q0, q2\n" \
  "vldrw.32 q2, [r5, #64]\n" "vmladav.s8 r12, q0, q3\n" "vldrw.32 q3, [r5, #80]\n" "vmladava.s8 r2, q1, q2\n" \
  "vldrb.8 q0, [r1, #16]\n" "vmladava.s8 r4, q0, q3\n" clamp("q4", "q5") "vmladava.s8 r0, q0, q2\n" \
  "vldrw.32 q2, [r5, #96]\n" "vmladava.s8 r6, q1, q3\n" "vldrw.32 q3, [r5, #112]\n" "vmladava.s8 r12, q0, q3\n" \
  "vstrb.16 q4, [r9, q6]\n" "vmladava.s8 r10, q1, q2\n" "add r9, r9, r7\n" "vmladava.s8 lr, q1, q3\n" \
  "vldrw.32 q3, [r5, #128+" n "]\n" "vmladava.s8 r8, q0, q2\n" "vldrb.8 q0, [r1, #32]\n" "vmladava.s8 r4, q0, q3\n" \
  "vldrw.32 q2, [r5, #128]\n" "vmladava.s8 r0, q0, q2\n" "vldrb.8 q1, [r1, #80]\n" "vmladava.s8 r6, q1, q3\n" \
  "vmladava.s8 r2, q1, q2\n" "vldrw.32 q3, [r5, #128+3*" n "]\n" "vmladava.s8 r12, q0, q3\n" \
  "vldrw.32 q2, [r5, #128+2*" n "]\n" "vmladava.s8 r8, q0, q2\n" "vmladava.s8 r10, q1, q2\n" \
  "vmladava.s8 lr, q1, q3\n"

/* glow_mve_run<inputs>, and the same with a clamp, for the multiples of the fewest inputs up to the most */
enum { GLOW_MVE_RUN_FEWEST = 8, GLOW_MVE_RUN_MOST = 48 };
#define GLOW_MVE_RUN_DEFINE(inputs, form, ...)                                                          \
  GLOW_MVE_FUNCTION void glow_mve_run##inputs(GLOW_MVE_UNUSED glow_mve_run_t *d) {                      \
    __asm__(form(__VA_ARGS__, GLOW_MVE_RUN_NARROW));                                                    \
  }                                                                                                     \
  GLOW_MVE_FUNCTION void glow_mve_run##inputs##_clamped(GLOW_MVE_UNUSED glow_mve_run_t *d) {            \
    __asm__(form(__VA_ARGS__, GLOW_MVE_RUN_CLAMP));                                                     \
  }
GLOW_MVE_RUN_DEFINE(8, GLOW_MVE_RUN_HELD, "vldrb.s16", "8", "vmladav.s16")
GLOW_MVE_RUN_DEFINE(16, GLOW_MVE_RUN_HELD, "vldrb.8", "16", "vmladav.s8")
GLOW_MVE_RUN_DEFINE(24, GLOW_MVE_RUN_2, "8")
GLOW_MVE_RUN_DEFINE(32, GLOW_MVE_RUN_2, "16")
GLOW_MVE_RUN_DEFINE(40, GLOW_MVE_RUN_3, "8")
GLOW_MVE_RUN_DEFINE(48, GLOW_MVE_RUN_3, "16")

/* `inputs` of a pixel; results of the second pixel of a pair go `apart` bytes after those of the first. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_run_init(glow_mve_run_t *d, const int8_t *stream, int32_t out_c, int32_t inputs,
                                              int32_t zp, int32_t low, int32_t high) {
  d->stream_begin = stream;
  d->weights_bytes = 4 * inputs;
  d->groups_all = (out_c + 3) / 4;
  d->rest = (out_c + 3) % 4 + 1;
  d->pair_bytes = 2 * (inputs == 8 ? 8 : (inputs + 15) / 16 * 16);
  for (int32_t i = 0; i < 2; i++) {
    vstrbq_s16(d->where[i].low, vdupq_n_s16((int16_t)low));
    vstrbq_s16(d->where[i].high, vdupq_n_s16((int16_t)high));
    vstrbq_s16(d->where[i].zp, vdupq_n_s16((int16_t)zp));
  }
}

GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_run_apart(glow_mve_run_t *d, int32_t apart) {
  const uint16x8_t index = glow_mve_index16();
  const uint16x8_t second = vmulq_n_u16(vandq_u16(index, vdupq_n_u16(1u)), (uint16_t)apart);
  const uint16x8_t channel = vshrq_n_u16(index, 1);
  d->out_step = 2 * apart;
  vst1q_u16(d->where[0].places, vaddq_u16(channel, second));
  vst1q_u16(d->where[1].places, vaddq_u16(vminq_u16(channel, vdupq_n_u16((uint16_t)(d->rest - 1))), second));
}

GLOW_INLINE void glow_mve_run_pairs(glow_mve_run_t *d, glow_mve_run_fn *run, const int8_t *x, int8_t *out,
                                      int32_t pairs) {
  d->x = x;
  d->out = out;
  d->pairs = pairs;
  d->stream = d->stream_begin;
  d->groups = d->groups_all;
  run(d);
}

/* `count` pixels, at least 2; with an odd number the last but one is computed twice. */
GLOW_INLINE void glow_mve_run(glow_mve_run_t *d, glow_mve_run_fn *run, const int8_t *x, int32_t pitch, int8_t *out,
                                int32_t out_step, int32_t count) {
  glow_mve_run_pairs(d, run, x, out, count / 2);
  if (count % 2 != 0) {
    glow_mve_run_pairs(d, run, x + (count - 2) * pitch, out + (count - 2) * out_step, 1);
  }
}

/* `rows` rows of `width` pixels, of which those are taken together whose outputs lie apart from their inputs. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_run_rows(glow_mve_run_t *d, glow_mve_run_fn *run,
                                                                       const int8_t *x, int32_t in_c, int8_t *out,
                                                                       int32_t out_c, int32_t width, int32_t rows) {
  while (rows > 0) {
    const uintptr_t x_at = (uintptr_t)x;
    const uintptr_t out_at = (uintptr_t)out;
    const uintptr_t apart = out_at < x_at ? (x_at - out_at) / (uintptr_t)out_c : (out_at - x_at) / (uintptr_t)in_c;
    const uintptr_t most = apart / (uintptr_t)width;
    const int32_t some = most == 0u ? 1 : most < (uintptr_t)rows ? (int32_t)most : rows;
    glow_mve_run(d, run, x, in_c, out, out_c, some * width);
    x += some * width * in_c;
    out += some * width * out_c;
    rows -= some;
  }
}

/* As glow_mve_run, with one pixel or more in a buffer that has room for an even number. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_run_held(glow_mve_run_t *d, glow_mve_run_fn *run,
                                                                       int8_t *x, int32_t pitch, int8_t *out,
                                                                       int32_t out_step, int32_t count) {
  if (count > 1) {
    glow_mve_run(d, run, x, pitch, out, out_step, count);
  } else {
    memcpy(x + pitch, x, (size_t)pitch);
    glow_mve_run_apart(d, 0);
    glow_mve_run_pairs(d, run, x, out, 1);
    glow_mve_run_apart(d, out_step);
  }
}

#endif

#endif
