/* SPDX-License-Identifier: MIT-0 */
/* Products of a vector of codes with four rows of weights by VMLADAVA (as of glow_rows.h), eight codes at a time as int16. */
#ifndef GLOW_MVE_ROWS_H
#define GLOW_MVE_ROWS_H

#include "glow_mve.h"
#include "glow_q15.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_rows_s8(const int8_t *x, int32_t zp, const int8_t *w, int32_t stride, int32_t n,
                                                      int32_t *sums) {
  const int8_t *row0 = w;
  const int8_t *row1 = row0 + stride;
  const int8_t *row2 = row1 + stride;
  const int8_t *row3 = row2 + stride;
  int32_t sum0 = sums[0];
  int32_t sum1 = sums[1];
  int32_t sum2 = sums[2];
  int32_t sum3 = sums[3];
  for (; n >= 8; n -= 8, x += 8, row0 += 8, row1 += 8, row2 += 8, row3 += 8) {
    const int16x8_t codes = vsubq_n_s16(vldrbq_s16(x), (int16_t)zp);
    sum0 = vmladavaq_s16(sum0, codes, vldrbq_s16(row0));
    sum1 = vmladavaq_s16(sum1, codes, vldrbq_s16(row1));
    sum2 = vmladavaq_s16(sum2, codes, vldrbq_s16(row2));
    sum3 = vmladavaq_s16(sum3, codes, vldrbq_s16(row3));
  }
  if (n > 0) {
    const mve_pred16_t some = vctp16q((uint32_t)n);
    const int16x8_t codes = vsubq_n_s16(vldrbq_z_s16(x, some), (int16_t)zp);
    sum0 = vmladavaq_s16(sum0, codes, vldrbq_z_s16(row0, some));
    sum1 = vmladavaq_s16(sum1, codes, vldrbq_z_s16(row1, some));
    sum2 = vmladavaq_s16(sum2, codes, vldrbq_z_s16(row2, some));
    sum3 = vmladavaq_s16(sum3, codes, vldrbq_z_s16(row3, some));
  }
  sums[0] = sum0;
  sums[1] = sum1;
  sums[2] = sum2;
  sums[3] = sum3;
}
#endif

#endif
