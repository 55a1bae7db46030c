/* SPDX-License-Identifier: MIT-0 */
/* Products of a vector of codes with four rows of weights, for layers whose sums end in functions of their own. */
#ifndef GLOW_ROWS_H
#define GLOW_ROWS_H

#include "glow_q15.h"

/* sums[k] += sum over i of (x[i] - zp) * w[k * stride + i], of n codes, for the four k. */
GLOW_HOT __attribute__((unused)) static void glow_rows_s8(const int8_t *x, int32_t zp, const int8_t *w, int32_t stride,
                                                          int32_t n, int32_t *sums) {
  const int8_t *row0 = w;
  const int8_t *row1 = row0 + stride;
  const int8_t *row2 = row1 + stride;
  const int8_t *row3 = row2 + stride;
  int32_t sum0 = sums[0];
  int32_t sum1 = sums[1];
  int32_t sum2 = sums[2];
  int32_t sum3 = sums[3];
  for (int32_t i = 0; i < n; i++) {
    const int32_t code = x[i] - zp;
    sum0 += code * row0[i];
    sum1 += code * row1[i];
    sum2 += code * row2[i];
    sum3 += code * row3[i];
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}

#endif
