/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers whose weights have 4 bits, or are codes of a palette (SMLAD): a word has eight weights of an
 * output, stored plus 8, which an AND with a shift makes four pairs of halfwords; 8 times the sum of the inputs is taken
 * from the sums. Of a palette a word has places, and the pairs are looked up.
 *
 * Inputs are expanded to int16, in units of eight as pairs (0, 4), (1, 5), (2, 6), (3, 7). The constants are blocks of four
 * outputs: 4 words, one of each, for every unit; then 4 biases (zero point of the input inside) and 4 scales.
 */
#ifndef GLOW_DSP_NARROW_H
#define GLOW_DSP_NARROW_H

#include "glow_dsp_round.h"

/* Expand n inputs to whole units, filled up with zeros; return their sum. */
GLOW_INLINE int32_t glow_dsp_narrow_inputs(const int8_t *x, int32_t n, uint32_t *to) {
  int32_t sum = 0;
  for (; n > 0; n -= 8, x += 8, to += 4) {
    const uint32_t first = n >= 4 ? glow_load4(x) : glow_load_tail(x, n);
    const uint32_t second = n >= 8 ? glow_load4(x + 4) : n > 4 ? glow_load_tail(x + 4, n - 4) : 0u;
    const uint32_t even[2] = {glow_sxtab16(0u, first), glow_sxtab16(0u, second)};
    const uint32_t odd[2] = {glow_sxtab16_odd(0u, first), glow_sxtab16_odd(0u, second)};
    to[0] = glow_pack_low(even[0], even[1]);
    to[1] = glow_pack_low(odd[0], odd[1]);
    to[2] = glow_pack_high(even[0], even[1]);
    to[3] = glow_pack_high(odd[0], odd[1]);
    for (int32_t i = 0; i < 4; i++) {
      sum = glow_dsp_smlad(to[i], 0x00010001u, sum);
    }
  }
  return sum;
}

/* The products of `units` of inputs with those of four outputs, in sums. */
#if GLOW_DSP_ASM
#define GLOW_DSP_NARROW_OF(sum) \
  "ldr r12, [r1], #4\n" "and lr, r3, r12\n" "smlad " sum ", lr, r4, " sum "\n" "and lr, r3, r12, lsr #4\n" \
  "smlad " sum ", lr, r5, " sum "\n" "and lr, r3, r12, lsr #8\n" "smlad " sum ", lr, r6, " sum "\n" \
  "and lr, r3, r12, lsr #12\n" "smlad " sum ", lr, r7, " sum "\n"
GLOW_DSP_FUNCTION glow_dsp_narrow_sums(
    GLOW_DSP_UNUSED const uint32_t *x, GLOW_DSP_UNUSED const uint32_t *w, GLOW_DSP_UNUSED int32_t units,
    GLOW_DSP_UNUSED int32_t *sums) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r3-r11, lr}\n"
      "mov r8, #0\n" "mov r9, #0\n" "mov r10, #0\n" "mov r11, #0\n" "mov r3, #0x000f000f\n"
      "1:\n"
      "ldmia r0!, {r4-r7}\n"
      GLOW_DSP_NARROW_OF("r8") GLOW_DSP_NARROW_OF("r9") GLOW_DSP_NARROW_OF("r10") GLOW_DSP_NARROW_OF("r11")
      "subs r2, r2, #1\n"
      "bne.w 1b\n"
      "ldr r12, [sp]\n" "stmia r12, {r8-r11}\n"
      "pop {r3-r11, pc}\n");
}
#else
GLOW_INLINE void glow_dsp_narrow_sums(const uint32_t *x, const uint32_t *w, int32_t units, int32_t *sums) {
  for (int32_t o = 0; o < 4; o++) {
    sums[o] = 0;
    for (int32_t i = 0; i < 4 * units; i++) {
      sums[o] = glow_dsp_smlad((w[i / 4 * 4 + o] >> (i % 4 * 4)) & 0x000f000fu, x[i], sums[o]);
    }
  }
}
#endif

/* All pairs of `count` codes of a palette as halfwords, the first one below. */
GLOW_INLINE void glow_dsp_narrow_pairs(const int8_t *palette, int32_t count, uint32_t *pairs) {
  for (int32_t high = 0; high < count; high++) {
    const uint32_t upper = (uint32_t)palette[high] << 16;
    for (int32_t low = 0; low < count; low++) {
      *pairs++ = upper | ((uint32_t)palette[low] & 0xffffu);
    }
  }
}

/* The same of weights of a palette: a word has eight places of 4 bits of one output, or those of 2 bits of two outputs,
 * in the order of the pairs of the inputs. */
#if GLOW_DSP_ASM
#define GLOW_DSP_PAIR_AT(place, sum, x) place "ldr lr, [r3, lr, lsl #2]\n" "smlad " sum ", lr, " x ", " sum "\n"
#define GLOW_DSP_PAIRS_P4(sum) \
  "ldr r12, [r1], #4\n" GLOW_DSP_PAIR_AT("uxtb lr, r12\n", sum, "r4") \
  GLOW_DSP_PAIR_AT("ubfx lr, r12, #8, #8\n", sum, "r5") GLOW_DSP_PAIR_AT("ubfx lr, r12, #16, #8\n", sum, "r6") \
  GLOW_DSP_PAIR_AT("lsr lr, r12, #24\n", sum, "r7")
#define GLOW_DSP_PAIRS_P2(first, second) \
  "ldr r12, [r1], #4\n" GLOW_DSP_PAIR_AT("and lr, r12, #15\n", first, "r4") \
  GLOW_DSP_PAIR_AT("ubfx lr, r12, #4, #4\n", first, "r5") GLOW_DSP_PAIR_AT("ubfx lr, r12, #8, #4\n", first, "r6") \
  GLOW_DSP_PAIR_AT("ubfx lr, r12, #12, #4\n", first, "r7") GLOW_DSP_PAIR_AT("ubfx lr, r12, #16, #4\n", second, "r4") \
  GLOW_DSP_PAIR_AT("ubfx lr, r12, #20, #4\n", second, "r5") GLOW_DSP_PAIR_AT("ubfx lr, r12, #24, #4\n", second, "r6") \
  GLOW_DSP_PAIR_AT("lsr lr, r12, #28\n", second, "r7")
#define GLOW_DSP_PALETTE_SUMS(loop) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r3-r11, lr}\n" \
      "mov r8, #0\n" "mov r9, #0\n" "mov r10, #0\n" "mov r11, #0\n" "ldr r3, [sp, #40]\n" \
      "1:\n" \
      "ldmia r0!, {r4-r7}\n" \
      loop \
      "subs r2, r2, #1\n" \
      "bne.w 1b\n" \
      "ldr r12, [sp]\n" "stmia r12, {r8-r11}\n" \
      "pop {r3-r11, pc}\n")
GLOW_DSP_FUNCTION glow_dsp_narrow_sums_p4(
    GLOW_DSP_UNUSED const uint32_t *x, GLOW_DSP_UNUSED const uint32_t *w, GLOW_DSP_UNUSED int32_t units,
    GLOW_DSP_UNUSED int32_t *sums, GLOW_DSP_UNUSED const uint32_t *pairs) {
  GLOW_DSP_PALETTE_SUMS(
      GLOW_DSP_PAIRS_P4("r8") GLOW_DSP_PAIRS_P4("r9") GLOW_DSP_PAIRS_P4("r10") GLOW_DSP_PAIRS_P4("r11"));
}
GLOW_DSP_FUNCTION glow_dsp_narrow_sums_p2(
    GLOW_DSP_UNUSED const uint32_t *x, GLOW_DSP_UNUSED const uint32_t *w, GLOW_DSP_UNUSED int32_t units,
    GLOW_DSP_UNUSED int32_t *sums, GLOW_DSP_UNUSED const uint32_t *pairs) {
  GLOW_DSP_PALETTE_SUMS(GLOW_DSP_PAIRS_P2("r8", "r9") GLOW_DSP_PAIRS_P2("r10", "r11"));
}
#else
GLOW_INLINE void glow_dsp_narrow_sums_p4(const uint32_t *x, const uint32_t *w, int32_t units, int32_t *sums,
                                         const uint32_t *pairs) {
  for (int32_t o = 0; o < 4; o++) {
    sums[o] = 0;
    for (int32_t i = 0; i < 4 * units; i++) {
      sums[o] = glow_dsp_smlad(pairs[(w[i / 4 * 4 + o] >> (i % 4 * 8)) & 255u], x[i], sums[o]);
    }
  }
}

GLOW_INLINE void glow_dsp_narrow_sums_p2(const uint32_t *x, const uint32_t *w, int32_t units, int32_t *sums,
                                         const uint32_t *pairs) {
  for (int32_t o = 0; o < 4; o++) {
    sums[o] = 0;
    for (int32_t i = 0; i < 4 * units; i++) {
      sums[o] = glow_dsp_smlad(pairs[(w[i / 4 * 2 + o / 2] >> (o % 2 * 16 + i % 4 * 4)) & 15u], x[i], sums[o]);
    }
  }
}
#endif

#endif
