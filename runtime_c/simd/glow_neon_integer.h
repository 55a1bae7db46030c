/* SPDX-License-Identifier: MIT-0 */
/* Products of codes whose zero points are known at run time, on Advanced SIMD of A64 and A32. */
#ifndef GLOW_NEON_INTEGER_H
#define GLOW_NEON_INTEGER_H

#include "glow_reach.h"
#include "glow_runtime.h"

#if defined(__ARM_NEON)
#include <arm_neon.h>
#include <stdint.h>

/* Zero points of inputs and of two rows of weights; flips are 0x80 for uint8 codes, whose zero points are less by 128. */
typedef struct {
  uint8_t x_flip, w_flip;
  int32_t x, first, second;
} glow_neon_points_t;

/* The sums of two outputs, and what is to be added to them. */
typedef struct {
  int32x4_t first, second;
  int32_t first_rest, second_rest;
} glow_neon_two_sums_t;

/* eight codes less their zero point */
static inline int16x8_t glow_neon_less_s8x8(const int8_t *from, uint8_t flip, int16x8_t zp) {
  const int8x8_t codes = vreinterpret_s8_u8(veor_u8(vreinterpret_u8_s8(vld1_s8(from)), vdup_n_u8(flip)));
  return vsubq_s16(vmovl_s8(codes), zp);
}

static inline int32x4_t glow_neon_add_products(int32x4_t sums, int16x8_t x, int16x8_t w) {
  return vmlal_s16(vmlal_s16(sums, vget_low_s16(x), vget_low_s16(w)), vget_high_s16(x), vget_high_s16(w));
}

static inline int32_t glow_neon_code(int8_t code, uint8_t flip) { return (int8_t)(uint8_t)((uint8_t)code ^ flip); }

/* Adds the products of n inputs with two rows of weights, `stride` apart. */
static inline void glow_neon_dots8(glow_neon_two_sums_t *sums, const int8_t *x, const int8_t *w, int32_t stride, int32_t n,
                                   const glow_neon_points_t *z) {
  const int16x8_t zx = vdupq_n_s16((int16_t)z->x);
  const int16x8_t z_first = vdupq_n_s16((int16_t)z->first);
  const int16x8_t z_second = vdupq_n_s16((int16_t)z->second);
  for (; n >= 8; n -= 8, x += 8, w += 8) {
    const int16x8_t codes = glow_neon_less_s8x8(x, z->x_flip, zx);
    sums->first = glow_neon_add_products(sums->first, codes, glow_neon_less_s8x8(w, z->w_flip, z_first));
    sums->second = glow_neon_add_products(sums->second, codes, glow_neon_less_s8x8(w + stride, z->w_flip, z_second));
  }
  for (; n > 0; n--, x++, w++) {
    const int32_t code = glow_neon_code(*x, z->x_flip) - z->x;
    sums->first_rest += code * (glow_neon_code(w[0], z->w_flip) - z->first);
    sums->second_rest += code * (glow_neon_code(w[stride], z->w_flip) - z->second);
  }
}

static inline int32_t glow_neon_sum_of(int32x4_t sums) {
  const int32x2_t pairs = vadd_s32(vget_low_s32(sums), vget_high_s32(sums));
  return vget_lane_s32(vpadd_s32(pairs, pairs), 0);
}
#endif

#endif
