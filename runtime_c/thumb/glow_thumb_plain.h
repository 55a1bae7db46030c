/* SPDX-License-Identifier: MIT-0 */
/* The inner loops of the int8 kernels for cores without SIMD in plain C, where no header of a core brought its own. */
#ifndef GLOW_THUMB_PLAIN_H
#define GLOW_THUMB_PLAIN_H

#include "glow_thumb_base.h"

#if !defined(GLOW_THUMB_SPAN)

#define GLOW_THUMB_ROUNDS
#define GLOW_THUMB_SPAN 0x0F800000u /* from 2^-32 up to the bits of 0.5 */

GLOW_INLINE int32_t glow_thumb_sat8(int32_t x) {
  return glow_clamp(x, -128, 127);
}

#define GLOW_THUMB_SAT8_ASR(x, shift) glow_thumb_sat8((x) >> (shift))

GLOW_INLINE int glow_thumb_rounds(int32_t *const *sums, int32_t n, int32_t factor, uint32_t near_tie, int32_t zp) {
  int good = 1;
  for (int32_t i = 0; i < n; i++) {
    const int64_t product = (int64_t)*sums[i] * factor;
    const uint32_t fraction = (uint32_t)((uint64_t)product & 0xFFFFFFFFu);
    const int32_t whole = (int32_t)(product >> 32); /* of two's complement: rounds down */
    good &= fraction + near_tie + 0x80000000u >= 2u * near_tie;
    *sums[i] = glow_clamp(whole + (int32_t)(fraction >> 31) + zp, -128, 127);
  }
  return good;
}

#include "glow_thumb_rounds.h"

GLOW_INLINE const int8_t *glow_thumb_dot4(glow_thumb_sums_t *a, const uint32_t *x, const int8_t *w, int32_t k) {
  for (; k > 0; k -= 2, x += 4, w += 2) {
    const uint32_t first = (uint32_t)(int32_t)w[0];
    uint32_t word[2] = {GLOW_THUMB_APART + x[0] * first, GLOW_THUMB_APART + x[1] * first};
    if (k == 1) {
      glow_thumb_grow(a, word);
      return w + 1;
    }
    const uint32_t second = (uint32_t)(int32_t)w[1];
    word[0] += x[2] * second;
    word[1] += x[3] * second;
    glow_thumb_grow(a, word);
  }
  return w;
}

GLOW_INLINE void glow_thumb_fc8(int32_t *sum, const int8_t *x, const int8_t *w, int32_t k) {
  for (; k > 0; k--, x++) {
    for (int32_t i = 0; i < GLOW_THUMB_FC; i++) {
      sum[i] += *x * *w++;
    }
  }
}

#endif

#endif
