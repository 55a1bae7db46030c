/* SPDX-License-Identifier: MIT-0 */
/* Products of int16 inputs with int8 weights (MVE), sums in 32 bits.
 *
 * Matrix products by VMLADAVA read one stream of groups of four output channels: per eight inputs 4 x 8 weights, the last
 * eight filled up with zeros; then 4 biases and 4 scales, or 4 factors whose products' upper words are codes. Accumulators are in even registers, as VMLADAVA wants them.
 */
#ifndef GLOW_MVE_WIDE_H
#define GLOW_MVE_WIDE_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"
#include "glow_reach.h"

/* The assembly knows the offsets of the members. */
typedef struct {
  const int16_t *x0; /* 0: inputs of two pixels */
  const int16_t *x1; /* 4 */
  int32_t blocks;    /* 8: of eight inputs */
  int32_t tail;      /* 12: inputs after them */
  int16_t *out0;     /* 16 */
  int16_t *out1;     /* 20 */
  const void *stream; /* 24 */
  int32_t channels;  /* 28 */
  int32_t zp;        /* 32 */
  int32_t low;       /* 36 */
  int32_t high;      /* 40 */
} glow_mve_wide_t;
GLOW_AT(glow_mve_wide_t, x0, 0); GLOW_AT(glow_mve_wide_t, x1, 4); GLOW_AT(glow_mve_wide_t, blocks, 8);
GLOW_AT(glow_mve_wide_t, tail, 12); GLOW_AT(glow_mve_wide_t, out0, 16); GLOW_AT(glow_mve_wide_t, out1, 20);
GLOW_AT(glow_mve_wide_t, stream, 24); GLOW_AT(glow_mve_wide_t, channels, 28); GLOW_AT(glow_mve_wide_t, zp, 32);
GLOW_AT(glow_mve_wide_t, low, 36); GLOW_AT(glow_mve_wide_t, high, 40); GLOW_SIZE(glow_mve_wide_t, 44);

#define GLOW_MVE_WIDE_WEIGHTS(q) "vldrb.s16 " q ", [r5], #8\n"
#define GLOW_MVE_WIDE_PAIR \
  GLOW_MVE_WIDE_WEIGHTS("q2") "vmladava.s16 r0, q0, q2\n" GLOW_MVE_WIDE_WEIGHTS("q3") "vmladava.s16 r2, q1, q2\n" \
  "vmladava.s16 r4, q0, q3\n" GLOW_MVE_WIDE_WEIGHTS("q2") "vmladava.s16 r6, q1, q3\n" \
  "vmladava.s16 r8, q0, q2\n" GLOW_MVE_WIDE_WEIGHTS("q3") "vmladava.s16 r10, q1, q2\n" \
  "vmladava.s16 r12, q0, q3\n" "vmladava.s16 lr, q1, q3\n"
#define GLOW_MVE_WIDE_TWO "vldrh.16 q0, [r1], #16\n" "vldrh.16 q1, [r3], #16\n" GLOW_MVE_WIDE_PAIR
#define GLOW_MVE_WIDE_ONE \
  GLOW_MVE_WIDE_WEIGHTS("q2") "vmladava.s16 r0, q0, q2\n" GLOW_MVE_WIDE_WEIGHTS("q3") "vmladava.s16 r4, q0, q3\n" \
  GLOW_MVE_WIDE_WEIGHTS("q2") "vmladava.s16 r8, q0, q2\n" GLOW_MVE_WIDE_WEIGHTS("q3") "vmladava.s16 r12, q0, q3\n"
#define GLOW_MVE_WIDE_BEGIN \
  "push {r3-r11, lr}\n" "vpush {d8-d13}\n" "mov r9, r0\n" \
  "ldrd r5, r11, [r9, #24]\n" "ldr r1, [r9, #32]\n" "vdup.32 q4, r1\n" \
  "ldrd r1, r3, [r9, #36]\n" "vdup.32 q5, r1\n" "vdup.32 q6, r3\n"
#define GLOW_MVE_WIDE_SCALED(q) \
  "vcvt.f32.s32 " q ", " q "\n" "vmul.f32 " q ", " q ", q3\n" "vcvtn.s32.f32 " q ", " q "\n"
#define GLOW_MVE_WIDE_HIGH(q) "vrmulh.s32 " q ", " q ", q3\n" /* upper words of products */
#define GLOW_MVE_WIDE_CODES(q, scaled) \
  "vadd.i32 " q ", " q ", q2\n" scaled(q) "vqadd.s32 " q ", " q ", q4\n" "vmax.s32 " q ", " q ", q5\n" \
  "vmin.s32 " q ", " q ", q6\n"
#define GLOW_MVE_WIDE_NUMBERS "vldrw.32 q2, [r5], #16\n" "vldrw.32 q3, [r5], #16\n"

/* All channels of two pixels. */
#define GLOW_MVE_WIDE2(name, scaled) \
  GLOW_MVE_FUNCTION void name(GLOW_MVE_UNUSED glow_mve_wide_t *d) { \
    __asm__( \
        GLOW_MVE_WIDE_BEGIN \
        "1: ldrd r1, r3, [r9]\n" "ldr r7, [r9, #8]\n" \
        "movs r0, #0\n" "movs r2, #0\n" "movs r4, #0\n" "movs r6, #0\n" \
        "mov r8, r0\n" "mov r10, r0\n" "mov r12, r0\n" "mov lr, r0\n" \
        "lsrs r7, r7, #1\n" "bcc 5f\n" GLOW_MVE_WIDE_TWO \
        "5: cbz r7, 3f\n" \
        "2: " GLOW_MVE_WIDE_TWO GLOW_MVE_WIDE_TWO \
        "subs r7, r7, #1\n" "bne 2b\n" \
        "3: ldr r7, [r9, #12]\n" "cbz r7, 4f\n" \
        "vctp.16 r7\n" "vpstt\n" "vldrht.16 q0, [r1]\n" "vldrht.16 q1, [r3]\n" GLOW_MVE_WIDE_PAIR \
        "4: vmov d0, r0, r4\n" "vmov d1, r8, r12\n" "vmov d2, r2, r6\n" "vmov d3, r10, lr\n" \
        GLOW_MVE_WIDE_NUMBERS GLOW_MVE_WIDE_CODES("q0", scaled) GLOW_MVE_WIDE_CODES("q1", scaled) \
        "ldrd r0, r2, [r9, #16]\n" "vctp.32 r11\n" "vpstt\n" "vstrht.32 q0, [r0], #8\n" "vstrht.32 q1, [r2], #8\n" \
        "strd r0, r2, [r9, #16]\n" \
        "subs r11, r11, #4\n" "bgt 1b\n" \
        "vpop {d8-d13}\n" "pop {r3-r11, pc}\n"); \
  }

/* The same of the first pixel alone. */
#define GLOW_MVE_WIDE1(name, scaled) \
  GLOW_MVE_FUNCTION void name(GLOW_MVE_UNUSED glow_mve_wide_t *d) { \
    __asm__( \
        GLOW_MVE_WIDE_BEGIN \
        "ldr r2, [r9, #16]\n" \
        "1: ldr r1, [r9]\n" "ldr r7, [r9, #8]\n" \
        "movs r0, #0\n" "movs r4, #0\n" "mov r8, r0\n" "mov r12, r0\n" \
        "wls lr, r7, 3f\n" \
        "2: vldrh.16 q0, [r1], #16\n" GLOW_MVE_WIDE_ONE \
        "le lr, 2b\n" \
        "3: ldr r7, [r9, #12]\n" "cbz r7, 4f\n" \
        "vctp.16 r7\n" "vpst\n" "vldrht.16 q0, [r1]\n" GLOW_MVE_WIDE_ONE \
        "4: vmov d0, r0, r4\n" "vmov d1, r8, r12\n" \
        GLOW_MVE_WIDE_NUMBERS GLOW_MVE_WIDE_CODES("q0", scaled) \
        "vctp.32 r11\n" "vpst\n" "vstrht.32 q0, [r2], #8\n" \
        "subs r11, r11, #4\n" "bgt 1b\n" \
        "vpop {d8-d13}\n" "pop {r3-r11, pc}\n"); \
  }

GLOW_MVE_WIDE2(glow_mve_wide2, GLOW_MVE_WIDE_SCALED)
GLOW_MVE_WIDE1(glow_mve_wide1, GLOW_MVE_WIDE_SCALED)
GLOW_MVE_WIDE2(glow_mve_wide2_high, GLOW_MVE_WIDE_HIGH)
GLOW_MVE_WIDE1(glow_mve_wide1_high, GLOW_MVE_WIDE_HIGH)

GLOW_INLINE void glow_mve_fill16(int16_t *to, int32_t value, int32_t n) {
  __asm__ volatile("vdup.16 q0, %1\nwlstp.16 lr, %2, 2f\n1: vstrh.16 q0, [%0], #16\nletp lr, 1b\n2:"
                   : "+l"(to)
                   : "r"(value), "r"(n)
                   : "lr", "q0", "cc", "memory");
}

/* k_w columns of in_c inputs from column `left` of a row of in_w of them, as one run; columns outside are `fill`. */
GLOW_INLINE void glow_mve_wide_columns(int16_t *to, const int16_t *row, int32_t left, int32_t k_w, int32_t in_w, int32_t in_c,
                                       int32_t fill) {
  if (left >= 0 && left + k_w <= in_w) {
    glow_mve_copy((int8_t *)to, (const int8_t *)(row + left * in_c), 2 * k_w * in_c);
    return;
  }
  const int32_t before = glow_clamp(-left, 0, k_w);
  const int32_t end = glow_clamp(in_w - left, before, k_w);
  glow_mve_fill16(to, fill, before * in_c);
  glow_mve_copy((int8_t *)(to + before * in_c), (const int8_t *)(row + (left + before) * in_c), 2 * (end - before) * in_c);
  glow_mve_fill16(to + end * in_c, fill, (k_w - end) * in_c);
}

/* Adds to sums of eight channels, the even ones first, the products of n columns of a row of the window. */
GLOW_INLINE void glow_mve_wide_taps(int32x4_t *sums, const int16_t *x, int32_t x_step, const int8_t *w, int32_t w_step,
                                    int32_t n) {
  int32x4_t even = sums[0];
  int32x4_t odd = sums[1];
  for (; n > 0; n--, x += x_step, w += w_step) {
    const int16x8_t inputs = vldrhq_s16(x);
    const int16x8_t factors = vldrbq_s16(w);
    even = vaddq_s32(even, vmullbq_int_s16(inputs, factors));
    odd = vaddq_s32(odd, vmulltq_int_s16(inputs, factors));
  }
  sums[0] = even;
  sums[1] = odd;
}

/* Stores the codes of eight channels by upper words of products, between low and high; the zero point is 0. */
GLOW_INLINE void glow_mve_wide_store_high(int16_t *to, const int32x4_t *sums, const int32_t *factor, int32_t low, int32_t high) {
  int16x8_t codes = vqmovnbq_s32(vdupq_n_s16(0), vrmulhq_s32(sums[0], vldrwq_s32(factor)));
  codes = vqmovntq_s32(codes, vrmulhq_s32(sums[1], vldrwq_s32(factor + 4)));
  codes = vminq_s16(vmaxq_s16(codes, vdupq_n_s16((int16_t)low)), vdupq_n_s16((int16_t)high));
  vstrhq_s16(to, codes);
}

/* Stores sat(rne(sum * scale) + zp) of eight channels, between low and high. */
GLOW_INLINE void glow_mve_wide_store(int16_t *to, const int32x4_t *sums, const float *scale, int32_t zp, int32_t low,
                                     int32_t high) {
  int32x4_t even = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums[0]), vldrwq_f32(scale)));
  int32x4_t odd = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums[1]), vldrwq_f32(scale + 4)));
  if (zp != 0) {
    even = vqaddq_n_s32(even, zp);
    odd = vqaddq_n_s32(odd, zp);
  }
  int16x8_t codes = vqmovnbq_s32(vdupq_n_s16(0), even);
  codes = vqmovntq_s32(codes, odd);
  codes = vminq_s16(vmaxq_s16(codes, vdupq_n_s16((int16_t)low)), vdupq_n_s16((int16_t)high));
  vstrhq_s16(to, codes);
}

#endif

#endif
