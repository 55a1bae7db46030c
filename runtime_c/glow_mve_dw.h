/* Depthwise convolution (MVE).
 */
#ifndef GLOW_MVE_DW_H
#define GLOW_MVE_DW_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

/* 16 channels at a time. The stream: one pixel of the zero point (channels rounded up to 16), then per 16 channels 16
 * biases, 16 weights per tap, 16 scales; biases and scales in the order 0, 4, 8, 12, 2, 6, .., 1, 5, .., 3, 7, .. in
 * which VMULLB, VMULLT, VMOVLB and VMOVLT leave the channels. The assembly knows the offsets. */
enum { GLOW_MVE_TAPS = 64 };
typedef struct {
  const int8_t *const *taps; /* 0 */
  int32_t n;                 /* 4 */
  const void *stream;        /* 8 */
  int8_t *out;               /* 12 */
  int32_t channels;          /* 16 */
  int32_t zp_clamp;          /* 20: 2 * zero point + (1 when low or high is no bound of int8) */
  int8_t low[16];            /* 24 */
  int8_t high[16];           /* 40 */
} glow_mve_dw_t;

/* clang-format off */
#define GLOW_MVE_DW_WIDEN \
  "vmovlb.s16 q6, q4\n" "vmovlt.s16 q4, q4\n" "vadd.i32 q0, q0, q6\n" "vadd.i32 q1, q1, q4\n" \
  "vmovlb.s16 q6, q5\n" "vmovlt.s16 q5, q5\n" "vadd.i32 q2, q2, q6\n" "vadd.i32 q3, q3, q5\n"
#define GLOW_MVE_DW_BIAS \
  "vldrw.32 q0, [r9], #16\n" "vldrw.32 q1, [r9], #16\n" "vldrw.32 q2, [r9], #16\n" "vldrw.32 q3, [r9], #16\n"
/* q0 .. q3 to bytes in q0, by way of r11 */
#define GLOW_MVE_DW_CODES \
  "vldrw.32 q4, [r9], #16\n" "vcvt.f32.s32 q0, q0\n" "vldrw.32 q5, [r9], #16\n" "vcvt.f32.s32 q1, q1\n" \
  "vldrw.32 q6, [r9], #16\n" "vcvt.f32.s32 q2, q2\n" "vldrw.32 q7, [r9], #16\n" "vcvt.f32.s32 q3, q3\n" \
  "ldr r11, [r12, #20]\n" \
  "vmul.f32 q0, q0, q4\n" "vmul.f32 q1, q1, q5\n" "vmul.f32 q2, q2, q6\n" "vmul.f32 q3, q3, q7\n" \
  "vcvtn.s32.f32 q0, q0\n" "vcvtn.s32.f32 q1, q1\n" "vcvtn.s32.f32 q2, q2\n" "vcvtn.s32.f32 q3, q3\n" \
  "vqmovnb.s32 q0, q0\n" "vqmovnt.s32 q0, q1\n" "asrs r11, r11, #1\n" "vqmovnb.s32 q2, q2\n" "vqmovnt.s32 q2, q3\n" \
  "vqadd.s16 q0, q0, r11\n" "vqadd.s16 q2, q2, r11\n" "vqmovnb.s16 q0, q0\n" "vqmovnt.s16 q0, q2\n" \
  "bcc 9f\n" "add r11, r12, #24\n" "vldrb.8 q1, [r11], #16\n" "vldrb.8 q2, [r11]\n" \
  "vmax.s8 q0, q0, q1\n" "vmin.s8 q0, q0, q2\n" "9:\n"

/* One pixel. */
GLOW_MVE_FUNCTION void glow_mve_dw(GLOW_MVE_UNUSED const glow_mve_dw_t *d) {
  __asm__(
      "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "mov r12, r0\n" "movs r3, #0\n" "ldr r9, [r12, #8]\n"
      "ldr r10, [r12, #12]\n" "ldr r8, [r12, #16]\n"
      "1:\n" GLOW_MVE_DW_BIAS
      "ldrd r1, r2, [r12]\n" "vctp.8 r8\n" "dls lr, r2\n"
      "2: ldr r4, [r1], #4\n" "add r4, r4, r3\n" "vpst\n" "vldrbt.8 q6, [r4]\n" "vldrb.8 q7, [r9], #16\n"
      "vmullb.s8 q4, q6, q7\n" "vmullt.s8 q5, q6, q7\n" GLOW_MVE_DW_WIDEN "le lr, 2b\n"
      GLOW_MVE_DW_CODES
      "vpst\n" "vstrbt.8 q0, [r10], #16\n" "add r3, r3, #16\n" "subs r8, r8, #16\n" "bgt 1b\n"
      "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n");
}
/* clang-format on */

GLOW_MVE_UNUSED static void glow_mve_dw_init(glow_mve_dw_t *d, const int8_t *const *taps, int32_t n, int32_t zp,
                                             int32_t low, int32_t high) {
  d->taps = taps;
  d->n = n;
  d->zp_clamp = 2 * zp + (low > -128 || high < 127 ? 1 : 0);
  vst1q_s8(d->low, vdupq_n_s8((int8_t)low));
  vst1q_s8(d->high, vdupq_n_s8((int8_t)high));
}

#endif

#endif
