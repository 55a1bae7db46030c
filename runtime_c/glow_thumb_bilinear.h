/* Bilinear interpolation of codes in integers, for cores that compute slowly in float32. A sum of codes times weights, which
 * are in units of 2^-shift of an output code, is right but near a tie: there the float32 arithmetic of the definition says
 * which code it is.
 */
#ifndef GLOW_THUMB_BILINEAR_H
#define GLOW_THUMB_BILINEAR_H

#include "glow_thumb_base.h"

typedef struct {
  float in_scale;
  float out_scale;
  int32_t in_zp;
  int32_t out_zp;
  const float *rows; /* weights of the two rows */
  const float *cols;
  int32_t known; /* whether `product` holds their products */
  float product[4];
} glow_bilinear_t;

/* A weight of 0 to 1 in units of 2^-31, rounded down. */
GLOW_THUMB_INLINE uint32_t glow_bilinear_fixed(float weight) {
  uint32_t bits;
  memcpy(&bits, &weight, sizeof bits);
  const uint32_t drop = 127u - (bits >> 23);
  return drop > 31u ? 0u : (bits << 8 | 0x80000000u) >> drop;
}

/* A product of weights times `factor`, 2^(shift + 1) codes. */
GLOW_THUMB_INLINE int32_t glow_bilinear_weight(uint32_t row, uint32_t col, uint32_t factor) {
  const uint32_t product = (uint32_t)((uint64_t)row * col >> 31);
  return (int32_t)((uint64_t)product * factor >> 32);
}

GLOW_THUMB_INLINE int32_t glow_bilinear_code(int32_t x) {
#if defined(__thumb2__)
  __asm__("ssat %0, #8, %0" : "+r"(x) : : "cc");
  return x;
#else
  return glow_clamp(x, -128, 127);
#endif
}

/* The code of codes a, b of the upper row and c, d of the lower one, by the definition. */
GLOW_THUMB_NOINLINE static int32_t glow_bilinear_exact(glow_bilinear_t *q, int32_t a, int32_t b, int32_t c, int32_t d) {
  const int32_t codes[4] = {a, b, c, d};
  float v = 0.0f;
  for (int32_t i = 0; i < 4; i++) {
    if (q->known == 0) {
      q->product[i] = glow_rounded(q->cols[i & 1] * q->rows[i >> 1]);
    }
    const float real = glow_rounded((float)(codes[i] - q->in_zp) * q->in_scale);
    const float term = glow_rounded(q->product[i] * real);
    v = i == 0 ? term : glow_rounded(v + term);
  }
  q->known = 1;
  return glow_round_clamp(v / q->out_scale, q->out_zp, -128, 127);
}
#endif
