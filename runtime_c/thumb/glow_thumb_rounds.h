/* SPDX-License-Identifier: MIT-0 */
/* glow_thumb_roundN: glow_requant to int8 of N sums in place; 0: a sum's fraction is within `near_tie` of a tie, and
 * nothing is of use. By glow_thumb_rounds, where the header
 * that includes this one brings it and defines GLOW_THUMB_ROUNDS. */
#ifndef GLOW_THUMB_ROUNDS_H
#define GLOW_THUMB_ROUNDS_H

#include "glow_numeric.h"

#if defined(GLOW_THUMB_ROUNDS)
GLOW_INLINE int glow_thumb_round1(int32_t *a, int32_t factor, uint32_t near_tie, int32_t zp) {
  int32_t *const sums[] = {a};
  return glow_thumb_rounds(sums, 1, factor, near_tie, zp);
}

GLOW_INLINE int glow_thumb_round2(int32_t *a, int32_t *b, int32_t factor, uint32_t near_tie, int32_t zp) {
  int32_t *const sums[] = {a, b};
  return glow_thumb_rounds(sums, 2, factor, near_tie, zp);
}

GLOW_INLINE int glow_thumb_round3(int32_t *a, int32_t *b, int32_t *c, int32_t factor, uint32_t near_tie, int32_t zp) {
  int32_t *const sums[] = {a, b, c};
  return glow_thumb_rounds(sums, 3, factor, near_tie, zp);
}

GLOW_INLINE int glow_thumb_round4(int32_t *a, int32_t *b, int32_t *c, int32_t *d, int32_t factor,
                                    uint32_t near_tie, int32_t zp) {
  int32_t *const sums[] = {a, b, c, d};
  return glow_thumb_rounds(sums, 4, factor, near_tie, zp);
}

GLOW_INLINE int glow_thumb_round5(int32_t *a, int32_t *b, int32_t *c, int32_t *d, int32_t *e, int32_t factor,
                                    uint32_t near_tie, int32_t zp) {
  int32_t *const sums[] = {a, b, c, d, e};
  return glow_thumb_rounds(sums, 5, factor, near_tie, zp);
}
#endif

#endif
