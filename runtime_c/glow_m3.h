/* Integer kernels' building blocks for cores without FPU and DSP (Cortex-M0, M3): plain C. */
#ifndef GLOW_M3_H
#define GLOW_M3_H

#include "glow_numeric.h"

#if defined(__GNUC__)
#define GLOW_M3_UNUSED __attribute__((unused))
#define GLOW_M3_NOINLINE __attribute__((unused, noinline))
#else
#define GLOW_M3_UNUSED
#define GLOW_M3_NOINLINE
#endif

/* A scale as a factor of 2^-32; 0 when it is not below 0.5. What is cut off is less than 1. */
static inline int32_t glow_m3_factor(float scale) {
  uint32_t bits;
  memcpy(&bits, &scale, sizeof bits);
  const uint32_t mantissa = (bits & 0x7FFFFFu) | 0x800000u;
  const int32_t shift = 118 - (int32_t)(bits >> 23); /* scale = mantissa * 2^-(32 + shift) */
  if (shift < -7 || bits >> 31 != 0u) {
    return 0;
  }
  return (int32_t)(shift < 0 ? mantissa << -shift : (shift > 24 ? 0u : mantissa >> shift));
}

GLOW_M3_NOINLINE static int32_t glow_m3_requant_slow(int32_t acc, float scale, int32_t zp, int32_t lo, int32_t hi) {
  return glow_requant(acc, scale, zp, lo, hi);
}

/* glow_requant, by one 64-bit product: the rounding to float32 moves a value below 512 by at most 2^-16 and the cut
 * factor by less than |acc| / 2^32 <= 2^-8, so that only values within 2^-7 of a tie need the exact way; larger
 * values saturate. */
static inline int32_t glow_m3_requant(int32_t acc, int32_t factor, float scale, int32_t zp, int32_t lo, int32_t hi) {
  const int64_t product = (int64_t)acc * factor;
  const uint32_t fraction = (uint32_t)((uint64_t)product & 0xFFFFFFFFu);
  const int32_t whole = (int32_t)(product >> 32); /* of two's complement: rounds down */
  if (fraction - 0x7E000000u < 0x04000000u || (uint32_t)acc + 0x1000000u > 0x2000000u || factor == 0) {
    return glow_m3_requant_slow(acc, scale, zp, lo, hi);
  }
  return glow_clamp(whole + (int32_t)(fraction >> 31) + zp, lo, hi);
}

static inline void glow_m3_copy(int8_t *to, const int8_t *from, int32_t n) {
#if defined(__ARM_FEATURE_UNALIGNED)
  for (; n >= 4; n -= 4, to += 4, from += 4) {
    memcpy(to, from, 4);
  }
#endif
  for (; n > 0; n--) {
    *to++ = *from++;
  }
}

/* clang-format off */
#define GLOW_M3_STEP(i) \
  { \
    const int32_t p = x0[i]; \
    const int32_t q = x1[i]; \
    int32_t w = w0[i]; \
    a += p * w; \
    b += q * w; \
    w = w1[i]; \
    c += p * w; \
    d += q * w; \
  }
/* clang-format on */

/* Two pixels times two channels. */
static inline void glow_m3_2x2(int32_t *sum, const int8_t *x0, const int8_t *x1, const int8_t *w0, const int8_t *w1,
                               int32_t k) {
  int32_t a = sum[0];
  int32_t b = sum[1];
  int32_t c = sum[2];
  int32_t d = sum[3];
  for (; k >= 4; k -= 4, x0 += 4, x1 += 4, w0 += 4, w1 += 4) {
    GLOW_M3_STEP(0)
    GLOW_M3_STEP(1)
    GLOW_M3_STEP(2)
    GLOW_M3_STEP(3)
  }
  for (; k > 0; k--) {
    const int32_t p = *x0++;
    const int32_t q = *x1++;
    const int32_t v = *w0++;
    const int32_t w = *w1++;
    a += p * v;
    b += q * v;
    c += p * w;
    d += q * w;
  }
  sum[0] = a;
  sum[1] = b;
  sum[2] = c;
  sum[3] = d;
}

/* What a pair of pixels is multiplied with. */
typedef struct {
  const int8_t *weights;
  const int32_t *bias;
  const float *scale;
  int32_t k;
  int32_t channels;
  int32_t scale_step;
  int32_t zp;
  int32_t lo;
  int32_t hi;
} glow_m3_gemm_t;

GLOW_M3_UNUSED static void glow_m3_gemm(const glow_m3_gemm_t *g, const int8_t *x0, const int8_t *x1, int8_t *y0,
                                        int8_t *y1) {
  const int8_t *w = g->weights;
  for (int32_t o = 0; o < g->channels; o += 2, w += 2 * g->k) {
    const int32_t next = o + 1 < g->channels ? o + 1 : o;
    int32_t sum[4] = {g->bias[o], g->bias[o], g->bias[next], g->bias[next]};
    glow_m3_2x2(sum, x0, x1, w, w + (next - o) * g->k, g->k);
    const float s0 = g->scale[o * g->scale_step];
    const float s1 = g->scale[next * g->scale_step];
    const int32_t f0 = glow_m3_factor(s0);
    const int32_t f1 = glow_m3_factor(s1);
    y1[o] = (int8_t)glow_m3_requant(sum[1], f0, s0, g->zp, g->lo, g->hi);
    y1[next] = (int8_t)glow_m3_requant(sum[3], f1, s1, g->zp, g->lo, g->hi);
    y0[o] = (int8_t)glow_m3_requant(sum[0], f0, s0, g->zp, g->lo, g->hi);
    y0[next] = (int8_t)glow_m3_requant(sum[2], f1, s1, g->zp, g->lo, g->hi);
  }
}

#endif
