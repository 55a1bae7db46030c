/* SPDX-License-Identifier: MIT-0 */
/* Rounding and comparing of codes by the FPU's and the DSP extension's own instructions, with the same in C. */
#ifndef GLOW_DSP_ROUND_H
#define GLOW_DSP_ROUND_H

#include "glow_dsp.h"

/* rne(v), saturated to 32 bits; NaN gives 0. The twin saturates earlier, beyond every code. */
GLOW_INLINE int32_t glow_rne(float v) {
#if GLOW_DSP_ASM
  int32_t code;
  __asm__("vcvtr.s32.f32 %1, %1\n\tvmov %0, %1" : "=r"(code), "+t"(v));
  return code;
#else
  return glow_round_clamp(v != v ? 0.0f : v, 0, -4194304, 4194303);
#endif
}

/* a + b, saturated to 32 bits. */
GLOW_INLINE int32_t glow_qadd(int32_t a, int32_t b) {
#if GLOW_DSP_SIMD
  __asm__("qadd %0, %0, %1" : "+r"(a) : "r"(b));
  return a;
#else
  const int64_t sum = (int64_t)a + b;
  return (int32_t)(sum < INT32_MIN ? INT32_MIN : (sum > INT32_MAX ? INT32_MAX : sum));
#endif
}

/* x between two limits, by one instruction. */
#if GLOW_DSP_SIMD
#define GLOW_DSP_SATURATE(name, op, low, high) \
  GLOW_INLINE int32_t name(int32_t x) { \
    __asm__(op : "+r"(x)); \
    return x; \
  }
#else
#define GLOW_DSP_SATURATE(name, op, low, high) \
  GLOW_INLINE int32_t name(int32_t x) { return glow_clamp(x, low, high); }
#endif
GLOW_DSP_SATURATE(glow_saturate8, "ssat %0, #8, %0", -128, 127)
GLOW_DSP_SATURATE(glow_saturate16, "ssat %0, #16, %0", -32768, 32767)
GLOW_DSP_SATURATE(glow_saturate_u15, "usat %0, #15, %0", 0, 32767)

/* saturate(rne(v) + zp) to eight bits; NaN gives zp. */
GLOW_INLINE int32_t glow_round8(float v, int32_t zp) { return glow_saturate8(glow_qadd(glow_rne(v), zp)); }
/* As glow_round8, of four numbers: no instruction waits for the one before it. */
typedef struct {
  int32_t a, b, c, d;
} glow_four_codes_t;

GLOW_INLINE glow_four_codes_t glow_round8_four(float a, float b, float c, float d, int32_t zp) {
  glow_four_codes_t codes;
#if GLOW_DSP_ASM
  __asm__(
      "vcvtr.s32.f32 %4, %4\n\tvcvtr.s32.f32 %5, %5\n\tvcvtr.s32.f32 %6, %6\n\tvcvtr.s32.f32 %7, %7\n\t"
      "vmov %0, %4\n\tvmov %1, %5\n\tvmov %2, %6\n\tvmov %3, %7"
      : "=r"(codes.a), "=r"(codes.b), "=r"(codes.c), "=r"(codes.d), "+t"(a), "+t"(b), "+t"(c), "+t"(d));
  codes.a = glow_saturate8(glow_qadd(codes.a, zp));
  codes.b = glow_saturate8(glow_qadd(codes.b, zp));
  codes.c = glow_saturate8(glow_qadd(codes.c, zp));
  codes.d = glow_saturate8(glow_qadd(codes.d, zp));
#else
  codes.a = glow_round8(a, zp);
  codes.b = glow_round8(b, zp);
  codes.c = glow_round8(c, zp);
  codes.d = glow_round8(d, zp);
#endif
  return codes;
}
GLOW_INLINE int8_t glow_round_s8(float v, int32_t zp) { return (int8_t)glow_round8(v, zp); }

/* rne(v) as a code of 16 bits, and as one that is not negative; NaN gives 0. */
GLOW_INLINE int32_t glow_round_s16(float v) { return glow_saturate16(glow_rne(v)); }
GLOW_INLINE int32_t glow_round_u15(float v) { return glow_saturate_u15(glow_rne(v)); }

/* rne(v) + zp between low and high, codes of 16 bits; NaN gives zp. */
GLOW_INLINE int32_t glow_round16(float v, int32_t zp, int32_t low, int32_t high) {
  return glow_clamp(glow_saturate16(glow_qadd(glow_rne(v), zp)), low, high);
}

#if !GLOW_DSP_SIMD
GLOW_INLINE uint32_t glow_plain_max4(uint32_t a, uint32_t b) {
  uint32_t most = 0u;
  for (uint32_t shift = 0u; shift < 32u; shift += 8u) {
    const uint32_t x = (a >> shift) & 0xFFu;
    const uint32_t y = (b >> shift) & 0xFFu;
    most |= ((x ^ 0x80u) > (y ^ 0x80u) ? x : y) << shift;
  }
  return most;
}
#endif

/* The greater and the lesser of each of four int8. */
GLOW_DSP_OF_TWO(uint32_t, glow_max4, "ssub8 %0, %1, %2\n\tsel %0, %1, %2", "=&r", glow_plain_max4(a, b))
GLOW_DSP_OF_TWO(uint32_t, glow_min4, "ssub8 %0, %2, %1\n\tsel %0, %1, %2", "=&r", ~glow_plain_max4(~a, ~b))

/* sum + a0 * b0 + a1 * b1 of halfwords. */
GLOW_INLINE int32_t glow_dual_mac(uint32_t a, uint32_t b, int32_t sum) {
#if GLOW_DSP_SIMD
  __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return glow_dsp_smlad(a, b, sum);
#endif
}

#endif
