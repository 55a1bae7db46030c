/* SPDX-License-Identifier: MIT-0 */
/* Products of several quads of pixels (glow_dsp_quad.h): the weights of a pair of channels are read for all of them
 * before those of the next pair, so that a small cache of the flash keeps them. */
#ifndef GLOW_DSP_QUADS_H
#define GLOW_DSP_QUADS_H

#include "glow_dsp_quad.h"

/* One call. The pixels of a quad lie `stride` bytes apart. */
typedef struct {
  const uint32_t *acts; /* of all quads, one after another */
  const uint32_t *stream;
  int8_t *out;    /* of the first pixel */
  int32_t stride; /* of pixels, in bytes */
  int32_t step;   /* from a quad's first pixel to that of the next one, in bytes */
  int32_t quads;
  int32_t blocks;
  int32_t quad_bytes; /* of a quad's activations */
  int32_t skip;
  int32_t out_zp;
  uint32_t low;
  uint32_t high;
} glow_dsp_quads_t;
#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_quads_t, acts, 0); GLOW_AT(glow_dsp_quads_t, stream, 4); GLOW_AT(glow_dsp_quads_t, out, 8);
GLOW_AT(glow_dsp_quads_t, stride, 12); GLOW_AT(glow_dsp_quads_t, step, 16); GLOW_AT(glow_dsp_quads_t, quads, 20);
GLOW_AT(glow_dsp_quads_t, blocks, 24); GLOW_AT(glow_dsp_quads_t, quad_bytes, 28);
GLOW_AT(glow_dsp_quads_t, skip, 32); GLOW_AT(glow_dsp_quads_t, out_zp, 36); GLOW_AT(glow_dsp_quads_t, low, 40);
GLOW_AT(glow_dsp_quads_t, high, 44);
#endif

#if GLOW_DSP_ASM && (GLOW_DSP_QUAD_WORDS == 12 || __ARM_ARCH >= 8) /* longer loops need the registers of the FPU */
#if __ARM_ARCH >= 8
#define GLOW_DSP_QUADS_SAVE "vpush {s16-s31}\n"
#define GLOW_DSP_QUADS_RESTORE "vpop {s16-s31}\n"
#define GLOW_DSP_QUADS_REGISTERS "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", "s4"
#else
#define GLOW_DSP_QUADS_SAVE "vpush {s16-s28}\n"
#define GLOW_DSP_QUADS_RESTORE "vpop {s16-s28}\n"
#define GLOW_DSP_QUADS_REGISTERS "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28"
#endif
/* In GLOW_DSP_QUADS_REGISTERS: where the codes go, stride, the words of the pair, bytes of a quad's activations, end of
 * the first pixel's codes, first activations, from a pair's last quad to the next pair's first one, last activations,
 * step. */
#define GLOW_DSP_QUADS_BY(macro, ...) macro(__VA_ARGS__)
#define GLOW_DSP_QUADS_PLACES(to, stride, words, bytes, end, first, again, last, step) \
  "vmov r0, r2, " to ", " stride "\n"
#define GLOW_DSP_QUADS_STORE(a, b, c, d) \
  GLOW_DSP_QUADS_BY(GLOW_DSP_QUADS_PLACES, GLOW_DSP_QUADS_REGISTERS) \
  "add r3, r2, r2, lsl #1\n" \
  "strh " a ", [r0]\n" "strh " b ", [r0, r2]\n" "strh " c ", [r0, r2, lsl #1]\n" "strh " d ", [r0, r3]\n"
#define GLOW_DSP_QUADS(begin, form, finish, apart) \
  GLOW_DSP_QUADS_BY(GLOW_DSP_QUADS_IN, begin, form, finish, apart, GLOW_DSP_QUADS_REGISTERS)
#define GLOW_DSP_QUADS_IN(begin, form, finish, apart, to, stride, words, bytes, end, first, again, last, step) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      GLOW_DSP_QUADS_SAVE \
      "sub sp, sp, #" GLOW_DSP_QUAD_FRAME_##begin "\n" \
      "ldm r0!, {r1-r8}\n" /* acts, stream, out, stride, step, quads, blocks, bytes of a quad */ \
      "ldm r0, {r9-r12}\n" /* skip, zero point, limits */ \
      "str r10, [sp, #20]\n" \
      "strd r11, r12, [sp, #24]\n" \
      "mla r10, r6, r8, r1\n" \
      "sub r6, r6, #1\n" \
      "mul r6, r6, r5\n" \
      "rsb r6, r6, #2\n" \
      "add r7, r3, r7, lsl #1\n" \
      "vmov " to ", " stride ", r3, r4\n" "vmov " words ", " bytes ", r2, r8\n" "vmov " end ", " first ", r7, r1\n" \
      "vmov " again ", " last ", r6, r10\n" \
      "vmov " step ", r5\n" \
      "add r8, r8, r1\n" \
      "mov r5, r9\n" \
      GLOW_DSP_QUAD_ENTRY(form) \
      "vmov s1, s2, r8, r1\n" "vmov s3, r3\n" \
      "mov r1, r2\n" \
      GLOW_DSP_QUAD_PRODUCT(begin, form) \
      finish \
      "vmov r3, s1\n" "vmov r5, " last "\n" \
      "cmp r3, r5\n" \
      "beq.w 4f\n" /* the next quad of the pair: */ \
      "vmov r1, r6, " words ", " bytes "\n" "vmov r5, " step "\n" \
      "add r0, r0, r5\n" \
      "add r6, r6, r3\n" \
      "vmov " to ", r0\n" "vmov s1, s2, r6, r3\n" \
      "b.w 1b\n" \
      "4:\n" /* the first quad of the next pair: */ \
      "vmov r3, r5, " first ", " again "\n" "vmov r6, r7, " bytes ", " end "\n" \
      "add r0, r0, r5\n" \
      "add r6, r6, r3\n" \
      "vmov " to ", r0\n" "vmov " words ", r1\n" "vmov s1, s2, r6, r3\n" \
      "cmp r0, r7\n" \
      "bne.w 1b\n" \
      "add sp, sp, #" GLOW_DSP_QUAD_FRAME_##begin "\n" \
      GLOW_DSP_QUADS_RESTORE \
      "pop {r4-r11, pc}\n" \
      apart)

#define GLOW_DSP_QUADS_FUNCTION(name, begin, form, finish, apart) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_quads_t *q) { GLOW_DSP_QUADS(begin, form, finish, apart); }
#define GLOW_DSP_QUADS_TO_CODES(name, end, one) \
  GLOW_DSP_QUADS_FUNCTION(name, F32, DUAL, \
                          GLOW_DSP_QUAD_ROUND(DUAL, end) GLOW_DSP_QUADS_STORE("r4", "r6", "r8", "r10"), )
#else
/* A quad of several as a call of its own. */
GLOW_INLINE glow_dsp_quad_t glow_dsp_quad_of(const glow_dsp_quads_t *q, int32_t quad) {
  const uint32_t *acts = q->acts + quad * (q->quad_bytes / 4);
  int8_t *out = q->out + quad * q->step;
  const glow_dsp_quad_t one = {acts, q->stream, {out, out + q->stride, out + 2 * q->stride, out + 3 * q->stride},
                               q->blocks, acts + q->quad_bytes / 4, q->skip, q->out_zp, q->low, q->high};
  return one;
}

#define GLOW_DSP_QUADS_BY_ONES(name, one) \
  GLOW_DSP_UNUSED static void name(const glow_dsp_quads_t *q) { \
    for (int32_t i = 0; i < q->quads; i++) { \
      const glow_dsp_quad_t part = glow_dsp_quad_of(q, i); \
      one(&part); \
    } \
  }
#define GLOW_DSP_QUADS_TO_CODES(name, end, one) GLOW_DSP_QUADS_BY_ONES(name, one)
#endif

GLOW_DSP_QUADS_TO_CODES(glow_dsp_quads_dual_u8, U8, glow_dsp_quad_dual_u8)
GLOW_DSP_QUADS_TO_CODES(glow_dsp_quads_dual_v8, V8, glow_dsp_quad_dual_v8)
GLOW_DSP_QUADS_TO_CODES(glow_dsp_quads_dual_n8, N8, glow_dsp_quad_dual_n8)
GLOW_DSP_QUADS_TO_CODES(glow_dsp_quads_dual_s8, S8, glow_dsp_quad_dual_s8)

#endif
