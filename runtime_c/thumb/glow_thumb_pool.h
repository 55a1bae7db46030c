/* SPDX-License-Identifier: MIT-0 */
/* Windows of int8 codes for cores without SIMD: averages by sums of four adjacent channels in the halves of two words;
 * maxima of four codes in a word. */
#ifndef GLOW_THUMB_POOL_H
#define GLOW_THUMB_POOL_H

#include "glow_thumb_plain.h"

#define GLOW_THUMB_POOL_ROWS 32
#define GLOW_THUMB_POOL_TAPS 257 /* bytes whose sum fits a half */

/* What exists of a window: `taps` pixels, `step` apart, in each of `rows` rows. */
typedef struct {
  const int8_t *row[GLOW_THUMB_POOL_ROWS];
  int32_t rows, taps, step;
} glow_thumb_pool_t;

/* Four codes, at any address. */
GLOW_INLINE uint32_t glow_thumb_word(const int8_t *x) {
  uint32_t word;
  memcpy(&word, x, sizeof word);
  return word;
}

/* The larger of each pair of signed bytes. */
GLOW_INLINE uint32_t glow_thumb_max4(uint32_t a, uint32_t b) {
  const uint32_t apart = a ^ b;
  const uint32_t low = (a | 0x80808080u) - (b & 0x7F7F7F7Fu); /* sign bit: a's lower bits are not below b's */
  const uint32_t first = ((apart & b) | (low & ~apart)) & 0x80808080u;
  return b ^ (apart & (first | (first - (first >> 7))));
}

/* The part [begin, end) of a window of k positions, `dil` apart, that lies in 0 .. n. */
typedef struct {
  int32_t begin, end;
} glow_thumb_range_t;

GLOW_INLINE glow_thumb_range_t glow_thumb_clip(int32_t first, int32_t k, int32_t dil, int32_t n) {
  glow_thumb_range_t range = {0, k};
  while (range.begin < k && first + range.begin * dil < 0) {
    range.begin++;
  }
  while (range.end > range.begin && first + (range.end - 1) * dil >= n) {
    range.end--;
  }
  return range;
}

/* The sum of channel c. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_pool1(const glow_thumb_pool_t *w, int32_t c) {
  int32_t sum = 0;
  for (int32_t r = 0; r < w->rows; r++) {
    const int8_t *from = w->row[r] + c;
    for (int32_t i = 0; i < w->taps; i++, from += w->step) {
      sum += *from;
    }
  }
  return sum;
}

#if GLOW_THUMB_ASM && !defined(__thumb2__)
#define GLOW_THUMB_WORD(p) __builtin_assume_aligned(p, 4)

/* Say whether the four channels from c on are a word in every pixel. */
GLOW_INLINE int glow_thumb_is_aligned(const glow_thumb_pool_t *w, int32_t c) {
  uintptr_t bits = (uintptr_t)w->step;
  for (int32_t r = 0; r < w->rows; r++) {
    bits |= (uintptr_t)(w->row[r] + c);
  }
  return (bits & 3u) == 0u;
}
#else
#define GLOW_THUMB_WORD(p) (p)
#define glow_thumb_is_aligned(w, c) 1
#endif

/* The sums of the four channels from c on. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_pool4(const glow_thumb_pool_t *w, int32_t c, int32_t *sum) {
  const int32_t step = w->step;
  if (!glow_thumb_is_aligned(w, c)) {
    for (int32_t i = 0; i < 4; i++) {
      sum[i] = glow_thumb_pool1(w, c + i);
    }
    return;
  }
  sum[0] = 0;
  sum[1] = 0;
  sum[2] = 0;
  sum[3] = 0;
  for (int32_t r = 0; r < w->rows; r++) {
    const int8_t *from = w->row[r] + c;
    for (int32_t left = w->taps; left > 0; left -= GLOW_THUMB_POOL_TAPS) {
      const int32_t taps = left < GLOW_THUMB_POOL_TAPS ? left : GLOW_THUMB_POOL_TAPS;
      uint32_t even = 0u;
      uint32_t odd = 0u;
      for (const int8_t *const end = from + taps * step; from != end; from += step) {
        uint32_t four;
        memcpy(&four, GLOW_THUMB_WORD(from), sizeof four);
        four ^= 0x80808080u;
        even += four & 0x00FF00FFu;
        odd += four >> 8 & 0x00FF00FFu;
      }
      sum[0] += (int32_t)(even & 0xFFFFu) - 128 * taps;
      sum[1] += (int32_t)(odd & 0xFFFFu) - 128 * taps;
      sum[2] += (int32_t)(even >> 16) - 128 * taps;
      sum[3] += (int32_t)(odd >> 16) - 128 * taps;
    }
  }
}

/* How sums of windows become codes. With `real`, near a tie, the definition of avg_pool_s8w:
 * rne((sum((v - in_zp) * in_scale) / count) / out_scale + zp + half) - half; else that of glow_requant. */
typedef struct {
  float scale; /* in_scale / (out_scale * count) */
  float in_scale, out_scale;
  int32_t count, in_zp, zp, lo, hi, half;
  uint32_t near_tie; /* as of glow_thumb_gemm_t; here of `real` also what float32 sums may differ by */
  int32_t real;
} glow_thumb_mean_t;

GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_mean_slow(const glow_thumb_mean_t *m, const glow_thumb_pool_t *w,
                                                        int32_t c, int32_t sum) {
  if (m->real == 0) {
    return glow_requant(sum, m->scale, m->zp, m->lo, m->hi);
  }
  float acc = 0.0f;
  for (int32_t r = 0; r < w->rows; r++) {
    const int8_t *from = w->row[r] + c;
    for (int32_t i = 0; i < w->taps; i++, from += w->step) {
      acc += glow_rounded((float)(*from - m->in_zp) * m->in_scale);
    }
  }
  const float code = glow_rounded(acc / (float)m->count / m->out_scale) + (float)(m->zp + m->half);
  return glow_round_clamp(code, -m->half, m->lo, m->hi);
}

/* The code of channel c. */
GLOW_INLINE int32_t glow_thumb_mean(const glow_thumb_mean_t *m, const glow_thumb_pool_t *w, int32_t c, int32_t sum,
                                      uint32_t bits) {
  int32_t code = sum;
  if (bits - GLOW_THUMB_LEAST >= GLOW_THUMB_SPAN ||
      !glow_thumb_round1(&code, glow_thumb_factor(bits), m->near_tie, m->zp)) {
    return glow_thumb_mean_slow(m, w, c, sum);
  }
  return glow_clamp(code, m->lo, m->hi);
}

/* The averages of all channels of a window; the last four of them overlap those before. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_means(const glow_thumb_mean_t *m, const glow_thumb_pool_t *w,
                                                 int32_t channels, int8_t *out) {
  uint32_t bits;
  memcpy(&bits, &m->scale, sizeof bits);
  const int32_t zeros = w->rows * w->taps * m->in_zp;
  for (int32_t c = 0; channels < 4 && c < channels; c++) {
    out[c] = (int8_t)glow_thumb_mean(m, w, c, glow_thumb_pool1(w, c) - zeros, bits);
  }
  for (int32_t start = 0; channels >= 4 && start < channels; start += 4) {
    const int32_t c = start + 4 <= channels ? start : channels - 4;
    int32_t sum[4];
    glow_thumb_pool4(w, c, sum);
    for (int32_t i = 0; i < 4; i++) {
      out[c + i] = (int8_t)glow_thumb_mean(m, w, c + i, sum[i] - zeros, bits);
    }
  }
}

#endif
