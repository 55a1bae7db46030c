/* SPDX-License-Identifier: MIT-0 */
/* How kernels for cores without SIMD end as TensorFlow Lite does: exactly, for sums below 2^24 in magnitude. Its name makes it
 * the first of their headers, which then know this ending. */
#ifndef GLOW_FIXED_THUMB_H
#define GLOW_FIXED_THUMB_H

#if defined(GLOW_THUMB_BASE_H)
#error "include glow_fixed_thumb.h before other headers of these kernels"
#endif
#include "glow_q31.h"
#include "glow_thumb_base.h"

/* Whether a layer ends so. */
GLOW_INLINE int glow_thumb_is_q31(const glow_thumb_shift_t *s) { return s != NULL && s->shifts != NULL; }

/* The ending of a channel whose sums are shifted right, in the order in which glow_thumb_q31 reads it: the halves of the
 * multiplier, half of what the shift cuts off, that shift, and the zero point. */
typedef struct {
  int32_t high, low, half, right, zp, mul;
} glow_thumb_q31_t;
GLOW_AT(glow_thumb_q31_t, high, 0); GLOW_AT(glow_thumb_q31_t, low, 4); GLOW_AT(glow_thumb_q31_t, half, 8);
GLOW_AT(glow_thumb_q31_t, right, 12); GLOW_AT(glow_thumb_q31_t, zp, 16);

GLOW_INLINE glow_thumb_q31_t glow_thumb_q31_of(int32_t mul, int32_t right, int32_t zp) {
  const glow_thumb_q31_t q = {mul >> 16, mul & 0xFFFF, (int32_t)((1u << right) >> 1), right, zp, mul};
  return q;
}

/* glow_q31_code to int8 of a sum below 2^24 in magnitude. */
GLOW_THUMB_INLINE int32_t glow_thumb_q31(int32_t sum, const glow_thumb_q31_t *s) {
#if GLOW_THUMB_ASM && !defined(__thumb2__)
  int32_t low;
  int32_t t;
  int32_t u;
  int32_t f;
  __asm__(".syntax unified\n\t"
          "sxth %[low], %[sum]\n\t"
          "subs %[sum], %[sum], %[low]\n\t"
          "asrs %[sum], %[sum], #16\n\t"
          "ldr %[f], [%[s], #4]\n\t"
          "movs %[t], %[low]\n\t"
          "muls %[t], %[f], %[t]\n\t"
          "movs %[u], %[sum]\n\t"
          "muls %[u], %[f], %[u]\n\t"
          "ldr %[f], [%[s]]\n\t"
          "muls %[low], %[f], %[low]\n\t"
          "adds %[low], %[low], %[u]\n\t" /* what counts in 2^16 */
          "muls %[sum], %[f], %[sum]\n\t"
          "asrs %[u], %[t], #31\n\t"
          "adds %[sum], %[sum], %[u]\n\t"
          "lsls %[u], %[low], #16\n\t"
          "asrs %[low], %[low], #16\n\t"
          "adds %[t], %[t], %[u]\n\t" /* the lower word, and a carry */
          "adcs %[sum], %[sum], %[low]\n\t"
          "movs %[u], #1\n\t"
          "lsls %[u], %[u], #30\n\t"
          "movs %[f], #0\n\t"
          "adds %[t], %[t], %[u]\n\t"
          "adcs %[sum], %[sum], %[f]\n\t"
          "lsls %[t], %[t], #1\n\t"
          "adcs %[sum], %[sum], %[sum]\n\t" /* glow_q31_high */
          "asrs %[t], %[sum], #31\n\t"
          "adds %[sum], %[sum], %[t]\n\t"
          "ldr %[u], [%[s], #8]\n\t"
          "adds %[sum], %[sum], %[u]\n\t"
          "ldr %[u], [%[s], #12]\n\t"
          "asrs %[sum], %[sum], %[u]\n\t"
          "ldr %[u], [%[s], #16]\n\t"
          "adds %[sum], %[sum], %[u]\n\t"
          "sxtb %[t], %[sum]\n\t"
          "cmp %[t], %[sum]\n\t"
          "beq 1f\n\t"
          "asrs %[sum], %[sum], #31\n\t"
          "movs %[t], #127\n\t"
          "eors %[sum], %[sum], %[t]\n"
          "1:\n\t"
          : [sum] "+l"(sum), [low] "=&l"(low), [t] "=&l"(t), [u] "=&l"(u), [f] "=&l"(f)
          : [s] "l"(s), "m"(*s)
          : "cc");
  return sum;
#elif GLOW_THUMB_ASM
  int32_t t;
  __asm__("lsl %[sum], %[sum], #1\n\t"
          "smull %[t], %[sum], %[sum], %[mul]\n\t"
          "add %[sum], %[sum], %[t], lsr #31\n\t" /* glow_q31_high */
          "add %[t], %[half], %[sum], asr #31\n\t"
          "add %[sum], %[sum], %[t]\n\t"
          "asr %[sum], %[sum], %[right]\n\t"
          "add %[sum], %[sum], %[zp]\n\t"
          "ssat %[sum], #8, %[sum]\n\t"
          : [sum] "+r"(sum), [t] "=&r"(t)
          : [mul] "r"(s->mul), [half] "r"(s->half), [right] "r"(s->right), [zp] "r"(s->zp)
          : "cc");
  return sum;
#else
  const int64_t twice = (int64_t)(2 * sum) * s->mul;
  const int32_t high = (int32_t)(twice >> 32) + (int32_t)((uint32_t)((uint64_t)twice & 0xFFFFFFFFu) >> 31); /* glow_q31_high */
  return glow_clamp(((high + s->half + (high >> 31)) >> s->right) + s->zp, -128, 127);
#endif
}

#if defined(__thumb2__)
#include "glow_m3.h"
#else
#include "glow_m0.h"
#endif

#endif
