/* SPDX-License-Identifier: MIT-0 */
/* How the sums of four pixels and a pair of channels (glow_dsp_quad.h) become codes, or stay sums, and where they go.
 *
 * The sums are in r4-r7 for the even channel, in r8-r11 for the odd one, as the form of the weights leaves them; the
 * scales in s6 and s7; at sp + 20 the zero point, the lowest and the highest code.
 */
#ifndef GLOW_DSP_QUAD_ENDS_H
#define GLOW_DSP_QUAD_ENDS_H

#include "glow_dsp.h"

#if GLOW_DSP_ASM
#define GLOW_DSP_QUAD_SPLIT_DUAL "sub r4, r4, r8\n" "sub r5, r5, r9\n" "sub r6, r6, r10\n" "sub r7, r7, r11\n"
#define GLOW_DSP_QUAD_SPLIT_BYTES
#define GLOW_DSP_QUAD_SPLIT_WIDE
#define GLOW_DSP_QUAD_WHOLE_DUAL "asr r4, r4, #8\n" "asr r5, r5, #8\n" "asr r6, r6, #8\n" "asr r7, r7, #8\n"
#define GLOW_DSP_QUAD_WHOLE_BYTES
#define GLOW_DSP_QUAD_WHOLE_WIDE

/* Rounded values of a pixel's two channels in (r4, r5), (r6, r7), (r8, r9), (r10, r11) to two bytes of r4, r6, r8, r10.
 * U8, V8: the zero point is -128; U8, N8: without limits; V8: an upper one only. */
#define GLOW_DSP_QUAD_U8(a, b) "usat " a ", #8, " a "\n" "usat " b ", #8, " b "\n" "orr " a ", " a ", " b ", lsl #8\n"
#define GLOW_DSP_QUAD_N8(a, b) \
  "qadd " a ", " a ", r12\n" "qadd " b ", " b ", r12\n" "ssat " a ", #8, " a "\n" "ssat " b ", #8, " b "\n" \
  "bfi " a ", " b ", #8, #8\n"
#define GLOW_DSP_QUAD_ALL(codes) codes("r4", "r5") codes("r6", "r7") codes("r8", "r9") codes("r10", "r11")
#define GLOW_DSP_QUAD_SIGN(a) "eor " a ", " a ", #0x80808080\n"
#define GLOW_DSP_QUAD_MOST(a) "ssub8 r2, r12, " a "\n" "sel " a ", " a ", r12\n"
#define GLOW_DSP_QUAD_LEAST(a) "ssub8 r2, " a ", r3\n" "sel " a ", " a ", r3\n"
#define GLOW_DSP_QUAD_JOIN "pkhbt r4, r4, r6, lsl #16\n" "pkhbt r8, r8, r10, lsl #16\n"
#define GLOW_DSP_QUAD_PART "lsr r6, r4, #16\n" "lsr r10, r8, #16\n"
#define GLOW_DSP_QUAD_END_U8 \
  GLOW_DSP_QUAD_ALL(GLOW_DSP_QUAD_U8) \
  GLOW_DSP_QUAD_SIGN("r4") GLOW_DSP_QUAD_SIGN("r6") GLOW_DSP_QUAD_SIGN("r8") GLOW_DSP_QUAD_SIGN("r10")
#define GLOW_DSP_QUAD_END_V8 \
  "ldr r12, [sp, #28]\n" GLOW_DSP_QUAD_ALL(GLOW_DSP_QUAD_U8) GLOW_DSP_QUAD_JOIN \
  GLOW_DSP_QUAD_SIGN("r4") GLOW_DSP_QUAD_SIGN("r8") \
  GLOW_DSP_QUAD_MOST("r4") GLOW_DSP_QUAD_MOST("r8") GLOW_DSP_QUAD_PART
#define GLOW_DSP_QUAD_END_N8 "ldr r12, [sp, #20]\n" GLOW_DSP_QUAD_ALL(GLOW_DSP_QUAD_N8)
#define GLOW_DSP_QUAD_END_S8 \
  GLOW_DSP_QUAD_END_N8 GLOW_DSP_QUAD_JOIN "ldrd r3, r12, [sp, #24]\n" \
  GLOW_DSP_QUAD_LEAST("r4") GLOW_DSP_QUAD_LEAST("r8") GLOW_DSP_QUAD_MOST("r4") GLOW_DSP_QUAD_MOST("r8") \
  GLOW_DSP_QUAD_PART

/* Sums of eight outputs times their scales, rounded, in s8 to s15: even and odd of each pixel. */
#define GLOW_DSP_QUAD_REALS(form) \
  "vmov s8, s9, r4, r8\n" "vmov s10, s11, r5, r9\n" "vmov s12, s13, r6, r10\n" "vmov s14, s15, r7, r11\n" \
  "vcvt.f32.s32 s8, s8" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s9, s9\n" \
  "vcvt.f32.s32 s10, s10" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s11, s11\n" \
  "vcvt.f32.s32 s12, s12" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s13, s13\n" \
  "vcvt.f32.s32 s14, s14" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s15, s15\n" \
  "vmul.f32 s8, s8, s6\n" "vmul.f32 s9, s9, s7\n" "vmul.f32 s10, s10, s6\n" "vmul.f32 s11, s11, s7\n" \
  "vmul.f32 s12, s12, s6\n" "vmul.f32 s13, s13, s7\n" "vmul.f32 s14, s14, s6\n" "vmul.f32 s15, s15, s7\n" \
  "vcvtr.s32.f32 s8, s8\n" "vcvtr.s32.f32 s9, s9\n" "vcvtr.s32.f32 s10, s10\n" "vcvtr.s32.f32 s11, s11\n" \
  "vcvtr.s32.f32 s12, s12\n" "vcvtr.s32.f32 s13, s13\n" "vcvtr.s32.f32 s14, s14\n" "vcvtr.s32.f32 s15, s15\n"
/* The sums of eight outputs to codes; two bytes of r4, r6, r8 and r10 are those of a pixel. */
#define GLOW_DSP_QUAD_ROUND(form, end) \
  GLOW_DSP_QUAD_SPLIT_##form \
  GLOW_DSP_QUAD_REALS(form) \
  "vmov r4, r5, s8, s9\n" "vmov r6, r7, s10, s11\n" "vmov r8, r9, s12, s13\n" "vmov r10, r11, s14, s15\n" \
  GLOW_DSP_QUAD_END_##end
/* Codes of a pixel's two channels in (r4, r8) .. (r7, r11) to two bytes of r4 .. r7; their limits. */
#define GLOW_DSP_QUAD_PAIRS "bfi r4, r8, #8, #8\n" "bfi r5, r9, #8, #8\n" "bfi r6, r10, #8, #8\n" "bfi r7, r11, #8, #8\n"
#define GLOW_DSP_QUAD_LIMITS \
  "ldrd r3, r12, [sp, #24]\n" \
  "pkhbt r4, r4, r5, lsl #16\n" "pkhbt r6, r6, r7, lsl #16\n" \
  GLOW_DSP_QUAD_LEAST("r4") GLOW_DSP_QUAD_LEAST("r6") GLOW_DSP_QUAD_MOST("r4") GLOW_DSP_QUAD_MOST("r6") \
  "lsr r5, r4, #16\n" "lsr r7, r6, #16\n"
#define GLOW_DSP_QUAD_NO_LIMITS
/* Codes, or sums as they are (even channel of four pixels, then odd), to where out[1] points. */
#define GLOW_DSP_QUAD_STORE(a, b, c, d) \
  "ldm sp, {r0, r2, r3, r12}\n" \
  "strh " a ", [r0], #2\n" "strh " b ", [r2], #2\n" "strh " c ", [r3], #2\n" "strh " d ", [r12], #2\n" \
  "stm sp, {r0, r2, r3, r12}\n"
#define GLOW_DSP_QUAD_CODES(form, end) \
  GLOW_DSP_QUAD_ROUND(form, end) GLOW_DSP_QUAD_STORE("r4", "r6", "r8", "r10")
#define GLOW_DSP_QUAD_SUMS(form) \
  GLOW_DSP_QUAD_SPLIT_##form GLOW_DSP_QUAD_WHOLE_##form \
  "ldrd r0, r2, [sp]\n" \
  "stmia.w r2!, {r4-r11}\n" \
  "add r0, r0, #2\n" \
  "strd r0, r2, [sp]\n"
#else /* the ends are those of functions in C */
#define GLOW_DSP_QUAD_LIMITS
#define GLOW_DSP_QUAD_NO_LIMITS
#endif
#endif
