/* SPDX-License-Identifier: MIT-0 */
/* Products of int8 codes on Advanced SIMD of A64 and A32: clamp(rne(float32(a * b) * scale + float32(zp))). */
#ifndef GLOW_NEON_MUL_H
#define GLOW_NEON_MUL_H

#if defined(__ARM_NEON)

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  int8x8_t a_zp;
  int8x8_t b_zp;
  float32x4_t zp;
  float32x4_t lo;
  float32x4_t hi;
  float scale;
} glow_neon_mul_t;

/* Four products. The result is limited before the rounding, which is by 1.5 * 2^23: its low 16 bits are the code. */
static inline int16x4_t glow_neon_mul_s16x4(const glow_neon_mul_t *m, int16x4_t a, int16x4_t b) {
  float32x4_t code = vmulq_n_f32(vcvtq_f32_s32(vmull_s16(a, b)), m->scale);
  __asm__("" : "+w"(code)); /* not contracted */
  code = vminq_f32(vmaxq_f32(vaddq_f32(code, m->zp), m->lo), m->hi);
  return vmovn_s32(vreinterpretq_s32_f32(vaddq_f32(code, vdupq_n_f32(12582912.0f))));
}

static inline int8x8_t glow_neon_mul_s8x8(const glow_neon_mul_t *m, int8x8_t a, int8x8_t b) {
  const int16x8_t qa = vsubl_s8(a, m->a_zp);
  const int16x8_t qb = vsubl_s8(b, m->b_zp);
  return vmovn_s16(vcombine_s16(glow_neon_mul_s16x4(m, vget_low_s16(qa), vget_low_s16(qb)),
                                glow_neon_mul_s16x4(m, vget_high_s16(qa), vget_high_s16(qb))));
}

/* The same for codes of an uint8 tensor minus 128: zero point and limits are those of that tensor. */
static inline int8x8_t glow_neon_mul_u8x8(const glow_neon_mul_t *m, int8x8_t a, int8x8_t b) {
  return veor_s8(glow_neon_mul_s8x8(m, a, b), vdup_n_s8(-128));
}

/* the last `count` < 8 codes, then zeros */
static inline int8x8_t glow_neon_mul_last(const int8_t *from, int32_t count) {
  int8_t bytes[8] = {0};
  memcpy(bytes, from, (size_t)count);
  return vld1_s8(bytes);
}
#endif
#endif
