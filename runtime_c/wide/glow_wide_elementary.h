/* SPDX-License-Identifier: MIT-0 */
/* exp, tanh, erf ... (glow_elementary.h) of the floats of a vector: on x86-64 four, eight in code that is compiled for AVX2,
 * elsewhere one. No operation is more than its rounding, so all give the same bits. Sums and largest values of rows are by
 * lanes of eight. */
#ifndef GLOW_WIDE_ELEMENTARY_H
#define GLOW_WIDE_ELEMENTARY_H

#include "glow_elementary.h"
#include "glow_wide.h"

#define GLOW_WIDE_EIGHT 8

#if defined(GLOW_WIDE_LEVELS)
#if defined(__AVX2__)
#define GLOW_WIDE_FN_LANES 8
#define GLOW_WIDE_FN(operation) _mm256_##operation
typedef __m256 glow_wide_fn_t;
typedef __m256i glow_wide_fn_bits_t;
#else
#define GLOW_WIDE_FN_LANES 4
#define GLOW_WIDE_FN(operation) _mm_##operation
typedef __m128 glow_wide_fn_t;
typedef __m128i glow_wide_fn_bits_t;
#endif
#define glow_wide_fn_all GLOW_WIDE_FN(set1_ps)
#define glow_wide_fn_add GLOW_WIDE_FN(add_ps)
#define glow_wide_fn_mul GLOW_WIDE_FN(mul_ps)
#define glow_wide_fn_ratio GLOW_WIDE_FN(div_ps)
#define glow_wide_fn_read GLOW_WIDE_FN(loadu_ps)
#define glow_wide_fn_write GLOW_WIDE_FN(storeu_ps)
GLOW_INLINE glow_wide_fn_t glow_wide_fn_from(glow_wide_fn_t x, float c) {
  return GLOW_WIDE_FN(max_ps)(glow_wide_fn_all(c), x);
}
GLOW_INLINE glow_wide_fn_t glow_wide_fn_up_to(glow_wide_fn_t x, float c) {
  return GLOW_WIDE_FN(min_ps)(glow_wide_fn_all(c), x);
}
GLOW_INLINE glow_wide_fn_t glow_wide_fn_abs(glow_wide_fn_t x) {
  return GLOW_WIDE_FN(andnot_ps)(glow_wide_fn_all(-0.0f), x);
}
GLOW_INLINE glow_wide_fn_t glow_wide_fn_signed(glow_wide_fn_t x, glow_wide_fn_t y) {
  return GLOW_WIDE_FN(or_ps)(glow_wide_fn_abs(x), GLOW_WIDE_FN(and_ps)(glow_wide_fn_all(-0.0f), y));
}
GLOW_INLINE glow_wide_fn_t glow_wide_fn_power(glow_wide_fn_t t, uint32_t bias) {
  const glow_wide_fn_bits_t exponent = GLOW_WIDE_FN(slli_epi32)((glow_wide_fn_bits_t)t, 23);
  return (glow_wide_fn_t)GLOW_WIDE_FN(add_epi32)(exponent, GLOW_WIDE_FN(set1_epi32)((int32_t)bias));
}
#else
#define GLOW_WIDE_FN_LANES 1
typedef float glow_wide_fn_t;
GLOW_INLINE float glow_wide_fn_all(float c) { return c; }
GLOW_INLINE float glow_wide_fn_add(float x, float y) { return glow_rounded(x + y); }
GLOW_INLINE float glow_wide_fn_mul(float x, float y) { return glow_rounded(x * y); }
GLOW_INLINE float glow_wide_fn_ratio(float x, float y) { return x / y; }
GLOW_INLINE float glow_wide_fn_read(const float *from) { return *from; }
GLOW_INLINE void glow_wide_fn_write(float *to, float x) { *to = x; }
GLOW_INLINE float glow_wide_fn_from(float x, float c) { return x < c ? c : x; }
GLOW_INLINE float glow_wide_fn_up_to(float x, float c) { return x > c ? c : x; }
GLOW_INLINE float glow_wide_fn_abs(float x) { return glow_one_signed(x, 1.0f); }
#define glow_wide_fn_signed glow_one_signed
#define glow_wide_fn_power glow_one_power
#endif
GLOW_INLINE glow_wide_fn_t glow_wide_fn_plus(glow_wide_fn_t x, float c) { return glow_wide_fn_add(x, glow_wide_fn_all(c)); }
GLOW_INLINE glow_wide_fn_t glow_wide_fn_times(glow_wide_fn_t x, float c) { return glow_wide_fn_mul(x, glow_wide_fn_all(c)); }
GLOW_INLINE glow_wide_fn_t glow_wide_fn_step(glow_wide_fn_t p, glow_wide_fn_t r, float c) {
  return glow_wide_fn_plus(glow_wide_fn_mul(p, r), c);
}

GLOW_ELEMENTARY(glow_wide_fn, glow_wide_fn_t)

/* a vector, of which `left` elements or all are there */
GLOW_INLINE glow_wide_fn_t glow_wide_fn_load(const float *from, int32_t left) {
  float some[GLOW_WIDE_FN_LANES] = {0};
  if (left >= GLOW_WIDE_FN_LANES) {
    return glow_wide_fn_read(from);
  }
  memcpy(some, from, (size_t)left * sizeof *from);
  return glow_wide_fn_read(some);
}

GLOW_INLINE void glow_wide_fn_store(float *to, glow_wide_fn_t x, int32_t left) {
  float some[GLOW_WIDE_FN_LANES];
  if (left >= GLOW_WIDE_FN_LANES) {
    glow_wide_fn_write(to, x);
    return;
  }
  glow_wide_fn_write(some, x);
  memcpy(to, some, (size_t)left * sizeof *to);
}

GLOW_INLINE float glow_wide_most(const float *x, int32_t n) {
  float lanes[GLOW_WIDE_EIGHT];
  for (int32_t i = 0; i < GLOW_WIDE_EIGHT; i++) {
    lanes[i] = x[i < n ? i : 0];
  }
  int32_t k = GLOW_WIDE_EIGHT;
  for (; k + GLOW_WIDE_EIGHT <= n; k += GLOW_WIDE_EIGHT) {
    for (int32_t i = 0; i < GLOW_WIDE_EIGHT; i++) {
      lanes[i] = x[k + i] > lanes[i] ? x[k + i] : lanes[i];
    }
  }
  float most = lanes[0];
  for (int32_t i = 1; i < GLOW_WIDE_EIGHT; i++) {
    most = lanes[i] > most ? lanes[i] : most;
  }
  for (; k < n; k++) {
    most = x[k] > most ? x[k] : most;
  }
  return most;
}

/* the sum of x[k] - from, or of its squares */
#define GLOW_WIDE_SUM(name, TERM)                                                  \
  GLOW_INLINE float name(const float *x, int32_t n, float from) {                  \
    float lanes[GLOW_WIDE_EIGHT] = {0}, sum = 0;                                   \
    int32_t k = 0;                                                                 \
    for (; k + GLOW_WIDE_EIGHT <= n; k += GLOW_WIDE_EIGHT) {                       \
      for (int32_t i = 0; i < GLOW_WIDE_EIGHT; i++) {                              \
        const float apart = x[k + i] - from, term = TERM; /* not contracted */     \
        lanes[i] += term;                                                          \
      }                                                                            \
    }                                                                              \
    for (; k < n; k++) {                                                           \
      const float apart = x[k] - from, term = TERM;                                \
      sum += term;                                                                 \
    }                                                                              \
    for (int32_t i = 0; i < GLOW_WIDE_EIGHT; i++) {                                \
      sum += lanes[i];                                                             \
    }                                                                              \
    return sum;                                                                    \
  }
GLOW_WIDE_SUM(glow_wide_sum, apart)
GLOW_WIDE_SUM(glow_wide_squares, apart * apart)
#undef GLOW_WIDE_SUM

#endif
