/* SPDX-License-Identifier: MIT-0 */
/* Attention to caches of int8 codes by SMLAD (runtime_c/glow_shares.h), of one head or two that read the same rows. */
#ifndef GLOW_DSP_ATTEND_H
#define GLOW_DSP_ATTEND_H

#include "glow_dsp.h"
#include "glow_shares.h"

#define GLOW_DSP_ATTEND_PAIRED 1 /* SXTB16 yields 0 and 2 of four, then 1 and 3 */

GLOW_DSP_OF_TWO(uint32_t, glow_dsp_low_halves, "pkhbt %0, %1, %2, lsl #16", "=r", glow_pack_low(a, b))
GLOW_DSP_OF_TWO(uint32_t, glow_dsp_high_halves, "pkhtb %0, %2, %1, asr #16", "=r", glow_pack_high(a, b))

GLOW_INLINE uint32_t glow_dsp_distance(uint32_t less, uint32_t rate) {
#if GLOW_DSP_SIMD
  uint32_t low;
  uint32_t high;
  __asm__("umull %0, %1, %2, %3\n\tusat %1, #20, %1" : "=&r"(low), "=&r"(high) : "r"(less), "r"(rate));
  return high;
#else
  return glow_shares_distance(less, rate);
#endif
}

/* glow_shares_power */
GLOW_INLINE uint32_t glow_dsp_power(uint32_t distance) {
#if GLOW_DSP_SIMD
  const uint32_t line = glow_shares_lines[(distance >> 10) & 63u];
  uint32_t power;
  __asm__("smlabb %0, %1, %2, %1" : "=r"(power) : "r"(line), "r"(distance));
  return power >> (distance >> 16);
#else
  return glow_shares_power(distance);
#endif
}

GLOW_INLINE uint32_t glow_dsp_pair(const int16_t *x) {
  uint32_t word;
  memcpy(&word, x, sizeof word);
  return word;
}

#if GLOW_DSP_ASM
/* Products of two queries of 8 elements with rows. */
GLOW_DSP_FUNCTION glow_dsp_attend_eight(GLOW_DSP_UNUSED int32_t *to, GLOW_DSP_UNUSED const int16_t *q,
                                             GLOW_DSP_UNUSED const int8_t *key, GLOW_DSP_UNUSED int32_t step,
                                             GLOW_DSP_UNUSED int32_t rows) {
  __asm__ volatile(
      ".syntax unified\n"
      "ldr r12, [sp]\n"
      "push {r4-r11, lr}\n"
      "add r12, r0, r12, lsl #2\n" "vmov s0, s1, r3, r12\n" "ldmia r1, {r4-r11}\n"
      "1:\n"
      "ldr r1, [r2]\n" "ldr r3, [r2, #4]\n"
      "sxtb16 r12, r1\n" "sxtb16 r1, r1, ror #8\n"
      "smuad lr, r12, r4\n" "smuad r12, r12, r8\n" "smlad lr, r1, r5, lr\n" "smlad r12, r1, r9, r12\n"
      "sxtb16 r1, r3\n" "sxtb16 r3, r3, ror #8\n"
      "smlad lr, r1, r6, lr\n" "smlad r12, r1, r10, r12\n" "vmov r1, s0\n"
      "smlad lr, r3, r7, lr\n" "smlad r12, r3, r11, r12\n" "vmov r3, s1\n"
      "add r2, r2, r1\n"
      "str r12, [r0, #4 * " GLOW_TEXT(GLOW_SHARES_PITCH) "]\n" "str lr, [r0], #4\n"
      "cmp r0, r3\n"
      "bne.w 1b\n"
      "pop {r4-r11, pc}\n");
}

/* Sums of the shares of two heads times four columns; a last row without another is read twice. */
GLOW_DSP_FUNCTION glow_dsp_attend_sums(GLOW_DSP_UNUSED int32_t *sums, GLOW_DSP_UNUSED const int32_t *shares,
                                       GLOW_DSP_UNUSED const int8_t *value, GLOW_DSP_UNUSED int32_t step,
                                       GLOW_DSP_UNUSED int32_t rows) {
  __asm__ volatile(
      ".syntax unified\n"
      "ldr r12, [sp]\n"
      "push {r0, r4-r11, lr}\n"
      "lsr r4, r12, #1\n" "add r4, r1, r4, lsl #2\n" "vmov s0, s1, r3, r4\n"
      "and r12, r12, #1\n" "vmov s2, r12\n"
      "mov r4, #0\n" "mov r5, r4\n" "mov r6, r4\n" "mov r7, r4\n"
      "mov r8, r4\n" "mov r9, r4\n" "mov r10, r4\n" "mov r11, r4\n"
      "b.n 2f\n"
      "1:\n"
      "vmov r12, s0\n" "ldr r0, [r2]\n" "ldr r3, [r2, r12]\n" "add r2, r2, r12, lsl #1\n"
      "pkhbt r12, r0, r3, lsl #16\n" "pkhtb r3, r3, r0, asr #16\n"
      "ldr r0, [r1, #4 * " GLOW_TEXT(GLOW_SHARES_PITCH) "]\n" "sxtb16 lr, r12\n" "sxtb16 r12, r12, ror #8\n"
      "smlad r8, lr, r0, r8\n" "smlad r9, r12, r0, r9\n"
      "ldr r0, [r1], #4\n" "smlad r4, lr, r0, r4\n" "smlad r5, r12, r0, r5\n"
      "sxtb16 lr, r3\n" "sxtb16 r12, r3, ror #8\n" "ldr r3, [r1, #4 * " GLOW_TEXT(GLOW_SHARES_PITCH) " - 4]\n"
      "smlad r6, lr, r0, r6\n" "smlad r7, r12, r0, r7\n" "smlad r10, lr, r3, r10\n" "smlad r11, r12, r3, r11\n"
      "2:\n"
      "vmov r3, s1\n" "cmp r1, r3\n"
      "bne.w 1b\n"
      "vmov r12, s2\n" "mov r0, #0\n" "add r3, r1, #4\n" "vmov s0, s1, r0, r3\n" "vmov s2, r0\n"
      "cmp r12, #0\n"
      "bne.w 1b\n"
      "pop {r0}\n" "stmia r0, {r4-r11}\n"
      "pop {r4-r11, pc}\n");
}
#endif

/* Products of the codes of `heads` queries of n elements with rows: those of the second head GLOW_SHARES_PITCH on. */
GLOW_INLINE void glow_dsp_attend_products(int32_t *to, const int16_t *q, const int8_t *key, int32_t step, int32_t rows, int32_t n,
                                          int32_t heads) {
#if GLOW_DSP_ASM
  if (n == 8 && heads == 2) {
    glow_dsp_attend_eight(to, q, key, step, rows);
    return;
  }
#endif
  for (int32_t r = 0; r < rows; r++, key += step) {
    int32_t a = 0;
    int32_t b = 0;
    for (int32_t c = 0; c < n; c += 4) {
      const uint32_t word = glow_load4(key + c);
      const uint32_t even = glow_sxtab16(0u, word);
      const uint32_t odd = glow_sxtab16_odd(0u, word);
      a = glow_dsp_smlad(odd, glow_dsp_pair(q + c + 2), glow_dsp_smlad(even, glow_dsp_pair(q + c), a));
      if (heads > 1) {
        b = glow_dsp_smlad(odd, glow_dsp_pair(q + n + c + 2), glow_dsp_smlad(even, glow_dsp_pair(q + n + c), b));
      }
    }
    to[r] = a;
    if (heads > 1) {
      to[GLOW_SHARES_PITCH + r] = b;
    }
  }
}

/* Puts the shares of pairs of rows, and one of 0 after an odd number, in the place of products; returns what all sums so far
 * are multiplied by. */
GLOW_DSP_UNUSED GLOW_KERNEL float glow_dsp_attend_shares(glow_shares_t *head, int32_t *products, int32_t rows, int32_t shift) {
  const uint32_t rate = head->rate;
  int32_t top = head->top;
  products[rows] = -0x40000000; /* the pair of an odd last one */
  for (const int32_t *x = products; x < products + rows; x += 2) {
    top = x[0] > top ? x[0] : top;
    top = x[1] > top ? x[1] : top;
  }
  const float less = glow_shares_less(glow_dsp_power(glow_dsp_distance((uint32_t)(top - head->top) << shift, rate)));
  const uint32_t from = (uint32_t)top << shift;
  head->top = top;
  int32_t *to = products;
  int32_t total = 0;
  uint32_t pair = 0;
  for (const int32_t *x = products; x < products + rows; x += 2) {
    const uint32_t a = glow_dsp_power(glow_dsp_distance(from - ((uint32_t)x[0] << shift), rate));
    const uint32_t b = glow_dsp_power(glow_dsp_distance(from - ((uint32_t)x[1] << shift), rate));
    pair = glow_dsp_high_halves(a + 0x8000u, b + 0x8000u);
    *to++ = (int32_t)pair;
    total = glow_dsp_smlad(pair, 0x00010001u, total);
  }
  if (rows % 2 != 0) {
    total -= (int32_t)(pair >> 16);
    to[-1] = (int32_t)(pair & 0xFFFFu);
  }
  head->total = head->total * less + (float)total;
  return less;
}

/* out = out * less + shares times rows of n values, each of `heads`; those of the second head `apart` on, its shares
 * GLOW_SHARES_PITCH on. */
GLOW_INLINE void glow_dsp_attend_mix(float *out, int32_t apart, const float *less, const int32_t *shares, const int8_t *value,
                                     int32_t step, int32_t rows, int32_t n, int32_t heads) {
  for (int32_t c = 0; c < n; c += 4) {
    int32_t sums[8];
#if GLOW_DSP_ASM
    if (heads == 2) {
      glow_dsp_attend_sums(sums, shares, value + c, step, rows);
    } else
#endif
    {
      memset(sums, 0, sizeof sums);
      for (int32_t r = 0; r < rows; r += 2) {
        const int8_t *x = value + c + r * step;
        const uint32_t first = glow_load4(x);
        const uint32_t second = glow_load4(r + 1 < rows ? x + step : x);
        const uint32_t low = glow_dsp_low_halves(first, second);
        const uint32_t high = glow_dsp_high_halves(first, second);
        const uint32_t y[4] = {glow_sxtab16(0u, low), glow_sxtab16_odd(0u, low), glow_sxtab16(0u, high),
                               glow_sxtab16_odd(0u, high)};
        for (int32_t i = 0; i < 4 * heads; i++) {
          sums[i] = glow_dsp_smlad(y[i % 4], (uint32_t)shares[i / 4 * GLOW_SHARES_PITCH + r / 2], sums[i]);
        }
      }
    }
    for (int32_t i = 0; i < 4 * heads; i++) {
      float *to = out + i / 4 * apart + c + i % 4;
      *to = *to * less[i / 4] + (float)sums[i];
    }
  }
}

#endif
