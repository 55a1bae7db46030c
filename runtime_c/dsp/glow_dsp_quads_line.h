/* SPDX-License-Identifier: MIT-0 */
/* Products of four pixels, and of several times four, whose codes are lines of the sums (glow_dsp_quad.h, glow_dsp_quads.h;
 * glow_dsp.h).
 *
 * The stream has, per pair of channels, dual: begin of the odd channel, two multipliers, begin of the even one, the words of
 * the steps. `out_zp` is start: the zero point and a half, with their fraction. A pair that has no lines is told by its
 * second word, which is then 2^29 or more: bias of the odd channel, two float32 scales, 256 times bias of the even one. */
#ifndef GLOW_DSP_QUADS_LINE_H
#define GLOW_DSP_QUADS_LINE_H

#include "glow_dsp_quads.h"

#define GLOW_DSP_LINE_MUL_BITS 29

#if GLOW_DSP_ASM
#define GLOW_DSP_QUAD_FRAME_LINE GLOW_DSP_QUAD_FRAME_F32
#if __ARM_ARCH >= 8
#define GLOW_DSP_QUAD_BEGIN_LINE "vldmia r1!, {s5-s7}\n" "ldr r7, [r1], #4\n" "movs r11, #0\n"
#else
#define GLOW_DSP_HEAD_LINE_DUAL "vldmia r1!, {s5-s7}\n" "ldmia.w r1!, {r7, lr}\n" "movs r11, #0\n"
#endif
#define GLOW_DSP_LINE_ODD(a) "add.w " a ", r12, " a ", lsl #" GLOW_TEXT(GLOW_DSP_LINE_SHIFT) "\n"
#define GLOW_DSP_LINE_CODE(a) "ssat " a ", #8, " a ", asr #" GLOW_TEXT(GLOW_DSP_LINE_FRACTION) "\n"
#define GLOW_DSP_LINE_REAL(a) "add.w " a ", r0, " a ", lsl #" GLOW_TEXT(GLOW_DSP_LINE_FRACTION) "\n"
#define GLOW_DSP_LINE_EVENS(code) code("r4") code("r5") code("r6") code("r7")
#define GLOW_DSP_LINE_ODDS(code) code("r8") code("r9") code("r10") code("r11")
/* The sums of eight outputs to codes: two bytes of r4 to r7 are those of a pixel. */
#define GLOW_DSP_QUAD_LINE(limits) \
  "vmov r2, r3, s6, s7\n" "ldr.w r0, [sp, #20]\n" "vmov r12, s5\n" \
  GLOW_DSP_QUAD_SPLIT_DUAL \
  "cmp.w r2, #1 << " GLOW_TEXT(GLOW_DSP_LINE_MUL_BITS) "\n" \
  "bhs.w 9f\n" \
  GLOW_DSP_LINE_ODDS(GLOW_DSP_LINE_ODD) \
  "smmla r4, r4, r2, r0\n" "smmla r5, r5, r2, r0\n" "smmla r6, r6, r2, r0\n" "smmla r7, r7, r2, r0\n" \
  "smmla r8, r8, r3, r0\n" "smmla r9, r9, r3, r0\n" "smmla r10, r10, r3, r0\n" "smmla r11, r11, r3, r0\n" \
  "8:\n" \
  GLOW_DSP_LINE_EVENS(GLOW_DSP_LINE_CODE) GLOW_DSP_LINE_ODDS(GLOW_DSP_LINE_CODE) \
  GLOW_DSP_QUAD_PAIRS limits
/* Those of a pair that has no lines, with the same fraction. */
#define GLOW_DSP_LINE_APART \
  "9:\n" \
  "add r8, r8, r12\n" "add r9, r9, r12\n" "add r10, r10, r12\n" "add r11, r11, r12\n" \
  GLOW_DSP_QUAD_REALS(DUAL) \
  "vmov r4, r8, s8, s9\n" "vmov r5, r9, s10, s11\n" "vmov r6, r10, s12, s13\n" "vmov r7, r11, s14, s15\n" \
  GLOW_DSP_LINE_EVENS(GLOW_DSP_LINE_REAL) GLOW_DSP_LINE_ODDS(GLOW_DSP_LINE_REAL) \
  "b.w 8b\n"
#define GLOW_DSP_QUAD_TO_LINES(name, limits) \
  GLOW_DSP_QUAD_FUNCTION(name, LINE, DUAL, GLOW_DSP_QUAD_LINE(limits) GLOW_DSP_QUAD_STORE("r4", "r5", "r6", "r7"), \
                         GLOW_DSP_LINE_APART)
#else /* the same in C */
GLOW_DSP_UNUSED static void glow_dsp_quad_line_twin(const glow_dsp_quad_t *q) {
  const uint32_t *w = q->stream;
  const int32_t steps = (int32_t)((q->acts_end - q->acts) / 4);
  for (int32_t b = 0; b < q->blocks; b++, w += 4 + steps) {
    for (int32_t pixel = 0; pixel < 4; pixel++) {
      int32_t sums[2] = {(int32_t)w[3], 0}; /* 256 * even + odd, odd */
      for (int32_t i = 0; i < steps; i++) {
        sums[0] = glow_dsp_smlad(q->acts[4 * i + pixel], w[4 + i], sums[0]);
        sums[1] = glow_dsp_smlad(q->acts[4 * i + pixel], glow_sxtab16(0u, w[4 + i]), sums[1]);
      }
      sums[0] = (int32_t)((uint32_t)sums[0] - (uint32_t)sums[1]);
      const int line = w[1] >> GLOW_DSP_LINE_MUL_BITS == 0u;
      for (int32_t i = 0; i < 2; i++) {
        int32_t value;
        if (line) {
          const int32_t sum = i == 0 ? sums[0] : (int32_t)(w[0] + ((uint32_t)sums[1] << GLOW_DSP_LINE_SHIFT));
          value = (int32_t)((int64_t)sum * (int32_t)w[1 + i] >> 32);
        } else {
          float scale;
          memcpy(&scale, &w[1 + i], sizeof scale);
          const int32_t sum = i == 0 ? sums[0] / 256 : sums[1] + (int32_t)w[0];
          value = glow_requant(sum, scale, 0, -1048576, 1048575) * (1 << GLOW_DSP_LINE_FRACTION);
        }
        q->out[pixel][2 * b + i] = (int8_t)glow_clamp((q->out_zp + value) >> GLOW_DSP_LINE_FRACTION,
                                                      glow_first8(q->low), glow_first8(q->high));
      }
    }
  }
}
#define GLOW_DSP_QUAD_TO_LINES(name, limits) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_quad_t *q) { glow_dsp_quad_line_twin(q); }
#endif
#if GLOW_DSP_ASM && (GLOW_DSP_QUAD_WORDS == 12 || __ARM_ARCH >= 8)
#define GLOW_DSP_QUADS_TO_LINES(name, limits, one) \
  GLOW_DSP_QUADS_FUNCTION(name, LINE, DUAL, GLOW_DSP_QUAD_LINE(limits) GLOW_DSP_QUADS_STORE("r4", "r5", "r6", "r7"), \
                          GLOW_DSP_LINE_APART)
#else
#define GLOW_DSP_QUADS_TO_LINES(name, limits, one) GLOW_DSP_QUADS_BY_ONES(name, one)
#endif

GLOW_DSP_QUAD_TO_LINES(glow_dsp_quad_line_n8, GLOW_DSP_QUAD_NO_LIMITS)
GLOW_DSP_QUAD_TO_LINES(glow_dsp_quad_line_s8, GLOW_DSP_QUAD_LIMITS)
GLOW_DSP_QUADS_TO_LINES(glow_dsp_quads_line_n8, GLOW_DSP_QUAD_NO_LIMITS, glow_dsp_quad_line_n8)
GLOW_DSP_QUADS_TO_LINES(glow_dsp_quads_line_s8, GLOW_DSP_QUAD_LIMITS, glow_dsp_quad_line_s8)

#endif
