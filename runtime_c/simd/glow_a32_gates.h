/* SPDX-License-Identifier: MIT-0 */
/* Gates of LSTM and GRU layers of codes on A32: four at a time whose sums over inputs and state are one (of a cell of an LSTM; of two
 * cells, then of four, of a GRU that resets first), or those of a cell of another GRU.
 *
 * The stream has for each of these, first for the inputs and then for the state: per 16 codes 16 weights of each gate, then those of
 * the codes that are left; then biases of the inputs and of the state, and scales of both. No weight is -128, so that two products
 * fit int16. Codes are whole blocks, zeros at the end: what is read beside the weights of those that are left is in the stream, too.
 */
#ifndef GLOW_A32_GATES_H
#define GLOW_A32_GATES_H

#include "glow_neon_gates.h"

#if defined(__arm__) && defined(__ARM_NEON)

#define GLOW_A32_GATES_SUM(sum, x, at)                                                                          \
  {                                                                                                             \
    const int8x16_t w = vld1q_s8(at);                                                                           \
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x));                                             \
    sum = vpadalq_s16(sum, vmlal_s8(low, vget_high_s8(w), vget_high_s8(x)));                                    \
  }

static inline int32x2_t glow_a32_gates_pair(int32x4_t a, int32x4_t b) {
  return vpadd_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)), vpadd_s32(vget_low_s32(b), vget_high_s32(b)));
}

/* The sums of four gates, or three and 0, over `count` codes; moves the stream on. */
GLOW_INLINE int32x4_t glow_a32_gates_sums(const int8_t **stream, const int8_t *codes, int32_t count, int32_t gates) {
  int32x4_t a = vdupq_n_s32(0);
  int32x4_t b = a;
  int32x4_t c = a;
  int32x4_t d = a;
  const int8_t *from = *stream;
  while (count > 0) {
    const int32_t step = count < 16 ? count : 16;
    const int8x16_t x = vld1q_s8(codes);
    GLOW_A32_GATES_SUM(a, x, from)
    GLOW_A32_GATES_SUM(b, x, from + step)
    GLOW_A32_GATES_SUM(c, x, from + 2 * step)
    if (gates == 4) {
      GLOW_A32_GATES_SUM(d, x, from + 3 * step)
    }
    from += gates * step;
    codes += 16;
    count -= 16;
  }
  *stream = from;
  return vcombine_s32(glow_a32_gates_pair(a, b), glow_a32_gates_pair(c, d));
}

static inline float32x4_t glow_a32_gates_scaled(int32x4_t sums, int32x4_t bias, float32x4_t scale) {
  return glow_neon_gates_product(vcvtq_f32_s32(vaddq_s32(sums, bias)), scale);
}

static inline int32x4_t glow_a32_gates_words(const int8_t *at) { return vreinterpretq_s32_s8(vld1q_s8(at)); }

static inline float32x4_t glow_a32_gates_floats(const int8_t *at) { return vreinterpretq_f32_s8(vld1q_s8(at)); }

/* `count` times four gates; the codes of the state begin at `past`. */
static inline void glow_a32_lstm_gates(const int8_t *stream, const int8_t *codes, int16_t *gates, int32_t count, int32_t in_k,
                                       const int8_t *past, int32_t hidden) {
  for (; count > 0; count--, gates += 4, stream += 64) {
    const int32x4_t own = glow_a32_gates_sums(&stream, codes, in_k, 4);
    const int32x4_t state = glow_a32_gates_sums(&stream, past, hidden, 4);
    const float32x4_t a = glow_a32_gates_scaled(own, glow_a32_gates_words(stream), glow_a32_gates_floats(stream + 32));
    const float32x4_t b = glow_a32_gates_scaled(state, glow_a32_gates_words(stream + 16), glow_a32_gates_floats(stream + 48));
    vst1_s16(gates, glow_neon_gates_round(vaddq_f32(a, b)));
  }
}

/* Update, reset, new of the inputs and new of the state of `count` cells; four words are read where there are three. */
static inline void glow_a32_gru_gates(const int8_t *stream, const int8_t *codes, int16_t *gates, int32_t count, int32_t in_k,
                                      const int8_t *past, int32_t hidden) {
  for (; count > 0; count--, gates += 4, stream += 48) {
    const int32x4_t own = glow_a32_gates_sums(&stream, codes, in_k, 3);
    const int32x4_t state = glow_a32_gates_sums(&stream, past, hidden, 3);
    const float32x4_t scale = glow_a32_gates_floats(stream + 32);
    const float32x4_t a = glow_a32_gates_scaled(own, glow_a32_gates_words(stream), glow_a32_gates_floats(stream + 24));
    const float32x4_t b = glow_a32_gates_scaled(state, glow_a32_gates_words(stream + 12), vextq_f32(scale, scale, 1));
    const float32x2_t fresh = vzip_f32(vget_high_f32(a), vget_high_f32(b)).val[0];
    vst1_s16(gates, glow_neon_gates_round(vcombine_f32(vadd_f32(vget_low_f32(a), vget_low_f32(b)), fresh)));
  }
}

#endif
#endif
