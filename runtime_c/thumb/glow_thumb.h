/* SPDX-License-Identifier: MIT-0 */
/* Convolutions of int8 for cores without SIMD: four pixels at a time, two in a word.
 *
 * The inputs of four pixels p, q, r, s stand in scratch as two words per tap, p + 65536 * q and r + 65536 * s (signed
 * sums), so that one multiplication is two. A product of two taps is below 2^15 in both halves, or equal to it:
 * after every pair of taps, 32640 in the lower and -256 in the upper half keep the halves apart for all int8 weights,
 * and the sums grow by the word (`low`) and by its upper half (`high`). In the end high is the sum of q, and
 * low - 65536 * high that of p. Everything is modulo 2^32.
 *
 * A header that includes this one may bring glow_thumb_dot4 (the loop over the taps), glow_thumb_fc8 and
 * glow_thumb_round1 to 5 (to int8), and GLOW_THUMB_SPAN, the scales that these take; else they are plain C.
 */
#ifndef GLOW_THUMB_H
#define GLOW_THUMB_H

#include "glow_thumb_plain.h"

/* What four pixels are multiplied with. `bias` ends with the distance, in 2^-32, from a tie up to which the rounding by
 * a product of 32 bits may be wrong (glowc/kernels/thumb/fold.py proves it). */
typedef struct {
  const int8_t *weights;
  const int32_t *bias;
  const float *scale;
  int32_t k, channels, scale_step, zp, lo, hi;
  int32_t w_zp; /* of the weights */
  const glow_thumb_shift_t *shift; /* NULL: codes are rounded half to even */
} glow_thumb_gemm_t;

/* How inputs are collected: `planes` groups of `run` channels, plane_step apart; a pad pixel reads `pad`. */
typedef struct {
  const int8_t *pad; /* run times the input's zero point */
  int32_t planes, plane_step, run, in_h, in_w, in_row, in_col, in_ring, k_h, k_w, dil_h, dil_w;
  int32_t dense; /* taps of a row are adjacent */
} glow_thumb_window_t;

/* Where the window of an output pixel begins: first input row and column. */
typedef struct {
  int32_t top, left;
} glow_thumb_pixel_t;

GLOW_INLINE uint32_t *glow_thumb_pack(uint32_t *to, const int8_t *p, const int8_t *q, const int8_t *r,
                                        const int8_t *s, int32_t n) {
  for (const int8_t *end = p + n; p != end; to += 2) {
    const int32_t low = *p++;
    const int32_t high = *r++;
    to[0] = (uint32_t)low + ((uint32_t)*q++ << 16);
    to[1] = (uint32_t)high + ((uint32_t)*s++ << 16);
  }
  return to;
}

/* The first column of input row y, NULL above and below the input. */
GLOW_INLINE const int8_t *glow_thumb_row(const glow_thumb_window_t *g, const int8_t *image, int32_t y) {
  if (y < 0 || y >= g->in_h) {
    return NULL;
  }
  return image + (y < g->in_ring ? y : y % g->in_ring) * g->in_row;
}

/* Column x of a row, or the pad pixel. */
GLOW_INLINE const int8_t *glow_thumb_column(const glow_thumb_window_t *g, const int8_t *row, int32_t x) {
  return row != NULL && (uint32_t)x < (uint32_t)g->in_w ? row + x * g->in_col : g->pad;
}

/* The words of a kernel row of four pixels that lies inside of the input: p, q, r and s are its first columns. */
GLOW_INLINE uint32_t *glow_thumb_fill_inside(uint32_t *to, const glow_thumb_window_t *g, const int8_t *p,
                                               const int8_t *q, const int8_t *r, const int8_t *s) {
  const int32_t n = g->k_w * g->run;
  for (int32_t c = 0; c < g->planes; c++) {
    const int32_t plane = c * g->plane_step;
    to = glow_thumb_pack(to, p + plane, q + plane, r + plane, s + plane, n);
  }
  return to;
}

/* The words of the windows of four pixels. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_fill(uint32_t *to, const glow_thumb_window_t *g, const int8_t *image,
                                                const glow_thumb_pixel_t *at) {
  const int32_t most = g->in_w - g->k_w;
  const int32_t x[4] = {at[0].left, at[1].left, at[2].left, at[3].left};
  int inside = g->dense;
  for (int32_t i = 0; i < 4; i++) {
    inside &= x[i] >= 0 && x[i] <= most;
  }
  for (int32_t ky = 0; ky < g->k_h; ky++) {
    const int32_t down = ky * g->dil_h;
    const int8_t *row[4] = {glow_thumb_row(g, image, at[0].top + down), NULL, NULL, NULL};
    for (int32_t i = 1; i < 4; i++) {
      row[i] = at[i].top == at[i - 1].top ? row[i - 1] : glow_thumb_row(g, image, at[i].top + down);
    }
    if (inside && row[0] != NULL && row[1] != NULL && row[2] != NULL && row[3] != NULL) {
      const int32_t col = g->in_col;
      to = glow_thumb_fill_inside(to, g, row[0] + x[0] * col, row[1] + x[1] * col, row[2] + x[2] * col,
                                  row[3] + x[3] * col);
      continue;
    }
    for (int32_t c = 0; c < g->planes; c++) {
      for (int32_t kx = 0; kx < g->k_w; kx++) {
        const int32_t right = kx * g->dil_w;
        to = glow_thumb_pack(to, glow_thumb_column(g, row[0], x[0] + right), glow_thumb_column(g, row[1], x[1] + right),
                             glow_thumb_column(g, row[2], x[2] + right), glow_thumb_column(g, row[3], x[3] + right),
                             g->run);
      }
      for (int32_t i = 0; i < 4 && c + 1 < g->planes; i++) {
        row[i] = row[i] != NULL ? row[i] + g->plane_step : NULL;
      }
    }
  }
}

/* Channel o of four pixels, one of which may be near a tie. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_slow4(const glow_thumb_gemm_t *g, const int32_t *sum, int32_t o,
                                                 int8_t *const *to) {
  for (int32_t i = 0; i < 4; i++) {
    const int32_t code = glow_thumb_slow(sum[i], g->scale + o * g->scale_step, g->shift, o, g->zp);
    to[i][o] = (int8_t)glow_clamp(code, g->lo, g->hi);
  }
}

/* The sums of k inputs of four pixels, times the weights' zero point. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_inputs(int32_t *sum, const uint32_t *x, int32_t k, int32_t w_zp) {
  uint32_t words[2] = {0u, 0u};
  uint32_t high[2] = {0u, 0u};
  for (; k > 0; k--) {
    for (int32_t i = 0; i < 2; i++) {
      const uint32_t word = *x++;
      words[i] += word;
      high[i] += ((word + 0x8000u) >> 16 ^ 0x8000u) - 0x8000u;
    }
  }
  for (int32_t i = 0; i < 2; i++) {
    sum[2 * i] = (int32_t)(words[i] - (high[i] << 16)) * w_zp;
    sum[2 * i + 1] = (int32_t)high[i] * w_zp;
  }
}

/* Codes of channel o of four pixels; `large`: a scale of 1/4 or more is halved, the sums doubled. */
GLOW_THUMB_INLINE void glow_thumb_codes4(const glow_thumb_gemm_t *g, const int32_t *sum, int32_t o, const float *scale,
                                         uint32_t span, uint32_t near_tie, int narrow, int large, int8_t *const *to) {
  int32_t a = sum[0];
  int32_t b = sum[1];
  int32_t c = sum[2];
  int32_t d = sum[3];
  int good = span != 0u;
#if defined(GLOW_FIXED_THUMB_H)
  if (good && glow_thumb_is_q31(g->shift)) {
    if (g->shift->shifts[o] < 0) {
      const glow_thumb_q31_t q = glow_thumb_q31_of(g->shift->mul[o], -g->shift->shifts[o], g->zp);
      a = glow_thumb_q31(a, &q);
      b = glow_thumb_q31(b, &q);
      c = glow_thumb_q31(c, &q);
      d = glow_thumb_q31(d, &q);
    } else {
      a = glow_thumb_slow(a, NULL, g->shift, o, g->zp);
      b = glow_thumb_slow(b, NULL, g->shift, o, g->zp);
      c = glow_thumb_slow(c, NULL, g->shift, o, g->zp);
      d = glow_thumb_slow(d, NULL, g->shift, o, g->zp);
    }
  } else
#endif
  if (good) {
    uint32_t bits;
    memcpy(&bits, scale, sizeof bits);
    if (large && bits - GLOW_THUMB_LEAST >= span) {
      const uint32_t times = glow_thumb_halved(&bits);
      a = glow_thumb_doubled(a, times);
      b = glow_thumb_doubled(b, times);
      c = glow_thumb_doubled(c, times);
      d = glow_thumb_doubled(d, times);
    }
    good = bits - GLOW_THUMB_LEAST < span &&
           glow_thumb_round4(&a, &b, &c, &d, glow_thumb_factor(bits), near_tie, g->zp);
  }
  if (!good) {
    glow_thumb_slow4(g, sum, o, to);
    return;
  }
  if (narrow) {
    a = glow_clamp(a, g->lo, g->hi);
    b = glow_clamp(b, g->lo, g->hi);
    c = glow_clamp(c, g->lo, g->hi);
    d = glow_clamp(d, g->lo, g->hi);
  }
  to[0][o] = (int8_t)a;
  to[1][o] = (int8_t)b;
  to[2][o] = (int8_t)c;
  to[3][o] = (int8_t)d;
}

/* All channels of four pixels whose words are at x. */
GLOW_THUMB_INLINE void glow_thumb_gemm_by(const glow_thumb_gemm_t *g, const uint32_t *x, int8_t *const *to, int large) {
  const int8_t *w = g->weights;
  const float *scale = g->scale;
  const int32_t *bias = g->bias;
  const uint32_t near_tie = (uint32_t)bias[g->channels];
  const uint32_t span = near_tie < 0x80000000u ? GLOW_THUMB_SPAN : 0u;
  const uint32_t groups = (uint32_t)(g->k + 1) / 2u;
  const int narrow = g->lo != -128 || g->hi != 127;
  int32_t inputs[4];
  if (g->w_zp != 0) {
    glow_thumb_inputs(inputs, x, g->k, g->w_zp);
  }
  for (int32_t o = 0; o < g->channels; o++, scale += g->scale_step) {
    glow_thumb_sums_t sums;
    sums.high0 = (uint32_t)*bias + 256u * groups;
    sums.high1 = sums.high0;
    sums.low0 = (uint32_t)*bias++ - 32640u * groups + (sums.high0 << 16);
    sums.low1 = sums.low0;
    w = glow_thumb_dot4(&sums, x, w, g->k);
    int32_t a = (int32_t)(sums.low0 - (sums.high0 << 16));
    int32_t b = (int32_t)sums.high0;
    int32_t c = (int32_t)(sums.low1 - (sums.high1 << 16));
    int32_t d = (int32_t)sums.high1;
    if (g->w_zp != 0) {
      a -= inputs[0];
      b -= inputs[1];
      c -= inputs[2];
      d -= inputs[3];
    }
    const int32_t sum[4] = {a, b, c, d};
    glow_thumb_codes4(g, sum, o, scale, span, near_tie, narrow, large, to);
  }
}

GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_gemm(const glow_thumb_gemm_t *g, const uint32_t *x, int8_t *const *to) {
  glow_thumb_gemm_by(g, x, to, 0);
}

/* The same where some scales are 1/4 or more. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_gemm_large(const glow_thumb_gemm_t *g, const uint32_t *x,
                                                      int8_t *const *to) {
  glow_thumb_gemm_by(g, x, to, 1);
}

/* sum += x[k] * w[k] */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_fc1(int32_t sum, const int8_t *x, const int8_t *w, int32_t k) {
  for (; k >= 4; k -= 4, x += 4, w += 4) {
    sum += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
  }
  for (; k > 0; k--) {
    sum += *x++ * *w++;
  }
  return sum;
}

/* How the sums of a row of outputs become codes; `near_tie` and `shift` as in glow_thumb_gemm_t. */
typedef struct {
  const float *scale;
  int32_t scale_step;
  uint32_t near_tie;
  int32_t zp;
  const glow_thumb_shift_t *shift;
  const int8_t *out;
} glow_thumb_fc_t;

/* The code of an output near a tie. */
GLOW_THUMB_INLINE int32_t glow_thumb_fc_slow(const glow_thumb_fc_t *f, int32_t sum, const int8_t *y) {
  const int32_t o = (int32_t)(y - f->out);
  return glow_thumb_slow(sum, f->scale + o * f->scale_step, f->shift, o, f->zp);
}

/* Codes of n sums. */
GLOW_THUMB_INLINE void glow_thumb_fc_store_by(const glow_thumb_fc_t *f, int8_t *y, const int32_t *sum, int32_t n,
                                              int large) {
  const int32_t scale_step = f->scale_step;
  const float *scale = f->scale + (y - f->out) * scale_step;
  const uint32_t near_tie = f->near_tie;
  const int32_t zp = f->zp;
  const int32_t *const end = sum + n;
  while (near_tie >= 0x80000000u && sum != end) {
    *y = (int8_t)glow_thumb_fc_slow(f, *sum++, y);
    y++;
  }
#if defined(GLOW_FIXED_THUMB_H)
  for (; sum != end && glow_thumb_is_q31(f->shift); sum++, y++) {
    const int32_t o = (int32_t)(y - f->out);
    if (f->shift->shifts[o] < 0) {
      const glow_thumb_q31_t q = glow_thumb_q31_of(f->shift->mul[o], -f->shift->shifts[o], zp);
      *y = (int8_t)glow_thumb_q31(*sum, &q);
    } else {
      *y = (int8_t)glow_thumb_fc_slow(f, *sum, y);
    }
  }
#endif
  for (; sum != end; sum++, scale += scale_step) {
    uint32_t bits;
    memcpy(&bits, scale, sizeof bits);
    int32_t code = *sum;
    if (large && bits - GLOW_THUMB_LEAST >= GLOW_THUMB_SPAN) {
      code = glow_thumb_doubled(code, glow_thumb_halved(&bits));
    }
    if (bits - GLOW_THUMB_LEAST >= GLOW_THUMB_SPAN ||
        !glow_thumb_round1(&code, glow_thumb_factor(bits), near_tie, zp)) {
      code = glow_thumb_fc_slow(f, *sum, y);
    }
    *y++ = (int8_t)code;
  }
}

GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_fc_store(const glow_thumb_fc_t *f, int8_t *y, const int32_t *sum,
                                                    int32_t n) {
  glow_thumb_fc_store_by(f, y, sum, n, 0);
}

/* The same where some scales are 1/4 or more. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_fc_store_large(const glow_thumb_fc_t *f, int8_t *y, const int32_t *sum,
                                                          int32_t n) {
  glow_thumb_fc_store_by(f, y, sum, n, 1);
}

#define GLOW_THUMB_DW_ROWS 10

/* A tile: adjacent outputs of a row, for all channels. The zero point is in the bias, which ends with the distance from
 * a tie (glow_thumb_gemm_t); weights stand channel by channel. */
typedef struct {
  const int8_t *row[GLOW_THUMB_DW_ROWS]; /* the kernel's rows that exist, at the first column that exists */
  int32_t rows;
  int32_t above; /* weights of a channel in rows above the input, and below it */
  int32_t below;
  int32_t left; /* column of the first output's window */
  int32_t in_w, in_col;
  const int8_t *weights;
  const int32_t *bias;
  const float *scale;
  int32_t scale_step, channels, in_zp, w_zp, out_zp, out_min, out_max, k_w, stride_w, dil_w;
  int32_t outputs; /* of a tile */
  const glow_thumb_shift_t *shift; /* NULL: codes are rounded half to even */
} glow_thumb_dw_t;

/* What the rows outside of the input add to a channel's sums. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_dw_pad(const glow_thumb_dw_t *d, const int8_t *w) {
  int32_t sum = -d->w_zp * (d->above + d->below);
  for (int32_t i = 0; i < d->above; i++) {
    sum += *w++;
  }
  w += d->rows * d->k_w;
  for (int32_t i = 0; i < d->below; i++) {
    sum += *w++;
  }
  return sum * d->in_zp;
}

/* Channel c, from input channel `from`, of a tile's outputs, one of which may be near a tie. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_dw_slow(const glow_thumb_dw_t *d, int32_t c, int32_t from, int8_t *to) {
  const int32_t taps = d->above + d->below + d->rows * d->k_w;
  const int32_t first = d->left > 0 ? d->left : 0;
  for (int32_t i = 0; i < d->outputs; i++, to += d->channels) {
    const int8_t *w = d->weights + c * taps;
    int32_t acc = d->bias[c] + glow_thumb_dw_pad(d, w);
    w += d->above;
    for (int32_t r = 0; r < d->rows; r++) {
      for (int32_t kx = 0; kx < d->k_w; kx++) {
        const int32_t x = d->left + i * d->stride_w + kx * d->dil_w;
        const int32_t in = x >= 0 && x < d->in_w ? d->row[r][(x - first) * d->in_col + from] : d->in_zp;
        acc += (*w++ - d->w_zp) * in;
      }
    }
    const int32_t code = glow_thumb_slow(acc, d->scale + c * d->scale_step, d->shift, c, d->out_zp);
    *to = (int8_t)glow_clamp(code, d->out_min, d->out_max);
  }
}

#endif
