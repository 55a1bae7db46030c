/* Integer kernels' building blocks for Armv7-M cores without FPU and DSP (Cortex-M3). */
#ifndef GLOW_M3_H
#define GLOW_M3_H

#include "glow_numeric.h"

#if defined(__clang__)
#define GLOW_THUMB_INLINE static inline __attribute__((always_inline))
#define GLOW_THUMB_NOINLINE __attribute__((unused, noinline))
#elif defined(__GNUC__)
#define GLOW_THUMB_INLINE static inline __attribute__((always_inline))
#define GLOW_THUMB_NOINLINE __attribute__((unused, noinline, noclone))
#else
#define GLOW_THUMB_INLINE static inline
#define GLOW_THUMB_NOINLINE
#endif

#if defined(__GNUC__) && defined(__thumb2__)
#define GLOW_M3_ASM 1
#else
#define GLOW_M3_ASM 0
#endif

GLOW_THUMB_NOINLINE static int32_t glow_thumb_slow(int32_t acc, float scale, int32_t zp) {
  return glow_requant(acc, scale, zp, -128, 127);
}

static inline int32_t glow_thumb_sat8(int32_t x) {
#if GLOW_M3_ASM
  __asm__("ssat %0, #8, %0" : "+r"(x) : : "cc");
  return x;
#else
  return glow_clamp(x, -128, 127);
#endif
}

#define GLOW_M3_LEAST 0x2F800000u /* bits of 2^-32 */
#define GLOW_M3_SPAN 0x0F800000u  /* up to those of 0.5 */

/* The bits of a float32 scale in [2^-32, 0.5) as a factor of 2^-32, rounded down. */
static inline int32_t glow_thumb_factor(uint32_t bits) {
  return (int32_t)((bits << 8 | 0x80000000u) >> (126u - (bits >> 23)));
}

/* glow_thumb_roundN: glow_requant to int8 of N sums in place; 0: a sum's fraction is within `near_tie` of a tie, and
 * nothing is of use. */
#if GLOW_M3_ASM
/* clang-format off */
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
/* clang-format on */
#else
static inline int glow_m3_rounds(int32_t *const *sums, int32_t n, int32_t factor, uint32_t near_tie, int32_t zp) {
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
#endif

static inline int glow_thumb_round1(int32_t *a, int32_t factor, uint32_t near_tie, int32_t zp) {
#if GLOW_M3_ASM
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0"), "+r"(*a));
#else
  int32_t *const sums[] = {a};
  return glow_m3_rounds(sums, 1, factor, near_tie, zp);
#endif
}

static inline int glow_thumb_round2(int32_t *a, int32_t *b, int32_t factor, uint32_t near_tie, int32_t zp) {
#if GLOW_M3_ASM
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0") GLOW_M3_ROUND("%1"), "+r"(*a), "+r"(*b));
#else
  int32_t *const sums[] = {a, b};
  return glow_m3_rounds(sums, 2, factor, near_tie, zp);
#endif
}

static inline int glow_thumb_round3(int32_t *a, int32_t *b, int32_t *c, int32_t factor, uint32_t near_tie, int32_t zp) {
#if GLOW_M3_ASM
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0") GLOW_M3_ROUND("%1") GLOW_M3_ROUND("%2"), "+r"(*a), "+r"(*b), "+r"(*c));
#else
  int32_t *const sums[] = {a, b, c};
  return glow_m3_rounds(sums, 3, factor, near_tie, zp);
#endif
}

static inline int glow_thumb_round4(int32_t *a, int32_t *b, int32_t *c, int32_t *d, int32_t factor, uint32_t near_tie, int32_t zp) {
#if GLOW_M3_ASM
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0") GLOW_M3_ROUND("%1") GLOW_M3_ROUND("%2") GLOW_M3_ROUND("%3"), "+r"(*a), "+r"(*b), "+r"(*c), "+r"(*d));
#else
  int32_t *const sums[] = {a, b, c, d};
  return glow_m3_rounds(sums, 4, factor, near_tie, zp);
#endif
}

static inline int glow_thumb_round5(int32_t *a, int32_t *b, int32_t *c, int32_t *d, int32_t *e, int32_t factor, uint32_t near_tie, int32_t zp) {
#if GLOW_M3_ASM
  GLOW_M3_ROUNDS(GLOW_M3_ROUND("%0") GLOW_M3_ROUND("%1") GLOW_M3_ROUND("%2") GLOW_M3_ROUND("%3") GLOW_M3_ROUND("%4"), "+r"(*a), "+r"(*b), "+r"(*c), "+r"(*d), "+r"(*e));
#else
  int32_t *const sums[] = {a, b, c, d, e};
  return glow_m3_rounds(sums, 5, factor, near_tie, zp);
#endif
}

/* Sums of two words, two pixels each; see glow_thumb.h. */
typedef struct {
  uint32_t low0;
  uint32_t low1;
  uint32_t high0;
  uint32_t high1;
} glow_thumb_sums_t;

#define GLOW_THUMB_APART 0xFF007F80u /* 32640 - 256 * 65536 */

/* Add a word to the sums of each pair of pixels. */
static inline void glow_thumb_grow(glow_thumb_sums_t *a, const uint32_t word[2]) {
  a->low0 += word[0];
  a->high0 += (word[0] >> 16) - ((word[0] & 0x80000000u) >> 15);
  a->low1 += word[1];
  a->high1 += (word[1] >> 16) - ((word[1] & 0x80000000u) >> 15);
}

#if GLOW_M3_ASM
/* clang-format off */
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
/* clang-format on */

/* Four pixels times k weights; returns the end of the weights. */
GLOW_THUMB_INLINE const int8_t *glow_thumb_dot4(glow_thumb_sums_t *a, const uint32_t *x, const int8_t *w, int32_t k) {
  int32_t v;
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
                   : [x] "+r"(x), [w] "+r"(w), [k] "+r"(k), [v] "=&r"(v), [low0] "+r"(a->low0), [low1] "+r"(a->low1),
                     [high0] "+r"(a->high0), [high1] "+r"(a->high1)
                   : [apart] "r"(GLOW_THUMB_APART)
                   : "r8", "r9", "r10", "r11", "cc", "memory");
  return w;
}
#else
static inline const int8_t *glow_thumb_dot4(glow_thumb_sums_t *a, const uint32_t *x, const int8_t *w, int32_t k) {
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
#endif

/* glow_requant to int8 of one sum. */
static inline int32_t glow_thumb_round(int32_t acc, float scale, uint32_t near_tie, int32_t zp) {
  uint32_t bits;
  memcpy(&bits, &scale, sizeof bits);
  if (bits - GLOW_M3_LEAST >= GLOW_M3_SPAN || near_tie >= 0x80000000u) {
    return glow_thumb_slow(acc, scale, zp);
  }
  const int64_t product = (int64_t)acc * glow_thumb_factor(bits);
  const uint32_t fraction = (uint32_t)((uint64_t)product & 0xFFFFFFFFu);
  const int32_t whole = (int32_t)(product >> 32);
  if (fraction + near_tie + 0x80000000u < 2u * near_tie) {
    return glow_thumb_slow(acc, scale, zp);
  }
  return glow_clamp(whole + (int32_t)(fraction >> 31) + zp, -128, 127);
}

#include "glow_thumb.h"

#endif
