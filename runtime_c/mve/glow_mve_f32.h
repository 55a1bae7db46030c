/* SPDX-License-Identifier: MIT-0 */
/* Float32 products (MVE) by fused multiply-adds: the weights of four outputs, fetched by gathering loads, times one input
 * each, in the order of the reference; or, of one row, four inputs at a time.
 */
#ifndef GLOW_MVE_F32_H
#define GLOW_MVE_F32_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_elementwise.h"

/* Addresses of four outputs' weights `step` elements apart; the lanes from `lanes` on are those of the last output. */
GLOW_INLINE uint32x4_t glow_mve_f32_weights(const float *w, int32_t step, int32_t lanes) {
  const uint32x4_t lane = vminq_u32(glow_mve_index32(), vdupq_n_u32((uint32_t)(lanes - 1)));
  return vmlaq_n_u32(vdupq_n_u32((uint32_t)(uintptr_t)w), lane, 4u * (uint32_t)step);
}

#define GLOW_MVE_F32_LOAD(to) "vldrw.u32 " to ", [%q[w], #0]\nvadd.i32 %q[w], %q[w], %[next]\n"
#define GLOW_MVE_F32_LOAD_S8(to) \
  "vldrb.s32 " to ", [%[next], %q[w]]\nadd %[next], %[next], #1\nvcvt.f32.s32 " to ", " to "\n"
#define GLOW_MVE_F32_TWO(sum, x) \
  "ldrd %[t], %[u], [" x "], #8\nvfma.f32 " sum ", q4, %[t]\nvfma.f32 " sum ", q5, %[u]\n"
#define GLOW_MVE_F32_ONE(sum, x) "ldr %[t], [" x "], #4\nvfma.f32 " sum ", q4, %[t]\n"
#define GLOW_MVE_F32_ROWS(load) \
  __asm__ volatile("lsrs %[t], %[k], #1\nwls lr, %[t], 2f\n1: " load("q4") load("q5") \
                   GLOW_MVE_F32_TWO("%q[s0]", "%[x0]") GLOW_MVE_F32_TWO("%q[s1]", "%[x1]") \
                   GLOW_MVE_F32_TWO("%q[s2]", "%[x2]") GLOW_MVE_F32_TWO("%q[s3]", "%[x3]") "le lr, 1b\n" \
                   "2: lsls %[t], %[k], #31\nbeq 3f\n" load("q4") \
                   GLOW_MVE_F32_ONE("%q[s0]", "%[x0]") GLOW_MVE_F32_ONE("%q[s1]", "%[x1]") \
                   GLOW_MVE_F32_ONE("%q[s2]", "%[x2]") GLOW_MVE_F32_ONE("%q[s3]", "%[x3]") "3:" \
                   : [s0] "+w"(sums[0]), [s1] "+w"(sums[1]), [s2] "+w"(sums[2]), [s3] "+w"(sums[3]), [x0] "+r"(x0), \
                     [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [w] "+w"(w), [t] "=&r"(t), [u] "=&r"(u), \
                     [next] "+r"(next) \
                   : [k] "r"(k) \
                   : "lr", "q4", "q5", "cc", "memory")

/* sums[i] += weights times the k inputs at x[i]; the next input's weights are `step` elements after. */
GLOW_INLINE void glow_mve_f32_rows(float32x4_t *sums, const float *const *x, uint32x4_t w, int32_t step, int32_t k) {
  const float *x0 = x[0];
  const float *x1 = x[1];
  const float *x2 = x[2];
  const float *x3 = x[3];
  int32_t next = 4 * step;
  int32_t t;
  int32_t u;
  GLOW_MVE_F32_ROWS(GLOW_MVE_F32_LOAD);
}

/* The same with int8 weights at `next` plus the offsets `w`; the next input's weights are adjacent. */
GLOW_INLINE void glow_mve_f32_rows_s8(float32x4_t *sums, const float *const *x, const int8_t *next, uint32x4_t w,
                                        int32_t k) {
  const float *x0 = x[0];
  const float *x1 = x[1];
  const float *x2 = x[2];
  const float *x3 = x[3];
  int32_t t;
  int32_t u;
  GLOW_MVE_F32_ROWS(GLOW_MVE_F32_LOAD_S8);
}

/* Offsets of four outputs' weights `step` bytes apart; the lanes from `lanes` on are those of the last output. */
GLOW_INLINE uint32x4_t glow_mve_f32_offsets(int32_t step, int32_t lanes) {
  const uint32x4_t lane = vminq_u32(glow_mve_index32(), vdupq_n_u32((uint32_t)(lanes - 1)));
  return vmulq_n_u32(lane, (uint32_t)step);
}

/* sum * scale + bias; scale_step 0: the same scale for all outputs */
GLOW_INLINE float32x4_t glow_mve_f32_scaled(float32x4_t sum, const float *scale, int32_t scale_step, const float *bias,
                                              int32_t lanes) {
  const mve_pred16_t some = vctp32q((uint32_t)lanes);
  const float32x4_t factor = scale_step != 0 ? vldrwq_z_f32(scale, some) : vdupq_n_f32(*scale);
  return vaddq_f32(vmulq_f32(sum, factor), vldrwq_z_f32(bias, some));
}

/* sum[i] + the products of the k inputs at x with those of row i of w, in lanes; rows from `lanes` on are the last one. */
GLOW_INLINE float32x4_t glow_mve_f32_row(float32x4_t sum, const float *x, const float *w, int32_t step, int32_t k,
                                           int32_t lanes) {
  const float *w1 = w + (lanes > 1 ? step : 0);
  const float *w2 = w1 + (lanes > 2 ? step : 0);
  const float *w3 = w2 + (lanes > 3 ? step : 0);
  float32x4_t s0 = vdupq_n_f32(0.0f);
  float32x4_t s1 = s0;
  float32x4_t s2 = s0;
  float32x4_t s3 = s0;
  __asm__ volatile("wlstp.32 lr, %[k], 2f\n1: vldrw.32 q0, [%[x]], #16\nvldrw.32 q1, [%[w0]], #16\n"
                   "vfma.f32 %q[s0], q0, q1\nvldrw.32 q2, [%[w1]], #16\nvfma.f32 %q[s1], q0, q2\n"
                   "vldrw.32 q1, [%[w2]], #16\nvfma.f32 %q[s2], q0, q1\nvldrw.32 q2, [%[w3]], #16\n"
                   "vfma.f32 %q[s3], q0, q2\nletp lr, 1b\n2:"
                   : [s0] "+w"(s0), [s1] "+w"(s1), [s2] "+w"(s2), [s3] "+w"(s3), [x] "+r"(x), [w0] "+r"(w), [w1] "+r"(w1),
                     [w2] "+r"(w2), [w3] "+r"(w3)
                   : [k] "r"(k)
                   : "lr", "q0", "q1", "q2", "cc", "memory");
  const float32x4_t added = {(s0[0] + s0[1]) + (s0[2] + s0[3]), (s1[0] + s1[1]) + (s1[2] + s1[3]),
                             (s2[0] + s2[1]) + (s2[2] + s2[3]), (s3[0] + s3[1]) + (s3[2] + s3[3])};
  return vaddq_f32(sum, added);
}

/* sum + weights, int8 at `next` plus the offsets `w`, times the k inputs at x; the next input's weights are adjacent. */
GLOW_INLINE float32x4_t glow_mve_f32_row_s8(float32x4_t sum, const float *x, const int8_t *next, uint32x4_t w,
                                              int32_t k) {
  float32x4_t other = vdupq_n_f32(0.0f);
  int32_t t;
  int32_t u;
  __asm__ volatile("lsrs %[t], %[k], #1\nwls lr, %[t], 2f\n"
                   "1: ldrd %[t], %[u], [%[x]], #8\n" GLOW_MVE_F32_LOAD_S8("q4") GLOW_MVE_F32_LOAD_S8("q5")
                   "vfma.f32 %q[sum], q4, %[t]\nvfma.f32 %q[other], q5, %[u]\nle lr, 1b\n"
                   "2: lsls %[t], %[k], #31\nbeq 3f\nldr %[t], [%[x]]\n" GLOW_MVE_F32_LOAD_S8("q4")
                   "vfma.f32 %q[sum], q4, %[t]\n3:"
                   : [sum] "+w"(sum), [other] "+w"(other), [x] "+r"(x), [next] "+r"(next), [t] "=&r"(t), [u] "=&r"(u)
                   : [k] "r"(k), [w] "w"(w)
                   : "lr", "q4", "q5", "cc", "memory");
  return vaddq_f32(sum, other);
}

/* The first `lanes` of four results, `step` elements apart, between two bounds; what is not a number stays so. */
GLOW_INLINE void glow_mve_f32_store(float *out, int32_t step, float32x4_t v, float low, float high, int32_t lanes) {
  const uint32x4_t offsets = vmulq_n_u32(glow_mve_index32(), (uint32_t)step);
  __asm__ volatile("vpt.f32 gt, %q[low], %q[v]\nvmovt %q[v], %q[low]\nvpt.f32 gt, %q[v], %q[high]\n"
                   "vmovt %q[v], %q[high]\nvctp.32 %[lanes]\nvpst\nvstrwt.32 %q[v], [%[out], %q[offsets], uxtw #2]"
                   : [v] "+w"(v)
                   : [lanes] "r"(lanes), [out] "r"(out), [offsets] "w"(offsets), [low] "w"(vdupq_n_f32(low)),
                     [high] "w"(vdupq_n_f32(high))
                   : "cc", "memory");
}

/* to[0 .. n) = from[i * step], and 0 */
GLOW_INLINE void glow_mve_f32_copy(float *to, const float *from, int32_t step, int32_t n) {
  const uint32x4_t offsets = vmulq_n_u32(glow_mve_index32(), (uint32_t)step);
  GLOW_MVE_STRIDED("32", "vldrw.u32 q0, [%[from], %q[offsets], uxtw #2]", "vstrw.32 q0, [%[to]], #16", 16);
}

GLOW_INLINE void glow_mve_f32_zero(float *to, int32_t n) {
  __asm__ volatile("vmov.i32 q0, #0\nwlstp.32 lr, %[n], 2f\n1: vstrw.32 q0, [%[to]], #16\nletp lr, 1b\n2:"
                   : [to] "+r"(to)
                   : [n] "r"(n)
                   : "lr", "q0", "cc", "memory");
}

/* sum + the products of `count` positions of four channels, x_step and w_step elements apart */
GLOW_INLINE float32x4_t glow_mve_f32_channels(float32x4_t sum, const float *x, int32_t x_step, const float *w,
                                                int32_t w_step, int32_t count, int32_t lanes) {
  __asm__ volatile("vctp.32 %[lanes]\nwls lr, %[count], 2f\n1: vpstt\nvldrwt.32 q0, [%[x]]\nvldrwt.32 q1, [%[w]]\n"
                   "add %[x], %[x], %[x_step]\nadd %[w], %[w], %[w_step]\nvfma.f32 %q[sum], q0, q1\nle lr, 1b\n2:"
                   : [sum] "+w"(sum), [x] "+r"(x), [w] "+r"(w)
                   : [lanes] "r"(lanes), [count] "r"(count), [x_step] "r"(4 * x_step), [w_step] "r"(4 * w_step)
                   : "lr", "q0", "q1", "cc", "memory");
  return sum;
}

GLOW_INLINE float32x4_t glow_mve_f32_load(const float *from, int32_t lanes) {
  return vldrwq_z_f32(from, vctp32q((uint32_t)lanes));
}

/* out[i] = a[i] op b[i] between two bounds; what is not a number stays so. */
#define GLOW_MVE_F32_BINARY(name, op)                                                                               \
  GLOW_INLINE void glow_mve_f32_##name(const float *a, const float *b, float *out, int32_t n, float low,          \
                                         float high) {                                                              \
    __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrw.32 q0, [%[a]], #16\nvldrw.32 q1, [%[b]], #16\n" op           \
                     " q0, q0, q1\nvpt.f32 gt, %q[low], q0\nvmovt q0, %q[low]\nvpt.f32 gt, q0, %q[high]\n"          \
                     "vmovt q0, %q[high]\nvstrw.32 q0, [%[out]], #16\nletp lr, 1b\n2:"                              \
                     : [a] "+r"(a), [b] "+r"(b), [out] "+r"(out)                                                    \
                     : [n] "r"(n), [low] "w"(vdupq_n_f32(low)), [high] "w"(vdupq_n_f32(high))                       \
                     : "lr", "q0", "q1", "cc", "memory");                                                           \
  }
GLOW_MVE_F32_BINARY(add, "vadd.f32")
GLOW_MVE_F32_BINARY(sub, "vsub.f32")
GLOW_MVE_F32_BINARY(mul, "vmul.f32")

GLOW_MVE_FOLD(glow_mve_f32_sum, float, float32x4_t, "32", "vldrwt.32", "vadd.f32")
GLOW_MVE_FOLD(glow_mve_f32_greatest, float, float32x4_t, "32", "vldrwt.32", "vmaxnm.f32")
#endif

#endif
