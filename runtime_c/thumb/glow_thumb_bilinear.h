/* SPDX-License-Identifier: MIT-0 */
/* Bilinear interpolation of codes in integers, for cores that compute slowly in float32. A sum of codes times weights,
 * in units of 2^-21 of an output code, is right but near a tie: there the float32 arithmetic of the definition says
 * which code it is.
 */
#ifndef GLOW_THUMB_BILINEAR_H
#define GLOW_THUMB_BILINEAR_H

#include "glow_thumb_base.h"

#define GLOW_BILINEAR_SHIFT 21
#define GLOW_BILINEAR_START 0x101000 /* half a code, and half of the fractions that are near a tie */
#define GLOW_BILINEAR_FAR 0x1FE000u  /* bits of a fraction that is not near a tie */

typedef struct {
  float in_scale, half_out_scale;
  int32_t in_zp, out_zp;
  uint32_t factor; /* in_scale / out_scale, 2^22 a code */
  const float *rows; /* weights of the two rows */
  const float *cols;
  int32_t known; /* whether `product` holds their products */
  float product[4];
  int32_t step; /* between channels of the input */
  int32_t channels;
} glow_bilinear_t;

/* A weight of 0 to 1 in units of 2^-31, rounded down. */
GLOW_THUMB_INLINE uint32_t glow_bilinear_fixed(float weight) {
  uint32_t bits;
  memcpy(&bits, &weight, sizeof bits);
  const uint32_t drop = 127u - (bits >> 23);
  return drop > 31u ? 0u : (bits << 8 | 0x80000000u) >> drop;
}

GLOW_THUMB_INLINE int32_t glow_bilinear_weight(uint32_t row, uint32_t col, uint32_t factor) {
  const uint32_t product = (uint32_t)((uint64_t)row * col >> 31);
  return (int32_t)((uint64_t)product * factor >> 32);
}

GLOW_THUMB_INLINE int32_t glow_bilinear_code(int32_t sum) {
#if GLOW_THUMB_ASM && defined(__thumb2__)
  __asm__("ssat %0, #8, %0, asr %1" : "+r"(sum) : "i"(GLOW_BILINEAR_SHIFT) : "cc");
  return sum;
#else
  return glow_clamp(sum >> GLOW_BILINEAR_SHIFT, -128, 127);
#endif
}

/* Integers in the order of floats; 0 of 0. */
GLOW_THUMB_INLINE int32_t glow_bilinear_order(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits < 0 ? -(bits & 0x7FFFFFFF) : bits;
}

/* (float)n * scale, |n| < 256 */
GLOW_THUMB_INLINE float glow_bilinear_real(int32_t n, float scale) {
#if GLOW_SOFT_REQUANT && defined(__GNUC__)
  uint32_t bits;
  memcpy(&bits, &scale, sizeof bits);
  uint32_t product = (uint32_t)(n < 0 ? -n : n) * ((bits & 0x7FFFFFu) | 0x800000u);
  if (product == 0u) {
    return 0.0f;
  }
  const uint32_t zeros = (uint32_t)__builtin_clz(product);
  product <<= zeros;
  const uint32_t mantissa = (product + 0x7Fu + (product >> 8 & 1u)) >> 8;
  const uint32_t carry = product > 0xFFFFFF7Fu ? 0x1000000u : 0u; /* out of the sum of 32 bits */
  bits = (bits & 0x7F800000u) + ((7u - zeros) << 23) + (mantissa | carry);
  bits |= n < 0 ? 0x80000000u : 0u;
  float real;
  memcpy(&real, &bits, sizeof real);
  return real;
#else
  return glow_rounded((float)n * scale);
#endif
}

/* v and the term of neighbour i, which is `code`; what changes nothing is left out where it takes long. */
GLOW_THUMB_INLINE float glow_bilinear_add(float v, const glow_bilinear_t *q, int32_t i, int32_t code) {
  const float weight = q->product[i];
  if (GLOW_SOFT_REQUANT && glow_bilinear_order(weight) == 0) {
    return v;
  }
  const float term = glow_rounded(weight * glow_bilinear_real(code - q->in_zp, q->in_scale));
  return GLOW_SOFT_REQUANT && glow_bilinear_order(v) == 0 ? term : glow_rounded(v + term);
}

/* The code of a sum near a tie by the definition. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_bilinear_exact(glow_bilinear_t *q, const int8_t *from, int32_t right,
                                                       int32_t down, int32_t sum) {
  const int32_t upper = sum >> GLOW_BILINEAR_SHIFT; /* or less by one */
  if (upper <= -128 || upper > 127) {
    return upper < 0 ? -128 : 127;
  }
  if (q->known == 0) {
    q->product[0] = q->cols[0] * q->rows[0];
    q->product[1] = q->cols[1] * q->rows[0];
    q->product[2] = q->cols[0] * q->rows[1];
    q->product[3] = q->cols[1] * q->rows[1];
    q->known = 1;
  }
  float v = glow_bilinear_add(0.0f, q, 0, from[0]);
  v = glow_bilinear_add(v, q, 1, from[right]);
  v = glow_bilinear_add(v, q, 2, from[down]);
  v = glow_bilinear_add(v, q, 3, from[right + down]);
  const int32_t whole = upper - q->out_zp;
  const int32_t at = glow_bilinear_order(v / q->half_out_scale) - glow_bilinear_order((float)(2 * whole - 1));
  return upper - (at < 0 || (at == 0 && (whole & 1) != 0));
}

/* All channels of a pixel: `from` is the upper left neighbour, the others lie `right` and `down` of it. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_bilinear_pixel(glow_bilinear_t *q, const int8_t *from, int32_t right, int32_t down,
                                                    int8_t *out) {
  const uint32_t rows[2] = {glow_bilinear_fixed(q->rows[0]), glow_bilinear_fixed(q->rows[1])};
  const uint32_t cols[2] = {glow_bilinear_fixed(q->cols[0]), glow_bilinear_fixed(q->cols[1])};
  const int32_t w0 = glow_bilinear_weight(rows[0], cols[0], q->factor);
  const int32_t w1 = glow_bilinear_weight(rows[0], cols[1], q->factor);
  const int32_t w2 = glow_bilinear_weight(rows[1], cols[0], q->factor);
  const int32_t w3 = glow_bilinear_weight(rows[1], cols[1], q->factor);
  const int32_t base =
      q->out_zp * (1 << GLOW_BILINEAR_SHIFT) + GLOW_BILINEAR_START - q->in_zp * (w0 + w1 + w2 + w3);
  const int32_t both = right + down;
  const int32_t step = q->step;
  const int8_t *const end = out + q->channels;
  q->known = 0;
  for (; out < end; out++, from += step) {
    const int32_t sum = base + w0 * from[0] + w1 * from[right] + w2 * from[down] + w3 * from[both];
    if (((uint32_t)sum & GLOW_BILINEAR_FAR) == 0u) {
      *out = (int8_t)glow_bilinear_exact(q, from, right, down, sum);
    } else {
      *out = (int8_t)glow_bilinear_code(sum);
    }
  }
}
#endif
