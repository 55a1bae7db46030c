/* SPDX-License-Identifier: MIT-0 */
/* Of sums and products of int16 codes around 0 by TensorFlow Lite's multipliers and shifts (glow_q31.h). */
#ifndef GLOW_PAIRS16_H
#define GLOW_PAIRS16_H

#include <stdint.h>

/* (a 2^15 ka + b 2^15 kb) k or, `minus`, with -b; products: a b k. A factor is mul * 2^(shift - 31); the shift of k is
 * negative, those of ka and kb, too, or the factor is 1/2: 2^30, 0. `ends` of codes: 0, all of them; 1, those that are not
 * negative; 2, from low to high. */
typedef struct {
  int32_t a_mul, a_shift, b_mul, b_shift, minus;
  int32_t mul, shift, low, high, ends;
} glow_pairs16_t;

#endif
