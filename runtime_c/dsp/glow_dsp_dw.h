/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolution: tiles of neighbouring outputs, four channels at a time. */
#ifndef GLOW_DSP_DW_H
#define GLOW_DSP_DW_H

#include "glow_dsp.h"

#define GLOW_DSP_MAX_ROWS 10

/* Depthwise: one row of a kernel window. A row outside of the input has a word of zero points and step 0. */
typedef struct {
  const int8_t *in;
  int32_t step;      /* bytes from column to column */
  int32_t next_quad; /* bytes to the next four channels */
  int32_t next_tile; /* bytes from after the last channel to the next tile */
} glow_dsp_row_t;

/* Depthwise: `tiles` alike tiles of a row, all channels of the stream. */
typedef struct {
  const int8_t *stream;
  const int8_t *stream_end;
  int8_t *out;
  int32_t out_step;
  int32_t out_adv; /* bytes from after the last channel to the next tile */
  uint32_t neg_zp;
  int32_t out_zp, tiles;
  uint32_t low; /* limits of the output, in all four bytes */
  uint32_t high;
  uint32_t neg_w_zp; /* of tiles whose weights have a zero point */
  int32_t unused;
  glow_dsp_row_t rows[GLOW_DSP_MAX_ROWS];
} glow_dsp_dw_t;

#if GLOW_DSP_ASM /* of the printed tiles, which copy a whole glow_dsp_dw_t, as far as its rows are used */
GLOW_AT(glow_dsp_row_t, in, 0); GLOW_AT(glow_dsp_row_t, step, 4); GLOW_AT(glow_dsp_row_t, next_quad, 8);
GLOW_AT(glow_dsp_row_t, next_tile, 12); GLOW_SIZE(glow_dsp_row_t, 16);
GLOW_AT(glow_dsp_dw_t, stream, 0); GLOW_AT(glow_dsp_dw_t, stream_end, 4); GLOW_AT(glow_dsp_dw_t, out, 8);
GLOW_AT(glow_dsp_dw_t, out_step, 12); GLOW_AT(glow_dsp_dw_t, out_adv, 16); GLOW_AT(glow_dsp_dw_t, neg_zp, 20);
GLOW_AT(glow_dsp_dw_t, out_zp, 24); GLOW_AT(glow_dsp_dw_t, tiles, 28); GLOW_AT(glow_dsp_dw_t, low, 32);
GLOW_AT(glow_dsp_dw_t, high, 36); GLOW_AT(glow_dsp_dw_t, neg_w_zp, 40); GLOW_AT(glow_dsp_dw_t, rows, 48);

/* Rows 1 and 2 of a window of three, for the even (half 0) or the odd channels: before the text of a row r0 and r2 are its
 * place and step, r4 and r5 are free, s12 is; after it nothing but r0 has changed, and no flag. The odd channels, which
 * come last, move the row on to the next four. Text twice, or a loop where hot code must be short. */
#define GLOW_DSP_DW_AT_0(at) "ldrd r0, r2, [sp, #" at "]\n"
#define GLOW_DSP_DW_AT_1(at) \
  GLOW_DSP_DW_AT_0(at) "ldr r3, [sp, #" at " + 8]\n" "add r3, r3, r0\n" "str r3, [sp, #" at "]\n"
#define GLOW_DSP_DW_NEXT_0 "ldrd r0, r2, [r3], #16\n"
#define GLOW_DSP_DW_NEXT_1 "ldrd r0, r2, [r3]\n" "ldr r4, [r3, #8]\n" "add r4, r4, r0\n" "str r4, [r3], #16\n"
#if defined(GLOW_LOOP_BYTES) && GLOW_LOOP_BYTES < 1536
#define GLOW_DSP_DW_TWO_ROWS(half, row) \
  "add r3, sp, #64\n" \
  "4:\n" \
  GLOW_DSP_DW_NEXT_##half \
  "vmov s12, r3\n" \
  "add r4, sp, #96\n" \
  "cmp r3, r4\n" \
  row \
  "vmov r3, s12\n" \
  "bne.w 4b\n"
#else
#define GLOW_DSP_DW_TWO_ROWS(half, row) GLOW_DSP_DW_AT_##half("64") row GLOW_DSP_DW_AT_##half("80") row
#endif
#else
/* What a depthwise tile is printed for: columns [first, end) exist. */
typedef struct {
  int32_t k_h, k_w, outputs, stride, dilation, first, end;
  int32_t offset; /* 1: weights have a zero point */
  int32_t mult;   /* output channels of an input channel */
} glow_dsp_tile_t;

GLOW_INLINE int32_t glow_dsp_dw_sum(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s, const int8_t *weights,
                                      const int8_t *const *in, int32_t output, int32_t channel, int32_t sum) {
  const int32_t less = s->offset != 0 ? glow_low16(d->neg_w_zp) : 0;
  for (int32_t ky = 0; ky < s->k_h; ky++) {
    for (int32_t kx = 0; kx < s->k_w; kx++) {
      const int32_t column = output * s->stride + kx * s->dilation;
      if (column >= s->first && column < s->end) {
        const int32_t x = in[ky][(column - s->first) * d->rows[ky].step + channel];
        sum += (x + (int32_t)(int16_t)(d->neg_zp & 0xFFFFu)) * (weights[(ky * s->k_w + kx) * 4 + channel] + less);
      }
    }
  }
  return sum;
}

/* Computes the outputs of a tile for four channels, whose words begin at w: glow_dsp_dw_quad, glow_dsp_dw_q31_quad. */
typedef void (*glow_dsp_dw_quad_fn)(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s, const int8_t *w,
                                    const int8_t *const *in, int8_t *out);

GLOW_INLINE void glow_dsp_dw_quad(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s, const int8_t *w,
                                  const int8_t *const *in, int8_t *out) {
  for (int32_t i = 0; i < 4 * s->outputs; i++) {
    const int32_t c = i % 4;
    const int8_t *own = w + 8 * (c % 2) + 2 * (c & 2);
    int32_t sum;
    float scale;
    memcpy(&sum, own, sizeof sum);
    memcpy(&scale, own + 16 + 4 * s->k_h * s->k_w, sizeof scale);
    sum = glow_dsp_dw_sum(d, s, w + 16, in, i / 4, c, sum);
    sum = glow_requant(sum, scale, d->out_zp, glow_first8(d->low), glow_first8(d->high));
    out[(i / 4) * d->out_step + c * s->mult] = (int8_t)sum;
  }
}

/* All tiles; four channels have `end_bytes` in the stream besides their weights. */
GLOW_INLINE void glow_dsp_dw_tiles(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s, glow_dsp_dw_quad_fn quad, int32_t end_bytes) {
  const int8_t *in[GLOW_DSP_MAX_ROWS];
  int8_t *out = d->out;
  for (int32_t ky = 0; ky < s->k_h; ky++) {
    in[ky] = d->rows[ky].in;
  }
  for (int32_t tile = 0; tile < d->tiles; tile++) {
    for (const int8_t *w = d->stream; w < d->stream_end; w += 4 * s->k_h * s->k_w + end_bytes, out += 4 * s->mult) {
      quad(d, s, w, in, out);
      for (int32_t ky = 0; ky < s->k_h; ky++) {
        in[ky] += d->rows[ky].next_quad;
      }
    }
    out += d->out_adv;
    for (int32_t ky = 0; ky < s->k_h && tile + 1 < d->tiles; ky++) {
      in[ky] += d->rows[ky].next_tile;
    }
  }
}

GLOW_INLINE void glow_dsp_dw_twin(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s) {
  glow_dsp_dw_tiles(d, s, glow_dsp_dw_quad, 32);
}
#endif

#endif
