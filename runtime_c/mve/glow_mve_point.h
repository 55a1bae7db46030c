/* SPDX-License-Identifier: MIT-0 */
/* Products of pixels of many inputs, which stay where they are (MVE): two pixels times four output channels, for all
 * output channels before the next pixels follow, so that outputs may lie over the inputs of pixels before.
 *
 * The code is printed for a number of inputs, by these macros: whole blocks of 16 inputs, the last one of fewer. The end of
 * a group is computed in the pauses of the products of the next one. The constants are those of glow_mve_run.h.
 */
#ifndef GLOW_MVE_POINT_H
#define GLOW_MVE_POINT_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_run.h"

enum { GLOW_MVE_POINT_GROUPS = 32 }; /* of output channels, at most */

/* The assembly knows the offsets. */
typedef struct {
  const int8_t *x;         /* 0 */
  int8_t *out;             /* 4 */
  const int8_t *stream;    /* 8 */
  uint32_t lines;          /* 12: bit g: group g ends by a line; that of the last group is set in any case */
  int32_t x_step;          /* 16: of two pixels */
  int32_t out_step;        /* 20: of two pixels */
  int32_t apart;           /* 24: from the inputs of the first pixel to those of the second */
  int32_t pairs;           /* 28 */
  int32_t zp;              /* 32: of the output */
  uint16_t places[2][8];   /* 36: where the results of a pair go: of all groups but the last, of the last */
  int16_t low[8], high[8]; /* 68, 84 */
  int32_t rest;            /* channels of the last group */
} glow_mve_point_t;
GLOW_AT(glow_mve_point_t, x, 0); GLOW_AT(glow_mve_point_t, out, 4); GLOW_AT(glow_mve_point_t, stream, 8);
GLOW_AT(glow_mve_point_t, lines, 12); GLOW_AT(glow_mve_point_t, x_step, 16); GLOW_AT(glow_mve_point_t, out_step, 20);
GLOW_AT(glow_mve_point_t, apart, 24); GLOW_AT(glow_mve_point_t, pairs, 28); GLOW_AT(glow_mve_point_t, zp, 32);
GLOW_AT(glow_mve_point_t, places, 36); GLOW_AT(glow_mve_point_t, low, 68); GLOW_AT(glow_mve_point_t, high, 84);

typedef void glow_mve_point_fn(glow_mve_point_t *);

/* Loads of block j, before its products: weights, inputs of both pixels, inputs of a last block with fewer. */
#define GLOW_MVE_POINT_W(j) "vldrw.32 q2, [r5, #64*" j "]\n"
#define GLOW_MVE_POINT_X0(j) "vldrb.8 q0, [r1, #16*" j "]\n"
#define GLOW_MVE_POINT_X1(j) "vldrb.8 q1, [r3, #16*" j "]\n"
#define GLOW_MVE_POINT_X(j) "vpstt\n" "vldrbt.8 q0, [r1, #16*" j "]\n" "vldrbt.8 q1, [r3, #16*" j "]\n"
/* The products of block j, whose weights of two channels are n bytes apart; w, x0, x1: loads of the next block. */
#define GLOW_MVE_POINT_BLOCK(mla, j, n, w, x0, x1) \
  mla " r0, q0, q2\n" "vldrw.32 q3, [r5, #64*" j "+" n "]\n" mla " r2, q1, q2\n" \
  "vldrw.32 q2, [r5, #64*" j "+2*" n "]\n" mla " r4, q0, q3\n" mla " r6, q1, q3\n" \
  "vldrw.32 q3, [r5, #64*" j "+3*" n "]\n" mla " r8, q0, q2\n" mla " r10, q1, q2\n" w mla " r12, q0, q3\n" x0 \
  mla " lr, q1, q3\n" x1
/* Two blocks of the first group; `bytes`: of a group. */
#define GLOW_MVE_POINT_FIRST(bytes, w, x0, x1) \
  "vldrw.32 q2, [r5, #" bytes "]!\n" GLOW_MVE_POINT_X0("0") GLOW_MVE_POINT_X1("0") \
  GLOW_MVE_POINT_BLOCK("vmladav.s8", "0", "16", GLOW_MVE_POINT_W("1"), GLOW_MVE_POINT_X0("1"), GLOW_MVE_POINT_X1("1")) \
  GLOW_MVE_POINT_BLOCK("vmladava.s8", "1", "16", w, x0, x1)
/* The same, and the end of the group before by a line; after the first load its numbers are before the group at r5. */
#define GLOW_MVE_POINT_NEXT(bytes, clamp, w, x0, x1) \
  "vmov d9, r8, r12\n" "vldrw.32 q2, [r5, #" bytes "]!\n" "vmov d12, r2, r6\n" "vldrw.32 q7, [r5, #-32]\n" \
  "vmov d8, r0, r4\n" "vmov d13, r10, lr\n" "vmla.s32 q7, q4, r7\n" "vldrw.32 q4, [r5, #-32]\n" \
  "vmla.s32 q4, q6, r7\n" "vldrw.32 q6, [r5, #-16]\n" "vqdmulh.s32 q4, q4, q6\n" "vldrb.8 q1, [r3, #0]\n" \
  "vmladav.s8 r2, q1, q2\n" "vldrb.8 q0, [r1, #0]\n" "vqdmulh.s32 q7, q7, q6\n" "vldrw.32 q3, [r5, #16]\n" \
  "vmladav.s8 r6, q1, q3\n" "vshrnb.i32 q4, q7, #16\n" "vmladav.s8 r4, q0, q3\n" "vldrw.32 q3, [r5, #48]\n" \
  "vmladav.s8 r12, q0, q3\n" clamp("q4", "q6") "vmladav.s8 lr, q1, q3\n" "vldrw.32 q3, [r5, #80]\n" \
  "vmladav.s8 r0, q0, q2\n" "vldrw.32 q2, [r5, #32]\n" "vmladav.s8 r10, q1, q2\n" "vldrb.8 q1, [r3, #16]\n" \
  "vmladav.s8 r8, q0, q2\n" "vldrb.8 q0, [r1, #16]\n" "vmladava.s8 r4, q0, q3\n" "vldrw.32 q2, [r5, #64]\n" \
  "vmladava.s8 r6, q1, q3\n" "vldrw.32 q3, [r5, #112]\n" "vmladava.s8 lr, q1, q3\n" "vstrb.16 q4, [r11, q5]\n" \
  "vmladava.s8 r0, q0, q2\n" "add r11, r11, #4\n" "vmladava.s8 r2, q1, q2\n" "vldrw.32 q2, [r5, #96]\n" \
  "vmladava.s8 r10, q1, q2\n" x1 "vmladava.s8 r8, q0, q2\n" w "vmladava.s8 r12, q0, q3\n" x0
/* The same after a group that ends by scales; the zero point is on the stack. */
#define GLOW_MVE_POINT_NEXT_SCALED(bytes, clamp, w, x0, x1) \
  "vmov d13, r10, lr\n" "vmov d12, r2, r6\n" "vldrw.32 q2, [r5, #" bytes "]!\n" "vmov d9, r8, r12\n" \
  "vmov d8, r0, r4\n" "vldrw.32 q7, [r5, #-32]\n" "vadd.i32 q4, q4, q7\n" "vcvt.f32.s32 q4, q4\n" \
  "vadd.i32 q6, q6, q7\n" "vcvt.f32.s32 q6, q6\n" "vldrw.32 q7, [r5, #-16]\n" "vmul.f32 q4, q4, q7\n" \
  "vldrb.8 q0, [r1, #0]\n" "vmul.f32 q6, q6, q7\n" "vldrb.8 q1, [r3, #0]\n" "vcvtn.s32.f32 q4, q4\n" \
  "vldrw.32 q3, [r5, #16]\n" "vmladav.s8 r2, q1, q2\n" "vqmovnb.s32 q4, q4\n" "vcvtn.s32.f32 q6, q6\n" \
  "vldrh.16 q7, [sp]\n" "vmladav.s8 r4, q0, q3\n" "vqmovnt.s32 q4, q6\n" "vmladav.s8 r0, q0, q2\n" \
  "vldrw.32 q2, [r5, #32]\n" "vmladav.s8 r8, q0, q2\n" "vqadd.s16 q4, q4, q7\n" "vmladav.s8 r6, q1, q3\n" \
  "vldrw.32 q3, [r5, #48]\n" "vmladav.s8 r10, q1, q2\n" "vldrw.32 q2, [r5, #64]\n" "vmladav.s8 r12, q0, q3\n" \
  "vldrb.8 q0, [r1, #16]\n" "vmladav.s8 lr, q1, q3\n" "vldrb.8 q1, [r3, #16]\n" clamp("q4", "q6") \
  "vmladava.s8 r0, q0, q2\n" "vldrw.32 q3, [r5, #80]\n" "vmladava.s8 r2, q1, q2\n" "vldrw.32 q2, [r5, #96]\n" \
  "vmladava.s8 r4, q0, q3\n" "vstrb.16 q4, [r11, q5]\n" "vmladava.s8 r6, q1, q3\n" "vldrw.32 q3, [r5, #112]\n" \
  "vmladava.s8 r8, q0, q2\n" "add r11, r11, #4\n" "vmladava.s8 r10, q1, q2\n" w "vmladava.s8 r12, q0, q3\n" x0 \
  "vmladava.s8 lr, q1, q3\n" x1
/* `lanes`: inputs of the last block; `rest`: blocks after the first two. r7: -2^GLOW_MVE_LINE_SHIFT. On the stack: zero
 * point, lowest and highest codes, registers, d. */
#define GLOW_MVE_POINT(bytes, lanes, first, next, next_scaled, rest, clamp) \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "sub sp, #48\n" "ldr r1, [r0, #32]\n" "vdup.16 q0, r1\n" \
  "vstrh.16 q0, [sp]\n" "add r0, #68\n" "vldrh.16 q0, [r0]\n" "vstrh.16 q0, [sp, #16]\n" "vldrh.16 q0, [r0, #16]\n" "vstrh.16 q0, [sp, #32]\n" "mov r1, #" lanes "\n" "vctp.8 r1\n" \
  "mov r7, #1 << " GLOW_TEXT(GLOW_MVE_LINE_SHIFT) "\n" "rsb r7, r7, #0\n" \
  "1: ldr r0, [sp, #112]\n" "ldrd r6, r2, [r0, #24]\n" "subs r2, r2, #1\n" "bmi 7f\n" "str r2, [r0, #28]\n" \
  "ldrd r1, r11, [r0]\n" "ldrd r5, r9, [r0, #8]\n" "ldrd r2, r4, [r0, #16]\n" "vldrh.16 q5, [r0, #36]\n" \
  "add r3, r1, r6\n" "add r2, r2, r1\n" "add r4, r4, r11\n" "strd r2, r4, [r0]\n" "sub r5, r5, #" bytes "\n" \
  "2: " first rest "lsrs r9, r9, #1\n" "beq 5f\n" "bcc 4f\n" \
  "3: " next rest "lsrs r9, r9, #1\n" "beq 5f\n" "bcs 3b\n" \
  "4: " next_scaled rest "lsrs r9, r9, #1\n" "beq 5f\n" "bcs 3b\n" "b 4b\n" \
  "5: ldr r3, [sp, #112]\n" "ldr r9, [r5, #" bytes "-16]\n" "vldrh.16 q5, [r3, #52]\n" "cmp r9, #0\n" "bpl 6f\n" \
  "mov r3, r7\n" GLOW_MVE_RUN_LINE(bytes "-32") clamp("q0", "q1") "vstrb.16 q0, [r11, q5]\n" "b 1b\n" \
  "6: ldr r3, [r3, #32]\n" GLOW_MVE_RUN_SCALED(bytes "-32") clamp("q0", "q1") "vstrb.16 q0, [r11, q5]\n" "b 1b\n" \
  "7: add sp, #48\n" "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n"

GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_point_init(glow_mve_point_t *d,
                                                                                    const int8_t *stream,
                                                                                    int32_t out_c, int32_t bytes,
                                                                                    int32_t zp, int32_t low,
                                                                                    int32_t high) {
  const int32_t last = (out_c + 3) / 4 - 1;
  d->stream = stream;
  d->lines = 1u << last;
  for (int32_t g = 0; g < last; g++) {
    d->lines |= stream[(g + 1) * bytes - 13] < 0 ? 1u << g : 0u; /* the sign of the first scale */
  }
  d->zp = zp;
  d->rest = out_c - 4 * last;
  vst1q_s16(d->low, vdupq_n_s16((int16_t)low));
  vst1q_s16(d->high, vdupq_n_s16((int16_t)high));
}

/* `pairs` of pixels from x, the second one of each `apart` bytes after the first, its outputs out_apart bytes. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_point_pairs(glow_mve_point_t *d, glow_mve_point_fn *run, const int8_t *x,
                                                          int32_t apart, int8_t *out, int32_t out_apart, int32_t pairs) {
  const uint16x8_t index = glow_mve_index16();
  const uint16x8_t second = vmulq_n_u16(vandq_u16(index, vdupq_n_u16(1u)), (uint16_t)out_apart);
  const uint16x8_t channel = vshrq_n_u16(index, 1);
  vst1q_u16(d->places[0], vaddq_u16(channel, second));
  vst1q_u16(d->places[1], vaddq_u16(vminq_u16(channel, vdupq_n_u16((uint16_t)(d->rest - 1))), second));
  d->x = x;
  d->out = out;
  d->x_step = 2 * apart;
  d->out_step = 2 * out_apart;
  d->apart = apart;
  d->pairs = pairs;
  run(d);
}

/* `count` pixels in a row: the inputs of the next one are x_step bytes after, its outputs out_step bytes. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_point_row(glow_mve_point_t *d, glow_mve_point_fn *run,
                                                                                   const int8_t *x, int32_t x_step,
                                                                                   int8_t *out, int32_t out_step,
                                                                                   int32_t count) {
  const int32_t even = count & ~1;
  glow_mve_point_pairs(d, run, x, x_step, out, out_step, even / 2);
  if (even < count) { /* the last one alone, as both of a pair */
    glow_mve_point_pairs(d, run, x + even * x_step, 0, out + even * out_step, 0, 1);
  }
}

#endif

#endif
