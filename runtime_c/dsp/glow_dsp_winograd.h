/* SPDX-License-Identifier: MIT-0 */
/* Winograd's F(2x2, 3x3) in integers, for CPUs with the DSP extension and an FPU: two tiles of 2x2 outputs at a time.
 *
 * Per output channel a tile's four sums are A' M A, M = sum over inputs of U * V (16 products, not 36), with
 *   V = B' d B        of the 4x4 codes d under the tile: |V| <= 512;
 *   U = 2G g (2G)'    of the 3x3 weights g: |U| <= 9 * 128, and sums come out four times as large.
 * V and U are int16, M and the sums int32 modulo 2^32; the compiler proved that four times a sum fits int32, so all is
 * exact. Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, arXiv:1509.09308.
 *
 * The 16 products (row i, column j) stand in the order j = 1, 2, 0, 3, and i = 0 .. 3 within:
 *   inputs    per four input channels and product channels 0 and 2 of the first tile, of the second one, then 1 and 3;
 *   products  of weights, of a block of four output channels: per four input channels and product, input channels 0 and
 *             2 of each output channel, then 1 and 3;
 *   sums      of a block: per output channel and product the first tile's and the second tile's.
 * The stream of a layer: per output channel and four input channels the words of nine taps; bias and ending of each
 * output channel, a float32 scale or a multiplier (glow_dsp_q31.h), whose shifts come last, in bytes. Where codes are lines
 * of sums: four times the bias, with an offset, and a multiplier, or where it is negative less a float32 scale.
 */
#ifndef GLOW_DSP_WINOGRAD_H
#define GLOW_DSP_WINOGRAD_H

#include "glow_dsp_q31.h"

#define GLOW_WINOGRAD_PRODUCTS 16
#define GLOW_WINOGRAD_LINE_FRACTION 6

/* The products of two tiles with blocks of output channels, and codes of their sums. */
typedef struct {
  const uint32_t *inputs;
  const uint32_t *products;
  int32_t *sums;
  const int32_t *ends; /* bias and ending of each channel */
  int8_t *upper;       /* four pixels of the upper row, out_c apart, and of the lower one */
  int8_t *lower;
  int32_t out_c;
  int32_t block;      /* bytes of the endings of a block, of one to four channels */
  const int32_t *end; /* of those of all blocks */
  int32_t zero;       /* point of the output; for a multiplier 1 + twice that; of lines that and a half, with a fraction */
  uint32_t low;       /* limits of the output, in all four bytes */
  uint32_t high;
  const int8_t *shifts;
  int32_t span; /* bytes of the products of inputs */
} glow_winograd_t;
#if GLOW_DSP_ASM
GLOW_AT(glow_winograd_t, inputs, 0); GLOW_AT(glow_winograd_t, products, 4); GLOW_AT(glow_winograd_t, sums, 8);
GLOW_AT(glow_winograd_t, ends, 12); GLOW_AT(glow_winograd_t, upper, 16); GLOW_AT(glow_winograd_t, lower, 20);
GLOW_AT(glow_winograd_t, out_c, 24); GLOW_AT(glow_winograd_t, block, 28); GLOW_AT(glow_winograd_t, end, 32);
GLOW_AT(glow_winograd_t, zero, 36); GLOW_AT(glow_winograd_t, low, 40); GLOW_AT(glow_winograd_t, high, 44);
GLOW_AT(glow_winograd_t, shifts, 48); GLOW_AT(glow_winograd_t, span, 52);
#endif

/* The steps, which kernels/dsp/winograd_tile.py writes in assembly. */
typedef void (*glow_winograd_turned_t)(uint32_t *to, const int32_t *weights, const int32_t *end);
typedef void (*glow_winograd_inputs_t)(uint32_t *to, const int8_t *one, const int8_t *other, int32_t step);
typedef void (*glow_winograd_blocks_t)(const glow_winograd_t *w);

#if !GLOW_DSP_ASM
/* Products of an output channel. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_turned(uint32_t *to, const int32_t *weights, const int32_t *end) {
  static const uint8_t at[4] = {8, 0, 4, 12}; /* where column j begins */
  for (; weights != end; weights += 9, to += 8 * GLOW_WINOGRAD_PRODUCTS) {
    for (int32_t half = 0; half < 2; half++) {
      int16_t u[2][4][4]; /* of two channels, row i and column j */
      for (int32_t k = 0; k < 2; k++) {
        int32_t down[4][3];
        for (int32_t x = 0; x < 3; x++) {
          int32_t g[3];
          for (int32_t y = 0; y < 3; y++) {
            g[y] = glow_first8((uint32_t)weights[3 * y + x] >> (8 * half + 16 * k));
          }
          down[0][x] = 2 * g[0];
          down[1][x] = g[0] + g[1] + g[2];
          down[2][x] = g[0] - g[1] + g[2];
          down[3][x] = 2 * g[2];
        }
        for (int32_t i = 0; i < 4; i++) {
          u[k][i][0] = (int16_t)(2 * down[i][0]);
          u[k][i][1] = (int16_t)(down[i][0] + down[i][1] + down[i][2]);
          u[k][i][2] = (int16_t)(down[i][0] - down[i][1] + down[i][2]);
          u[k][i][3] = (int16_t)(2 * down[i][2]);
        }
      }
      for (int32_t i = 0; i < 4; i++) {
        for (int32_t j = 0; j < 4; j++) {
          to[8 * (at[j] + i) + 4 * half] = glow_pack_low((uint32_t)u[0][i][j], (uint32_t)u[1][i][j]);
        }
      }
    }
  }
}

/* V of two tiles, row i, of the sum or the difference of two rows of codes whose columns are `step` apart. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_inputs(uint32_t *to, const int8_t *one, const int8_t *other,
                                                          int32_t step, int32_t sign) {
  static const uint8_t at[4] = {32, 0, 16, 48}; /* where column j stands */
  for (int32_t c = 0; c < step; c += 4, to += 4 * GLOW_WINOGRAD_PRODUCTS) {
    for (int32_t tile = 0; tile < 2; tile++) {
      int16_t v[4][4]; /* of column j the channels */
      for (int32_t k = 0; k < 4; k++) {
        int32_t d[4];
        for (int32_t x = 0; x < 4; x++) {
          const int32_t from = (2 * tile + x) * step + c + k;
          d[x] = one[from] + sign * other[from];
        }
        v[0][k] = (int16_t)(d[0] - d[2]);
        v[1][k] = (int16_t)(d[1] + d[2]);
        v[2][k] = (int16_t)(d[2] - d[1]);
        v[3][k] = (int16_t)(d[1] - d[3]);
      }
      for (int32_t j = 0; j < 4; j++) {
        to[at[j] + tile] = glow_pack_low((uint32_t)v[j][0], (uint32_t)v[j][2]);
        to[at[j] + tile + 2] = glow_pack_low((uint32_t)v[j][1], (uint32_t)v[j][3]);
      }
    }
  }
}

/* Sums of the products of two tiles with four output channels. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_products(const uint32_t *inputs, const uint32_t *products,
                                                            int32_t in_c, int32_t *sums) {
  for (int32_t n = 0; n < GLOW_WINOGRAD_PRODUCTS; n++, inputs += 4, products += 8, sums += 2) {
    for (int32_t i = 0; i < 8; i++) {
      int32_t *sum = sums + 2 * GLOW_WINOGRAD_PRODUCTS * (i / 2) + i % 2;
      *sum = 0;
      for (int32_t k = 0; k < in_c / 2; k++) {
        *sum = glow_dsp_smlad(inputs[k / 2 * 4 * GLOW_WINOGRAD_PRODUCTS + k % 2 * 2 + i % 2],
                              products[k / 2 * 8 * GLOW_WINOGRAD_PRODUCTS + k % 2 * 4 + i / 2], *sum);
      }
    }
  }
}

/* Of the four values that are `step` apart, modulo 2^32: sum of the first three, or 1 less 2 less 3. */
GLOW_INLINE uint32_t glow_winograd_fold(const uint32_t *m, int32_t step, int32_t lower) {
  return lower != 0 ? m[step] - m[2 * step] - m[3 * step] : m[0] + m[step] + m[2 * step];
}

enum { GLOW_WINOGRAD_SCALE, GLOW_WINOGRAD_FIXED, GLOW_WINOGRAD_LINE };

/* The code of four times a sum and the bias, with a fraction, by a line, or where `mul` is negative by less a scale. */
GLOW_INLINE int32_t glow_winograd_real(int32_t four, int32_t mul) {
  if (mul >= 0) {
    return (int32_t)((int64_t)four * mul >> 32);
  }
  float scale;
  memcpy(&scale, &mul, sizeof scale);
  return glow_requant(four / 4, -scale, 0, -1048576, 1048575) * (1 << GLOW_WINOGRAD_LINE_FRACTION);
}

/* The codes of a channel; `how` says by what they are made. */
GLOW_INLINE void glow_winograd_codes(const glow_winograd_t *w, const uint32_t *m, int32_t channel, int how) {
  static const int32_t at[4] = {2, 0, 1, 3}; /* where column j of M stands */
  const int32_t *end = w->ends + 2 * channel;
  const int32_t low = glow_first8(w->low);
  const int32_t high = glow_first8(w->high);
  for (int32_t i = 0; i < 8; i++) { /* pixel i / 2 of the row i % 2 */
    uint32_t columns[4];
    for (int32_t j = 0; j < 4; j++) {
      columns[j] = glow_winograd_fold(m + 8 * at[j] + i / 4, 2, i % 2);
    }
    const uint32_t four = glow_winograd_fold(columns, 1, i / 2 % 2); /* divisible by 4 */
    const int32_t sum = (int32_t)((uint32_t)end[0] + (how == GLOW_WINOGRAD_LINE ? four : (uint32_t)((int32_t)four / 4)));
    int8_t *row = i % 2 != 0 ? w->lower : w->upper;
    int32_t code;
    if (how == GLOW_WINOGRAD_LINE) {
      const int32_t real = w->zero + glow_winograd_real(sum, end[1]);
      code = glow_clamp(real >> GLOW_WINOGRAD_LINE_FRACTION, low, high);
    } else if (how == GLOW_WINOGRAD_FIXED) {
      code = glow_dsp_q31_code(sum, (uint32_t)end[1], (uint32_t)w->shifts[channel], (w->zero - 1) / 2, low, high);
    } else {
      float scale;
      memcpy(&scale, &end[1], sizeof scale);
      code = glow_requant(sum, scale, w->zero, low, high);
    }
    row[i / 2 * w->out_c + channel] = (int8_t)code;
  }
}

GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_blocks(const glow_winograd_t *w, int how) {
  const int32_t in_c = w->span / (4 * GLOW_WINOGRAD_PRODUCTS);
  const uint32_t *products = w->products;
  const int32_t block = w->block / 8;
  for (int32_t c = 0; w->ends + 2 * c != w->end; c += block, products += 8 * in_c * 4) {
    glow_winograd_products(w->inputs, products, in_c, w->sums);
    for (int32_t k = 0; k < block; k++) {
      glow_winograd_codes(w, (const uint32_t *)(const void *)w->sums + 2 * GLOW_WINOGRAD_PRODUCTS * k, c + k, how);
    }
  }
}
#endif

/* A layer: an image and its geometry, the passes over it, the steps; `tile` has what is the same for all tiles. */
typedef struct {
  const int8_t *in;
  int8_t *out;
  const int32_t *weights;
  int32_t in_h, in_w, in_c, in_row, in_ring, in_zp, pad_top, pad_left, out_w, out_row, out_ring;
  int32_t channels;   /* of a pass */
  int32_t rows;       /* of a group, an even number */
  int32_t descending; /* not 0: from the last row to the first */
  glow_winograd_t tile;
  glow_winograd_turned_t turned;
  glow_winograd_inputs_t sums, differences;
  glow_winograd_blocks_t blocks;
} glow_winograd_layer_t;

/* Six columns of a row, from `left` on, with those beside the image; `row` is null where all of it is. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_piece(const glow_winograd_layer_t *p, int8_t *piece, const int8_t *row,
                                                         int32_t left) {
  const int32_t in_c = p->in_c;
  const int32_t begin = left < 0 ? -left : 0;
  const int32_t end = p->in_w - left < 6 ? p->in_w - left : 6;
  const int inside = row != NULL && begin < end;
  memset(piece, p->in_zp, (size_t)((inside ? begin : 6) * in_c));
  if (inside) {
    memcpy(piece + begin * in_c, row + (left + begin) * in_c, (size_t)((end - begin) * in_c));
    memset(piece + end * in_c, p->in_zp, (size_t)((6 - end) * in_c));
  }
}

/* The inputs of two rows of four pixels: six columns from `left` on, of four rows that are null beside the image. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_tile(const glow_winograd_layer_t *p, int32_t *sums,
                                                        const int8_t *const *image, int32_t left) {
  const int32_t in_c = p->in_c;
  uint32_t *inputs = (uint32_t *)(void *)(sums - GLOW_WINOGRAD_PRODUCTS * in_c);
  const int8_t *rows[4];
  int8_t *piece = (int8_t *)(void *)sums;
  for (int32_t i = 0; i < 4; i++) {
    if (image[i] != NULL && left >= 0 && left + 6 <= p->in_w) {
      rows[i] = image[i] + left * in_c;
    } else {
      glow_winograd_piece(p, piece, image[i], left);
      rows[i] = piece;
      piece += 6 * in_c;
    }
  }
  p->differences(inputs, rows[0], rows[2], in_c);
  p->sums(inputs + 4, rows[1], rows[2], in_c);
  p->differences(inputs + 8, rows[2], rows[1], in_c);
  p->differences(inputs + 12, rows[1], rows[3], in_c);
}

/* Rows y and, where `two`, y + 1 of `channels` outputs, from c on, whole fours of pixels; `w` has where the first ones lie.
 * `fresh`: their products are to be made. Of the units, numbered from `unit` on, those that the call computes; returns the
 * number after them. */
GLOW_HOT GLOW_DSP_UNUSED static int32_t glow_winograd_rows(const glow_winograd_layer_t *p, const glow_winograd_t *w,
                                                           int32_t c, int32_t channels, int32_t y, int32_t two, int fresh,
                                                           int32_t unit, int32_t begin, int32_t end, int32_t part) {
  const int32_t words = 9 * p->in_c / 4; /* of an output channel */
  const int32_t after = unit + ((channels - 1) / part + 1) * ((p->out_w + 3) / 4);
  if (after <= begin || unit >= end) {
    return after;
  }
  const int8_t *image[4];
  for (int32_t i = 0; i < 4; i++) {
    const int32_t iy = y - p->pad_top + i;
    image[i] = iy >= 0 && iy < p->in_h && (i < 3 || two) ? p->in + iy % p->in_ring * p->in_row : NULL;
  }
  glow_winograd_t block = *w;
  for (int32_t x = 0; x < p->out_w; x += 4) {
    for (int32_t at = 0, count = 0; at < channels; at += count, unit++) {
      count = channels - at < part ? channels - at : part;
      if (unit < begin || unit >= end) {
        continue;
      }
      if (at == 0) {
        glow_winograd_tile(p, w->sums, image, x - p->pad_left);
      }
      if (fresh && x == 0) {
        for (int32_t k = at; k < at + count; k++) {
          p->turned((uint32_t *)w->products + k / 4 * 32 * p->in_c + k % 4, p->weights + words * (c + k),
                    p->weights + words * (c + k + 1));
        }
      }
      for (int32_t k = at, here = 0; k < at + count; k += here) { /* whole blocks, then the rest */
        const int32_t rest = at + count - k;
        here = rest < 4 ? rest : rest - rest % 4;
        block.products = w->products + 8 * p->in_c * k;
        block.shifts = w->shifts + k;
        block.upper = w->upper + x * w->out_c + k;
        block.lower = w->lower + x * w->out_c + k;
        block.ends = w->ends + 2 * k;
        block.end = block.ends + 2 * here;
        block.block = 8 * (rest < 4 ? rest : 4);
        p->blocks(&block);
      }
    }
  }
  return unit;
}

/* Units of an image of so many rows. */
GLOW_INLINE int32_t glow_winograd_units(const glow_winograd_layer_t *p, int32_t rows, int32_t part) {
  int32_t blocks = 0;
  for (int32_t c = 0; c < p->tile.out_c; c += p->channels) {
    const int32_t channels = p->tile.out_c - c < p->channels ? p->tile.out_c - c : p->channels;
    blocks += (channels + part - 1) / part;
  }
  return (rows + 1) / 2 * ((p->out_w + 3) / 4) * blocks;
}

/* Rows [y_begin, y_end) of an image. `scratch`: the products of a pass; the inputs of two tiles; sums, before that the
 * codes of a 4x6 piece; rows of a group. `made`: the products of the only pass are there. Of the units of work, two rows of
 * four pixels and `part` channels each, whole fours, those from `begin` to `end`: what is in the scratch stays for the
 * next ones. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_winograd_image(const glow_winograd_layer_t *p, void *scratch, int32_t y_begin,
                                                         int32_t y_end, int made, int32_t begin, int32_t end,
                                                         int32_t part) {
  const int32_t out_c = p->tile.out_c;
  const int32_t words = 9 * p->in_c / 4; /* of an output channel */
  const int32_t row_bytes = (p->out_w + 3) / 4 * 4 * out_c;
  const int direct = p->channels >= out_c && p->out_w % 4 == 0; /* the first of two rows, in order, is no row that waits */
  const int32_t *ends = p->weights + words * out_c;
  uint32_t *products = (uint32_t *)scratch;
  uint32_t *inputs = products + 8 * p->in_c * p->channels;
  int32_t *sums = (int32_t *)(void *)(inputs + GLOW_WINOGRAD_PRODUCTS * p->in_c);
  int8_t *waiting = (int8_t *)(void *)sums + (24 * p->in_c > 512 ? 24 * p->in_c : 512);
  glow_winograd_t w = p->tile;
  w.inputs = inputs;
  w.products = products;
  w.sums = sums;
  w.span = 64 * p->in_c;
  int32_t unit = 0;
  for (int32_t row = 0; row < y_end - y_begin; row += p->rows) {
    const int32_t count = y_end - y_begin - row < p->rows ? y_end - y_begin - row : p->rows;
    const int32_t top = p->descending != 0 ? y_end - row - count : y_begin + row;
    const int32_t first = p->descending != 0 ? count - 1 : 0; /* of two rows, in order */
    for (int32_t c = 0; c < out_c; c += p->channels) {
      const int32_t channels = out_c - c < p->channels ? out_c - c : p->channels;
      const int fresh = p->channels < out_c || (row == 0 && !made);
      w.ends = ends + 2 * c;
      w.shifts = (const int8_t *)(const void *)(ends + 2 * out_c) + c;
      for (int32_t y = 0; y < count; y += 2) {
        int8_t *to[2];
        for (int32_t i = 0; i < 2; i++) {
          to[i] = direct && i == first ? p->out + (top + i) % p->out_ring * p->out_row
                                       : waiting + (direct ? 0 : y + i) * row_bytes + c;
        }
        w.upper = to[0];
        w.lower = to[1];
        unit = glow_winograd_rows(p, &w, c, channels, top + y, y + 1 < count, fresh && y == 0, unit, begin, end,
                                  part);
      }
    }
    for (int32_t y = 0; y < count && unit > begin && unit <= end; y++) {
      if (!direct || y != first) {
        memcpy(p->out + (top + y) % p->out_ring * p->out_row, waiting + (direct ? 0 : y) * row_bytes,
               (size_t)(p->out_w * out_c));
      }
    }
  }
}

#endif
