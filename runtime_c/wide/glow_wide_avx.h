/* SPDX-License-Identifier: MIT-0 */
/* Layers of int8 codes (glow_wide_layer.h) by AVX2, AVX-VNNI and AVX-512 with VNNI. */
#ifndef GLOW_WIDE_AVX_H
#define GLOW_WIDE_AVX_H

#include "glow_wide_layer.h"

#if defined(GLOW_WIDE_LEVELS)
GLOW_INLINE int32_t glow_wide_four(const uint8_t *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return four;
}

/* what ends of all outputs share */
typedef struct {
  __m512 low, high;
  __m512i zp, lo, hi;
  int32_t fixed;
} glow_wide_end512_t;

GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 glow_wide_end512_t glow_wide_ends512(const glow_wide_layer_t *layer) {
  const glow_wide_end512_t end = {_mm512_set1_ps((float)(layer->lo - layer->zp)),
                                 _mm512_set1_ps((float)(layer->hi - layer->zp)),
                                 _mm512_set1_epi32(layer->zp),
                                 _mm512_set1_epi32(layer->lo),
                                 _mm512_set1_epi32(layer->hi),
                                 layer->fixed};
  return end;
}

/* `count` lanes, or all */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 __mmask16 glow_wide_mask(int32_t count) {
  return (__mmask16)(count < GLOW_WIDE_LANES ? (1 << count) - 1 : 0xffff);
}

/* glow_q31_scale of sixteen sums */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 __m512i glow_wide_q31_512(__m512i sums, __m512i mul, __m512i shift) {
  const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi32(1), half = _mm512_set1_epi64(1 << 30);
  const __m512i x = _mm512_sllv_epi32(sums, _mm512_max_epi32(shift, zero));
  const __m512i right = _mm512_max_epi32(_mm512_sub_epi32(zero, shift), zero);
  const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(x, mul), half);
  const __m512i odd = _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(x, 32), _mm512_srli_epi64(mul, 32)), half);
  const __m512i v = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
  const __m512i rest = _mm512_sub_epi32(_mm512_sllv_epi32(one, right), one);
  const __m512i limit = _mm512_add_epi32(_mm512_srli_epi32(rest, 1), _mm512_srli_epi32(v, 31));
  const __mmask16 up = _mm512_cmpgt_epi32_mask(_mm512_and_si512(v, rest), limit);
  const __m512i down = _mm512_srav_epi32(v, right);
  return _mm512_mask_add_epi32(down, up, down, one);
}

/* sixteen sums -> codes; `ends` are those of the stream */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 void glow_wide_end512(__m512i sums, const int8_t *ends, const glow_wide_end512_t *end, int8_t *to,
                                                   __mmask16 mask) {
  __m512i codes;
  if (end->fixed) {
    codes = glow_wide_q31_512(sums, _mm512_loadu_si512(ends), _mm512_loadu_si512(ends + 64));
    codes = _mm512_min_epi32(_mm512_max_epi32(_mm512_add_epi32(codes, end->zp), end->lo), end->hi);
  } else {
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_loadu_ps((const void *)ends));
    const __m512 v = _mm512_min_ps(_mm512_max_ps(product, end->low), end->high);
    codes = _mm512_add_epi32(_mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), end->zp);
  }
  _mm512_mask_cvtepi32_storeu_epi8(to, mask, codes);
}

#define GLOW_WIDE_START(i) __m512i s##i = starts != NULL ? _mm512_add_epi32(bias, _mm512_set1_epi32(starts[i])) : bias;
#define GLOW_WIDE_STEP(i) s##i = _mm512_dpbusd_epi32(s##i, _mm512_set1_epi32(glow_wide_four(x + i * pitch + 4 * k)), v);
#define GLOW_WIDE_FINISH(i)                              \
  if (i < pixels) {                                     \
    glow_wide_end512(s##i, ends, end, to[i] + o, mask);   \
  }
#define GLOW_WIDE_TILE(name, EACH)                                                                                     \
  GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 void name(const int8_t *w, int32_t steps, const uint8_t *x, int8_t *const *to,         \
                                          int32_t pixels, int32_t o, const int32_t *starts,                          \
                                          const glow_wide_end512_t *end, __mmask16 mask) {                             \
    const __m512i bias = _mm512_loadu_si512(w);                                                                       \
    const int8_t *ends = w + 64;                                                                                      \
    const int64_t pitch = 4 * steps;                                                                                  \
    EACH(GLOW_WIDE_START)                                                                                              \
    w += end->fixed ? 192 : 128;                                                                                      \
    for (int64_t k = 0; k < steps; k++) {                                                                             \
      const __m512i v = _mm512_loadu_si512(w + 64 * k);                                                               \
      EACH(GLOW_WIDE_STEP)                                                                                             \
    }                                                                                                                 \
    EACH(GLOW_WIDE_FINISH)                                                                                             \
  }
GLOW_WIDE_TILE(glow_wide_eight512, GLOW_WIDE_8)
GLOW_WIDE_TILE(glow_wide_four512, GLOW_WIDE_4)
#undef GLOW_WIDE_START
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_FINISH
#undef GLOW_WIDE_TILE

/* one pixel: four sums of every fourth step */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 void glow_wide_one512(const int8_t *w, int32_t steps, const uint8_t *x, int8_t *to,
                                                   int32_t start, const glow_wide_end512_t *end, __mmask16 mask) {
  const int8_t *ends = w + 64;
  __m512i s0 = _mm512_add_epi32(_mm512_loadu_si512(w), _mm512_set1_epi32(start)), s1 = _mm512_setzero_si512(), s2 = s1, s3 = s1;
  w += end->fixed ? 192 : 128;
  int32_t k = 0;
  for (; k + 4 <= steps; k += 4, w += 256, x += 16) {
    s0 = _mm512_dpbusd_epi32(s0, _mm512_set1_epi32(glow_wide_four(x)), _mm512_loadu_si512(w));
    s1 = _mm512_dpbusd_epi32(s1, _mm512_set1_epi32(glow_wide_four(x + 4)), _mm512_loadu_si512(w + 64));
    s2 = _mm512_dpbusd_epi32(s2, _mm512_set1_epi32(glow_wide_four(x + 8)), _mm512_loadu_si512(w + 128));
    s3 = _mm512_dpbusd_epi32(s3, _mm512_set1_epi32(glow_wide_four(x + 12)), _mm512_loadu_si512(w + 192));
  }
  for (; k < steps; k++, w += 64, x += 4) {
    s0 = _mm512_dpbusd_epi32(s0, _mm512_set1_epi32(glow_wide_four(x)), _mm512_loadu_si512(w));
  }
  s0 = _mm512_add_epi32(_mm512_add_epi32(s0, s1), _mm512_add_epi32(s2, s3));
  glow_wide_end512(s0, ends, end, to, mask);
}

GLOW_WIDE_AVX512 __attribute__((unused)) static void glow_wide_layer_avx512(const glow_wide_layer_t *layer, const uint8_t *x,
                                                                      int8_t *const *to, int32_t pixels) {
  const glow_wide_end512_t end = glow_wide_ends512(layer);
  const int8_t *w = layer->weights;
  const int32_t *starts = layer->starts;
  const int32_t steps = layer->steps;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 64 * steps) {
    const __mmask16 mask = glow_wide_mask(layer->outputs - o);
    int32_t i = 0;
    for (; i + 4 < pixels; i += 8) {
      glow_wide_eight512(w, steps, x + i * 4 * steps, to + i, pixels - i, o, starts == NULL ? NULL : starts + i, &end, mask);
    }
    if (pixels - i > 1) {
      glow_wide_four512(w, steps, x + i * 4 * steps, to + i, pixels - i, o, starts == NULL ? NULL : starts + i, &end, mask);
    } else if (i < pixels) {
      glow_wide_one512(w, steps, x + i * 4 * steps, to[i] + o, starts == NULL ? 0 : starts[i], &end, mask);
    }
  }
}

/* glow_q31_scale of eight sums */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256i glow_wide_q31_256(__m256i sums, __m256i mul, __m256i shift) {
  const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi32(1), half = _mm256_set1_epi64x(1 << 30);
  const __m256i x = _mm256_sllv_epi32(sums, _mm256_max_epi32(shift, zero));
  const __m256i right = _mm256_max_epi32(_mm256_sub_epi32(zero, shift), zero);
  const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(x, mul), half);
  const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(mul, 32)), half);
  const __m256i v = _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
  const __m256i rest = _mm256_sub_epi32(_mm256_sllv_epi32(one, right), one);
  const __m256i limit = _mm256_add_epi32(_mm256_srli_epi32(rest, 1), _mm256_srli_epi32(v, 31));
  const __m256i up = _mm256_cmpgt_epi32(_mm256_and_si256(v, rest), limit);
  return _mm256_sub_epi32(_mm256_srav_epi32(v, right), up);
}

/* what ends of all outputs share */
typedef struct {
  __m256 low, high;
  __m256i zp, lo, hi;
  int32_t fixed;
} glow_wide_end256_t;

GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 glow_wide_end256_t glow_wide_ends256(const glow_wide_layer_t *layer) {
  const glow_wide_end256_t end = {_mm256_set1_ps((float)(layer->lo - layer->zp)),
                                 _mm256_set1_ps((float)(layer->hi - layer->zp)),
                                 _mm256_set1_epi32(layer->zp),
                                 _mm256_set1_epi32(layer->lo),
                                 _mm256_set1_epi32(layer->hi),
                                 layer->fixed};
  return end;
}

/* eight sums -> codes in 32 bits; `ends` are those of the stream */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256i glow_wide_end256(__m256i sums, const int8_t *ends, const glow_wide_end256_t *end) {
  if (end->fixed) {
    const __m256i mul = _mm256_loadu_si256((const void *)ends), shift = _mm256_loadu_si256((const void *)(ends + 64));
    const __m256i codes = _mm256_add_epi32(glow_wide_q31_256(sums, mul, shift), end->zp);
    return _mm256_min_epi32(_mm256_max_epi32(codes, end->lo), end->hi);
  }
  const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_loadu_ps((const void *)ends));
  const __m256 v = _mm256_min_ps(_mm256_max_ps(product, end->low), end->high);
  return _mm256_add_epi32(_mm256_cvtps_epi32(v), end->zp);
}

/* sixteen sums without their biases -> codes */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 void glow_wide_store256(__m256i low, __m256i high, const int8_t *w, int8_t *to, int32_t count,
                                                     const glow_wide_end256_t *end) {
  const __m256i first = glow_wide_end256(_mm256_add_epi32(low, _mm256_loadu_si256((const void *)w)), w + 64, end);
  const __m256i second = glow_wide_end256(_mm256_add_epi32(high, _mm256_loadu_si256((const void *)(w + 32))), w + 96, end);
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
  const __m128i codes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  if (count >= GLOW_WIDE_LANES) {
    _mm_storeu_si128((void *)to, codes);
    return;
  }
  int8_t kept[GLOW_WIDE_LANES];
  _mm_storeu_si128((void *)kept, codes);
  memcpy(to, kept, (size_t)count);
}

/* the codes of eight outputs, of which there are `count`, of sums of pairs; `w` are their biases, then their ends */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 void glow_wide_pairs256(__m256i a, __m256i b, const int8_t *w, int32_t start, int8_t *to,
                                                     int32_t count, const glow_wide_end256_t *end) {
  const __m256i biases = _mm256_add_epi32(_mm256_loadu_si256((const void *)w), _mm256_set1_epi32(start));
  const __m256i sums = _mm256_add_epi32(_mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8), biases);
  const __m256i words = glow_wide_end256(sums, w + 64, end);
  const __m128i eight = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  const __m128i codes = _mm_packs_epi16(eight, eight);
  if (count >= 8) {
    _mm_storel_epi64((void *)to, codes);
    return;
  }
  int8_t kept[GLOW_WIDE_LANES];
  _mm_storeu_si128((void *)kept, codes);
  memcpy(to, kept, (size_t)count);
}

/* Eight outputs of N pixels, whose inputs are words: two vectors of sums of pairs a pixel. `w` is their part of the head. */
typedef void glow_wide_words_t(const glow_wide_layer_t *layer, const int8_t *w, const int8_t *weights, const int16_t *x,
                               int8_t *const *to, const int32_t *starts, int32_t o);

#define GLOW_WIDE_START(i)               \
  const int16_t *x##i = x + i * pitch;   \
  __m256i a##i = _mm256_setzero_si256(), b##i = a##i;
#define GLOW_WIDE_STEP(i)                                                                                  \
  {                                                                                                        \
    const __m256i four = _mm256_castpd_si256(_mm256_broadcast_sd((const void *)(x##i + 4 * k)));           \
    a##i = _mm256_add_epi32(a##i, _mm256_madd_epi16(v, four));                                             \
    b##i = _mm256_add_epi32(b##i, _mm256_madd_epi16(u, four));                                             \
    __asm__("" : "+x"(a##i), "+x"(b##i)); /* stay in registers, in this order */                           \
  }
#define GLOW_WIDE_FINISH(i) \
  glow_wide_pairs256(a##i, b##i, w, starts != NULL ? starts[i] : 0, to[i] + o, count, &end);
#define GLOW_WIDE_TILE(n)                                                                                               \
  GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_words256_##n(                                            \
      const glow_wide_layer_t *layer, const int8_t *w, const int8_t *weights, const int16_t *x, int8_t *const *to,      \
      const int32_t *starts, int32_t o) {                                                                               \
    const int64_t steps = layer->steps, pitch = 4 * steps;                                                              \
    GLOW_WIDE_##n(GLOW_WIDE_START)                                                                                      \
    for (int64_t k = 0; k < steps; k++, weights += 64) {                                                                \
      __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)weights));                                         \
      __m256i u = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(weights + 16)));                                  \
      GLOW_WIDE_##n(GLOW_WIDE_STEP)                                                                                     \
    }                                                                                                                   \
    const glow_wide_end256_t end = glow_wide_ends256(layer);                                                            \
    const int32_t count = layer->outputs - o;                                                                           \
    GLOW_WIDE_##n(GLOW_WIDE_FINISH)                                                                                     \
  }
GLOW_WIDE_TILE(1)
GLOW_WIDE_TILE(2)
GLOW_WIDE_TILE(3)
GLOW_WIDE_TILE(4)
GLOW_WIDE_TILE(5)
GLOW_WIDE_TILE(6)
#undef GLOW_WIDE_START
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_FINISH
#undef GLOW_WIDE_TILE

/* Inputs become words once; then tiles of about as many pixels. */
GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_layer_avx2(const glow_wide_layer_t *layer, const uint8_t *x,
                                                                      int8_t *const *to, int32_t pixels) {
  static glow_wide_words_t *const tiles[] = {glow_wide_words256_1, glow_wide_words256_2, glow_wide_words256_3,
                                             glow_wide_words256_4, glow_wide_words256_5, glow_wide_words256_6};
  const int64_t pitch = 4 * layer->steps;
  for (int64_t k = 0; k < pixels * pitch; k += GLOW_WIDE_LANES) {
    const __m256i words = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(x + k)));
    _mm256_storeu_si256((void *)(layer->words + k), words);
  }
  const int8_t *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 64 * layer->steps) {
    const int8_t *weights = w + glow_wide_head(layer);
    for (int32_t i = 0, left = (pixels + 5) / 6, some; left > 0; left--, i += some) {
      some = (pixels - i + left - 1) / left;
      const int32_t *starts = layer->starts != NULL ? layer->starts + i : NULL;
      const int16_t *words = layer->words + i * pitch;
      tiles[some - 1](layer, w, weights, words, to + i, starts, o);
      if (o + 8 < layer->outputs) {
        tiles[some - 1](layer, w + 32, weights + 32, words, to + i, starts, o + 8);
      }
    }
  }
}

/* Four pixels and two vectors of sums by VNNI. The instruction has two encodings: that of AVX-512 shows on a CPU without
 * AVX-VNNI what this code computes. */
#define GLOW_WIDE_START(i)                                                     \
  const uint8_t *x##i = x + (p + i < pixels ? p + i : p) * pitch;              \
  __m256i a##i = _mm256_setzero_si256(), b##i = a##i;
#define GLOW_WIDE_STEP(i)                                                       \
  {                                                                             \
    const __m256i four = _mm256_set1_epi32(glow_wide_four(x##i + 4 * k));       \
    a##i = GLOW_WIDE_DOT(a##i, four, v);                                        \
    b##i = GLOW_WIDE_DOT(b##i, four, u);                                        \
  }
#define GLOW_WIDE_FINISH(i)                                                                                   \
  if (p + i < pixels) {                                                                                       \
    const __m256i start = _mm256_set1_epi32(layer->starts != NULL ? layer->starts[p + i] : 0);                \
    glow_wide_store256(_mm256_add_epi32(a##i, start), _mm256_add_epi32(b##i, start), w, to[p + i] + o,        \
                       layer->outputs - o, &end);                                                             \
  }
#define GLOW_WIDE_LAYER(name)                                                                                           \
  __attribute__((unused)) static void name(const glow_wide_layer_t *layer, const uint8_t *x, int8_t *const *to,         \
                                           int32_t pixels) {                                                            \
    const int8_t *w = layer->weights;                                                                                   \
    const int64_t steps = layer->steps, pitch = 4 * steps;                                                              \
    const glow_wide_end256_t end = glow_wide_ends256(layer);                                                            \
    for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 64 * steps) {            \
      const int8_t *weights = w + glow_wide_head(layer);                                                                \
      for (int32_t p = 0; p < pixels; p += 4) {                                                                         \
        GLOW_WIDE_4(GLOW_WIDE_START)                                                                                    \
        for (int64_t k = 0; k < steps; k++) {                                                                           \
          const __m256i v = _mm256_loadu_si256((const void *)(weights + 64 * k));                                       \
          const __m256i u = _mm256_loadu_si256((const void *)(weights + 64 * k + 32));                                  \
          GLOW_WIDE_4(GLOW_WIDE_STEP)                                                                                   \
        }                                                                                                               \
        GLOW_WIDE_4(GLOW_WIDE_FINISH)                                                                                   \
      }                                                                                                                 \
    }                                                                                                                   \
  }
#define GLOW_WIDE_DOT _mm256_dpbusd_avx_epi32
GLOW_WIDE_AVX_VNNI GLOW_WIDE_LAYER(glow_wide_layer_avx_vnni)
#undef GLOW_WIDE_DOT
#define GLOW_WIDE_DOT _mm256_dpbusd_epi32
GLOW_WIDE_AVX512 GLOW_WIDE_LAYER(glow_wide_layer_avx512_short)
#undef GLOW_WIDE_DOT
#undef GLOW_WIDE_START
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_FINISH
#undef GLOW_WIDE_LAYER
#endif

#endif
