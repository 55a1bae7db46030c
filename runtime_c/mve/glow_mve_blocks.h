/* SPDX-License-Identifier: MIT-0 */
/* Products of a row of floats with codes of 2, 4 or 8 bits (MVE). The row becomes integers of 31 bits, in units of its
 * largest magnitude / 2^30: 16 high bits and 15 low ones, which are multiplied apart. 16 bytes of codes are eight lanes of
 * `half` codes; code j of each lane is masked at once, so a row is, for each 16 bytes and each j, the high parts of eight
 * inputs j, half + j, 2 half + j ... and their low parts. */
#ifndef GLOW_MVE_FEW_BITS_H
#define GLOW_MVE_FEW_BITS_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

#define GLOW_MVE_FEW_BITS_TOP 1073740800.0f /* below 2^30, whatever is rounded */

GLOW_INLINE float glow_mve_blocks_unit(const float *x, int32_t k) {
  float max = 1e-30f;
  for (int32_t i = 0; i < k; i += 4) {
    const mve_pred16_t some = vctp32q((uint32_t)(k - i));
    max = vmaxnmavq_p_f32(max, vldrwq_z_f32(x + i, some), some);
  }
  return max / GLOW_MVE_FEW_BITS_TOP;
}

/* Writes a block of `count` inputs, of which those from `left` on are 0, and the sums of both parts. */
GLOW_INLINE void glow_mve_blocks_expand(int16_t *to, int32_t *sums, const float *x, float per_unit, int32_t left,
                                          int32_t count, int32_t half) {
  int32_t high = 0;
  int32_t low = 0;
  for (int32_t i = 0; i < count; i += 8 * half) {
    for (int32_t j = 0; j < half; j++, to += 16) {
      uint32x4_t at = vmulq_n_u32(glow_mve_index32(), (uint32_t)half);
      at = vaddq_n_u32(at, (uint32_t)(i + j));
      for (int32_t part = 0; part < 8; part += 4) {
        const mve_pred16_t some = vcmphiq_u32(vdupq_n_u32((uint32_t)left), at);
        const float32x4_t v = vldrwq_gather_shifted_offset_z_f32(x, at, some);
        const int32x4_t whole = vcvtq_s32_f32(vmulq_n_f32(v, per_unit));
        const int32x4_t top = vshrq_n_s32(whole, 15);
        const int32x4_t rest = vandq_s32(whole, vdupq_n_s32(0x7FFF));
        high = vaddvaq_s32(high, top);
        low = vaddvaq_s32(low, rest);
        vstrhq_s32(to + part, top);
        vstrhq_s32(to + 8 + part, rest);
        at = vaddq_n_u32(at, 4u * (uint32_t)half);
      }
    }
  }
  sums[0] = high;
  sums[1] = low;
}

#define GLOW_MVE_FEW_BITS_CODE \
  "vldrh.u16 q2, [%[x]], #16\nvand q4, q0, %q[mask]\nvldrh.u16 q3, [%[x]], #16\nvmlava.s16 %[h0], q2, q4\n" \
  "vand q5, q1, %q[mask]\nvmlava.s16 %[l0], q3, q4\nvmlava.s16 %[h1], q2, q5\nvmlava.s16 %[l1], q3, q5\n"
#define GLOW_MVE_FEW_BITS_NEXT(bits) "vshr.u16 q0, q0, #" bits "\nvshr.u16 q1, q1, #" bits "\n" GLOW_MVE_FEW_BITS_CODE
#define GLOW_MVE_FEW_BITS_2(bits) GLOW_MVE_FEW_BITS_NEXT(bits) GLOW_MVE_FEW_BITS_NEXT(bits)
#define GLOW_MVE_FEW_BITS_OF_8 GLOW_MVE_FEW_BITS_CODE GLOW_MVE_FEW_BITS_NEXT("8")
#define GLOW_MVE_FEW_BITS_OF_4 GLOW_MVE_FEW_BITS_CODE GLOW_MVE_FEW_BITS_NEXT("4") GLOW_MVE_FEW_BITS_2("4")
#define GLOW_MVE_FEW_BITS_OF_2 \
  GLOW_MVE_FEW_BITS_CODE GLOW_MVE_FEW_BITS_NEXT("2") GLOW_MVE_FEW_BITS_2("2") GLOW_MVE_FEW_BITS_2("2") GLOW_MVE_FEW_BITS_2("2")

/* sums: high and low parts of two outputs, the codes of a block of which are at w0 and w1 */
#define GLOW_MVE_FEW_BITS(bits, codes) \
  GLOW_INLINE void glow_mve_blocks_sums_##bits(int32_t *sums, const int16_t *x, const uint8_t *w0, const uint8_t *w1, \
                                                 int32_t bytes) { \
    int32_t h0 = sums[0]; \
    int32_t l0 = sums[1]; \
    int32_t h1 = sums[2]; \
    int32_t l1 = sums[3]; \
    __asm__ volatile("dls lr, %[n]\n1: vldrb.u8 q0, [%[w0]], #16\nvldrb.u8 q1, [%[w1]], #16\n" GLOW_MVE_FEW_BITS_OF_##bits \
                     "le lr, 1b\n" \
                     : [h0] "+Te"(h0), [l0] "+Te"(l0), [h1] "+Te"(h1), [l1] "+Te"(l1), [x] "+r"(x), [w0] "+r"(w0), \
                       [w1] "+r"(w1) \
                     : [n] "r"(bytes / 16), [mask] "w"(vdupq_n_u16(codes)) \
                     : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "memory"); \
    sums[0] = h0; \
    sums[1] = l0; \
    sums[2] = h1; \
    sums[3] = l1; \
  }
GLOW_MVE_FEW_BITS(2, 0x3)
GLOW_MVE_FEW_BITS(4, 0xF)
GLOW_MVE_FEW_BITS(8, 0xFF)

#endif
#endif
