/* SPDX-License-Identifier: MIT-0 */
/* Matrix product of two pixels with blocks of four output channels.
 *
 * Weights are a stream of blocks of four output channels. With `groups` = inputs / 4:
 *   dual: 256 * bias 0 + bias 1, 256 * bias 2 + bias 3, bias 1, bias 3; per group four words, (inputs 0 and 2,
 *         inputs 1 and 3) x (channels 0 and 1, 2 and 3), whose halfwords are 256 * weight of the even channel +
 *         weight of the odd one; 4 scales. One SMLAD sums 256 * even + odd; the odd sum alone, from one SXTB16,
 *         splits them at the end. The compiler proved that |even sum with bias| < 2^23.
 *   bytes: bias 0, 2, 1, 3; four words as of dual, whose halfwords are the bytes of both channels' weights; 4 scales.
 *   wide: bias 0, 2, 1, 3; per group eight words, (inputs 0 and 2, inputs 1 and 3) x channels 0 .. 3; 4 scales.
 * A mixed stream begins with the number of its runs of blocks and a word for each: 2 * blocks, and 1 when in bytes.
 * Requantisation is float32 product, VCVTR (half to even), zero point, saturation: exact by construction.
 */
#ifndef GLOW_DSP_GEMM_H
#define GLOW_DSP_GEMM_H

#include "glow_dsp.h"

/* One call: two pixels (or one row of a fully connected layer) x `blocks` of four channels. */
typedef struct {
  const void *acts;
  const void *stream;
  int8_t *out0;
  int8_t *out1;
  int32_t blocks, groups, out_zp;
  uint32_t row;    /* fully connected, `acts` int8: -in_zp in both halfwords; expanded: products (glow_dsp_fc.h) */
  uint32_t tail;   /* the same: the last one to three inputs */
  uint32_t has_tail;
  uint32_t low; /* limits of the output, in all four bytes */
  uint32_t high;
} glow_dsp_gemm_t;

#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_gemm_t, acts, 0); GLOW_AT(glow_dsp_gemm_t, stream, 4); GLOW_AT(glow_dsp_gemm_t, out0, 8);
GLOW_AT(glow_dsp_gemm_t, out1, 12); GLOW_AT(glow_dsp_gemm_t, blocks, 16); GLOW_AT(glow_dsp_gemm_t, groups, 20);
GLOW_AT(glow_dsp_gemm_t, out_zp, 24); GLOW_AT(glow_dsp_gemm_t, row, 28); GLOW_AT(glow_dsp_gemm_t, tail, 32);
GLOW_AT(glow_dsp_gemm_t, has_tail, 36); GLOW_AT(glow_dsp_gemm_t, low, 40); GLOW_AT(glow_dsp_gemm_t, high, 44);

#define GLOW_DSP_PAIR_DUAL \
  "ldrd r2, r3, [r0], #8\n" "ldrd r12, lr, [r1], #8\n" \
  "smlad r4, r2, r12, r4\n" "smlad r5, r3, r12, r5\n" "smlad r6, r2, lr, r6\n" "smlad r7, r3, lr, r7\n" \
  "sxtb16 r12, r12\n" "sxtb16 lr, lr\n" \
  "smlad r8, r2, r12, r8\n" "smlad r9, r3, r12, r9\n" "smlad r10, r2, lr, r10\n" "smlad r11, r3, lr, r11\n"
#define GLOW_DSP_PAIR_WIDE \
  "ldrd r2, r3, [r0], #8\n" "ldrd r12, lr, [r1], #8\n" \
  "smlad r4, r2, r12, r4\n" "smlad r5, r3, r12, r5\n" "smlad r8, r2, lr, r8\n" "smlad r9, r3, lr, r9\n" \
  "ldrd r12, lr, [r1], #8\n" \
  "smlad r6, r2, r12, r6\n" "smlad r7, r3, r12, r7\n" "smlad r10, r2, lr, r10\n" "smlad r11, r3, lr, r11\n"
#define GLOW_DSP_PAIR_BYTES \
  "ldrd r2, r3, [r0], #8\n" "ldrd r12, lr, [r1]\n" "sxtb16 r12, r12, ror #8\n" "sxtb16 lr, lr, ror #8\n" \
  "smlad r4, r2, r12, r4\n" "smlad r5, r3, r12, r5\n" "smlad r6, r2, lr, r6\n" "smlad r7, r3, lr, r7\n" \
  "ldrd r12, lr, [r1], #8\n" "sxtb16 r12, r12\n" "sxtb16 lr, lr\n" \
  "smlad r8, r2, r12, r8\n" "smlad r9, r3, r12, r9\n" "smlad r10, r2, lr, r10\n" "smlad r11, r3, lr, r11\n"
#define GLOW_DSP_BEGIN \
  "ldmia.w r1!, {r4, r6, r8, r10}\n" "mov r5, r4\n" "mov r7, r6\n" "mov r9, r8\n" "mov r11, r10\n"
#define GLOW_DSP_SPLIT_DUAL "sub r4, r4, r8\n" "sub r5, r5, r9\n" "sub r6, r6, r10\n" "sub r7, r7, r11\n"
#define GLOW_DSP_SPLIT_WIDE
#define GLOW_DSP_SPLIT_BYTES
/* Saturates four rounded values in a, b, c, d and packs them into a; the zero point is r12. */
#define GLOW_DSP_PACK_S8(a, b, c, d) \
  "qadd " a ", " a ", r12\n" "qadd " b ", " b ", r12\n" "qadd " c ", " c ", r12\n" "qadd " d ", " d ", r12\n" \
  "ssat " a ", #8, " a "\n" "ssat " b ", #8, " b "\n" "ssat " c ", #8, " c "\n" "ssat " d ", #8, " d "\n" \
  "bfi " a ", " b ", #8, #8\n" "bfi " a ", " c ", #16, #8\n" "bfi " a ", " d ", #24, #8\n"
/* The same for zero point -128. */
#define GLOW_DSP_PACK_U8(a, b, c, d) \
  "usat " a ", #8, " a "\n" "usat " b ", #8, " b "\n" "usat " c ", #8, " c "\n" "usat " d ", #8, " d "\n" \
  "orr " a ", " a ", " b ", lsl #8\n" "orr " a ", " a ", " c ", lsl #16\n" "orr " a ", " a ", " d ", lsl #24\n" \
  "eor " a ", " a ", #0x80808080\n"
#define GLOW_DSP_PACK_V8(a, b, c, d) GLOW_DSP_PACK_U8(a, b, c, d)
#define GLOW_DSP_ZP_S8 "ldr r12, [sp, #4]\n"
#define GLOW_DSP_ZP_U8
#define GLOW_DSP_ZP_V8
/* The limits, bytewise: U8 none, V8 the upper one, S8 both. */
#define GLOW_DSP_CLAMP_U8
#define GLOW_DSP_CLAMP_V8 \
  "ldr r12, [sp, #16]\n" \
  "ssub8 r2, r12, r4\n" "sel r4, r4, r12\n" "ssub8 r2, r12, r8\n" "sel r8, r8, r12\n"
#define GLOW_DSP_CLAMP_S8 \
  "ldrd r3, r12, [sp, #12]\n" \
  "ssub8 r2, r4, r3\n" "sel r4, r4, r3\n" "ssub8 r2, r12, r4\n" "sel r4, r4, r12\n" \
  "ssub8 r2, r8, r3\n" "sel r8, r8, r3\n" "ssub8 r2, r12, r8\n" "sel r8, r8, r12\n"

/* The sums of two pixels to bytes of r4 and r8. */
#define GLOW_DSP_GEMM_CODES(form, sign) \
  GLOW_DSP_SPLIT_##form \
  "vldmia r1!, {s8-s11}\n" \
  "vmov s0, s1, r4, r8\n" "vmov s2, s3, r6, r10\n" "vmov s4, s5, r5, r9\n" "vmov s6, s7, r7, r11\n" \
  "vcvt.f32.s32 s0, s0" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s1, s1\n" \
  "vcvt.f32.s32 s2, s2" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s3, s3\n" \
  "vcvt.f32.s32 s4, s4" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s5, s5\n" \
  "vcvt.f32.s32 s6, s6" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s7, s7\n" \
  "vmul.f32 s0, s0, s8\n" "vmul.f32 s1, s1, s9\n" "vmul.f32 s2, s2, s10\n" "vmul.f32 s3, s3, s11\n" \
  "vmul.f32 s4, s4, s8\n" "vmul.f32 s5, s5, s9\n" "vmul.f32 s6, s6, s10\n" "vmul.f32 s7, s7, s11\n" \
  "vcvtr.s32.f32 s0, s0\n" "vcvtr.s32.f32 s1, s1\n" "vcvtr.s32.f32 s2, s2\n" "vcvtr.s32.f32 s3, s3\n" \
  "vcvtr.s32.f32 s4, s4\n" "vcvtr.s32.f32 s5, s5\n" "vcvtr.s32.f32 s6, s6\n" "vcvtr.s32.f32 s7, s7\n" \
  "vmov r4, r5, s0, s1\n" "vmov r6, r7, s2, s3\n" "vmov r8, r9, s4, s5\n" "vmov r10, r11, s6, s7\n" \
  GLOW_DSP_ZP_##sign \
  GLOW_DSP_PACK_##sign("r4", "r5", "r6", "r7") \
  GLOW_DSP_PACK_##sign("r8", "r9", "r10", "r11") \
  GLOW_DSP_CLAMP_##sign

/* The stack as of GLOW_DSP_GEMM_CODES, places in s12 and s13, inputs in s14, in s15 where in the text at 2, of `groups`
 * groups of `group_bytes`, the inputs of a block begin. */
#define GLOW_DSP_GEMM_OPEN(groups, group_bytes) \
  ".syntax unified\n" \
  "push {r4-r11, lr}\n" \
  "sub sp, sp, #20\n" \
  "ldrd r9, r10, [r0, #40]\n" \
  "strd r9, r10, [sp, #12]\n" \
  "ldm r0, {r2-r8}\n" \
  "vmov s12, s13, r4, r5\n" \
  "add r6, r4, r6, lsl #2\n" \
  "str r6, [sp]\n" \
  "str r8, [sp, #4]\n" \
  "add r6, r2, r7, lsl #4\n" \
  "str r6, [sp, #8]\n" \
  "mov r1, r3\n" \
  "rsb r7, r7, #0\n" \
  "and r7, r7, #" groups " - 1\n" \
  "mov r6, #" group_bytes "\n" \
  "mul r7, r7, r6\n" \
  "adr.w r6, 2f\n" \
  "add r6, r6, r7\n" \
  "orr r6, r6, #1\n" \
  "vmov s14, s15, r2, r6\n"
#define GLOW_DSP_GEMM(form, group_bytes, codes) \
  __asm__ volatile( \
      GLOW_DSP_GEMM_OPEN("8", group_bytes) \
      "1:\n" \
      GLOW_DSP_BEGIN \
      "vmov r0, r2, s14, s15\n" \
      "bx r2\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_CODE_BYTES("2", "8 * " group_bytes) \
      "ldr r2, [sp, #8]\n" \
      "cmp r0, r2\n" \
      "bne.w 2b\n" \
      codes \
      "vmov r2, r3, s12, s13\n" \
      "str r8, [r3], #4\n" \
      "str r4, [r2], #4\n" \
      "vmov s12, s13, r2, r3\n" \
      "ldr r12, [sp]\n" \
      "cmp r2, r12\n" \
      "bne.w 1b\n" \
      "add sp, sp, #20\n" \
      "pop {r4-r11, pc}\n")

#define GLOW_DSP_GEMM_FUNCTION(name, form, group_bytes, codes) \
  GLOW_DSP_FUNCTION name(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_GEMM(form, group_bytes, codes); }

#else /* the same in C */

/* Inputs (0 and 2) or, with half 1, (1 and 3) of a group; of a row of a fully connected layer pixel is -1, or -2
 * when it is expanded. */
GLOW_INLINE uint32_t glow_dsp_acts(const glow_dsp_gemm_t *g, int32_t pixel, int32_t group, int32_t half) {
  if (pixel != -1) {
    const uint32_t *acts = (const uint32_t *)g->acts;
    return pixel < 0 ? acts[2 * group + half] : acts[4 * group + 2 * half + pixel];
  }
  const uint32_t word = group < g->groups ? glow_load4((const int8_t *)g->acts + 4 * group) : g->tail;
  return half != 0 ? glow_sxtab16_odd(g->row, word) : glow_sxtab16(g->row, word);
}

typedef enum { GLOW_DSP_DUAL, GLOW_DSP_BYTES, GLOW_DSP_WIDE } glow_dsp_form_t;

/* The weights of channel c in the words of a step, which are two or, when wide, four. */
GLOW_INLINE uint32_t glow_dsp_weights(const uint32_t *w, glow_dsp_form_t form, int32_t c) {
  const uint32_t word = w[form == GLOW_DSP_WIDE ? c : c >> 1];
  if (form == GLOW_DSP_WIDE || (form == GLOW_DSP_DUAL && (c & 1) == 0)) {
    return word;
  }
  return (c & 1) != 0 ? glow_sxtab16(0u, word) : glow_sxtab16_odd(0u, word);
}

/* Adds products of a group of inputs to the sums of two channels, by the words u and v, the odd ones crossed. */
GLOW_INLINE void glow_dsp_cross(const uint32_t *acts, uint32_t u, uint32_t v, int32_t *sum) {
  sum[0] = glow_dsp_smlad(acts[1], v, glow_dsp_smlad(acts[0], u, sum[0]));
  sum[1] = glow_dsp_smlad(glow_sxtab16(acts[1], u), glow_sxtab16(acts[0], v), sum[1]);
}

/* Takes the products of inputs off the odd one of two sums, and that off the even one. */
GLOW_INLINE void glow_dsp_cross_split(int32_t *sum, int32_t products) {
  sum[1] = (int32_t)((uint32_t)sum[1] - (uint32_t)products);
  sum[0] = (int32_t)((uint32_t)sum[0] - (uint32_t)sum[1]) >> 8;
}

/* The same of four channels, dual, of expanded inputs; returns what comes after the block's weights. */
GLOW_INLINE const uint32_t *glow_dsp_crossed_sums(int32_t *sum, const glow_dsp_gemm_t *g, const uint32_t *w) {
  for (int32_t i = 0; i < g->groups; i++, w += 4) {
    const uint32_t *acts = (const uint32_t *)g->acts + 2 * i;
    glow_dsp_cross(acts, w[0], w[2], sum);
    glow_dsp_cross(acts, w[1], w[3], sum + 2);
  }
  glow_dsp_cross_split(sum, (int32_t)g->row);
  glow_dsp_cross_split(sum + 2, (int32_t)g->row);
  return w;
}

/* The sums of four channels of one pixel; returns what comes after the block's weights. */
GLOW_INLINE const uint32_t *glow_dsp_sums(int32_t *sum, const glow_dsp_gemm_t *g, const uint32_t *w, glow_dsp_form_t form,
                                          int32_t pixel) {
  const int32_t groups = g->groups + (pixel == -1 && g->has_tail != 0u ? 1 : 0);
  for (int32_t c = 0; c < 4; c++) {
    sum[c] = (int32_t)w[2 * (c & 1) + (c >> 1)];
  }
  w += 4;
  if (form == GLOW_DSP_DUAL && pixel == -2) {
    return glow_dsp_crossed_sums(sum, g, w);
  }
  for (int32_t i = 0; i < 2 * groups; i++) {
    const uint32_t acts = glow_dsp_acts(g, pixel, i >> 1, i & 1);
    for (int32_t c = 0; c < 4; c++) {
      sum[c] = glow_dsp_smlad(acts, glow_dsp_weights(w, form, c), sum[c]);
    }
    w += form == GLOW_DSP_WIDE ? 4 : 2;
  }
  if (form == GLOW_DSP_DUAL) {
    for (int32_t c = 0; c < 4; c += 2) {
      sum[c] = (int32_t)((uint32_t)sum[c] - (uint32_t)sum[c + 1]) / 256; /* without remainder */
    }
  }
  return w;
}

/* Four channels of one pixel; returns the next block of the stream. */
GLOW_INLINE const uint32_t *glow_dsp_block(const glow_dsp_gemm_t *g, const uint32_t *w, glow_dsp_form_t form,
                                             int32_t pixel, int8_t *out) {
  int32_t sum[4];
  w = glow_dsp_sums(sum, g, w, form, pixel);
  for (int32_t c = 0; c < 4; c++) {
    float scale;
    memcpy(&scale, &w[c], sizeof scale);
    out[c] = (int8_t)glow_requant(sum[c], scale, g->out_zp, glow_first8(g->low), glow_first8(g->high));
  }
  return w + 4;
}

/* What computes four channels of a pixel: glow_dsp_block, or that of another end. */
typedef const uint32_t *(*glow_dsp_block_fn)(const glow_dsp_gemm_t *g, const uint32_t *w, glow_dsp_form_t form, int32_t pixel,
                                             int8_t *out);

GLOW_INLINE void glow_dsp_blocks(const glow_dsp_gemm_t *g, glow_dsp_form_t form, int32_t pixel, glow_dsp_block_fn block) {
  const uint32_t *w = (const uint32_t *)g->stream;
  for (int32_t b = 0; b < g->blocks; b++) {
    if (pixel == 0) {
      (void)block(g, w, form, 1, g->out1 + 4 * b);
    }
    w = block(g, w, form, pixel, g->out0 + 4 * b);
  }
}

GLOW_INLINE void glow_dsp_twin(const glow_dsp_gemm_t *g, glow_dsp_form_t form, int32_t pixel) {
  glow_dsp_blocks(g, form, pixel, glow_dsp_block);
}

#define GLOW_DSP_GEMM_FUNCTION(name, form, group_bytes, codes) \
  GLOW_HOT GLOW_DSP_UNUSED static void name(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, GLOW_DSP_##form, 0); }
#endif

GLOW_DSP_GEMM_FUNCTION(glow_dsp_gemm_dual_s8, DUAL, "96", GLOW_DSP_GEMM_CODES(DUAL, S8))
GLOW_DSP_GEMM_FUNCTION(glow_dsp_gemm_dual_u8, DUAL, "96", GLOW_DSP_GEMM_CODES(DUAL, U8))
GLOW_DSP_GEMM_FUNCTION(glow_dsp_gemm_dual_v8, DUAL, "96", GLOW_DSP_GEMM_CODES(DUAL, V8))
GLOW_DSP_GEMM_FUNCTION(glow_dsp_gemm_wide_s8, WIDE, "88", GLOW_DSP_GEMM_CODES(WIDE, S8))
GLOW_DSP_GEMM_FUNCTION(glow_dsp_gemm_bytes_s8, BYTES, "120", GLOW_DSP_GEMM_CODES(BYTES, S8))

/* The product for dual weights; the limits and the zero point choose the instructions that end it. */
typedef void (*glow_dsp_gemm_fn)(const glow_dsp_gemm_t *g);

GLOW_INLINE glow_dsp_gemm_fn glow_dsp_gemm_dual(int32_t out_zp, int32_t lo, int32_t hi) {
  if (out_zp != -128 || lo > -128) {
    return glow_dsp_gemm_dual_s8;
  }
  return hi < 127 ? glow_dsp_gemm_dual_v8 : glow_dsp_gemm_dual_u8;
}

/* The products of a mixed stream, `g->stream` after its table `runs`; the last block may have fewer than four channels. */
GLOW_INLINE void glow_dsp_gemm_runs(const glow_dsp_gemm_t *g, const uint32_t *runs, int32_t block_bytes,
                                      int32_t channels, glow_dsp_gemm_fn dual, glow_dsp_gemm_fn bytes) {
  glow_dsp_gemm_t part = *g;
  for (uint32_t r = 1u; r <= runs[0]; r++) {
    const glow_dsp_gemm_fn product = (runs[r] & 1u) != 0u ? bytes : dual;
    part.blocks = (int32_t)(runs[r] >> 1);
    if (channels < 4) {
      int8_t last[8];
      int8_t *const out0 = part.out0;
      int8_t *const out1 = part.out1;
      part.out0 = last;
      part.out1 = last + 4;
      product(&part);
      for (int32_t c = 0; c < channels; c++) {
        out0[c] = last[c];
        if (out1 != out0) {
          out1[c] = last[4 + c];
        }
      }
      return;
    }
    product(&part);
    part.stream = (const int8_t *)part.stream + part.blocks * block_bytes;
    part.out0 += 4 * part.blocks;
    part.out1 += 4 * part.blocks;
    channels -= 4 * part.blocks;
  }
}

#endif
