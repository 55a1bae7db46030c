/* SPDX-License-Identifier: MIT-0 */
/* tanh between codes of 16 bits by SMULWB, SMMULR and SMMLAR, with an exact C twin. */
#ifndef GLOW_DSP_TANH16_H
#define GLOW_DSP_TANH16_H

#include "glow_dsp.h"
#include "glow_tanh16.h"

typedef struct {
  const int32_t *middle; /* of the table; the assembly knows the offsets from here to `sum` */
  int32_t twice_mul, scale, start, twice_near;
  int32_t sum; /* of the last code */
} glow_dsp_tanh16_t;

/* Writes the codes of n numbers up to one whose sum is near the next code, the last of the struct; returns the numbers that are
 * left, with that one, or 0. r3: what the polynomial is of; r10-r12, lr: a row of the table. */
#if GLOW_DSP_SIMD
GLOW_AT(glow_dsp_tanh16_t, middle, 0); GLOW_AT(glow_dsp_tanh16_t, twice_mul, 4); GLOW_AT(glow_dsp_tanh16_t, scale, 8);
GLOW_AT(glow_dsp_tanh16_t, start, 12); GLOW_AT(glow_dsp_tanh16_t, twice_near, 16); GLOW_AT(glow_dsp_tanh16_t, sum, 20);
#define GLOW_DSP_TANH16(name, shift)                                                                                    \
  GLOW_HOT GLOW_DSP_UNUSED __attribute__((naked, noinline)) static int32_t name(                                        \
      GLOW_DSP_UNUSED const int16_t *in, GLOW_DSP_UNUSED int16_t *out, GLOW_DSP_UNUSED int32_t n,                       \
      GLOW_DSP_UNUSED glow_dsp_tanh16_t *t) {                                                                           \
    __asm__ volatile(                                                                                                   \
        ".syntax unified\n" "push {r3-r11, lr}\n" "add r2, r0, r2, lsl #1\n" "movs r6, #128\n"                         \
        "ldr r4, [r3]\n" "ldr r5, [r3, #4]\n" "ldr r7, [r3, #8]\n" "ldr r8, [r3, #12]\n" "ldr r9, [r3, #16]\n"         \
        "1: ldrsh r3, [r0], #2\n" "smulwb r3, r5, r3\n"                                                                 \
        ".rept " #shift "\n" "qadd r3, r3, r3\n" ".endr\n" "smmulr lr, r3, r6\n" "add lr, r4, lr, lsl #4\n"               \
        "lsls r3, r3, #7\n" "ldm lr, {r10, r11, r12, lr}\n" "smmlar lr, r3, lr, r12\n" "smmlar lr, r3, lr, r11\n"         \
        "smmlar lr, r3, lr, r10\n" "smull r10, lr, lr, r7\n" "lsls r10, r10, #1\n" "adc lr, lr, lr\n"                     \
        "qadd lr, lr, r8\n" "uxth r10, lr\n" "cmp r10, r9\n" "bcc 3f\n" "asrs r3, lr, #16\n" "strh r3, [r1], #2\n"        \
        "cmp r0, r2\n" "bne 1b\n" "movs r0, #0\n" "pop {r3-r11, pc}\n"                                                   \
        "3: pop {r3}\n" "str lr, [r3, #20]\n" "subs r0, r2, r0\n" "lsrs r0, r0, #1\n" "adds r0, r0, #1\n"                 \
        "pop {r4-r11, pc}\n");                                                                                           \
  }
#else
#define GLOW_DSP_TANH16(name, shift)                                                                                    \
  GLOW_INLINE int32_t name(const int16_t *in, int16_t *out, int32_t n, glow_dsp_tanh16_t *t) {                        \
    for (int32_t i = 0; i < n; i++) {                                                                                   \
      t->sum = glow_tanh16_sum(in[i], t->middle - 256, t->twice_mul / 2, shift, t->scale, t->start);             \
      if ((t->sum & 0xFFFF) < t->twice_near) {                                                                          \
        return n - i;                                                                                                   \
      }                                                                                                                 \
      out[i] = (int16_t)(t->sum >> 16);                                                                                 \
    }                                                                                                                   \
    return 0;                                                                                                           \
  }
#endif

#endif
