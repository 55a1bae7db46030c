/* Integer kernels' building blocks for Armv6-M cores (Cortex-M0, M0+): no long products, eight low registers. */
#ifndef GLOW_M0_H
#define GLOW_M0_H

#include "glow_thumb_base.h"

#if !defined(__thumb2__)
#if GLOW_THUMB_ASM

#define GLOW_THUMB_ROUNDS
#define GLOW_THUMB_SPAN 0x0F000000u /* from 2^-32 up to the bits of 0.25: the products below fit 32 bits */
#define GLOW_M0_NEAR INT32_MAX

static inline int32_t glow_thumb_sat8(int32_t x) {
  return glow_clamp(x, -128, 127);
}

/* The code of a sum below 2^24 in magnitude before the clamp, by four products of halfwords; GLOW_M0_NEAR: near a tie. */
GLOW_THUMB_NOINLINE static int32_t glow_m0_round(int32_t sum, int32_t factor, uint32_t near_tie, int32_t zp) {
  const int32_t high = sum >> 16; /* of two's complement: rounds down */
  const uint32_t low = (uint32_t)sum & 0xFFFFu;
  const uint32_t part = (uint32_t)factor & 0xFFFFu;
  const uint32_t middle = (uint32_t)high * part + low * (uint32_t)(factor >> 16);
  const uint32_t shifted = middle << 16;
  const uint32_t fraction = low * part + shifted;
  const int32_t whole = high * (factor >> 16) + ((int32_t)middle >> 16) + (fraction < shifted) + zp;
  if (fraction + near_tie + 0x80000000u < 2u * near_tie) {
    return GLOW_M0_NEAR;
  }
  return whole + (int32_t)(fraction >> 31);
}

static inline int glow_thumb_rounds(int32_t *const *sums, int32_t n, int32_t factor, uint32_t near_tie, int32_t zp) {
  for (int32_t i = 0; i < n; i++) {
    const int32_t code = glow_m0_round(*sums[i], factor, near_tie, zp);
    if (code == GLOW_M0_NEAR) {
      return 0;
    }
    *sums[i] = glow_thumb_sat8(code);
  }
  return 1;
}

#include "glow_thumb_rounds.h"

/* clang-format off */
#define GLOW_M0_PAIR(at, next) \
  "ldmia %[x]!, {r2, r3, r4, r5}\n\t" \
  "ldrb r6, [%[w], #" at "]\n\t" \
  "sxtb r6, r6\n\t" \
  "muls r2, r6, r2\n\t" \
  "muls r3, r6, r3\n\t" \
  "ldrb r6, [%[w], #" next "]\n\t" \
  "sxtb r6, r6\n\t" \
  "muls r4, r6, r4\n\t" \
  "muls r5, r6, r5\n\t" \
  "adds r2, r2, r4\n\t" \
  "adds r3, r3, r5\n\t" \
  "add r2, lr\n\t" \
  "add r3, lr\n\t" \
  "add r8, r2\n\t" \
  "add r9, r3\n\t" \
  "asrs r2, r2, #16\n\t" \
  "asrs r3, r3, #16\n\t" \
  "add r10, r2\n\t" \
  "add r11, r3\n\t"
/* clang-format on */

/* What the loop of glow_thumb_dot4 works on. */
typedef struct {
  glow_thumb_sums_t sums; /* first: low0, low1, high0, high1 */
  uint32_t apart;
  const int8_t *end8; /* of whole groups of eight weights */
  const int8_t *end2; /* of pairs */
} glow_m0_dot_t;

/* Four pixels times k weights; returns the end of the weights. */
GLOW_THUMB_INLINE const int8_t *glow_thumb_dot4(glow_thumb_sums_t *a, const uint32_t *x, const int8_t *w, int32_t k) {
  glow_m0_dot_t d = {*a, GLOW_THUMB_APART, w + (k & ~7), w + (k & ~1)};
  glow_m0_dot_t *s = &d;
  __asm__ volatile(".syntax unified\n\t"
                   "push {%[s]}\n\t"
                   "ldmia %[s]!, {r2, r3, r4, r5, r6}\n\t"
                   "mov r8, r2\n\t"
                   "mov r9, r3\n\t"
                   "mov r10, r4\n\t"
                   "mov r11, r5\n\t"
                   "mov lr, r6\n\t"
                   "ldmia %[s]!, {r2, r3}\n\t"
                   "mov r12, r3\n\t"
                   "mov %[s], r2\n\t"
                   "cmp %[w], %[s]\n\t"
                   "beq 2f\n"
                   "1:\n\t" GLOW_M0_PAIR("0", "1") GLOW_M0_PAIR("2", "3") GLOW_M0_PAIR("4", "5") GLOW_M0_PAIR("6", "7")
                   "adds %[w], %[w], #8\n\t"
                   "cmp %[w], %[s]\n\t"
                   "bne 1b\n"
                   "2:\n\t"
                   "cmp %[w], r12\n\t"
                   "beq 4f\n"
                   "3:\n\t" GLOW_M0_PAIR("0", "1") "adds %[w], %[w], #2\n\t"
                   "cmp %[w], r12\n\t"
                   "bne 3b\n"
                   "4:\n\t"
                   "pop {%[s]}\n\t"
                   "mov r2, r8\n\t"
                   "mov r3, r9\n\t"
                   "mov r4, r10\n\t"
                   "mov r5, r11\n\t"
                   "stmia %[s]!, {r2, r3, r4, r5}\n\t"
                   : [x] "+l"(x), [w] "+l"(w), [s] "+l"(s)
                   :
                   : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
  if ((k & 1) != 0) {
    const uint32_t weight = (uint32_t)(int32_t)*w++;
    const uint32_t word[2] = {GLOW_THUMB_APART + x[0] * weight, GLOW_THUMB_APART + x[1] * weight};
    glow_thumb_grow(&d.sums, word);
  }
  *a = d.sums;
  return w;
}

/* sum[8] += x[k] * w[k][8] */
GLOW_THUMB_NOINLINE static void glow_thumb_fc8(int32_t *sum, const int8_t *x, const int8_t *w, int32_t k) {
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
#endif

#endif
