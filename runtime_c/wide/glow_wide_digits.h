/* SPDX-License-Identifier: MIT-0 */
/* Products of rows of digits (glow_digits.h) with codes of 2, 4 or 8 bits on x86-64. The weights of eight outputs are one
 * stream: biases; of each block scales, zero points where they differ (a byte each), and vectors of codes, four bytes of each output. The
 * bits of a byte from 0 up are the code of one of four inputs, those above are of the next four. All levels of the instruction
 * set give the same bits. */
#ifndef GLOW_WIDE_DIGITS_H
#define GLOW_WIDE_DIGITS_H

#include "glow_digits.h"
#include "glow_wide.h"

#define GLOW_WIDE_DIGITS_LANES 8

GLOW_WIDE_ALWAYS void glow_wide_digits_plain(float *total, const uint32_t *w, const glow_digits_block_t *info, const int8_t *x,
                                             const glow_digits_layer_t *layer, int32_t bits) {
  const int32_t per = 8 / bits;
  memcpy(total, w, GLOW_WIDE_DIGITS_LANES * sizeof *total);
  w += GLOW_WIDE_DIGITS_LANES;
  for (int32_t b = 0; b < layer->blocks; b++, info++, x += 3 * GLOW_DIGITS_STEP * layer->steps) {
    const uint8_t *codes = (const uint8_t *)(w + GLOW_WIDE_DIGITS_LANES + layer->zeros);
    for (int32_t n = 0; n < GLOW_WIDE_DIGITS_LANES; n++) {
      const int32_t zero = layer->zeros != 0 ? ((const uint8_t *)(w + GLOW_WIDE_DIGITS_LANES))[n] : 1;
      int32_t sums[3];
      for (int32_t d = 0; d < 3; d++) {
        sums[d] = info->starts[d] * zero;
        for (int32_t k = 0; k < layer->steps * GLOW_DIGITS_STEP; k++) {
          const int32_t byte = codes[k / 4 / per * 4 * GLOW_WIDE_DIGITS_LANES + 4 * n + k % 4];
          const int8_t *digits = x + k / GLOW_DIGITS_STEP * 3 * GLOW_DIGITS_STEP + d * GLOW_DIGITS_STEP;
          sums[d] += digits[k % GLOW_DIGITS_STEP] * ((byte >> (k / 4 % per * bits)) & ((1 << bits) - 1));
        }
      }
      float scale;
      memcpy(&scale, w + n, sizeof scale);
      const float sum = (float)sums[0] * 65536.0f + (float)(sums[1] * 256 + sums[2]);
      total[n] += sum * (scale * info->unit);
    }
    w += GLOW_WIDE_DIGITS_LANES * (1 + layer->steps * bits / 2) + layer->zeros;
  }
}

GLOW_DIGITS_LAYER(glow_wide_digits_any, , GLOW_WIDE_DIGITS_LANES, glow_wide_digits_plain)

#if defined(GLOW_WIDE_LEVELS)
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256i glow_wide_digits_load(const uint32_t *w) {
  return _mm256_loadu_si256((const __m256i *)(const void *)w);
}

GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256i glow_wide_digits_four(const int8_t *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return _mm256_set1_epi32(four);
}

/* code vector `j` of 16 inputs: those of the inputs 4 j and on */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256i glow_wide_digits_codes(const uint32_t *w, int32_t j, int32_t bits) {
  const int32_t per = 8 / bits;
  const __m256i moved = _mm256_srli_epi32(glow_wide_digits_load(w + j / per * GLOW_WIDE_DIGITS_LANES), j % per * bits);
  return _mm256_and_si256(moved, _mm256_set1_epi8((char)((1 << bits) - 1)));
}

/* Pairs of products of codes below 16 fit 16 bits: two nibbles are multiplied apart. */
#define GLOW_WIDE_DIGITS_PAIRS(sum, c, v)                                                                               \
  (bits == 8 ? _mm256_add_epi32(_mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(                           \
                                                         _mm256_and_si256(c, nibbles), v), _mm256_set1_epi16(1))),     \
                                _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi32(c, 4),       \
                                                                                        nibbles), v),                  \
                                                  _mm256_set1_epi16(16)))                                              \
             : _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(c, v), _mm256_set1_epi16(1))))

/* DOT(sum, codes, digits) adds products of four bytes to each lane. */
#define GLOW_WIDE_DIGITS_LEVEL(name, TARGET, DOT)                                                                      \
  GLOW_WIDE_ALWAYS TARGET void name(float *to, const uint32_t *w, const glow_digits_block_t *info, const int8_t *x,    \
                                    const glow_digits_layer_t *layer, int32_t bits) {                   \
    const __m256i nibbles = _mm256_set1_epi8(15);                                                                      \
    (void)nibbles;                                                                                                     \
    __m256 total = _mm256_castsi256_ps(glow_wide_digits_load(w));                                                      \
    w += GLOW_WIDE_DIGITS_LANES;                                                                                       \
    for (int32_t b = 0; b < layer->blocks; b++, info++) {                                                              \
      const __m256 scale = _mm256_mul_ps(_mm256_castsi256_ps(glow_wide_digits_load(w)), _mm256_set1_ps(info->unit));   \
      w += GLOW_WIDE_DIGITS_LANES;                                                                                     \
      __m256i s0 = _mm256_set1_epi32(info->starts[0]), s1 = _mm256_set1_epi32(info->starts[1]);                        \
      __m256i s2 = _mm256_set1_epi32(info->starts[2]);                                                                 \
      if (layer->zeros != 0) {                                                                                                \
        const __m256i zero = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)w));                  \
        s0 = _mm256_mullo_epi32(s0, zero);                                                                             \
        s1 = _mm256_mullo_epi32(s1, zero);                                                                             \
        s2 = _mm256_mullo_epi32(s2, zero);                                                                             \
        w += layer->zeros;                                                                                             \
      }                                                                                                                \
      for (int32_t s = 0; s < layer->steps; s++, w += 4 * bits, x += 3 * GLOW_DIGITS_STEP) {                           \
        for (int32_t j = 0; j < 4; j++) {                                                                              \
          const __m256i codes = glow_wide_digits_codes(w, j, bits);                                                    \
          s0 = DOT(s0, codes, glow_wide_digits_four(x + 4 * j));                                                       \
          s1 = DOT(s1, codes, glow_wide_digits_four(x + 4 * j + GLOW_DIGITS_STEP));                                    \
          s2 = DOT(s2, codes, glow_wide_digits_four(x + 4 * j + 2 * GLOW_DIGITS_STEP));                                \
        }                                                                                                              \
      }                                                                                                                \
      const __m256 high = _mm256_mul_ps(_mm256_cvtepi32_ps(s0), _mm256_set1_ps(65536.0f));                             \
      const __m256 rest = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32(s1, 8), s2));                          \
      total = _mm256_add_ps(total, _mm256_mul_ps(_mm256_add_ps(high, rest), scale));                                   \
    }                                                                                                                  \
    _mm256_storeu_ps(to, total);                                                                                       \
  }
GLOW_WIDE_DIGITS_LEVEL(glow_wide_digits_tile_avx2, GLOW_WIDE_AVX2, GLOW_WIDE_DIGITS_PAIRS)
GLOW_DIGITS_LAYER(glow_wide_digits_avx2, GLOW_WIDE_AVX2, GLOW_WIDE_DIGITS_LANES, glow_wide_digits_tile_avx2)
#if !defined(__clang__)
GLOW_WIDE_DIGITS_LEVEL(glow_wide_digits_tile_avx_vnni, GLOW_WIDE_AVX_VNNI, _mm256_dpbusd_avx_epi32)
GLOW_DIGITS_LAYER(glow_wide_digits_avx_vnni, GLOW_WIDE_AVX_VNNI, GLOW_WIDE_DIGITS_LANES, glow_wide_digits_tile_avx_vnni)
#endif
GLOW_WIDE_DIGITS_LEVEL(glow_wide_digits_tile_avx512, GLOW_WIDE_AVX512, _mm256_dpbusd_epi32)
GLOW_DIGITS_LAYER(glow_wide_digits_avx512, GLOW_WIDE_AVX512, GLOW_WIDE_DIGITS_LANES, glow_wide_digits_tile_avx512)
#endif

/* `rows` of digits, each with the `info` of its blocks */
GLOW_INLINE void glow_wide_digits(const glow_digits_layer_t *layer, const glow_digits_block_t *info, const int8_t *x, float *to,
                                  int32_t rows) {
#if defined(GLOW_WIDE_LEVELS)
  const int32_t level = glow_wide_level();
#if !defined(__clang__)
  if (level >= 2 && glow_wide_has_avx_vnni()) {
    glow_wide_digits_avx_vnni(layer, info, x, to, rows);
    return;
  }
#endif
  if (level >= 2) {
    glow_wide_digits_avx512(layer, info, x, to, rows);
  } else if (level == 1) {
    glow_wide_digits_avx2(layer, info, x, to, rows);
  } else {
    glow_wide_digits_any(layer, info, x, to, rows);
  }
#else
  glow_wide_digits_any(layer, info, x, to, rows);
#endif
}

#endif
