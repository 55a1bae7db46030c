/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolutions of int8 codes on x86-64, sixteen channels at a time. The taps of a pixel are pointers to its
 * channels; the stream of sixteen channels are biases, ends, then for each two taps their weights (s16) of every
 * channel, one by the other (glowc/kernels/wide/depthwise.py). */
#ifndef GLOW_WIDE_DEPTH_H
#define GLOW_WIDE_DEPTH_H

#include "glow_wide_codes.h"

__attribute__((unused)) static void glow_wide_depth_plain(const glow_wide_layer_t *layer, const int8_t *const *taps, int64_t at,
                                                         int8_t *to) {
  const int8_t *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 64 * layer->steps) {
    const int32_t left = layer->outputs - o;
    const int32_t count = left < GLOW_WIDE_LANES ? left : GLOW_WIDE_LANES;
    int32_t head[3 * GLOW_WIDE_LANES];
    memcpy(head, w, (size_t)glow_wide_head(layer));
    const int8_t *weights = w + glow_wide_head(layer);
    for (int32_t k = 0; k < layer->steps; k++) {
      int16_t pairs[2 * GLOW_WIDE_LANES];
      memcpy(pairs, weights + 64 * k, sizeof pairs);
      const int8_t *a = taps[2 * k] + at + o, *b = taps[2 * k + 1] + at + o;
      for (int32_t i = 0; i < count; i++) {
        head[i] += a[i] * pairs[2 * i] + b[i] * pairs[2 * i + 1];
      }
    }
    glow_wide_codes(head, head + GLOW_WIDE_LANES, to + o, count, layer);
  }
}

#if defined(GLOW_WIDE_LEVELS)
/* `count` channels, sixteen at most, from memory that has no more */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m128i glow_wide_few128(const int8_t *from, int32_t count) {
  if (count >= GLOW_WIDE_LANES) {
    return _mm_loadu_si128((const void *)from);
  }
  if (count == 8) {
    return _mm_loadl_epi64((const void *)from);
  }
  int8_t kept[GLOW_WIDE_LANES] = {0};
  memcpy(kept, from, (size_t)count);
  return _mm_loadu_si128((const void *)kept);
}

GLOW_WIDE_AVX512 __attribute__((unused)) static void glow_wide_depth_avx512(const glow_wide_layer_t *layer,
                                                                      const int8_t *const *taps, int64_t at, int8_t *to) {
  const glow_wide_end512_t end = glow_wide_ends512(layer);
  const int8_t *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 64 * layer->steps) {
    const __mmask16 mask = glow_wide_mask(layer->outputs - o);
    const int8_t *weights = w + glow_wide_head(layer);
    __m512i sums = _mm512_loadu_si512(w);
    for (int32_t k = 0; k < layer->steps; k++) {
      const __m128i a = _mm_maskz_loadu_epi8(mask, taps[2 * k] + at + o), b = _mm_maskz_loadu_epi8(mask, taps[2 * k + 1] + at + o);
      const __m512i pairs = _mm512_cvtepi8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b)));
      sums = _mm512_dpwssd_epi32(sums, pairs, _mm512_loadu_si512(weights + 64 * k));
    }
    glow_wide_end512(sums, w + 64, &end, to + o, mask);
  }
}

/* Sixteen channels of N pixels, or the `left` ones, from `at` on of their taps. */
#define GLOW_WIDE_START(i) __m256i a##i = _mm256_setzero_si256(), b##i = a##i;
#define GLOW_WIDE_STEP(i)                                                                           \
  {                                                                                                 \
    const __m128i even = glow_wide_few128(x + i * step, left), odd = glow_wide_few128(y + i * step, left); \
    const __m256i first = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(even, odd));                        \
    const __m256i second = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(even, odd));                       \
    a##i = _mm256_add_epi32(a##i, _mm256_madd_epi16(first, low));                                    \
    b##i = _mm256_add_epi32(b##i, _mm256_madd_epi16(second, high));                                  \
  }
#define GLOW_WIDE_FINISH(i) glow_wide_store256(a##i, b##i, w, to + i * outputs, left, &end);
#define GLOW_WIDE_TILE(n)                                                                                               \
  GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 void glow_wide_depth256_##n(const glow_wide_layer_t *layer, const int8_t *w,          \
                                                            const int8_t *const *taps, int64_t step, int64_t at,       \
                                                            int8_t *to, int32_t left) {                                 \
    const __m256i *pairs = (const void *)(w + glow_wide_head(layer));                                                   \
    GLOW_WIDE_##n(GLOW_WIDE_START)                                                                                      \
    for (int64_t k = 0; k < layer->steps; k++, pairs += 2) {                                                            \
      const int8_t *x = taps[2 * k] + at, *y = taps[2 * k + 1] + at;                                                    \
      const __m256i low = _mm256_loadu_si256(pairs), high = _mm256_loadu_si256(pairs + 1);                              \
      GLOW_WIDE_##n(GLOW_WIDE_STEP)                                                                                     \
    }                                                                                                                   \
    const glow_wide_end256_t end = glow_wide_ends256(layer);                                                            \
    const int64_t outputs = layer->outputs;                                                                             \
    GLOW_WIDE_##n(GLOW_WIDE_FINISH)                                                                                     \
  }
GLOW_WIDE_TILE(1)
GLOW_WIDE_TILE(4)
#undef GLOW_WIDE_START
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_FINISH
#undef GLOW_WIDE_TILE

GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_depth_avx2(const glow_wide_layer_t *layer, const int8_t *const *taps,
                                                                      int64_t step, int8_t *to, int32_t pixels) {
  for (int32_t i = 0, some; i < pixels; i += some, to += some * layer->outputs) {
    const int8_t *w = layer->weights;
    some = pixels - i < 4 ? 1 : 4;
    for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 64 * layer->steps) {
      const int32_t left = layer->outputs - o;
      if (left >= GLOW_WIDE_LANES && some == 4) {
        glow_wide_depth256_4(layer, w, taps, step, i * step + o, to + o, GLOW_WIDE_LANES);
      } else if (left == 8 && some == 4) {
        glow_wide_depth256_4(layer, w, taps, step, i * step + o, to + o, 8);
      } else if (left >= GLOW_WIDE_LANES) {
        glow_wide_depth256_1(layer, w, taps, step, i * step + o, to + o, GLOW_WIDE_LANES);
      } else {
        for (int32_t j = 0; j < some; j++) {
          glow_wide_depth256_1(layer, w, taps, step, (i + j) * step + o, to + j * layer->outputs + o, left);
        }
      }
    }
  }
}
#endif

/* the channels of adjacent pixels, `step` apart, whose taps there are two for each step of */
GLOW_INLINE void glow_wide_depth(const glow_wide_layer_t *layer, const int8_t *const *taps, int64_t step, int8_t *to,
                                 int32_t pixels) {
#if defined(GLOW_WIDE_LEVELS)
  const int32_t level = glow_wide_level();
  if (level == 1 || level == 2) {
    glow_wide_depth_avx2(layer, taps, step, to, pixels);
    return;
  }
#endif
  for (int32_t i = 0; i < pixels; i++) {
#if defined(GLOW_WIDE_LEVELS)
    if (level == 3) {
      glow_wide_depth_avx512(layer, taps, i * step, to + i * layer->outputs);
      continue;
    }
#endif
    glow_wide_depth_plain(layer, taps, i * step, to + i * layer->outputs);
  }
}

#endif
