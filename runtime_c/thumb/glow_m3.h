/* SPDX-License-Identifier: MIT-0 */
/* Integer kernels' building blocks for Armv7-M cores without FPU and DSP (Cortex-M3). */
#ifndef GLOW_M3_H
#define GLOW_M3_H

#include "glow_thumb_base.h"

#if !GLOW_THUMB_ASM || defined(__thumb2__)
#if GLOW_THUMB_ASM

#define GLOW_THUMB_SPAN 0x0F800000u /* from 2^-32 up to the bits of 0.5 */

GLOW_INLINE int32_t glow_thumb_sat8(int32_t x) {
  __asm__("ssat %0, #8, %0" : "+r"(x) : : "cc");
  return x;
}

/* Shift right by a constant, saturate to int8. */
#define GLOW_THUMB_SAT8_ASR(x, shift) \
  __extension__({ \
    int32_t glow_sat_; \
    __asm__("ssat %0, #8, %1, asr %2" : "=r"(glow_sat_) : "r"(x), "i"(shift) : "cc"); \
    glow_sat_; \
  })

/* glow_thumb_roundN: glow_requant to int8 of N sums in place; 0: a sum's fraction is within `near_tie` of a tie, and
 * nothing is of use. */
#define GLOW_M3_ROUND(a) \
  "smull %[t], " a ", " a ", %[factor]\n\t" \
  "add %[bad], %[t], %[near]\n\t" \
  "cmp %[bad], %[near], lsl #1\n\t" \
  "blo 1f\n\t" \
  "add " a ", " a ", %[t], lsr #31\n\t" \
  "add " a ", " a ", %[zp]\n\t" \
  "ssat " a ", #8, " a "\n\t"
#define GLOW_M3_ROUNDS(text, ...) \
  uint32_t t; \
  int32_t bad; \
  __asm__(text "1:\n\tsbc %[bad], %[bad], %[bad]\n\t" \
          : __VA_ARGS__, [t] "=&r"(t), [bad] "=&r"(bad) \
          : [factor] "r"(factor), [near] "r"(near_tie + 0x80000000u), [zp] "r"(zp) \
          : "cc"); \
  return bad == 0

GLOW_INLINE int glow_thumb_round1(int32_t *a, int32_t factor, uint32_t near_tie, int32_t zp) {
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0"), "+r"(*a));
}

GLOW_INLINE int glow_thumb_round2(int32_t *a, int32_t *b, int32_t factor, uint32_t near_tie, int32_t zp) {
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0") GLOW_M3_ROUND("%1"), "+r"(*a), "+r"(*b));
}

GLOW_INLINE int glow_thumb_round3(int32_t *a, int32_t *b, int32_t *c, int32_t factor, uint32_t near_tie, int32_t zp) {
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0") GLOW_M3_ROUND("%1") GLOW_M3_ROUND("%2"), "+r"(*a), "+r"(*b), "+r"(*c));
}

GLOW_INLINE int glow_thumb_round4(int32_t *a, int32_t *b, int32_t *c, int32_t *d, int32_t factor,
                                    uint32_t near_tie, int32_t zp) {
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0") GLOW_M3_ROUND("%1") GLOW_M3_ROUND("%2") GLOW_M3_ROUND("%3"), "+r"(*a),
                 "+r"(*b), "+r"(*c), "+r"(*d));
}

GLOW_INLINE int glow_thumb_round5(int32_t *a, int32_t *b, int32_t *c, int32_t *d, int32_t *e, int32_t factor,
                                    uint32_t near_tie, int32_t zp) {
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0") GLOW_M3_ROUND("%1") GLOW_M3_ROUND("%2") GLOW_M3_ROUND("%3") GLOW_M3_ROUND("%4"),
                 "+r"(*a), "+r"(*b), "+r"(*c), "+r"(*d), "+r"(*e));
}

#define GLOW_M3_GROW \
  "add %[low0], %[low0], r8\n\t" \
  "add %[high0], %[high0], r8, asr #16\n\t" \
  "add %[low1], %[low1], r9\n\t" \
  "add %[high1], %[high1], r9, asr #16\n\t"
#define GLOW_M3_TAP \
  "ldrsb %[v], [%[w]], #1\n\t" \
  "mla r8, r8, %[v], %[apart]\n\t" \
  "mla r9, r9, %[v], %[apart]\n\t"
#define GLOW_M3_PAIR \
  "ldmia %[x]!, {r8, r9, r10, r11}\n\t" \
  GLOW_M3_TAP \
  "ldrsb %[v], [%[w]], #1\n\t" \
  "mla r8, r10, %[v], r8\n\t" \
  "mla r9, r11, %[v], r9\n\t" \
  GLOW_M3_GROW

/* Four pixels times k weights; returns the end of the weights. */
GLOW_THUMB_INLINE const int8_t *glow_thumb_dot4(glow_thumb_sums_t *a, const uint32_t *x, const int8_t *w, int32_t k) {
  /* all registers but the frame's are taken: two named ones, and gcc finds the others without optimisation too */
  glow_thumb_sums_t s = *a;
  register uint32_t apart __asm__("r12") = GLOW_THUMB_APART;
  register int32_t v __asm__("lr");
  __asm__ volatile("subs %[k], %[k], #8\n\t"
                   "blt 2f\n"
                   "1:\n\t" GLOW_M3_PAIR GLOW_M3_PAIR GLOW_M3_PAIR GLOW_M3_PAIR "subs %[k], %[k], #8\n\t"
                   "bge 1b\n"
                   "2:\n\t"
                   "adds %[k], %[k], #8\n\t"
                   "beq 5f\n\t"
                   "subs %[k], %[k], #2\n\t"
                   "blt 4f\n"
                   "3:\n\t" GLOW_M3_PAIR "subs %[k], %[k], #2\n\t"
                   "bge 3b\n"
                   "4:\n\t"
                   "adds %[k], %[k], #2\n\t"
                   "beq 5f\n\t"
                   "ldmia %[x], {r8, r9}\n\t" GLOW_M3_TAP GLOW_M3_GROW "5:\n\t"
                   : [x] "+r"(x), [w] "+r"(w), [k] "+r"(k), [v] "=&r"(v), [low0] "+r"(s.low0), [low1] "+r"(s.low1),
                     [high0] "+r"(s.high0), [high1] "+r"(s.high1)
                   : [apart] "r"(apart)
                   : "r8", "r9", "r10", "r11", "cc", "memory");
  *a = s;
  return w;
}

#define GLOW_M3_FC_MAC(sum) "ldrsb lr, [%[w]], #1\n\tmla " sum ", lr, %[v], " sum "\n\t"
#define GLOW_M3_FC_TAP \
  "ldrsb %[v], [%[x]], #1\n\t" \
  GLOW_M3_FC_MAC("r3") GLOW_M3_FC_MAC("r4") GLOW_M3_FC_MAC("r5") GLOW_M3_FC_MAC("r6") \
  GLOW_M3_FC_MAC("r8") GLOW_M3_FC_MAC("r9") GLOW_M3_FC_MAC("r10") GLOW_M3_FC_MAC("r11")

/* sum[8] += x[k] * w[k][8] */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_fc8(int32_t *sum, const int8_t *x, const int8_t *w, int32_t k) {
  /* all registers but the frame's are taken: named, gcc finds them without optimisation too */
  register int32_t *to __asm__("r0") = sum;
  register const int8_t *from __asm__("r1") = x;
  register const int8_t *by __asm__("r2") = w;
  register int32_t left __asm__("r12") = k;
  __asm__ volatile("push {%[v]}\n\t"
                   "ldmia %[v], {r3, r4, r5, r6, r8, r9, r10, r11}\n\t"
                   "subs %[k], %[k], #4\n\t"
                   "blt 2f\n"
                   "1:\n\t" GLOW_M3_FC_TAP GLOW_M3_FC_TAP GLOW_M3_FC_TAP GLOW_M3_FC_TAP "subs %[k], %[k], #4\n\t"
                   "bge 1b\n"
                   "2:\n\t"
                   "adds %[k], %[k], #4\n\t"
                   "beq 4f\n"
                   "3:\n\t" GLOW_M3_FC_TAP "subs %[k], %[k], #1\n\t"
                   "bne 3b\n"
                   "4:\n\t"
                   "pop {%[v]}\n\t"
                   "stmia %[v], {r3, r4, r5, r6, r8, r9, r10, r11}\n\t"
                   : [v] "+r"(to), [x] "+r"(from), [w] "+r"(by), [k] "+r"(left)
                   :
                   : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "lr", "cc", "memory");
}

#else
#include "glow_thumb_plain.h"
#endif

#include "glow_thumb.h"
#include "glow_thumb_codes.h"
#include "glow_thumb_pool.h"
#endif

#endif
