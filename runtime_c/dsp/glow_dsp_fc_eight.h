/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layer: a row of inputs times blocks of eight outputs, the inputs expanded once for all eight.
 *
 * A block of the stream is two dual blocks of glow_dsp_gemm.h in one: the biases of both; per group of four inputs eight
 * words, inputs 0 and 2, then inputs 1 and 3, each with two words of the first block and two of the second; the scales
 * of both, or what glow_dsp_fc_q31.h has in their place. The zero point of the inputs is in the biases. There is at
 * least one group, and no tail.
 */
#ifndef GLOW_DSP_FC_EIGHT_H
#define GLOW_DSP_FC_EIGHT_H

#include "glow_dsp_fc.h"

typedef struct {
  const int8_t *in;
  const void *stream;
  int8_t *out;
  int32_t blocks, groups, out_zp;
} glow_dsp_eight_t;

#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_eight_t, in, 0); GLOW_AT(glow_dsp_eight_t, stream, 4); GLOW_AT(glow_dsp_eight_t, out, 8);
GLOW_AT(glow_dsp_eight_t, blocks, 12); GLOW_AT(glow_dsp_eight_t, groups, 16); GLOW_AT(glow_dsp_eight_t, out_zp, 20);

#define GLOW_DSP_EIGHT_WORDS "ldrd r8, r9, [r1], #8\n"
#define GLOW_DSP_EIGHT_HALF(x, a, b, c, d) \
  "smlad " a ", " x ", r8, " a "\n" "smlad " b ", " x ", r9, " b "\n" "sxtb16 r8, r8\n" "sxtb16 r9, r9\n" \
  "smlad " c ", " x ", r8, " c "\n" "smlad " d ", " x ", r9, " d "\n"
#define GLOW_DSP_EIGHT_FIRST(x) GLOW_DSP_EIGHT_HALF(x, "r4", "r5", "r6", "r7")
#define GLOW_DSP_EIGHT_SECOND(x) GLOW_DSP_EIGHT_HALF(x, "r10", "r11", "r12", "lr")
/* 124 bytes */
#define GLOW_DSP_EIGHT_GROUP \
  "ldr.w r2, [r0], #4\n" GLOW_DSP_EIGHT_WORDS "sxtb16 r3, r2\n" GLOW_DSP_EIGHT_FIRST("r3") \
  GLOW_DSP_EIGHT_WORDS GLOW_DSP_EIGHT_SECOND("r3") \
  GLOW_DSP_EIGHT_WORDS "sxtb16 r2, r2, ror #8\n" GLOW_DSP_EIGHT_FIRST("r2") \
  GLOW_DSP_EIGHT_WORDS GLOW_DSP_EIGHT_SECOND("r2")
/* `codes` ends four sums in r4-r7 by the zero point in r3; `keep` puts aside what it changes of the second four, and
 * `back` brings them to r4-r7. At sp: the end of the outputs, the zero point. s8: the next outputs, s9: the end of the
 * inputs, s10 and s11: the inputs and where the first ones enter the loop, so that whole rounds of four follow. */
#define GLOW_DSP_FC_EIGHT(codes, keep, back) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      "ldm r0, {r2-r7}\n" \
      "add r5, r4, r5, lsl #3\n" \
      "push {r5, r7}\n" \
      "mov r1, r3\n" \
      "add r5, r2, r6, lsl #2\n" \
      "vmov s8, s9, r4, r5\n" \
      "rsbs r6, r6, #0\n" \
      "and r6, r6, #3\n" \
      "movs r3, #124\n" \
      "muls r6, r3, r6\n" \
      "adr.w r3, 2f\n" \
      "adds r6, r6, r3\n" \
      "adds r6, r6, #1\n" \
      "vmov s10, s11, r2, r6\n" \
      "1:\n" \
      "ldmia.w r1!, {r4-r7, r10-r12, lr}\n" \
      "vmov r0, r2, s10, s11\n" \
      "bx r2\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_EIGHT_GROUP GLOW_DSP_EIGHT_GROUP GLOW_DSP_EIGHT_GROUP GLOW_DSP_EIGHT_GROUP \
      GLOW_DSP_CODE_BYTES("2", "4 * 124") \
      "vmov r8, s9\n" \
      "cmp r0, r8\n" \
      "bne.w 2b\n" \
      "ldr r3, [sp, #4]\n" \
      keep codes "vmov r0, s8\n" "str r4, [r0], #4\n" \
      back codes "str r4, [r0], #4\n" \
      "vmov s8, r0\n" \
      "ldr r3, [sp]\n" \
      "cmp r0, r3\n" \
      "bne.w 1b\n" \
      "add sp, sp, #8\n" \
      "pop {r4-r11, pc}\n")

GLOW_DSP_FUNCTION glow_dsp_fc_eight(GLOW_DSP_UNUSED const glow_dsp_eight_t *g) {
  GLOW_DSP_FC_EIGHT(GLOW_DSP_FC_ROUND(DUAL) GLOW_DSP_BYTES4("r3"), "",
                    "mov r4, r10\n" "mov r5, r11\n" "mov r6, r12\n" "mov r7, lr\n");
}
#else
/* The sums of eight channels; returns what comes after the block's weights. */
GLOW_INLINE const uint32_t *glow_dsp_fc_eight_sums(int32_t *sum, const glow_dsp_eight_t *g, const uint32_t *w) {
  for (int32_t c = 0; c < 8; c++) {
    sum[c] = (int32_t)w[4 * (c >> 2) + 2 * (c & 1) + (c >> 1 & 1)];
  }
  w += 8;
  for (int32_t i = 0; i < 2 * g->groups; i++, w += 4) {
    const uint32_t word = glow_load4(g->in + 4 * (i >> 1));
    const uint32_t acts = (i & 1) != 0 ? glow_sxtab16_odd(0u, word) : glow_sxtab16(0u, word);
    for (int32_t c = 0; c < 8; c++) {
      sum[c] = glow_dsp_smlad(acts, glow_dsp_weights(w, GLOW_DSP_DUAL, c), sum[c]);
    }
  }
  for (int32_t c = 0; c < 8; c += 2) {
    sum[c] = (int32_t)((uint32_t)sum[c] - (uint32_t)sum[c + 1]) / 256; /* without remainder */
  }
  return w;
}

GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_fc_eight(const glow_dsp_eight_t *g) {
  const uint32_t *w = (const uint32_t *)g->stream;
  for (int32_t b = 0; b < g->blocks; b++, w += 8) {
    int32_t sum[8];
    w = glow_dsp_fc_eight_sums(sum, g, w);
    for (int32_t c = 0; c < 8; c++) {
      float scale;
      memcpy(&scale, &w[c], sizeof scale);
      g->out[8 * b + c] = (int8_t)glow_requant(sum[c], scale, g->out_zp, -128, 127);
    }
  }
}
#endif

#endif
