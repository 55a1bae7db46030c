/* SPDX-License-Identifier: MIT-0 */
/* Convolutions of int16 inputs with int8 weights for Armv7-M cores without DSP: four pixels at a time, in words. */
#ifndef GLOW_THUMB_WIDE_H
#define GLOW_THUMB_WIDE_H

#include "glow_m3.h"
#include "glow_thumb.h"

/* The words of n taps of four pixels, `step` apart. */
GLOW_INLINE int32_t *glow_thumb_wide_pack(int32_t *to, const int16_t *p, const int16_t *q, const int16_t *r,
                                            const int16_t *s, int32_t n, int32_t step) {
  for (const int32_t *const end = to + 4 * n; to != end; to += 4) {
    to[0] = *p;
    to[1] = *q;
    to[2] = *r;
    to[3] = *s;
    p += step;
    q += step;
    r += step;
    s += step;
  }
  return to;
}

/* The words of the windows of four pixels, tap by tap; pixels outside of the input are in_zp. */
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_wide_fill(int32_t *to, const glow_thumb_window_t *g, const int16_t *image,
                                                     const glow_thumb_pixel_t *at, int32_t in_zp) {
  const int32_t most = g->in_w - 1 - (g->k_w - 1) * g->dil_w;
  const int32_t step = g->dil_w * g->in_col;
  for (int32_t ky = 0; ky < g->k_h; ky++) {
    int32_t first[4]; /* where the rows begin */
    int inside = g->run == 1;
    for (int32_t i = 0; i < 4; i++) {
      const int32_t y = at[i].top + ky * g->dil_h;
      const int exists = y >= 0 && y < g->in_h;
      first[i] = exists ? (y < g->in_ring ? y : y % g->in_ring) * g->in_row + at[i].left * g->in_col : 0;
      inside &= exists && at[i].left >= 0 && at[i].left <= most;
    }
    for (int32_t c = 0; inside && c < g->planes; c++) {
      const int16_t *p = image + c * g->plane_step;
      to = glow_thumb_wide_pack(to, p + first[0], p + first[1], p + first[2], p + first[3], g->k_w, step);
    }
    for (int32_t c = 0; !inside && c < g->planes; c++) {
      for (int32_t kx = 0; kx < g->k_w; kx++) {
        for (int32_t k = 0; k < g->run; k++, to += 4) {
          for (int32_t i = 0; i < 4; i++) {
            const int32_t y = at[i].top + ky * g->dil_h;
            const int32_t x = at[i].left + kx * g->dil_w;
            const int exists = y >= 0 && y < g->in_h && x >= 0 && x < g->in_w;
            to[i] = exists ? image[first[i] + kx * step + c * g->plane_step + k] : in_zp;
          }
        }
      }
    }
  }
}

#define GLOW_THUMB_WIDE_TAP \
  "ldmia %[x]!, {r8, r9, r10, r11}\n\t" \
  "ldrsb lr, [%[w]], #1\n\t" \
  "mla %[a], r8, lr, %[a]\n\t" \
  "mla %[b], r9, lr, %[b]\n\t" \
  "mla %[c], r10, lr, %[c]\n\t" \
  "mla %[d], r11, lr, %[d]\n\t"

/* sum[4] += k taps of four pixels times weights; returns the end of the weights. */
GLOW_HOT GLOW_THUMB_NOINLINE static const int8_t *glow_thumb_wide_dot4(int32_t *sum, const int32_t *x, const int8_t *w,
                                                              int32_t k) {
  int32_t a = sum[0];
  int32_t b = sum[1];
  int32_t c = sum[2];
  int32_t d = sum[3];
#if GLOW_THUMB_ASM && defined(__thumb2__)
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
GLOW_HOT GLOW_THUMB_NOINLINE static void glow_thumb_wide_gemm(const glow_thumb_gemm_t *g, const int32_t *x, int8_t *const *to) {
  const int8_t *w = g->weights;
  const float *scale = g->scale;
  const uint32_t near_tie = (uint32_t)g->bias[g->channels];
  const uint32_t span = near_tie < 0x80000000u ? GLOW_THUMB_SPAN : 0u;
  const int narrow = g->lo != -128 || g->hi != 127;
  for (int32_t o = 0; o < g->channels; o++, scale += g->scale_step) {
    const int32_t bias = g->bias[o];
    int32_t sum[4] = {bias, bias, bias, bias};
    w = glow_thumb_wide_dot4(sum, x, w, g->k);
    glow_thumb_codes4(g, sum, o, scale, span, near_tie, narrow, 0, to);
  }
}

#endif
