/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolution on cores without SIMD in little code. */
#ifndef GLOW_THUMB_DW_H
#define GLOW_THUMB_DW_H

#if defined(__thumb2__)
#include "glow_m3.h"
#else
#include "glow_m0.h"
#endif

/* What rows and columns outside of the input add to a channel's sum; columns [first, end) of the kernel are inside. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_dw_outside(const glow_thumb_dw_t *d, const int8_t *w, int32_t first,
                                                         int32_t end) {
  int32_t sum = 0;
  const int8_t *row = w + d->above;
  for (int32_t r = 0; r < d->rows; r++, row += d->k_w) {
    for (int32_t kx = 0; kx < d->k_w; kx++) {
      sum += kx < first || kx >= end ? row[kx] - d->w_zp : 0;
    }
  }
  return glow_thumb_dw_pad(d, w) + sum * d->in_zp;
}

/* All channels of a tile, which is one output or three; windows of three lie between the input's columns. An input
 * channel has `mult` output channels. One output is computed three times, in the same place. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_dw_tile(const glow_thumb_dw_t *d, int8_t *to, int32_t mult) {
  const uint32_t near_tie = (uint32_t)d->bias[d->channels];
  const uint32_t span = near_tie < 0x80000000u ? GLOW_THUMB_SPAN : 0u;
  const int8_t *w = d->weights;
  const int32_t k_w = d->k_w;
  const int32_t step = d->dil_w * d->in_col;
  const int32_t apart = d->outputs > 1 ? d->stride_w * d->in_col : 0;
  const int32_t out_step = d->outputs > 1 ? d->channels : 0;
  const int32_t w_zp = d->w_zp;
  int32_t first = 0;
  int32_t end = k_w;
  while (first < end && d->left + first * d->dil_w < 0) {
    first++;
  }
  while (end > first && d->left + (end - 1) * d->dil_w >= d->in_w) {
    end--;
  }
  const int is_cut = d->above + d->below != 0 || end - first != k_w;
  const int32_t count = end - first;
  const int32_t ahead = (d->left < 0 ? d->left : 0) * d->in_col + first * step;
  int32_t from = 0;
  int32_t turn = 0;
  for (int32_t c = 0; c < d->channels; c++, to++, turn++) {
    int32_t a = d->bias[c];
    if (turn == mult) {
      turn = 0;
      from++;
    }
    if (is_cut) {
      a += glow_thumb_dw_outside(d, w, first, end);
    }
    int32_t b = a;
    int32_t e = a;
    w += d->above + first;
    for (int32_t r = 0; r < d->rows; r++, w += k_w - count) {
      const int8_t *x = d->row[r] + ahead + from;
      for (const int8_t *const w_end = w + count; w != w_end; x += step) {
        const int32_t v = *w++ - w_zp;
        a += x[0] * v;
        b += x[apart] * v;
        e += x[2 * apart] * v;
      }
    }
    w += d->below - first;
    int good = span != 0u;
#if defined(GLOW_FIXED_THUMB_H)
    if (good && glow_thumb_is_q31(d->shift)) {
      if (d->shift->shifts[c] < 0) {
        const glow_thumb_q31_t q = glow_thumb_q31_of(d->shift->mul[c], -d->shift->shifts[c], d->out_zp);
        a = glow_thumb_q31(a, &q);
        b = glow_thumb_q31(b, &q);
        e = glow_thumb_q31(e, &q);
      } else {
        a = glow_thumb_slow(a, NULL, d->shift, c, d->out_zp);
        b = glow_thumb_slow(b, NULL, d->shift, c, d->out_zp);
        e = glow_thumb_slow(e, NULL, d->shift, c, d->out_zp);
      }
    } else
#endif
    if (good) {
      uint32_t bits;
      memcpy(&bits, d->scale + c * d->scale_step, sizeof bits);
      good = bits - GLOW_THUMB_LEAST < span &&
             glow_thumb_round3(&a, &b, &e, glow_thumb_factor(bits), near_tie, d->out_zp);
    }
    if (good) {
      to[0] = (int8_t)glow_clamp(a, d->out_min, d->out_max);
      to[out_step] = (int8_t)glow_clamp(b, d->out_min, d->out_max);
      to[2 * out_step] = (int8_t)glow_clamp(e, d->out_min, d->out_max);
    } else {
      glow_thumb_dw_slow(d, c, from, to);
    }
  }
}

#endif
