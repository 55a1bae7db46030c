/* SPDX-License-Identifier: MIT-0 */
/* Products of two int16 tensors: their sums have 64 bits. */
#ifndef GLOW_PRODUCTS_H
#define GLOW_PRODUCTS_H

#include "glow_numeric.h"
#include "glow_q31.h"

#include <stdint.h>

/* clamp(rne(float32(acc) * scale) + zp, lo, hi); the conversion rounds half to even on every CPU. Without an instruction
 * for it libgcc has one, which sums of 32 bits need not wait for. */
GLOW_INLINE int32_t glow_requant_wide(int64_t acc, float scale, int32_t zp, int32_t lo, int32_t hi) {
#if defined(__arm__)
  if (acc >= INT32_MIN && acc <= INT32_MAX) {
    return glow_requant((int32_t)acc, scale, zp, lo, hi);
  }
#endif
  return glow_round_clamp(glow_rounded((float)acc) * scale, zp, lo, hi);
}

GLOW_INLINE int64_t glow_total16(const int16_t *x, int32_t step, int32_t n) {
  int64_t sum = 0;
  for (int32_t k = 0; k < n; k++) {
    sum += x[k * step];
  }
  return sum;
}

#endif
