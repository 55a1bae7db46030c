/* SPDX-License-Identifier: MIT-0 */
/* Ends of blocks by TensorFlow Lite's multiplier and shift (glow_q31.h) with SQRDMULH and SRSHL, in place of those of
 * glow_a64.h.
 *
 * SQRDMULH gives the upper half of twice the product, rounded half up. SRSHL shifts it by a negative number of places,
 * rounded half up again, which is half away from zero after one was taken from what is negative (FIXED); where no code is
 * below the zero point, negative halves do not count (RECTIFIED). _ANY: 16 bits may not hold the result.
 *
 * In a stream the multipliers stand in place of the scales, and after them one byte for each output, its shift. At the
 * end of a block the shifts that belong to the multipliers v8..v11 are in v4..v7.
 */
#ifndef GLOW_A64_Q31_H
#define GLOW_A64_Q31_H

#include "glow_a64.h"

#if defined(__aarch64__)

#define GLOW_A64_UPPER(a, m) "sqrdmulh v" #a ".4s, v" #a ".4s, v" #m ".4s\n"
#define GLOW_A64_AWAY(a) "ssra v" #a ".4s, v" #a ".4s, #31\n"
#define GLOW_A64_SHIFT(a, s) "srshl v" #a ".4s, v" #a ".4s, v" #s ".4s\n"
#define GLOW_A64_SHIFT_OF_8(a) GLOW_A64_SHIFT(a, 4)
#define GLOW_A64_SHIFT_OF_9(a) GLOW_A64_SHIFT(a, 5)
#define GLOW_A64_SHIFT_OF_10(a) GLOW_A64_SHIFT(a, 6)
#define GLOW_A64_SHIFT_OF_11(a) GLOW_A64_SHIFT(a, 7)

/* v<a>: four sums -> four products, rounded; multipliers v<m> */
#define GLOW_A64_ROUND_FIXED(a, m) GLOW_A64_UPPER(a, m) GLOW_A64_AWAY(a) GLOW_A64_SHIFT_OF_##m(a)
#define GLOW_A64_ROUND_FIXED_ANY(a, m) GLOW_A64_ROUND_FIXED(a, m)
#define GLOW_A64_ROUND_RECTIFIED(a, m) GLOW_A64_UPPER(a, m) GLOW_A64_SHIFT_OF_##m(a)
#define GLOW_A64_ROUND_RECTIFIED_ANY(a, m) GLOW_A64_ROUND_RECTIFIED(a, m)

/* the same of four vectors, each step of all before the next */
#define GLOW_A64_UPPER4(a, c, d, e, m, n, o, p) \
  GLOW_A64_UPPER(a, m) GLOW_A64_UPPER(c, n) GLOW_A64_UPPER(d, o) GLOW_A64_UPPER(e, p)
#define GLOW_A64_AWAY4_FIXED(a, c, d, e) GLOW_A64_AWAY(a) GLOW_A64_AWAY(c) GLOW_A64_AWAY(d) GLOW_A64_AWAY(e)
#define GLOW_A64_AWAY4_FIXED_ANY(a, c, d, e) GLOW_A64_AWAY4_FIXED(a, c, d, e)
#define GLOW_A64_AWAY4_RECTIFIED(a, c, d, e)
#define GLOW_A64_AWAY4_RECTIFIED_ANY(a, c, d, e)
#define GLOW_A64_SHIFT4(a, c, d, e, s, t, u, v) \
  GLOW_A64_SHIFT(a, s) GLOW_A64_SHIFT(c, t) GLOW_A64_SHIFT(d, u) GLOW_A64_SHIFT(e, v)
#define GLOW_A64_SHIFT4_OF(a, c, d, e, m, n, o, p) \
  GLOW_A64_SHIFT_OF_##m(a) GLOW_A64_SHIFT_OF_##n(c) GLOW_A64_SHIFT_OF_##o(d) GLOW_A64_SHIFT_OF_##p(e)

#define GLOW_A64_ROUND4_FIXED(a, c, d, e, m, n, o, p) \
  GLOW_A64_UPPER4(a, c, d, e, m, n, o, p) GLOW_A64_AWAY4_FIXED(a, c, d, e) GLOW_A64_SHIFT4_OF(a, c, d, e, m, n, o, p)
#define GLOW_A64_ROUND4_FIXED_ANY(a, c, d, e, m, n, o, p) GLOW_A64_ROUND4_FIXED(a, c, d, e, m, n, o, p)
#define GLOW_A64_ROUND4_RECTIFIED(a, c, d, e, m, n, o, p) \
  GLOW_A64_UPPER4(a, c, d, e, m, n, o, p) GLOW_A64_SHIFT4_OF(a, c, d, e, m, n, o, p)
#define GLOW_A64_ROUND4_RECTIFIED_ANY(a, c, d, e, m, n, o, p) GLOW_A64_ROUND4_RECTIFIED(a, c, d, e, m, n, o, p)

/* eight, of which each second one has the multipliers v<n> */
#define GLOW_A64_ROUND8_OF(K, a, c, d, e, f, g, h, i, m, n)                                   \
  GLOW_A64_UPPER4(a, c, d, e, m, n, m, n) GLOW_A64_UPPER4(f, g, h, i, m, n, m, n)             \
  GLOW_A64_AWAY4_##K(a, c, d, e) GLOW_A64_AWAY4_##K(f, g, h, i)                               \
  GLOW_A64_SHIFT4_OF(a, c, d, e, m, n, m, n) GLOW_A64_SHIFT4_OF(f, g, h, i, m, n, m, n)
#define GLOW_A64_ROUND8_FIXED(a, c, d, e, f, g, h, i, m, n) GLOW_A64_ROUND8_OF(FIXED, a, c, d, e, f, g, h, i, m, n)
#define GLOW_A64_ROUND8_FIXED_ANY(a, c, d, e, f, g, h, i, m, n) GLOW_A64_ROUND8_FIXED(a, c, d, e, f, g, h, i, m, n)
#define GLOW_A64_ROUND8_RECTIFIED(a, c, d, e, f, g, h, i, m, n) GLOW_A64_ROUND8_OF(RECTIFIED, a, c, d, e, f, g, h, i, m, n)
#define GLOW_A64_ROUND8_RECTIFIED_ANY(a, c, d, e, f, g, h, i, m, n) \
  GLOW_A64_ROUND8_RECTIFIED(a, c, d, e, f, g, h, i, m, n)

#define GLOW_A64_PACK_FIXED(d, a, c) GLOW_A64_PACK_SMALL(d, a, c)
#define GLOW_A64_PACK_FIXED_ANY(d, a, c) GLOW_A64_PACK_ANY(d, a, c)
#define GLOW_A64_PACK_RECTIFIED(d, a, c) GLOW_A64_PACK_SMALL(d, a, c)
#define GLOW_A64_PACK_RECTIFIED_ANY(d, a, c) GLOW_A64_PACK_ANY(d, a, c)

#define GLOW_A64_MORE_FIXED(loads) loads
#define GLOW_A64_MORE_FIXED_ANY(loads) loads
#define GLOW_A64_MORE_RECTIFIED(loads) loads
#define GLOW_A64_MORE_RECTIFIED_ANY(loads) loads

/* four shifts in bytes of v<b> -> v<s>; eight -> v<s>, v<t> */
#define GLOW_A64_WIDEN4(s, b) "sxtl v" #s ".8h, v" #b ".8b\n" "sxtl v" #s ".4s, v" #s ".4h\n"
#define GLOW_A64_WIDEN8(s, t, b) \
  "sxtl v" #s ".8h, v" #b ".8b\n" "sxtl2 v" #t ".4s, v" #s ".8h\n" "sxtl v" #s ".4s, v" #s ".4h\n"

#define GLOW_A64_SHIFTS_8X8 "ldr d4, [%[head], #64]\n" GLOW_A64_WIDEN8(4, 5, 4)
#define GLOW_A64_SHIFTS_END "ldr s6, [%[head], #32]\n" GLOW_A64_WIDEN4(6, 6)
#define GLOW_DOT_SHIFTS_4 "ldr s4, [%[head], #32]\n" GLOW_A64_WIDEN4(4, 4)
#define GLOW_DOT_SHIFTS_2 "ldr h4, [%[head], #16]\n" GLOW_A64_WIDEN4(4, 4)

/* a vector has the outputs of two pixels */
#define GLOW_I8MM_SHIFTS                                                  \
  "ldr d6, [%[head], #64]\n" GLOW_A64_WIDEN8(6, 7, 6)                     \
  "zip1 v4.2d, v6.2d, v6.2d\n" "zip2 v5.2d, v6.2d, v6.2d\n"               \
  "zip1 v6.2d, v7.2d, v7.2d\n" "zip2 v7.2d, v7.2d, v7.2d\n"
#define GLOW_I8MM_SHIFTS_4                                                \
  "ldr s4, [%[head], #32]\n" GLOW_A64_WIDEN4(4, 4)                        \
  "zip2 v5.2d, v4.2d, v4.2d\n" "zip1 v4.2d, v4.2d, v4.2d\n"

/* one row: the bytes wait in v8; SDOT: in v1 */
#define GLOW_A64_ROW_BYTES_4 "ldr s8, [%[w]], #4\n"
#define GLOW_A64_ROW_BYTES_8 "ldr d8, [%[w]], #8\n"
#define GLOW_A64_ROW_SHIFTS_4 GLOW_A64_WIDEN4(6, 8)
#define GLOW_A64_ROW_SHIFTS_8 GLOW_A64_WIDEN8(6, 7, 8)
#define GLOW_DOT_ROW_SHIFTS                                               \
  "sxtl2 v7.8h, v1.16b\n" GLOW_A64_WIDEN8(4, 5, 1)                        \
  "sxtl v6.4s, v7.4h\n" "sxtl2 v7.4s, v7.8h\n"

/* the shifts of eight channels as words */
static inline void glow_a64_shifts8(int32_t *to, const int8_t *from) {
  const int16x8_t shifts = vmovl_s8(vld1_s8(from));
  vst1q_s32(to, vmovl_s16(vget_low_s16(shifts)));
  vst1q_s32(to + 4, vmovl_high_s16(shifts));
}

/* clamp of eight sums times multipliers, shifted, + zp */
static inline int8x8_t glow_a64_fixed_s8x8(int32x4_t acc0, int32x4_t acc1, int32x4_t mul0, int32x4_t mul1,
                                           int8x8_t shifts, int16x8_t zp, int8x8_t lo, int8x8_t hi) {
  const int16x8_t places = vmovl_s8(shifts);
  const int32x4_t upper0 = vqrdmulhq_s32(acc0, mul0);
  const int32x4_t upper1 = vqrdmulhq_s32(acc1, mul1);
  const int32x4_t v0 = vrshlq_s32(vsraq_n_s32(upper0, upper0, 31), vmovl_s16(vget_low_s16(places)));
  const int32x4_t v1 = vrshlq_s32(vsraq_n_s32(upper1, upper1, 31), vmovl_high_s16(places));
  const int16x8_t codes = vqaddq_s16(vcombine_s16(vqmovn_s32(v0), vqmovn_s32(v1)), zp);
  return vmin_s8(vmax_s8(vqmovn_s16(codes), lo), hi);
}

#endif
#endif
