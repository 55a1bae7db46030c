/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolution of adjacent channels, 16 at a time (MVE): windows of nine taps. Their products and codes are
 * printed (glowc/kernels/mve/window_tile.py).
 */
#ifndef GLOW_MVE_DW_NINE_H
#define GLOW_MVE_DW_NINE_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

/* The constants: per 16 channels 16 weights per tap, 16 words with which sums begin, 16 words of ends, words in the
 * order in which products are widened. Channels that are left have theirs elsewhere (glow_mve_dw9_repeat). Two products
 * are summed in 16 bits: no channel has two weights of -128 at the taps 0 and 1, 2 and 3, 4 and 5, 6 and 7. The assembly
 * knows the offsets. */
typedef struct {
  int8_t low[16];         /* 0 */
  int8_t high[16];        /* 16 */
  const int8_t *taps[9];  /* 32: of the first pixel */
  int32_t steps[3];       /* 68: by row of the kernel, to the next pixel from 16 bytes after the last block */
  int32_t lanes;          /* 80: channels that are left */
  const int8_t *left;     /* 84: their constants */
  const int8_t *stream;   /* 88 */
  int32_t blocks;         /* 92: of 16 channels */
  int8_t *out;            /* 96 */
  const int8_t *end;      /* 100: of the output of the last pixel */
  const int8_t *straight; /* 104: as `end`, or NULL: channels are left, or there are steps to be made */
  int32_t number;         /* 108: what r11 holds */
} glow_mve_dw9_t;
GLOW_AT(glow_mve_dw9_t, low, 0); GLOW_AT(glow_mve_dw9_t, high, 16); GLOW_AT(glow_mve_dw9_t, taps, 32);
GLOW_AT(glow_mve_dw9_t, steps, 68); GLOW_AT(glow_mve_dw9_t, lanes, 80); GLOW_AT(glow_mve_dw9_t, left, 84);
GLOW_AT(glow_mve_dw9_t, stream, 88); GLOW_AT(glow_mve_dw9_t, blocks, 92); GLOW_AT(glow_mve_dw9_t, out, 96);
GLOW_AT(glow_mve_dw9_t, end, 100); GLOW_AT(glow_mve_dw9_t, straight, 104); GLOW_AT(glow_mve_dw9_t, number, 108);

typedef void glow_mve_dw9_fn(glow_mve_dw9_t *);

/* Limits on the stack, and the number of bytes. */
#define GLOW_MVE_DW9_KEPT_CLAMP "vldrw.32 q0, [r12]\n" "vldrw.32 q1, [r12, #16]\n" "vpush {d0-d3}\n"
#define GLOW_MVE_DW9_KEPT_FREE ""
#define GLOW_MVE_DW9_FRAME_CLAMP "32"
#define GLOW_MVE_DW9_FRAME_FREE "0"
/* Pixels in a row, up to `end`: 16 channels after 16 by `block`, those that are left by `left`. On the stack: limits, then
 * stream, blocks, straight, d. */
#define GLOW_MVE_DW9(limits, block, left) GLOW_MVE_DW9_PIXELS(GLOW_MVE_DW9_KEPT_##limits, GLOW_MVE_DW9_FRAME_##limits, block, left)
#define GLOW_MVE_DW9_PIXELS(kept, frame, block, left) \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "mov r12, r0\n" "ldrd r9, r10, [r12, #88]\n" "ldr r11, [r12, #104]\n" \
  "push {r9, r10, r11, r12}\n" kept "ldr r10, [r12, #96]\n" "ldr r11, [r12, #108]\n" "add r9, r12, #32\n" \
  "ldm r9, {r0-r8}\n" "mov r12, #32768\n" \
  "1: ldrd r9, lr, [sp, #" frame "]\n" "wls lr, lr, 4f\n" \
  "2: " block "le lr, 2b\n" \
  "ldr lr, [sp, #" frame " + 8]\n" "cmp r10, lr\n" "blo 1b\n" "bne 4f\n" \
  "3: add sp, #" frame " + 16\n" "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n" \
  "4: ldr r12, [sp, #" frame " + 12]\n" "ldrd lr, r9, [r12, #80]\n" "cmp lr, #0\n" "beq 5f\n" \
  "vctp.8 lr\n" "mov r12, #32768\n" left "ldr r12, [sp, #" frame " + 12]\n" "add r10, r10, lr\n" \
  "5: ldrd r9, lr, [r12, #68]\n" "add r0, r0, r9\n" "add r1, r1, r9\n" "add r2, r2, r9\n" "ldr r9, [r12, #76]\n" \
  "add r3, r3, lr\n" "add r4, r4, lr\n" "add r5, r5, lr\n" "ldr lr, [r12, #100]\n" "add r6, r6, r9\n" \
  "add r7, r7, r9\n" "add r8, r8, r9\n" "mov r12, #32768\n" "cmp r10, lr\n" "bne 1b\n" "b 3b\n"

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
                                                                       const int8_t *stream, int32_t number, int32_t low,
                                                                       int32_t high) {
  const int32_t reach = r->in_w + r->pad - 2 * r->dilation - 1;
  const int32_t last = reach < 0 ? 0 : reach / r->stride + 1;
  r->first = (r->pad + r->stride - 1) / r->stride;
  r->last = last < r->out_w ? last : r->out_w;
  vst1q_s8(d->low, vdupq_n_s8((int8_t)low));
  vst1q_s8(d->high, vdupq_n_s8((int8_t)high));
  d->stream = stream;
  d->number = number;
  r->passed = (r->merged * r->channels + 15) / 16 * 16;
  d->blocks = r->channels / 16;
  d->lanes = r->channels % 16;
}

GLOW_INLINE void glow_mve_dw9_column(const int8_t **tap, const glow_mve_dw9_row_t *r, int32_t column) {
  const int32_t is_inside = (uint32_t)column < (uint32_t)r->in_w;
  tap[0] = is_inside ? r->rows[0] + column * r->columns[0] : r->zeros;
  tap[3] = is_inside ? r->rows[1] + column * r->columns[1] : r->zeros;
  tap[6] = is_inside ? r->rows[2] + column * r->columns[2] : r->zeros;
}

#define GLOW_MVE_DW9_BYTES 272 /* of the constants of a block */
/* The constants of `blocks` whole blocks, from what sums begin with, ends and weights[9] of channels that come again. */
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
      vst1q_s32(words + 36 + 4 * k, vldrwq_gather_shifted_offset_s32(numbers, four));
      vst1q_s32(words + 52 + 4 * k, vldrwq_gather_shifted_offset_s32(numbers + channels, four));
    }
    for (int32_t k = 0; k < 9; k++) {
      vst1q_s8(to + 16 * k, vldrbq_gather_offset_s8(weights + k * channels, channel));
    }
  }
}

/* The constants of channels that are left, in as many bytes as those of a block. */
GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dw9_left(glow_mve_dw9_t *d, int8_t *left) {
  glow_mve_dw9_repeat(left, d->stream + GLOW_MVE_DW9_BYTES * d->blocks, d->lanes, 1);
  d->left = left;
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
    d->left = d->stream + GLOW_MVE_DW9_BYTES * d->blocks;
    glow_mve_dw9_pixels(d, run, r, x, count);
    x += count;
  }
}

#endif

#endif
