/* SPDX-License-Identifier: MIT-0 */
/* Products of float32 on x86-64. The weights of sixteen outputs are one stream: biases, then those of each input. The
 * products of GLOW_WIDE_RUN inputs, in order, are a sum that is added to the bias and the sums before it: each level of the
 * instruction set gives the same bits. The outputs hold the sums between runs: the inputs of a run and the weights of
 * sixteen outputs stay in the first cache, and weights are read once for a group of pixels. */
#ifndef GLOW_WIDE_F32_H
#define GLOW_WIDE_F32_H

#include "glow_wide.h"

#define GLOW_WIDE_RUN 128

/* `inputs` of a pixel, or taps of a depthwise window */
typedef struct {
  const float *weights;
  int32_t inputs, outputs;
  float lo, hi;
} glow_wide_floats_t;

GLOW_INLINE int32_t glow_wide_lanes(int32_t left) { return left < GLOW_WIDE_LANES ? left : GLOW_WIDE_LANES; }

/* `count` inputs from `from` on, and the sixteen outputs from `out` on, whose stream is `weights` */
typedef struct {
  const float *weights;
  int32_t from, count, out, last;
} glow_wide_run_t;

/* Adds a run to the sums of the pixels of a tile, which are biases or where the outputs go. */
typedef void glow_wide_tile_t(const glow_wide_floats_t *layer, const glow_wide_run_t *run, const float *const *x, float *const *to);

/* weights of the first input of a run */
GLOW_INLINE const float *glow_wide_row(const glow_wide_run_t *run) {
  return run->weights + GLOW_WIDE_LANES * ((int64_t)run->from + 1);
}

#if defined(__GNUC__)
#define GLOW_WIDE_AHEAD(at) __builtin_prefetch(at)
#else
#define GLOW_WIDE_AHEAD(at) (void)(at)
#endif

/* The outputs of pixels by tiles of 1 to `most` of them, about as many in each: tiles[n - 1] computes n. The weights of a
 * single tile are read as they lie, all runs of sixteen outputs. */
GLOW_INLINE void glow_wide_by_tiles(const glow_wide_floats_t *layer, const float *const *x, float *const *to, int32_t pixels,
                                    glow_wide_tile_t *const *tiles, int32_t most) {
  const int32_t span = pixels > most ? layer->outputs : GLOW_WIDE_LANES;
  const int64_t next = GLOW_WIDE_LANES * (pixels > most ? (int64_t)layer->inputs + 1 : GLOW_WIDE_RUN);
  for (int32_t first = 0; first < layer->outputs; first += span) {
    glow_wide_run_t run = {NULL, 0, 0, first, 0};
    for (; !run.last; run.from += run.count) {
      run.last = layer->inputs - run.from <= GLOW_WIDE_RUN;
      run.count = run.last ? layer->inputs - run.from : GLOW_WIDE_RUN;
      for (run.out = first; run.out < first + span; run.out += GLOW_WIDE_LANES) {
        run.weights = layer->weights + (int64_t)run.out * (layer->inputs + 1);
        for (int32_t i = 0, left = (pixels + most - 1) / most, some; left > 0; left--, i += some) {
          some = (pixels - i + left - 1) / left;
          for (int32_t line = run.count * i / pixels; line < run.count * (i + some) / pixels; line++) {
            GLOW_WIDE_AHEAD(glow_wide_row(&run) + next + GLOW_WIDE_LANES * line);
          }
          tiles[some - 1](layer, &run, x + i, to + i);
        }
      }
    }
  }
}

__attribute__((unused)) static void glow_wide_tile_plain(const glow_wide_floats_t *layer, const glow_wide_run_t *run,
                                                         const float *const *x, float *const *to) {
  float sums[GLOW_WIDE_LANES] = {0}, *out = to[0] + run->out;
  const float *row = glow_wide_row(run), *before = run->from > 0 ? out : run->weights;
  for (int32_t k = 0; k < run->count; k++, row += GLOW_WIDE_LANES) {
    for (int32_t n = 0; n < GLOW_WIDE_LANES; n++) {
      const float product = x[0][run->from + k] * row[n];  /* not contracted: each level gives the same bits */
      sums[n] += product;
    }
  }
  for (int32_t n = 0; n < glow_wide_lanes(layer->outputs - run->out); n++) {
    const float sum = before[n] + sums[n];
    out[n] = run->last ? glow_limited(sum, layer->lo, layer->hi) : sum;
  }
}

__attribute__((unused)) static void glow_wide_floats_plain(const glow_wide_floats_t *layer, const float *const *x,
                                                          float *const *to, int32_t pixels) {
  static glow_wide_tile_t *const tiles[] = {glow_wide_tile_plain};
  glow_wide_by_tiles(layer, x, to, pixels, tiles, 1);
}

__attribute__((unused)) static void glow_wide_taps_plain(const glow_wide_floats_t *layer, const float *const *taps, int64_t step,
                                                         float *to, int32_t pixels) {
  for (int32_t i = 0; i < pixels; i++, to += layer->outputs) {
    for (int32_t o = 0; o < layer->outputs; o++) {
      const int64_t lane = o % GLOW_WIDE_LANES;
      const float *w = layer->weights + (int64_t)(o - lane) * (layer->inputs + 1) + lane;
      float sum = w[0];
      for (int32_t k = 0; k < layer->inputs; k++) {
        const float product = taps[k][i * step + o] * w[GLOW_WIDE_LANES * (k + 1)];
        sum += product;
      }
      to[o] = glow_limited(sum, layer->lo, layer->hi);
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

/* A tile of n pixels: the macros give its accumulators, what an input adds to them, and what becomes of them. */
#define GLOW_WIDE_TILE(name, n, TARGET)                                                                               \
  TARGET __attribute__((unused)) static void name##n(const glow_wide_floats_t *layer, const glow_wide_run_t *run,     \
                                                     const float *const *x, float *const *to) {                       \
    const float *row = glow_wide_row(run);                                                                            \
    GLOW_WIDE_##n(GLOW_WIDE_START)                                                                                    \
    for (int64_t k = 0; k < run->count; k++, row += GLOW_WIDE_LANES) {                                                \
      GLOW_WIDE_WEIGHTS                                                                                               \
      GLOW_WIDE_##n(GLOW_WIDE_STEP)                                                                                   \
    }                                                                                                                 \
    GLOW_WIDE_##n(GLOW_WIDE_FINISH)                                                                                   \
  }

#define GLOW_WIDE_START(i)              \
  const float *x##i = x[i] + run->from; \
  __m512 a##i = _mm512_setzero_ps();
#define GLOW_WIDE_WEIGHTS const __m512 w0 = _mm512_loadu_ps(row);
#define GLOW_WIDE_STEP(i) GLOW_WIDE_ADD512(a##i, _mm512_set1_ps(x##i[k]), w0);
#define GLOW_WIDE_FINISH(i) glow_wide_end_run512(layer, run, a##i, to[i] + run->out);

GLOW_WIDE_ALWAYS GLOW_WIDE_AVX512 void glow_wide_end_run512(const glow_wide_floats_t *layer, const glow_wide_run_t *run,
                                                         __m512 sums, float *out) {
  const __mmask16 mask = (__mmask16)((1 << glow_wide_lanes(layer->outputs - run->out)) - 1);
  sums = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, run->from > 0 ? out : run->weights), sums);
  _mm512_mask_storeu_ps(out, mask, run->last ? glow_wide_limited512(sums, layer) : sums);
}

#define GLOW_WIDE_TILE512(n) GLOW_WIDE_TILE(glow_wide_tile512_, n, GLOW_WIDE_AVX512)
GLOW_WIDE_TILE512(1)
GLOW_WIDE_TILE512(2)
GLOW_WIDE_TILE512(3)
GLOW_WIDE_TILE512(4)
GLOW_WIDE_TILE512(5)
GLOW_WIDE_TILE512(6)
GLOW_WIDE_TILE512(7)
GLOW_WIDE_TILE512(8)
#undef GLOW_WIDE_TILE512
#undef GLOW_WIDE_START
#undef GLOW_WIDE_WEIGHTS
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_FINISH

__attribute__((unused)) static void glow_wide_floats_avx512(const glow_wide_floats_t *layer, const float *const *x,
                                                           float *const *to, int32_t pixels) {
  static glow_wide_tile_t *const tiles[] = {glow_wide_tile512_1, glow_wide_tile512_2, glow_wide_tile512_3,
                                            glow_wide_tile512_4, glow_wide_tile512_5, glow_wide_tile512_6,
                                            glow_wide_tile512_7, glow_wide_tile512_8};
  glow_wide_by_tiles(layer, x, to, pixels, tiles, 8);
}

GLOW_WIDE_AVX512 __attribute__((unused)) static void glow_wide_taps_avx512(const glow_wide_floats_t *layer, const float *const *taps,
                                                                       int64_t step, float *to, int32_t pixels) {
  for (int32_t i = 0; i < pixels; i++, to += layer->outputs) {
    const float *w = layer->weights;
    for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += GLOW_WIDE_LANES * (layer->inputs + 1)) {
      const __mmask16 mask = (__mmask16)((1 << glow_wide_lanes(layer->outputs - o)) - 1);
      __m512 sum = _mm512_loadu_ps(w);
      for (int32_t k = 0; k < layer->inputs; k++) {
        const __m512 x = _mm512_maskz_loadu_ps(mask, taps[k] + i * step + o);
        GLOW_WIDE_ADD512(sum, x, _mm512_loadu_ps(w + GLOW_WIDE_LANES * (k + 1)));
      }
      _mm512_mask_storeu_ps(to + o, mask, glow_wide_limited512(sum, layer));
    }
  }
}

/* eight lanes, or the first `left` of them */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256i glow_wide_mask256(int32_t left) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(left), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Reads eight floats, or the first `left`. */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 __m256 glow_wide_get256(const float *from, int32_t left) {
  return left >= 8 ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, glow_wide_mask256(left));
}

/* Writes eight floats, or the first `left`: stores with a mask take many cycles on some CPUs. */
GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 void glow_wide_put256(float *to, int32_t left, __m256 v) {
  if (left >= 8) {
    _mm256_storeu_ps(to, v);
  } else {
    _mm256_maskstore_ps(to, glow_wide_mask256(left), v);
  }
}

#define GLOW_WIDE_START(i)              \
  const float *x##i = x[i] + run->from; \
  __m256 a##i = _mm256_setzero_ps(), b##i = a##i;
#define GLOW_WIDE_WEIGHTS                                         \
  __m256 w0 = _mm256_loadu_ps(row), w1 = _mm256_loadu_ps(row + 8); \
  __asm__("" : "+x"(w0), "+x"(w1)); /* loaded once, not for each product */
#define GLOW_WIDE_STEP(i)                                          \
  {                                                                \
    const __m256 v = _mm256_set1_ps(x##i[k]);                      \
    GLOW_WIDE_ADD256(a##i, v, w0);                                 \
    GLOW_WIDE_ADD256(b##i, v, w1);                                 \
  }
#define GLOW_WIDE_FINISH(i) glow_wide_end_run256(layer, run, a##i, b##i, to[i] + run->out);

GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 void glow_wide_end_eight(const glow_wide_floats_t *layer, const glow_wide_run_t *run, __m256 sums,
                                                      const float *bias, float *out, int32_t left) {
  const float *before = run->from > 0 ? out : bias;
  sums = _mm256_add_ps(glow_wide_get256(before, left), sums);
  glow_wide_put256(out, left, run->last ? glow_wide_limited256(sums, layer) : sums);
}

GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 void glow_wide_end_run256(const glow_wide_floats_t *layer, const glow_wide_run_t *run, __m256 low,
                                                       __m256 high, float *out) {
  const int32_t left = layer->outputs - run->out;
  glow_wide_end_eight(layer, run, low, run->weights, out, left);
  if (left > 8) {
    glow_wide_end_eight(layer, run, high, run->weights + 8, out + 8, left - 8);
  }
}

#define GLOW_WIDE_TILE256(n) GLOW_WIDE_TILE(glow_wide_tile256_, n, GLOW_WIDE_AVX2)
GLOW_WIDE_TILE256(1)
GLOW_WIDE_TILE256(2)
GLOW_WIDE_TILE256(3)
GLOW_WIDE_TILE256(4)
GLOW_WIDE_TILE256(5)
GLOW_WIDE_TILE256(6)
#undef GLOW_WIDE_TILE256
#undef GLOW_WIDE_START
#undef GLOW_WIDE_WEIGHTS
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_FINISH
#undef GLOW_WIDE_TILE

__attribute__((unused)) static void glow_wide_floats_avx2(const glow_wide_floats_t *layer, const float *const *x,
                                                         float *const *to, int32_t pixels) {
  static glow_wide_tile_t *const tiles[] = {glow_wide_tile256_1, glow_wide_tile256_2, glow_wide_tile256_3,
                                            glow_wide_tile256_4, glow_wide_tile256_5, glow_wide_tile256_6};
  glow_wide_by_tiles(layer, x, to, pixels, tiles, 6);
}

/* Sixteen channels of N pixels, or the `left` ones, from `at` on of their taps. */
#define GLOW_WIDE_START(i) __m256 a##i = _mm256_loadu_ps(w), b##i = _mm256_loadu_ps(w + 8);
#define GLOW_WIDE_STEP(i)                                                       \
  GLOW_WIDE_ADD256(a##i, glow_wide_get256(x + i * step, left), low);            \
  if (left > 8) {                                                               \
    GLOW_WIDE_ADD256(b##i, glow_wide_get256(x + i * step + 8, left - 8), high); \
  }
#define GLOW_WIDE_FINISH(i)                                                                               \
  glow_wide_put256(to + i * layer->outputs, left, glow_wide_limited256(a##i, layer));                     \
  if (left > 8) {                                                                                         \
    glow_wide_put256(to + i * layer->outputs + 8, left - 8, glow_wide_limited256(b##i, layer));           \
  }
#define GLOW_WIDE_TILE(n)                                                                                             \
  GLOW_WIDE_ALWAYS GLOW_WIDE_AVX2 void glow_wide_taps256_##n(const glow_wide_floats_t *layer, const float *w,         \
                                                          const float *const *taps, int64_t step, int64_t at,         \
                                                          float *to, int32_t left) {                                  \
    GLOW_WIDE_##n(GLOW_WIDE_START)                                                                                    \
    for (int64_t k = 0; k < layer->inputs; k++) {                                                                     \
      const float *x = taps[k] + at;                                                                                  \
      w += GLOW_WIDE_LANES;                                                                                           \
      const __m256 low = _mm256_loadu_ps(w), high = _mm256_loadu_ps(w + 8);                                           \
      GLOW_WIDE_##n(GLOW_WIDE_STEP)                                                                                   \
    }                                                                                                                 \
    GLOW_WIDE_##n(GLOW_WIDE_FINISH)                                                                                   \
  }
GLOW_WIDE_TILE(1)
GLOW_WIDE_TILE(4)
#undef GLOW_WIDE_START
#undef GLOW_WIDE_STEP
#undef GLOW_WIDE_FINISH
#undef GLOW_WIDE_TILE

GLOW_WIDE_AVX2 __attribute__((unused)) static void glow_wide_taps_avx2(const glow_wide_floats_t *layer, const float *const *taps,
                                                                     int64_t step, float *to, int32_t pixels) {
  for (int32_t i = 0, some; i < pixels; i += some, to += some * layer->outputs) {
    const float *w = layer->weights;
    some = pixels - i < 4 ? 1 : 4;
    for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += GLOW_WIDE_LANES * (layer->inputs + 1)) {
      const int32_t left = layer->outputs - o;
      if (left >= GLOW_WIDE_LANES && some == 4) {
        glow_wide_taps256_4(layer, w, taps, step, i * step + o, to + o, GLOW_WIDE_LANES);
      } else if (left == 8 && some == 4) {
        glow_wide_taps256_4(layer, w, taps, step, i * step + o, to + o, 8);
      } else if (left >= GLOW_WIDE_LANES) {
        glow_wide_taps256_1(layer, w, taps, step, i * step + o, to + o, GLOW_WIDE_LANES);
      } else {
        for (int32_t j = 0; j < some; j++) {
          glow_wide_taps256_1(layer, w, taps, step, (i + j) * step + o, to + j * layer->outputs + o, left);
        }
      }
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

/* the channels of adjacent pixels, `step` apart, each the sum of its taps in order */
GLOW_INLINE void glow_wide_taps(const glow_wide_floats_t *layer, const float *const *taps, int64_t step, float *to,
                                int32_t pixels) {
#if defined(GLOW_WIDE_LEVELS)
  switch (glow_wide_level()) {
    case 3: glow_wide_taps_avx512(layer, taps, step, to, pixels); return;
    case 2:
    case 1: glow_wide_taps_avx2(layer, taps, step, to, pixels); return;
    default: break;
  }
#endif
  glow_wide_taps_plain(layer, taps, step, to, pixels);
}

#endif
