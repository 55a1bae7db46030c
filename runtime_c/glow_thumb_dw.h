/* Depthwise convolutions of int8 for cores without SIMD; dwconv_s8__m3.c.j2 prints the tiles of an output row. */
#ifndef GLOW_THUMB_DW_H
#define GLOW_THUMB_DW_H

#include "glow_m3.h"

#define GLOW_THUMB_DW_ROWS 10

/* A tile: adjacent outputs of a row, for all channels. The zero point is in the bias, which ends with the distance from
 * a tie (glow_thumb_gemm_t); weights stand channel by channel. */
typedef struct {
  const int8_t *row[GLOW_THUMB_DW_ROWS]; /* the kernel's rows that exist, at the first column that exists */
  int32_t rows;
  int32_t above; /* weights of a channel in rows above the input, and below it */
  int32_t below;
  int32_t left; /* column of the first output's window */
  int32_t in_w;
  int32_t in_col;
  const int8_t *weights;
  const int32_t *bias;
  const float *scale;
  int32_t scale_step;
  int32_t channels;
  int32_t in_zp;
  int32_t out_zp;
  int32_t out_min;
  int32_t out_max;
  int32_t k_w;
  int32_t stride_w;
  int32_t dil_w;
} glow_thumb_dw_t;

/* What the rows outside of the input add to a channel's sums. */
static inline int32_t glow_thumb_dw_pad(const glow_thumb_dw_t *d, const int8_t *w) {
  int32_t sum = 0;
  for (int32_t i = 0; i < d->above; i++) {
    sum += *w++;
  }
  w += d->rows * d->k_w;
  for (int32_t i = 0; i < d->below; i++) {
    sum += *w++;
  }
  return sum * d->in_zp;
}

/* Channel c of `outputs` outputs, one of which may be near a tie. */
GLOW_THUMB_NOINLINE static void glow_thumb_dw_slow(const glow_thumb_dw_t *d, int32_t c, int8_t *to, int32_t outputs) {
  const int32_t taps = d->above + d->below + d->rows * d->k_w;
  const int32_t first = d->left > 0 ? d->left : 0;
  for (int32_t i = 0; i < outputs; i++, to += d->channels) {
    const int8_t *w = d->weights + c * taps;
    int32_t acc = d->bias[c] + glow_thumb_dw_pad(d, w);
    w += d->above;
    for (int32_t r = 0; r < d->rows; r++) {
      for (int32_t kx = 0; kx < d->k_w; kx++) {
        const int32_t x = d->left + i * d->stride_w + kx * d->dil_w;
        acc += *w++ * (x >= 0 && x < d->in_w ? d->row[r][(x - first) * d->in_col + c] : d->in_zp);
      }
    }
    *to = (int8_t)glow_requant(acc, d->scale[c * d->scale_step], d->out_zp, d->out_min, d->out_max);
  }
}

#endif
