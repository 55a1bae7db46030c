/* SPDX-License-Identifier: MIT-0 */
/* Sums and products of int16 codes by way of float32 on A64; products of zero points 0. */
#ifndef GLOW_NEON_REALS16_H
#define GLOW_NEON_REALS16_H

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  float a_scale, b_scale, out_scale;
  int32_t low, high, a_zp, b_zp, out_zp;
} glow_neon_sum16_t;

static inline int16x4_t glow_neon_codes16(float32x4_t v, int32_t low, int32_t high) {
  return vqmovn_s32(vminq_s32(vmaxq_s32(vcvtnq_s32_f32(v), vdupq_n_s32(low)), vdupq_n_s32(high)));
}

static inline int16x4_t glow_neon_add4(int16x4_t a, int16x4_t b, const glow_neon_sum16_t *s) {
  float32x4_t left = vmulq_n_f32(vcvtq_f32_s32(vsubl_s16(a, vdup_n_s16((int16_t)s->a_zp))), s->a_scale);
  float32x4_t right = vmulq_n_f32(vcvtq_f32_s32(vsubl_s16(b, vdup_n_s16((int16_t)s->b_zp))), s->b_scale);
  __asm__("" : "+w"(left), "+w"(right)); /* not contracted */
  const float32x4_t sum = vdivq_f32(vaddq_f32(left, right), vdupq_n_f32(s->out_scale));
  const int32x4_t codes = vqaddq_s32(vcvtnq_s32_f32(sum), vdupq_n_s32(s->out_zp));
  return vqmovn_s32(vminq_s32(vmaxq_s32(codes, vdupq_n_s32(s->low)), vdupq_n_s32(s->high)));
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
GLOW_NEON_PAIRS16(glow_neon_add16_few, glow_neon_add4)
GLOW_NEON_PAIRS16(glow_neon_multiply16, glow_neon_multiply4)

/* Sums, 16 codes at a time: in the places between, those before become codes. A quotient is a product with the inverse and two steps
 * of Newton, which is that of the division. The first 16 are written twice. */
static inline void glow_neon_add16(const int16_t *a, const int16_t *b, int16_t *out, int32_t n, const glow_neon_sum16_t *s) {
  int32_t whole = n / 16 * 16;
  const int32_t rest = n - whole;
  if (whole > 0) {
    const int16x8_t low = vdupq_n_s16((int16_t)s->low);
    const int16x8_t high = vdupq_n_s16((int16_t)s->high);
    const int32x4_t zp = vdupq_n_s32(s->out_zp);
    int32x4_t p0 = zp;
    int32x4_t p1 = zp;
    int32x4_t p2 = zp;
    int32x4_t p3 = zp;
    uint64_t step = 0u;
    __asm__ volatile(
        "1: ldp q16, q17, [%[a]], #32\n\tldp q20, q21, [%[b]], #32\n\tssubl2 v19.4s, v17.8h, %[a_zp].8h\n\t"
        "ssubl v18.4s, v17.4h, %[a_zp].4h\n\tssubl2 v17.4s, v16.8h, %[a_zp].8h\n\t"
        "ssubl v16.4s, v16.4h, %[a_zp].4h\n\tssubl2 v23.4s, v21.8h, %[b_zp].8h\n\t"
        "ssubl v22.4s, v21.4h, %[b_zp].4h\n\tssubl2 v21.4s, v20.8h, %[b_zp].8h\n\t"
        "ssubl v20.4s, v20.4h, %[b_zp].4h\n\tsqadd %[p0].4s, %[p0].4s, %[zp].4s\n\t"
        "sqadd %[p1].4s, %[p1].4s, %[zp].4s\n\tsqadd %[p2].4s, %[p2].4s, %[zp].4s\n\t"
        "sqadd %[p3].4s, %[p3].4s, %[zp].4s\n\tscvtf v16.4s, v16.4s\n\tscvtf v17.4s, v17.4s\n\t"
        "scvtf v18.4s, v18.4s\n\tscvtf v19.4s, v19.4s\n\tscvtf v20.4s, v20.4s\n\tscvtf v21.4s, v21.4s\n\t"
        "scvtf v22.4s, v22.4s\n\tscvtf v23.4s, v23.4s\n\tsqxtn %[p0].4h, %[p0].4s\n\tsqxtn %[p2].4h, %[p2].4s\n\t"
        "fmul v16.4s, v16.4s, %[a_scale].4s\n\tfmul v17.4s, v17.4s, %[a_scale].4s\n\t"
        "fmul v18.4s, v18.4s, %[a_scale].4s\n\tfmul v19.4s, v19.4s, %[a_scale].4s\n\t"
        "fmul v20.4s, v20.4s, %[b_scale].4s\n\tfmul v21.4s, v21.4s, %[b_scale].4s\n\t"
        "fmul v22.4s, v22.4s, %[b_scale].4s\n\tfmul v23.4s, v23.4s, %[b_scale].4s\n\t"
        "sqxtn2 %[p0].8h, %[p1].4s\n\tsqxtn2 %[p2].8h, %[p3].4s\n\tfadd v16.4s, v16.4s, v20.4s\n\t"
        "fadd v17.4s, v17.4s, v21.4s\n\tfadd v18.4s, v18.4s, v22.4s\n\tfadd v19.4s, v19.4s, v23.4s\n\t"
        "smax %[p0].8h, %[p0].8h, %[low].8h\n\tsmax %[p2].8h, %[p2].8h, %[low].8h\n\t"
        "fmul v24.4s, v16.4s, %[inverse].4s\n\tfmul v25.4s, v17.4s, %[inverse].4s\n\t"
        "fmul v26.4s, v18.4s, %[inverse].4s\n\tfmul v27.4s, v19.4s, %[inverse].4s\n\tmov v20.16b, v16.16b\n\t"
        "mov v21.16b, v17.16b\n\tmov v22.16b, v18.16b\n\tmov v23.16b, v19.16b\n\t"
        "fmls v16.4s, v24.4s, %[divisor].4s\n\tfmls v17.4s, v25.4s, %[divisor].4s\n\t"
        "fmls v18.4s, v26.4s, %[divisor].4s\n\tfmls v19.4s, v27.4s, %[divisor].4s\n\t"
        "smin %[p0].8h, %[p0].8h, %[high].8h\n\tsmin %[p2].8h, %[p2].8h, %[high].8h\n\t"
        "fmla v24.4s, v16.4s, %[inverse].4s\n\tfmla v25.4s, v17.4s, %[inverse].4s\n\t"
        "fmla v26.4s, v18.4s, %[inverse].4s\n\tfmla v27.4s, v19.4s, %[inverse].4s\n\t"
        "stp %q[p0], %q[p2], [%[out]]\n\tadd %[out], %[out], %[step]\n\tmov %[step], #32\n\t"
        "fmls v20.4s, v24.4s, %[divisor].4s\n\tfmls v21.4s, v25.4s, %[divisor].4s\n\t"
        "fmls v22.4s, v26.4s, %[divisor].4s\n\tfmls v23.4s, v27.4s, %[divisor].4s\n\t"
        "fmla v24.4s, v20.4s, %[inverse].4s\n\tfmla v25.4s, v21.4s, %[inverse].4s\n\t"
        "fmla v26.4s, v22.4s, %[inverse].4s\n\tfmla v27.4s, v23.4s, %[inverse].4s\n\tfcvtns %[p0].4s, v24.4s\n\t"
        "fcvtns %[p1].4s, v25.4s\n\tfcvtns %[p2].4s, v26.4s\n\tfcvtns %[p3].4s, v27.4s\n\t"
        "subs %w[n], %w[n], #16\n\tb.ne 1b\n\t"
        : [a] "+&r"(a), [b] "+&r"(b), [out] "+&r"(out), [n] "+&r"(whole), [step] "+&r"(step), [p0] "+&w"(p0), [p1] "+&w"(p1),
          [p2] "+&w"(p2), [p3] "+&w"(p3)
        : [a_zp] "w"(vdupq_n_s16((int16_t)s->a_zp)), [b_zp] "w"(vdupq_n_s16((int16_t)s->b_zp)),
          [a_scale] "w"(vdupq_n_f32(s->a_scale)), [b_scale] "w"(vdupq_n_f32(s->b_scale)), [divisor] "w"(vdupq_n_f32(s->out_scale)),
          [inverse] "w"(vdupq_n_f32(1.0f / s->out_scale)), [zp] "w"(zp), [low] "w"(low), [high] "w"(high)
        : "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "cc", "memory");
    const int16x8_t first = vqmovn_high_s32(vqmovn_s32(vqaddq_s32(p0, zp)), vqaddq_s32(p1, zp));
    const int16x8_t second = vqmovn_high_s32(vqmovn_s32(vqaddq_s32(p2, zp)), vqaddq_s32(p3, zp));
    vst1q_s16(out, vminq_s16(vmaxq_s16(first, low), high));
    vst1q_s16(out + 8, vminq_s16(vmaxq_s16(second, low), high));
    out += 16;
  }
  glow_neon_add16_few(a, b, out, rest, s);
}

#endif
#endif
