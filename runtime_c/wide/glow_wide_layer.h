/* SPDX-License-Identifier: MIT-0 */
/* Products of int8 codes on x86-64. The inputs of a pixel are bytes of code + 128, a multiple of a step; the weights of
 * sixteen outputs are one stream: biases (s32) with the zero point and those 128 folded in, ends (scales, f32, or
 * multipliers, then shifts, s32), then for each four inputs (SVE2: eight) the weights of every output (glowc/kernels/wide/codes.py).
 *
 * VNNI adds four products of a byte and a code to each of sixteen sums. AVX2 widens both to 16 bits: products of bytes
 * would saturate; inputs once for all outputs. */
#ifndef GLOW_WIDE_LAYER_H
#define GLOW_WIDE_LAYER_H

#include "glow_q31.h"
#include "glow_wide.h"


/* `steps` of `grain` inputs; `starts` is added to all sums of a pixel, NULL: nothing; `fixed`: there are multipliers;
 * `words`: room for two bytes of each of a group's inputs, NULL where no level widens them */
typedef struct {
  const int8_t *weights;
  const int32_t *starts;
  int16_t *words;
  int32_t steps, grain, outputs;
  int32_t zp, lo, hi;
  int32_t fixed;
} glow_wide_layer_t;

/* bytes of the stream before the weights */
GLOW_INLINE int32_t glow_wide_head(const glow_wide_layer_t *layer) { return layer->fixed ? 192 : 128; }

/* to[i] = from[i] + offset, of codes (128) or of bytes that have it already (0) */
GLOW_INLINE void glow_wide_bytes(uint8_t *to, const void *codes, int32_t count, uint8_t offset) {
  const uint8_t *from = codes;
#if defined(GLOW_WIDE_SVE2)
  for (int64_t i = 0; i < count; i += (int64_t)svcntb()) {
    const svbool_t some = svwhilelt_b8_s64(i, count);
    svst1_u8(some, to + i, sveor_n_u8_x(some, svld1_u8(some, from + i), offset));
  }
#else
  int32_t i = 0;
#if defined(GLOW_WIDE_LEVELS)
  const __m128i flip = _mm_set1_epi8((char)offset);
  for (; i + 16 <= count; i += 16) {
    _mm_storeu_si128((void *)(to + i), _mm_xor_si128(_mm_loadu_si128((const void *)(from + i)), flip));
  }
#endif
  for (; i + 8 <= count; i += 8) {
    uint64_t eight;
    memcpy(&eight, from + i, 8);
    eight ^= UINT64_C(0x0101010101010101) * offset;
    memcpy(to + i, &eight, 8);
  }
  to += i;
  from += i;
  for (i = count % 8; i > 0; i--) {
    *to++ = *from++ ^ offset;
  }
#endif
}

/* what a zero point of the weights adds to all sums of a pixel of `count` bytes */
GLOW_INLINE int32_t glow_wide_start(const uint8_t *x, int32_t count, int32_t in_zp, int32_t w_zp) {
  int32_t sum = -count * (128 + in_zp);
  for (int32_t i = 0; i < count; i++) {
    sum += x[i];
  }
  return -w_zp * sum;
}

/* the codes of sixteen sums */
GLOW_INLINE void glow_wide_codes(const int32_t *sums, const int32_t *ends, int8_t *to, int32_t count,
                                const glow_wide_layer_t *layer) {
  for (int32_t i = 0; i < count; i++) {
    if (layer->fixed) {
      to[i] = (int8_t)glow_q31_code(sums[i], ends[i], ends[GLOW_WIDE_LANES + i], layer->zp, layer->lo, layer->hi);
      continue;
    }
    float scale;
    memcpy(&scale, ends + i, sizeof scale);
    to[i] = (int8_t)glow_requant(sums[i], scale, layer->zp, layer->lo, layer->hi);
  }
}

__attribute__((unused)) static void glow_wide_layer_plain(const glow_wide_layer_t *layer, const uint8_t *x, int8_t *const *to,
                                                         int32_t pixels) {
  const int8_t *w = layer->weights;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES) {
    int32_t head[3 * GLOW_WIDE_LANES];
    memcpy(head, w, (size_t)glow_wide_head(layer));
    w += glow_wide_head(layer);
    const int32_t count = layer->outputs - o < GLOW_WIDE_LANES ? layer->outputs - o : GLOW_WIDE_LANES;
    for (int32_t i = 0; i < pixels; i++) {
      const uint8_t *from = x + i * layer->grain * layer->steps;
      int32_t sums[GLOW_WIDE_LANES];
      for (int32_t n = 0; n < GLOW_WIDE_LANES; n++) {
        sums[n] = head[n] + (layer->starts != NULL ? layer->starts[i] : 0);
      }
      for (int32_t k = 0; k < layer->steps * layer->grain; k++) {
        const int8_t *column = w + k / layer->grain * layer->grain * GLOW_WIDE_LANES + k % layer->grain;
        for (int32_t n = 0; n < GLOW_WIDE_LANES; n++) {
          sums[n] += from[k] * column[n * layer->grain];
        }
      }
      glow_wide_codes(sums, head + GLOW_WIDE_LANES, to[i] + o, count, layer);
    }
    w += GLOW_WIDE_LANES * layer->grain * layer->steps;
  }
}

#endif
