/* SPDX-License-Identifier: MIT-0 */
/* Attention to caches of int8 codes in integers (MVE, runtime_c/glow_shares.h), of one head or two that read the same rows. */
#ifndef GLOW_MVE_ATTEND_CODES_H
#define GLOW_MVE_ATTEND_CODES_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"
#include "glow_shares.h"

#define GLOW_MVE_ATTEND_PAIRED 0

/* Products of the codes of a query of n elements, a multiple of 8, with a row. */
GLOW_INLINE int32_t glow_mve_attend_product(const int16_t *q, const int8_t *key, int32_t n) {
  int32_t sum = 0;
  __asm__ volatile("dls lr, %[vectors]\n1: vldrb.s16 q0, [%[key]], #8\nvldrw.32 q1, [%[q]], #16\n"
                   "vmladava.s16 %[sum], q0, q1\nle lr, 1b"
                   : [sum] "+Te"(sum), [key] "+l"(key), [q] "+r"(q)
                   : [vectors] "r"(n / 8)
                   : "lr", "q0", "q1", "memory");
  return sum;
}

/* Products of the codes of `heads` queries with rows: those of the second head GLOW_SHARES_PITCH on. */
GLOW_INLINE void glow_mve_attend_products(int32_t *to, const int16_t *q, const int8_t *key, int32_t step, int32_t rows, int32_t n,
                                          int32_t heads) {
  if (n == 8 && heads == 2) {
    int32_t a;
    int32_t b;
    __asm__ volatile("vldrw.32 q1, [%[q]]\nvldrw.32 q2, [%[q], #16]\ndls lr, %[rows]\n"
                     "1: vldrb.s16 q0, [%[key]]\nadd %[key], %[key], %[step]\n"
                     "vmladav.s16 %[a], q0, q1\nvmladav.s16 %[b], q0, q2\n"
                     "str %[a], [%[to]], #4\nstr %[b], [%[to], #4 * " GLOW_TEXT(GLOW_SHARES_PITCH) " - 4]\nle lr, 1b"
                     : [to] "+r"(to), [key] "+l"(key), [a] "=&Te"(a), [b] "=&Te"(b)
                     : [q] "r"(q), [step] "r"(step), [rows] "r"(rows)
                     : "lr", "q0", "q1", "q2", "memory");
    return;
  }
  for (int32_t r = 0; r < rows; r++, key += step) {
    for (int32_t g = 0; g < heads; g++) {
      to[g * GLOW_SHARES_PITCH + r] = glow_mve_attend_product(q + g * n, key, n);
    }
  }
}

/* The powers of four distances. */
GLOW_INLINE uint32x4_t glow_mve_powers(uint32x4_t distance) {
  const uint32x4_t at = vandq_u32(vshrq_n_u32(distance, 10), vdupq_n_u32(63));
  const uint32x4_t line = vldrwq_gather_shifted_offset_u32(glow_shares_lines, at);
  const int32x4_t step = vmovlbq_s16(vreinterpretq_s16_u32(line));
  const int32x4_t steps = vmovlbq_s16(vreinterpretq_s16_u32(distance));
  const uint32x4_t power = vaddq_u32(line, vreinterpretq_u32_s32(vmulq_s32(step, steps)));
  return vshlq_u32(power, vnegq_s32(vreinterpretq_s32_u32(vshrq_n_u32(distance, 16))));
}

/* Puts the shares of rows in the place of products; returns what all sums so far are multiplied by. */
GLOW_MVE_UNUSED GLOW_KERNEL float glow_mve_attend_shares(glow_shares_t *head, int32_t *products, int32_t rows, int32_t shift) {
  int32_t top = head->top;
  for (int32_t r = 0; r < rows; r += 4) {
    top = vmaxvq_p_s32(top, glow_mve_get_s32(products + r), vctp32q((uint32_t)(rows - r)));
  }
  const uint32_t below = (uint32_t)(top - head->top) << shift;
  const float less = glow_shares_less(glow_shares_power(glow_shares_distance(below, head->rate)));
  const uint32x4_t rate = vdupq_n_u32(head->rate);
  int32_t total = 0;
  head->top = top;
  for (int32_t r = 0; r < rows; r += 4) {
    const int32x4_t x = vsubq_s32(vdupq_n_s32(top), glow_mve_get_s32(products + r));
    const uint32x4_t far = vmulhq_u32(vreinterpretq_u32_s32(vshlq_r_s32(x, shift)), rate);
    const uint32x4_t power = glow_mve_powers(vminq_u32(far, vdupq_n_u32(GLOW_SHARES_FARTHEST)));
    const int32x4_t share = vreinterpretq_s32_u32(vrshrq_n_u32(power, 16));
    total = vaddvaq_p_s32(total, share, vctp32q((uint32_t)(rows - r)));
    glow_mve_put_s32(products + r, share);
  }
  head->total = head->total * less + (float)total;
  return less;
}

GLOW_INLINE void glow_mve_attend_add(float *out, float less, int32x4_t sums) {
  glow_mve_put_f32(out, vaddq_f32(vmulq_n_f32(glow_mve_get_f32(out), less), vcvtq_f32_s32(sums)));
}

/* out = out * less + shares times rows of n values, each of `heads`; those of the second head `apart` on, its shares
 * GLOW_SHARES_PITCH on. */
GLOW_INLINE void glow_mve_attend_mix(float *out, int32_t apart, const float *less, const int32_t *shares, const int8_t *value,
                                     int32_t step, int32_t rows, int32_t n, int32_t heads) {
  for (int32_t c = 0; c < n; c += 4) {
    const int8_t *x = value + c;
    const int32_t *w = shares;
    const int32_t *next = shares + (heads - 1) * GLOW_SHARES_PITCH;
    int32_t share;
    int32_t other;
    int32x4_t a = vdupq_n_s32(0);
    int32x4_t b = vdupq_n_s32(0);
    __asm__ volatile("dls lr, %[rows]\n"
                     "1: vldrb.s32 q0, [%[x]]\nldr %[other], [%[next]], #4\nldr %[share], [%[w]], #4\n"
                     "vmla.s32 %q[a], q0, %[share]\nadd %[x], %[x], %[step]\nvmla.s32 %q[b], q0, %[other]\nle lr, 1b"
                     : [x] "+l"(x), [w] "+r"(w), [next] "+r"(next), [a] "+w"(a), [b] "+w"(b), [share] "=&r"(share), [other] "=&r"(other)
                     : [step] "r"(step), [rows] "r"(rows)
                     : "lr", "q0", "memory");
    glow_mve_attend_add(out + c, less[0], a);
    if (heads > 1) {
      glow_mve_attend_add(out + apart + c, less[1], b);
    }
  }
}
#endif
#endif
