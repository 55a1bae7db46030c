/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layer: a row of inputs times blocks of four outputs; the stream is that of glow_dsp_gemm.h.
 *
 * direct: inputs as they are (int8), expanded on the fly; expanded: `acts` is int16 (glow_expand_row), a whole number
 * of units of eight inputs, `groups` counts the units of four.
 *
 * Of expanded inputs x and dual weights the odd sums are crossed: of inputs 0 and 1, and 2 and 3 of a group
 *   (x1 + w0) (x0 + w1) = x0 w0 + x1 w1 + x0 x1 + w0 w1 (S. Winograd, A New Algorithm for Inner Product, 1968),
 * so that SXTAB16, which takes the odd weights out of the words, adds an input too, and one SMLAD does for two. The
 * products of weights are in the biases of the odd outputs; those of inputs, `row` of a call, are the same for all.
 */
#ifndef GLOW_DSP_FC_H
#define GLOW_DSP_FC_H

#include "glow_dsp_gemm.h"

#if GLOW_DSP_ASM
#define GLOW_DSP_FC_DUAL \
  "ldmia r1!, {r8-r11}\n" "sxtab16 r3, r12, r2\n" "sxtab16 r2, r12, r2, ror #8\n" \
  "smlad r4, r3, r8, r4\n" "smlad r5, r3, r9, r5\n" "sxtb16 r8, r8\n" "sxtb16 r9, r9\n" \
  "smlad r6, r3, r8, r6\n" "smlad r7, r3, r9, r7\n" \
  "smlad r4, r2, r10, r4\n" "smlad r5, r2, r11, r5\n" "sxtb16 r10, r10\n" "sxtb16 r11, r11\n" \
  "smlad r6, r2, r10, r6\n" "smlad r7, r2, r11, r7\n"
#define GLOW_DSP_FC_WIDE \
  "ldmia r1!, {r8-r11}\n" "sxtab16 r3, r12, r2\n" "sxtab16 r2, r12, r2, ror #8\n" \
  "smlad r4, r3, r8, r4\n" "smlad r6, r3, r9, r6\n" "smlad r5, r3, r10, r5\n" "smlad r7, r3, r11, r7\n" \
  "ldmia r1!, {r8-r11}\n" \
  "smlad r4, r2, r8, r4\n" "smlad r6, r2, r9, r6\n" "smlad r5, r2, r10, r5\n" "smlad r7, r2, r11, r7\n"
#define GLOW_DSP_FC_FOUR_EVEN \
  "sxtb16 r8, r8, ror #8\n" "sxtb16 r9, r9, ror #8\n" "sxtb16 r10, r10, ror #8\n" "sxtb16 r11, r11, ror #8\n"
#define GLOW_DSP_FC_FOUR_ODD "sxtb16 r8, r8\n" "sxtb16 r9, r9\n" "sxtb16 r10, r10\n" "sxtb16 r11, r11\n"
#define GLOW_DSP_FC_BYTES \
  "ldmia r1!, {r8-r11}\n" "sxtab16 r3, r12, r2\n" "sxtab16 r2, r12, r2, ror #8\n" GLOW_DSP_FC_FOUR_EVEN \
  "smlad r4, r3, r8, r4\n" "smlad r5, r3, r9, r5\n" "smlad r4, r2, r10, r4\n" "smlad r5, r2, r11, r5\n" \
  "ldmdb r1, {r8-r11}\n" GLOW_DSP_FC_FOUR_ODD \
  "smlad r6, r3, r8, r6\n" "smlad r7, r3, r9, r7\n" "smlad r6, r2, r10, r6\n" "smlad r7, r2, r11, r7\n"
#define GLOW_DSP_FC_SPLIT_DUAL "sub r4, r4, r6\n" "sub r5, r5, r7\n"
#define GLOW_DSP_FC_SPLIT_WIDE
#define GLOW_DSP_FC_SPLIT_BYTES
/* The sums of four outputs, rounded, in r4-r7. */
#define GLOW_DSP_FC_ROUND(form) \
  GLOW_DSP_FC_SPLIT_##form \
  "vldmia r1!, {s4-s7}\n" "vmov s0, s1, r4, r6\n" "vmov s2, s3, r5, r7\n" GLOW_DSP_SCALE4(GLOW_DSP_EVEN_##form)
/* Their codes in r4; the zero point is on the stack. */
#define GLOW_DSP_FC_CODES(form) GLOW_DSP_FC_ROUND(form) "ldr r3, [sp, #4]\n" GLOW_DSP_BYTES4("r3")
#define GLOW_DSP_FC_LOAD "ldr.w r2, [r0], #4\n"

#define GLOW_DSP_FC(form, group_bytes, codes) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      "sub sp, sp, #16\n" \
      "ldmia r0!, {r2-r8}\n" \
      "ldm r0, {r9-r11}\n" \
      "mov r12, r9\n" \
      "vmov s8, r4\n" \
      "add r6, r4, r6, lsl #2\n" \
      "str r6, [sp]\n" \
      "str r8, [sp, #4]\n" \
      "strd r10, r11, [sp, #8]\n" \
      "mov r1, r3\n" \
      "add lr, r2, r7, lsl #2\n" \
      "rsb r6, r7, #0\n" \
      "and r6, r6, #3\n" \
      "mov r8, #" group_bytes "\n" \
      "mul r6, r6, r8\n" \
      "adr.w r8, 2f\n" \
      "add r6, r6, r8\n" \
      "cmp r7, #0\n" \
      "it eq\n" \
      "addeq r6, r6, #4*" group_bytes "+8\n" \
      "orr r6, r6, #1\n" \
      "vmov s10, s11, r2, r6\n" \
      "1:\n" \
      "ldmia r1!, {r4-r7}\n" \
      "vmov r0, r2, s10, s11\n" \
      "bx r2\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_FC_LOAD GLOW_DSP_FC_##form \
      GLOW_DSP_FC_LOAD GLOW_DSP_FC_##form \
      GLOW_DSP_FC_LOAD GLOW_DSP_FC_##form \
      GLOW_DSP_FC_LOAD GLOW_DSP_FC_##form \
      GLOW_DSP_CODE_BYTES("2", "4 * " group_bytes) \
      "cmp.w r0, lr\n" \
      "bne.w 2b\n" /* the entry of a layer without whole groups is after this */ \
      "ldrd r2, r3, [sp, #8]\n" \
      "cmp r3, #0\n" \
      "beq.w 3f\n" \
      GLOW_DSP_FC_##form \
      "3:\n" \
      codes \
      "vmov r2, s8\n" \
      "str r4, [r2], #4\n" \
      "vmov s8, r2\n" \
      "ldr r3, [sp]\n" \
      "cmp r2, r3\n" \
      "bne.w 1b\n" \
      "add sp, sp, #16\n" \
      "pop {r4-r11, pc}\n")

/* Inputs 0 and 2 in x, 1 and 3 in y, the words of a pair of outputs for them in u and v. */
#define GLOW_DSP_CROSS(x, y, u, v, even, odd) \
  "smlad " even ", " x ", " u ", " even "\n" "smlad " even ", " y ", " v ", " even "\n" \
  "sxtab16 " u ", " y ", " u "\n" "sxtab16 " v ", " x ", " v "\n" "smlad " odd ", " u ", " v ", " odd "\n"
#define GLOW_DSP_UNIT_DUAL \
  "ldmia.w r0!, {r2, r3, r12, lr}\n" "ldmia.w r1!, {r8-r11}\n" \
  GLOW_DSP_CROSS("r2", "r3", "r8", "r10", "r4", "r6") GLOW_DSP_CROSS("r2", "r3", "r9", "r11", "r5", "r7") \
  "ldmia.w r1!, {r8-r11}\n" \
  GLOW_DSP_CROSS("r12", "lr", "r8", "r10", "r4", "r6") GLOW_DSP_CROSS("r12", "lr", "r9", "r11", "r5", "r7")
/* The products of inputs off the odd sums. */
#define GLOW_DSP_CROSSED_DUAL "ldr r3, [sp]\n" "subs r6, r6, r3\n" "subs r7, r7, r3\n"
#define GLOW_DSP_CROSSED_BYTES
#define GLOW_DSP_CROSSED_WIDE
#define GLOW_DSP_FOUR_BYTES(a, b) \
  "ldmia.w r1!, {r8-r11}\n" GLOW_DSP_FC_FOUR_EVEN \
  "smlad r4, " a ", r8, r4\n" "smlad r5, " a ", r9, r5\n" "smlad r4, " b ", r10, r4\n" "smlad r5, " b ", r11, r5\n" \
  "ldmdb r1, {r8-r11}\n" GLOW_DSP_FC_FOUR_ODD \
  "smlad r6, " a ", r8, r6\n" "smlad r7, " a ", r9, r7\n" "smlad r6, " b ", r10, r6\n" "smlad r7, " b ", r11, r7\n"
#define GLOW_DSP_UNIT_BYTES \
  "ldmia.w r0!, {r2, r3, r12, lr}\n" GLOW_DSP_FOUR_BYTES("r2", "r3") GLOW_DSP_FOUR_BYTES("r12", "lr")
#define GLOW_DSP_FOUR_WIDE(a) \
  "ldmia.w r1!, {r8-r11}\n" \
  "smlad r4, " a ", r8, r4\n" "smlad r6, " a ", r9, r6\n" "smlad r5, " a ", r10, r5\n" "smlad r7, " a ", r11, r7\n"
#define GLOW_DSP_UNIT_WIDE \
  "ldmia.w r0!, {r2, r3, r12, lr}\n" \
  GLOW_DSP_FOUR_WIDE("r2") GLOW_DSP_FOUR_WIDE("r3") GLOW_DSP_FOUR_WIDE("r12") GLOW_DSP_FOUR_WIDE("lr")
/* Four rounded values in r4, r5, r6, r7 (channels 0 to 3) to bytes of r4. U8, V8: the zero point is -128; U8, N8: no
 * limits. */
#define GLOW_DSP_END_U8 GLOW_DSP_PACK_U8("r4", "r5", "r6", "r7")
#define GLOW_DSP_END_V8 GLOW_DSP_END_U8 "vmov r12, s15\n" "ssub8 r2, r12, r4\n" "sel r4, r4, r12\n"
#define GLOW_DSP_END_N8 "vmov r12, s13\n" GLOW_DSP_PACK_S8("r4", "r5", "r6", "r7")
#define GLOW_DSP_END_S8 \
  GLOW_DSP_END_N8 \
  "vmov r3, r12, s14, s15\n" \
  "ssub8 r2, r4, r3\n" "sel r4, r4, r3\n" "ssub8 r2, r12, r4\n" "sel r4, r4, r12\n"

/* `begin` reads what the stream, in r1, begins with, and may use r5, r8-r11; `codes` ends four sums in r4-r7, of
 * which it takes products of inputs, at sp. */
#define GLOW_DSP_FC_UNITS(form, unit_bytes, begin, codes) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r3-r11, lr}\n" \
      "ldm r0, {r2-r9}\n" /* acts, stream, out, -, blocks, groups, zero point, products */ \
      "ldrd r10, r11, [r0, #40]\n" \
      "str r9, [sp]\n" \
      "vmov s13, r8\n" \
      "vmov s14, s15, r10, r11\n" \
      "add r6, r4, r6, lsl #2\n" \
      "vmov s8, s9, r4, r6\n" \
      "mov r1, r3\n" \
      begin \
      "add r6, r2, r7, lsl #3\n" \
      "vmov s12, r6\n" \
      "lsr r7, r7, #1\n" \
      "rsb r7, r7, #0\n" \
      "and r7, r7, #7\n" \
      "mov r6, #" unit_bytes "\n" \
      "mul r7, r7, r6\n" \
      "adr.w r6, 2f\n" \
      "add r6, r6, r7\n" \
      "orr r6, r6, #1\n" \
      "vmov s10, s11, r2, r6\n" \
      "1:\n" \
      "ldmia.w r1!, {r4-r7}\n" \
      "vmov r0, r2, s10, s11\n" \
      "bx r2\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_UNIT_##form GLOW_DSP_UNIT_##form GLOW_DSP_UNIT_##form GLOW_DSP_UNIT_##form \
      GLOW_DSP_UNIT_##form GLOW_DSP_UNIT_##form GLOW_DSP_UNIT_##form GLOW_DSP_UNIT_##form \
      GLOW_DSP_CODE_BYTES("2", "8 * " unit_bytes) \
      "vmov r2, s12\n" \
      "cmp r0, r2\n" \
      "bne.w 2b\n" \
      codes \
      "vmov r2, r3, s8, s9\n" \
      "str r4, [r2], #4\n" \
      "vmov s8, r2\n" \
      "cmp r2, r3\n" \
      "bne.w 1b\n" \
      "pop {r3-r11, pc}\n")

#define GLOW_DSP_FC_OF_UNITS(name, form, end, unit_bytes) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { \
    GLOW_DSP_FC_UNITS(form, unit_bytes, "", GLOW_DSP_CROSSED_##form GLOW_DSP_FC_ROUND(form) GLOW_DSP_END_##end); \
  }
#define GLOW_DSP_FC_DIRECT(name, form, group_bytes) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { \
    GLOW_DSP_FC(form, group_bytes, GLOW_DSP_FC_CODES(form)); \
  }

/* Expands a row: inputs 0 and 2, then 1 and 3 of every group. Returns the sum of their products. */
GLOW_HOT __attribute__((naked, noinline)) GLOW_DSP_UNUSED static uint32_t glow_expand_row(
    GLOW_DSP_UNUSED uint32_t *to, GLOW_DSP_UNUSED const int8_t *a, GLOW_DSP_UNUSED int32_t groups,
    GLOW_DSP_UNUSED uint32_t neg_zp) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r11}\n"
      "mov r12, #0\n"
      "b.w 2f\n"
      "1:\n"
      "ldr r5, [r1], #4\n" "ldr r7, [r1], #4\n" "ldr r9, [r1], #4\n" "ldr r11, [r1], #4\n"
      "sxtab16 r4, r3, r5\n" "sxtab16 r5, r3, r5, ror #8\n" "sxtab16 r6, r3, r7\n" "sxtab16 r7, r3, r7, ror #8\n"
      "sxtab16 r8, r3, r9\n" "sxtab16 r9, r3, r9, ror #8\n"
      "sxtab16 r10, r3, r11\n" "sxtab16 r11, r3, r11, ror #8\n"
      "smlad r12, r4, r5, r12\n" "smlad r12, r6, r7, r12\n" "smlad r12, r8, r9, r12\n" "smlad r12, r10, r11, r12\n"
      "stmia.w r0!, {r4-r11}\n"
      "2:\n"
      "subs r2, r2, #4\n"
      "bge.w 1b\n"
      "adds r2, r2, #4\n"
      "beq.w 4f\n"
      "3:\n"
      "ldr r5, [r1], #4\n" "sxtab16 r4, r3, r5\n" "sxtab16 r5, r3, r5, ror #8\n" "smlad r12, r4, r5, r12\n"
      "stmia.w r0!, {r4, r5}\n"
      "subs r2, r2, #1\n"
      "bne.w 3b\n"
      "4:\n"
      "mov r0, r12\n"
      "pop {r4-r11}\n"
      "bx lr\n");
}

#else /* the same in C */

#define GLOW_DSP_FC_OF_UNITS(name, form, end, unit_bytes) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, GLOW_DSP_##form, -2); }
#define GLOW_DSP_FC_DIRECT(name, form, group_bytes) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, GLOW_DSP_##form, -1); }

GLOW_HOT GLOW_DSP_UNUSED static uint32_t glow_expand_row(uint32_t *to, const int8_t *a, int32_t groups, uint32_t neg_zp) {
  int32_t products = 0;
  for (; groups > 0; groups--, to += 2, a += 4) {
    const uint32_t word = glow_load4(a);
    to[0] = glow_sxtab16(neg_zp, word);
    to[1] = glow_sxtab16_odd(neg_zp, word);
    products = glow_dsp_smlad(to[0], to[1], products);
  }
  return (uint32_t)products;
}

#endif

/* The last one to three inputs of a row, which the group is expanded to; returns their products. */
GLOW_INLINE uint32_t glow_expand_tail(uint32_t *to, uint32_t tail, uint32_t neg_zp) {
  to[0] = glow_sxtab16(neg_zp, tail);
  to[1] = glow_sxtab16_odd(neg_zp, tail);
  return (uint32_t)(glow_low16(to[0]) * glow_low16(to[1]) + glow_low16(to[0] >> 16) * glow_low16(to[1] >> 16));
}

GLOW_DSP_FC_OF_UNITS(glow_dsp_fc_units_dual_u8, DUAL, U8, "92")
GLOW_DSP_FC_OF_UNITS(glow_dsp_fc_units_dual_v8, DUAL, V8, "92")
GLOW_DSP_FC_OF_UNITS(glow_dsp_fc_units_dual_n8, DUAL, N8, "92")
GLOW_DSP_FC_OF_UNITS(glow_dsp_fc_units_dual_s8, DUAL, S8, "92")
GLOW_DSP_FC_OF_UNITS(glow_dsp_fc_units_wide, WIDE, S8, "84")
GLOW_DSP_FC_OF_UNITS(glow_dsp_fc_units_bytes, BYTES, S8, "148")
GLOW_DSP_FC_DIRECT(glow_dsp_fc_dual, DUAL, "64")
GLOW_DSP_FC_DIRECT(glow_dsp_fc_wide, WIDE, "52")
GLOW_DSP_FC_DIRECT(glow_dsp_fc_bytes, BYTES, "84")

#endif
