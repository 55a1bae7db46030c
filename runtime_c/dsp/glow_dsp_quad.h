/* SPDX-License-Identifier: MIT-0 */
/* Matrix product of four pixels with pairs of output channels, for CPUs with the DSP extension and an FPU.
 *
 * A step is two inputs of every pixel: four words of activations (glow_expand_quad), and of the weights
 *   dual: one word, whose halfwords are 256 * weight of the even channel + weight of the odd one: SMLAD sums
 *         256 * even + odd, then, after SXTB16, odd alone. The compiler proved that |even sum with bias| < 2^23;
 *   bytes: one word, whose halfwords are the bytes of the odd and the even channel's weight: SXTB16 takes out each;
 *   wide: two words, one per channel.
 * Weights wait in the FPU's registers, loaded 24 words at a time, so that the core's hold the sums; 12 where loop and
 * ending must fit the GLOW_LOOP_BYTES that chips with this core keep of their flash. Armv8-M loads a word as fast as it
 * moves one between registers: there a third of the words are loaded when they are needed, which takes a cycle less a
 * step, and two instructions more. The stream has, per pair of channels: two scales, two biases (dual: 256 * even + odd,
 * odd), the words of the steps; before all of it glow_dsp_quad_before() words that are loaded with the first ones and
 * not used. A mixed stream begins with the number of its runs of pairs and a word for each: 2 * pairs, and 1 when in
 * bytes.
 */
#ifndef GLOW_DSP_QUAD_H
#define GLOW_DSP_QUAD_H

#include "glow_dsp.h"
#include "glow_dsp_quad_ends.h"

/* One call: four pixels x `blocks` pairs of channels. A pixel that does not exist repeats another one. */
typedef struct {
  const uint32_t *acts;
  const uint32_t *stream;
  int8_t *out[4];
  int32_t blocks;
  const uint32_t *acts_end;
  int32_t skip; /* the first words hold the steps after the first one, after this many others */
  int32_t out_zp;
  uint32_t low; /* limits of the output, in all four bytes */
  uint32_t high;
} glow_dsp_quad_t;
#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_quad_t, acts, 0); GLOW_AT(glow_dsp_quad_t, stream, 4); GLOW_AT(glow_dsp_quad_t, out, 8);
GLOW_AT(glow_dsp_quad_t, blocks, 24); GLOW_AT(glow_dsp_quad_t, acts_end, 28); GLOW_AT(glow_dsp_quad_t, skip, 32);
GLOW_AT(glow_dsp_quad_t, out_zp, 36); GLOW_AT(glow_dsp_quad_t, low, 40); GLOW_AT(glow_dsp_quad_t, high, 44);
#endif

#define GLOW_DSP_STREAM_WORDS 24 /* the most that are loaded at a time: what a stream has before its first pair */
#if defined(GLOW_LOOP_BYTES) && GLOW_LOOP_BYTES < 1536 && !(defined(__ARM_ARCH) && __ARM_ARCH >= 8)
#define GLOW_DSP_QUAD_WORDS 12
#define GLOW_DSP_QUAD_LAST "s19" /* the register of the last */
#else
#define GLOW_DSP_QUAD_WORDS GLOW_DSP_STREAM_WORDS
#define GLOW_DSP_QUAD_LAST "s31"
#endif

/* Steps for `inputs` inputs, at least two; of the last one to three inputs two are a step. */
GLOW_INLINE int32_t glow_dsp_quad_steps(int32_t inputs) {
  const int32_t steps = (inputs + 1) / 2;
  return steps < 2 ? 2 : steps;
}

/* Steps to skip for `steps` steps of `words` words each, loaded `chunk` steps at a time. */
GLOW_INLINE int32_t glow_dsp_quad_skipped(int32_t steps, int32_t chunk) { return chunk - 1 - (steps - 2) % chunk; }

GLOW_INLINE int32_t glow_dsp_quad_skip(int32_t steps, int32_t words) {
  return glow_dsp_quad_skipped(steps, GLOW_DSP_QUAD_WORDS / words);
}

/* Words before the first pair: the most that is skipped beyond the scales, the biases and the first step. */
GLOW_INLINE int32_t glow_dsp_quad_before(int32_t steps, int32_t words) {
  const int32_t before = glow_dsp_quad_skipped(steps, GLOW_DSP_STREAM_WORDS / words) * words - 4 - words;
  return before < 0 ? 0 : before;
}

/* The last one to three inputs of a pixel: one or two are a step of their own, three a group. */
GLOW_INLINE void glow_dsp_quad_tail(uint32_t *to, const int8_t *from, int32_t n, uint32_t neg_zp) {
  uint32_t word = glow_load_tail(from, n);
  if (n < 3) {
    word = (word & 0xFFu) | (word & 0xFF00u) << 8;
  }
  to[0] = glow_sxtab16(neg_zp, word);
  to[4] = glow_sxtab16_odd(neg_zp, word);
}

#if GLOW_DSP_ASM
#define GLOW_DSP_QUAD_ACTS "ldmia.w r0!, {r1, r2, r3, r12}\n"
#define GLOW_DSP_QUAD_EVEN \
  "smlad r4, r1, lr, r4\n" "smlad r5, r2, lr, r5\n" "smlad r6, r3, lr, r6\n" "smlad r7, r12, lr, r7\n"
#define GLOW_DSP_QUAD_ODD \
  "smlad r8, r1, lr, r8\n" "smlad r9, r2, lr, r9\n" "smlad r10, r3, lr, r10\n" "smlad r11, r12, lr, r11\n"
/* A step whose weights wait in the FPU. */
#define GLOW_DSP_STEP_DUAL(a) \
  GLOW_DSP_QUAD_ACTS "vmov lr, s" #a "\n" GLOW_DSP_QUAD_EVEN "sxtb16 lr, lr\n" GLOW_DSP_QUAD_ODD
#define GLOW_DSP_STEP_BYTES(a) \
  GLOW_DSP_QUAD_ACTS "vmov lr, s" #a "\n" "sxtb16 lr, lr, ror #8\n" GLOW_DSP_QUAD_EVEN \
  "vmov lr, s" #a "\n" "sxtb16 lr, lr\n" GLOW_DSP_QUAD_ODD
#define GLOW_DSP_STEP_WIDE(a, b) \
  GLOW_DSP_QUAD_ACTS "vmov lr, s" #a "\n" GLOW_DSP_QUAD_EVEN "vmov lr, s" #b "\n" GLOW_DSP_QUAD_ODD
/* Bytes of a step's code. */
#define GLOW_DSP_QUAD_STEP_DUAL "44"
#define GLOW_DSP_QUAD_STEP_BYTES "52"
#define GLOW_DSP_QUAD_STEP_WIDE "44"
#define GLOW_DSP_STEPS_12(step) \
  step(8) step(9) step(10) step(11) step(12) step(13) step(14) step(15) step(16) step(17) step(18) step(19)
#define GLOW_DSP_TWOS_6(step) step(8, 9) step(10, 11) step(12, 13) step(14, 15) step(16, 17) step(18, 19)
#if defined(__ARM_ARCH) && __ARM_ARCH >= 8
#define GLOW_DSP_STEPS_ONE(step) GLOW_DSP_STEPS_12(step) step(20) step(21) step(22) step(23)
#define GLOW_DSP_STEPS_TWO(step) GLOW_DSP_TWOS_6(step) step(20, 21) step(22, 23)
/* The weights of a step to lr and, of the odd channel, r12; the inputs of the first two pixels to r2 and r3. */
#define GLOW_DSP_QUAD_FETCH_DUAL "ldr lr, [r1], #4\n" "ldrd r2, r3, [r0], #8\n" "sxtb16 r12, lr\n"
#define GLOW_DSP_QUAD_FETCH_BYTES GLOW_DSP_QUAD_FETCH_DUAL "sxtb16 lr, lr, ror #8\n"
#define GLOW_DSP_QUAD_FETCH_WIDE "ldrd lr, r12, [r1], #8\n" "ldr r2, [r0], #4\n" "ldr r3, [r0], #4\n"
/* A step in which no instruction uses what the one before it loaded. Its sums start from those of the registers. */
#define GLOW_DSP_QUAD_AHEAD(form, e0, e1, e2, o0, o1, o2) \
  GLOW_DSP_QUAD_FETCH_##form \
  "smlad r4, r2, lr, " e0 "\n" "smlad r8, r2, r12, " o0 "\n" "ldr r2, [r0], #4\n" \
  "smlad r5, r3, lr, " e1 "\n" "smlad r9, r3, r12, " o1 "\n" "ldr r3, [r0], #4\n" \
  "smlad r6, r2, lr, " e2 "\n" "smlad r10, r2, r12, " o2 "\n" "smlad r7, r3, lr, r7\n" "smlad r11, r3, r12, r11\n"
#define GLOW_DSP_QUAD_NEXT(form) GLOW_DSP_QUAD_AHEAD(form, "r4", "r5", "r6", "r8", "r9", "r10")
#define GLOW_DSP_QUAD_NEXT3(form) GLOW_DSP_QUAD_NEXT(form) GLOW_DSP_QUAD_NEXT(form) GLOW_DSP_QUAD_NEXT(form)
#define GLOW_DSP_QUAD_AHEAD_DUAL "52"
#define GLOW_DSP_QUAD_AHEAD_BYTES "56"
#define GLOW_DSP_QUAD_AHEAD_WIDE "52"
/* A round of the loop: a step as above, steps whose weights wait, and others as above. Of layers of 24 n steps the second
 * one, with which the loop begins after the first, is then where the words that wait are loaded. */
#define GLOW_DSP_QUAD_WEIGHTS "vldmia r1!, {s8-s23}\n" "vmov s0, r1\n"
#define GLOW_DSP_QUAD_ROUNDS(form, waiting) \
  GLOW_DSP_QUAD_NEXT(form) GLOW_DSP_QUAD_WEIGHTS waiting "vmov r1, s0\n" GLOW_DSP_QUAD_NEXT3(form)
#define GLOW_DSP_STEPS_DUAL \
  GLOW_DSP_QUAD_ROUNDS(DUAL, GLOW_DSP_STEPS_ONE(GLOW_DSP_STEP_DUAL)) GLOW_DSP_QUAD_NEXT3(DUAL) GLOW_DSP_QUAD_NEXT(DUAL)
#define GLOW_DSP_STEPS_BYTES \
  GLOW_DSP_QUAD_ROUNDS(BYTES, GLOW_DSP_STEPS_ONE(GLOW_DSP_STEP_BYTES)) \
  GLOW_DSP_QUAD_NEXT3(BYTES) GLOW_DSP_QUAD_NEXT(BYTES)
#define GLOW_DSP_STEPS_WIDE GLOW_DSP_QUAD_ROUNDS(WIDE, GLOW_DSP_STEPS_TWO(GLOW_DSP_STEP_WIDE))
#define GLOW_DSP_QUAD_WAITING_DUAL "16"
#define GLOW_DSP_QUAD_WAITING_BYTES "16"
#define GLOW_DSP_QUAD_WAITING_WIDE "8"
#define GLOW_DSP_QUAD_OTHERS_DUAL "8"
#define GLOW_DSP_QUAD_OTHERS_BYTES "8"
#define GLOW_DSP_QUAD_OTHERS_WIDE "4"
#define GLOW_DSP_QUAD_WORD_SHIFT_DUAL "2" /* from the words of a step to those of the next one */
#define GLOW_DSP_QUAD_WORD_SHIFT_BYTES "2"
#define GLOW_DSP_QUAD_WORD_SHIFT_WIDE "3"
#define GLOW_DSP_QUAD_BEGIN_F32 "vldmia r1!, {s6-s7}\n" "ldrd r7, r11, [r1], #8\n"
#define GLOW_DSP_QUAD_FRAME_F32 "40" /* at 32, for 3: how far its words reach back, and where it goes on */
#define GLOW_DSP_QUAD_SAVE "vpush {s16-s23}\n"
#define GLOW_DSP_QUAD_RESTORE "vpop {s16-s23}\n"
/* In r3 where the second step of a pair is in the round, of r5 steps to skip: at 3, which loads its words, where it is
 * among those that wait, but not the first. Uses r5 to r7. */
#define GLOW_DSP_QUAD_ENTRY(form) \
  "adr.w r3, 2f\n" \
  "movs r7, #" GLOW_DSP_QUAD_AHEAD_##form "\n" \
  "cmp r5, #1\n" \
  "ble.n 6f\n" \
  "subs r6, r5, #1 + " GLOW_DSP_QUAD_WAITING_##form "\n" \
  "bge.n 5f\n" \
  "subs r5, r5, #1\n" \
  "movs r6, #" GLOW_DSP_QUAD_STEP_##form "\n" \
  "mla r6, r5, r6, r3\n" \
  "adds r6, r6, #" GLOW_DSP_QUAD_AHEAD_##form " + 8 + 1\n" \
  "lsls r5, r5, #" GLOW_DSP_QUAD_WORD_SHIFT_##form "\n" \
  "strd r5, r6, [sp, #32]\n" \
  "adr.w r3, 3f\n" \
  "movs r5, #0\n" \
  "b.n 6f\n" \
  "5:\n" \
  "addw r3, r3, #" GLOW_DSP_QUAD_AHEAD_##form " + 8 + " GLOW_DSP_QUAD_WAITING_##form " * " GLOW_DSP_QUAD_STEP_##form " + 4\n" \
  "mov r5, r6\n" \
  "6:\n" \
  "mla r3, r5, r7, r3\n" \
  "orr r3, r3, #1\n"
/* From 1: the sums of a pair in r4-r11, from its biases on; r1 after its weights. */
#define GLOW_DSP_QUAD_PRODUCT(begin, form) \
  "1:\n" \
  GLOW_DSP_QUAD_BEGIN_##begin \
  "vmov r0, s2\n" \
  GLOW_DSP_QUAD_AHEAD(form, "r7", "r7", "r7", "r11", "r11", "r11") \
  "vmov lr, s3\n" \
  "bx lr\n" \
  "3:\n" \
  "ldrd r2, lr, [sp, #32]\n" \
  "sub r1, r1, r2\n" \
  GLOW_DSP_QUAD_WEIGHTS \
  "bx lr\n" \
  ".balign 4\n" \
  "2:\n" \
  GLOW_DSP_STEPS_##form \
  GLOW_DSP_CODE_BYTES("2", GLOW_DSP_QUAD_OTHERS_##form " * " GLOW_DSP_QUAD_AHEAD_##form " + 12 + " \
                           GLOW_DSP_QUAD_WAITING_##form " * " GLOW_DSP_QUAD_STEP_##form) \
  "vmov r2, s1\n" \
  "cmp r0, r2\n" \
  "bne.w 2b\n"
#else
#if GLOW_DSP_QUAD_WORDS == 12
#define GLOW_DSP_STEPS_ONE(step) GLOW_DSP_STEPS_12(step)
#define GLOW_DSP_STEPS_TWO(step) GLOW_DSP_TWOS_6(step)
#else
#define GLOW_DSP_STEPS_ONE(step) \
  GLOW_DSP_STEPS_12(step) \
  step(20) step(21) step(22) step(23) step(24) step(25) step(26) step(27) step(28) step(29) step(30) step(31)
#define GLOW_DSP_STEPS_TWO(step) \
  GLOW_DSP_TWOS_6(step) step(20, 21) step(22, 23) step(24, 25) step(26, 27) step(28, 29) step(30, 31)
#endif
#define GLOW_DSP_STEPS_DUAL GLOW_DSP_STEPS_ONE(GLOW_DSP_STEP_DUAL)
#define GLOW_DSP_STEPS_BYTES GLOW_DSP_STEPS_ONE(GLOW_DSP_STEP_BYTES)
#define GLOW_DSP_STEPS_WIDE GLOW_DSP_STEPS_TWO(GLOW_DSP_STEP_WIDE)
/* Steps of a loop. */
#define GLOW_DSP_QUAD_COUNT_DUAL GLOW_TEXT(GLOW_DSP_QUAD_WORDS)
#define GLOW_DSP_QUAD_COUNT_BYTES GLOW_DSP_QUAD_COUNT_DUAL
#define GLOW_DSP_QUAD_COUNT_WIDE GLOW_DSP_QUAD_COUNT_DUAL " / 2"
/* The first step: its sums start from the biases in r7 and r11. */
#define GLOW_DSP_HEAD_F32_DUAL "vldmia r1!, {s6-s7}\n" "ldmia.w r1!, {r7, r11, lr}\n"
#define GLOW_DSP_HEAD_F32_BYTES \
  "vldmia r1!, {s6-s7}\n" "ldmia.w r1!, {r7, r11, lr}\n" "vmov s5, lr\n" "sxtb16 lr, lr, ror #8\n"
#define GLOW_DSP_HEAD_F32_WIDE \
  "vldmia r1!, {s6-s7}\n" "ldmia.w r1!, {r7, r11, r12, lr}\n" "vmov s5, lr\n" "mov lr, r12\n"
#define GLOW_DSP_SECOND_DUAL "sxtb16 lr, lr\n"
#define GLOW_DSP_SECOND_BYTES "vmov lr, s5\n" "sxtb16 lr, lr\n"
#define GLOW_DSP_SECOND_WIDE "vmov lr, s5\n"
#define GLOW_DSP_QUAD_BACK_DUAL "lsl r2, r5, #2\n"
#define GLOW_DSP_QUAD_BACK_BYTES GLOW_DSP_QUAD_BACK_DUAL
#define GLOW_DSP_QUAD_BACK_WIDE "lsl r2, r5, #3\n"
#define GLOW_DSP_QUAD_FRAME_F32 "32"
#define GLOW_DSP_QUAD_SAVE "vpush {s16-" GLOW_DSP_QUAD_LAST "}\n"
#define GLOW_DSP_QUAD_RESTORE "vpop {s16-" GLOW_DSP_QUAD_LAST "}\n"
/* Where the second step of a pair is, of r5 steps to skip, in r3. Uses r6. */
#define GLOW_DSP_QUAD_ENTRY(form) \
  "mov r6, #" GLOW_DSP_QUAD_STEP_##form "\n" \
  "mul r6, r6, r5\n" \
  "adr.w r3, 2f\n" \
  "add r3, r3, r6\n" \
  "orr r3, r3, #1\n"
/* From 1: the sums of a pair in r4-r11; r1 after its weights. */
#define GLOW_DSP_QUAD_PRODUCT(begin, form) \
  GLOW_DSP_QUAD_BACK_##form \
  "vmov s4, r2\n" \
  "1:\n" \
  GLOW_DSP_HEAD_##begin##_##form \
  "vmov r0, s4\n" \
  "sub r1, r1, r0\n" \
  "vldmia r1!, {s8-" GLOW_DSP_QUAD_LAST "}\n" \
  "vmov s0, r1\n" "vmov r0, s2\n" \
  GLOW_DSP_QUAD_ACTS \
  "smlad r4, r1, lr, r7\n" "smlad r5, r2, lr, r7\n" "smlad r6, r3, lr, r7\n" "smlad r7, r12, lr, r7\n" \
  GLOW_DSP_SECOND_##form \
  "smlad r8, r1, lr, r11\n" "smlad r9, r2, lr, r11\n" "smlad r10, r3, lr, r11\n" "smlad r11, r12, lr, r11\n" \
  "vmov lr, s3\n" \
  "bx lr\n" \
  ".balign 4\n" \
  "3:\n" \
  "vldmia r1!, {s8-" GLOW_DSP_QUAD_LAST "}\n" \
  "vmov s0, r1\n" \
  "2:\n" \
  GLOW_DSP_STEPS_##form \
  GLOW_DSP_CODE_BYTES("2", GLOW_DSP_QUAD_STEP_##form " * " GLOW_DSP_QUAD_COUNT_##form) \
  "vmov r1, r2, s0, s1\n" \
  "cmp r0, r2\n" \
  "bne.w 3b\n"
#endif

#define GLOW_DSP_QUAD(begin, form, finish, apart) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      GLOW_DSP_QUAD_SAVE \
      "sub sp, sp, #" GLOW_DSP_QUAD_FRAME_##begin "\n" \
      "ldm r0!, {r2-r8}\n" /* acts, stream, out, blocks */ \
      "add r8, r4, r8, lsl #1\n" \
      "stm sp, {r4-r8}\n" \
      "ldm r0, {r4-r8}\n" /* end of acts, skip, zero point, limits */ \
      "str r6, [sp, #20]\n" \
      "strd r7, r8, [sp, #24]\n" \
      "mov r1, r3\n" \
      GLOW_DSP_QUAD_ENTRY(form) \
      "vmov s1, r4\n" "vmov s2, s3, r2, r3\n" \
      GLOW_DSP_QUAD_PRODUCT(begin, form) \
      finish \
      "ldr lr, [sp, #16]\n" \
      "cmp r0, lr\n" \
      "bne.w 1b\n" \
      "add sp, sp, #" GLOW_DSP_QUAD_FRAME_##begin "\n" \
      GLOW_DSP_QUAD_RESTORE \
      "pop {r4-r11, pc}\n" \
      apart)

#define GLOW_DSP_QUAD_GROUP \
  "ldr r4, [r1], #4\n" "ldr r5, [r2], #4\n" "ldr r6, [r3], #4\n" "ldr r7, [r12], #4\n" \
  "sxtab16 r8, lr, r4, ror #8\n" "sxtab16 r9, lr, r5, ror #8\n" \
  "sxtab16 r10, lr, r6, ror #8\n" "sxtab16 r11, lr, r7, ror #8\n" \
  "sxtab16 r4, lr, r4\n" "sxtab16 r5, lr, r5\n" "sxtab16 r6, lr, r6\n" "sxtab16 r7, lr, r7\n" \
  "stmia.w r0!, {r4-r11}\n"

/* Copies words (at least one) of the stream; returns the place after them. */
GLOW_HOT __attribute__((naked, noinline)) GLOW_DSP_UNUSED static uint32_t *glow_dsp_keep(
    GLOW_DSP_UNUSED uint32_t *to, GLOW_DSP_UNUSED const uint32_t *from, GLOW_DSP_UNUSED int32_t words) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r10}\n"
      "b.w 2f\n"
      "1:\n"
      "ldmia.w r1!, {r3-r10}\n"
      "stmia.w r0!, {r3-r10}\n"
      "2:\n"
      "subs r2, r2, #8\n"
      "bge.w 1b\n"
      "adds r2, r2, #8\n"
      "beq.w 4f\n"
      "3:\n"
      "ldr.w r3, [r1], #4\n"
      "str.w r3, [r0], #4\n"
      "subs r2, r2, #1\n"
      "bne.w 3b\n"
      "4:\n"
      "pop {r4-r10}\n"
      "bx lr\n");
}

/* `begin` is what a pair of the stream begins with: F32 scales, or as glow_dsp_quad_q31.h and glow_dsp_quads_line.h have it.
 * `finish` makes codes of sums; what it seldom does is `apart`. */
#define GLOW_DSP_QUAD_FUNCTION(name, begin, form, finish, apart) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_quad_t *q) { GLOW_DSP_QUAD(begin, form, finish, apart); }
#define GLOW_DSP_QUAD_TO_CODES(name, form, end) \
  GLOW_DSP_QUAD_FUNCTION(name, F32, form, GLOW_DSP_QUAD_CODES(form, end), )
#define GLOW_DSP_QUAD_TO_SUMS(name, form) GLOW_DSP_QUAD_FUNCTION(name, F32, form, GLOW_DSP_QUAD_SUMS(form), )
/* Expands groups (at least one) of four inputs of four pixels; returns the place after them. */
GLOW_HOT __attribute__((naked, noinline)) GLOW_DSP_UNUSED static uint32_t *glow_expand_quad(
    GLOW_DSP_UNUSED uint32_t *to, GLOW_DSP_UNUSED const int8_t *const *from, GLOW_DSP_UNUSED int32_t groups,
    GLOW_DSP_UNUSED uint32_t neg_zp) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r11, lr}\n"
      "mov lr, r3\n"
      "ldm r1, {r4-r7}\n"
      "add r8, r4, r2, lsl #2\n"
      "vmov s0, r8\n"
      "rsb r2, r2, #0\n"
      "and r2, r2, #3\n"
      "mov r8, #52\n"
      "mul r8, r8, r2\n"
      "adr.w r9, 1f\n"
      "add r8, r8, r9\n"
      "orr r8, r8, #1\n"
      "mov r1, r4\n" "mov r2, r5\n" "mov r3, r6\n" "mov r12, r7\n"
      "bx r8\n"
      ".balign 4\n"
      "1:\n"
      GLOW_DSP_QUAD_GROUP GLOW_DSP_QUAD_GROUP GLOW_DSP_QUAD_GROUP GLOW_DSP_QUAD_GROUP
      GLOW_DSP_CODE_BYTES("1", "4 * 52")
      "vmov r4, s0\n"
      "cmp r1, r4\n"
      "bne.w 1b\n"
      "pop {r4-r11, pc}\n");
}

#else /* the same in C */

typedef enum { GLOW_DSP_QUAD_AS_DUAL, GLOW_DSP_QUAD_AS_BYTES, GLOW_DSP_QUAD_AS_WIDE } glow_dsp_quad_form_t;

GLOW_INLINE int32_t glow_dsp_quad_words(glow_dsp_quad_form_t form) { return form == GLOW_DSP_QUAD_AS_WIDE ? 2 : 1; }

GLOW_INLINE int32_t glow_dsp_quad_sum(const glow_dsp_quad_t *q, const uint32_t *w, glow_dsp_quad_form_t form,
                                        int32_t pixel, int32_t channel) {
  const int32_t dual = form == GLOW_DSP_QUAD_AS_DUAL ? 1 : 0;
  int32_t odd = (int32_t)w[3];
  int32_t sum = (int32_t)w[2 + channel];
  w += 4;
  for (const uint32_t *acts = q->acts; acts != q->acts_end; acts += 4, w += glow_dsp_quad_words(form)) {
    const uint32_t low = glow_sxtab16(0u, w[0]);
    const uint32_t even = form == GLOW_DSP_QUAD_AS_BYTES ? glow_sxtab16_odd(0u, w[0]) : w[0];
    odd = glow_dsp_smlad(acts[pixel], form == GLOW_DSP_QUAD_AS_WIDE ? w[1] : low, odd);
    sum = glow_dsp_smlad(acts[pixel], even, sum);
  }
  if (channel != 0) {
    return odd;
  }
  return dual ? (int32_t)((uint32_t)sum - (uint32_t)odd) / 256 : sum; /* without remainder */
}

GLOW_INLINE void glow_dsp_quad_twin(const glow_dsp_quad_t *q, glow_dsp_quad_form_t form) {
  const uint32_t *w = q->stream;
  const int32_t steps = (int32_t)((q->acts_end - q->acts) / 4);
  for (int32_t b = 0; b < q->blocks; b++, w += 4 + steps * glow_dsp_quad_words(form)) {
    for (int32_t i = 0; i < 8; i++) {
      float scale;
      memcpy(&scale, &w[i % 2], sizeof scale);
      const int32_t sum = glow_dsp_quad_sum(q, w, form, i / 2, i % 2);
      q->out[i / 2][2 * b + i % 2] =
          (int8_t)glow_requant(sum, scale, q->out_zp, glow_first8(q->low), glow_first8(q->high));
    }
  }
}

GLOW_INLINE void glow_dsp_quad_sums_twin(const glow_dsp_quad_t *q, glow_dsp_quad_form_t form) {
  const int32_t words = glow_dsp_quad_words(form);
  const int32_t steps = (int32_t)((q->acts_end - q->acts) / 4);
  for (int32_t i = 0; i < 8 * q->blocks; i++) {
    const int32_t sum = glow_dsp_quad_sum(q, q->stream + i / 8 * (4 + steps * words), form, i % 4, i / 4 % 2);
    memcpy(q->out[1] + 4 * i, &sum, sizeof sum);
  }
}

#define GLOW_DSP_QUAD_TO_CODES(name, form, end) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_quad_t *q) { glow_dsp_quad_twin(q, GLOW_DSP_QUAD_AS_##form); }
#define GLOW_DSP_QUAD_TO_SUMS(name, form) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_quad_t *q) { glow_dsp_quad_sums_twin(q, GLOW_DSP_QUAD_AS_##form); }

GLOW_HOT GLOW_DSP_UNUSED static uint32_t *glow_dsp_keep(uint32_t *to, const uint32_t *from, int32_t words) {
  memcpy(to, from, (size_t)(4 * words));
  return to + words;
}

GLOW_HOT GLOW_DSP_UNUSED static uint32_t *glow_expand_quad(uint32_t *to, const int8_t *const *from, int32_t groups,
                                                  uint32_t neg_zp) {
  for (int32_t g = 0; g < groups; g++, to += 8) {
    for (int32_t i = 0; i < 4; i++) {
      const uint32_t word = glow_load4(from[i] + 4 * g);
      to[i] = glow_sxtab16(neg_zp, word);
      to[i + 4] = glow_sxtab16_odd(neg_zp, word);
    }
  }
  return to;
}
#endif

GLOW_DSP_QUAD_TO_CODES(glow_dsp_quad_dual_u8, DUAL, U8)
GLOW_DSP_QUAD_TO_CODES(glow_dsp_quad_dual_v8, DUAL, V8)
GLOW_DSP_QUAD_TO_CODES(glow_dsp_quad_dual_n8, DUAL, N8)
GLOW_DSP_QUAD_TO_CODES(glow_dsp_quad_dual_s8, DUAL, S8)
GLOW_DSP_QUAD_TO_CODES(glow_dsp_quad_bytes, BYTES, S8)
GLOW_DSP_QUAD_TO_CODES(glow_dsp_quad_wide, WIDE, S8)
GLOW_DSP_QUAD_TO_SUMS(glow_dsp_quad_sums_dual, DUAL)
GLOW_DSP_QUAD_TO_SUMS(glow_dsp_quad_sums_bytes, BYTES)
GLOW_DSP_QUAD_TO_SUMS(glow_dsp_quad_sums_wide, WIDE)

typedef void (*glow_dsp_quad_fn)(const glow_dsp_quad_t *q);

/* The products of a stream whose first `kept` pairs, of `words` words each, are also at `copy`. */
GLOW_INLINE void glow_dsp_quad_kept(const glow_dsp_quad_t *q, const uint32_t *copy, int32_t kept, int32_t words,
                                      glow_dsp_quad_fn product) {
  glow_dsp_quad_t part = *q;
  part.stream = copy;
  part.blocks = kept;
  product(&part);
  part.stream = q->stream + kept * words;
  part.blocks = q->blocks - kept;
  if (part.blocks > 0) {
    for (int32_t i = 0; i < 4; i++) {
      part.out[i] += 2 * kept;
    }
    product(&part);
  }
}

/* The products of `held` quads whose activations follow each other from those of `q` on, pixels at `outs`: pairs of
 * channels of `part` words in all, `words` each, for all quads, then the next ones; an odd channel by itself. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_quad_batch(const glow_dsp_quad_t *q, int8_t *(*outs)[4], int32_t held,
                                                         int32_t channels, int32_t part, int32_t words,
                                                         glow_dsp_quad_fn product) {
  const int32_t most = part / words * 2;
  glow_dsp_quad_t one = *q;
  int32_t count;
  for (int32_t c = 0; c < channels; c += count) {
    int8_t last[8];
    count = channels - c < most ? (channels - c) / 2 * 2 : most;
    one.blocks = count == 0 ? 1 : count / 2;
    one.acts = q->acts;
    for (int32_t n = 0; n < held; n++) {
      one.acts_end = one.acts + (q->acts_end - q->acts);
      for (int32_t i = 0; i < 4; i++) {
        one.out[i] = count == 0 ? last + 2 * i : outs[n][i] + c;
      }
      product(&one);
      one.acts = one.acts_end;
      for (int32_t i = 0; count == 0 && i < 4; i++) {
        outs[n][i][c] = last[2 * i];
      }
    }
    one.stream += one.blocks * words;
    count = count == 0 ? 1 : count;
  }
}

/* The products of a mixed stream, `q->stream` after its table `runs`, of `channels` channels; a pair has `head` words
 * before those of its steps. */
GLOW_INLINE void glow_dsp_quad_each_run(const glow_dsp_quad_t *q, const uint32_t *runs, int32_t channels, int32_t head,
                                        glow_dsp_quad_fn dual, glow_dsp_quad_fn bytes) {
  glow_dsp_quad_t part = *q;
  const int32_t words = head + (int32_t)((q->acts_end - q->acts) / 4);
  for (uint32_t r = 1u; r <= runs[0]; r++) {
    const glow_dsp_quad_fn product = (runs[r] & 1u) != 0u ? bytes : dual;
    part.blocks = (int32_t)(runs[r] >> 1);
    if (channels == 1) { /* half of the last pair */
      int8_t codes[8];
      for (int32_t i = 0; i < 4; i++) {
        part.out[i] = codes + 2 * i;
      }
      product(&part);
      for (int32_t i = 0; i < 4; i++) {
        q->out[i][2 * ((part.stream - q->stream) / words)] = codes[2 * i];
      }
      return;
    }
    product(&part);
    part.stream += part.blocks * words;
    for (int32_t i = 0; i < 4; i++) {
      part.out[i] += 2 * part.blocks;
    }
    channels -= 2 * part.blocks;
  }
}

GLOW_INLINE void glow_dsp_quad_runs(const glow_dsp_quad_t *q, const uint32_t *runs, int32_t channels,
                                      glow_dsp_quad_fn dual) {
  glow_dsp_quad_each_run(q, runs, channels, 4, dual, glow_dsp_quad_bytes);
}

/* The sums of a mixed stream, as glow_dsp_quad_sums_dual. */
GLOW_INLINE void glow_dsp_quad_sums_runs(const glow_dsp_quad_t *q, const uint32_t *runs) {
  glow_dsp_quad_t part = *q;
  const int32_t words = 4 + (int32_t)((q->acts_end - q->acts) / 4);
  for (uint32_t r = 1u; r <= runs[0]; r++) {
    part.blocks = (int32_t)(runs[r] >> 1);
    if ((runs[r] & 1u) != 0u) {
      glow_dsp_quad_sums_bytes(&part);
    } else {
      glow_dsp_quad_sums_dual(&part);
    }
    part.stream += part.blocks * words;
    for (int32_t i = 0; i < 4; i++) {
      part.out[i] += 32 * part.blocks;
    }
  }
}

#endif
