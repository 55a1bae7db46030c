/* SPDX-License-Identifier: MIT-0 */
/* Integer kernels' building blocks for Armv6-M cores (Cortex-M0, M0+): no long products, eight low registers. */
#ifndef GLOW_M0_H
#define GLOW_M0_H

#include "glow_thumb_base.h"

#if !GLOW_THUMB_ASM || !defined(__thumb2__)
#if GLOW_THUMB_ASM

#define GLOW_THUMB_SPAN 0x0F000001u /* from 2^-32 to the bits of 0.25: the products below fit 32 bits */
#define GLOW_M0_NEAR 0x40000000 /* no code: a sum near a tie */

GLOW_INLINE int32_t glow_thumb_sat8(int32_t x) {
  return glow_clamp(x, -128, 127);
}

#define GLOW_THUMB_SAT8_ASR(x, shift) glow_thumb_sat8((x) >> (shift))

/* What glow_m0_round scales by, in the order that it reads: the halves of the factor, the distance from a tie. */
typedef struct {
  uint32_t high, low;
  uint32_t near_tie; /* + 2^31 */
  uint32_t width;
  int32_t zp;
} glow_m0_scale_t;
GLOW_AT(glow_m0_scale_t, high, 0); GLOW_AT(glow_m0_scale_t, low, 4); GLOW_AT(glow_m0_scale_t, near_tie, 8);
GLOW_AT(glow_m0_scale_t, width, 12); GLOW_AT(glow_m0_scale_t, zp, 16);

/* The code of a sum below 2^24 in magnitude, by four products of halfwords; GLOW_M0_NEAR: near a tie. */
GLOW_THUMB_INLINE int32_t glow_m0_round(int32_t sum, const glow_m0_scale_t *s) {
  uint32_t low;
  uint32_t t;
  uint32_t u;
  uint32_t f;
  __asm__(".syntax unified\n\t"
          "uxth %[low], %[sum]\n\t"
          "asrs %[sum], %[sum], #16\n\t"
          "ldr %[f], [%[s], #4]\n\t"
          "movs %[t], %[low]\n\t"
          "muls %[t], %[f], %[t]\n\t"
          "movs %[u], %[sum]\n\t"
          "muls %[u], %[f], %[u]\n\t"
          "ldr %[f], [%[s]]\n\t"
          "muls %[low], %[f], %[low]\n\t"
          "adds %[low], %[low], %[u]\n\t" /* what counts in 2^-16 */
          "muls %[sum], %[f], %[sum]\n\t"
          "lsls %[u], %[low], #16\n\t"
          "asrs %[low], %[low], #16\n\t"
          "adds %[t], %[t], %[u]\n\t" /* the fraction, and a carry */
          "adcs %[sum], %[sum], %[low]\n\t"
          "ldr %[u], [%[s], #8]\n\t"
          "adds %[u], %[u], %[t]\n\t"
          "ldr %[f], [%[s], #12]\n\t"
          "cmp %[u], %[f]\n\t"
          "bhs 1f\n\t"
          "movs %[sum], #1\n\t"
          "lsls %[sum], %[sum], #30\n\t"
          "b 2f\n"
          "1:\n\t"
          "ldr %[u], [%[s], #16]\n\t"
          "lsls %[t], %[t], #1\n\t"
          "adcs %[sum], %[sum], %[u]\n\t"
          "sxtb %[t], %[sum]\n\t"
          "cmp %[t], %[sum]\n\t"
          "beq 2f\n\t"
          "asrs %[sum], %[sum], #31\n\t"
          "movs %[t], #127\n\t"
          "eors %[sum], %[sum], %[t]\n"
          "2:\n\t"
          : [sum] "+l"(sum), [low] "=&l"(low), [t] "=&l"(t), [u] "=&l"(u), [f] "=&l"(f)
          : [s] "l"(s), "m"(*s)
          : "cc");
  return sum;
}

GLOW_INLINE glow_m0_scale_t glow_m0_scale(int32_t factor, uint32_t near_tie, int32_t zp) {
  const uint32_t halves[2] = {(uint32_t)factor >> 16, (uint32_t)factor & 0xFFFFu};
  const glow_m0_scale_t s = {halves[0], halves[1], near_tie + 0x80000000u, 2u * near_tie, zp};
  return s;
}

/* glow_thumb_roundN: glow_requant to int8 of N sums in place; 0: a sum is near a tie, and nothing is of use. */
GLOW_INLINE int glow_thumb_round1(int32_t *a, int32_t factor, uint32_t near_tie, int32_t zp) {
  const glow_m0_scale_t s = glow_m0_scale(factor, near_tie, zp);
  *a = glow_m0_round(*a, &s);
  return *a != GLOW_M0_NEAR;
}

GLOW_INLINE int glow_thumb_round2(int32_t *a, int32_t *b, int32_t factor, uint32_t near_tie, int32_t zp) {
  const glow_m0_scale_t s = glow_m0_scale(factor, near_tie, zp);
  *a = glow_m0_round(*a, &s);
  *b = glow_m0_round(*b, &s);
  return *a != GLOW_M0_NEAR && *b != GLOW_M0_NEAR;
}

GLOW_INLINE int glow_thumb_round3(int32_t *a, int32_t *b, int32_t *c, int32_t factor, uint32_t near_tie, int32_t zp) {
  const glow_m0_scale_t s = glow_m0_scale(factor, near_tie, zp);
  *a = glow_m0_round(*a, &s);
  *b = glow_m0_round(*b, &s);
  *c = glow_m0_round(*c, &s);
  return *a != GLOW_M0_NEAR && *b != GLOW_M0_NEAR && *c != GLOW_M0_NEAR;
}

GLOW_INLINE int glow_thumb_round4(int32_t *a, int32_t *b, int32_t *c, int32_t *d, int32_t factor,
                                    uint32_t near_tie, int32_t zp) {
  const glow_m0_scale_t s = glow_m0_scale(factor, near_tie, zp);
  *a = glow_m0_round(*a, &s);
  *b = glow_m0_round(*b, &s);
  *c = glow_m0_round(*c, &s);
  *d = glow_m0_round(*d, &s);
  return *a != GLOW_M0_NEAR && *b != GLOW_M0_NEAR && *c != GLOW_M0_NEAR && *d != GLOW_M0_NEAR;
}

GLOW_INLINE int glow_thumb_round5(int32_t *a, int32_t *b, int32_t *c, int32_t *d, int32_t *e, int32_t factor,
                                    uint32_t near_tie, int32_t zp) {
  const glow_m0_scale_t s = glow_m0_scale(factor, near_tie, zp);
  *a = glow_m0_round(*a, &s);
  *b = glow_m0_round(*b, &s);
  *c = glow_m0_round(*c, &s);
  *d = glow_m0_round(*d, &s);
  *e = glow_m0_round(*e, &s);
  return *a != GLOW_M0_NEAR && *b != GLOW_M0_NEAR && *c != GLOW_M0_NEAR && *d != GLOW_M0_NEAR && *e != GLOW_M0_NEAR;
}

#define GLOW_M0_PAIR(at, next) \
  "ldmia r0!, {r2, r3, r4, r5}\n\t" \
  "ldrb r6, [r1, #" at "]\n\t" \
  "sxtb r6, r6\n\t" \
  "muls r2, r6, r2\n\t" "muls r3, r6, r3\n\t" \
  "ldrb r6, [r1, #" next "]\n\t" \
  "sxtb r6, r6\n\t" \
  "muls r4, r6, r4\n\t" "muls r5, r6, r5\n\t" \
  "adds r2, r2, r4\n\t" "adds r3, r3, r5\n\t" \
  "add r2, lr\n\t" "add r3, lr\n\t" "add r8, r2\n\t" "add r9, r3\n\t" \
  "asrs r2, r2, #16\n\t" "asrs r3, r3, #16\n\t" \
  "add r10, r2\n\t" "add r11, r3\n\t"

/* What the loop of glow_thumb_dot4 works on, in the order that it reads. */
typedef struct {
  glow_thumb_sums_t sums;
  uint32_t apart;
  const int8_t *end8; /* of whole groups of eight weights */
  const int8_t *end2; /* of pairs */
  const uint32_t *x;
  const int8_t *w;
} glow_m0_dot_t;
GLOW_AT(glow_thumb_sums_t, low0, 0); GLOW_AT(glow_thumb_sums_t, low1, 4); GLOW_AT(glow_thumb_sums_t, high0, 8);
GLOW_AT(glow_thumb_sums_t, high1, 12); GLOW_AT(glow_m0_dot_t, sums, 0); GLOW_AT(glow_m0_dot_t, apart, 16);
GLOW_AT(glow_m0_dot_t, end8, 20); GLOW_AT(glow_m0_dot_t, end2, 24); GLOW_AT(glow_m0_dot_t, x, 28);
GLOW_AT(glow_m0_dot_t, w, 32);

/* Four pixels times k weights; returns the end of the weights. */
GLOW_THUMB_INLINE const int8_t *glow_thumb_dot4(glow_thumb_sums_t *a, const uint32_t *x, const int8_t *w, int32_t k) {
  glow_m0_dot_t d = {*a, GLOW_THUMB_APART, w + (k & ~7), w + (k & ~1), x, w};
  register glow_m0_dot_t *s __asm__("r0") = &d;
  __asm__ volatile(".syntax unified\n\t"
                   "push {r0}\n\t"
                   "ldmia r0!, {r2, r3, r4, r5, r6}\n\t"
                   "mov r8, r2\n\t" "mov r9, r3\n\t" "mov r10, r4\n\t" "mov r11, r5\n\t" "mov lr, r6\n\t"
                   "ldmia r0!, {r2, r3, r4, r5}\n\t"
                   "mov r12, r2\n\t"
                   "push {r3}\n\t"
                   "movs r0, r4\n\t" "movs r1, r5\n\t"
                   "cmp r1, r12\n\t"
                   "beq 2f\n"
                   "1:\n\t" GLOW_M0_PAIR("0", "1") GLOW_M0_PAIR("2", "3") GLOW_M0_PAIR("4", "5") GLOW_M0_PAIR("6", "7")
                   "adds r1, r1, #8\n\t"
                   "cmp r1, r12\n\t"
                   "bne 1b\n"
                   "2:\n\t"
                   "pop {r2}\n\t"
                   "mov r12, r2\n\t"
                   "cmp r1, r12\n\t"
                   "beq 4f\n"
                   "3:\n\t" GLOW_M0_PAIR("0", "1") "adds r1, r1, #2\n\t"
                   "cmp r1, r12\n\t"
                   "bne 3b\n"
                   "4:\n\t"
                   "pop {r6}\n\t"
                   "mov r2, r8\n\t" "mov r3, r9\n\t" "mov r4, r10\n\t" "mov r5, r11\n\t"
                   "stmia r6!, {r2, r3, r4, r5}\n\t"
                   : "+l"(s)
                   :
                   : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
  w += k & ~1;
  x += 2 * (k & ~1);
  if ((k & 1) != 0) {
    const uint32_t weight = (uint32_t)(int32_t)*w++;
    const uint32_t word[2] = {GLOW_THUMB_APART + x[0] * weight, GLOW_THUMB_APART + x[1] * weight};
    glow_thumb_grow(&d.sums, word);
  }
  *a = d.sums;
  return w;
}

/* sum[8] += x[k] * w[k][8]; gcc is not told of `k`: where it knows that k > 0, it counts by `from` and spills a sum */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_fc8(int32_t *sum, const int8_t *x, const int8_t *w, int32_t k) {
  __asm__("" : "+r"(k));
  for (int32_t half = 0; half < 2; half++, sum += 4) {
    int32_t a = sum[0];
    int32_t b = sum[1];
    int32_t c = sum[2];
    int32_t d = sum[3];
    const int8_t *from = w + 4 * half;
    for (int32_t i = 0; i < k; i++, from += GLOW_THUMB_FC) {
      const int32_t v = x[i];
      a += v * from[0];
      b += v * from[1];
      c += v * from[2];
      d += v * from[3];
    }
    sum[0] = a;
    sum[1] = b;
    sum[2] = c;
    sum[3] = d;
  }
}

#else
#include "glow_thumb_plain.h"
#endif

#include "glow_thumb.h"
#include "glow_thumb_codes.h"
#include "glow_thumb_pool.h"
#endif

#endif
