/* SPDX-License-Identifier: MIT-0 */
/* Products of a row of floats with codes of 2, 4 or 8 bits (SMLAD), two outputs at a time. The row becomes integers of 31
 * bits, in units of its largest magnitude / 2^30: 16 high bits and 15 low ones, which are multiplied apart. A word has
 * 2 * `half` codes; masked by a code of each halfword it is the codes j and j + half. So the row is words of inputs j and
 * j + half: their high parts, then their low ones. The constants are, for each two outputs and each block, words of codes
 * of both in turn, and both scales. */
#ifndef GLOW_DSP_BLOCKS_H
#define GLOW_DSP_BLOCKS_H

#include "glow_dsp.h"

#define GLOW_BLOCKS_TOP 1073740800.0f /* below 2^30, whatever is rounded */

/* `words` of each of `blocks`; totals: high and low parts of two outputs. */
typedef struct {
  int32_t blocks;
  int32_t words;
  float totals[4];
} glow_blocks_t;

GLOW_INLINE float glow_blocks_unit(const float *x, int32_t k) {
  float max = 1e-30f;
  for (int32_t i = 0; i < k; i++) {
    const float v = x[i] < 0.0f ? -x[i] : x[i];
    max = v > max ? v : max;
  }
  return max / GLOW_BLOCKS_TOP;
}

/* Writes a block of `count` inputs, of which those from `left` on are 0; what sums start with for the zero point. */
GLOW_INLINE void glow_blocks_expand(uint32_t *to, int32_t *starts, const float *x, float per_unit, int32_t left,
                                     int32_t count, int32_t half, int32_t zero) {
  int32_t high = 0;
  int32_t low = 0;
  for (int32_t i = 0; i < count; i += half) {
    for (const int32_t end = i + half; i < end; i++) {
      const int32_t a = i < left ? (int32_t)(x[i] * per_unit) : 0;
      const int32_t b = i + half < left ? (int32_t)(x[i + half] * per_unit) : 0;
      high += (a >> 15) + (b >> 15);
      low += (a & 0x7FFF) + (b & 0x7FFF);
      *to++ = glow_pack_low((uint32_t)(a >> 15), (uint32_t)(b >> 15));
      *to++ = glow_pack_low((uint32_t)a & 0x7FFFu, (uint32_t)b & 0x7FFFu);
    }
  }
  starts[0] = -high * zero;
  starts[1] = -low * zero;
}

#if GLOW_DSP_ASM
GLOW_AT(glow_blocks_t, words, 4); GLOW_AT(glow_blocks_t, totals, 8);

#define GLOW_BLOCKS_STEP(shift) \
  "ldrd r10, r11, [r0], #8\n" "and lr, r12, r8" shift "\n" "smlad r4, r10, lr, r4\n" "smlad r5, r11, lr, r5\n" \
  "and lr, r12, r9" shift "\n" "smlad r6, r10, lr, r6\n" "smlad r7, r11, lr, r7\n"
#define GLOW_BLOCKS_WORD_8 GLOW_BLOCKS_STEP("") GLOW_BLOCKS_STEP(", lsr #8")
#define GLOW_BLOCKS_WORD_4 \
  GLOW_BLOCKS_STEP("") GLOW_BLOCKS_STEP(", lsr #4") GLOW_BLOCKS_STEP(", lsr #8") GLOW_BLOCKS_STEP(", lsr #12")
#define GLOW_BLOCKS_WORD_2 \
  GLOW_BLOCKS_STEP("") GLOW_BLOCKS_STEP(", lsr #2") GLOW_BLOCKS_STEP(", lsr #4") GLOW_BLOCKS_STEP(", lsr #6") \
  GLOW_BLOCKS_STEP(", lsr #8") GLOW_BLOCKS_STEP(", lsr #10") GLOW_BLOCKS_STEP(", lsr #12") GLOW_BLOCKS_STEP(", lsr #14")

#define GLOW_BLOCKS_SUMS(bits, mask) \
  GLOW_HOT __attribute__((naked, noinline)) GLOW_DSP_UNUSED static void glow_blocks_sums_##bits( \
      GLOW_DSP_UNUSED const uint32_t *x, GLOW_DSP_UNUSED const uint32_t *w, GLOW_DSP_UNUSED const int32_t *starts, \
      GLOW_DSP_UNUSED glow_blocks_t *b) { \
    __asm__ volatile( \
        ".syntax unified\n" \
        "push {r3-r11, lr}\n" \
        "ldrd r4, r5, [r3]\n" "vmov s10, s11, r4, r5\n" "mov r4, #0\n" "vmov s0, s1, r4, r4\n" "vmov s2, s3, r4, r4\n" \
        "mov r12, #" mask "\n" \
        "1:\n" \
        "ldrd r4, r5, [r2], #8\n" "mov r6, r4\n" "mov r7, r5\n" "vmov r3, s11\n" \
        "2:\n" \
        "ldrd r8, r9, [r1], #8\n" GLOW_BLOCKS_WORD_##bits \
        "subs r3, r3, #1\n" \
        "bne.w 2b\n" \
        "vmov s4, s5, r4, r5\n" "vmov s6, s7, r6, r7\n" "vldmia r1!, {s8, s9}\n" \
        "vcvt.f32.s32 s4, s4\n" "vcvt.f32.s32 s5, s5\n" "vcvt.f32.s32 s6, s6\n" "vcvt.f32.s32 s7, s7\n" \
        "vmov r3, s10\n" "subs r3, r3, #1\n" "vmov s10, r3\n" \
        "vfma.f32 s0, s4, s8\n" "vfma.f32 s1, s5, s8\n" "vfma.f32 s2, s6, s9\n" "vfma.f32 s3, s7, s9\n" \
        "bne.w 1b\n" \
        "ldr r3, [sp]\n" "add r3, r3, #8\n" "vstmia r3, {s0-s3}\n" \
        "pop {r3-r11, pc}\n"); \
  }
#else
GLOW_INLINE const uint32_t *glow_blocks_twin(int32_t *sums, const uint32_t *x, const uint32_t *w, int32_t words, int32_t bits,
                                               uint32_t mask) {
  for (int32_t i = 0; i < words; i++, w += 2) {
    for (int32_t shift = 0; shift < 16; shift += bits, x += 2) {
      for (int32_t o = 0; o < 4; o++) {
        sums[o] = glow_dsp_smlad(x[o % 2], (w[o / 2] >> shift) & mask, sums[o]);
      }
    }
  }
  return w;
}

#define GLOW_BLOCKS_SUMS(bits, mask) \
  GLOW_DSP_UNUSED static void glow_blocks_sums_##bits(const uint32_t *x, const uint32_t *w, const int32_t *starts, \
                                                        glow_blocks_t *b) { \
    memset(b->totals, 0, sizeof b->totals); \
    for (int32_t i = 0; i < b->blocks; i++, w += 2, starts += 2, x += b->words * (32 / bits)) { \
      int32_t sums[4] = {starts[0], starts[1], starts[0], starts[1]}; \
      w = glow_blocks_twin(sums, x, w, b->words, bits, mask); \
      for (int32_t o = 0; o < 4; o++) { \
        float scale; \
        memcpy(&scale, w + o / 2, sizeof scale); \
        b->totals[o] += (float)sums[o] * scale; \
      } \
    } \
  }
#endif
#if GLOW_DSP_ASM
GLOW_BLOCKS_SUMS(2, "0x00030003")
GLOW_BLOCKS_SUMS(4, "0x000f000f")
GLOW_BLOCKS_SUMS(8, "0x00ff00ff")
#else
GLOW_BLOCKS_SUMS(2, 0x00030003u)
GLOW_BLOCKS_SUMS(4, 0x000f000fu)
GLOW_BLOCKS_SUMS(8, 0x00ff00ffu)
#endif

#endif
