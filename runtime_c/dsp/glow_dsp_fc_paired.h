/* SPDX-License-Identifier: MIT-0 */
/* The direct product of glow_dsp_fc.h in the order that a Cortex-M7 issues two at a time, where it is dual.
 *
 * The zero point of the inputs is in the biases: a register is left for the next group of inputs, and that of two
 * weights is loaded where the ones before it are used up. 32 groups in a row take 10 cycles each, by the schedule of
 * LLVM; those that fill no 32 come first, one at a time. The other forms, and all C, are those of glow_dsp_fc.h.
 */
#ifndef GLOW_DSP_FC_PAIRED_H
#define GLOW_DSP_FC_PAIRED_H

#include "glow_dsp_fc.h"

#if GLOW_DSP_ASM
#define GLOW_DSP_AHEAD_LOAD "ldr r2, [r0], #4\n" "ldrd r8, r9, [r1], #8\n"
#define GLOW_DSP_AHEAD_FIRST "ldrd r10, r11, [r1], #8\n" "sxtb16 r3, r2\n" "sxtb16 r2, r2, ror #8\n"
/* Four inputs, of which 0 and 2 are in `a`, 1 and 3 in `b`; the next ones go to `c` and `d`. */
#define GLOW_DSP_AHEAD(a, b, c, d) \
  "ldr " d ", [r0], #4\n" "smlad r4, " a ", r8, r4\n" "sxtb16 r8, r8\n" "smlad r5, " a ", r9, r5\n" \
  "sxtb16 r9, r9\n" "smlad r6, " a ", r8, r6\n" "sxtb16 " c ", " d "\n" "smlad r7, " a ", r9, r7\n" \
  "ldrd r8, r9, [r1], #8\n" "smlad r4, " b ", r10, r4\n" "sxtb16 r10, r10\n" "smlad r5, " b ", r11, r5\n" \
  "sxtb16 r11, r11\n" "smlad r6, " b ", r10, r6\n" "sxtb16 " d ", " d ", ror #8\n" "smlad r7, " b ", r11, r7\n" \
  "ldrd r10, r11, [r1], #8\n"
#define GLOW_DSP_AHEAD_LAST(a, b) \
  "smlad r4, " a ", r8, r4\n" "sxtb16 r8, r8\n" "smlad r5, " a ", r9, r5\n" "sxtb16 r9, r9\n" \
  "smlad r6, " a ", r8, r6\n" "smlad r7, " a ", r9, r7\n" \
  "smlad r4, " b ", r10, r4\n" "sxtb16 r10, r10\n" "smlad r5, " b ", r11, r5\n" "sxtb16 r11, r11\n" \
  "smlad r6, " b ", r10, r6\n" "smlad r7, " b ", r11, r7\n"
#define GLOW_DSP_AHEAD_ONE GLOW_DSP_AHEAD_FIRST GLOW_DSP_AHEAD_LAST("r3", "r2")
#define GLOW_DSP_AHEAD_EVEN GLOW_DSP_AHEAD("r3", "r2", "lr", "r12")
#define GLOW_DSP_AHEAD_TWO GLOW_DSP_AHEAD_EVEN GLOW_DSP_AHEAD("lr", "r12", "r3", "r2")
#define GLOW_DSP_AHEAD_TEN \
  GLOW_DSP_AHEAD_TWO GLOW_DSP_AHEAD_TWO GLOW_DSP_AHEAD_TWO GLOW_DSP_AHEAD_TWO GLOW_DSP_AHEAD_TWO
/* With the next groups loaded already where r0 has not reached the end at sp + 20; r3 is has_tail afterwards. */
#define GLOW_DSP_AHEAD_MANY \
  GLOW_DSP_AHEAD_FIRST GLOW_DSP_AHEAD_TEN GLOW_DSP_AHEAD_TEN GLOW_DSP_AHEAD_TEN GLOW_DSP_AHEAD_EVEN \
  "ldr r3, [sp, #12]\n" "smlad r4, lr, r8, r4\n" "sxtb16 r8, r8\n" "smlad r5, lr, r9, r5\n" "sxtb16 r9, r9\n" \
  "smlad r6, lr, r8, r6\n" "smlad r7, lr, r9, r7\n" "ldr lr, [sp, #20]\n" "smlad r4, r12, r10, r4\n" \
  "cmp r0, lr\n" "sxtb16 r10, r10\n" "smlad r5, r12, r11, r5\n" "it ne\n" "ldrne r2, [r0], #4\n" \
  "sxtb16 r11, r11\n" "smlad r6, r12, r10, r6\n" "it ne\n" "ldrdne r8, r9, [r1], #8\n" "smlad r7, r12, r11, r7\n"
/* The sums of four outputs, whose scales are at r1, to the place s8, which moves on; compares it with the end,
 * and takes r0 and r12 from s10 and s11. */
#define GLOW_DSP_AHEAD_CODES \
  "sub r4, r4, r6\n" "sub r5, r5, r7\n" "vldmia r1!, {s4-s7}\n" "vmov s2, s3, r5, r7\n" "vmov s0, s1, r4, r6\n" "ldr r3, [sp, #4]\n" \
  "vcvt.f32.s32 s2, s2, #8\n" "vcvt.f32.s32 s3, s3\n" "vcvt.f32.s32 s0, s0, #8\n" "vcvt.f32.s32 s1, s1\n" "vmul.f32 s3, s3, s7\n" \
  "vmul.f32 s2, s2, s6\n" "vmul.f32 s1, s1, s5\n" "vcvtr.s32.f32 s3, s3\n" "vmul.f32 s0, s0, s4\n" "vcvtr.s32.f32 s2, s2\n" \
  "vcvtr.s32.f32 s1, s1\n" "vcvtr.s32.f32 s0, s0\n" "vmov r6, r7, s2, s3\n" "vmov r0, r12, s10, s11\n" "vmov r4, r5, s0, s1\n" \
  "qadd r7, r7, r3\n" "qadd r6, r6, r3\n" "qadd r4, r4, r3\n" "ssat r7, #8, r7\n" "qadd r5, r5, r3\n" "vmov r2, s8\n" \
  "ssat r6, #8, r6\n" "ssat r5, #8, r5\n" "ssat r4, #8, r4\n" "bfi r6, r7, #8, #8\n" "ldr lr, [sp]\n" "bfi r4, r5, #8, #8\n" \
  "pkhbt r4, r4, r6, lsl #16\n" "str r4, [r2], #4\n" "cmp r2, lr\n" "vmov s8, r2\n"

/* At sp: the end of the outputs, the zero point, tail, has_tail, the end of the groups that come first, that of all.
 * s11: where the groups begin, in front of the first ones, of the others, or after both. */
#define GLOW_DSP_AHEAD_WHOLE "5:\n"
#define GLOW_DSP_AHEAD_TAIL \
  "cbz r3, 6f\n" \
  ".balign 4\n" \
  "5:\n" \
  "ldrd r2, r3, [sp, #8]\n" \
  "cbz r3, 6f\n" \
  "ldrd r8, r9, [r1], #8\n" \
  GLOW_DSP_AHEAD_ONE \
  "6:\n"
#define GLOW_DSP_FC_PAIRED(tail) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      "sub sp, sp, #24\n" \
      "ldmia r0!, {r2-r8}\n" \
      "ldm r0, {r9-r11}\n" \
      "vmov s8, r4\n" \
      "add r6, r4, r6, lsl #2\n" \
      "strd r6, r8, [sp]\n" \
      "strd r10, r11, [sp, #8]\n" \
      "mov r1, r3\n" \
      "and r3, r7, #31\n" \
      "add r3, r2, r3, lsl #2\n" \
      "add r7, r2, r7, lsl #2\n" \
      "strd r3, r7, [sp, #16]\n" \
      "adr.w r8, 5f\n" \
      "cmp r2, r7\n" \
      "beq.w 7f\n" \
      "adr.w r8, 4f\n" \
      "cmp r2, r3\n" \
      "it ne\n" \
      "adrne.w r8, 2f\n" \
      "7:\n" \
      "orr r8, r8, #1\n" \
      "vmov s10, s11, r2, r8\n" \
      "mov r0, r2\n" \
      "mov r12, r8\n" \
      "ldmia r1!, {r4-r7}\n" \
      "bx r12\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_AHEAD_LOAD \
      GLOW_DSP_AHEAD_ONE \
      "ldrd lr, r12, [sp, #16]\n" \
      "cmp r0, lr\n" \
      "bne.w 2b\n" \
      "cmp r0, r12\n" \
      "beq.w 5f\n" \
      ".balign 4\n" \
      "4:\n" \
      GLOW_DSP_AHEAD_LOAD \
      "8:\n" \
      GLOW_DSP_AHEAD_MANY \
      "bne.w 8b\n" \
      tail \
      GLOW_DSP_AHEAD_CODES \
      "itt ne\n" \
      "ldmiane.w r1!, {r4-r7}\n" \
      "bxne r12\n" \
      "add sp, sp, #24\n" \
      "pop {r4-r11, pc}\n")

GLOW_DSP_FUNCTION glow_dsp_fc_paired(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_FC_PAIRED(GLOW_DSP_AHEAD_TAIL); }
/* The same of at least one group, and no tail. */
GLOW_DSP_FUNCTION glow_dsp_fc_paired_whole(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_FC_PAIRED(GLOW_DSP_AHEAD_WHOLE); }
#else
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_fc_paired(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, GLOW_DSP_DUAL, -1); }
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_fc_paired_whole(const glow_dsp_gemm_t *g) { glow_dsp_fc_paired(g); }
#endif

#endif
