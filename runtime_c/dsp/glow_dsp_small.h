/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolution in little code: four channels of one pixel at a time. */
#ifndef GLOW_DSP_SMALL_H
#define GLOW_DSP_SMALL_H

#include "glow_dsp.h"

#define GLOW_DSP_SMALL_ROWS 16

/* One pixel, channels four by four. The kernel copies these 20 words to its stack and works on them there. */
typedef struct {
  const int8_t *const *row; /* the next row of the window */
  const int8_t *const *rows;
  const int8_t *const *rows_end;
  int32_t cols;   /* taps of a row */
  int32_t offset; /* from a row to its first tap */
  int32_t next_row; /* bytes of weights from after a row's last tap to the next row */
  int32_t unused;
  const int8_t *weights;
  const int32_t *bias;
  const float *scale;
  int32_t scale_step; /* bytes from four scales to the next four */
  int8_t *out;
  int8_t *out_end;
  int32_t out_zp;
  uint32_t low; /* limits of the output, in all four bytes */
  uint32_t high;
  int32_t in_step, weight_step;
  uint32_t neg_zp;
  uint32_t neg_w_zp; /* of glow_dsp_small_offset */
} glow_dsp_small_t;

#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_small_t, row, 0); GLOW_AT(glow_dsp_small_t, rows, 4); GLOW_AT(glow_dsp_small_t, rows_end, 8);
GLOW_AT(glow_dsp_small_t, cols, 12); GLOW_AT(glow_dsp_small_t, offset, 16); GLOW_AT(glow_dsp_small_t, next_row, 20);
GLOW_AT(glow_dsp_small_t, weights, 28); GLOW_AT(glow_dsp_small_t, bias, 32); GLOW_AT(glow_dsp_small_t, scale, 36);
GLOW_AT(glow_dsp_small_t, scale_step, 40); GLOW_AT(glow_dsp_small_t, out, 44); GLOW_AT(glow_dsp_small_t, out_end, 48);
GLOW_AT(glow_dsp_small_t, out_zp, 52); GLOW_AT(glow_dsp_small_t, low, 56); GLOW_AT(glow_dsp_small_t, high, 60);
GLOW_AT(glow_dsp_small_t, in_step, 64); GLOW_AT(glow_dsp_small_t, weight_step, 68);
GLOW_AT(glow_dsp_small_t, neg_zp, 72); GLOW_AT(glow_dsp_small_t, neg_w_zp, 76); GLOW_SIZE(glow_dsp_small_t, 80);

/* Four sums in r4 to r7 to bytes of r4; the limits to r2 and r3. */
#define GLOW_DSP_SMALL_CODES \
  "vmov s0, s1, r4, r5\n" "vmov s2, s3, r6, r7\n" \
  "ldrd r1, r2, [sp, #36]\n" \
  "vldmia r1, {s4-s7}\n" \
  "add r1, r1, r2\n" \
  "str r1, [sp, #36]\n" \
  GLOW_DSP_SCALE4("\n") \
  "ldrd r1, r2, [sp, #52]\n" \
  "ldr r3, [sp, #60]\n" \
  GLOW_DSP_BYTES4("r1")
/* `begin` may use what comes after the words that r0 points to. */
/* `expand` turns the weights in r8 into halfwords: 1 and 3 in r9, 0 and 2 in r8. */
#define GLOW_DSP_SMALL(expand, begin, codes) \
  ".syntax unified\n" \
  "push {r4-r11, lr}\n" \
  "sub sp, sp, #80\n" \
  "mov r12, sp\n" \
  "ldmia r0!, {r1-r10}\n" \
  "stmia r12!, {r1-r10}\n" \
  "ldmia r0!, {r1-r10}\n" \
  "stmia r12!, {r1-r10}\n" \
  begin \
  "ldrd r10, r11, [sp, #64]\n" \
  "ldr r12, [sp, #72]\n" \
  "1:\n" \
  "ldrd r1, r2, [sp, #28]\n" \
  "add r3, r1, #4\n" \
  "ldmia r2!, {r4-r7}\n" \
  "strd r3, r2, [sp, #28]\n" \
  "ldrd r2, r3, [sp, #4]\n" \
  "cmp r2, r3\n" \
  "beq.w 4f\n" \
  "2:\n" \
  "ldr r0, [r2], #4\n" \
  "str r2, [sp]\n" \
  "ldrd lr, r3, [sp, #12]\n" \
  "add r0, r0, r3\n" \
  "3:\n" \
  "ldr r2, [r0]\n" "ldr r8, [r1]\n" \
  "add r0, r0, r10\n" "add r1, r1, r11\n" \
  expand \
  "sxtab16 r3, r12, r2, ror #8\n" "sxtab16 r2, r12, r2\n" \
  "smlabb r4, r2, r8, r4\n" "smlabb r5, r3, r9, r5\n" \
  "smlatt r6, r2, r8, r6\n" "smlatt r7, r3, r9, r7\n" \
  "subs lr, lr, #1\n" \
  "bne.n 3b\n" \
  "ldr r3, [sp, #20]\n" \
  "add r1, r1, r3\n" \
  "ldr r2, [sp]\n" "ldr r3, [sp, #8]\n" \
  "cmp r2, r3\n" \
  "bne.n 2b\n" \
  "4:\n" \
  codes \
  "ssub8 r5, r4, r2\n" "sel r4, r4, r2\n" "ssub8 r5, r3, r4\n" "sel r4, r4, r3\n" \
  "ldr r5, [sp, #16]\n" /* the next four channels of the rows */ \
  "adds r5, r5, #4\n" \
  "str r5, [sp, #16]\n" \
  "ldrd r1, r2, [sp, #44]\n" \
  "str r4, [r1], #4\n" "str r1, [sp, #44]\n" \
  "cmp r1, r2\n" \
  "bne.w 1b\n" \
  "add sp, sp, #80\n" \
  "pop {r4-r11, pc}\n"

GLOW_DSP_FUNCTION glow_dsp_small(GLOW_DSP_UNUSED const glow_dsp_small_t *d) {
  __asm__ volatile(GLOW_DSP_SMALL("sxtb16 r9, r8, ror #8\n" "sxtb16 r8, r8\n", "", GLOW_DSP_SMALL_CODES));
}

/* The same with the weights' zero point. */
GLOW_DSP_FUNCTION glow_dsp_small_offset(GLOW_DSP_UNUSED const glow_dsp_small_t *d) {
  __asm__ volatile(GLOW_DSP_SMALL("ldr r3, [sp, #76]\n" "sxtab16 r9, r3, r8, ror #8\n" "sxtab16 r8, r3, r8\n", "", GLOW_DSP_SMALL_CODES));
}
#else
GLOW_INLINE int32_t glow_dsp_small_sum(const glow_dsp_small_t *d, int32_t c, int32_t less) {
  const int8_t *w = d->weights + c;
  int32_t sum = d->bias[c];
  for (const int8_t *const *row = d->rows; row != d->rows_end; row++, w += d->next_row) {
    const int8_t *x = *row + d->offset + c;
    for (int32_t k = 0; k < d->cols; k++, x += d->in_step, w += d->weight_step) {
      sum += (*x + glow_low16(d->neg_zp)) * (*w + less);
    }
  }
  return sum;
}

GLOW_INLINE void glow_dsp_small_twin(const glow_dsp_small_t *d, int32_t less) {
  for (int32_t c = 0; d->out + c != d->out_end; c++) {
    const int32_t sum = glow_dsp_small_sum(d, c, less);
    const float scale = d->scale[d->scale_step != 0 ? c : c % 4];
    d->out[c] = (int8_t)glow_requant(sum, scale, d->out_zp, glow_first8(d->low), glow_first8(d->high));
  }
}

GLOW_INLINE void glow_dsp_small(const glow_dsp_small_t *d) { glow_dsp_small_twin(d, 0); }
GLOW_DSP_UNUSED GLOW_INLINE void glow_dsp_small_offset(const glow_dsp_small_t *d) {
  glow_dsp_small_twin(d, glow_low16(d->neg_w_zp));
}
#endif

#endif
