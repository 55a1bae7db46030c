/* Sum of two tensors of codes, four at a time. */
#ifndef GLOW_DSP_ADD_H
#define GLOW_DSP_ADD_H

#include "glow_dsp.h"

/* Sum or difference of codes, four at a time; the operations of add_s8__ref in the same order. */
typedef struct {
  const int8_t *a;
  const int8_t *b;
  int8_t *out;
  int32_t n;
  int32_t a_zp;
  int32_t b_zp;
  int32_t out_zp;
  int32_t out_min;
  int32_t out_max;
  float a_scale;
  float b_scale;
  float out_scale;
} glow_dsp_add_t;

static inline int8_t glow_dsp_add_one(const glow_dsp_add_t *s, int32_t qa, int32_t qb, int minus) {
  const float ra = glow_rounded((float)(qa - s->a_zp) * s->a_scale);
  const float rb = glow_rounded((float)(qb - s->b_zp) * s->b_scale);
  const float real = glow_rounded(minus != 0 ? ra - rb : ra + rb) / s->out_scale;
  return (int8_t)glow_round_clamp(real, s->out_zp, s->out_min, s->out_max);
}

static inline void glow_dsp_add(const glow_dsp_add_t *s, int minus) {
  int32_t i = 0;
#if GLOW_DSP_ASM
  const int8_t *a = s->a;
  const int8_t *b = s->b;
  int8_t *out = s->out;
  const uint32_t na = glow_twice16(-s->a_zp);
  const uint32_t nb = glow_twice16(-s->b_zp);
  const uint32_t low = glow_four8(s->out_min);
  const uint32_t high = glow_four8(s->out_max);
  const float sign = minus != 0 ? -s->b_scale : s->b_scale; /* a - b is a + -b, bit for bit */
  for (; i + 4 <= s->n; i += 4) {
    uint32_t t0 = glow_load4(a + i);
    uint32_t t2 = glow_load4(b + i);
    uint32_t t1;
    uint32_t t3;
    __asm__(
        "sxtab16 %1, %4, %0, ror #8\n\tsxtab16 %0, %4, %0\n\t"
        "sxtab16 %3, %5, %2, ror #8\n\tsxtab16 %2, %5, %2\n\t"
        "vmov s0, s1, %0, %1\n\tvmov s4, s5, %2, %3\n\t"
        "asr %0, %0, #16\n\tasr %1, %1, #16\n\tasr %2, %2, #16\n\tasr %3, %3, #16\n\t"
        "vmov s2, s3, %0, %1\n\tvmov s6, s7, %2, %3\n\t"
        "vcvt.f32.s16 s0, s0, #0\n\tvcvt.f32.s16 s1, s1, #0\n\tvcvt.f32.s16 s4, s4, #0\n\tvcvt.f32.s16 s5, s5, #0\n\t"
        "vcvt.f32.s32 s2, s2\n\tvcvt.f32.s32 s3, s3\n\tvcvt.f32.s32 s6, s6\n\tvcvt.f32.s32 s7, s7\n\t"
        "vmul.f32 s0, s0, %9\n\tvmul.f32 s1, s1, %9\n\tvmul.f32 s2, s2, %9\n\tvmul.f32 s3, s3, %9\n\t"
        "vmul.f32 s4, s4, %10\n\tvmul.f32 s5, s5, %10\n\tvmul.f32 s6, s6, %10\n\tvmul.f32 s7, s7, %10\n\t"
        "vadd.f32 s0, s0, s4\n\tvadd.f32 s1, s1, s5\n\tvadd.f32 s2, s2, s6\n\tvadd.f32 s3, s3, s7\n\t"
        "vdiv.f32 s0, s0, %11\n\tvdiv.f32 s1, s1, %11\n\tvdiv.f32 s2, s2, %11\n\tvdiv.f32 s3, s3, %11\n\t"
        "vcvtr.s32.f32 s0, s0\n\tvcvtr.s32.f32 s1, s1\n\tvcvtr.s32.f32 s2, s2\n\tvcvtr.s32.f32 s3, s3\n\t"
        "vmov %0, %1, s0, s1\n\tvmov %2, %3, s2, s3\n\t"
        "qadd %0, %0, %6\n\tqadd %1, %1, %6\n\tqadd %2, %2, %6\n\tqadd %3, %3, %6\n\t"
        "ssat %0, #8, %0\n\tssat %1, #8, %1\n\tssat %2, #8, %2\n\tssat %3, #8, %3\n\t"
        "bfi %0, %1, #8, #8\n\tbfi %0, %2, #16, #8\n\tbfi %0, %3, #24, #8\n\t"
        "ssub8 %1, %0, %7\n\tsel %0, %0, %7\n\tssub8 %1, %8, %0\n\tsel %0, %0, %8"
        : "+&r"(t0), "=&r"(t1), "+&r"(t2), "=&r"(t3)
        : "r"(na), "r"(nb), "r"(s->out_zp), "r"(low), "r"(high), "t"(s->a_scale), "t"(sign), "t"(s->out_scale)
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "cc");
    memcpy(out + i, &t0, sizeof t0);
  }
#endif
  for (; i < s->n; i++) {
    s->out[i] = glow_dsp_add_one(s, s->a[i], s->b[i], minus);
  }
}

/* Sum of codes by two fused multiply-adds, four at a time; the operations of add_s8f__ref in the same order. */
typedef struct {
  const int8_t *a;
  const int8_t *b;
  int8_t *out;
  int32_t n;
  int32_t half;
  int32_t out_min;
  int32_t out_max;
  float a_ratio;
  float b_ratio;
  float fixed;
} glow_dsp_add_fused_t;

static inline void glow_dsp_add_fused(const glow_dsp_add_fused_t *s) {
  int32_t i = 0;
#if GLOW_DSP_ASM
  const uint32_t half = glow_twice16(s->half);
  const uint32_t low = glow_four8(s->out_min);
  const uint32_t high = glow_four8(s->out_max);
  for (; i + 4 <= s->n; i += 4) {
    uint32_t t0 = glow_load4(s->a + i);
    uint32_t t2 = glow_load4(s->b + i);
    uint32_t t1;
    uint32_t t3;
    __asm__(
        "sxtab16 %1, %4, %0, ror #8\n\tsxtab16 %0, %4, %0\n\t"
        "sxtab16 %3, %4, %2, ror #8\n\tsxtab16 %2, %4, %2\n\t"
        "vmov s0, s1, %0, %1\n\tvmov s4, s5, %2, %3\n\t"
        "asr %0, %0, #16\n\tasr %1, %1, #16\n\tasr %2, %2, #16\n\tasr %3, %3, #16\n\t"
        "vmov s2, s3, %0, %1\n\tvmov s6, s7, %2, %3\n\t"
        "vcvt.f32.s16 s0, s0, #0\n\tvcvt.f32.s16 s1, s1, #0\n\tvcvt.f32.s16 s4, s4, #0\n\tvcvt.f32.s16 s5, s5, #0\n\t"
        "vcvt.f32.s32 s2, s2\n\tvcvt.f32.s32 s3, s3\n\tvcvt.f32.s32 s6, s6\n\tvcvt.f32.s32 s7, s7\n\t"
        "vmov.f32 s8, %10\n\tvmov.f32 s9, %10\n\tvmov.f32 s10, %10\n\tvmov.f32 s11, %10\n\t"
        "vfma.f32 s8, s4, %9\n\tvfma.f32 s9, s5, %9\n\tvfma.f32 s10, s6, %9\n\tvfma.f32 s11, s7, %9\n\t"
        "vfma.f32 s8, s0, %8\n\tvfma.f32 s9, s1, %8\n\tvfma.f32 s10, s2, %8\n\tvfma.f32 s11, s3, %8\n\t"
        "vcvtr.s32.f32 s8, s8\n\tvcvtr.s32.f32 s9, s9\n\tvcvtr.s32.f32 s10, s10\n\tvcvtr.s32.f32 s11, s11\n\t"
        "vmov %0, %1, s8, s9\n\tvmov %2, %3, s10, s11\n\t"
        "qsub %0, %0, %5\n\tqsub %1, %1, %5\n\tqsub %2, %2, %5\n\tqsub %3, %3, %5\n\t"
        "ssat %0, #8, %0\n\tssat %1, #8, %1\n\tssat %2, #8, %2\n\tssat %3, #8, %3\n\t"
        "bfi %0, %1, #8, #8\n\tbfi %0, %2, #16, #8\n\tbfi %0, %3, #24, #8\n\t"
        "ssub8 %1, %0, %6\n\tsel %0, %0, %6\n\tssub8 %1, %7, %0\n\tsel %0, %0, %7"
        : "+&r"(t0), "=&r"(t1), "+&r"(t2), "=&r"(t3)
        : "r"(half), "r"(s->half), "r"(low), "r"(high), "t"(s->a_ratio), "t"(s->b_ratio), "t"(s->fixed)
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "cc");
    memcpy(s->out + i, &t0, sizeof t0);
  }
#endif
  for (; i < s->n; i++) {
    const float inner = glow_fma((float)(s->b[i] + s->half), s->b_ratio, s->fixed);
    const float code = glow_fma((float)(s->a[i] + s->half), s->a_ratio, inner);
    s->out[i] = (int8_t)(glow_round_clamp(code, 0, s->out_min + s->half, s->out_max + s->half) - s->half);
  }
}

#endif
