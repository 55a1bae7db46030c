/* SPDX-License-Identifier: MIT-0 */
/* Products of a vector of codes with four rows of weights by VMLADAVA (as of glow_rows.h), eight codes at a time as int16. */
#ifndef GLOW_MVE_ROWS_H
#define GLOW_MVE_ROWS_H

#include "glow_mve.h"
#include "glow_q15.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_rows_s8(const int8_t *x, int32_t zp, const int8_t *w, int32_t stride, int32_t n,
                                                      int32_t *sums) {
  const int32_t blocks = n / 8 * 8;
  for (int32_t k = 0; k < 4; k += 2, w += 2 * stride) {
    int32_t first = sums[k];
    int32_t second = sums[k + 1];
    for (int32_t i = 0; i < blocks; i += 8) {
      const int16x8_t codes = vsubq_n_s16(vldrbq_s16(x + i), (int16_t)zp);
      first = vmladavaq_s16(first, codes, vldrbq_s16(w + i));
      second = vmladavaq_s16(second, codes, vldrbq_s16(w + stride + i));
    }
    if (blocks < n) {
      const mve_pred16_t some = vctp16q((uint32_t)(n - blocks));
      const int16x8_t codes = vsubq_n_s16(vldrbq_z_s16(x + blocks, some), (int16_t)zp);
      first = vmladavaq_s16(first, codes, vldrbq_z_s16(w + blocks, some));
      second = vmladavaq_s16(second, codes, vldrbq_z_s16(w + stride + blocks, some));
    }
    sums[k] = first;
    sums[k + 1] = second;
  }
}
#endif

#endif
