/* SPDX-License-Identifier: MIT-0 */
/* What the int8 kernels for cores without SIMD share, whatever the instruction set. */
#ifndef GLOW_THUMB_BASE_H
#define GLOW_THUMB_BASE_H

#include "glow_numeric.h"
#include "glow_runtime.h"

#if defined(__clang__)
#define GLOW_THUMB_INLINE GLOW_INLINE __attribute__((always_inline))
#define GLOW_THUMB_NOINLINE __attribute__((unused, noinline))
#elif defined(__GNUC__)
#define GLOW_THUMB_INLINE GLOW_INLINE __attribute__((always_inline))
#define GLOW_THUMB_NOINLINE __attribute__((unused, noinline, noclone))
#else
#define GLOW_THUMB_INLINE GLOW_INLINE
#define GLOW_THUMB_NOINLINE
#endif

#if defined(__GNUC__) && defined(__thumb__) && !defined(GLOW_NO_ASM)
#define GLOW_THUMB_ASM 1
#else
#define GLOW_THUMB_ASM 0
#endif

/* Of layers that end in multipliers and shifts: what the definition needs where the product with a scale may not be
 * enough (kernels/thumb/fold.py). Those of TensorFlow Lite (glow_fixed_thumb.h) have shifts of their own. */
typedef struct {
  const int32_t *mul;
  const int64_t *rest;
  int32_t shift;
  const int8_t *shifts;
} glow_thumb_shift_t;

/* The code of channel o by the definition: clamp((sum * mul + rest) >> shift), or, without `shift`, glow_requant. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_slow(int32_t sum, const float *scale, const glow_thumb_shift_t *shift,
                                                   int32_t o, int32_t zp) {
  if (shift == NULL) {
    return glow_requant(sum, *scale, zp, -128, 127);
  }
#if defined(GLOW_FIXED_THUMB_H)
  if (shift->shifts != NULL) {
    return glow_q31_code(sum, shift->mul[o], shift->shifts[o], zp, -128, 127);
  }
#endif
  const int64_t code = (((int64_t)sum * shift->mul[o] + shift->rest[o]) >> shift->shift) + zp;
  return code < -128 ? -128 : (code > 127 ? 127 : (int32_t)code);
}

#define GLOW_THUMB_LEAST 0x2F800000u /* bits of 2^-32 */

/* The bits of a float32 scale in [2^-32, 0.5) as a factor of 2^-32, rounded down. */
GLOW_INLINE int32_t glow_thumb_factor(uint32_t bits) {
  return (int32_t)((bits << 8 | 0x80000000u) >> (126u - (bits >> 23)));
}

/* How often a scale of 1/4 to 256 is halved to be less; 0: another scale. */
GLOW_INLINE uint32_t glow_thumb_halvings(uint32_t bits) {
  return bits - 0x3E800000u < 0x05000000u ? (bits >> 23) - 124u : 0u;
}

/* Halves the scale as often. */
GLOW_INLINE uint32_t glow_thumb_halved(uint32_t *bits) {
  const uint32_t times = glow_thumb_halvings(*bits);
  *bits -= times << 23;
  return times;
}

/* What a sum is by the scale that is left: doubled as often. Sums whose codes are above 512 saturate alike. */
GLOW_INLINE int32_t glow_thumb_doubled(int32_t sum, uint32_t times) {
  const int32_t most = 4096 >> times;
  return glow_clamp(sum, -most, most) * ((int32_t)1 << times);
}

/* Sums of two words, two pixels each; see glow_thumb.h. */
typedef struct {
  uint32_t low0, low1, high0, high1;
} glow_thumb_sums_t;

#define GLOW_THUMB_APART 0xFF007F80u /* 32640 - 256 * 65536 */

/* Add a word to the sums of each pair of pixels. */
GLOW_INLINE void glow_thumb_grow(glow_thumb_sums_t *a, const uint32_t word[2]) {
  a->low0 += word[0];
  a->high0 += (word[0] >> 16) - ((word[0] & 0x80000000u) >> 15);
  a->low1 += word[1];
  a->high1 += (word[1] >> 16) - ((word[1] & 0x80000000u) >> 15);
}

#define GLOW_THUMB_FC 8 /* outputs of a fully connected layer whose weights alternate */

#endif
