/* SPDX-License-Identifier: MIT-0 */
/* Products of pixels of many inputs, which stay where they are (MVE): two pixels times four output channels, for all
 * output channels before the next pixels follow, so that outputs may lie over the inputs of pixels before.
 *
 * The code is printed for a number of inputs: whole blocks of 16 inputs, the last one of fewer. The constants are those of glow_mve_run.h.
 */
#ifndef GLOW_MVE_POINT_H
#define GLOW_MVE_POINT_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_run.h"

enum { GLOW_MVE_POINT_GROUPS = 32, GLOW_MVE_POINT_SEGMENTS = 7 }; /* of output channels, of inputs, at most */

/* The assembly knows the offsets. */
typedef struct {
  int8_t *out;             /* 0 */
  int32_t out_step;        /* 4: of two pixels */
  const int8_t *stream;    /* 8 */
  uint32_t lines;          /* 12: bit g: group g ends by a line; that of the last group is set in any case */
  int32_t x_step;          /* 16: of two pixels */
  int32_t pairs;           /* 20 */
  int32_t zp;              /* 24: of the output */
  uint16_t places[2][8];   /* 28: where the results of a pair go: of all groups but the last, of the last */
  int16_t low[8], high[8]; /* 60, 76 */
  uintptr_t x[GLOW_MVE_POINT_SEGMENTS][2]; /* 92: segments of the inputs of both pixels, x_step before them */
  int32_t rest;            /* channels of the last group */
} glow_mve_point_t;
GLOW_AT(glow_mve_point_t, out, 0); GLOW_AT(glow_mve_point_t, out_step, 4); GLOW_AT(glow_mve_point_t, stream, 8);
GLOW_AT(glow_mve_point_t, lines, 12); GLOW_AT(glow_mve_point_t, x_step, 16); GLOW_AT(glow_mve_point_t, pairs, 20);
GLOW_AT(glow_mve_point_t, zp, 24); GLOW_AT(glow_mve_point_t, places, 28); GLOW_AT(glow_mve_point_t, low, 60);
GLOW_AT(glow_mve_point_t, high, 76); GLOW_AT(glow_mve_point_t, x, 92);

typedef void glow_mve_point_fn(glow_mve_point_t *);

/* A segment's pointers from d, whose x are at r0, to the stack; the same moved on by r2 there. */
#define GLOW_MVE_POINT_BEGIN(from, to) "ldrd r2, r3, [r0, #" from "]\n" "strd r2, r3, [sp, #" to "]\n"
#define GLOW_MVE_POINT_STEP(at, x0, x1) \
  "ldrd " x0 ", " x1 ", [sp, #" at "]\n" "add " x0 ", " x0 ", r2\n" "add " x1 ", " x1 ", r2\n" \
  "strd " x0 ", " x1 ", [sp, #" at "]\n"
/* `bytes`: from r5 after the last products to the next group; `lanes`: inputs of blocks of fewer than 16. `room`: bytes of
 * segments on the stack, `begin` makes them, `step` moves those after the first. `first`: products of the first group, after places from r0;
 * `next_line`, `next`: codes of a group by a line or by scales, and the products of the next one; `last_line`, `last`: codes of
 * the last one (glowc/kernels/mve/pair_tile.py). r7: -2^GLOW_MVE_LINE_SHIFT. On the stack: zero point, lowest and highest codes,
 * segments, registers, d. */
#define GLOW_MVE_POINT(bytes, lanes, room, begin, step, first, next_line, next, last_line, last) \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "sub sp, #48+" room "\n" "ldr r1, [r0, #24]\n" "vdup.16 q0, r1\n" \
  "vstrh.16 q0, [sp]\n" "add r0, #60\n" "vldrh.16 q0, [r0]\n" "vstrh.16 q0, [sp, #16]\n" "vldrh.16 q0, [r0, #16]\n" \
  "vstrh.16 q0, [sp, #32]\n" "add r0, #32\n" begin "mov r1, #" lanes "\n" "vctp.8 r1\n" \
  "mov r7, #1 << " GLOW_TEXT(GLOW_MVE_LINE_SHIFT) "\n" "rsb r7, r7, #0\n" \
  "1: ldr r0, [sp, #112+" room "]\n" "ldrd r2, r3, [r0, #16]\n" "subs r3, r3, #1\n" "bmi 7f\n" "str r3, [r0, #20]\n" \
  step GLOW_MVE_POINT_STEP("48", "r1", "r3") "ldrd r11, r4, [r0]\n" "ldrd r5, r9, [r0, #8]\n" \
  "add r4, r4, r11\n" "str r4, [r0]\n" "sub r5, r5, #" bytes "\n" \
  "2: " first "lsrs r9, r9, #1\n" "beq 5f\n" "bcc 4f\n" \
  "3: " next_line "lsrs r9, r9, #1\n" "beq 5f\n" "bcs 3b\n" \
  "4: " next "lsrs r9, r9, #1\n" "beq 5f\n" "bcs 3b\n" "b 4b\n" \
  "5: ldr r9, [sp, #112+" room "]\n" "vldrh.16 q5, [r9, #44]\n" "ldr r9, [r5, #" bytes "-16]\n" "cmp r9, #0\n" "bpl 6f\n" \
  last_line "b 1b\n" "6: " last "b 1b\n" \
  "7: add sp, #48+" room "\n" "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n"

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

/* `pairs` of pixels whose inputs are `segments` that begin at x, those of the second one of each `apart` bytes after the
 * first's, its outputs out_apart bytes. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_point_pairs(glow_mve_point_t *d, glow_mve_point_fn *run,
                                                          const int8_t *const *x, int32_t segments, int32_t apart,
                                                          int8_t *out, int32_t out_apart, int32_t pairs) {
  const uint16x8_t index = glow_mve_index16();
  const uint16x8_t second = vmulq_n_u16(vandq_u16(index, vdupq_n_u16(1u)), (uint16_t)out_apart);
  const uint16x8_t channel = vshrq_n_u16(index, 1);
  vst1q_u16(d->places[0], vaddq_u16(channel, second));
  vst1q_u16(d->places[1], vaddq_u16(vminq_u16(channel, vdupq_n_u16((uint16_t)(d->rest - 1))), second));
  for (int32_t i = 0; i < segments; i++) {
    d->x[i][0] = (uintptr_t)x[i] - 2 * (uintptr_t)apart;
    d->x[i][1] = (uintptr_t)x[i] - (uintptr_t)apart;
  }
  d->out = out;
  d->x_step = 2 * apart;
  d->out_step = 2 * out_apart;
  d->pairs = pairs;
  run(d);
}

/* `count` pixels in a row of `segments` that begin at x: the inputs of the next one are x_step bytes after, its outputs
 * out_step bytes. Moves x to the last one where it is alone. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_window_row(
    glow_mve_point_t *d, glow_mve_point_fn *run, const int8_t **x, int32_t segments, int32_t x_step, int8_t *out,
    int32_t out_step, int32_t count) {
  const int32_t even = count & ~1;
  glow_mve_point_pairs(d, run, x, segments, x_step, out, out_step, even / 2);
  if (even < count) { /* the last one alone, as both of a pair */
    for (int32_t i = 0; i < segments; i++) {
      x[i] += even * x_step;
    }
    glow_mve_point_pairs(d, run, x, segments, 0, out + even * out_step, 0, 1);
  }
}

/* The same of one segment. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_point_row(glow_mve_point_t *d, glow_mve_point_fn *run, const int8_t *x,
                                                        int32_t x_step, int8_t *out, int32_t out_step, int32_t count) {
  glow_mve_window_row(d, run, &x, 1, x_step, out, out_step, count);
}

/* Two pixels, or both the same, whose segments of `bytes` follow each other from `pixels`, `apart` bytes apart. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_window_held(
    glow_mve_point_t *d, glow_mve_point_fn *run, const int8_t *pixels, int32_t segments, int32_t bytes, int32_t apart,
    int8_t *out, int32_t out_apart) {
  const int8_t *x[GLOW_MVE_POINT_SEGMENTS];
  for (int32_t i = 0; i < segments; i++) {
    x[i] = pixels + i * bytes;
  }
  glow_mve_point_pairs(d, run, x, segments, apart, out, out_apart, 1);
}

#endif

#endif
