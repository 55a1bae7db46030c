/* SPDX-License-Identifier: MIT-0 */
/* The right matrix of a product of int8 codes on x86-64 as a stream of weights (glow_wide_codes.h): it is a tensor, so
 * this happens at run time. */
#ifndef GLOW_WIDE_COLUMNS_H
#define GLOW_WIDE_COLUMNS_H

#include "glow_wide_codes.h"

/* `depth` rows, and columns of both matrices' zero points */
typedef struct {
  int32_t depth, columns;
  int32_t row, col;
  int32_t a_zp;
  float scale;
} glow_wide_columns_t;

/* four rows of sixteen columns, of which `count` there are, or fewer rows, one by the other */
GLOW_INLINE void glow_wide_interleave(int8_t *to, const int8_t *from, const glow_wide_columns_t *m, int32_t rows, int32_t count) {
#if defined(__SSE2__) && defined(GLOW_WIDE_LEVELS)
  if (m->col == 1 && rows == 4 && count == GLOW_WIDE_LANES) {
    const __m128i a = _mm_loadu_si128((const void *)from), b = _mm_loadu_si128((const void *)(from + m->row));
    const __m128i c = _mm_loadu_si128((const void *)(from + 2 * m->row)), d = _mm_loadu_si128((const void *)(from + 3 * m->row));
    const __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b);
    const __m128i next_low = _mm_unpacklo_epi8(c, d), next_high = _mm_unpackhi_epi8(c, d);
    _mm_storeu_si128((void *)to, _mm_unpacklo_epi16(low, next_low));
    _mm_storeu_si128((void *)(to + 16), _mm_unpackhi_epi16(low, next_low));
    _mm_storeu_si128((void *)(to + 32), _mm_unpacklo_epi16(high, next_high));
    _mm_storeu_si128((void *)(to + 48), _mm_unpackhi_epi16(high, next_high));
    return;
  }
#endif
  memset(to, 0, 64);
  for (int32_t i = 0; i < count; i++) {
    const int8_t *column = from + i * m->col;
    if (m->row == 1 && rows == 4) {
      memcpy(to + 4 * i, column, 4);
      continue;
    }
    for (int32_t j = 0; j < rows; j++) {
      to[4 * i + j] = column[j * m->row];
    }
  }
}

__attribute__((unused)) static void glow_wide_columns(int8_t *to, const int8_t *right, const glow_wide_columns_t *m) {
  const int32_t steps = (m->depth + 3) / 4;
  for (int32_t o = 0; o < m->columns; o += GLOW_WIDE_LANES) {
    const int32_t count = m->columns - o < GLOW_WIDE_LANES ? m->columns - o : GLOW_WIDE_LANES;
    int32_t sums[GLOW_WIDE_LANES] = {0};
    float scales[GLOW_WIDE_LANES];
    int8_t *head = to;
    to += 128;
    for (int32_t k = 0; k < steps; k++, to += 64) {
      const int32_t rows = m->depth - 4 * k < 4 ? m->depth - 4 * k : 4;
      glow_wide_interleave(to, right + 4 * k * m->row + o * m->col, m, rows, count);
      for (int32_t i = 0; i < GLOW_WIDE_LANES; i++) {
        sums[i] += to[4 * i] + to[4 * i + 1] + to[4 * i + 2] + to[4 * i + 3];
      }
    }
    for (int32_t i = 0; i < GLOW_WIDE_LANES; i++) {
      sums[i] *= -(128 + m->a_zp);
      scales[i] = m->scale;
    }
    memcpy(head, sums, sizeof sums);
    memcpy(head + 64, scales, sizeof scales);
  }
}

#endif
