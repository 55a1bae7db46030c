/* SPDX-License-Identifier: MIT-0 */
/* The products of glow_dsp_gemm.h in the order that a Cortex-M7 issues two at a time, where they are dual.
 *
 * A load of two words stands alone there, and what saturates, rounds or unpacks goes beside a multiplication if it comes
 * first: 20 cycles for four inputs of two pixels and four channels, and 55 to 67 for the codes of eight sums, by the
 * schedule of LLVM. The other forms, and all C, are those of glow_dsp_gemm.h.
 */
#ifndef GLOW_DSP_PAIRED_H
#define GLOW_DSP_PAIRED_H

#include "glow_dsp_gemm.h"

#if GLOW_DSP_ASM
#define GLOW_DSP_PAIRED_STEP \
  "ldrd r2, r3, [r0], #8\n" "ldrd r12, lr, [r1], #8\n" "smlad r4, r2, r12, r4\n" "smlad r5, r3, r12, r5\n" \
  "sxtb16 r12, r12\n" "smlad r6, r2, lr, r6\n" "smlad r7, r3, lr, r7\n" "sxtb16 lr, lr\n" \
  "smlad r8, r2, r12, r8\n" "smlad r9, r3, r12, r9\n" "smlad r10, r2, lr, r10\n" "smlad r11, r3, lr, r11\n"
#define GLOW_DSP_PAIRED_GROUPS \
  GLOW_DSP_PAIRED_STEP GLOW_DSP_PAIRED_STEP GLOW_DSP_PAIRED_STEP GLOW_DSP_PAIRED_STEP \
  GLOW_DSP_PAIRED_STEP GLOW_DSP_PAIRED_STEP GLOW_DSP_PAIRED_STEP GLOW_DSP_PAIRED_STEP
/* The sums of eight outputs, whose scales are at r1, to the places s12 and s13, which move on; compares the first one
 * with its end. At sp: that end, the zero point, the end of the inputs, the limits. */
#define GLOW_DSP_PAIRED_U8 \
  "sub r7, r7, r11\n" "sub r5, r5, r9\n" "vldmia r1!, {s8-s11}\n" "sub r4, r4, r8\n" "sub r6, r6, r10\n" "vmov s4, s5, r5, r9\n" \
  "vmov s6, s7, r7, r11\n" "vmov s2, s3, r6, r10\n" "vmov s0, s1, r4, r8\n" "vcvt.f32.s32 s6, s6, #8\n" "vcvt.f32.s32 s7, s7\n" \
  "vcvt.f32.s32 s0, s0, #8\n" "vcvt.f32.s32 s1, s1\n" "vmul.f32 s6, s6, s10\n" "vcvt.f32.s32 s2, s2, #8\n" "vcvt.f32.s32 s3, s3\n" \
  "vcvt.f32.s32 s4, s4, #8\n" "vmov r2, r3, s12, s13\n" "vmul.f32 s7, s7, s11\n" "vcvtr.s32.f32 s6, s6\n" "vcvt.f32.s32 s5, s5\n" \
  "vmul.f32 s4, s4, s8\n" "vmul.f32 s3, s3, s11\n" "vmul.f32 s5, s5, s9\n" "vmul.f32 s0, s0, s8\n" "vmul.f32 s1, s1, s9\n" \
  "vmul.f32 s2, s2, s10\n" "vcvtr.s32.f32 s5, s5\n" "vcvtr.s32.f32 s7, s7\n" "vcvtr.s32.f32 s4, s4\n" "vcvtr.s32.f32 s0, s0\n" \
  "vcvtr.s32.f32 s1, s1\n" "vcvtr.s32.f32 s3, s3\n" "vmov r10, r11, s6, s7\n" "vmov r8, r9, s4, s5\n" "vmov r4, r5, s0, s1\n" \
  "usat r10, #8, r10\n" "vcvtr.s32.f32 s2, s2\n" "usat r8, #8, r8\n" "usat r11, #8, r11\n" "vmov r6, r7, s2, s3\n" \
  "usat r4, #8, r4\n" "usat r9, #8, r9\n" "usat r6, #8, r6\n" "usat r5, #8, r5\n" "usat r7, #8, r7\n" "orr r8, r8, r9, lsl #8\n" \
  "orr r10, r10, r11, lsl #8\n" "orr r4, r4, r5, lsl #8\n" "orr r6, r6, r7, lsl #8\n" "orr r8, r8, r10, lsl #16\n" \
  "orr r4, r4, r6, lsl #16\n" "eor r8, r8, #0x80808080\n" "str r8, [r3], #4\n" "eor r4, r4, #0x80808080\n" "ldr lr, [sp]\n" \
  "str r4, [r2], #4\n" "cmp r2, lr\n" "vmov s12, s13, r2, r3\n"
#define GLOW_DSP_PAIRED_V8 \
  "sub r7, r7, r11\n" "sub r5, r5, r9\n" "vldmia r1!, {s8-s11}\n" "sub r6, r6, r10\n" "sub r4, r4, r8\n" "vmov s2, s3, r6, r10\n" \
  "vmov s0, s1, r4, r8\n" "vmov s6, s7, r7, r11\n" "vcvt.f32.s32 s3, s3\n" "vcvt.f32.s32 s0, s0, #8\n" "vcvt.f32.s32 s1, s1\n" \
  "vmul.f32 s3, s3, s11\n" "vmov s4, s5, r5, r9\n" "vmul.f32 s0, s0, s8\n" "vcvt.f32.s32 s2, s2, #8\n" "vmul.f32 s1, s1, s9\n" \
  "vcvt.f32.s32 s5, s5\n" "vmul.f32 s2, s2, s10\n" "vcvt.f32.s32 s6, s6, #8\n" "vcvt.f32.s32 s4, s4, #8\n" "vcvtr.s32.f32 s2, s2\n" \
  "vmul.f32 s6, s6, s10\n" "vcvt.f32.s32 s7, s7\n" "vcvtr.s32.f32 s0, s0\n" "vcvtr.s32.f32 s1, s1\n" "vcvtr.s32.f32 s3, s3\n" \
  "vmul.f32 s7, s7, s11\n" "vmov r4, r5, s0, s1\n" "vmov r6, r7, s2, s3\n" "vmul.f32 s5, s5, s9\n" "vcvtr.s32.f32 s7, s7\n" \
  "usat r7, #8, r7\n" "vmul.f32 s4, s4, s8\n" "usat r4, #8, r4\n" "vcvtr.s32.f32 s6, s6\n" "usat r5, #8, r5\n" \
  "vcvtr.s32.f32 s5, s5\n" "vcvtr.s32.f32 s4, s4\n" "vmov r10, r11, s6, s7\n" "usat r6, #8, r6\n" "vmov r8, r9, s4, s5\n" \
  "vmov r2, r3, s12, s13\n" "usat r11, #8, r11\n" "usat r9, #8, r9\n" "orr r4, r4, r5, lsl #8\n" "orr r6, r6, r7, lsl #8\n" \
  "usat r8, #8, r8\n" "usat r10, #8, r10\n" "orr r4, r4, r6, lsl #16\n" "ldr r12, [sp, #16]\n" "orr r10, r10, r11, lsl #8\n" \
  "eor r4, r4, #0x80808080\n" "orr r8, r8, r9, lsl #8\n" "ssub8 lr, r12, r4\n" "orr r8, r8, r10, lsl #16\n" "sel r4, r4, r12\n" \
  "eor r8, r8, #0x80808080\n" "ssub8 lr, r12, r8\n" "sel r8, r8, r12\n" "ldr lr, [sp]\n" "str r8, [r3], #4\n" "str r4, [r2], #4\n" \
  "cmp r2, lr\n" "vmov s12, s13, r2, r3\n"
#define GLOW_DSP_PAIRED_S8 \
  "sub r6, r6, r10\n" "sub r4, r4, r8\n" "vldmia r1!, {s8-s11}\n" "vmov s0, s1, r4, r8\n" "sub r7, r7, r11\n" "sub r5, r5, r9\n" \
  "ldr r12, [sp, #4]\n" "vcvt.f32.s32 s1, s1\n" "vmov s2, s3, r6, r10\n" "vcvt.f32.s32 s0, s0, #8\n" "vmov s6, s7, r7, r11\n" \
  "vcvt.f32.s32 s2, s2, #8\n" "vcvt.f32.s32 s3, s3\n" "vmul.f32 s0, s0, s8\n" "vmul.f32 s1, s1, s9\n" "vmul.f32 s3, s3, s11\n" \
  "vmul.f32 s2, s2, s10\n" "vcvtr.s32.f32 s0, s0\n" "vcvtr.s32.f32 s1, s1\n" "vmov s4, s5, r5, r9\n" "vcvtr.s32.f32 s3, s3\n" \
  "vmov r2, r3, s12, s13\n" "vmov r4, r5, s0, s1\n" "vcvtr.s32.f32 s2, s2\n" "vcvt.f32.s32 s4, s4, #8\n" "vcvt.f32.s32 s5, s5\n" \
  "vmov r6, r7, s2, s3\n" "vcvt.f32.s32 s6, s6, #8\n" "qadd r4, r4, r12\n" "vcvt.f32.s32 s7, s7\n" "qadd r5, r5, r12\n" \
  "vmul.f32 s4, s4, s8\n" "qadd r6, r6, r12\n" "vmul.f32 s5, s5, s9\n" "qadd r7, r7, r12\n" "vmul.f32 s6, s6, s10\n" \
  "ssat r4, #8, r4\n" "vmul.f32 s7, s7, s11\n" "ssat r5, #8, r5\n" "vcvtr.s32.f32 s4, s4\n" "ssat r6, #8, r6\n" \
  "bfi r4, r5, #8, #8\n" "vcvtr.s32.f32 s5, s5\n" "ssat r7, #8, r7\n" "vcvtr.s32.f32 s6, s6\n" "vcvtr.s32.f32 s7, s7\n" \
  "vmov r8, r9, s4, s5\n" "vmov r10, r11, s6, s7\n" "qadd r8, r8, r12\n" "bfi r6, r7, #8, #8\n" "qadd r9, r9, r12\n" \
  "qadd r10, r10, r12\n" "qadd r11, r11, r12\n" "ssat r9, #8, r9\n" "ssat r11, #8, r11\n" "pkhbt r4, r4, r6, lsl #16\n" \
  "ssat r8, #8, r8\n" "ssat r10, #8, r10\n" "ldrd lr, r12, [sp, #12]\n" "bfi r8, r9, #8, #8\n" "bfi r10, r11, #8, #8\n" \
  "ssub8 r5, r4, lr\n" "pkhbt r8, r8, r10, lsl #16\n" "sel r4, r4, lr\n" "ssub8 r5, r12, r4\n" "sel r4, r4, r12\n" \
  "ssub8 r5, r8, lr\n" "sel r8, r8, lr\n" "ssub8 r5, r12, r8\n" "ldr lr, [sp]\n" "sel r8, r8, r12\n" "str r8, [r3], #4\n" \
  "str r4, [r2], #4\n" "cmp r2, lr\n" "vmov s12, s13, r2, r3\n"

#define GLOW_DSP_PAIRED(end) \
  __asm__ volatile( \
      GLOW_DSP_GEMM_OPEN("16", "96") \
      "1:\n" \
      "vmov r0, r2, s14, s15\n" \
      GLOW_DSP_BEGIN \
      "bx r2\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_PAIRED_GROUPS GLOW_DSP_PAIRED_GROUPS GLOW_DSP_PAIRED_GROUPS GLOW_DSP_PAIRED_GROUPS \
      GLOW_DSP_CODE_BYTES("2", "16 * 96") \
      "ldr r2, [sp, #8]\n" \
      "cmp r0, r2\n" \
      "bne.w 2b\n" \
      end \
      "bne.w 1b\n" \
      "add sp, sp, #20\n" \
      "pop {r4-r11, pc}\n")

/* Expands columns 0 to 3, `in_c` bytes each (a multiple of four), for two pixels whose windows are three columns wide and
 * begin at columns 0 and 1: as three calls of glow_expand_pair, each column unpacked once. */
GLOW_HOT __attribute__((naked, noinline)) GLOW_DSP_UNUSED static void glow_expand_three(
    GLOW_DSP_UNUSED uint32_t *to, GLOW_DSP_UNUSED const int8_t *from, GLOW_DSP_UNUSED int32_t in_c,
    GLOW_DSP_UNUSED uint32_t neg_zp) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r11, lr}\n"
      "mov r12, r3\n"
      "mov lr, r2\n"
      "add r2, r0, lr, lsl #2\n"
      "add r3, r2, lr, lsl #2\n"
      "add r4, r1, lr\n"
      "vmov s0, r4\n"
      "1:\n"
      "ldr r9, [r1, lr]\n"
      "ldr r10, [r1, lr, lsl #1]\n"
      "add r7, r1, lr\n"
      "ldr r8, [r1], #4\n"
      "sxtab16 r5, r12, r9\n"
      "ldr r11, [r7, lr, lsl #1]\n"
      "sxtab16 r4, r12, r8\n"
      "sxtab16 r8, r12, r8, ror #8\n"
      "sxtab16 r9, r12, r9, ror #8\n"
      "sxtab16 r6, r12, r10\n"
      "stmia.w r0!, {r4, r5, r8, r9}\n"
      "sxtab16 r10, r12, r10, ror #8\n"
      "sxtab16 r7, r12, r11\n"
      "vmov r4, s0\n"
      "stmia.w r2!, {r5, r6, r9, r10}\n"
      "sxtab16 r11, r12, r11, ror #8\n"
      "cmp r1, r4\n"
      "stmia.w r3!, {r6, r7, r10, r11}\n"
      "bne.w 1b\n"
      "pop {r4-r11, pc}\n");
}

#define GLOW_DSP_PAIRED_FUNCTION(name, sign) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_PAIRED(GLOW_DSP_PAIRED_##sign); }
#else
GLOW_HOT GLOW_DSP_UNUSED static void glow_expand_three(uint32_t *to, const int8_t *from, int32_t in_c, uint32_t neg_zp) {
  for (int32_t column = 0; column < 3; column++, from += in_c, to += in_c) {
    glow_expand_pair(to, from, from + in_c, in_c / 4, neg_zp);
  }
}

#define GLOW_DSP_PAIRED_FUNCTION(name, sign) GLOW_DSP_GEMM_FUNCTION(name, DUAL, "96", )
#endif

GLOW_DSP_PAIRED_FUNCTION(glow_dsp_paired_s8, S8)
GLOW_DSP_PAIRED_FUNCTION(glow_dsp_paired_u8, U8)
GLOW_DSP_PAIRED_FUNCTION(glow_dsp_paired_v8, V8)

/* As glow_dsp_gemm_dual. */
GLOW_INLINE glow_dsp_gemm_fn glow_dsp_paired(int32_t out_zp, int32_t lo, int32_t hi) {
  if (out_zp != -128 || lo > -128) {
    return glow_dsp_paired_s8;
  }
  return hi < 127 ? glow_dsp_paired_v8 : glow_dsp_paired_u8;
}

#endif
