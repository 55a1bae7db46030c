/* Products of two int8 activations (MVE): columns of the right one are made rows, where they are not yet. */
#ifndef GLOW_MVE_MATMUL_H
#define GLOW_MVE_MATMUL_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_elementwise.h"

/* to[i] = from[i * step]; step below 8192 */
static inline void glow_mve_column(int8_t *to, const int8_t *from, int32_t step, int32_t n) {
  const uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0u, 1), (uint16_t)step);
  GLOW_MVE_STRIDED("16", "vldrb.u16 q0, [%[from], %q[offsets]]", "vstrb.16 q0, [%[to]], #8", 8);
}

static inline int32_t glow_mve_total(const int8_t *x, int32_t n) {
  int32_t sum = 0;
  __asm__ volatile("wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[x]], #16\nvaddva.s8 %[sum], q0\nletp lr, 1b\n2:"
                   : [sum] "+Te"(sum), [x] "+r"(x)
                   : [n] "r"(n)
                   : "lr", "q0", "cc", "memory");
  return sum;
}

/* Products of x with four rows `pitch` bytes apart. */
static inline int32x4_t glow_mve_dots(const int8_t *x, const int8_t *rows, int32_t pitch, int32_t n) {
  int32_t sums[4] = {0, 0, 0, 0};
  const int8_t *b = rows + pitch;
  const int8_t *c = b + pitch;
  const int8_t *d = c + pitch;
  __asm__ volatile(
      "wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[x]], #16\nvldrb.8 q1, [%[a]], #16\nvmladava.s8 %[s], q0, q1\n"
      "vldrb.8 q2, [%[b]], #16\nvmladava.s8 %[t], q0, q2\nvldrb.8 q1, [%[c]], #16\nvmladava.s8 %[u], q0, q1\n"
      "vldrb.8 q2, [%[d]], #16\nvmladava.s8 %[v], q0, q2\nletp lr, 1b\n2:"
      : [s] "+Te"(sums[0]), [t] "+Te"(sums[1]), [u] "+Te"(sums[2]), [v] "+Te"(sums[3]), [x] "+r"(x), [a] "+r"(rows),
        [b] "+r"(b), [c] "+r"(c), [d] "+r"(d)
      : [n] "r"(n)
      : "lr", "q0", "q1", "q2", "cc", "memory");
  int32x4_t result = vdupq_n_s32(0);
  result = vsetq_lane_s32(sums[0], result, 0);
  result = vsetq_lane_s32(sums[1], result, 1);
  result = vsetq_lane_s32(sums[2], result, 2);
  return vsetq_lane_s32(sums[3], result, 3);
}

/* Stores the codes of four sums `step` bytes apart, the first `lanes` of them. */
static inline void glow_mve_scatter_codes(int8_t *out, int32_t step, int32x4_t sums, const glow_mve_codes_t *q,
                                          int32_t lanes) {
  const uint32x4_t offsets = vmulq_n_u32(vidupq_n_u32(0u, 1), (uint32_t)step);
  const int32x4_t codes = glow_mve_codes(sums, q);
  __asm__ volatile("vctp.32 %[lanes]\nvpst\nvstrbt.32 %q[codes], [%[out], %q[offsets]]"
                   :
                   : [lanes] "r"(lanes), [codes] "w"(codes), [out] "r"(out), [offsets] "w"(offsets)
                   : "cc", "memory");
}
#endif

#endif
