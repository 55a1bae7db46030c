/* SPDX-License-Identifier: MIT-0 */
/* Attention to caches of int8 codes in integers: a query becomes codes of 16 bits in units of its largest magnitude / 32767;
 * its products with rows are exact, and exp(scale * (product - the largest)) is a share of 16 bits of the row's values.
 *
 * exp is 2^-(n + f) of a distance in units of 2^-16, by 64 lines for f: within 3e-5 of the largest share, and 0 beyond 2^-16. A
 * distance is product * rate / 2^(32 - shift), and a rate is at most 2^32 - 256: a larger one only tells apart products that are
 * nearer to each other than the rounding of the keys to codes lets them be. */
#ifndef GLOW_SHARES_H
#define GLOW_SHARES_H

#include <math.h>

#include "glow_runtime.h"

#define GLOW_SHARES_ROWS 128 /* that are looked at together */
#define GLOW_SHARES_PITCH (GLOW_SHARES_ROWS + 2)
#define GLOW_SHARES_TOP 32767.0f
#define GLOW_SHARES_ONE 0x7FFEA7C2u /* the power of 0 */
#define GLOW_SHARES_FARTHEST 0xFFFFF /* 2^-16 */

/* Of one head: the largest product so far, what products are multiplied by, the sum of shares so far, and 0, or NaN where the
 * query has one. */
typedef struct {
  int32_t top;
  uint32_t rate;
  float total, none;
} glow_shares_t;

/* Lines of 2^-f: 16 bits of the value at f = 0, in units of 2^-15, then 16 bits of what is added for each step of f, in units of
 * 2^-31; from f = 1/2 on steps are counted from f = 1. */
static const uint32_t glow_shares_lines[64] = {
    0x7FFEA7C2u, 0x7FFAA8B6u, 0x7FF2A9A7u, 0x7FE7AA95u, 0x7FD9AB80u, 0x7FC6AC69u, 0x7FB1AD50u, 0x7F98AE34u,
    0x7F7CAF15u, 0x7F5CAFF4u, 0x7F3AB0D1u, 0x7F14B1ACu, 0x7EECB284u, 0x7EC0B359u, 0x7E92B42Du, 0x7E61B4FEu,
    0x7E2DB5CDu, 0x7DF7B699u, 0x7DBEB764u, 0x7D82B82Cu, 0x7D45B8F2u, 0x7D04B9B6u, 0x7CC2BA78u, 0x7C7DBB37u,
    0x7C36BBF5u, 0x7BECBCB1u, 0x7BA1BD6Au, 0x7B53BE22u, 0x7B04BED8u, 0x7AB3BF8Bu, 0x7A5FC03Du, 0x7A0AC0EDu,
    0x3B4EC19Bu, 0x3BA1C247u, 0x3BF1C2F1u, 0x3C3DC399u, 0x3C86C440u, 0x3CCCC4E5u, 0x3D0EC588u, 0x3D4DC629u,
    0x3D89C6C9u, 0x3DC1C766u, 0x3DF7C802u, 0x3E2AC89Du, 0x3E5AC936u, 0x3E86C9CDu, 0x3EB0CA62u, 0x3ED8CAF6u,
    0x3EFCCB88u, 0x3F1ECC19u, 0x3F3DCCA8u, 0x3F5ACD36u, 0x3F75CDC2u, 0x3F8CCE4Cu, 0x3FA2CED5u, 0x3FB5CF5Du,
    0x3FC6CFE3u, 0x3FD4D068u, 0x3FE0D0EBu, 0x3FEBD16Du, 0x3FF3D1EDu, 0x3FF8D26Cu, 0x3FFCD2EAu, 0x3FFED366u,
};

/* 2^-(distance / 2^16) in units of 2^-31. */
GLOW_INLINE uint32_t glow_shares_power(uint32_t distance) {
  const uint32_t line = glow_shares_lines[(distance >> 10) & 63u];
  const int32_t step = (int32_t)((line & 0xFFFFu) ^ 0x8000u) - 0x8000;
  const int32_t steps = (int32_t)((distance & 0xFFFFu) ^ 0x8000u) - 0x8000;
  return (line + (uint32_t)(step * steps)) >> (distance >> 16);
}

/* The distance of what a product is less than the largest, times 2^shift. */
GLOW_INLINE uint32_t glow_shares_distance(uint32_t less, uint32_t rate) {
  const uint32_t distance = (uint32_t)(((uint64_t)less * rate) >> 32);
  return distance < GLOW_SHARES_FARTHEST ? distance : GLOW_SHARES_FARTHEST;
}

/* What sums so far are multiplied by for a power. */
GLOW_INLINE float glow_shares_less(uint32_t power) { return (float)power * (1.0f / (float)GLOW_SHARES_ONE); }

/* Writes codes of n elements, n a multiple of 4; `paired`: those of each four in the order 0, 2, 1, 3. */
GLOW_HOT __attribute__((unused, noinline)) static void glow_shares_begin(glow_shares_t *head, int16_t *codes, const float *q,
                                                                        int32_t n, int32_t paired, float scale) {
  float max = 1e-30f;
  float none = 0.0f;
  for (int32_t i = 0; i < n; i++) {
    const float v = fabsf(q[i]);
    max = v > max ? v : max;
    none += v * 0.0f;
  }
  const float per_unit = GLOW_SHARES_TOP / max;
  const int32_t known = none == 0.0f;
  for (int32_t i = 0; i < n; i++) {
    const int32_t from = paired ? (i & -4) | (i & 1) << 1 | (i >> 1 & 1) : i;
    codes[i] = (int16_t)(known ? (int32_t)(q[from] * per_unit + 32768.5f) - 32768 : 0);
  }
  const float rate = max * scale;
  head->rate = rate < 4294967040.0f ? (uint32_t)rate : 0xFFFFFF00u;
  head->top = -0x40000000;
  head->total = 0.0f;
  head->none = none;
}

#endif
