/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolution over planes, for CPUs with the DSP extension and an FPU.
 *
 * The rows below a band of output rows are taken apart into a plane for each channel: halfwords, less the zero point, two
 * columns a word, with padding around. Columns of a dilated window are beside each other there: a row has those of each
 * remainder of the dilation in words of their own. Weights become words of two taps that follow each other, in rows; each
 * is multiplied with two columns at once (kernels/dsp/planar_tile.py). Both are made of four channels at a time; the last
 * four overlap those before them where channels are no multiple of four.
 *
 * The constants of a layer: weights as in the model, filled up to a word; bias and ending of each output channel, a
 * float32 scale or a multiplier (glow_dsp_q31.h), whose shifts come next, in bytes. Codes of most channels are a line
 * (glow_dsp.h): begin and mul are there for bias and ending. Bits come last that tell which channels have one.
 */
#ifndef GLOW_DSP_PLANAR_H
#define GLOW_DSP_PLANAR_H

#include "glow_dsp_q31.h"

/* Rows of four channels to planes, by two columns a word or one. */
typedef struct {
  uint32_t *to;
  const int8_t *from;
  int32_t step;  /* bytes from column to column; of one column: 16 where it is the low half of its word, else 0 */
  int32_t next;  /* bytes from two columns to the next two; of one column: 16 less `step` */
  int32_t plane; /* bytes from plane to plane */
  uint32_t zero; /* point, negated, twice */
  int32_t pitch; /* bytes from row to row of a plane */
  int32_t jump;  /* bytes from row to row of the input */
  int32_t width; /* bytes of a row of a plane that are written */
  int32_t rows;  /* bytes of all rows of a plane */
} glow_planar_expand_t;

/* Rows of outputs of some channels; what moves from channel to channel may have moved afterwards. */
typedef struct {
  const uint32_t *planes;
  int32_t plane;
  int32_t pitch; /* bytes from a row of the window to the next one */
  int32_t jump;  /* bytes from after the words below a row to those of the next row */
  int32_t width; /* bytes of words that a row moves over */
  const uint32_t *weights;
  const int32_t *ends; /* bias and ending of each channel */
  const int32_t *last; /* after those of the last channel */
  const int8_t *shifts;
  int8_t *out;
  int32_t next; /* bytes from channel to channel */
  int32_t step; /* bytes from output to output of a row */
  int32_t row;  /* bytes from after a row to the next row */
  int32_t rows; /* bytes from a first row to the end of the last one */
  int32_t zero; /* point of the output; for a multiplier 1 + twice that, for a line with a half and its fraction */
  uint32_t low; /* limits of the output, in all four bytes */
  uint32_t high;
} glow_planar_rows_t;
#if GLOW_DSP_ASM
GLOW_AT(glow_planar_expand_t, to, 0); GLOW_AT(glow_planar_expand_t, from, 4); GLOW_AT(glow_planar_expand_t, step, 8);
GLOW_AT(glow_planar_expand_t, next, 12); GLOW_AT(glow_planar_expand_t, plane, 16);
GLOW_AT(glow_planar_expand_t, zero, 20); GLOW_AT(glow_planar_expand_t, pitch, 24);
GLOW_AT(glow_planar_expand_t, jump, 28); GLOW_AT(glow_planar_expand_t, width, 32);
GLOW_AT(glow_planar_expand_t, rows, 36);
GLOW_AT(glow_planar_rows_t, planes, 0); GLOW_AT(glow_planar_rows_t, plane, 4); GLOW_AT(glow_planar_rows_t, pitch, 8);
GLOW_AT(glow_planar_rows_t, jump, 12); GLOW_AT(glow_planar_rows_t, width, 16); GLOW_AT(glow_planar_rows_t, weights, 20);
GLOW_AT(glow_planar_rows_t, ends, 24); GLOW_AT(glow_planar_rows_t, last, 28); GLOW_AT(glow_planar_rows_t, shifts, 32);
GLOW_AT(glow_planar_rows_t, out, 36); GLOW_AT(glow_planar_rows_t, next, 40); GLOW_AT(glow_planar_rows_t, step, 44);
GLOW_AT(glow_planar_rows_t, row, 48); GLOW_AT(glow_planar_rows_t, rows, 52); GLOW_AT(glow_planar_rows_t, zero, 56);
GLOW_AT(glow_planar_rows_t, low, 60); GLOW_AT(glow_planar_rows_t, high, 64);
#endif

#define GLOW_PLANAR_PART 4 /* rows of planes for each row of outputs, of parts of a band */

/* The steps, which kernels/dsp/planar_tile.py writes in assembly. */
typedef void (*glow_planar_expand_fn)(const glow_planar_expand_t *e);
typedef void (*glow_planar_rows_fn)(glow_planar_rows_t *r);

/* A layer: an image and its geometry as planes have it, how it is walked, the steps. Rows of planes are rows of the image,
 * or where they are upright its columns: then widths are heights and heights widths. */
typedef struct {
  const int8_t *in;
  int8_t *out;
  const int8_t *weights;
  int32_t in_h, in_w, in_c, in_col, in_row, in_ring, in_bytes, in_zp;
  int32_t w_col, w_row, w_zp, k_h, k_w, stride_h, stride_w, dil_h, dil_w, pad_top, pad_left; /* w_col, w_row: from tap to tap */
  int32_t out_h, out_w, out_c, out_col, out_row, out_ring, out_bytes, out_zp, out_min, out_max;
  int32_t upright;
  int32_t descending; /* not 0: from the last row to the first */
  int32_t fixed;      /* 1: codes that are no lines end in a multiplier and a shift */
  int32_t outputs;    /* computed at a time */
  int32_t rows;       /* of a band, of the image */
  int32_t channels;   /* of a band, a multiple of four */
  int32_t words;      /* of a row of a plane, for each remainder of the dilation */
  int32_t flat;       /* 1: the rows of a band are one, where padding is outputs as well that are left out */
  int32_t slack;      /* words after the rows of a plane */
  glow_planar_expand_fn pairs, singles;
  glow_planar_rows_fn line, other;
} glow_planar_t;

/* A band: input channels [channel, channel + count), of which those from `first` on are computed; rows and columns of
 * outputs. */
typedef struct {
  int32_t channel, count, first, y, rows, x, columns;
  uint32_t *weights; /* of the first channel */
  uint32_t *planes;
  int8_t *line; /* outputs that are not written where they belong */
  int32_t plane_words;
} glow_planar_band_t;

#if !GLOW_DSP_ASM
GLOW_INLINE uint32_t glow_planar_less(const glow_planar_expand_t *e, const int8_t *at) {
  return (uint32_t)(*at + glow_low16(e->zero)) & 0xFFFFu;
}

GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_pairs(const glow_planar_expand_t *e) {
  for (int32_t y = 0; y < e->rows / e->pitch; y++) {
    for (int32_t k = 0; k < e->width / 4; k++) {
      for (int32_t c = 0; c < 4; c++) {
        const int8_t *at = e->from + y * e->jump + k * e->next + c;
        e->to[c * (e->plane / 4) + y * (e->pitch / 4) + k] =
            glow_planar_less(e, at) | glow_planar_less(e, at + e->step) << 16;
      }
    }
  }
}

GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_singles(const glow_planar_expand_t *e) {
  for (int32_t y = 0; y < e->rows / e->pitch; y++) {
    for (int32_t c = 0; c < 4; c++) {
      e->to[c * (e->plane / 4) + y * (e->pitch / 4)] = glow_planar_less(e, e->from + y * e->jump + c) << e->next;
    }
  }
}

typedef enum { GLOW_PLANAR_SCALE, GLOW_PLANAR_MULTIPLIER, GLOW_PLANAR_LINE } glow_planar_by_t;

/* The halfword of a column, or of a tap beside the one before it. */
GLOW_INLINE int32_t glow_planar_half(const uint32_t *words, int32_t at) {
  return glow_low16(words[at / 2] >> (16 * (at % 2)));
}

GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_rows(const glow_planar_rows_t *r, int32_t k_h, int32_t k_w, int32_t stride,
                                                      int32_t outputs, glow_planar_by_t by) {
  const int32_t words = outputs * stride / 2; /* from outputs to the next ones */
  const int32_t width = r->width / 4 / words * outputs;
  const int32_t rows = r->rows / (width * r->step + r->row);
  for (int32_t c = 0; r->ends + 2 * c != r->last; c++) {
    const int32_t *end = r->ends + 2 * c;
    const uint32_t *taps = r->weights + c * k_h * (k_w - 1);
    for (int32_t y = 0; y < rows; y++) {
      const uint32_t *plane = r->planes + c * (r->plane / 4) + y * ((r->width + r->jump) / 4);
      for (int32_t x = 0; x < width; x++) {
        int32_t sum = end[0];
        for (int32_t ky = 0; ky < k_h; ky++) {
          const uint32_t *row = taps + ky * (k_w - 1);
          for (int32_t kx = 0; kx < k_w; kx++) {
            const int32_t weight = kx == 0 ? glow_low16(row[0]) : glow_low16(row[kx - 1] >> 16);
            sum += weight * glow_planar_half(plane + ky * (r->pitch / 4), x * stride + kx);
          }
        }
        if (by == GLOW_PLANAR_LINE) {
          sum = (int32_t)((int64_t)sum * end[1] >> 32) + r->zero;
          sum = glow_clamp(sum >> GLOW_DSP_LINE_FRACTION, glow_first8(r->low), glow_first8(r->high));
        } else if (by == GLOW_PLANAR_MULTIPLIER) {
          sum = glow_dsp_q31_code(sum, (uint32_t)end[1], (uint32_t)r->shifts[c], (r->zero - 1) / 2, glow_first8(r->low),
                                  glow_first8(r->high));
        } else {
          float scale;
          memcpy(&scale, &end[1], sizeof scale);
          sum = glow_requant(sum, scale, r->zero, glow_first8(r->low), glow_first8(r->high));
        }
        r->out[c * r->next + y * (width * r->step + r->row) + x * r->step] = (int8_t)sum;
      }
    }
  }
}
#endif

/* Does one step for all of so many channels, from where `e` says on. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_channels(glow_planar_expand_fn step, glow_planar_expand_t *e,
                                                          int32_t channels) {
  uint32_t *to = e->to;
  const int8_t *from = e->from;
  for (int32_t c = 0; c < channels; c += 4) {
    const int32_t at = c + 4 > channels ? channels - 4 : c;
    e->to = to + at * (e->plane / 4);
    e->from = from + at;
    step(e);
  }
  e->to = to;
  e->from = from;
}

GLOW_INLINE int32_t glow_planar_padded(int32_t number, int32_t to) { return (number + to - 1) / to * to; }

/* Biases and endings of all output channels, and what comes after them. */
GLOW_INLINE const int32_t *glow_planar_ends(const glow_planar_t *p) {
  return (const int32_t *)(const void *)(p->weights + glow_planar_padded(p->k_h * p->k_w * p->out_c, 4));
}

/* Bits of output channels, from the lowest of a byte on: 1 where codes are lines. */
GLOW_INLINE const uint8_t *glow_planar_bits(const glow_planar_t *p) {
  const int32_t shifts = p->fixed != 0 ? glow_planar_padded(p->out_c, 4) : 0;
  return (const uint8_t *)(const void *)(glow_planar_ends(p) + 2 * p->out_c) + shifts;
}

GLOW_INLINE uint32_t glow_planar_bit(const uint8_t *bits, uint32_t channel) {
  return (uint32_t)bits[channel / 8u] >> channel % 8u & 1u;
}

/* How many of `most` channels from one on have the same bit; eight bits are compared at a time. */
GLOW_INLINE int32_t glow_planar_alike(const uint8_t *bits, uint32_t channel, uint32_t bit, int32_t most) {
  int32_t count = 1;
  while (count < most) {
    const uint32_t next = channel + (uint32_t)count;
    const uint32_t others = ((uint32_t)bits[next / 8u] ^ (0u - bit)) & 0xFFu;
    if ((others >> next % 8u & 1u) != 0u) {
      break;
    }
    count += next % 8u == 0u && others == 0u ? 8 : 1;
  }
  return count < most ? count : most;
}

/* The words of the weights of a band. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_weights(const glow_planar_t *p, const glow_planar_band_t *b) {
  const int32_t mult = p->out_c / p->in_c;
  const int32_t taps = p->k_w > 1 ? p->k_w - 1 : 1;
  glow_planar_expand_t e = {b->weights, p->weights + b->channel * mult, p->k_w > 1 ? p->w_col : 16, p->k_w > 1 ? p->w_col : 0,
    4 * p->k_h * taps, glow_twice16(-p->w_zp), 4 * taps, p->w_row, 4 * taps, 4 * p->k_h * taps};
  glow_planar_channels(p->k_w > 1 ? p->pairs : p->singles, &e, b->count * mult);
  uint32_t *w = b->weights;
  const uint8_t *bits = glow_planar_bits(p);
  for (int32_t c = 0; c < b->count * mult; c++) {
    uint32_t *end = w + p->k_h * taps;
    for (; w != end && glow_planar_bit(bits, (uint32_t)(b->channel * mult + c)) != 0u; w++) {
      *w = (*w & 0x00FF00FFu) << GLOW_DSP_LINE_SHIFT;
    }
    w = end;
  }
}

/* Columns `k`, `k` + dilation ... below a band of rows that begin at `e->to` and `e->from`. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_columns(const glow_planar_t *p, const glow_planar_band_t *b,
                                                         glow_planar_expand_t *e, int32_t k) {
  const int32_t left = b->x * p->stride_w - p->pad_left;
  const int32_t right = left + (b->columns - 1) * p->stride_w + (p->k_w - 1) * p->dil_w + 1;
  const int32_t end = right < p->in_w ? right : p->in_w;
  const int32_t pads = left + k < 0 ? (p->dil_w - 1 - left - k) / p->dil_w : 0;
  const int32_t begin = left + k + pads * p->dil_w;
  const int32_t step = p->dil_w * p->in_col;
  const int32_t channels = b->count;
  int32_t count = begin < end ? (end - begin + p->dil_w - 1) / p->dil_w : 0;
  if (count == 0) {
    return;
  }
  e->to += k * p->words + (pads >> 1);
  e->from += begin * p->in_col;
  if (pads % 2 != 0) {
    e->step = 0;
    e->next = 16;
    glow_planar_channels(p->singles, e, channels);
    e->to++;
    e->from += step;
    count--;
  }
  if (count > 1) {
    e->step = step;
    e->next = 2 * step;
    e->width = (count >> 1) * 4;
    glow_planar_channels(p->pairs, e, channels);
    e->to += count >> 1;
    e->from += (count >> 1) * e->next;
  }
  if (count % 2 != 0) {
    e->step = 16;
    e->next = 0;
    glow_planar_channels(p->singles, e, channels);
  }
}

/* Rows [begin, finish) of the planes of a band, INT32_MAX: to the last; with the first ones all padding, where it is not
 * `clear`. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_planes(const glow_planar_t *p, const glow_planar_band_t *b, int clear,
                                                        int32_t begin, int32_t finish) {
  const int32_t pitch = p->dil_w * p->words;
  const int32_t top = b->y * p->stride_h - p->pad_top;
  const int32_t bottom = top + (b->rows - 1) * p->stride_h + (p->k_h - 1) * p->dil_h + 1;
  const int32_t first = top < 0 ? (bottom < 0 ? bottom : 0) : top;
  const int32_t end = bottom > p->in_h ? (top > p->in_h ? top : p->in_h) : bottom;
  const int32_t last = finish == INT32_MAX || end < top + finish ? end : top + finish;
  for (int32_t c = 0; c < b->count && !clear && begin == 0; c++) {
    uint32_t *plane = b->planes + c * b->plane_words;
    if (p->upright != 0) {
      memset(plane, 0, (size_t)(4 * b->plane_words));
    }
    memset(plane, 0, (size_t)((first - top) * pitch * 4));
    memset(plane + (end - top) * pitch, 0, (size_t)((bottom - end) * pitch * 4));
  }
  for (int32_t row = begin == 0 || first > top + begin ? first : top + begin; row < last;) {
    const int32_t at = row % p->in_ring;
    const int32_t some = last - row < p->in_ring - at ? last - row : p->in_ring - at;
    glow_planar_expand_t e = {0, 0, 0, 0, 4 * b->plane_words, glow_twice16(-p->in_zp), 4 * pitch, p->in_row, 0, 4 * pitch * some};
    for (int32_t k = 0; k < p->dil_w; k++) {
      e.to = b->planes + (row - top) * pitch;
      e.from = p->in + at * p->in_row + b->channel;
      glow_planar_columns(p, b, &e, k);
    }
    row += some;
  }
}

/* True where outputs are written where they belong. */
GLOW_INLINE int glow_planar_direct(const glow_planar_t *p) {
  return p->flat == 0 && p->out_w % (p->outputs * p->dil_w) == 0;
}

/* `some` rows of a band from its row `row` on, columns `k`, `k` + dilation ..., of the input channels [c, c + count) of it;
 * `w` has what is the same for all. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_outputs(const glow_planar_t *p, const glow_planar_band_t *b,
                                                         glow_planar_rows_t *w, int32_t row, int32_t some, int32_t k,
                                                         int32_t c, int32_t count) {
  const int32_t mult = p->out_c / p->in_c;
  const int32_t taps = p->k_h * (p->k_w > 1 ? p->k_w - 1 : 1);
  const int32_t pitch = p->dil_w * p->words;
  const int32_t wide = (b->columns - k + p->dil_w - 1) / p->dil_w;
  const int direct = glow_planar_direct(p);
  const int32_t pixels = p->flat != 0 ? 2 * p->words : glow_planar_padded(wide, p->outputs); /* outputs of a row */
  const int32_t width = p->flat != 0 ? glow_planar_padded(some * pixels, p->outputs) : pixels;
  const int32_t channel = (b->channel + c) * mult; /* the first one */
  const int32_t *ends = glow_planar_ends(p);
  const uint8_t *bits = glow_planar_bits(p);
  const int32_t outputs = count * mult;
  int8_t *to = p->out + (b->y + row) % p->out_ring * p->out_row + (b->x + k) * p->out_col + channel;
  w->width = 2 * width * p->stride_w;
  w->jump = 4 * pitch * p->stride_h - w->width;
  w->step = direct ? p->dil_w * p->out_col : outputs;
  w->row = direct ? p->out_row - width * w->step : 0;
  w->rows = (p->flat != 0 ? 1 : some) * (width * w->step + w->row);
  for (int32_t at = 0, alike; at < outputs; at += alike) {
    const uint32_t line = glow_planar_bit(bits, (uint32_t)(channel + at));
    alike = glow_planar_alike(bits, (uint32_t)(channel + at), line, outputs - at);
    w->planes = b->planes + (c + at / mult) * b->plane_words + row * p->stride_h * pitch + k * p->words;
    w->weights = b->weights + (c * mult + at) * taps;
    w->ends = ends + 2 * (channel + at);
    w->last = w->ends + 2 * alike;
    w->shifts = (const int8_t *)(const void *)(ends + 2 * p->out_c) + channel + at;
    w->out = (direct ? to : b->line) + at;
    w->zero = p->fixed != 0 ? 1 + 2 * p->out_zp : p->out_zp;
    if (line != 0u) {
      w->zero = glow_dsp_line_start(p->out_zp);
      p->line(w);
    } else {
      p->other(w);
    }
  }
  const int32_t next = p->dil_w * p->out_col;
  for (int32_t i = 0; !direct && i < some; i++) {
    const int8_t *from = b->line + i * pixels * w->step;
    int8_t *pixel = to + i * p->out_row;
    const int8_t *end = from + wide * w->step;
    if (w->step == 4) {
      for (; from + 16 <= end; from += 16, pixel += 4 * next) {
        memcpy(pixel, from, 4);
        memcpy(pixel + next, from + 4, 4);
        memcpy(pixel + 2 * next, from + 8, 4);
        memcpy(pixel + 3 * next, from + 12, 4);
      }
      for (; from != end; from += 4, pixel += next) {
        memcpy(pixel, from, 4);
      }
    } else {
      for (; from != end; from += w->step, pixel += next) {
        memcpy(pixel, from, (size_t)w->step);
      }
    }
  }
}

/* Rows [y_begin, y_end) of an image. Some channels after the other where their outputs lie over no input but their own,
 * else row after row. `scratch`: words of weights, planes, and outputs where they do not fill a row. Of all bands of rows
 * and groups of channels, in order, `part` rows of a band at a time, those from `begin` to `end` of `units`: what is in the
 * scratch stays for the next ones. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_planar_image(const glow_planar_t *p, void *scratch, int32_t y_begin,
                                                       int32_t y_end, int32_t part, int32_t begin, int32_t end,
                                                       int32_t units) {
  const int32_t mult = p->out_c / p->in_c;
  const uintptr_t in = (uintptr_t)p->in;
  const uintptr_t out = (uintptr_t)p->out;
  const int apart = out + (uintptr_t)p->out_bytes <= in || in + (uintptr_t)p->in_bytes <= out;
  const int own = mult == 1 && (p->upright != 0 ? p->in_row : p->in_col) == p->in_c &&
    (out > in ? out - in : in - out) % (uintptr_t)p->in_c == 0;
  const int by_groups = apart || own;
  const int32_t rows = by_groups ? p->rows : 1;
  const int32_t bands = (y_end - y_begin + rows - 1) / rows;
  const int32_t below = ((p->upright != 0 ? p->out_h : rows) - 1) * p->stride_h + (p->k_h - 1) * p->dil_h + 1;
  glow_planar_band_t b = {0, 0, 0, 0, p->out_h, 0, p->out_w, (uint32_t *)scratch, 0, 0, below * p->dil_w * p->words + p->slack};
  glow_planar_rows_t w = {0, mult == 1 ? 4 * b.plane_words : 0, 4 * p->dil_h * p->dil_w * p->words, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
    glow_four8(p->out_min), glow_four8(p->out_max)};
  b.planes = b.weights + p->channels * mult * p->k_h * (p->k_w > 1 ? p->k_w - 1 : 1);
  b.line = (int8_t *)(void *)(b.planes + p->channels * b.plane_words);
  int32_t *first = p->upright != 0 ? &b.x : &b.y; /* row of the band, of the image, and how many */
  int32_t *many = p->upright != 0 ? &b.columns : &b.rows;
  const int32_t groups = (p->in_c + p->channels - 1) / p->channels;
  const int32_t high = p->upright != 0 ? p->out_h : rows;
  const int32_t spread = high > part ? GLOW_PLANAR_PART * part : INT32_MAX; /* rows of planes that are a unit */
  const int32_t alone = high > part ? (below - 1) / spread + 1 : 0;
  const int32_t parts = (high - 1) / part + 1 + alone;
  const int32_t all = bands * groups * parts;
  if (begin == 0) {
    memset(b.planes, 0, (size_t)(4 * p->channels * b.plane_words));
  }
  for (int32_t unit = all * begin / units; unit < all * end / units; unit++) {
    const int32_t band = unit / parts;
    const int32_t outer = band / (by_groups ? bands : groups);
    const int32_t inner = band % (by_groups ? bands : groups);
    const int32_t number = by_groups ? inner : outer;
    const int32_t channel = (by_groups ? outer : inner) * p->channels; /* its first one */
    const int32_t piece = unit % parts;
    const int32_t top = (piece - alone) * part; /* the first row of it */
    b.channel = channel < p->in_c - 4 ? channel : p->in_c - 4;
    b.count = p->in_c - b.channel < p->channels ? p->in_c - b.channel : p->channels;
    b.first = channel - b.channel;
    *first = y_begin + (p->descending != 0 ? bands - 1 - number : number) * rows;
    *many = y_end - *first < rows ? y_end - *first : rows;
    if (piece == 0 && (number == 0 || !by_groups)) {
      glow_planar_weights(p, &b);
    }
    const int makes = alone > 0 && piece < alone;
    if (piece == 0 || makes) {
      const int32_t from = alone > 0 ? piece * spread : 0;
      glow_planar_planes(p, &b, bands == 1, from, alone > 0 ? from + spread : INT32_MAX);
    }
    if (makes) {
      continue;
    }
    const int32_t last = b.rows - top < part ? b.rows : top + part;
    for (int32_t row = top; row < last;) {
      const int32_t left = p->out_ring - (b.y + row) % p->out_ring;
      const int32_t some = last - row < left ? last - row : left;
      const int32_t most = mult > 1 ? 1 : (glow_planar_direct(p) ? b.count : 4); /* channels of a call */
      for (int32_t k = 0; k < p->dil_w && k < p->out_w; k++) {
        for (int32_t c = b.first; c < b.count; c += most) {
          glow_planar_outputs(p, &b, &w, row, some, k, c, b.count - c < most ? b.count - c : most);
        }
      }
      row += some;
    }
  }
}

#endif
