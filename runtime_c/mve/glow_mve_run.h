/* SPDX-License-Identifier: MIT-0 */
/* Products of many pixels of few inputs (MVE).
 *
 * A group of four output channels takes all pixels before the next group follows, so that its biases and scales, and
 * up to 16 inputs' weights, stay in registers. The code of a number of inputs is printed. Pixels lie one after the other, `pitch` bytes apart, which is a
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
  glow_mve_where_t where[2]; /* 28: of all groups but the last, of the last */
  const int8_t *stream_begin;
  int32_t groups_all;
  int32_t rest; /* channels of the last group */
} glow_mve_run_t;
GLOW_AT(glow_mve_run_t, x, 0); GLOW_AT(glow_mve_run_t, out, 4); GLOW_AT(glow_mve_run_t, pairs, 8);
GLOW_AT(glow_mve_run_t, out_step, 12); GLOW_AT(glow_mve_run_t, stream, 16); GLOW_AT(glow_mve_run_t, weights_bytes, 20);
GLOW_AT(glow_mve_run_t, groups, 24); GLOW_AT(glow_mve_run_t, where, 28);

typedef void glow_mve_run_fn(glow_mve_run_t *);

/* All groups of a stream. On the stack: places, lowest and highest codes of 16 bits, registers, d. `numbers`: bytes of a
 * group's biases and ends; `first`: what registers keep and the products of the first pair, `next`: the codes of
 * a pair and the products of the next one, `last`: codes of the last pair (glowc/kernels/mve/pair_tile.py). */
#define GLOW_MVE_RUN(numbers, first, next, last) \
  GLOW_MVE_RUN_BEGIN(numbers) "ldrsb r3, [r3, #32]\n" first GLOW_MVE_RUN_REST("2", "3", next, last) GLOW_MVE_RUN_END
/* The same of groups with either end: by scales, or by a line. */
#define GLOW_MVE_RUN_EITHER(numbers, first, next, last, next_line, last_line) \
  GLOW_MVE_RUN_BEGIN(numbers) "ldr r4, [r2, #16]\n" "ldrsb r3, [r3, #32]\n" "cmp r4, #0\n" "itt lt\n" \
  "movlt r3, #1 << " GLOW_TEXT(GLOW_MVE_LINE_SHIFT) "\n" "rsblt r3, r3, #0\n" first \
  "cmn r3, #1 << " GLOW_TEXT(GLOW_MVE_LINE_SHIFT) "\n" "beq 5f\n" GLOW_MVE_RUN_REST("2", "3", next, last) "b 4f\n" \
  "5: " GLOW_MVE_RUN_REST("6", "7", next_line, last_line) "4: " GLOW_MVE_RUN_END
#define GLOW_MVE_RUN_BEGIN(numbers) \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "sub sp, #48\n" "ldr r7, [r0, #12]\n" "add r3, r0, #28\n" \
  "vldrb.s16 q0, [r3, #16]\n" "vstrh.16 q0, [sp, #16]\n" "vldrb.s16 q0, [r3, #24]\n" "vstrh.16 q0, [sp, #32]\n" \
  "1: ldr r0, [sp, #112]\n" "ldrd r5, r2, [r0, #16]\n" "ldrd r1, r9, [r0]\n" "ldr r11, [r0, #8]\n" \
  "add r2, r2, r5\n" "add r4, r2, #" numbers "\n" "str r4, [r0, #16]\n" "add r4, r9, #4\n" "str r4, [r0, #4]\n" \
  "add r3, r0, #28\n" "ldr r4, [r0, #24]\n" "subs r4, r4, #1\n" "it eq\n" "addeq r3, r3, #40\n" "str r4, [r0, #24]\n" \
  "vldrh.16 q6, [r3]\n" "vstrh.16 q6, [sp]\n"
#define GLOW_MVE_RUN_REST(again, done, next, last) \
  "subs r11, r11, #1\n" "beq " done "f\n" again ": " next "bne " again "b\n" done ": " last
#define GLOW_MVE_RUN_END \
  "ldr r0, [sp, #112]\n" "ldr r4, [r0, #24]\n" "cmp r4, #0\n" "bgt 1b\n" "add sp, #48\n" "vpop {d8-d15}\n" \
  "pop {r0, r4-r11, pc}\n"

enum { GLOW_MVE_RUN_FEWEST = 8, GLOW_MVE_RUN_MOST = 48 }; /* inputs, multiples of the fewest */

/* `inputs` of a pixel; results of the second pixel of a pair go `apart` bytes after those of the first. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_run_init(glow_mve_run_t *d, const int8_t *stream, int32_t out_c, int32_t inputs,
                                              int32_t zp, int32_t low, int32_t high) {
  d->stream_begin = stream;
  d->weights_bytes = 4 * inputs;
  d->groups_all = (out_c + 3) / 4;
  d->rest = (out_c + 3) % 4 + 1;
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
