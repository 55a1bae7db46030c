/* SPDX-License-Identifier: MIT-0 */
/* Blocks for A32 with Advanced SIMD: 2 pixels x 4 outputs by VMULL.S8, 1 x 8 for one row, depthwise of 8 channels.
 *
 * The inputs of a block come in steps of 32 bytes (16 inputs of each of 2 pixels), the weights of a block are one
 * stream: biases (s32), scales (f32), then 64 bytes a step (glowc/kernels/simd/conv.py). The macros are parts of one
 * assembly text; its operands are
 *   at, w, n, to   inputs, stream, number of steps (or runs of steps), first pixel's outputs; all are advanced
 *   next           bytes from a pixel's outputs to the next pixel's
 *   head, k        the stream's first word, the constants (glow_a32_limits_t)
 * Results: clamp(rne(float32(acc) * scale) + zp, lo, hi). A32 cannot round to nearest when it converts: the product is
 * limited to +-32000 (GLOW_A32_ANY; GLOW_A32_SMALL where the packer proved it) and rounded half to even by adding
 * 1.5 * 2^23, plus the zero point where that is even (an odd one would move the ties); the low 16 bits of the sum then
 * are the result. Advanced SIMD of A32 takes denormal operands as 0 and gives 0 for denormal products: both are below
 * 2^-126 * 2^31 then, and round to 0 either way. In a sum the flush could
 * only show beside a term that is 0 or denormal itself, where the result rounds to 0 as well.
 */
#ifndef GLOW_A32_H
#define GLOW_A32_H

#if defined(__arm__) && defined(__ARM_NEON)

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "glow_runtime.h"
#include "glow_window_sums.h"

GLOW_SIZE(const int8_t *, 4); /* in lists of rows */

typedef struct {
  float magic[4];
  int16_t zp[8];
  int8_t lo[8];
  int8_t hi[8];
  float high[4];
  float low[4];
} glow_a32_limits_t;
GLOW_AT(glow_a32_limits_t, magic, 0); GLOW_AT(glow_a32_limits_t, zp, 16); GLOW_AT(glow_a32_limits_t, lo, 32);
GLOW_AT(glow_a32_limits_t, hi, 40); GLOW_AT(glow_a32_limits_t, high, 48); GLOW_AT(glow_a32_limits_t, low, 64);

/* zp is added in 16 bits where `odd`, else by the magic number */
static inline glow_a32_limits_t glow_a32_limits(int32_t zp, int32_t odd, int32_t lo, int32_t hi) {
  glow_a32_limits_t k;
  vst1q_f32(k.magic, vdupq_n_f32((float)(12582912 + (odd != 0 ? 0 : zp))));
  vst1q_s16(k.zp, vdupq_n_s16((int16_t)zp));
  vst1_s8(k.lo, vdup_n_s8((int8_t)lo));
  vst1_s8(k.hi, vdup_n_s8((int8_t)hi));
  vst1q_f32(k.high, vdupq_n_f32(32000.0f));
  vst1q_f32(k.low, vdupq_n_f32(-32000.0f));
  return k;
}

/* two pixels of `count` >= 8 inputs -> steps of 16 inputs of each */
static inline void glow_a32_gather2(int8_t *to, const int8_t *const *from, int32_t count) {
  const int8_t *f0 = from[0];
  const int8_t *f1 = from[1];
  int32_t i = 0;
  for (; i + 16 <= count; i += 16, to += 32) {
    vst1q_s8(to, vld1q_s8(f0 + i));
    vst1q_s8(to + 16, vld1q_s8(f1 + i));
  }
  if (i < count) {
    glow_tail16(to, f0, count);
    glow_tail16(to + 16, f1, count);
  }
}

/* sums[i] += a[i] * b[i] */
static inline void glow_add_products8(int32_t *sums, int8x8_t a, int8x8_t b) {
  const int16x8_t products = vmull_s8(a, b);
  vst1q_s32(sums, vaddw_s16(vld1q_s32(sums), vget_low_s16(products)));
  vst1q_s32(sums + 4, vaddw_s16(vld1q_s32(sums + 4), vget_high_s16(products)));
}

/* clamp(rne(v) + zp) of eight values; odd and zp as for `glow_a32_limits` */
static inline int8x8_t glow_a32_round_s8x8(float32x4_t v0, float32x4_t v1, const glow_a32_limits_t *k, int32_t odd) {
  const float32x4_t low = vld1q_f32(k->low);
  const float32x4_t high = vld1q_f32(k->high);
  const float32x4_t magic = vld1q_f32(k->magic);
  float32x4_t r0 = vminq_f32(vmaxq_f32(v0, low), high);
  float32x4_t r1 = vminq_f32(vmaxq_f32(v1, low), high);
  __asm__("" : "+w"(r0), "+w"(r1)); /* the product is rounded before the sum */
  const int16x4_t s0 = vmovn_s32(vreinterpretq_s32_f32(vaddq_f32(r0, magic)));
  const int16x4_t s1 = vmovn_s32(vreinterpretq_s32_f32(vaddq_f32(r1, magic)));
  const int16x8_t sum = vcombine_s16(s0, s1);
  const int8x8_t bytes = vqmovn_s16(odd != 0 ? vaddq_s16(sum, vld1q_s16(k->zp)) : sum);
  return vmin_s8(vmax_s8(bytes, vld1_s8(k->lo)), vld1_s8(k->hi));
}

/* the same of float32(acc) * scale */
static inline int8x8_t glow_a32_requant_s8x8(int32x4_t acc0, int32x4_t acc1, float32x4_t scale0, float32x4_t scale1,
                                             const glow_a32_limits_t *k, int32_t odd) {
  return glow_a32_round_s8x8(vmulq_f32(vcvtq_f32_s32(acc0), scale0), vmulq_f32(vcvtq_f32_s32(acc1), scale1), k, odd);
}

/* acc + a * b: fused where the CPU can */
static inline float32x4_t glow_a32_mac(float32x4_t acc, float32x4_t a, float32x4_t b) {
#if defined(__ARM_FEATURE_FMA)
  return vfmaq_f32(acc, a, b);
#else
  return vmlaq_f32(acc, a, b);
#endif
}

/* eight of a * a_ratio + (b * b_ratio + fixed) by `glow_a32_mac`, rounded, clamped */
static inline int8x8_t glow_a32_sum_s8x8(const int8_t *from_a, const int8_t *from_b, float a_ratio, float b_ratio,
                                         float fixed, const glow_a32_limits_t *k) {
  const float32x4_t ra = vdupq_n_f32(a_ratio);
  const float32x4_t rb = vdupq_n_f32(b_ratio);
  const float32x4_t start = vdupq_n_f32(fixed);
  const int16x8_t a = vmovl_s8(vld1_s8(from_a));
  const int16x8_t b = vmovl_s8(vld1_s8(from_b));
  const float32x4_t v0 = glow_a32_mac(start, vcvtq_f32_s32(vmovl_s16(vget_low_s16(b))), rb);
  const float32x4_t v1 = glow_a32_mac(start, vcvtq_f32_s32(vmovl_s16(vget_high_s16(b))), rb);
  return glow_a32_round_s8x8(glow_a32_mac(v0, vcvtq_f32_s32(vmovl_s16(vget_low_s16(a))), ra),
                             glow_a32_mac(v1, vcvtq_f32_s32(vmovl_s16(vget_high_s16(a))), ra), k, 0);
}

/* the same of codes plus 128 */
static inline int8x8_t glow_a32_sum_u8x8(const int8_t *from_a, const int8_t *from_b, float a_ratio, float b_ratio,
                                         float fixed, const glow_a32_limits_t *k) {
  const float32x4_t ra = vdupq_n_f32(a_ratio);
  const float32x4_t rb = vdupq_n_f32(b_ratio);
  const float32x4_t start = vdupq_n_f32(fixed);
  const uint8x8_t sign = vdup_n_u8(0x80);
  const uint16x8_t a = vmovl_u8(veor_u8(vreinterpret_u8_s8(vld1_s8(from_a)), sign));
  const uint16x8_t b = vmovl_u8(veor_u8(vreinterpret_u8_s8(vld1_s8(from_b)), sign));
  const float32x4_t v0 = glow_a32_mac(start, vcvtq_f32_u32(vmovl_u16(vget_low_u16(b))), rb);
  const float32x4_t v1 = glow_a32_mac(start, vcvtq_f32_u32(vmovl_u16(vget_high_u16(b))), rb);
  return glow_a32_round_s8x8(glow_a32_mac(v0, vcvtq_f32_u32(vmovl_u16(vget_low_u16(a))), ra),
                             glow_a32_mac(v1, vcvtq_f32_u32(vmovl_u16(vget_high_u16(a))), ra), k, 0);
}

typedef struct {
  int32x4_t start;
  int32x4_t a_factor;
  int32x4_t b_factor;
} glow_a32_fixed_t;

static inline glow_a32_fixed_t glow_a32_fixed(int32_t a_factor, int32_t b_factor, int32_t start) {
  glow_a32_fixed_t s;
  s.start = vdupq_n_s32(start);
  s.a_factor = vdupq_n_s32(a_factor);
  s.b_factor = vdupq_n_s32(b_factor);
  __asm__("" : "+w"(s.a_factor), "+w"(s.b_factor)); /* else gcc 12 moves them from integers again and again */
  return s;
}

/* four sums of codes moved by 7, the upper 16 of 32 bits */
static inline int16x4_t glow_a32_fixed_s16x4(const glow_a32_fixed_t *s, int16x4_t a, int16x4_t b) {
  const int32x4_t left = vaddq_s32(s->start, vqrdmulhq_s32(vshll_n_s16(a, 15), s->a_factor));
  return vaddhn_s32(left, vqrdmulhq_s32(vshll_n_s16(b, 15), s->b_factor));
}

/* eight sums in fixed point: start + the products, 20 bits after the point (glowc/kernels/simd/add_terms.py) */
static inline int8x8_t glow_a32_fixed_s8x8(const glow_a32_fixed_t *s, const int8_t *from_a, const int8_t *from_b) {
  const int16x8_t a = vshll_n_s8(vld1_s8(from_a), 7);
  const int16x8_t b = vshll_n_s8(vld1_s8(from_b), 7);
  const int16x4_t low = glow_a32_fixed_s16x4(s, vget_low_s16(a), vget_low_s16(b));
  const int16x4_t high = glow_a32_fixed_s16x4(s, vget_high_s16(a), vget_high_s16(b));
  return vqrshrn_n_s16(vcombine_s16(low, high), 4);
}

#define GLOW_A32_CLOBBERS                                                                                     \
  "cc", "memory", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", \
      "q14", "q15"

#define GLOW_A32_ZERO(a) "vmov.i32 q" #a ", #0\n"

#define GLOW_A32_BEGIN                                                                                      \
  GLOW_A32_ZERO(8) GLOW_A32_ZERO(9) GLOW_A32_ZERO(10) GLOW_A32_ZERO(11) GLOW_A32_ZERO(12) GLOW_A32_ZERO(13) \
      GLOW_A32_ZERO(14) GLOW_A32_ZERO(15)

/* two pixels (q0, q1) x two outputs (q2, q3) -> a, c of the first pixel, d, e of the second; -128 * -128 twice would
 * leave s16, so each half is added on its own */
#define GLOW_A32_FOUR_ANY(a, c, d, e)                                                                         \
  "vmull.s8 q4, d0, d4\n" "vmull.s8 q5, d0, d6\n" "vmull.s8 q6, d2, d4\n" "vmull.s8 q7, d2, d6\n"             \
  "vpadal.s16 q" #a ", q4\n" "vpadal.s16 q" #c ", q5\n" "vpadal.s16 q" #d ", q6\n" "vpadal.s16 q" #e ", q7\n" \
  "vmull.s8 q4, d1, d5\n" "vmull.s8 q5, d1, d7\n" "vmull.s8 q6, d3, d5\n" "vmull.s8 q7, d3, d7\n"             \
  "vpadal.s16 q" #a ", q4\n" "vpadal.s16 q" #c ", q5\n" "vpadal.s16 q" #d ", q6\n" "vpadal.s16 q" #e ", q7\n"

/* the same where no weight is -128: two products fit s16 */
#define GLOW_A32_FOUR_PAIRS(a, c, d, e)                                                           \
  "vmull.s8 q4, d0, d4\n" "vmull.s8 q5, d0, d6\n" "vmull.s8 q6, d2, d4\n" "vmull.s8 q7, d2, d6\n" \
  "vmlal.s8 q4, d1, d5\n" "vmlal.s8 q5, d1, d7\n" "vmlal.s8 q6, d3, d5\n" "vmlal.s8 q7, d3, d7\n" \
  "vpadal.s16 q" #a ", q4\n" "vpadal.s16 q" #c ", q5\n" "vpadal.s16 q" #d ", q6\n" "vpadal.s16 q" #e ", q7\n"

/* weights of 16 inputs of two outputs; of less than 16, `rest`: what a vector holds after them meets inputs of 0 */
#define GLOW_A32_GET "vld1.8 {d4-d7}, [%[w]]!\n"
#define GLOW_A32_GET_REST \
  "vld1.8 {d4-d5}, [%[w]], %[rest]\n" "vld1.8 {d6-d7}, [%[w]], %[rest]\n"

#define GLOW_A32_MACS(W, GET) GET GLOW_A32_FOUR_##W(8, 9, 12, 13) GET GLOW_A32_FOUR_##W(10, 11, 14, 15)

/* half a step: 8 inputs of each pixel */
#define GLOW_A32_HALF_STEP                                                                        \
  "vld1.8 {d0-d1}, [%[at]]!\n" "vld1.8 {d4-d7}, [%[w]]!\n"                                        \
  "vmull.s8 q4, d0, d4\n" "vmull.s8 q5, d0, d5\n" "vmull.s8 q6, d0, d6\n" "vmull.s8 q7, d0, d7\n" \
  "vpadal.s16 q8, q4\n" "vpadal.s16 q9, q5\n" "vpadal.s16 q10, q6\n" "vpadal.s16 q11, q7\n"       \
  "vmull.s8 q4, d1, d4\n" "vmull.s8 q5, d1, d5\n" "vmull.s8 q6, d1, d6\n" "vmull.s8 q7, d1, d7\n" \
  "vpadal.s16 q12, q4\n" "vpadal.s16 q13, q5\n" "vpadal.s16 q14, q6\n" "vpadal.s16 q15, q7\n"

/* four accumulators of four lanes -> four sums in the first one */
#define GLOW_A32_SUM(a, b, c, d, e, f, g, h)                                      \
  "vpadd.i32 d" #a ", d" #a ", d" #b "\n" "vpadd.i32 d" #c ", d" #c ", d" #d "\n" \
  "vpadd.i32 d" #e ", d" #e ", d" #f "\n" "vpadd.i32 d" #g ", d" #g ", d" #h "\n" \
  "vpadd.i32 d" #a ", d" #a ", d" #c "\n" "vpadd.i32 d" #b ", d" #e ", d" #g "\n"

#define GLOW_A32_LOAD_SMALL "vld1.32 {d4-d7}, [%[k]]!\n"
#define GLOW_A32_LOAD_ANY \
  "vld1.32 {d4-d7}, [%[k]]!\n" "vld1.32 {d8-d9}, [%[k]]!\n" "vld1.32 {d12-d15}, [%[k]]!\n"
#define GLOW_A32_LIMIT_SMALL(a) ""
#define GLOW_A32_LIMIT_ANY(a)             \
  "vmin.f32 q" #a ", q" #a ", q6\n"       \
  "vmax.f32 q" #a ", q" #a ", q7\n"

/* sums -> products, rounded, in the low 16 bits of each lane; magic in q2 */
#define GLOW_A32_ROUND(K, a, s)                    \
  "vcvt.f32.s32 q" #a ", q" #a "\n"                \
  "vmul.f32 q" #a ", q" #a ", q" #s "\n"           \
  GLOW_A32_LIMIT_##K(a) "vadd.f32 q" #a ", q" #a ", q2\n"

#define GLOW_A32_ZP_ODD "vadd.i16 q0, q0, q3\n"
#define GLOW_A32_ZP_NONE ""
#define GLOW_A32_BOUND_FREE ""
#define GLOW_A32_BOUND_SMALL        \
  "vld1.8 {d8-d9}, [%[k]]\n"        \
  "vmax.s8 d0, d0, d8\n"            \
  "vmin.s8 d0, d0, d9\n"
#define GLOW_A32_BOUND_ANY          \
  "vmax.s8 d0, d0, d8\n"            \
  "vmin.s8 d0, d0, d9\n"

#define GLOW_A32_END(K, ZP, BOUND)                                                          \
  GLOW_A32_SUM(16, 17, 18, 19, 20, 21, 22, 23) GLOW_A32_SUM(24, 25, 26, 27, 28, 29, 30, 31) \
  "vld1.32 {d0-d3}, [%[head]]\n" GLOW_A32_LOAD_##K                                          \
  "vadd.i32 q8, q8, q0\n"                                                                   \
  "vadd.i32 q12, q12, q0\n" GLOW_A32_ROUND(K, 8, 1) GLOW_A32_ROUND(K, 12, 1)                \
  "vmovn.i32 d0, q8\n"                                                                      \
  "vmovn.i32 d1, q12\n" GLOW_A32_ZP_##ZP                                                    \
  "vqmovn.s16 d0, q0\n" GLOW_A32_BOUND_##BOUND                                              \
  "vst1.32 {d0[0]}, [%[to]], %[next]\n" "vst1.32 {d0[1]}, [%[to]], %[next]\n"

/* one row x 8 outputs, or 4: accumulators q8..q15 */
#define GLOW_A32_ROW_TWO_ANY(a, c)                                                                \
  "vmull.s8 q4, d0, d4\n" "vmull.s8 q5, d0, d6\n" "vmull.s8 q6, d1, d5\n" "vmull.s8 q7, d1, d7\n" \
  "vpadal.s16 q" #a ", q4\n" "vpadal.s16 q" #c ", q5\n" "vpadal.s16 q" #a ", q6\n" "vpadal.s16 q" #c ", q7\n"

#define GLOW_A32_ROW_TWO_PAIRS(a, c)              \
  "vmull.s8 q4, d0, d4\n" "vmull.s8 q5, d0, d6\n" \
  "vmlal.s8 q4, d1, d5\n" "vmlal.s8 q5, d1, d7\n" \
  "vpadal.s16 q" #a ", q4\n" "vpadal.s16 q" #c ", q5\n"

#define GLOW_A32_ROW_MACS_4(W, GET) GET GLOW_A32_ROW_TWO_##W(8, 9) GET GLOW_A32_ROW_TWO_##W(10, 11)
#define GLOW_A32_ROW_MACS_8(W, GET) \
  GLOW_A32_ROW_MACS_4(W, GET) GET GLOW_A32_ROW_TWO_##W(12, 13) GET GLOW_A32_ROW_TWO_##W(14, 15)

#define GLOW_A32_ROW_END_4(K, ZP, BOUND)                                                   \
  GLOW_A32_SUM(16, 17, 18, 19, 20, 21, 22, 23)                                             \
  "vld1.32 {d0-d3}, [%[head]]\n" GLOW_A32_LOAD_##K                                         \
  "vadd.i32 q8, q8, q0\n" GLOW_A32_ROUND(K, 8, 1)                                          \
  "vmovn.i32 d0, q8\n" GLOW_A32_ZP_##ZP                                                    \
  "vqmovn.s16 d0, q0\n" GLOW_A32_BOUND_##BOUND                                             \
  "vst1.32 {d0[0]}, [%[to]]\n"

#define GLOW_A32_ROW_END_8(K, ZP, BOUND)                                                    \
  GLOW_A32_SUM(16, 17, 18, 19, 20, 21, 22, 23) GLOW_A32_SUM(24, 25, 26, 27, 28, 29, 30, 31) \
  "vld1.32 {d0-d3}, [%[head]]!\n"                                                           \
  "vld1.32 {d20-d23}, [%[head]]\n" GLOW_A32_LOAD_##K                                        \
  "vadd.i32 q8, q8, q0\n"                                                                   \
  "vadd.i32 q12, q12, q1\n" GLOW_A32_ROUND(K, 8, 10) GLOW_A32_ROUND(K, 12, 11)              \
  "vmovn.i32 d0, q8\n"                                                                      \
  "vmovn.i32 d1, q12\n" GLOW_A32_ZP_##ZP                                                    \
  "vqmovn.s16 d0, q0\n" GLOW_A32_BOUND_##BOUND                                              \
  "vst1.8 {d0}, [%[to]]\n"

/* depthwise: eight sums in q0, q1 -> bytes in d0 */
#define GLOW_A32_CHANNELS_LIMIT_SMALL ""
#define GLOW_A32_CHANNELS_LIMIT_ANY               \
  "vld1.32 {d4-d7}, [%[limits]]\n"                \
  "vmin.f32 q0, q0, q2\n" "vmin.f32 q1, q1, q2\n" \
  "vmax.f32 q0, q0, q3\n" "vmax.f32 q1, q1, q3\n"
#define GLOW_A32_CHANNELS_FREE ""
#define GLOW_A32_CHANNELS_BOUND      \
  "vld1.8 {d2-d3}, [%[k]]\n"         \
  "vmax.s8 d0, d0, d2\n"             \
  "vmin.s8 d0, d0, d3\n"

#define GLOW_A32_CHANNELS_END(K, ZP, BOUND)           \
  "vld1.32 {d4-d7}, [%[scale]]\n"                     \
  "vcvt.f32.s32 q0, q0\n" "vcvt.f32.s32 q1, q1\n"     \
  "vmul.f32 q0, q0, q2\n"                             \
  "vmul.f32 q1, q1, q3\n" GLOW_A32_CHANNELS_LIMIT_##K \
  "vld1.32 {d4-d7}, [%[k]]!\n"                        \
  "vadd.f32 q0, q0, q2\n" "vadd.f32 q1, q1, q2\n"     \
  "vmovn.i32 d0, q0\n"                                \
  "vmovn.i32 d1, q1\n" GLOW_A32_ZP_##ZP               \
  "vqmovn.s16 d0, q0\n" GLOW_A32_CHANNELS_##BOUND     \
  "vst1.8 {d0}, [%[to]]\n"
#endif
#endif
