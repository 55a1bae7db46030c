/* SPDX-License-Identifier: MIT-0 */
/* Sum of two tensors of codes on CPUs with the DSP extension and an FPU, four codes at a time. */
#ifndef GLOW_DSP_ADD_H
#define GLOW_DSP_ADD_H

#include "glow_dsp.h"

/* Sum or difference of codes; the operations of add_s8__ref in the same order. */
typedef struct {
  const int8_t *a;
  const int8_t *b;
  int8_t *out;
  int32_t n, a_zp, b_zp, out_zp, out_min, out_max;
  float a_scale, b_scale, out_scale;
} glow_dsp_add_t;

/* Sum of codes by two fused multiply-adds; the operations of add_s8f__ref in the same order. */
typedef struct {
  const int8_t *a;
  const int8_t *b;
  int8_t *out;
  int32_t n, half, out_min, out_max;
  float a_ratio, b_ratio, fixed;
} glow_dsp_add_fused_t;

GLOW_INLINE int8_t glow_dsp_add_one(const glow_dsp_add_t *s, int32_t qa, int32_t qb, int minus) {
  const float ra = glow_rounded((float)(qa - s->a_zp) * s->a_scale);
  const float rb = glow_rounded((float)(qb - s->b_zp) * s->b_scale);
  const float real = glow_rounded(minus != 0 ? ra - rb : ra + rb) / s->out_scale;
  return (int8_t)glow_round_clamp(real, s->out_zp, s->out_min, s->out_max);
}

GLOW_INLINE int8_t glow_dsp_add_fused_one(const glow_dsp_add_fused_t *s, int32_t qa, int32_t qb) {
  const float inner = glow_fma((float)(qb + s->half), s->b_ratio, s->fixed);
  const float code = glow_fma((float)(qa + s->half), s->a_ratio, inner);
  return (int8_t)(glow_round_clamp(code, 0, s->out_min + s->half, s->out_max + s->half) - s->half);
}

#if GLOW_DSP_ASM
/* Four codes of a in %0 and of b in %2 to float in s0-s3 and s4-s7; %4, %5: minus their zero points, twice. */
#define GLOW_DSP_ADD_LOAD \
  "sxtab16 %1, %4, %0, ror #8\n\tsxtab16 %0, %4, %0\n\t" \
  "sxtab16 %3, %5, %2, ror #8\n\tsxtab16 %2, %5, %2\n\t" \
  "vmov s0, s1, %0, %1\n\tvmov s4, s5, %2, %3\n\t" \
  "asr %0, %0, #16\n\tasr %1, %1, #16\n\tasr %2, %2, #16\n\tasr %3, %3, #16\n\t" \
  "vmov s2, s3, %0, %1\n\tvmov s6, s7, %2, %3\n\t" \
  "vcvt.f32.s16 s0, s0, #0\n\tvcvt.f32.s16 s1, s1, #0\n\tvcvt.f32.s16 s4, s4, #0\n\tvcvt.f32.s16 s5, s5, #0\n\t" \
  "vcvt.f32.s32 s2, s2\n\tvcvt.f32.s32 s3, s3\n\tvcvt.f32.s32 s6, s6\n\tvcvt.f32.s32 s7, s7\n\t"
/* Rounds s0-s3 (codes 0, 1, 2, 3), whose values fit 16 bits, and packs them into %0 as codes above -128. */
#define GLOW_DSP_ADD_ROUND \
  "vcvtr.s32.f32 s0, s0\n\tvcvtr.s32.f32 s1, s1\n\tvcvtr.s32.f32 s2, s2\n\tvcvtr.s32.f32 s3, s3\n\t" \
  "vmov %0, %1, s0, s1\n\tvmov %2, %3, s2, s3\n\t" \
  "pkhbt %0, %0, %2, lsl #16\n\tpkhbt %1, %1, %3, lsl #16\n\t"
#define GLOW_DSP_ADD_SHIFT "sadd16 %0, %0, %6\n\tsadd16 %1, %1, %6\n\t"
#define GLOW_DSP_ADD_PACK "usat16 %0, #8, %0\n\tusat16 %1, #8, %1\n\torr %0, %0, %1, lsl #8\n\teor %0, %0, #0x80808080"
#define GLOW_DSP_ADD_SUM \
  "vmul.f32 s0, s0, %7\n\tvmul.f32 s1, s1, %7\n\tvmul.f32 s2, s2, %7\n\tvmul.f32 s3, s3, %7\n\t" \
  "vmul.f32 s4, s4, %8\n\tvmul.f32 s5, s5, %8\n\tvmul.f32 s6, s6, %8\n\tvmul.f32 s7, s7, %8\n\t" \
  "vadd.f32 s0, s0, s4\n\tvadd.f32 s1, s1, s5\n\tvadd.f32 s2, s2, s6\n\tvadd.f32 s3, s3, s7\n\t" \
  "vdiv.f32 s0, s0, %9\n\tvdiv.f32 s1, s1, %9\n\tvdiv.f32 s2, s2, %9\n\tvdiv.f32 s3, s3, %9\n\t"
#define GLOW_DSP_ADD_FUSED \
  "vmov.f32 s8, %9\n\tvmov.f32 s9, %9\n\tvmov.f32 s10, %9\n\tvmov.f32 s11, %9\n\t" \
  "vfma.f32 s8, s4, %8\n\tvfma.f32 s9, s5, %8\n\tvfma.f32 s10, s6, %8\n\tvfma.f32 s11, s7, %8\n\t" \
  "vfma.f32 s8, s0, %7\n\tvfma.f32 s9, s1, %7\n\tvfma.f32 s10, s2, %7\n\tvfma.f32 s11, s3, %7\n\t"
#define GLOW_DSP_ADD_ROUND_FUSED \
  "vcvtr.s32.f32 s8, s8\n\tvcvtr.s32.f32 s9, s9\n\tvcvtr.s32.f32 s10, s10\n\tvcvtr.s32.f32 s11, s11\n\t" \
  "vmov %0, %1, s8, s9\n\tvmov %2, %3, s10, s11\n\t" \
  "pkhbt %0, %0, %2, lsl #16\n\tpkhbt %1, %1, %3, lsl #16\n\t"

/* What four codes need besides themselves; reals: the factors of a and b, then the divisor or the term. */
typedef struct {
  uint32_t a_zp, b_zp;
  uint32_t shift; /* of rounded values to codes above -128, in both halfwords */
  uint32_t low, high;
  float reals[3];
  int limited;
} glow_dsp_four_t;

#define GLOW_DSP_ADD_FOUR(text) \
  __asm__(text \
          : "+&r"(t0), "=&r"(t1), "+&r"(t2), "=&r"(t3) \
          : "r"(f->a_zp), "r"(f->b_zp), "r"(f->shift), "t"(f->reals[0]), "t"(f->reals[1]), "t"(f->reals[2]) \
          : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11")

GLOW_DSP_INLINE uint32_t glow_dsp_add_limit(const glow_dsp_four_t *f, uint32_t codes) {
  if (f->limited) {
    uint32_t t;
    __asm__("ssub8 %1, %0, %2\n\tsel %0, %0, %2\n\tssub8 %1, %3, %0\n\tsel %0, %0, %3"
            : "+&r"(codes), "=&r"(t)
            : "r"(f->low), "r"(f->high)
            : "cc");
  }
  return codes;
}

/* Four codes of a and b to their sum's: what is added up and how it is rounded. */
#define GLOW_DSP_ADD_FUNCTION(name, value, round) \
  GLOW_DSP_INLINE uint32_t name(const glow_dsp_four_t *f, uint32_t t0, uint32_t t2) { \
    uint32_t t1; \
    uint32_t t3; \
    if (f->shift == 0u) { \
      GLOW_DSP_ADD_FOUR(GLOW_DSP_ADD_LOAD value round GLOW_DSP_ADD_PACK); \
    } else { \
      GLOW_DSP_ADD_FOUR(GLOW_DSP_ADD_LOAD value round GLOW_DSP_ADD_SHIFT GLOW_DSP_ADD_PACK); \
    } \
    return glow_dsp_add_limit(f, t0); \
  }
GLOW_DSP_ADD_FUNCTION(glow_dsp_add_four, GLOW_DSP_ADD_SUM, GLOW_DSP_ADD_ROUND)
GLOW_DSP_ADD_FUNCTION(glow_dsp_add_fused_four, GLOW_DSP_ADD_FUSED, GLOW_DSP_ADD_ROUND_FUSED)

GLOW_DSP_INLINE void glow_dsp_add_words(const glow_dsp_four_t *f, const int8_t *a, const int8_t *b, int8_t *out,
                                        int32_t n, int fused) {
  for (const int8_t *end = a + n; a != end; a += 4, b += 4, out += 4) {
    const uint32_t x = glow_load4(a);
    const uint32_t y = glow_load4(b);
    const uint32_t codes = fused != 0 ? glow_dsp_add_fused_four(f, x, y) : glow_dsp_add_four(f, x, y);
    memcpy(out, &codes, sizeof codes);
  }
}

GLOW_INLINE float glow_dsp_size(float x) { return x < 0.0f ? -x : x; }
#endif

GLOW_INLINE void glow_dsp_add(const glow_dsp_add_t *s, int minus) {
  int32_t i = 0;
#if GLOW_DSP_ASM
  const float sign = minus != 0 ? -s->b_scale : s->b_scale; /* a - b is a + -b, bit for bit */
  const glow_dsp_four_t four = {glow_twice16(-s->a_zp),
                                glow_twice16(-s->b_zp),
                                glow_twice16(s->out_zp + 128),
                                glow_four8(s->out_min),
                                glow_four8(s->out_max),
                                {s->a_scale, sign, s->out_scale},
                                s->out_min > -128 || s->out_max < 127};
  const int fits = 256.0f * (glow_dsp_size(s->a_scale) + glow_dsp_size(sign)) < 32000.0f * s->out_scale;
  const int32_t whole = fits ? s->n & ~3 : 0;
  glow_dsp_add_words(&four, s->a, s->b, s->out, whole, 0);
  i = whole;
#endif
  for (; i < s->n; i++) {
    s->out[i] = glow_dsp_add_one(s, s->a[i], s->b[i], minus);
  }
}

GLOW_INLINE void glow_dsp_add_fused(const glow_dsp_add_fused_t *s) {
  int32_t i = 0;
#if GLOW_DSP_ASM
  const glow_dsp_four_t four = {glow_twice16(s->half),
                                glow_twice16(s->half),
                                glow_twice16(128 - s->half),
                                glow_four8(s->out_min),
                                glow_four8(s->out_max),
                                {s->a_ratio, s->b_ratio, s->fixed},
                                s->out_min > -128 || s->out_max < 127};
  const float size = 256.0f * (glow_dsp_size(s->a_ratio) + glow_dsp_size(s->b_ratio)) + glow_dsp_size(s->fixed);
  const int32_t whole = size < 32000.0f ? s->n & ~3 : 0;
  glow_dsp_add_words(&four, s->a, s->b, s->out, whole, 1);
  i = whole;
#endif
  for (; i < s->n; i++) {
    s->out[i] = glow_dsp_add_fused_one(s, s->a[i], s->b[i]);
  }
}

#endif
