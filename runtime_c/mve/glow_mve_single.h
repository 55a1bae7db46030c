/* SPDX-License-Identifier: MIT-0 */
/* The product of two rows of bytes, for outputs that fill no group (Helium). */
#ifndef GLOW_MVE_SINGLE_H
#define GLOW_MVE_SINGLE_H

#include "glow_mve_dot.h"
#include "glow_mve_zero.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
GLOW_INLINE int32_t glow_mve_dot_s8(const int8_t *a, const int8_t *b, int32_t n) {
  int32_t sum = 0;
  for (; n > 0; n -= 16, a += 16, b += 16) {
    const mve_pred16_t lanes = vctp8q((uint32_t)n);
    sum = vmladavaq_p_s8(sum, vldrbq_z_s8(a, lanes), vldrbq_z_s8(b, lanes), lanes);
  }
  return sum;
}

GLOW_INLINE int32_t glow_mve_sum_s8(const int8_t *a, int32_t n) {
  int32_t sum = 0;
  for (; n > 0; n -= 16, a += 16) {
    const mve_pred16_t lanes = vctp8q((uint32_t)n);
    sum = vaddvaq_p_s8(sum, vldrbq_z_s8(a, lanes), lanes);
  }
  return sum;
}
#endif

#endif
