/* SPDX-License-Identifier: MIT-0 */
/* Sums of two tensors of int8 codes on x86-64, as add_s8 and add_s8f have them. */
#ifndef GLOW_WIDE_ADD_H
#define GLOW_WIDE_ADD_H

#include "glow_wide.h"

/* (x * a + y * b) / c, `fused`: fma(x, a, fma(y, b, c)); x and y without their zero points */
typedef struct {
  float a, b, c;
  int32_t a_zp, b_zp, zp, lo, hi;
  int32_t fused;
} glow_wide_add_t;

__attribute__((unused)) static void glow_wide_add_plain(const glow_wide_add_t *sum, const int8_t *x, int32_t x_step,
                                                        const int8_t *y, int32_t y_step, int8_t *to, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    const float left = (float)(x[i * x_step] - sum->a_zp), right = (float)(y[i * y_step] - sum->b_zp);
    float real;
    if (sum->fused) {
      real = glow_fma(left, sum->a, glow_fma(right, sum->b, sum->c));
    } else {
      real = glow_rounded(glow_rounded(left * sum->a) + glow_rounded(right * sum->b)) / sum->c;
    }
    to[i] = (int8_t)glow_round_clamp(real, sum->zp, sum->lo, sum->hi);
  }
}

#if defined(GLOW_WIDE_LEVELS)
#define GLOW_WIDE_FMA __attribute__((target("avx2,fma")))

/* eight codes, or one that repeats, less their zero point */
GLOW_WIDE_ALWAYS GLOW_WIDE_FMA __m256 glow_wide_reals256(const int8_t *x, int32_t step, int32_t zp) {
  const __m256i codes = step != 0 ? _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)x)) : _mm256_set1_epi32(*x);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(codes, _mm256_set1_epi32(zp)));
}

GLOW_WIDE_FMA __attribute__((unused)) static void glow_wide_add_fma(const glow_wide_add_t *sum, const int8_t *x, int32_t x_step,
                                                                  const int8_t *y, int32_t y_step, int8_t *to, int32_t n) {
  const __m256 a = _mm256_set1_ps(sum->a), b = _mm256_set1_ps(sum->b), c = _mm256_set1_ps(sum->c);
  const __m256 low = _mm256_set1_ps((float)(sum->lo - sum->zp)), high = _mm256_set1_ps((float)(sum->hi - sum->zp));
  const __m256i zp = _mm256_set1_epi32(sum->zp);
  const int32_t fused = sum->fused, a_zp = sum->a_zp, b_zp = sum->b_zp;
  int32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 left = glow_wide_reals256(x + i * x_step, x_step, a_zp);
    const __m256 right = glow_wide_reals256(y + i * y_step, y_step, b_zp);
    __m256 real;
    if (fused) {
      real = _mm256_fmadd_ps(left, a, _mm256_fmadd_ps(right, b, c));
    } else {
      __m256 first = _mm256_mul_ps(left, a), second = _mm256_mul_ps(right, b);
      __asm__("" : "+x"(first), "+x"(second)); /* not contracted */
      real = _mm256_div_ps(_mm256_add_ps(first, second), c);
    }
    const __m256i whole = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(real, low), high));
    const __m256i codes = _mm256_add_epi32(whole, zp);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
    _mm_storel_epi64((void *)(to + i), _mm_packs_epi16(words, words));
  }
  glow_wide_add_plain(sum, x + i * x_step, x_step, y + i * y_step, y_step, to + i, n - i);
}
#endif

/* sums of n codes; of an operand with a step of 0 one repeats */
GLOW_INLINE void glow_wide_add(const glow_wide_add_t *sum, const int8_t *x, int32_t x_step, const int8_t *y, int32_t y_step,
                               int8_t *to, int32_t n) {
#if defined(GLOW_WIDE_LEVELS)
  if (glow_wide_level() > 0 && __builtin_cpu_supports("fma")) {
    glow_wide_add_fma(sum, x, x_step, y, y_step, to, n);
    return;
  }
#endif
  glow_wide_add_plain(sum, x, x_step, y, y_step, to, n);
}

#endif
