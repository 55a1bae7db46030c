/* SPDX-License-Identifier: MIT-0 */
/* Maxima, averages, sums and products of int16 codes, two or four at a time, for CPUs with the DSP extension, with the
 * same in C. Floats: the operations of the reference kernels in the same order.
 */
#ifndef GLOW_DSP_CODES16_H
#define GLOW_DSP_CODES16_H

#include "glow_dsp_codes.h"
#include "glow_dsp_sixteen.h"

#if !GLOW_DSP_SIMD
GLOW_INLINE uint32_t glow_plain_max2(uint32_t a, uint32_t b) {
  const uint32_t low = glow_low16(a) > glow_low16(b) ? a : b;
  const uint32_t high = glow_low16(a >> 16) > glow_low16(b >> 16) ? a : b;
  return (low & 0xFFFFu) | (high & 0xFFFF0000u);
}
#endif

/* The greater and the lesser of each of two int16. */
GLOW_DSP_OF_TWO(uint32_t, glow_max2, "ssub16 %0, %1, %2\n\tsel %0, %1, %2", "=&r", glow_plain_max2(a, b))
GLOW_DSP_OF_TWO(uint32_t, glow_min2, "ssub16 %0, %2, %1\n\tsel %0, %1, %2", "=&r", ~glow_plain_max2(~a, ~b))

/* The greatest of n codes. */
GLOW_INLINE int32_t glow_greatest16(const int16_t *p, int32_t n) {
  uint32_t most = glow_pack_low((uint32_t)p[n - 1], (uint32_t)p[n - 1]);
  for (; n >= 2; n -= 2, p += 2) {
    most = glow_max2(most, glow_load_pair(p));
  }
  const int32_t low = glow_low16(most);
  const int32_t high = glow_low16(most >> 16);
  return low > high ? low : high;
}

/* rne(v) + zp, saturated to 16 bits; NaN gives zp. */
GLOW_INLINE int32_t glow_saturated16(float v, int32_t zp) {
  int32_t code = glow_qadd(glow_rne(v), zp);
#if GLOW_DSP_SIMD
  __asm__("ssat %0, #16, %0" : "+r"(code));
  return code;
#else
  return glow_clamp(code, -32768, 32767);
#endif
}

/* A halfword of b added to a. */
GLOW_DSP_OF_TWO(uint32_t, glow_add_low, "sxtah %0, %1, %2", "=r", a + (uint32_t)glow_low16(b))
GLOW_DSP_OF_TWO(uint32_t, glow_add_high, "sxtah %0, %1, %2, ror #16", "=r", a + (uint32_t)glow_low16(b >> 16))

GLOW_INLINE void glow_store_pair(int16_t *to, uint32_t codes) { memcpy(to, &codes, sizeof codes); }

/* Four sums modulo 2^32. */
typedef struct {
  uint32_t sum[4];
} glow_sums4_t;

/* Adds four codes, `count` times, `step` apart. */
GLOW_INLINE glow_sums4_t glow_add_columns16(glow_sums4_t s, const int16_t *p, int32_t step, int32_t count) {
  for (; count > 0; count--, p += step) {
    const uint32_t first = glow_load_pair(p);
    const uint32_t second = glow_load_pair(p + 2);
    s.sum[0] = glow_add_low(s.sum[0], first);
    s.sum[1] = glow_add_high(s.sum[1], first);
    s.sum[2] = glow_add_low(s.sum[2], second);
    s.sum[3] = glow_add_high(s.sum[3], second);
  }
  return s;
}

/* Sum of n codes modulo 2^32. */
GLOW_INLINE int32_t glow_sum_row16(const int16_t *p, int32_t n) {
  int32_t sum = 0;
  for (; n >= 4; n -= 4, p += 4) {
    sum = glow_dsp_smlad(glow_load_pair(p), 0x00010001u, sum);
    sum = glow_dsp_smlad(glow_load_pair(p + 2), 0x00010001u, sum);
  }
  for (; n > 0; n--) {
    sum = (int32_t)((uint32_t)sum + (uint32_t)*p++);
  }
  return sum;
}

/* Adds (code - zp) * scale of four codes to four sums; zp is mostly 0. */
GLOW_INLINE glow_reals_t glow_add_reals16(glow_reals_t sums, const int16_t *p, int32_t zp, float scale) {
  const uint32_t minus = (uint32_t)-zp;
  uint32_t first = glow_load_pair(p);
  uint32_t second = glow_load_pair(p + 2);
#if GLOW_DSP_ASM
  if (zp == 0) {
    __asm__("vmov s0, s1, %0, %1\n\tasr %0, %0, #16\n\tasr %1, %1, #16\n\tvmov s2, s3, %0, %1\n\t"
            "vcvt.f32.s16 s0, s0, #0\n\tvcvt.f32.s16 s1, s1, #0\n\tvcvt.f32.s32 s2, s2\n\tvcvt.f32.s32 s3, s3\n\t"
            "vmla.f32 %2, s0, %6\n\tvmla.f32 %4, s1, %6\n\tvmla.f32 %3, s2, %6\n\tvmla.f32 %5, s3, %6"
            : "+&r"(first), "+&r"(second), "+t"(sums.real[0]), "+t"(sums.real[1]), "+t"(sums.real[2]), "+t"(sums.real[3])
            : "t"(scale)
            : "s0", "s1", "s2", "s3");
    return sums;
  }
#endif
  sums.real[0] = glow_vmla(sums.real[0], (float)(int32_t)glow_add_low(minus, first), scale);
  sums.real[1] = glow_vmla(sums.real[1], (float)(int32_t)glow_add_high(minus, first), scale);
  sums.real[2] = glow_vmla(sums.real[2], (float)(int32_t)glow_add_low(minus, second), scale);
  sums.real[3] = glow_vmla(sums.real[3], (float)(int32_t)glow_add_high(minus, second), scale);
  return sums;
}

/* Sums and products of codes around 0, from low to high. A product's scale is a_scale. */
typedef struct {
  float a_scale, b_scale, out_scale;
  int32_t low, high;
} glow_dsp_sum16_t;

GLOW_INLINE int32_t glow_dsp_add16_one(const glow_dsp_sum16_t *s, int32_t a, int32_t b) {
  const float left = glow_rounded((float)a * s->a_scale);
  const float right = glow_rounded((float)b * s->b_scale);
  return glow_round16(glow_rounded(left + right) / s->out_scale, 0, s->low, s->high);
}

GLOW_INLINE int32_t glow_dsp_multiply16_one(const glow_dsp_sum16_t *s, int32_t a, int32_t b) {
  return glow_round16((float)(a * b) * s->a_scale, 0, s->low, s->high);
}

#if GLOW_DSP_ASM
/* Codes 0 and 1 of a in %0, 2 and 3 in %1, those of b in %2 and %3, to float: 0, 2, 1, 3 in s0-s3 and s4-s7. */
#define GLOW_DSP_LOAD16 \
  "vmov s0, s1, %0, %1\n\tvmov s4, s5, %2, %3\n\t" \
  "asr %0, %0, #16\n\tasr %1, %1, #16\n\tasr %2, %2, #16\n\tasr %3, %3, #16\n\t" \
  "vmov s2, s3, %0, %1\n\tvmov s6, s7, %2, %3\n\t" \
  "vcvt.f32.s16 s0, s0, #0\n\tvcvt.f32.s16 s1, s1, #0\n\tvcvt.f32.s16 s4, s4, #0\n\tvcvt.f32.s16 s5, s5, #0\n\t" \
  "vcvt.f32.s32 s2, s2\n\tvcvt.f32.s32 s3, s3\n\tvcvt.f32.s32 s6, s6\n\tvcvt.f32.s32 s7, s7\n\t"
#define GLOW_DSP_SUM16 \
  GLOW_DSP_LOAD16 \
  "vmul.f32 s0, s0, %4\n\tvmul.f32 s1, s1, %4\n\tvmul.f32 s2, s2, %4\n\tvmul.f32 s3, s3, %4\n\t" \
  "vmul.f32 s4, s4, %5\n\tvmul.f32 s5, s5, %5\n\tvmul.f32 s6, s6, %5\n\tvmul.f32 s7, s7, %5\n\t" \
  "vadd.f32 s0, s0, s4\n\tvadd.f32 s1, s1, s5\n\tvadd.f32 s2, s2, s6\n\tvadd.f32 s3, s3, s7\n\t" \
  "vdiv.f32 s0, s0, %6\n\tvdiv.f32 s1, s1, %6\n\tvdiv.f32 s2, s2, %6\n\tvdiv.f32 s3, s3, %6\n\t"
/* Products of the same codes, in the same order. */
#define GLOW_DSP_PRODUCT16 \
  "smulbb r12, %0, %2\n\tsmultt %0, %0, %2\n\tsmulbb %2, %1, %3\n\tsmultt %1, %1, %3\n\t" \
  "vmov s0, s1, r12, %2\n\tvmov s2, s3, %0, %1\n\t" \
  "vcvt.f32.s32 s0, s0\n\tvcvt.f32.s32 s1, s1\n\tvcvt.f32.s32 s2, s2\n\tvcvt.f32.s32 s3, s3\n\t" \
  "vmul.f32 s0, s0, %4\n\tvmul.f32 s1, s1, %4\n\tvmul.f32 s2, s2, %4\n\tvmul.f32 s3, s3, %4\n\t"
/* Rounds s0-s3 and packs them into %0 and %1. */
#define GLOW_DSP_ROUND16(saturate) \
  "vcvtr.s32.f32 s0, s0\n\tvcvtr.s32.f32 s1, s1\n\tvcvtr.s32.f32 s2, s2\n\tvcvtr.s32.f32 s3, s3\n\t" \
  "vmov %0, %1, s0, s1\n\tvmov %2, %3, s2, s3\n\t" saturate(0) saturate(1) saturate(2) saturate(3) \
  "pkhbt %0, %0, %2, lsl #16\n\tpkhbt %1, %1, %3, lsl #16"
#define GLOW_DSP_S16(n) "ssat %" #n ", #16, %" #n "\n\t"
#define GLOW_DSP_U15(n) "usat %" #n ", #15, %" #n "\n\t"

#define GLOW_DSP_FOUR16(text) \
  __asm__(text \
          : "+&r"(a0), "+&r"(a1), "+&r"(b0), "+&r"(b1) \
          : "t"(a_scale), "t"(b_scale), "t"(out_scale) \
          : "r12", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7")
/* The first 4m of n codes. */
#define GLOW_DSP_FOURS16(value) \
  const float a_scale = s->a_scale; \
  const float b_scale = s->b_scale; \
  const float out_scale = s->out_scale; \
  const uint32_t low = glow_twice16(s->low); \
  const uint32_t high = glow_twice16(s->high); \
  for (; n >= 4; n -= 4, a += 4, b += 4, out += 4) { \
    uint32_t a0 = glow_load_pair(a); \
    uint32_t a1 = glow_load_pair(a + 2); \
    uint32_t b0 = glow_load_pair(b); \
    uint32_t b1 = glow_load_pair(b + 2); \
    if (ends == 1) { \
      GLOW_DSP_FOUR16(value GLOW_DSP_ROUND16(GLOW_DSP_U15)); \
    } else { \
      GLOW_DSP_FOUR16(value GLOW_DSP_ROUND16(GLOW_DSP_S16)); \
    } \
    if (ends == 2) { \
      a0 = glow_min2(glow_max2(a0, low), high); \
      a1 = glow_min2(glow_max2(a1, low), high); \
    } \
    glow_store_pair(out, a0); \
    glow_store_pair(out + 2, a1); \
  }
#else
#define GLOW_DSP_INLINE GLOW_INLINE
#define GLOW_DSP_FOURS16(value) (void)ends;
#endif

/* out[i] of n pairs of codes; out may be a or b. `ends`: 0, all codes; 1, those that are not negative; 2, others. */
#define GLOW_DSP_PAIRS16(name, value, one) \
  GLOW_DSP_INLINE void name(const glow_dsp_sum16_t *s, const int16_t *a, const int16_t *b, int16_t *out, int32_t n, int ends) { \
    GLOW_DSP_FOURS16(value) \
    for (; n > 0; n--) { \
      *out++ = (int16_t)one(s, *a++, *b++); \
    } \
  }
GLOW_DSP_PAIRS16(glow_dsp_add16, GLOW_DSP_SUM16, glow_dsp_add16_one)
GLOW_DSP_PAIRS16(glow_dsp_multiply16, GLOW_DSP_PRODUCT16, glow_dsp_multiply16_one)

#endif
