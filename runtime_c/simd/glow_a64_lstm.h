/* SPDX-License-Identifier: MIT-0 */
/* A step of an LSTM of codes on A64: the four gates of a cell at a time, then their functions, eight cells at a time.
 *
 * The stream has for each cell, first for the inputs and then for the state: four biases, per 16 codes 4 x 16 weights, for eight
 * more 4 x 8, four scales. Gates are in the order input, output, forget, cell. No weight is -128, so that two products fit int16.
 */
#ifndef GLOW_A64_LSTM_H
#define GLOW_A64_LSTM_H

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  float32x4_t sums;
  const int8_t *stream;
} glow_a64_lstm_sums_t;

#define GLOW_A64_LSTM_GATE(acc, w, sum, x) \
  "smull " sum ".8h, " w ".8b, " x ".8b\n" "smlal2 " sum ".8h, " w ".16b, " x ".16b\n" "sadalp %[" acc "].4s, " sum ".8h\n"
#define GLOW_A64_LSTM_BLOCK(x)                                                                     \
  "ldp q4, q5, [%[stream]], #32\n" "ldp q6, q7, [%[stream]], #32\n"                                 \
  GLOW_A64_LSTM_GATE("i", "v4", "v16", x) GLOW_A64_LSTM_GATE("o", "v5", "v17", x)                  \
  GLOW_A64_LSTM_GATE("f", "v6", "v18", x) GLOW_A64_LSTM_GATE("g", "v7", "v19", x)
#define GLOW_A64_LSTM_HALF(acc, at) acc = vpadalq_s16(acc, vmull_s8(vld1_s8(stream + (at)), half));

#define GLOW_A64_LSTM_TWO "ldp q2, q3, [%[from]], #32\n" GLOW_A64_LSTM_BLOCK("v2") GLOW_A64_LSTM_BLOCK("v3")
#define GLOW_A64_LSTM_ONE "ldr q2, [%[from]], #16\n" GLOW_A64_LSTM_BLOCK("v2")

/* The sums of a cell over `times` times so many pairs of blocks, one more where it is odd, and eight codes more, times their
 * scales. */
#define GLOW_A64_LSTM_SUMS(name, pairs, odd)                                                                              \
  static inline glow_a64_lstm_sums_t name(const int8_t *stream, const int8_t *from, int32_t times, int32_t more) {        \
    int32x4_t i = vdupq_n_s32(0);                                                                                         \
    int32x4_t o = i;                                                                                                      \
    int32x4_t f = i;                                                                                                      \
    int32x4_t g = i;                                                                                                      \
    const int32x4_t bias = vreinterpretq_s32_s8(vld1q_s8(stream));                                                        \
    stream += 16;                                                                                                         \
    __asm__("1: .rept " pairs "\n" GLOW_A64_LSTM_TWO ".endr\n" "subs %w[times], %w[times], #1\n" "b.ne 1b\n"             \
            ".rept " odd "\n" GLOW_A64_LSTM_ONE ".endr\n"                                                                 \
            : [times] "+r"(times), [from] "+r"(from), [stream] "+r"(stream), [i] "+w"(i), [o] "+w"(o), [f] "+w"(f),       \
              [g] "+w"(g)                                                                                                 \
            :                                                                                                             \
            : "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "cc", "memory");                            \
    if (more != 0) {                                                                                                      \
      const int8x8_t half = vld1_s8(from);                                                                                \
      GLOW_A64_LSTM_HALF(i, 0)                                                                                            \
      GLOW_A64_LSTM_HALF(o, 8)                                                                                            \
      GLOW_A64_LSTM_HALF(f, 16)                                                                                           \
      GLOW_A64_LSTM_HALF(g, 24)                                                                                           \
      stream += 32;                                                                                                       \
    }                                                                                                                     \
    const int32x4_t all = vaddq_s32(bias, vpaddq_s32(vpaddq_s32(i, o), vpaddq_s32(f, g)));                                \
    const float32x4_t scale = vreinterpretq_f32_s8(vld1q_s8(stream));                                                     \
    const glow_a64_lstm_sums_t done = {vmulq_f32(vcvtq_f32_s32(all), scale), stream + 16};                                \
    return done;                                                                                                          \
  }

/* The gates of a cell; returns the place after its constants. */
static inline const int8_t *glow_a64_lstm_gate(int16_t *gates, glow_a64_lstm_sums_t own, glow_a64_lstm_sums_t past) {
  __asm__("" : "+w"(own.sums), "+w"(past.sums)); /* not contracted */
  vst1_s16(gates, vqmovn_s32(vcvtnq_s32_f32(vaddq_f32(own.sums, past.sums))));
  return past.stream;
}

#define GLOW_A64_LSTM_ENTRY(k) \
  "umov %w[place], %[at].h[" k "]\n" "add %[place], %[table], %[place], lsl #1\n" "ld2 {v20.h, v21.h}[" k "], [%[place]]\n"
/* A table of 513 entries at eight int16, 128 a step, linear between entries. */
static inline int16x8_t glow_a64_lstm_lookup(const int16_t *table, int16x8_t v) {
  const uint16x8_t at = vshrq_n_u16(veorq_u16(vreinterpretq_u16_s16(v), vdupq_n_u16(0x8000u)), 7);
  register int16x8_t first __asm__("v20"); /* neighbours, as LD2 wants them */
  register int16x8_t second __asm__("v21");
  uint64_t place;
  __asm__(GLOW_A64_LSTM_ENTRY("0") GLOW_A64_LSTM_ENTRY("1") GLOW_A64_LSTM_ENTRY("2") GLOW_A64_LSTM_ENTRY("3")
          GLOW_A64_LSTM_ENTRY("4") GLOW_A64_LSTM_ENTRY("5") GLOW_A64_LSTM_ENTRY("6") GLOW_A64_LSTM_ENTRY("7")
          : "=&w"(first), "=&w"(second), [place] "=&r"(place)
          : [table] "r"(table), [at] "w"(at)
          : "memory");
  const uint16x8_t part = vshlq_n_u16(vandq_u16(vreinterpretq_u16_s16(v), vdupq_n_u16(127u)), 8);
  return vaddq_s16(first, vqrdmulhq_s16(vsubq_s16(second, first), vreinterpretq_s16_u16(part)));
}

static inline int16x4_t glow_a64_lstm_cell(int16x4_t i, int16x4_t f, int16x4_t g, int16x4_t c) {
  return vqrshrn_n_s32(vaddq_s32(vmull_s16(f, c), vrshrq_n_s32(vmull_s16(i, g), 4)), 15);
}

static inline int16x4_t glow_a64_lstm_state(int16x4_t o, int16x4_t bent, float factor) {
  return vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vcvtq_f32_s32(vmull_s16(o, bent)), factor)));
}

/* Advances cells, whole eights of them, by their gates, and writes the codes of the first `cells`. */
static inline void glow_a64_lstm_cells(const int16_t *gates, int16_t *c, int8_t *out, int32_t cells, const int16_t *table,
                                       float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const int16x8x4_t four = vld4q_s16(gates + 4 * j);
    const int16x8_t i = glow_a64_lstm_lookup(table, four.val[0]);
    const int16x8_t o = glow_a64_lstm_lookup(table, four.val[1]);
    const int16x8_t f = glow_a64_lstm_lookup(table, four.val[2]);
    const int16x8_t g = glow_a64_lstm_lookup(table + 513, four.val[3]);
    const int16x8_t before = vld1q_s16(c + j);
    const int16x8_t cell = vcombine_s16(
        glow_a64_lstm_cell(vget_low_s16(i), vget_low_s16(f), vget_low_s16(g), vget_low_s16(before)),
        glow_a64_lstm_cell(vget_high_s16(i), vget_high_s16(f), vget_high_s16(g), vget_high_s16(before)));
    vst1q_s16(c + j, cell);
    const int16x8_t bent = glow_a64_lstm_lookup(table + 513, vqshlq_n_s16(cell, 1));
    const int16x8_t state = vcombine_s16(glow_a64_lstm_state(vget_low_s16(o), vget_low_s16(bent), factor),
                                         glow_a64_lstm_state(vget_high_s16(o), vget_high_s16(bent), factor));
    const int8x8_t codes = vqmovn_s16(vqaddq_s16(state, vdupq_n_s16((int16_t)zp)));
    if (j + 8 <= cells) {
      vst1_s8(out + j, codes);
    } else {
      memcpy(out + j, &codes, (size_t)(cells - j));
    }
  }
}

#endif
#endif
