/* SPDX-License-Identifier: MIT-0 */
/* The functions of the gates of LSTM and GRU layers of codes on Advanced SIMD of A64 and A32, eight cells at a time. */
#ifndef GLOW_NEON_GATES_H
#define GLOW_NEON_GATES_H

#include "glow_gates.h"

#if defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

/* Not contracted with what follows. */
static inline float32x4_t glow_neon_gates_product(float32x4_t x, float32x4_t y) {
  float32x4_t product = vmulq_f32(x, y);
  __asm__("" : "+w"(product));
  return product;
}

/* Rounds half to even, in the range of int16. */
static inline int16x4_t glow_neon_gates_round(float32x4_t v) {
#if defined(__aarch64__)
  return vqmovn_s32(vcvtnq_s32_f32(v));
#else
  const float32x4_t bounded = vminq_f32(vmaxq_f32(v, vdupq_n_f32(-32768.0f)), vdupq_n_f32(32767.0f));
  return vmovn_s32(vreinterpretq_s32_f32(vaddq_f32(bounded, vdupq_n_f32(12582912.0f)))); /* the low half of its bits */
#endif
}

#if defined(__aarch64__)
#define GLOW_A64_GATES_ENTRY(k) \
  "umov %w[place], %[at].h[" k "]\n" "add %[place], %[table], %[place], lsl #1\n" "ld2 {v20.h, v21.h}[" k "], [%[place]]\n"
/* Entries of a table and those after them. */
static inline int16x8x2_t glow_neon_gates_entries(const int16_t *table, uint16x8_t at) {
  register int16x8_t first __asm__("v20"); /* neighbours, as LD2 wants them */
  register int16x8_t second __asm__("v21");
  uint64_t place;
  __asm__(GLOW_A64_GATES_ENTRY("0") GLOW_A64_GATES_ENTRY("1") GLOW_A64_GATES_ENTRY("2") GLOW_A64_GATES_ENTRY("3")
          GLOW_A64_GATES_ENTRY("4") GLOW_A64_GATES_ENTRY("5") GLOW_A64_GATES_ENTRY("6") GLOW_A64_GATES_ENTRY("7")
          : "=&w"(first), "=&w"(second), [place] "=&r"(place)
          : [table] "r"(table), [at] "w"(at)
          : "memory");
  const int16x8x2_t found = {{first, second}};
  return found;
}
#else
static inline int16x8x2_t glow_neon_gates_entries(const int16_t *table, uint16x8_t at) {
  int16x8x2_t found = {{vdupq_n_s16(0), vdupq_n_s16(0)}};
  found = vld2q_lane_s16(table + vgetq_lane_u16(at, 0), found, 0);
  found = vld2q_lane_s16(table + vgetq_lane_u16(at, 1), found, 1);
  found = vld2q_lane_s16(table + vgetq_lane_u16(at, 2), found, 2);
  found = vld2q_lane_s16(table + vgetq_lane_u16(at, 3), found, 3);
  found = vld2q_lane_s16(table + vgetq_lane_u16(at, 4), found, 4);
  found = vld2q_lane_s16(table + vgetq_lane_u16(at, 5), found, 5);
  found = vld2q_lane_s16(table + vgetq_lane_u16(at, 6), found, 6);
  return vld2q_lane_s16(table + vgetq_lane_u16(at, 7), found, 7);
}
#endif

/* A table of 513 entries at eight int16, 128 a step, linear between entries. */
static inline int16x8_t glow_neon_gates_lookup(const int16_t *table, int16x8_t v) {
  const uint16x8_t at = vshrq_n_u16(veorq_u16(vreinterpretq_u16_s16(v), vdupq_n_u16(0x8000u)), 7);
  const int16x8x2_t found = glow_neon_gates_entries(table, at);
  const uint16x8_t part = vshlq_n_u16(vandq_u16(vreinterpretq_u16_s16(v), vdupq_n_u16(127u)), 8);
  const int16x8_t more = vqrdmulhq_s16(vsubq_s16(found.val[1], found.val[0]), vreinterpretq_s16_u16(part));
  return vaddq_s16(found.val[0], more);
}

/* The codes of eight states, of which the first `left` are written. */
static inline void glow_neon_gates_codes(int8_t *out, int32x4_t low, int32x4_t high, float factor, int32_t zp, int32_t left) {
  const int16x4_t first = glow_neon_gates_round(glow_neon_gates_product(vcvtq_f32_s32(low), vdupq_n_f32(factor)));
  const int16x4_t second = glow_neon_gates_round(glow_neon_gates_product(vcvtq_f32_s32(high), vdupq_n_f32(factor)));
  const int8x8_t codes = vqmovn_s16(vqaddq_s16(vcombine_s16(first, second), vdupq_n_s16((int16_t)zp)));
  if (left >= 8) {
    vst1_s8(out, codes);
  } else {
    memcpy(out, &codes, (size_t)left);
  }
}

static inline int16x4_t glow_neon_lstm_cell(int16x4_t i, int16x4_t f, int16x4_t g, int16x4_t c) {
  return vqrshrn_n_s32(vaddq_s32(vmull_s16(f, c), vrshrq_n_s32(vmull_s16(i, g), 4)), 15);
}

/* Advances cells, whole eights of them, by their gates, and writes the codes of the first `cells`. */
static inline void glow_neon_lstm_cells(const int16_t *gates, int16_t *c, int8_t *out, int32_t cells, const int16_t *table,
                                       float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const int16x8x4_t four = vld4q_s16(gates + 4 * j);
    const int16x8_t i = glow_neon_gates_lookup(table, four.val[0]);
    const int16x8_t o = glow_neon_gates_lookup(table, four.val[1]);
    const int16x8_t f = glow_neon_gates_lookup(table, four.val[2]);
    const int16x8_t g = glow_neon_gates_lookup(table + 513, four.val[3]);
    const int16x8_t before = vld1q_s16(c + j);
    const int16x8_t cell = vcombine_s16(
        glow_neon_lstm_cell(vget_low_s16(i), vget_low_s16(f), vget_low_s16(g), vget_low_s16(before)),
        glow_neon_lstm_cell(vget_high_s16(i), vget_high_s16(f), vget_high_s16(g), vget_high_s16(before)));
    vst1q_s16(c + j, cell);
    const int16x8_t bent = glow_neon_gates_lookup(table + 513, vqshlq_n_s16(cell, 1));
    const int32x4_t low = vmull_s16(vget_low_s16(o), vget_low_s16(bent));
    const int32x4_t high = vmull_s16(vget_high_s16(o), vget_high_s16(bent));
    glow_neon_gates_codes(out + j, low, high, factor, zp, cells - j);
  }
}

/* (z h + (1 - z) n) of 15 fraction bits. */
static inline int16x4_t glow_neon_gru_state(int16x4_t z, int16x4_t n, int16x4_t h) {
  return vrshrn_n_s32(vmlal_s16(vmlsl_s16(vshll_n_s16(n, 15), z, n), z, h), 15);
}

/* Advances eight states, of which the first `left` are written as codes. */
static inline void glow_neon_gru_advance(int16x8_t z, int16x8_t n, int16_t *state, int8_t *out, float factor, int32_t zp,
                                        int32_t left) {
  const int16x8_t before = vld1q_s16(state);
  const int16x4_t low = glow_neon_gru_state(vget_low_s16(z), vget_low_s16(n), vget_low_s16(before));
  const int16x4_t high = glow_neon_gru_state(vget_high_s16(z), vget_high_s16(n), vget_high_s16(before));
  vst1q_s16(state, vcombine_s16(low, high));
  glow_neon_gates_codes(out, vmovl_s16(low), vmovl_s16(high), factor, zp, left);
}

/* Advances states by their gates (update, reset, new of the inputs, new of the state). */
static inline void glow_neon_gru_cells(const int16_t *gates, int16_t *state, int8_t *out, int32_t cells, const int16_t *table,
                                      float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const int16x8x4_t four = vld4q_s16(gates + 4 * j);
    const int16x8_t z = glow_neon_gates_lookup(table, four.val[0]);
    const int16x8_t r = glow_neon_gates_lookup(table, four.val[1]);
    const int16x8_t sum = vqaddq_s16(four.val[2], vqrdmulhq_s16(r, four.val[3]));
    const int16x8_t n = glow_neon_gates_lookup(table + 513, vqshlq_n_s16(sum, 1));
    glow_neon_gru_advance(z, n, state + j, out + j, factor, zp, cells - j);
  }
}

/* The codes of states. */
static inline void glow_neon_gru_codes(const int16_t *state, int8_t *out, int32_t cells, float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const int16x8_t s = vld1q_s16(state + j);
    glow_neon_gates_codes(out + j, vmovl_s16(vget_low_s16(s)), vmovl_s16(vget_high_s16(s)), factor, zp, cells - j);
  }
}

/* The codes of states that the reset gates leave; gates are update and reset of each cell. */
static inline void glow_neon_gru_kept(const int16_t *gates, const int16_t *state, int8_t *out, int32_t cells, const int16_t *table,
                                     float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const int16x8_t r = glow_neon_gates_lookup(table, vld2q_s16(gates + 2 * j).val[1]);
    const int16x8_t kept = vqrdmulhq_s16(r, vld1q_s16(state + j));
    glow_neon_gates_codes(out + j, vmovl_s16(vget_low_s16(kept)), vmovl_s16(vget_high_s16(kept)), factor, zp, cells - j);
  }
}

/* Advances states by their update gates, every second one, and new gates. */
static inline void glow_neon_gru_update(const int16_t *gates, const int16_t *fresh, int16_t *state, int8_t *out, int32_t cells,
                                       const int16_t *table, float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const int16x8_t z = glow_neon_gates_lookup(table, vld2q_s16(gates + 2 * j).val[0]);
    const int16x8_t n = glow_neon_gates_lookup(table + 513, vld1q_s16(fresh + j));
    glow_neon_gru_advance(z, n, state + j, out + j, factor, zp, cells - j);
  }
}

#endif
#endif
