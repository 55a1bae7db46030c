/* Convolutions of int16 inputs with int8 weights for Armv7-M cores without DSP: four pixels at a time, one in a word. */
#ifndef GLOW_THUMB_WIDE_H
#define GLOW_THUMB_WIDE_H

#include "glow_m3.h"

/* The words of the windows of four pixels, tap by tap; pixels outside of the input are in_zp. */
GLOW_THUMB_NOINLINE static void glow_thumb_wide_fill(int32_t *to, const glow_thumb_window_t *g, const int16_t *image,
                                                     const glow_thumb_pixel_t *at, int32_t in_zp) {
  for (int32_t i = 0; i < 4; i++) {
    int32_t *tap = to + i;
    for (int32_t ky = 0; ky < g->k_h; ky++) {
      const int32_t y = at[i].top + ky * g->dil_h;
      const int16_t *row = y >= 0 && y < g->in_h ? image + (y < g->in_ring ? y : y % g->in_ring) * g->in_row : NULL;
      for (int32_t c = 0; c < g->planes; c++) {
        int32_t x = at[i].left;
        for (int32_t kx = 0; kx < g->k_w; kx++, x += g->dil_w) {
          const int16_t *from = row != NULL && x >= 0 && x < g->in_w ? row + x * g->in_col + c * g->plane_step : NULL;
          for (int32_t k = 0; k < g->run; k++, tap += 4) {
            *tap = from != NULL ? from[k] : in_zp;
          }
        }
      }
    }
  }
}

/* clang-format off */
#define GLOW_THUMB_WIDE_TAP \
  "ldmia %[x]!, {r8, r9, r10, r11}\n\t" \
  "ldrsb lr, [%[w]], #1\n\t" \
  "mla %[a], r8, lr, %[a]\n\t" \
  "mla %[b], r9, lr, %[b]\n\t" \
  "mla %[c], r10, lr, %[c]\n\t" \
  "mla %[d], r11, lr, %[d]\n\t"
/* clang-format on */

/* sum[4] += k taps of four pixels times weights; returns the end of the weights. */
GLOW_THUMB_NOINLINE static const int8_t *glow_thumb_wide_dot4(int32_t *sum, const int32_t *x, const int8_t *w,
                                                              int32_t k) {
  int32_t a = sum[0];
  int32_t b = sum[1];
  int32_t c = sum[2];
  int32_t d = sum[3];
#if GLOW_THUMB_ASM
  __asm__ volatile("subs %[k], %[k], #4\n\t"
                   "blt 2f\n"
                   "1:\n\t" GLOW_THUMB_WIDE_TAP GLOW_THUMB_WIDE_TAP GLOW_THUMB_WIDE_TAP GLOW_THUMB_WIDE_TAP
                   "subs %[k], %[k], #4\n\t"
                   "bge 1b\n"
                   "2:\n\t"
                   "adds %[k], %[k], #4\n\t"
                   "beq 4f\n"
                   "3:\n\t" GLOW_THUMB_WIDE_TAP "subs %[k], %[k], #1\n\t"
                   "bne 3b\n"
                   "4:\n\t"
                   : [x] "+r"(x), [w] "+r"(w), [k] "+r"(k), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d)
                   :
                   : "r8", "r9", "r10", "r11", "lr", "cc", "memory");
#else
  for (; k > 0; k--, x += 4) {
    const int32_t weight = *w++;
    a += x[0] * weight;
    b += x[1] * weight;
    c += x[2] * weight;
    d += x[3] * weight;
  }
#endif
  sum[0] = a;
  sum[1] = b;
  sum[2] = c;
  sum[3] = d;
  return w;
}

/* All channels of four pixels whose taps are at x; the weights have no zero point. */
GLOW_THUMB_NOINLINE static void glow_thumb_wide_gemm(const glow_thumb_gemm_t *g, const int32_t *x, int8_t *const *to) {
  const int8_t *w = g->weights;
  const float *scale = g->scale;
  const uint32_t near_tie = (uint32_t)g->bias[g->channels];
  const uint32_t span = near_tie < 0x80000000u ? GLOW_THUMB_SPAN : 0u;
  const int narrow = g->lo != -128 || g->hi != 127;
  for (int32_t o = 0; o < g->channels; o++, scale += g->scale_step) {
    const int32_t bias = g->bias[o];
    int32_t sum[4] = {bias, bias, bias, bias};
    w = glow_thumb_wide_dot4(sum, x, w, g->k);
    glow_thumb_codes4(g, sum, o, scale, span, near_tie, narrow, to);
  }
}

#endif
