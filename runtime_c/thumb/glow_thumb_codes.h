/* SPDX-License-Identifier: MIT-0 */
/* Elementwise int8 kernels for cores without FPU: what is computed by the definition, near a tie. */
#ifndef GLOW_THUMB_CODES_H
#define GLOW_THUMB_CODES_H

#include "glow_thumb_base.h"

/* add_s8: rne((a * a_scale + b * b_scale) / out_scale) + zp, of codes without their zero points. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_add_slow(int32_t a, int32_t b, float a_scale, float b_scale,
                                                       float out_scale, int32_t zp) {
  const float ra = glow_rounded((float)a * a_scale);
  const float rb = glow_rounded((float)b * b_scale);
  return glow_round_clamp((ra + rb) / out_scale, zp, -128, 127);
}

/* add_s8f: rne(fma(a, a_ratio, fma(b, b_ratio, fixed))) - half, of codes moved by half. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_addf_slow(int32_t a, int32_t b, float a_ratio, float b_ratio, float fixed,
                                                        int32_t half) {
  const float code = glow_fma((float)a, a_ratio, glow_fma((float)b, b_ratio, fixed));
  return glow_round_clamp(code, 0, half - 128, half + 127) - half;
}

/* mul_s8: rne(float32(product) * scale + float32(zp)). */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_mul_slow(int32_t product, float scale, int32_t zp) {
  return glow_round_clamp(glow_rounded((float)product * scale) + (float)zp, 0, -128, 127);
}

/* The same of an uint8 tensor whose codes are kept minus 128. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_mul_slow_u8(int32_t product, float scale, int32_t zp) {
  return glow_round_clamp(glow_rounded((float)product * scale) + (float)(zp + 128), 0, 0, 255) - 128;
}

/* The bits of a scale in [2^-32, 0.25) as a factor (glow_thumb_factor). */
GLOW_INLINE int32_t glow_thumb_factor_of(float scale) {
  uint32_t bits;
  memcpy(&bits, &scale, sizeof bits);
  return glow_thumb_factor(bits);
}

/* The sum of n adjacent codes. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_sum(const int8_t *x, int32_t n) {
  int32_t sum = 0;
  for (const int8_t *const end = x + n; x != end; x++) {
    sum += *x;
  }
  return sum;
}

/* Copy n codes, `step` apart, and return their sum. */
GLOW_HOT GLOW_THUMB_NOINLINE static int32_t glow_thumb_gather(int8_t *to, const int8_t *x, int32_t n, int32_t step) {
  int32_t sum = 0;
  for (const int8_t *const end = to + n; to != end; x += step) {
    const int32_t code = *x;
    *to++ = (int8_t)code;
    sum += code;
  }
  return sum;
}

#endif
