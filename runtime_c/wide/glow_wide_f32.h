/* SPDX-License-Identifier: MIT-0 */
/* Products of float32 on x86-64. The weights of sixteen outputs are one stream: biases, then those of each input. Every
 * fourth product of an output is added to one of four sums, which are added last, as fc_f32 has it: each level of the
 * instruction set gives the same bits. */
#ifndef GLOW_WIDE_F32_H
#define GLOW_WIDE_F32_H

#include "glow_wide.h"

/* `inputs` of a pixel, or taps of a depthwise window */
typedef struct {
  const float *weights;
  int32_t inputs, outputs;
  float lo, hi;
} glow_wide_floats_t;

GLOW_INLINE int32_t glow_wide_lanes(int32_t left) { return left < GLOW_WIDE_LANES ? left : GLOW_WIDE_LANES; }

__attribute__((unused)) static void glow_wide_floats_plain(const glow_wide_floats_t *layer, const float *const *x,
                                                          float *const *to, int32_t pixels) {
  const float *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += GLOW_WIDE_LANES * (layer->inputs + 1)) {
    for (int32_t i = 0; i < pixels; i++) {
      float parts[4][GLOW_WIDE_LANES] = { {0} };
      memcpy(parts[0], w, sizeof parts[0]);
      for (int32_t k = 0; k < layer->inputs; k++) {
        const float *row = w + GLOW_WIDE_LANES * (k + 1);
        float *part = parts[k % 4];
        for (int32_t n = 0; n < GLOW_WIDE_LANES; n++) {
          const float product = x[i][k] * row[n];  /* not contracted: each level gives the same bits */
          part[n] += product;
        }
      }
      for (int32_t n = 0; n < glow_wide_lanes(layer->outputs - o); n++) {
        const float sum = (parts[0][n] + parts[1][n]) + (parts[2][n] + parts[3][n]);
        to[i][o + n] = glow_limited(sum, layer->lo, layer->hi);
      }
    }
  }
}

__attribute__((unused)) static void glow_wide_taps_plain(const glow_wide_floats_t *layer, const float *const *taps, float *to) {
  const float *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += GLOW_WIDE_LANES * (layer->inputs + 1)) {
    for (int32_t n = 0; n < glow_wide_lanes(layer->outputs - o); n++) {
      float sum = w[n];
      for (int32_t k = 0; k < layer->inputs; k++) {
        const float product = taps[k][o + n] * w[GLOW_WIDE_LANES * (k + 1) + n];
        sum += product;
      }
      to[o + n] = glow_limited(sum, layer->lo, layer->hi);
    }
  }
}

#if defined(GLOW_WIDE_LEVELS)
/* v between two limits; NaN stays */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 __m512 glow_wide_limited512(__m512 v, const glow_wide_floats_t *layer) {
  return _mm512_min_ps(_mm512_set1_ps(layer->hi), _mm512_max_ps(_mm512_set1_ps(layer->lo), v));
}

GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256 glow_wide_limited256(__m256 v, const glow_wide_floats_t *layer) {
  return _mm256_min_ps(_mm256_set1_ps(layer->hi), _mm256_max_ps(_mm256_set1_ps(layer->lo), v));
}

#define GLOW_WIDE_ADD512(sum, a, b) sum = _mm512_add_ps(sum, _mm512_mul_ps(a, b))
#define GLOW_WIDE_ADD256(sum, a, b) sum = _mm256_add_ps(sum, _mm256_mul_ps(a, b))

#define GLOW_WIDE_START(i) \
  const float *x##i = x[i]; \
  __m512 a##i = bias, b##i = zero, c##i = zero, d##i = zero;
#define GLOW_WIDE_STEP(i)                                         \
  GLOW_WIDE_ADD512(a##i, _mm512_set1_ps(x##i[k]), w0);            \
  GLOW_WIDE_ADD512(b##i, _mm512_set1_ps(x##i[k + 1]), w1);        \
  GLOW_WIDE_ADD512(c##i, _mm512_set1_ps(x##i[k + 2]), w2);        \
  GLOW_WIDE_ADD512(d##i, _mm512_set1_ps(x##i[k + 3]), w3);
#define GLOW_WIDE_REST(i)                                                            \
  GLOW_WIDE_ADD512(a##i, _mm512_set1_ps(x##i[k]), _mm512_loadu_ps(w));               \
  if (left > 1) {                                                                   \
    GLOW_WIDE_ADD512(b##i, _mm512_set1_ps(x##i[k + 1]), _mm512_loadu_ps(w + 16));    \
  }                                                                                 \
  if (left > 2) {                                                                   \
    GLOW_WIDE_ADD512(c##i, _mm512_set1_ps(x##i[k + 2]), _mm512_loadu_ps(w + 32));    \
  }
#define GLOW_WIDE_FINISH(i)                                                                          \
  a##i = _mm512_add_ps(_mm512_add_ps(a##i, b##i), _mm512_add_ps(c##i, d##i));                       \
  _mm512_mask_storeu_ps(to[i] + o, mask, glow_wide_limited512(a##i, layer));
#define GLOW_WIDE_ONE(M) M(0)
#define GLOW_WIDE_TILE(name, EACH)                                                                                \
  GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 void name(const glow_wide_floats_t *layer, const float *w, const float *const *x, \
                                          float *const *to, int32_t o) {                                        \
    const __mmask16 mask = (__mmask16)((1 << glow_wide_lanes(layer->outputs - o)) - 1);                           \
    const __m512 bias = _mm512_loadu_ps(w), zero = _mm512_setzero_ps();                                          \
    EACH(GLOW_WIDE_START)                                                                                         \
    w += 16;                                                                                                     \
    int64_t k = 0;                                                                                               \
    for (; k + 4 <= layer->inputs; k += 4, w += 64) {                                                            \
      const __m512 w0 = _mm512_loadu_ps(w), w1 = _mm512_loadu_ps(w + 16);                                        \
      const __m512 w2 = _mm512_loadu_ps(w + 32), w3 = _mm512_loadu_ps(w + 48);                                   \
      EACH(GLOW_WIDE_STEP)                                                                                        \
    }                                                                                                            \
    const int64_t left = layer->inputs - k;                                                                      \
    if (left > 0) {                                                                                              \
      EACH(GLOW_WIDE_REST)                                                                                        \
    }                                                                                                            \
    EACH(GLOW_WIDE_FINISH)                                                                                        \
  }
GLOW_WIDE_TILE(glow_wide_floats4, GLOW_WIDE_4)
GLOW_WIDE_TILE(glow_wide_floats1, GLOW_WIDE_ONE)
#undef GLOW_WIDE_START
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_REST
#undef GLOW_WIDE_FINISH
#undef GLOW_WIDE_TILE

GLOW_WIDE_AVX512 __attribute__((unused)) static void glow_wide_floats_avx512(const glow_wide_floats_t *layer, const float *const *x,
                                                                         float *const *to, int32_t pixels) {
  const float *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += GLOW_WIDE_LANES * (layer->inputs + 1)) {
    int32_t i = 0;
    for (; i + 4 <= pixels; i += 4) {
      glow_wide_floats4(layer, w, x + i, to + i, o);
    }
    for (; i < pixels; i++) {
      glow_wide_floats1(layer, w, x + i, to + i, o);
    }
  }
}

GLOW_WIDE_AVX512 __attribute__((unused)) static void glow_wide_taps_avx512(const glow_wide_floats_t *layer, const float *const *taps,
                                                                       float *to) {
  const float *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += GLOW_WIDE_LANES * (layer->inputs + 1)) {
    const __mmask16 mask = (__mmask16)((1 << glow_wide_lanes(layer->outputs - o)) - 1);
    __m512 sum = _mm512_loadu_ps(w);
    for (int32_t k = 0; k < layer->inputs; k++) {
      GLOW_WIDE_ADD512(sum, _mm512_maskz_loadu_ps(mask, taps[k] + o), _mm512_loadu_ps(w + GLOW_WIDE_LANES * (k + 1)));
    }
    _mm512_mask_storeu_ps(to + o, mask, glow_wide_limited512(sum, layer));
  }
}

/* eight lanes, or the first `left` of them */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256i glow_wide_mask256(int32_t left) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(left), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Writes eight floats, or the first `left`: stores with a mask take many cycles on some CPUs. */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 void glow_wide_put256(float *to, int32_t left, __m256 v) {
  if (left >= 8) {
    _mm256_storeu_ps(to, v);
  } else {
    _mm256_maskstore_ps(to, glow_wide_mask256(left), v);
  }
}

/* Sixteen outputs of four pixels. The four sums of an output come one after the other, so that eight accumulators are enough
 * and a product takes half a load of weights and a quarter of one of inputs. */
GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_floats4_avx2(const glow_wide_floats_t *layer, const float *w,
                                                                        const float *const *x, float *const *to, int32_t o) {
  const int64_t inputs = layer->inputs;
  const float *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
  __m256 low = _mm256_loadu_ps(w), high = _mm256_loadu_ps(w + 8);
  float parts[4][4 * GLOW_WIDE_LANES];
#define GLOW_WIDE_STEP(i)              \
  v = _mm256_set1_ps(x##i[k]);         \
  GLOW_WIDE_ADD256(a##i, v, w0);       \
  GLOW_WIDE_ADD256(b##i, v, w1);
#define GLOW_WIDE_KEEP(i)                                            \
  _mm256_storeu_ps(parts[part] + GLOW_WIDE_LANES * i, a##i);         \
  _mm256_storeu_ps(parts[part] + GLOW_WIDE_LANES * i + 8, b##i);
  for (int32_t part = 0; part < 4; part++) {
    __m256 a0 = low, a1 = low, a2 = low, a3 = low, b0 = high, b1 = high, b2 = high, b3 = high, v;
    const float *row = w + GLOW_WIDE_LANES * (part + 1);
    for (int64_t k = part; k < inputs; k += 4, row += 4 * GLOW_WIDE_LANES) {
      __m256 w0 = _mm256_loadu_ps(row), w1 = _mm256_loadu_ps(row + 8);
      __asm__("" : "+x"(w0), "+x"(w1)); /* loaded once, not for each product */
      GLOW_WIDE_4(GLOW_WIDE_STEP)
    }
    GLOW_WIDE_4(GLOW_WIDE_KEEP)
    low = high = _mm256_setzero_ps(); /* the biases are in the first sum */
  }
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_KEEP
  for (int32_t at = 0; at < 4 * GLOW_WIDE_LANES; at += 8) {
    const int32_t out = o + at % GLOW_WIDE_LANES;
    const __m256 first = _mm256_add_ps(_mm256_loadu_ps(parts[0] + at), _mm256_loadu_ps(parts[1] + at));
    const __m256 second = _mm256_add_ps(_mm256_loadu_ps(parts[2] + at), _mm256_loadu_ps(parts[3] + at));
    if (out < layer->outputs) {
      glow_wide_put256(to[at / GLOW_WIDE_LANES] + out, layer->outputs - out,
                         glow_wide_limited256(_mm256_add_ps(first, second), layer));
    }
  }
}

/* The outputs of pixels by eight outputs of two. */
GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_floats2_avx2(const glow_wide_floats_t *layer, const float *const *x,
                                                                       float *const *to, int32_t pixels) {
  const int64_t inputs = layer->inputs;
  for (int32_t o = 0; o < layer->outputs; o += 8) {
    const float *head = layer->weights + o / GLOW_WIDE_LANES * GLOW_WIDE_LANES * (inputs + 1) + o % GLOW_WIDE_LANES;
    for (int32_t i = 0; i < pixels; i += 2) {
      const float *x0 = x[i], *x1 = i + 1 < pixels ? x[i + 1] : x0, *w = head + GLOW_WIDE_LANES;
      const __m256 zero = _mm256_setzero_ps();
      __m256 a0 = _mm256_loadu_ps(head), b0 = zero, c0 = zero, d0 = zero, a1 = a0, b1 = zero, c1 = zero, d1 = zero, v;
      int64_t k = 0;
#define GLOW_WIDE_STEP(part, at)                                    \
  v = _mm256_loadu_ps(w + GLOW_WIDE_LANES * at);                    \
  GLOW_WIDE_ADD256(part##0, _mm256_set1_ps(x0[k + at]), v);         \
  GLOW_WIDE_ADD256(part##1, _mm256_set1_ps(x1[k + at]), v);
      for (; k + 4 <= inputs; k += 4, w += 4 * GLOW_WIDE_LANES) {
        GLOW_WIDE_STEP(a, 0)
        GLOW_WIDE_STEP(b, 1)
        GLOW_WIDE_STEP(c, 2)
        GLOW_WIDE_STEP(d, 3)
      }
      if (k < inputs) {
        GLOW_WIDE_STEP(a, 0)
      }
      if (k + 1 < inputs) {
        GLOW_WIDE_STEP(b, 1)
      }
      if (k + 2 < inputs) {
        GLOW_WIDE_STEP(c, 2)
      }
#undef GLOW_WIDE_STEP
      const __m256 first = _mm256_add_ps(_mm256_add_ps(a0, b0), _mm256_add_ps(c0, d0));
      glow_wide_put256(to[i] + o, layer->outputs - o, glow_wide_limited256(first, layer));
      if (i + 1 < pixels) {
        const __m256 second = _mm256_add_ps(_mm256_add_ps(a1, b1), _mm256_add_ps(c1, d1));
        glow_wide_put256(to[i + 1] + o, layer->outputs - o, glow_wide_limited256(second, layer));
      }
    }
  }
}

GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_floats_avx2(const glow_wide_floats_t *layer, const float *const *x,
                                                                       float *const *to, int32_t pixels) {
  const float *w = layer->weights;
  const int32_t fours = pixels / 4 * 4;
  for (int32_t o = 0; o < layer->outputs && fours > 0; o += GLOW_WIDE_LANES, w += GLOW_WIDE_LANES * (layer->inputs + 1)) {
    for (int32_t i = 0; i < fours; i += 4) {
      glow_wide_floats4_avx2(layer, w, x + i, to + i, o);
    }
  }
  glow_wide_floats2_avx2(layer, x + fours, to + fours, pixels - fours);
}

GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_taps_avx2(const glow_wide_floats_t *layer, const float *const *taps,
                                                                     float *to) {
  const float *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += GLOW_WIDE_LANES * (layer->inputs + 1)) {
    const int32_t left = layer->outputs - o;
    __m256 low = _mm256_loadu_ps(w), high = _mm256_loadu_ps(w + 8);
    if (left >= GLOW_WIDE_LANES) {
      for (int32_t k = 0; k < layer->inputs; k++) {
        const float *x = taps[k] + o, *row = w + GLOW_WIDE_LANES * (k + 1);
        GLOW_WIDE_ADD256(low, _mm256_loadu_ps(x), _mm256_loadu_ps(row));
        GLOW_WIDE_ADD256(high, _mm256_loadu_ps(x + 8), _mm256_loadu_ps(row + 8));
      }
    } else {
      const __m256i mask = glow_wide_mask256(left), more = glow_wide_mask256(left - 8);
      for (int32_t k = 0; k < layer->inputs; k++) {
        const float *x = taps[k] + o, *row = w + GLOW_WIDE_LANES * (k + 1);
        GLOW_WIDE_ADD256(low, _mm256_maskload_ps(x, mask), _mm256_loadu_ps(row));
        GLOW_WIDE_ADD256(high, _mm256_maskload_ps(x + (left > 8 ? 8 : 0), more), _mm256_loadu_ps(row + 8));
      }
    }
    glow_wide_put256(to + o, left, glow_wide_limited256(low, layer));
    if (left > 8) {
      glow_wide_put256(to + o + 8, left - 8, glow_wide_limited256(high, layer));
    }
  }
}
#endif

/* the outputs of pixels, to[i] those of x[i] */
GLOW_INLINE void glow_wide_floats(const glow_wide_floats_t *layer, const float *const *x, float *const *to, int32_t pixels) {
#if defined(GLOW_WIDE_LEVELS)
  switch (glow_wide_level()) {
    case 3: glow_wide_floats_avx512(layer, x, to, pixels); return;
    case 2:
    case 1: glow_wide_floats_avx2(layer, x, to, pixels); return;
    default: break;
  }
#endif
  glow_wide_floats_plain(layer, x, to, pixels);
}

/* the channels of a pixel, each the sum of its taps in order */
GLOW_INLINE void glow_wide_taps(const glow_wide_floats_t *layer, const float *const *taps, float *to) {
#if defined(GLOW_WIDE_LEVELS)
  switch (glow_wide_level()) {
    case 3: glow_wide_taps_avx512(layer, taps, to); return;
    case 2:
    case 1: glow_wide_taps_avx2(layer, taps, to); return;
    default: break;
  }
#endif
  glow_wide_taps_plain(layer, taps, to);
}

#endif
