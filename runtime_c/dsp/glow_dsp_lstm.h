/* SPDX-License-Identifier: MIT-0 */
/* A step of an LSTM of codes, for CPUs with the DSP extension and an FPU.
 *
 * The stream has for each cell, first for the inputs and then for the state: four words of biases, units of eight inputs, four
 * scales. A unit is twice four words: the weights of two inputs for the gates input and output, for forget and cell, then the same
 * of the next two. A halfword is 256 * weight of the first gate + weight of the second: SMLAD sums 256 * first + second, then, after
 * SXTB16, second alone. The compiler proved that |first sum with bias| < 2^23. Biases: 256 * first + second of both pairs, then
 * second of both.
 */
#ifndef GLOW_DSP_LSTM_H
#define GLOW_DSP_LSTM_H

#include "glow_dsp.h"
#include "glow_gates.h"

/* The assembly knows the offsets of the members. */
typedef struct {
  const int16_t *acts;    /* 0: inputs, then the state, each a whole number of units */
  const int16_t *past;    /* 4: the state */
  const int16_t *end;     /* 8 */
  const uint32_t *stream; /* 12 */
  int16_t *cell;          /* 16 */
  int8_t *out;            /* 20 */
  int8_t *out_end;        /* 24 */
  const int16_t *sigmoid; /* 28: the middles of the tables */
  const int16_t *tangent; /* 32 */
  float factor;           /* 36 */
  int32_t zp;             /* 40 */
} glow_dsp_lstm_t;

#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_lstm_t, acts, 0); GLOW_AT(glow_dsp_lstm_t, past, 4); GLOW_AT(glow_dsp_lstm_t, end, 8);
GLOW_AT(glow_dsp_lstm_t, stream, 12); GLOW_AT(glow_dsp_lstm_t, cell, 16); GLOW_AT(glow_dsp_lstm_t, out, 20);
GLOW_AT(glow_dsp_lstm_t, out_end, 24); GLOW_AT(glow_dsp_lstm_t, sigmoid, 28); GLOW_AT(glow_dsp_lstm_t, tangent, 32);
GLOW_AT(glow_dsp_lstm_t, factor, 36); GLOW_AT(glow_dsp_lstm_t, zp, 40);

#define GLOW_DSP_LSTM_HALF(a, b) \
  "ldmia.w r1!, {r8-r11}\n" \
  "smlad r4, " a ", r8, r4\n" "smlad r5, " a ", r9, r5\n" "smlad r4, " b ", r10, r4\n" "smlad r5, " b ", r11, r5\n" \
  "sxtb16 r8, r8\n" "sxtb16 r9, r9\n" "sxtb16 r10, r10\n" "sxtb16 r11, r11\n" \
  "smlad r6, " a ", r8, r6\n" "smlad r7, " a ", r9, r7\n" "smlad r6, " b ", r10, r6\n" "smlad r7, " b ", r11, r7\n"
#define GLOW_DSP_LSTM_UNIT "ldmia.w r0!, {r2, r3, r12, lr}\n" GLOW_DSP_LSTM_HALF("r2", "r3") GLOW_DSP_LSTM_HALF("r12", "lr")
/* Sums of the inputs from r0 to the place in `end`, `units` at a time, times their scales in s4-s7. */
#define GLOW_DSP_LSTM_SUMS(label, units, end) \
  "ldmia.w r1!, {r4-r7}\n" \
  label ": .rept " units "\n" GLOW_DSP_LSTM_UNIT ".endr\n" \
  "vmov r2, " end "\n" "cmp r0, r2\n" "bne.w " label "b\n" \
  "sub r4, r4, r6\n" "sub r5, r5, r7\n" "vmov s4, s5, r4, r6\n" "vmov s6, s7, r5, r7\n" \
  "vcvt.f32.s32 s4, s4, #8\n" "vcvt.f32.s32 s5, s5\n" "vcvt.f32.s32 s6, s6, #8\n" "vcvt.f32.s32 s7, s7\n" \
  "vldmia r1!, {s8-s11}\n" "vmul.f32 s4, s4, s8\n" "vmul.f32 s5, s5, s9\n" "vmul.f32 s6, s6, s10\n" "vmul.f32 s7, s7, s11\n"
/* a table whose middle is at `table`, at x; uses r2, r3; 64 is in r9 */
#define GLOW_DSP_LSTM_LOOKUP(x, table) \
  "asr r2, " x ", #7\n" "ldr.w r2, [" table ", r2, lsl #1]\n" "and " x ", " x ", #127\n" "rsb r3, " x ", #128\n" \
  "pkhbt r3, r3, " x ", lsl #16\n" "smlad " x ", r2, r3, r9\n" "asr " x ", " x ", #7\n"

/* All cells of a step; so many units of inputs, of states at a time. */
#define GLOW_DSP_LSTM(name, units, past_units) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_lstm_t *d) { \
    __asm__ volatile( \
        ".syntax unified\n" \
        "push {r4-r11, lr}\n" \
        "vmov s0, r0\n" \
        "ldrd r2, r3, [r0, #4]\n" "vmov s1, s2, r2, r3\n" \
        "ldrd r1, r4, [r0, #12]\n" "ldrd r5, r6, [r0, #20]\n" \
        "vmov s3, r4\n" "vmov s12, s13, r5, r6\n" \
        "5: vmov r0, s0\n" "ldr r0, [r0]\n" \
        GLOW_DSP_LSTM_SUMS("1", units, "s1") \
        "vmov.f32 s14, s4\n" "vmov.f32 s15, s5\n" "vpush {s6-s7}\n" \
        GLOW_DSP_LSTM_SUMS("2", past_units, "s2") \
        "vpop {s8-s9}\n" \
        "vadd.f32 s4, s14, s4\n" "vadd.f32 s5, s15, s5\n" "vadd.f32 s6, s8, s6\n" "vadd.f32 s7, s9, s7\n" \
        "vcvtr.s32.f32 s4, s4\n" "vcvtr.s32.f32 s5, s5\n" "vcvtr.s32.f32 s6, s6\n" "vcvtr.s32.f32 s7, s7\n" \
        "vmov r4, r5, s4, s5\n" "vmov r6, r7, s6, s7\n" \
        "ssat r4, #16, r4\n" "ssat r5, #16, r5\n" "ssat r6, #16, r6\n" "ssat r7, #16, r7\n" \
        "vmov r0, s0\n" "ldrd r8, lr, [r0, #28]\n" "mov r9, #64\n" \
        GLOW_DSP_LSTM_LOOKUP("r4", "r8") GLOW_DSP_LSTM_LOOKUP("r5", "r8") GLOW_DSP_LSTM_LOOKUP("r6", "r8") \
        GLOW_DSP_LSTM_LOOKUP("r7", "lr") \
        "vmov r10, s3\n" "mul r4, r4, r7\n" "ldrsh r11, [r10]\n" "add r4, r4, #8\n" "asr r4, r4, #4\n" \
        "mla r4, r6, r11, r4\n" "add r4, r4, #16384\n" "asr r4, r4, #15\n" "ssat r4, #16, r4\n" \
        "strh r4, [r10], #2\n" "vmov s3, r10\n" "lsl r4, r4, #1\n" "ssat r4, #16, r4\n" \
        GLOW_DSP_LSTM_LOOKUP("r4", "lr") \
        "mul r4, r4, r5\n" "vmov s4, r4\n" "vldr s5, [r0, #36]\n" "vcvt.f32.s32 s4, s4\n" "vmul.f32 s4, s4, s5\n" \
        "vcvtr.s32.f32 s4, s4\n" "vmov r4, s4\n" "ldr r5, [r0, #40]\n" "qadd r4, r4, r5\n" "ssat r4, #8, r4\n" \
        "vmov r2, r3, s12, s13\n" "strb r4, [r2], #1\n" "vmov s12, r2\n" "cmp r2, r3\n" "bne.w 5b\n" \
        "pop {r4-r11, pc}\n"); \
  }
#else /* the same in C */

/* The sums of a cell over `count` inputs, times their scales; returns the place after them. */
GLOW_INLINE const uint32_t *glow_dsp_lstm_sums(const uint32_t *stream, const int16_t *acts, int32_t count, float *sums) {
  int32_t second[2] = {(int32_t)stream[2], (int32_t)stream[3]};
  uint32_t both[2] = {stream[0], stream[1]};
  stream += 4;
  for (int32_t i = 0; i < count; i += 2, stream += 2) {
    const uint32_t pair = (uint32_t)(uint16_t)acts[i] | ((uint32_t)(uint16_t)acts[i + 1] << 16);
    for (int32_t g = 0; g < 2; g++) {
      both[g] = (uint32_t)glow_dsp_smlad(pair, stream[g], (int32_t)both[g]);
      second[g] = glow_dsp_smlad(pair, glow_sxtab16(0u, stream[g]), second[g]);
    }
  }
  float scales[4];
  memcpy(scales, stream, sizeof scales);
  for (int32_t g = 0; g < 2; g++) {
    sums[2 * g] = glow_rounded((float)((int32_t)(both[g] - (uint32_t)second[g]) / 256) * scales[2 * g]);
    sums[2 * g + 1] = glow_rounded((float)second[g] * scales[2 * g + 1]);
  }
  return stream + 4;
}

GLOW_INLINE void glow_dsp_lstm_twin(const glow_dsp_lstm_t *d) {
  const uint32_t *stream = d->stream;
  int16_t *cell = d->cell;
  for (int8_t *out = d->out; out != d->out_end; out++, cell++) {
    float own[4];
    float past[4];
    int32_t gate[4];
    stream = glow_dsp_lstm_sums(stream, d->acts, (int32_t)(d->past - d->acts), own);
    stream = glow_dsp_lstm_sums(stream, d->past, (int32_t)(d->end - d->past), past);
    for (int32_t k = 0; k < 4; k++) {
      gate[k] = glow_round_clamp(own[k] + past[k], 0, INT16_MIN, INT16_MAX);
    }
    *out = (int8_t)glow_lstm_cell(gate, cell, d->sigmoid - 256, d->tangent - 256, d->factor, d->zp);
  }
}
#define GLOW_DSP_LSTM(name, units, past_units) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_lstm_t *d) { glow_dsp_lstm_twin(d); }
#endif

GLOW_INLINE void glow_dsp_lstm_expand(int16_t *to, const int8_t *from, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    to[i] = from[i];
  }
}

#endif
