/* SPDX-License-Identifier: MIT-0 */
/* A step of an LSTM of codes (MVE): the four gates of a cell at a time by VMLADAVA, then their functions, eight cells at a time.
 *
 * The stream has for each cell, first for the inputs and then for the state: four biases, per 16 codes 4 x 16 weights, for eight
 * more 4 x 8, four scales. Gates are in the order input, output, forget, cell.
 */
#ifndef GLOW_MVE_LSTM_H
#define GLOW_MVE_LSTM_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

/* The assembly knows the offsets of the members. */
typedef struct {
  const int8_t *x;     /* 0: codes of the inputs, whole groups of eight */
  int32_t x_blocks;    /* 4: of 16 */
  int32_t x_half;      /* 8: 1, where eight more follow */
  const int8_t *h;     /* 12: the same of the state */
  int32_t h_blocks;    /* 16 */
  int32_t h_half;      /* 20 */
  const void *stream;  /* 24 */
  int16_t *gates;      /* 28: four rows of `cells` */
  int32_t cells;       /* 32 */
} glow_mve_lstm_t;
GLOW_AT(glow_mve_lstm_t, x, 0); GLOW_AT(glow_mve_lstm_t, x_blocks, 4); GLOW_AT(glow_mve_lstm_t, x_half, 8);
GLOW_AT(glow_mve_lstm_t, h, 12); GLOW_AT(glow_mve_lstm_t, h_blocks, 16); GLOW_AT(glow_mve_lstm_t, h_half, 20);
GLOW_AT(glow_mve_lstm_t, stream, 24); GLOW_AT(glow_mve_lstm_t, gates, 28); GLOW_AT(glow_mve_lstm_t, cells, 32);

#define GLOW_MVE_LSTM_FOUR(load, step, mla) \
  load " q0, [r1], #" step "\n" load " q1, [r5], #" step "\n" mla " r0, q0, q1\n" load " q2, [r5], #" step "\n" \
  mla " r2, q0, q2\n" load " q1, [r5], #" step "\n" mla " r4, q0, q1\n" load " q2, [r5], #" step "\n" mla " r6, q0, q2\n"
/* The sums over the codes at `from`, scaled, in q0. */
#define GLOW_MVE_LSTM_SUMS(from, half, one, two, three) \
  "ldrd r1, r3, [r9, #" from "]\n" "ldr r7, [r9, #" half "]\n" "ldm r5!, {r0, r2, r4, r6}\n" "wls lr, r3, " two "f\n" \
  one ": " GLOW_MVE_LSTM_FOUR("vldrb.8", "16", "vmladava.s8") "le lr, " one "b\n" \
  two ": cbz r7, " three "f\n" GLOW_MVE_LSTM_FOUR("vldrb.s16", "8", "vmladava.s16") \
  three ": vmov d0, r0, r2\n" "vmov d1, r4, r6\n" "vcvt.f32.s32 q0, q0\n" "vldrw.32 q1, [r5], #16\n" "vmul.f32 q0, q0, q1\n"

/* The gates of all cells. */
GLOW_MVE_FUNCTION void glow_mve_lstm_gates(GLOW_MVE_UNUSED const glow_mve_lstm_t *d) {
  __asm__(
      "push {r3-r11, lr}\n" "vpush {d8-d13}\n" "mov r9, r0\n"
      "ldrd r5, r11, [r9, #24]\n" "ldr r8, [r9, #32]\n"
      "movs r0, #0\n" "add r1, r8, r8\n" "add r2, r1, r8\n" "vmov d8, r0, r8\n" "vmov d9, r1, r2\n"
      "movw r0, #0x8000\n" "movt r0, #0xFFFF\n" "vdup.32 q5, r0\n" "movw r0, #0x7FFF\n" "vdup.32 q6, r0\n"
      "1:\n" GLOW_MVE_LSTM_SUMS("0", "8", "2", "3", "4")
      "vmov q3, q0\n" GLOW_MVE_LSTM_SUMS("12", "20", "5", "6", "7")
      "vadd.f32 q0, q3, q0\n" "vcvtn.s32.f32 q0, q0\n" "vmax.s32 q0, q0, q5\n" "vmin.s32 q0, q0, q6\n"
      "vstrh.32 q0, [r11, q4, uxtw #1]\n" "add r11, r11, #2\n" "subs r8, r8, #1\n" "bne 1b\n"
      "vpop {d8-d13}\n" "pop {r3-r11, pc}\n");
}

/* A table of 513 entries at eight int16, 128 a step, linear between entries. */
GLOW_INLINE int16x8_t glow_mve_lstm_lookup(const int16_t *table, int16x8_t x, mve_pred16_t lanes) {
  const uint16x8_t at = vshrq_n_u16(veorq_u16(vreinterpretq_u16_s16(x), vdupq_n_u16(0x8000u)), 7);
  const int16x8_t first = vldrhq_gather_shifted_offset_z_s16(table, at, lanes);
  const int16x8_t second = vldrhq_gather_shifted_offset_z_s16(table + 1, at, lanes);
  const uint16x8_t part = vshlq_n_u16(vandq_u16(vreinterpretq_u16_s16(x), vdupq_n_u16(127u)), 8);
  return vaddq_s16(first, vqrdmulhq_s16(vsubq_s16(second, first), vreinterpretq_s16_u16(part)));
}

GLOW_INLINE int32x4_t glow_mve_lstm_state(int32x4_t product, float factor) {
  return vcvtnq_s32_f32(vmulq_n_f32(vcvtq_f32_s32(product), factor));
}

/* Advances `cells` cells by their gates, four rows of them, and writes their codes. */
GLOW_INLINE void glow_mve_lstm_cells(const int16_t *gates, int16_t *c, int8_t *out, int32_t cells, const int16_t *table,
                                     float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8, gates += 8, c += 8, out += 8) {
    const mve_pred16_t lanes = vctp16q((uint32_t)(cells - j));
    const int16x8_t i = glow_mve_lstm_lookup(table, vldrhq_z_s16(gates, lanes), lanes);
    const int16x8_t o = glow_mve_lstm_lookup(table, vldrhq_z_s16(gates + cells, lanes), lanes);
    const int16x8_t f = glow_mve_lstm_lookup(table, vldrhq_z_s16(gates + 2 * cells, lanes), lanes);
    const int16x8_t g = glow_mve_lstm_lookup(table + 513, vldrhq_z_s16(gates + 3 * cells, lanes), lanes);
    const int16x8_t before = vldrhq_z_s16(c, lanes);
    const int32x4_t even = vaddq_s32(vmullbq_int_s16(f, before), vrshrq_n_s32(vmullbq_int_s16(i, g), 4));
    const int32x4_t odd = vaddq_s32(vmulltq_int_s16(f, before), vrshrq_n_s32(vmulltq_int_s16(i, g), 4));
    const int16x8_t cell = vqrshrntq_n_s32(vqrshrnbq_n_s32(before, even, 15), odd, 15);
    vstrhq_p_s16(c, cell, lanes);
    const int16x8_t bent = glow_mve_lstm_lookup(table + 513, vqshlq_n_s16(cell, 1), lanes);
    int16x8_t codes = vqmovnbq_s32(before, glow_mve_lstm_state(vmullbq_int_s16(o, bent), factor));
    codes = vqmovntq_s32(codes, glow_mve_lstm_state(vmulltq_int_s16(o, bent), factor));
    codes = vqaddq_n_s16(codes, (int16_t)zp);
    codes = vminq_s16(vmaxq_s16(codes, vdupq_n_s16(-128)), vdupq_n_s16(127));
    vstrbq_p_s16(out, codes, lanes);
  }
}

#endif

#endif
