/* SPDX-License-Identifier: MIT-0 */
/* Sums and products of int16 codes by way of float32 on A64, zero points 0. */
#ifndef GLOW_NEON_REALS16_H
#define GLOW_NEON_REALS16_H

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  float a_scale, b_scale, out_scale;
  int32_t low, high;
} glow_neon_sum16_t;

static inline int16x4_t glow_neon_codes16(float32x4_t v, int32_t low, int32_t high) {
  return vqmovn_s32(vminq_s32(vmaxq_s32(vcvtnq_s32_f32(v), vdupq_n_s32(low)), vdupq_n_s32(high)));
}

static inline int16x4_t glow_neon_add4(int16x4_t a, int16x4_t b, const glow_neon_sum16_t *s) {
  float32x4_t left = vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(a)), s->a_scale);
  float32x4_t right = vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(b)), s->b_scale);
  __asm__("" : "+w"(left), "+w"(right)); /* not contracted */
  return glow_neon_codes16(vdivq_f32(vaddq_f32(left, right), vdupq_n_f32(s->out_scale)), s->low, s->high);
}

/* a_scale is that of products */
static inline int16x4_t glow_neon_multiply4(int16x4_t a, int16x4_t b, const glow_neon_sum16_t *s) {
  return glow_neon_codes16(vmulq_n_f32(vcvtq_f32_s32(vmull_s16(a, b)), s->a_scale), s->low, s->high);
}

/* out[i] of n pairs of codes. */
#define GLOW_NEON_PAIRS16(name, four)                                                                                  \
  static inline void name(const int16_t *a, const int16_t *b, int16_t *out, int32_t n, const glow_neon_sum16_t *s) {   \
    int32_t i = 0;                                                                                                     \
    for (; i + 8 <= n; i += 8) {                                                                                       \
      const int16x8_t x = vld1q_s16(a + i);                                                                            \
      const int16x8_t y = vld1q_s16(b + i);                                                                            \
      vst1q_s16(out + i, vcombine_s16(four(vget_low_s16(x), vget_low_s16(y), s), four(vget_high_s16(x), vget_high_s16(y), s))); \
    }                                                                                                                  \
    for (; i < n; i++) {                                                                                               \
      vst1_lane_s16(out + i, four(vld1_dup_s16(a + i), vld1_dup_s16(b + i), s), 0);                                    \
    }                                                                                                                  \
  }
GLOW_NEON_PAIRS16(glow_neon_add16, glow_neon_add4)
GLOW_NEON_PAIRS16(glow_neon_multiply16, glow_neon_multiply4)

#endif
#endif
