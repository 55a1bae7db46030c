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

/* The ending of a channel, in the order in which glow_thumb_q31 reads it: the halves of the multiplier, what is added to a
 * negative number and to each before it is shifted right, that shift, and the zero point. `left`: doublings of sums. */
typedef struct {
  int32_t high, low, negative, half, right, zp, mul;
  uint32_t left;
} glow_thumb_q31_t;
GLOW_AT(glow_thumb_q31_t, high, 0); GLOW_AT(glow_thumb_q31_t, low, 4); GLOW_AT(glow_thumb_q31_t, negative, 8);
GLOW_AT(glow_thumb_q31_t, half, 12); GLOW_AT(glow_thumb_q31_t, right, 16); GLOW_AT(glow_thumb_q31_t, zp, 20);

/* Of channel o. Sums of more doublings saturate alike. */
GLOW_INLINE glow_thumb_q31_t glow_thumb_q31_of(const glow_thumb_shift_t *s, int32_t o, int32_t zp) {
  const int32_t mul = s->mul[o];
  const int32_t right = s->shifts[o] < 0 ? -s->shifts[o] : 0;
  const uint32_t left = s->shifts[o] > 0 ? (uint32_t)glow_clamp(s->shifts[o], 0, 12) : 0u;
  const int32_t half = right > 0 ? (int32_t)(1u << (right - 1)) : 0;
  const glow_thumb_q31_t q = {mul >> 16, mul & 0xFFFF, right > 0 ? -1 : 0, half, right, zp, mul, left};
  return q;
}

/* glow_q31_code to int8 of a sum below 2^24 in magnitude, after its doublings. */
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
          "ldr %[u], [%[s], #8]\n\t"
          "ands %[t], %[t], %[u]\n\t"
          "adds %[sum], %[sum], %[t]\n\t"
          "ldr %[u], [%[s], #12]\n\t"
          "adds %[sum], %[sum], %[u]\n\t"
          "ldr %[u], [%[s], #16]\n\t"
          "asrs %[sum], %[sum], %[u]\n\t"
          "ldr %[u], [%[s], #20]\n\t"
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
#else
  const int64_t twice = (int64_t)(2 * sum) * s->mul;
  const int32_t high = (int32_t)(twice >> 32) + (int32_t)((uint32_t)((uint64_t)twice & 0xFFFFFFFFu) >> 31); /* glow_q31_high */
  return glow_clamp(((high + s->half + ((high >> 31) & s->negative)) >> s->right) + s->zp, -128, 127);
#endif
}

#if defined(__thumb2__)
#include "glow_m3.h"
#else
#include "glow_m0.h"
#endif

#endif
