/* Fully connected layers of int8 on Armv7-M cores without DSP: eight outputs at a time. */
#ifndef GLOW_M3_FC_H
#define GLOW_M3_FC_H

#include "glow_m3.h"

#define GLOW_THUMB_FC 8 /* outputs whose weights alternate */

#if GLOW_M3_ASM
/* clang-format off */
#define GLOW_M3_FC_MAC(sum) "ldrsb lr, [%[w]], #1\n\tmla " sum ", lr, %[v], " sum "\n\t"
#define GLOW_M3_FC_TAP \
  "ldrsb %[v], [%[x]], #1\n\t" \
  GLOW_M3_FC_MAC("r3") GLOW_M3_FC_MAC("r4") GLOW_M3_FC_MAC("r5") GLOW_M3_FC_MAC("r6") \
  GLOW_M3_FC_MAC("r8") GLOW_M3_FC_MAC("r9") GLOW_M3_FC_MAC("r10") GLOW_M3_FC_MAC("r11")
/* clang-format on */

/* sum[8] += x[k] * w[k][8] */
GLOW_THUMB_NOINLINE static void glow_thumb_fc8(int32_t *sum, const int8_t *x, const int8_t *w, int32_t k) {
  __asm__ volatile("push {%[v]}\n\t"
                   "ldmia %[v], {r3, r4, r5, r6, r8, r9, r10, r11}\n\t"
                   "subs %[k], %[k], #4\n\t"
                   "blt 2f\n"
                   "1:\n\t" GLOW_M3_FC_TAP GLOW_M3_FC_TAP GLOW_M3_FC_TAP GLOW_M3_FC_TAP "subs %[k], %[k], #4\n\t"
                   "bge 1b\n"
                   "2:\n\t"
                   "adds %[k], %[k], #4\n\t"
                   "beq 4f\n"
                   "3:\n\t" GLOW_M3_FC_TAP "subs %[k], %[k], #1\n\t"
                   "bne 3b\n"
                   "4:\n\t"
                   "pop {%[v]}\n\t"
                   "stmia %[v], {r3, r4, r5, r6, r8, r9, r10, r11}\n\t"
                   : [v] "+r"(sum), [x] "+r"(x), [w] "+r"(w), [k] "+r"(k)
                   :
                   : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "lr", "cc", "memory");
}
#else
static inline void glow_thumb_fc8(int32_t *sum, const int8_t *x, const int8_t *w, int32_t k) {
  for (; k > 0; k--, x++) {
    for (int32_t i = 0; i < GLOW_THUMB_FC; i++) {
      sum[i] += *x * *w++;
    }
  }
}
#endif

/* sum += x[k] * w[k] */
GLOW_THUMB_NOINLINE static int32_t glow_thumb_fc1(int32_t sum, const int8_t *x, const int8_t *w, int32_t k) {
  for (; k >= 4; k -= 4, x += 4, w += 4) {
    sum += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
  }
  for (; k > 0; k--) {
    sum += *x++ * *w++;
  }
  return sum;
}

/* Codes of n sums; `near_tie` as in glow_thumb_gemm_t. */
GLOW_THUMB_NOINLINE static void glow_thumb_fc_store(int8_t *y, const int32_t *sum, int32_t n, const float *scale,
                                                    int32_t scale_step, uint32_t near_tie, int32_t zp) {
  const uint32_t span = near_tie < 0x80000000u ? GLOW_M3_SPAN : 0u;
  for (const int32_t *end = sum + n; sum != end; sum++, scale += scale_step) {
    uint32_t bits;
    memcpy(&bits, scale, sizeof bits);
    int32_t code = *sum;
    if (bits - GLOW_M3_LEAST >= span || !glow_thumb_round1(&code, glow_thumb_factor(bits), near_tie, zp)) {
      code = glow_thumb_slow(*sum, *scale, zp);
    }
    *y++ = (int8_t)code;
  }
}

#endif
