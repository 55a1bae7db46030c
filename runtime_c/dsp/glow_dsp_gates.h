/* SPDX-License-Identifier: MIT-0 */
/* A step of an LSTM or GRU of codes, for CPUs with the DSP extension and an FPU: one cell of an LSTM at a time, two of a GRU;
 * or four gates, of two cells or four of a GRU that resets first.
 *
 * The stream has for each step, first for the inputs and then for the state: starts of the sums, words for each two inputs, scales.
 * Gates go two by two: (input, output), (forget, cell) of an LSTM; (update, reset) of each cell, (new, new) of both of a GRU. Each
 * pair has a word for two inputs, a halfword of which is 256 * weight of the first + weight of the second: SMLAD sums
 * 256 * first + second, then, after SXTB16, second alone. The compiler proved that |first sum with bias| < 2^23. Starts:
 * 256 * first + second, second. Inputs are in the order in which SXTB16 yields them: of four bytes 0 and 2, then 1 and 3; the last
 * two, where no four are left, as they are.
 */
#ifndef GLOW_DSP_GATES_H
#define GLOW_DSP_GATES_H

#include "glow_dsp.h"
#include "glow_gates.h"

/* The assembly knows the offsets of the members. */
typedef struct {
  const int16_t *sigmoid; /* 0: the middles of the tables */
  const int16_t *tangent; /* 4 */
  int32_t half;           /* 8: 64 */
  int32_t high;           /* 12: 65535 */
  int32_t low;            /* 16: 128 */
  int32_t round;          /* 20: 16384 */
  const int16_t *acts;    /* 24: an even number of inputs, then the state */
  const int16_t *units;   /* 28: the end of whole eights of inputs */
  const int16_t *past;    /* 32: of the state */
  const uint32_t *stream; /* 36 */
  int16_t *cell;          /* 40 */
  int8_t *out;            /* 44 */
  int8_t *out_end;        /* 48 */
  float factor;           /* 52 */
  int32_t zp;             /* 56 */
  int32_t inputs;         /* 60 */
  int32_t states;         /* 64 */
} glow_dsp_gates_t;

#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_gates_t, sigmoid, 0); GLOW_AT(glow_dsp_gates_t, tangent, 4); GLOW_AT(glow_dsp_gates_t, half, 8);
GLOW_AT(glow_dsp_gates_t, high, 12); GLOW_AT(glow_dsp_gates_t, low, 16); GLOW_AT(glow_dsp_gates_t, round, 20);
GLOW_AT(glow_dsp_gates_t, acts, 24); GLOW_AT(glow_dsp_gates_t, units, 28); GLOW_AT(glow_dsp_gates_t, past, 32);
GLOW_AT(glow_dsp_gates_t, stream, 36); GLOW_AT(glow_dsp_gates_t, cell, 40); GLOW_AT(glow_dsp_gates_t, out, 44);
GLOW_AT(glow_dsp_gates_t, out_end, 48); GLOW_AT(glow_dsp_gates_t, factor, 52); GLOW_AT(glow_dsp_gates_t, zp, 56);

#define GLOW_DSP_GATES_PAIR(first, second, a, w) \
  "smlad " first ", " a ", " w ", " first "\n" "sxtb16 " w ", " w "\n" "smlad " second ", " a ", " w ", " second "\n"
/* Four inputs in a and b; eight; two. */
#define GLOW_DSP_LSTM_HALF(a, b) \
  "ldmia.w r1!, {r8-r11}\n" \
  "smlad r4, " a ", r8, r4\n" "smlad r6, " a ", r9, r6\n" "smlad r4, " b ", r10, r4\n" "smlad r6, " b ", r11, r6\n" \
  "sxtb16 r8, r8\n" "sxtb16 r9, r9\n" "sxtb16 r10, r10\n" "sxtb16 r11, r11\n" \
  "smlad r5, " a ", r8, r5\n" "smlad r7, " a ", r9, r7\n" "smlad r5, " b ", r10, r5\n" "smlad r7, " b ", r11, r7\n"
#define GLOW_DSP_LSTM_UNIT "ldmia.w r0!, {r2, r3, r12, lr}\n" GLOW_DSP_LSTM_HALF("r2", "r3") GLOW_DSP_LSTM_HALF("r12", "lr")
#define GLOW_DSP_LSTM_TWO \
  "ldr r2, [r0], #4\n" "ldmia.w r1!, {r8, r9}\n" \
  GLOW_DSP_GATES_PAIR("r4", "r5", "r2", "r8") GLOW_DSP_GATES_PAIR("r6", "r7", "r2", "r9")
#define GLOW_DSP_GRU_UNIT \
  "ldmia.w r0!, {r2, r3}\n" "ldmia.w r1!, {r10-r12, lr}\n" \
  GLOW_DSP_GATES_PAIR("r4", "r5", "r2", "r10") GLOW_DSP_GATES_PAIR("r6", "r7", "r2", "r11") \
  GLOW_DSP_GATES_PAIR("r8", "r9", "r2", "r12") GLOW_DSP_GATES_PAIR("r4", "r5", "r3", "lr") \
  "ldmia.w r1!, {r10-r12, lr}\n" \
  GLOW_DSP_GATES_PAIR("r6", "r7", "r3", "r10") GLOW_DSP_GATES_PAIR("r8", "r9", "r3", "r11") \
  "ldmia.w r0!, {r2, r3}\n" \
  GLOW_DSP_GATES_PAIR("r4", "r5", "r2", "r12") GLOW_DSP_GATES_PAIR("r6", "r7", "r2", "lr") \
  "ldmia.w r1!, {r10-r12, lr}\n" \
  GLOW_DSP_GATES_PAIR("r8", "r9", "r2", "r10") GLOW_DSP_GATES_PAIR("r4", "r5", "r3", "r11") \
  GLOW_DSP_GATES_PAIR("r6", "r7", "r3", "r12") GLOW_DSP_GATES_PAIR("r8", "r9", "r3", "lr")
#define GLOW_DSP_GRU_TWO \
  "ldr r2, [r0], #4\n" "ldmia.w r1!, {r10-r12}\n" GLOW_DSP_GATES_PAIR("r4", "r5", "r2", "r10") \
  GLOW_DSP_GATES_PAIR("r6", "r7", "r2", "r11") GLOW_DSP_GATES_PAIR("r8", "r9", "r2", "r12")
/* Sums over the inputs from r0: `units` of eight at a time, until the place in `end` where that is more than once, `more` twos. */
#define GLOW_DSP_GATES_SUMS(label, unit, two, units, again, more, end) \
  label ": .rept " units "\n" unit ".endr\n" \
  ".if " again "\n" "vmov r2, " end "\n" "cmp r0, r2\n" "bne.w " label "b\n" ".endif\n" ".rept " more "\n" two ".endr\n"
/* Two sums as floats in two registers of the FPU; and the products of two registers, or four. */
#define GLOW_DSP_GATES_FLOATS(first, second, a, b) \
  "sub " first ", " first ", " second "\n" "vmov " a ", " b ", " first ", " second "\n" \
  "vcvt.f32.s32 " a ", " a ", #8\n" "vcvt.f32.s32 " b ", " b "\n"
#define GLOW_DSP_GATES_TIMES(a, b, x, y) "vmul.f32 " a ", " a ", " x "\n" "vmul.f32 " b ", " b ", " y "\n"
/* The sums of the gates times their scales in a-d, and e and f. */
#define GLOW_DSP_LSTM_SUMS(label, units, again, more, end, a, b, c, d) \
  "ldmia.w r1!, {r4-r7}\n" GLOW_DSP_GATES_SUMS(label, GLOW_DSP_LSTM_UNIT, GLOW_DSP_LSTM_TWO, units, again, more, end) \
  GLOW_DSP_GATES_FLOATS("r4", "r5", a, b) GLOW_DSP_GATES_FLOATS("r6", "r7", c, d) "vldmia r1!, {s22-s25}\n" \
  GLOW_DSP_GATES_TIMES(a, b, "s22", "s23") GLOW_DSP_GATES_TIMES(c, d, "s24", "s25")
#define GLOW_DSP_GRU_SUMS(label, units, again, more, end, a, b, c, d, e, f) \
  "ldmia.w r1!, {r4-r9}\n" GLOW_DSP_GATES_SUMS(label, GLOW_DSP_GRU_UNIT, GLOW_DSP_GRU_TWO, units, again, more, end) \
  GLOW_DSP_GATES_FLOATS("r4", "r5", a, b) GLOW_DSP_GATES_FLOATS("r6", "r7", c, d) GLOW_DSP_GATES_FLOATS("r8", "r9", e, f) \
  "vldmia r1!, {s22-s27}\n" \
  GLOW_DSP_GATES_TIMES(a, b, "s22", "s23") GLOW_DSP_GATES_TIMES(c, d, "s24", "s25") GLOW_DSP_GATES_TIMES(e, f, "s26", "s27")
/* a table whose middle is at `table`, at x; uses r2, r3; half, high and low are in r10-r12 */
#define GLOW_DSP_GATES_LOOKUP(x, table) \
  "asr r2, " x ", #7\n" "ldr.w r2, [" table ", r2, lsl #1]\n" "and " x ", " x ", #127\n" "mla r3, " x ", r11, r12\n" \
  "smlad " x ", r2, r3, r10\n" "asr " x ", " x ", #7\n"
/* s0, r0: acts, s1: d, s2: units, s3: past, s12: cell, s13: out, s14: out_end, s15: factor, s28: zp, r1: stream */
#define GLOW_DSP_GATES_BEGIN \
  ".syntax unified\n" "push {r4-r11, lr}\n" "vpush {d8-d14}\n" \
  "ldrd r2, r3, [r0, #24]\n" "ldrd r4, r1, [r0, #32]\n" \
  "vmov s0, s1, r2, r0\n" "vmov s2, s3, r3, r4\n" "ldrd r4, r5, [r0, #40]\n" "ldrd r6, r7, [r0, #48]\n" \
  "vmov s12, s13, r4, r5\n" "vmov s14, s15, r6, r7\n" "vldr s28, [r0, #56]\n" "mov r0, r2\n" "5:\n"
/* Constants of the functions in r8-r12 and lr. */
#define GLOW_DSP_GATES_CONSTANTS "vmov lr, s1\n" "ldmia.w lr, {r8-r12, lr}\n"
/* The code of the state in r4, in r4; uses `other` */
#define GLOW_DSP_GATES_CODE(other) \
  "vmov s4, r4\n" "vcvt.f32.s32 s4, s4\n" "vmul.f32 s4, s4, s15\n" "vcvtr.s32.f32 s4, s4\n" "vmov r4, s4\n" \
  "vmov " other ", s28\n" "qadd r4, r4, " other "\n" "ssat r4, #8, r4\n"
#define GLOW_DSP_GATES_INT4(a, b, c, d) \
  "vcvtr.s32.f32 " a ", " a "\n" "vcvtr.s32.f32 " b ", " b "\n" "vcvtr.s32.f32 " c ", " c "\n" "vcvtr.s32.f32 " d ", " d "\n"
#define GLOW_DSP_GATES_SAT4 "ssat r4, #16, r4\n" "ssat r5, #16, r5\n" "ssat r6, #16, r6\n" "ssat r7, #16, r7\n"
#define GLOW_DSP_GATES_END "bne.w 5b\n" "vpop {d8-d14}\n" "pop {r4-r11, pc}\n"

/* Four gates, of sums over the inputs and the state, in r4-r7. */
#define GLOW_DSP_FOUR_GATES(units, again, more, past_units, past_again, past_more) \
  GLOW_DSP_LSTM_SUMS("1", units, again, more, "s2", "s16", "s17", "s18", "s19") \
  GLOW_DSP_LSTM_SUMS("2", past_units, past_again, past_more, "s3", "s4", "s5", "s6", "s7") \
  "vadd.f32 s4, s16, s4\n" "vadd.f32 s5, s17, s5\n" "vadd.f32 s6, s18, s6\n" "vadd.f32 s7, s19, s7\n" \
  GLOW_DSP_GATES_INT4("s4", "s5", "s6", "s7") "vmov r4, r5, s4, s5\n" "vmov r6, r7, s6, s7\n" GLOW_DSP_GATES_SAT4

/* All cells of a step; of inputs and of states so many units at a time, `again` 1 where there are more, and `more` twos. */
#define GLOW_DSP_LSTM(name, units, again, more, past_units, past_again, past_more) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gates_t *d) { \
    __asm__ volatile( \
        GLOW_DSP_GATES_BEGIN GLOW_DSP_FOUR_GATES(units, again, more, past_units, past_again, past_more) \
        GLOW_DSP_GATES_CONSTANTS \
        GLOW_DSP_GATES_LOOKUP("r4", "r8") GLOW_DSP_GATES_LOOKUP("r5", "r8") GLOW_DSP_GATES_LOOKUP("r6", "r8") \
        GLOW_DSP_GATES_LOOKUP("r7", "r9") \
        "mul r4, r4, r7\n" "vmov r0, r7, s12, s13\n" "ldrsh r2, [r0]\n" "add r4, r4, #8\n" "mla r6, r6, r2, lr\n" \
        "add r4, r6, r4, asr #4\n" "ssat r4, #16, r4, asr #15\n" "strh r4, [r0], #2\n" "ssat r4, #16, r4, lsl #1\n" \
        GLOW_DSP_GATES_LOOKUP("r4", "r9") \
        "mul r4, r4, r5\n" GLOW_DSP_GATES_CODE("r5") "strb r4, [r7], #1\n" \
        "vmov s12, s13, r0, r7\n" "vmov r2, s14\n" "vmov r0, s0\n" "cmp r7, r2\n" \
        GLOW_DSP_GATES_END); \
  }
/* `count` = out_end - out times four gates to `cell`, of sums over the inputs and the state; `out` is left alone. */
#define GLOW_DSP_FOUR(name, units, again, more, past_units, past_again, past_more) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gates_t *d) { \
    __asm__ volatile( \
        GLOW_DSP_GATES_BEGIN GLOW_DSP_FOUR_GATES(units, again, more, past_units, past_again, past_more) \
        "vmov r0, r2, s12, s13\n" "strh r4, [r0], #2\n" "strh r5, [r0], #2\n" "strh r6, [r0], #2\n" "strh r7, [r0], #2\n" \
        "add r2, r2, #1\n" "vmov s12, s13, r0, r2\n" "vmov r3, s14\n" "vmov r0, s0\n" "cmp r2, r3\n" \
        GLOW_DSP_GATES_END); \
  }
/* A state, at r0, by its gates (update, reset, new of the state, new of the inputs) in r4-r7; its code in r4 */
#define GLOW_DSP_GRU_STATE \
  GLOW_DSP_GATES_SAT4 GLOW_DSP_GATES_LOOKUP("r4", "r8") GLOW_DSP_GATES_LOOKUP("r5", "r8") \
  "mla r5, r5, r6, lr\n" "add r7, r7, r5, asr #15\n" "ssat r7, #16, r7, lsl #1\n" GLOW_DSP_GATES_LOOKUP("r7", "r9") \
  "ldrsh r5, [r0]\n" "sub r5, r5, r7\n" "mla r4, r4, r5, lr\n" "add r4, r7, r4, asr #15\n" "strh r4, [r0], #2\n" \
  GLOW_DSP_GATES_CODE("r5")
#define GLOW_DSP_GRU(name, units, again, more, past_units, past_again, past_more) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gates_t *d) { \
    __asm__ volatile( \
        GLOW_DSP_GATES_BEGIN \
        GLOW_DSP_GRU_SUMS("1", units, again, more, "s2", "s16", "s17", "s18", "s19", "s20", "s21") \
        GLOW_DSP_GRU_SUMS("2", past_units, past_again, past_more, "s3", "s4", "s5", "s6", "s7", "s8", "s9") \
        "vadd.f32 s4, s16, s4\n" "vadd.f32 s5, s17, s5\n" "vadd.f32 s6, s18, s6\n" "vadd.f32 s7, s19, s7\n" \
        GLOW_DSP_GATES_INT4("s4", "s5", "s6", "s7") "vcvtr.s32.f32 s11, s9\n" "vcvtr.s32.f32 s8, s8\n" \
        "vcvtr.s32.f32 s9, s20\n" "vcvtr.s32.f32 s10, s21\n" \
        GLOW_DSP_GATES_CONSTANTS \
        "vmov r4, r5, s4, s5\n" "vmov r6, r7, s8, s9\n" "vmov r0, s12\n" \
        GLOW_DSP_GRU_STATE "vmov r6, s13\n" "strb r4, [r6], #1\n" "vmov s13, r6\n" \
        "vmov r4, r5, s6, s7\n" "vmov r7, r6, s10, s11\n" \
        GLOW_DSP_GRU_STATE "vmov r6, r2, s13, s14\n" "cmp r6, r2\n" "it ne\n" "strbne r4, [r6], #1\n" \
        "vmov s12, s13, r0, r6\n" "vmov r0, s0\n" "cmp r6, r2\n" \
        GLOW_DSP_GATES_END); \
  }
#else /* the same in C */

/* The sums of `gates` gates over `count` inputs, times their scales; returns the place after them. */
GLOW_INLINE const uint32_t *glow_dsp_gates_sums(const uint32_t *stream, const int16_t *acts, int32_t count, int32_t gates,
                                                float *sums) {
  int32_t acc[6];
  float scales[6];
  memcpy(acc, stream, (size_t)gates * sizeof *acc);
  stream += gates;
  for (int32_t i = 0; i < count; i += 2) {
    const uint32_t pair = (uint32_t)(uint16_t)acts[i] | ((uint32_t)(uint16_t)acts[i + 1] << 16);
    for (int32_t g = 0; g < gates; g += 2, stream++) {
      acc[g] = glow_dsp_smlad(pair, *stream, acc[g]);
      acc[g + 1] = glow_dsp_smlad(pair, glow_sxtab16(0u, *stream), acc[g + 1]);
    }
  }
  memcpy(scales, stream, (size_t)gates * sizeof *scales);
  for (int32_t g = 0; g < gates; g += 2) {
    const int32_t first = (int32_t)((uint32_t)acc[g] - (uint32_t)acc[g + 1]) / 256;
    sums[g] = glow_rounded((float)first * scales[g]);
    sums[g + 1] = glow_rounded((float)acc[g + 1] * scales[g + 1]);
  }
  return stream + gates;
}

/* Gates from sums over inputs and state, the first ones of a cell. */
GLOW_INLINE void glow_dsp_gates_round(int32_t *gate, const float *own, const float *past, int32_t together) {
  for (int32_t k = 0; k < together; k++) {
    gate[k] = glow_round_clamp(own[k] + past[k], 0, INT16_MIN, INT16_MAX);
  }
}

GLOW_INLINE const uint32_t *glow_dsp_gates_both(const glow_dsp_gates_t *d, const uint32_t *stream, int32_t gates, float *own,
                                                float *past) {
  stream = glow_dsp_gates_sums(stream, d->acts, d->inputs, gates, own);
  return glow_dsp_gates_sums(stream, d->acts + d->inputs, d->states, gates, past);
}

GLOW_INLINE void glow_dsp_lstm_twin(const glow_dsp_gates_t *d) {
  const uint32_t *stream = d->stream;
  int16_t *cell = d->cell;
  for (int8_t *out = d->out; out != d->out_end; out++, cell++) {
    float own[4];
    float past[4];
    int32_t gate[4];
    stream = glow_dsp_gates_both(d, stream, 4, own, past);
    glow_dsp_gates_round(gate, own, past, 4);
    *out = (int8_t)glow_lstm_cell(gate, cell, d->sigmoid - 256, d->tangent - 256, d->factor, d->zp);
  }
}

GLOW_INLINE void glow_dsp_four_twin(const glow_dsp_gates_t *d) {
  const uint32_t *stream = d->stream;
  const int32_t count = (int32_t)(d->out_end - d->out);
  for (int32_t j = 0; j < count; j++) {
    float own[4];
    float past[4];
    int32_t gate[4];
    stream = glow_dsp_gates_both(d, stream, 4, own, past);
    glow_dsp_gates_round(gate, own, past, 4);
    for (int32_t k = 0; k < 4; k++) {
      d->cell[4 * j + k] = (int16_t)gate[k];
    }
  }
}

GLOW_INLINE void glow_dsp_gru_twin(const glow_dsp_gates_t *d) {
  const uint32_t *stream = d->stream;
  int16_t *cell = d->cell;
  for (int8_t *out = d->out; out != d->out_end;) {
    float own[6];
    float past[6];
    stream = glow_dsp_gates_both(d, stream, 6, own, past);
    for (int32_t k = 0; k < 2 && out != d->out_end; k++, out++, cell++) {
      int32_t gate[4];
      glow_dsp_gates_round(gate, own + 2 * k, past + 2 * k, 2);
      gate[2] = glow_round_clamp(own[4 + k], 0, INT16_MIN, INT16_MAX);
      gate[3] = glow_round_clamp(past[4 + k], 0, INT16_MIN, INT16_MAX);
      *out = (int8_t)glow_gru_cell(gate, cell, d->sigmoid - 256, d->tangent - 256, d->factor, d->zp);
    }
  }
}
#define GLOW_DSP_LSTM(name, units, again, more, past_units, past_again, past_more) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gates_t *d) { glow_dsp_lstm_twin(d); }
#define GLOW_DSP_FOUR(name, units, again, more, past_units, past_again, past_more) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gates_t *d) { glow_dsp_four_twin(d); }
#define GLOW_DSP_GRU(name, units, again, more, past_units, past_again, past_more) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gates_t *d) { glow_dsp_gru_twin(d); }
#endif

/* Expands codes to an even number. */
GLOW_INLINE void glow_dsp_gates_expand(int16_t *to, const int8_t *from, int32_t count) {
  uint32_t *words = (uint32_t *)(void *)to;
  for (; count > 2; count -= 4, from += 4, words += 2) {
    const uint32_t word = count >= 4 ? glow_load4(from) : glow_load_tail(from, count);
    words[0] = glow_sxtab16(0u, word);
    words[1] = glow_sxtab16_odd(0u, word);
  }
  if (count > 0) {
    const uint32_t word = glow_load_tail(from, count);
    words[0] = glow_sxtab16(0u, (word & 0xFFu) | (word >> 8 << 16));
  }
}

#endif
