/* SPDX-License-Identifier: MIT-0 */
/* Kernels on codes whose definition is in float32, for cores without FPU: integers that bound what float32 gives. */
#ifndef GLOW_THUMB_REALS_H
#define GLOW_THUMB_REALS_H

#include "glow_thumb_base.h"

GLOW_INLINE uint32_t glow_thumb_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

GLOW_INLINE float glow_thumb_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The upper word of a product; without long products up to 2 less. */
GLOW_INLINE uint32_t glow_thumb_high(uint32_t a, uint32_t b) {
#if GLOW_THUMB_ASM && !defined(__thumb2__)
  const uint32_t a1 = a >> 16;
  const uint32_t b1 = b >> 16;
  return a1 * b1 + (a1 * (b & 0xFFFFu) >> 16) + ((a & 0xFFFFu) * b1 >> 16);
#else
  return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

/* x / 2^n, rounded down, for any n below 256. */
GLOW_INLINE uint32_t glow_thumb_lsr(uint32_t x, uint32_t n) {
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
GLOW_INLINE uint32_t glow_thumb_add_bits(uint32_t a, uint32_t b) {
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
  int32_t n, step, zp;
  uint32_t steps;
  uint32_t fraction; /* bits: steps * 2^fraction is below 2^30 */
} glow_thumb_softmax_t;

/* The definition: rne((e * steps) / sum) + zp. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_softmax_slow(const glow_thumb_softmax_t *s, float e, uint32_t sum) {
  return glow_round_clamp(glow_rounded(e * (float)s->steps) / glow_thumb_float(sum), s->zp, -128, 127);
}

/* One softmax. A value is e * steps / sum in 2^-fraction, at most 2^-13 of itself and 8 too small; where that matters
 * for the code, the definition. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_softmax(const glow_thumb_softmax_t *s, const int8_t *in, int8_t *out) {
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

/* The upper word of a product of numbers below 2^30 and 2^31 in magnitude; without long products up to 2 less. */
GLOW_INLINE int32_t glow_thumb_high_signed(int32_t a, int32_t b) {
#if GLOW_THUMB_ASM && !defined(__thumb2__)
  const int32_t a1 = a >> 16;
  const int32_t b1 = b >> 16;
  return a1 * b1 + (a1 * (b & 0xFFFF) >> 16) + ((a & 0xFFFF) * b1 >> 16);
#else
  return (int32_t)((int64_t)a * b >> 32);
#endif
}

/* x * 2^(156 - top), rounded towards 0, of float32 numbers with exponents of at most top. */
GLOW_INLINE int32_t glow_thumb_fixed(float x, int32_t top) {
  const uint32_t bits = glow_thumb_bits(x);
  const uint32_t mantissa = (bits << 7 & 0x3FFFFFFFu) | 0x40000000u;
  const int32_t size = (int32_t)glow_thumb_lsr(mantissa, 1u + (uint32_t)top - (bits >> 23 & 0xFFu));
  return bits >> 31 != 0u ? -size : size;
}

/* Rows of n codes whose mean and deviation are known: rne((apart * r) * gain + shift) + zp, apart = n * x + base. */
typedef struct {
  const float *gain;
  const float *shift;
  int32_t *fixed; /* gains in 2^(top - 156), shifts in 2^-fraction */
  int32_t n, zp;
  int32_t place; /* bits: apart * 2^place is below 2^30 */
  int32_t top; /* exponent of the largest gain */
  int32_t fraction; /* bits; 0: only the definition will do */
} glow_thumb_norm_t;

/* Fill `fixed`. A value is below 2^reach times the largest gain, plus the largest shift. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_norm_begin(glow_thumb_norm_t *t, int32_t reach) {
  int32_t top = 0;
  int32_t most = 0;
  for (int32_t k = 0; k < t->n; k++) {
    const int32_t gain = (int32_t)(glow_thumb_bits(t->gain[k]) >> 23 & 0xFFu);
    const int32_t shift = (int32_t)(glow_thumb_bits(t->shift[k]) >> 23 & 0xFFu);
    top = gain > top ? gain : top;
    most = shift > most ? shift : most;
  }
  const int32_t fraction = 155 - (top + reach > most ? top + reach : most);
  t->top = top;
  t->fraction = fraction < 12 ? 0 : (fraction > 24 ? 24 : fraction);
  for (int32_t k = 0; t->fraction != 0 && k < t->n; k++) {
    t->fixed[k] = glow_thumb_fixed(t->gain[k], top);
    t->fixed[t->n + k] = glow_thumb_fixed(t->shift[k], 156 - t->fraction);
  }
}

/* The definition. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_norm_slow(const glow_thumb_norm_t *t, int32_t k, int32_t apart, float r) {
  const float part = glow_rounded(glow_rounded((float)apart * r) * t->gain[k]);
  return glow_round_clamp(part + t->shift[k], t->zp, -128, 127);
}

/* A row. In 2^-fraction, float32 rounds by less than 128; the integers here by 8 and, before they are shifted, by 8. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_norm_row(const glow_thumb_norm_t *t, const int8_t *x, int8_t *y,
                                                    int32_t base, float r) {
  const uint32_t bits = glow_thumb_bits(r);
  const int32_t mantissa = (int32_t)((bits << 7 & 0x3FFFFFFFu) | 0x40000000u);
  const int32_t fraction = t->fraction;
  int32_t move = fraction + t->top + (int32_t)(bits >> 23) - 249 - t->place;
  const uint32_t near_tie = move > 20 ? (uint32_t)1 << fraction : 160u + ((uint32_t)8 << (move > 0 ? move : 0));
  move = move > 20 ? 20 : (move < -31 ? -31 : move);
  const int32_t up = move > 0 ? move : 0;
  const int32_t down = up - move;
  const uint32_t mask = ((uint32_t)1 << fraction) - 1u;
  const int32_t half = fraction != 0 ? (int32_t)1 << (fraction - 1) : 0;
  const int32_t *gain = t->fixed;
  const int32_t *shift = t->fixed + t->n;
  for (int32_t k = 0; k < t->n; k++) {
    const int32_t apart = t->n * x[k] + base;
    int32_t code;
    if (fraction == 0) {
      code = glow_thumb_norm_slow(t, k, apart, r);
    } else {
      const int32_t factor = glow_thumb_high_signed(gain[k], mantissa);
      const int32_t part = glow_thumb_high_signed((int32_t)((uint32_t)apart << t->place), factor);
      const int32_t sum = ((int32_t)((uint32_t)part << up) >> down) + shift[k] + half;
      if ((((uint32_t)sum + near_tie) & mask) < 2u * near_tie) {
        code = glow_thumb_norm_slow(t, k, apart, r);
      } else {
        code = glow_clamp((sum >> fraction) + t->zp, -128, 127);
      }
    }
    y[k] = (int8_t)code;
  }
}

#endif
