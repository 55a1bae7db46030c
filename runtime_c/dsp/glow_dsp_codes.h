/* SPDX-License-Identifier: MIT-0 */
/* Tables, products, sums and conversions of codes, four at a time, for CPUs with the DSP extension and an FPU, with the
 * same in C. Floats: the operations of the reference kernels in the same order.
 */
#ifndef GLOW_DSP_CODES_H
#define GLOW_DSP_CODES_H

#include "glow_dsp_round.h"
#include "glow_reach.h"

GLOW_INLINE void glow_store4(int8_t *to, uint32_t codes) { memcpy(to, &codes, sizeof codes); }

/* The low eight bits of four numbers as a word. */
GLOW_INLINE uint32_t glow_bytes4(int32_t a, int32_t b, int32_t c, int32_t d) {
#if GLOW_DSP_SIMD
  __asm__("bfi %0, %1, #8, #8\n\tbfi %0, %2, #16, #8\n\tbfi %0, %3, #24, #8" : "+&r"(a) : "r"(b), "r"(c), "r"(d));
  return (uint32_t)a;
#else
  return ((uint32_t)a & 0xFFu) | (((uint32_t)b & 0xFFu) << 8) | (((uint32_t)c & 0xFFu) << 16) | ((uint32_t)d << 24);
#endif
}

GLOW_INLINE int32_t glow_code_at(uint32_t codes, int32_t byte) { return (int8_t)((codes >> (8 * byte)) & 0xFFu); }

GLOW_INLINE uint32_t glow_table4(const int8_t *middle, uint32_t codes) {
  return glow_bytes4(middle[glow_code_at(codes, 0)], middle[glow_code_at(codes, 1)], middle[glow_code_at(codes, 2)],
                     middle[glow_code_at(codes, 3)]);
}

/* out[i] = lut[in[i] + 128], n at least 1. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_lut(const int8_t *in, const int8_t *lut, int8_t *out, int32_t n) {
  const int8_t *middle = lut + 128;
  for (; n >= 8; n -= 8, in += 8, out += 8) {
    const uint32_t first = glow_table4(middle, glow_load4(in));
    const uint32_t second = glow_table4(middle, glow_load4(in + 4));
    glow_store4(out, first);
    glow_store4(out + 4, second);
  }
  for (; n > 0; n--) {
    *out++ = middle[*in++];
  }
}

/* out[i] = in[i] ^ the bytes of `mask`, from the first one on. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_flip(const uint8_t *in, uint8_t *out, int32_t n, uint32_t mask) {
  for (; n >= 4; n -= 4, in += 4, out += 4) {
    uint32_t word;
    memcpy(&word, in, sizeof word);
    word ^= mask;
    memcpy(out, &word, sizeof word);
  }
  for (; n > 0; n--, mask = (mask >> 8) | (mask << 24)) {
    *out++ = (uint8_t)(*in++ ^ (mask & 0xFFu));
  }
}

/* Adds four codes, `count` (at most 256) times, `step` apart, to four sums. */
GLOW_INLINE void glow_add_columns(int32_t *sums, const int8_t *p, int32_t step, int32_t count) {
  uint32_t even = 0u;
  uint32_t odd = 0u;
  for (; count > 0; count--, p += step) {
    const uint32_t four = glow_load4(p);
    even = glow_sxtab16(even, four);
    odd = glow_sxtab16_odd(odd, four);
  }
  sums[0] += glow_low16(even);
  sums[1] += glow_low16(odd);
  sums[2] += glow_low16(even >> 16);
  sums[3] += glow_low16(odd >> 16);
}

/* Sum of n codes. */
GLOW_INLINE int32_t glow_sum_row(const int8_t *p, int32_t n) {
  int32_t sum = -128 * (n & ~3);
  for (; n >= 4; n -= 4, p += 4) {
    const uint32_t four = glow_load4(p) ^ 0x80808080u; /* codes + 128 */
#if GLOW_DSP_SIMD
    __asm__("usada8 %0, %1, %2, %0" : "+r"(sum) : "r"(four), "r"(0));
#else
    sum += (int32_t)((four & 0xFFu) + ((four >> 8) & 0xFFu) + ((four >> 16) & 0xFFu) + (four >> 24));
#endif
  }
  for (; n > 0; n--) {
    sum += *p++;
  }
  return sum;
}

/* Four codes less their zero point, as floats; neg_zp: minus the zero point, twice. */
typedef struct {
  float real[4];
} glow_reals_t;

GLOW_INLINE glow_reals_t glow_reals4(uint32_t codes, uint32_t neg_zp) {
  glow_reals_t r;
#if GLOW_DSP_ASM
  uint32_t odd;
  __asm__("sxtab16 %1, %6, %0, ror #8\n\tsxtab16 %0, %6, %0\n\t"
          "vmov %2, %0\n\tvmov %3, %1\n\tasr %0, %0, #16\n\tasr %1, %1, #16\n\tvmov %4, %0\n\tvmov %5, %1\n\t"
          "vcvt.f32.s16 %2, %2, #0\n\tvcvt.f32.s16 %3, %3, #0\n\tvcvt.f32.s32 %4, %4\n\tvcvt.f32.s32 %5, %5"
          : "+&r"(codes), "=&r"(odd), "=&t"(r.real[0]), "=&t"(r.real[1]), "=&t"(r.real[2]), "=&t"(r.real[3])
          : "r"(neg_zp));
#else
  for (int32_t i = 0; i < 4; i++) {
    r.real[i] = (float)(glow_code_at(codes, i) + glow_low16(neg_zp));
  }
#endif
  return r;
}

/* sum + a * b; product and sum are rounded. */
GLOW_INLINE float glow_vmla(float sum, float a, float b) {
#if GLOW_DSP_ASM
  __asm__("vmla.f32 %0, %1, %2" : "+t"(sum) : "t"(a), "t"(b));
  return sum;
#else
  return sum + glow_rounded(a * b);
#endif
}

/* Adds (code - zp) * scale of four codes to four sums. */
GLOW_INLINE glow_reals_t glow_add_reals(glow_reals_t sums, uint32_t codes, uint32_t neg_zp, float scale) {
  const glow_reals_t r = glow_reals4(codes, neg_zp);
  sums.real[0] = glow_vmla(sums.real[0], r.real[0], scale);
  sums.real[1] = glow_vmla(sums.real[1], r.real[1], scale);
  sums.real[2] = glow_vmla(sums.real[2], r.real[2], scale);
  sums.real[3] = glow_vmla(sums.real[3], r.real[3], scale);
  return sums;
}

/* out[i] = (in[i] - zp) * scale; `flip` is 0x80 for uint8 codes, whose zp is less by 128. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_dequantize(const int8_t *in, float *out, int32_t n, uint32_t flip, int32_t zp,
                                                float scale) {
  const uint32_t neg_zp = glow_twice16(-zp);
  for (; n >= 4; n -= 4, in += 4, out += 4) {
    const glow_reals_t r = glow_reals4(glow_load4(in) ^ (flip * 0x01010101u), neg_zp);
    out[0] = r.real[0] * scale;
    out[1] = r.real[1] * scale;
    out[2] = r.real[2] * scale;
    out[3] = r.real[3] * scale;
  }
  for (; n > 0; n--) {
    *out++ = (float)(glow_code_at((uint32_t)(uint8_t)*in++ ^ flip, 0) - zp) * scale;
  }
}

/* out[i] = saturate(rne(in[i] / scale) + zp); NaN gives zp; `flip` as above. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_quantize(const float *in, int8_t *out, int32_t n, uint32_t flip, int32_t zp,
                                              float scale) {
  for (; n >= 4; n -= 4, in += 4, out += 4) {
    const int32_t a = glow_round8(in[0] / scale, zp);
    const int32_t b = glow_round8(in[1] / scale, zp);
    const int32_t c = glow_round8(in[2] / scale, zp);
    const int32_t d = glow_round8(in[3] / scale, zp);
    glow_store4(out, glow_bytes4(a, b, c, d) ^ (flip * 0x01010101u));
  }
  for (; n > 0; n--) {
    *out++ = (int8_t)(glow_round8(*in++ / scale, zp) ^ (int32_t)flip);
  }
}

/* Products of halfwords: low with low, high with high. */
GLOW_DSP_OF_TWO(int32_t, glow_mul_low, "smulbb %0, %1, %2", "=r", glow_low16(a) * glow_low16(b))
GLOW_DSP_OF_TWO(int32_t, glow_mul_high, "smultt %0, %1, %2", "=r", glow_low16(a >> 16) * glow_low16(b >> 16))

/* Product of codes; the operations of mul_s8__ref in the same order. */
typedef struct {
  int32_t a_zp, b_zp;
  float out_zp;
  int32_t out_min, out_max;
  float scale;
} glow_dsp_mul_t;

GLOW_INLINE int32_t glow_scaled_product(int32_t product, float scale, float zp) {
  return glow_saturate8(glow_rne(glow_rounded((float)product * scale) + zp));
}

/* The code of an uint8 tensor minus 128; zp is that tensor's. */
GLOW_INLINE int32_t glow_scaled_product_u8(int32_t product, float scale, float zp) {
  return glow_round8(glow_rounded((float)product * scale) + zp, -128);
}

#define GLOW_DSP_PRODUCTS(name, code_of) \
  GLOW_HOT GLOW_DSP_UNUSED static void name(const glow_dsp_mul_t *m, const int8_t *a, const int8_t *b, int8_t *out, int32_t n) { \
    const uint32_t a_zp = glow_twice16(-m->a_zp); \
    const uint32_t b_zp = glow_twice16(-m->b_zp); \
    const uint32_t low = glow_four8(m->out_min); \
    const uint32_t high = glow_four8(m->out_max); \
    const float scale = m->scale; \
    const float zp = m->out_zp; \
    for (; n >= 4; n -= 4, a += 4, b += 4, out += 4) { \
      const uint32_t x = glow_load4(a); \
      const uint32_t y = glow_load4(b); \
      const uint32_t even_x = glow_sxtab16(a_zp, x); \
      const uint32_t even_y = glow_sxtab16(b_zp, y); \
      const uint32_t odd_x = glow_sxtab16_odd(a_zp, x); \
      const uint32_t odd_y = glow_sxtab16_odd(b_zp, y); \
      const int32_t code0 = code_of(glow_mul_low(even_x, even_y), scale, zp); \
      const int32_t code1 = code_of(glow_mul_low(odd_x, odd_y), scale, zp); \
      const int32_t code2 = code_of(glow_mul_high(even_x, even_y), scale, zp); \
      const int32_t code3 = code_of(glow_mul_high(odd_x, odd_y), scale, zp); \
      glow_store4(out, glow_min4(glow_max4(glow_bytes4(code0, code1, code2, code3), low), high)); \
    } \
    for (; n > 0; n--) { \
      const int32_t code = code_of((*a++ - m->a_zp) * (*b++ - m->b_zp), scale, zp); \
      *out++ = (int8_t)glow_clamp(code, m->out_min, m->out_max); \
    } \
  }
GLOW_DSP_PRODUCTS(glow_dsp_mul, glow_scaled_product)
GLOW_DSP_PRODUCTS(glow_dsp_mul_u8, glow_scaled_product_u8)

#endif
