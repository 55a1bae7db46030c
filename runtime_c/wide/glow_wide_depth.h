/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolutions of int8 codes on x86-64, sixteen channels at a time. The taps of a pixel are pointers to its
 * channels; the stream of sixteen channels are biases, ends, then for each two taps their weights (s16) of every
 * channel, one by the other (glowc/kernels/wide/depthwise.py). */
#ifndef GLOW_WIDE_DEPTH_H
#define GLOW_WIDE_DEPTH_H

#include "glow_wide_codes.h"

__attribute__((unused)) static void glow_wide_depth_plain(const glow_wide_layer_t *layer, const int8_t *const *taps, int8_t *to) {
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
      const int8_t *a = taps[2 * k] + o, *b = taps[2 * k + 1] + o;
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

#define GLOW_WIDE_DEPTH_STEPS(LOAD, ADD_LOW_HIGH)                \
  for (int32_t k = 0; k < layer->steps; k++) {                  \
    const __m128i a = LOAD(taps[2 * k] + o), b = LOAD(taps[2 * k + 1] + o); \
    const __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b); \
    ADD_LOW_HIGH                                                \
  }

GLOW_WIDE_AVX512 __attribute__((unused)) static void glow_wide_depth_avx512(const glow_wide_layer_t *layer,
                                                                      const int8_t *const *taps, int8_t *to) {
  const glow_wide_end512_t end = glow_wide_ends512(layer);
  const int8_t *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 64 * layer->steps) {
    const __mmask16 mask = glow_wide_mask(layer->outputs - o);
    const int8_t *weights = w + glow_wide_head(layer);
    __m512i sums = _mm512_loadu_si512(w);
#define GLOW_WIDE_LOAD(from) _mm_maskz_loadu_epi8(mask, from)
    GLOW_WIDE_DEPTH_STEPS(GLOW_WIDE_LOAD, {
      const __m512i pairs = _mm512_cvtepi8_epi16(_mm256_set_m128i(high, low));
      sums = _mm512_dpwssd_epi32(sums, pairs, _mm512_loadu_si512(weights + 64 * k));
    })
#undef GLOW_WIDE_LOAD
    glow_wide_end512(sums, w + 64, &end, to + o, mask);
  }
}

GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_depth_avx2(const glow_wide_layer_t *layer,
                                                                      const int8_t *const *taps, int8_t *to) {
  const int8_t *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 64 * layer->steps) {
    const int32_t left = layer->outputs - o;
    const int8_t *weights = w + glow_wide_head(layer);
    __m256i first = _mm256_setzero_si256(), second = first;
#define GLOW_WIDE_LOAD(from) glow_wide_few128(from, left)
    GLOW_WIDE_DEPTH_STEPS(GLOW_WIDE_LOAD, {
      const __m256i *pairs = (const void *)(weights + 64 * k);
      first = _mm256_add_epi32(first, _mm256_madd_epi16(_mm256_cvtepi8_epi16(low), _mm256_loadu_si256(pairs)));
      second = _mm256_add_epi32(second, _mm256_madd_epi16(_mm256_cvtepi8_epi16(high), _mm256_loadu_si256(pairs + 1)));
    })
#undef GLOW_WIDE_LOAD
    glow_wide_store256(first, second, w, to + o, left, layer);
  }
}
#undef GLOW_WIDE_DEPTH_STEPS
#endif

/* the channels of one pixel, whose taps there are two for each step of */
GLOW_INLINE void glow_wide_depth(const glow_wide_layer_t *layer, const int8_t *const *taps, int8_t *to) {
#if defined(GLOW_WIDE_LEVELS)
  switch (glow_wide_level()) {
    case 3: glow_wide_depth_avx512(layer, taps, to); return;
    case 2:
    case 1: glow_wide_depth_avx2(layer, taps, to); return;
    default: break;
  }
#endif
  glow_wide_depth_plain(layer, taps, to);
}

#endif
