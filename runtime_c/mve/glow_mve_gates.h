/* SPDX-License-Identifier: MIT-0 */
/* A step of an LSTM or GRU of codes (MVE): the gates of a cell at a time by VMLADAVA, then their functions, eight cells at a time.
 * Of a GRU that resets first four gates at a time, as of an LSTM: update of two cells, half of all apart, and reset of both; then new
 * of four.
 *
 * The weights are for each cell, first for the inputs and then for the state, per 16 codes 16 of each gate, then those of the codes
 * that are left. Codes are whole blocks, zeros at the end: what is read beside the weights of those that are left is in front of the
 * end of the words after them, which are for each cell biases and scales of the gates (input, output, forget, cell): two of an LSTM
 * for the inputs and two for the state, in turns; of a GRU (update, reset, new) of the inputs, new, (update, reset) of the state.
 */
#ifndef GLOW_MVE_GATES_H
#define GLOW_MVE_GATES_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

#define GLOW_MVE_GATES_SUM(step, sum, q) "vldrb.8 " q ", [r5], #" step "\n" "vmladava.s8 " sum ", q0, " q "\n"
/* What ends the gates of the cell before, a step at a time where a block waits for its loads: q5 and q6 times q3 and q7. The
 * assembler counts the steps. */
#define GLOW_MVE_GATES_STEP(number, text) ".if glow_step == " number "\n" text "\n.endif\n"
#define GLOW_MVE_GATES_STEPS                                                                                        \
  GLOW_MVE_GATES_STEP("0", "vcvt.f32.s32 q5, q5") GLOW_MVE_GATES_STEP("1", "vcvt.f32.s32 q6, q6")                   \
  GLOW_MVE_GATES_STEP("2", "vmul.f32 q5, q5, q3") GLOW_MVE_GATES_STEP("3", "vmul.f32 q6, q6, q7")                   \
  ".set glow_step, glow_step + 1\n"
#define GLOW_MVE_GATES_LEFT ".rept 4\n" GLOW_MVE_GATES_STEPS ".endr\n"
/* Their codes; between these steps what is next may be loaded, to q5 after the first. */
#define GLOW_MVE_GATES_WRITE(a, b, c)                                                                               \
  "vadd.f32 q6, q5, q6\n" a "vcvtn.s32.f32 q6, q6\n" b "vqmovnb.s32 q6, q6\n" c "vstrh.32 q6, [r11, q4, uxtw #1]\n"
#define GLOW_MVE_GRU_CODES(step, a, b, c) \
  "vldrb.8 q0, [r1], #16\n" GLOW_MVE_GATES_STEPS GLOW_MVE_GATES_SUM(step, a, "q1") GLOW_MVE_GATES_SUM(step, b, "q2") GLOW_MVE_GATES_SUM(step, c, "q1")
#define GLOW_MVE_LSTM_CODES(step, a, b, c, d) GLOW_MVE_GRU_CODES(step, a, b, c) GLOW_MVE_GATES_SUM(step, d, "q2")
/* Sums over inputs, or the state: so many blocks of 16 codes so many `times`, then `more` codes. */
#define GLOW_MVE_GATES_SUMS(label, codes, blocks, times, more, ...) \
  ".if " times " > 1\n" GLOW_MVE_GATES_LEFT "mov r7, #" times "\n" ".endif\n" label ": .rept " blocks "\n" codes("16", __VA_ARGS__) ".endr\n" \
  ".if " times " > 1\n" "subs r7, r7, #1\n" "bne.w " label "b\n" ".endif\n" \
  ".if " more "\n" codes(more, __VA_ARGS__) ".endif\n"
/* The gates of all cells, four rows of `cells`; r9: codes, r5: weights, r8: words, r11: gates, r3: cells, q4: distances of the
 * rows, P0: two lanes, lr: bytes from the gates before to the next. `sums` ends the gates of the cell before and leaves two sums of
 * every gate in q5 and q6, their scales in q3 and q7; in front of the first cell there are zeros in place of one. Further arguments
 * `...` are from [sp, #108]. */
#define GLOW_MVE_GATES(name, sums, ...)                                                                             \
  GLOW_MVE_FUNCTION void name(GLOW_MVE_UNUSED const int8_t *codes, GLOW_MVE_UNUSED const void *weights,             \
                              GLOW_MVE_UNUSED const void *words, GLOW_MVE_UNUSED int16_t *gates,                    \
                              GLOW_MVE_UNUSED int32_t cells __VA_ARGS__) {                                          \
    __asm__("push {r3-r11, lr}\n" "vpush {d8-d15}\n" "mov r9, r0\n" "mov r5, r1\n" "mov r8, r2\n" "mov r11, r3\n"   \
            "ldr r3, [sp, #104]\n" "movs r0, #0\n" "add r1, r3, r3\n" "add r2, r1, r3\n" "vmov d8, r0, r3\n"        \
            "vmov d9, r1, r2\n" "vdup.32 q5, r0\n" "vmov q6, q5\n" "vmov q3, q5\n" "vmov q7, q5\n" "mov lr, r0\n"   \
            "movs r0, #0xFF\n" "vmsr p0, r0\n" "5: mov r1, r9\n" ".set glow_step, 0\n" sums                         \
            "add r11, r11, lr\n" "mov lr, #2\n" "subs r3, r3, #1\n" "bne.w 5b\n"                                    \
            ".set glow_step, 0\n" GLOW_MVE_GATES_LEFT GLOW_MVE_GATES_WRITE("", "", "") "vpop {d8-d15}\n" "pop {r3-r11, pc}\n"); \
  }
#define GLOW_MVE_LSTM(name, blocks, times, more, past_blocks, past_times, past_more)                                \
  GLOW_MVE_GATES(name,                                                                                              \
    "ldm r8!, {r0, r2, r4, r6}\n"                                                                                   \
    GLOW_MVE_GATES_SUMS("1", GLOW_MVE_LSTM_CODES, blocks, times, more, "r0", "r2", "r4", "r6")                      \
    GLOW_MVE_GATES_LEFT GLOW_MVE_GATES_WRITE("", "", "")                                                            \
    "vmov d12, r0, r2\n" "vmov d13, r4, r6\n" "ldm r8!, {r0, r2, r4, r6}\n"                                         \
    GLOW_MVE_GATES_SUMS("2", GLOW_MVE_LSTM_CODES, past_blocks, past_times, past_more, "r0", "r2", "r4", "r6")       \
    "vmov d10, r0, r2\n" "vmov d11, r4, r6\n" "vldrw.32 q7, [r8], #16\n" "vldrw.32 q3, [r8], #16\n", )
/* What an LSTM's inputs of `steps` steps, `pitch` bytes apart, add to its gates: sums[cells][steps][4]. Each weight is read from
 * flash once for all of them: those of all cells are in front of those for the state. r10: weights, lr: codes of a step, r12:
 * steps. */
#define GLOW_MVE_LSTM_OWN(name, blocks, times, more, pitch)                                                         \
  GLOW_MVE_FUNCTION void name(GLOW_MVE_UNUSED const int8_t *codes, GLOW_MVE_UNUSED const void *weights,             \
                              GLOW_MVE_UNUSED const void *words, GLOW_MVE_UNUSED int32_t *sums,                     \
                              GLOW_MVE_UNUSED int32_t cells, GLOW_MVE_UNUSED int32_t steps) {                       \
    __asm__(".set glow_step, 4\n" "push {r3-r11, lr}\n" "mov r9, r0\n" "mov r10, r1\n" "mov r8, r2\n"               \
            "mov r11, r3\n" "ldr r3, [sp, #40]\n" "5: ldr r12, [sp, #44]\n" "mov lr, r9\n"                         \
            "6: mov r1, lr\n" "mov r5, r10\n" "ldm r8, {r0, r2, r4, r6}\n"                                         \
            GLOW_MVE_GATES_SUMS("1", GLOW_MVE_LSTM_CODES, blocks, times, more, "r0", "r2", "r4", "r6")              \
            "stm r11!, {r0, r2, r4, r6}\n" "add lr, lr, #" pitch "\n" "subs r12, r12, #1\n" "bne.w 6b\n"           \
            "mov r10, r5\n" "add r8, r8, #64\n" "subs r3, r3, #1\n" "bne.w 5b\n"                                    \
            "pop {r3-r11, pc}\n");                                                                                  \
  }
/* GLOW_MVE_LSTM with such sums of a step in place of inputs, `pitch` bytes from cell to cell. */
#define GLOW_MVE_LSTM_PAST(name, blocks, times, more)                                                               \
  GLOW_MVE_GATES(name,                                                                                              \
    "add r8, r8, #16\n" "ldm r8!, {r0, r2, r4, r6}\n"                                                               \
    GLOW_MVE_GATES_SUMS("2", GLOW_MVE_LSTM_CODES, blocks, times, more, "r0", "r2", "r4", "r6")                      \
    "ldrd r10, r12, [sp, #108]\n" GLOW_MVE_GATES_LEFT                                                               \
    GLOW_MVE_GATES_WRITE("vldrw.32 q7, [r8], #16\n" "vmov d10, r0, r2\n", "vmov d11, r4, r6\n", "vldrw.32 q3, [r8], #16\n") \
    "vldrw.32 q6, [r10]\n" "add r10, r10, r12\n" "str r10, [sp, #108]\n",                                           \
    , GLOW_MVE_UNUSED const int32_t *sums, GLOW_MVE_UNUSED int32_t pitch)
#define GLOW_MVE_GRU(name, blocks, times, more, past_blocks, past_times, past_more)                                 \
  GLOW_MVE_GATES(name,                                                                                              \
    "ldm r8!, {r0, r2, r4, r6, r10, r12}\n"                                                                         \
    GLOW_MVE_GATES_SUMS("1", GLOW_MVE_GRU_CODES, blocks, times, more, "r0", "r2", "r4")                             \
    GLOW_MVE_GATES_SUMS("2", GLOW_MVE_GRU_CODES, past_blocks, past_times, past_more, "r10", "r12", "r6")            \
    GLOW_MVE_GATES_LEFT                                                                                             \
    GLOW_MVE_GATES_WRITE("vldrw.32 q3, [r8], #16\n" "vmov d10, r0, r2\n", "vmov d11, r4, r6\n",                    \
                         "vpst\n" "vldrwt.32 q7, [r8], #8\n")                                                       \
    "vmov d12, r10, r12\n", ) /* 0 beside them */

/* A table of 513 entries at eight int16, 128 a step, linear between entries. Numbers beyond the last cell may be any: what is read
 * with them is in scratch, and every one has entries. */
GLOW_INLINE int16x8_t glow_mve_gates_lookup(const int16_t *table, int16x8_t x) {
  const uint16x8_t at = vshrq_n_u16(veorq_u16(vreinterpretq_u16_s16(x), vdupq_n_u16(0x8000u)), 7);
  const int16x8_t first = vldrhq_gather_shifted_offset_s16(table, at);
  const int16x8_t second = vldrhq_gather_shifted_offset_s16(table + 1, at);
  const uint16x8_t part = vshlq_n_u16(vandq_u16(vreinterpretq_u16_s16(x), vdupq_n_u16(127u)), 8);
  return vaddq_s16(first, vqrdmulhq_s16(vsubq_s16(second, first), vreinterpretq_s16_u16(part)));
}

GLOW_INLINE int32x4_t glow_mve_gates_state(int32x4_t product, float factor) {
  return vcvtnq_s32_f32(vmulq_n_f32(vcvtq_f32_s32(product), factor));
}

/* Writes the codes of states, even and odd ones. */
GLOW_INLINE void glow_mve_gates_codes(int8_t *out, int32x4_t even, int32x4_t odd, float factor, int32_t zp, mve_pred16_t lanes) {
  int16x8_t codes = vqmovnbq_s32(vuninitializedq_s16(), glow_mve_gates_state(even, factor));
  codes = vqaddq_n_s16(vqmovntq_s32(codes, glow_mve_gates_state(odd, factor)), (int16_t)zp);
  vstrbq_p_s16(out, vminq_s16(vmaxq_s16(codes, vdupq_n_s16(-128)), vdupq_n_s16(127)), lanes);
}

/* Advances `cells` cells by their gates, four rows of them, and writes their codes. */
GLOW_INLINE void glow_mve_lstm_cells(const int16_t *gates, int16_t *c, int8_t *out, int32_t cells, const int16_t *table,
                                     float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8, gates += 8, c += 8, out += 8) {
    const mve_pred16_t lanes = vctp16q((uint32_t)(cells - j));
    const int16x8_t i = glow_mve_gates_lookup(table, vldrhq_s16(gates));
    const int16x8_t o = glow_mve_gates_lookup(table, vldrhq_s16(gates + cells));
    const int16x8_t f = glow_mve_gates_lookup(table, vldrhq_s16(gates + 2 * cells));
    const int16x8_t g = glow_mve_gates_lookup(table + 513, vldrhq_s16(gates + 3 * cells));
    const int16x8_t before = vldrhq_s16(c);
    const int32x4_t even = vaddq_s32(vmullbq_int_s16(f, before), vrshrq_n_s32(vmullbq_int_s16(i, g), 4));
    const int32x4_t odd = vaddq_s32(vmulltq_int_s16(f, before), vrshrq_n_s32(vmulltq_int_s16(i, g), 4));
    const int16x8_t cell = vqrshrntq_n_s32(vqrshrnbq_n_s32(before, even, 15), odd, 15);
    vstrhq_p_s16(c, cell, lanes);
    const int16x8_t bent = glow_mve_gates_lookup(table + 513, vqshlq_n_s16(cell, 1));
    glow_mve_gates_codes(out, vmullbq_int_s16(o, bent), vmulltq_int_s16(o, bent), factor, zp, lanes);
  }
}

/* z h + (1 - z) n of 15 fraction bits, of even or odd lanes whose products they are. */
GLOW_INLINE int32x4_t glow_mve_gru_state(int32x4_t kept, int32x4_t taken, int32x4_t fresh) {
  return vaddq_s32(fresh, vsubq_s32(kept, taken));
}

/* Advances eight states, of which those in `lanes` are written. */
GLOW_INLINE void glow_mve_gru_advance(int16x8_t z, int16x8_t n, int16_t *state, int8_t *out, float factor, int32_t zp,
                                      mve_pred16_t lanes) {
  const int16x8_t h = vldrhq_s16(state);
  const int32x4_t even = glow_mve_gru_state(vmullbq_int_s16(z, h), vmullbq_int_s16(z, n), vshllbq_n_s16(n, 15));
  const int32x4_t odd = glow_mve_gru_state(vmulltq_int_s16(z, h), vmulltq_int_s16(z, n), vshlltq_n_s16(n, 15));
  const int16x8_t now = vrshrntq_n_s32(vrshrnbq_n_s32(h, even, 15), odd, 15);
  vstrhq_p_s16(state, now, lanes);
  glow_mve_gates_codes(out, vmovlbq_s16(now), vmovltq_s16(now), factor, zp, lanes);
}

GLOW_INLINE void glow_mve_gru_cells(const int16_t *gates, int16_t *state, int8_t *out, int32_t cells, const int16_t *table,
                                    float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8, gates += 8, state += 8, out += 8) {
    const mve_pred16_t lanes = vctp16q((uint32_t)(cells - j));
    const int16x8_t z = glow_mve_gates_lookup(table, vldrhq_s16(gates));
    const int16x8_t r = glow_mve_gates_lookup(table, vldrhq_s16(gates + cells));
    const int16x8_t past = vqrdmulhq_s16(r, vldrhq_s16(gates + 3 * cells));
    const int16x8_t sum = vqaddq_s16(vldrhq_s16(gates + 2 * cells), past);
    const int16x8_t n = glow_mve_gates_lookup(table + 513, vqshlq_n_s16(sum, 1));
    glow_mve_gru_advance(z, n, state, out, factor, zp, lanes);
  }
}

/* The codes of states. */
GLOW_INLINE void glow_mve_gru_codes(const int16_t *state, int8_t *out, int32_t cells, float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const mve_pred16_t lanes = vctp16q((uint32_t)(cells - j));
    const int16x8_t s = vldrhq_s16(state + j);
    glow_mve_gates_codes(out + j, vmovlbq_s16(s), vmovltq_s16(s), factor, zp, lanes);
  }
}

/* The codes of states that the reset gates leave. */
GLOW_INLINE void glow_mve_gru_kept(const int16_t *reset, const int16_t *state, int8_t *out, int32_t cells, const int16_t *table,
                                   float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const mve_pred16_t lanes = vctp16q((uint32_t)(cells - j));
    const int16x8_t r = glow_mve_gates_lookup(table, vldrhq_s16(reset + j));
    const int16x8_t kept = vqrdmulhq_s16(r, vldrhq_s16(state + j));
    glow_mve_gates_codes(out + j, vmovlbq_s16(kept), vmovltq_s16(kept), factor, zp, lanes);
  }
}

/* Advances states by their update and new gates. */
GLOW_INLINE void glow_mve_gru_update(const int16_t *update, const int16_t *fresh, int16_t *state, int8_t *out, int32_t cells,
                                     const int16_t *table, float factor, int32_t zp) {
  for (int32_t j = 0; j < cells; j += 8) {
    const mve_pred16_t lanes = vctp16q((uint32_t)(cells - j));
    const int16x8_t z = glow_mve_gates_lookup(table, vldrhq_s16(update + j));
    const int16x8_t n = glow_mve_gates_lookup(table + 513, vldrhq_s16(fresh + j));
    glow_mve_gru_advance(z, n, state + j, out + j, factor, zp, lanes);
  }
}

#endif

#endif
