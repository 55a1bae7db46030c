/* Kernels on codes whose definition is in float32, for cores without FPU: integers that bound what float32 gives. */
#ifndef GLOW_THUMB_REALS_H
#define GLOW_THUMB_REALS_H

#include "glow_thumb_base.h"

static inline uint32_t glow_thumb_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float glow_thumb_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The upper word of a product; without long products up to 2 less. */
static inline uint32_t glow_thumb_high(uint32_t a, uint32_t b) {
#if GLOW_THUMB_ASM && !defined(__thumb2__)
  const uint32_t a1 = a >> 16;
  const uint32_t b1 = b >> 16;
  return a1 * b1 + (a1 * (b & 0xFFFFu) >> 16) + ((a & 0xFFFFu) * b1 >> 16);
#else
  return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

/* x / 2^n, rounded down, for any n below 256. */
static inline uint32_t glow_thumb_lsr(uint32_t x, uint32_t n) {
#if GLOW_THUMB_ASM && defined(__thumb2__)
  __asm__("lsr %0, %0, %1" : "+r"(x) : "r"(n));
  return x;
#elif GLOW_THUMB_ASM
  __asm__(".syntax unified\n\tlsrs %0, %0, %1" : "+l"(x) : "l"(n) : "cc");
  return x;
#else
  return n < 32u ? x >> n : 0u;
#endif
}

/* a + b of positive float32 numbers as bits, rounded half to even; numbers below 2^-126 count as 0. */
static inline uint32_t glow_thumb_add_bits(uint32_t a, uint32_t b) {
  const uint32_t big = a > b ? a : b;
  const uint32_t small = a > b ? b : a;
  const uint32_t apart = (big >> 23) - (small >> 23);
  if (apart > 25u || small < 0x800000u) {
    return big;
  }
  const uint32_t term = (small << 7 & 0x3FFFFFFFu) | 0x40000000u;
  uint32_t sum = ((big << 7 & 0x3FFFFFFFu) | 0x40000000u) + (term >> apart);
  sum |= (uint32_t)((term & (((uint32_t)1 << apart) - 1u)) != 0u);
  const uint32_t carry = sum >> 31;
  const uint32_t drop = 7u + carry;
  const uint32_t rounded = (sum + (63u << carry | carry) + (sum >> drop & 1u)) >> drop;
  return (big & 0xFF800000u) - 0x800000u + (carry << 23) + rounded;
}

/* A softmax over n codes, `step` apart. */
typedef struct {
  const float *table; /* exponentials, the largest first */
  int32_t n;
  int32_t step;
  int32_t zp;
  uint32_t steps;
  uint32_t fraction; /* bits: steps * 2^fraction is below 2^30 */
} glow_thumb_softmax_t;

/* The definition: rne((e * steps) / sum) + zp. */
GLOW_THUMB_NOINLINE static int32_t glow_thumb_softmax_slow(const glow_thumb_softmax_t *s, float e, uint32_t sum) {
  return glow_round_clamp(glow_rounded(e * (float)s->steps) / glow_thumb_float(sum), s->zp, -128, 127);
}

/* One softmax. A value is e * steps / sum in 2^-fraction, at most 2^-13 of itself and 8 too small; where that matters
 * for the code, the definition. */
GLOW_THUMB_NOINLINE static void glow_thumb_softmax(const glow_thumb_softmax_t *s, const int8_t *in, int8_t *out) {
  const int32_t step = s->step;
  const int8_t *const end = in + s->n * step;
  int32_t max = -128;
  for (const int8_t *x = in; x != end; x += step) {
    max = *x > max ? *x : max;
  }
  uint32_t sum = 0u;
  for (const int8_t *x = in; x != end; x += step) {
    sum = glow_thumb_add_bits(sum, glow_thumb_bits(s->table[max - *x]));
  }
  const uint32_t top = glow_thumb_bits(s->table[0]) >> 23;
  const uint32_t fraction = s->fraction;
  const uint32_t divisor = ((sum >> 8 & 0x7FFFu) | 0x8000u) + 2u;
  const int32_t shift = (int32_t)(fraction + top) - 16 - (int32_t)(sum >> 23);
  uint32_t factor = s->steps * (0xFFFFFFFFu / divisor);
  factor = shift >= 0 ? factor << shift : factor >> -shift;
  const uint32_t half = (uint32_t)1 << (fraction - 1u);
  for (const int8_t *x = in; x != end; x += step, out += step) {
    const float e = s->table[max - *x];
    const uint32_t bits = glow_thumb_bits(e);
    const uint32_t part = glow_thumb_lsr(bits << 8 | 0x80000000u, top - (bits >> 23));
    const uint32_t value = glow_thumb_high(part, factor) + half;
    int32_t code = (int32_t)(value >> fraction);
    if ((value + (value >> 13) + 8u) >> fraction != (uint32_t)code) {
      code = glow_thumb_softmax_slow(s, e, sum);
    } else {
      code = glow_clamp(code + s->zp, -128, 127);
    }
    *out = (int8_t)code;
  }
}

#endif
