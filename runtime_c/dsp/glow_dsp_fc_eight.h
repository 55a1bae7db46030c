/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layer: a row of inputs times blocks of eight outputs, the inputs expanded once for all eight.
 *
 * A block of the stream is two dual blocks of glow_dsp_gemm.h in one: the biases of both; per group of four inputs eight
 * words, of each pair of outputs that of inputs 0 and 2 and that of inputs 1 and 3; the scales of both, or what
 * glow_dsp_fc_q31.h has in their place. Odd sums are crossed (glow_dsp_fc.h). The zero point of the inputs is in the
 * biases. There is at least one group, and no tail.
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

#if __ARM_ARCH >= 8 /* a Cortex-M33 waits for LDRD, and not for the first of two loads */
#define GLOW_DSP_EIGHT_WORDS "ldr.w r8, [r1], #4\n" "ldr.w r9, [r1], #4\n"
#define GLOW_DSP_EIGHT_BYTES "124"
#else
#define GLOW_DSP_EIGHT_WORDS "ldrd r8, r9, [r1], #8\n"
#define GLOW_DSP_EIGHT_BYTES "112"
#endif
#define GLOW_DSP_EIGHT_PAIR(even, odd) GLOW_DSP_CROSS("r3", "r2", "r8", "r9", even, odd)
/* Single loads that follow one another overlap: the first words of a group take a cycle each. */
#define GLOW_DSP_EIGHT_GROUP \
  "ldr.w r2, [r0], #4\n" "ldr.w r9, [r1, #4]\n" "ldr.w r8, [r1], #8\n" "sxtb16 r3, r2\n" "sxtb16 r2, r2, ror #8\n" \
  GLOW_DSP_EIGHT_PAIR("r4", "r6") GLOW_DSP_EIGHT_WORDS GLOW_DSP_EIGHT_PAIR("r5", "r7") \
  GLOW_DSP_EIGHT_WORDS GLOW_DSP_EIGHT_PAIR("r10", "r12") GLOW_DSP_EIGHT_WORDS GLOW_DSP_EIGHT_PAIR("r11", "lr")
/* Groups that a round of the loop takes, and in r4 of so many groups those that are less than whole rounds, by r3. */
#define GLOW_DSP_EIGHT_ROUND4 GLOW_DSP_EIGHT_GROUP GLOW_DSP_EIGHT_GROUP GLOW_DSP_EIGHT_GROUP GLOW_DSP_EIGHT_GROUP
#define GLOW_DSP_EIGHT_LESS4 "rsbs r4, r4, #0\n" "and r4, r4, #3\n"
#define GLOW_DSP_EIGHT_ROUND5 GLOW_DSP_EIGHT_ROUND4 GLOW_DSP_EIGHT_GROUP
#define GLOW_DSP_EIGHT_LESS5 \
  "adds r3, r4, #4\n" "movs r5, #5\n" "udiv r3, r3, r5\n" "muls r3, r5, r3\n" "subs r4, r3, r4\n"
#define GLOW_DSP_EIGHT_ROUND6 GLOW_DSP_EIGHT_ROUND4 GLOW_DSP_EIGHT_GROUP GLOW_DSP_EIGHT_GROUP
#define GLOW_DSP_EIGHT_LESS6 \
  "adds r3, r4, #5\n" "movs r5, #6\n" "udiv r3, r3, r5\n" "muls r3, r5, r3\n" "subs r4, r3, r4\n"
/* The products of the inputs between r2 and r5, which are r4 groups, in r3: those that are less than four, then fours. */
#define GLOW_DSP_EIGHT_PRODUCT(word) \
  "sxtb16 r9, " word "\n" "sxtb16 " word ", " word ", ror #8\n" "smlad r3, r9, " word ", r3\n"
#define GLOW_DSP_EIGHT_PRODUCTS \
  "movs r3, #0\n" \
  "ands r7, r4, #3\n" \
  "beq 6f\n" \
  "5:\n" \
  "ldr r6, [r2], #4\n" GLOW_DSP_EIGHT_PRODUCT("r6") \
  "subs r7, r7, #1\n" \
  "bne 5b\n" \
  "b 7f\n" \
  "6:\n" \
  "ldr r6, [r2], #4\n" "ldr r7, [r2], #4\n" "ldr r8, [r2], #4\n" "ldr r10, [r2], #4\n" /* LDM needs aligned inputs */ \
  GLOW_DSP_EIGHT_PRODUCT("r6") GLOW_DSP_EIGHT_PRODUCT("r7") GLOW_DSP_EIGHT_PRODUCT("r8") GLOW_DSP_EIGHT_PRODUCT("r10") \
  "7:\n" \
  "cmp r2, r5\n" \
  "bne 6b\n"
/* `codes` ends four sums in r4-r7 by the zero point in r3; `keep` puts aside what it changes of the second four, and
 * `back` brings them to r4-r7. */
#define GLOW_DSP_EIGHT_BY_FOURS(codes, keep, back) \
  "vmov r2, s14\n" \
  "ldr r3, [sp, #4]\n" \
  "subs r6, r6, r2\n" "subs r7, r7, r2\n" "sub r12, r12, r2\n" "sub lr, lr, r2\n" \
  keep codes "vmov r0, s8\n" "str r4, [r0], #4\n" \
  back codes "str r4, [r0], #4\n"
/* `begin` has the inputs in r0, the stream in r1, the products of the inputs in r3, and may use r5-r9; `ends` stores the
 * codes of the sums, and jumps to what stands `apart`, after the loop. At sp: the end of the outputs, the zero point. s8:
 * the next outputs, which `ends` leaves in r0, s9: the end of the inputs, s10 and s11: the inputs and where the first ones
 * enter the loop, so that whole rounds of `many` groups follow. */
#define GLOW_DSP_FC_EIGHT(many, begin, ends, apart) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      "ldm r0, {r0-r5}\n" /* inputs, stream, outputs, blocks, groups, zero point */ \
      "add r3, r2, r3, lsl #3\n" \
      "push {r3, r5}\n" \
      "add r5, r0, r4, lsl #2\n" \
      "vmov s8, s9, r2, r5\n" \
      "mov r2, r0\n" \
      GLOW_DSP_EIGHT_PRODUCTS \
      begin \
      GLOW_DSP_EIGHT_LESS##many \
      "movs r3, #" GLOW_DSP_EIGHT_BYTES "\n" \
      "muls r4, r3, r4\n" \
      "adr r3, 2f\n" \
      "adds r4, r4, r3\n" \
      "vmov s10, s11, r0, r4\n" \
      "1:\n" \
      "ldmia.w r1!, {r4-r7, r10-r12, lr}\n" \
      "vmov r0, r2, s10, s11\n" \
      "mov pc, r2\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_EIGHT_ROUND##many \
      GLOW_DSP_CODE_BYTES("2", #many " * " GLOW_DSP_EIGHT_BYTES) \
      "vmov r8, s9\n" \
      "cmp r0, r8\n" \
      "bne.w 2b\n" \
      ends \
      "vmov s8, r0\n" \
      "ldr r3, [sp]\n" \
      "cmp r0, r3\n" \
      "bne.w 1b\n" \
      "add sp, sp, #8\n" \
      "pop {r4-r11, pc}\n" \
      apart)

GLOW_DSP_FUNCTION glow_dsp_fc_eight(GLOW_DSP_UNUSED const glow_dsp_eight_t *g) {
  GLOW_DSP_FC_EIGHT(4, "vmov s14, r3\n",
                    GLOW_DSP_EIGHT_BY_FOURS(GLOW_DSP_FC_ROUND(DUAL) GLOW_DSP_BYTES4("r3"), "",
                                            "mov r4, r10\n" "mov r5, r11\n" "mov r6, r12\n" "mov r7, lr\n"), "");
}

/* All eight sums by one factor: 256 times each, and `more`; then codes, which are stored. */
#define GLOW_DSP_EIGHT_COMMON_SCALE \
  GLOW_DSP_COMMON_ODD("r6", "r7", "r8") GLOW_DSP_COMMON_ODD("r12", "lr", "r8") \
  GLOW_DSP_COMMON_EVEN("r4", "r5", "r6", "r7") GLOW_DSP_COMMON_EVEN("r10", "r11", "r12", "lr") \
  GLOW_DSP_COMMON_SCALE4("r4", "r6", "r5", "r7", "r2", "r3") \
  GLOW_DSP_COMMON_SCALE4("r10", "r12", "r11", "lr", "r2", "r3")
#define GLOW_DSP_EIGHT_COMMON_SATURATE(places) \
  GLOW_DSP_COMMON_SATURATE4("r4", "r6", "r5", "r7", places) GLOW_DSP_COMMON_SATURATE4("r10", "r12", "r11", "lr", places)
#define GLOW_DSP_EIGHT_COMMON_STORE \
  GLOW_DSP_COMMON_BYTES("r4", "r6", "r5", "r7") GLOW_DSP_COMMON_BYTES("r10", "r12", "r11", "lr") \
  "vmov r0, s8\n" "str r4, [r0], #4\n" "str r10, [r0], #4\n"
/* s12-s15: mul, end, 256 times the products of the inputs less `more`, places. */
GLOW_DSP_FUNCTION glow_dsp_fc_eight_common(GLOW_DSP_UNUSED const glow_dsp_eight_t *g) {
  GLOW_DSP_FC_EIGHT(
      5,
      "ldmia.w r1!, {r5-r8}\n"
      "rsb r3, r7, r3, lsl #8\n"
      "vmov s12, s13, r5, r6\n"
      "vmov s14, s15, r3, r8\n",
      "vmov r2, r3, s12, s13\n"
      "vmov r8, r9, s14, s15\n"
      GLOW_DSP_EIGHT_COMMON_SCALE
      "cmp.w r9, #8\n"
      "bne 3f\n"
      GLOW_DSP_EIGHT_COMMON_SATURATE("8")
      "4:\n"
      GLOW_DSP_EIGHT_COMMON_STORE,
      "3:\n"
      GLOW_DSP_EIGHT_COMMON_SATURATE("12")
      "b 4b\n");
}
#else
/* The sums of eight channels; returns what comes after the block's weights. */
GLOW_INLINE const uint32_t *glow_dsp_fc_eight_sums(int32_t *sum, const glow_dsp_eight_t *g, const uint32_t *w) {
  int32_t products = 0;
  for (int32_t c = 0; c < 8; c++) {
    sum[c] = (int32_t)w[4 * (c >> 2) + 2 * (c & 1) + (c >> 1 & 1)];
  }
  w += 8;
  for (int32_t i = 0; i < g->groups; i++, w += 8) {
    const uint32_t word = glow_load4(g->in + 4 * i);
    const uint32_t acts[2] = {glow_sxtab16(0u, word), glow_sxtab16_odd(0u, word)};
    products = glow_dsp_smlad(acts[0], acts[1], products);
    for (int32_t c = 0; c < 8; c += 2) {
      glow_dsp_cross(acts, w[c], w[c + 1], &sum[c]);
    }
  }
  for (int32_t c = 0; c < 8; c += 2) {
    glow_dsp_cross_split(&sum[c], products);
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

/* `code` is the function that ends a sum by the one factor of all outputs. */
#define GLOW_DSP_EIGHT_COMMON(name, code)                                                                              \
  GLOW_HOT GLOW_DSP_UNUSED static void name(const glow_dsp_eight_t *g) {                                               \
    const int32_t *by = (const int32_t *)g->stream;                                                                    \
    const uint32_t *w = (const uint32_t *)g->stream + 4;                                                               \
    for (int32_t b = 0; b < g->blocks; b++) {                                                                          \
      int32_t sum[8];                                                                                                  \
      w = glow_dsp_fc_eight_sums(sum, g, w);                                                                           \
      for (int32_t c = 0; c < 8; c++) {                                                                                \
        g->out[8 * b + c] = (int8_t)code(sum[c], by);                                                                  \
      }                                                                                                                \
    }                                                                                                                  \
  }
GLOW_DSP_EIGHT_COMMON(glow_dsp_fc_eight_common, glow_dsp_common_code)
#endif

#endif
