/* SPDX-License-Identifier: MIT-0 */
/* Products of rows of int16 by VMLALDAVA (MVE), eight at a time. */
#ifndef GLOW_MVE_PRODUCTS_H
#define GLOW_MVE_PRODUCTS_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"
#include "glow_products.h"

/* sums[i] = sum x[k] * rows[i * pitch + k], i < 2 */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_two_dots16(const int16_t *x, const int16_t *rows, int32_t pitch, int32_t n,
                                                     int64_t *sums) {
  const int16_t *other = rows + pitch;
  int64_t first = 0;
  int64_t second = 0;
  const int32_t blocks = n / 8 * 8;
  for (const int16_t *const end = x + blocks; x != end; x += 8, rows += 8, other += 8) {
    const int16x8_t eight = vldrhq_s16(x);
    first = vmlaldavaq_s16(first, eight, vldrhq_s16(rows));
    second = vmlaldavaq_s16(second, eight, vldrhq_s16(other));
  }
  if (blocks < n) {
    const mve_pred16_t some = vctp16q((uint32_t)(n - blocks));
    const int16x8_t rest = vldrhq_z_s16(x, some);
    first = vmlaldavaq_s16(first, rest, vldrhq_z_s16(rows, some));
    second = vmlaldavaq_s16(second, rest, vldrhq_z_s16(other, some));
  }
  sums[0] = first;
  sums[1] = second;
}
#endif

#endif
