/* SPDX-License-Identifier: MIT-0 */
/* Fully connected layers whose weights have 4 bits (SMLAD): a word has eight weights of an output, stored plus 8, which
 * an AND with a shift makes four pairs of halfwords; 8 times the sum of the inputs is taken from the sums.
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
      sum = glow_dual_mac(to[i], 0x00010001u, sum);
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

#endif
