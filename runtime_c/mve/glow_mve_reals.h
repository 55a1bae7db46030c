/* SPDX-License-Identifier: MIT-0 */
/* Codes by way of float32 (MVE): conversions, products, normalised rows. Every operation is rounded by itself.
 *
 * A quotient x / s is x * (1 / s), brought to the correctly rounded one by two steps with fused remainders.
 */
#ifndef GLOW_MVE_REALS_H
#define GLOW_MVE_REALS_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

/* q1 = q0 / s; uses q2 */
#define GLOW_MVE_QUOTIENT \
  "vmul.f32 q1, q0, %[inverse]\nvmov q2, q0\nvfma.f32 q2, q1, %[minus]\nvfma.f32 q1, q2, %[inverse]\n" \
  "vfma.f32 q0, q1, %[minus]\nvfma.f32 q1, q0, %[inverse]\n"
#define GLOW_MVE_CODES(q) \
  "vcvtn.s32.f32 " q ", " q "\nvqadd.s32 " q ", " q ", %[zp]\nvmax.s32 " q ", " q ", %q[least]\n" \
  "vmin.s32 " q ", " q ", %q[most]\n"
#define GLOW_MVE_STORE_CODES(q) GLOW_MVE_CODES(q) "vstrb.32 " q ", [%[out]], #4\n"
#define GLOW_MVE_STORE_HALVES(q) GLOW_MVE_CODES(q) "vstrh.32 " q ", [%[out]], #8\n"

GLOW_INLINE int32_t glow_mve_bits(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* out[i] = clamp(rne(in[i] / scale) + zp), of 8 or 16 bits; not a number counts as the lowest. Values of more steps than codes
 * and zero points have are cut first. */
#define GLOW_MVE_QUANTIZE(name, steps, store)                                                                                \
  GLOW_INLINE void name(const float *in, void *out, int32_t n, float scale, int32_t zp, int32_t low, int32_t high) {         \
    const float32x4_t above = vdupq_n_f32(steps * scale);                                                                    \
    const float32x4_t below = vnegq_f32(above);                                                                              \
    __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: vldrw.32 q0, [%[in]], #16\n"                                                \
                     "vmaxnm.f32 q0, q0, %q[below]\nvminnm.f32 q0, q0, %q[above]\n" GLOW_MVE_QUOTIENT                       \
                     store("q1") "letp lr, 1b\n2:"                                                                           \
                     : [in] "+r"(in), [out] "+l"(out)                                                                        \
                     : [n] "r"(n), [minus] "r"(glow_mve_bits(-scale)), [inverse] "r"(glow_mve_bits(1.0f / scale)),           \
                       [zp] "r"(zp), [above] "w"(above), [below] "w"(below), [least] "w"(vdupq_n_s32(low)),                  \
                       [most] "w"(vdupq_n_s32(high))                                                                         \
                     : "lr", "q0", "q1", "q2", "cc", "memory");                                                              \
  }
GLOW_MVE_QUANTIZE(glow_mve_quantize, 1024.0f, GLOW_MVE_STORE_CODES)
GLOW_MVE_QUANTIZE(glow_mve_quantize16, 131072.0f, GLOW_MVE_STORE_HALVES)

typedef struct {
  float in_scale, out_scale;
  int32_t in_zp, out_zp, low, high;
} glow_mve_requantize_t;

/* out[i] = clamp(rne((in[i] - in_zp) * in_scale / out_scale) + out_zp) */
#define GLOW_MVE_REQUANTIZE(load)                                                                                    \
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: " load " q0, [%[in]], #4\nvsub.i32 q0, q0, %[from]\n"                  \
                   "vcvt.f32.s32 q0, q0\nvmul.f32 q0, q0, %[scale]\n" GLOW_MVE_QUOTIENT GLOW_MVE_STORE_CODES("q1")   \
                   "letp lr, 1b\n2:"                                                                                 \
                   : [in] "+l"(in), [out] "+l"(out)                                                                  \
                   : [n] "r"(n), [from] "r"(d->in_zp), [scale] "r"(glow_mve_bits(d->in_scale)),                      \
                     [minus] "r"(glow_mve_bits(-d->out_scale)), [inverse] "r"(glow_mve_bits(1.0f / d->out_scale)),   \
                     [zp] "r"(d->out_zp), [least] "w"(vdupq_n_s32(d->low)), [most] "w"(vdupq_n_s32(d->high))         \
                   : "lr", "q0", "q1", "q2", "cc", "memory")
GLOW_INLINE void glow_mve_requantize(const void *in, int is_signed, void *out, int32_t n,
                                       const glow_mve_requantize_t *d) {
  if (is_signed != 0) {
    GLOW_MVE_REQUANTIZE("vldrb.s32");
  } else {
    GLOW_MVE_REQUANTIZE("vldrb.u32");
  }
}

typedef struct {
  int32_t a_zp, b_zp;
  float scale, zp;
  int32_t low, high;
} glow_mve_product_t;

/* q3 = rne((a - a_zp) * (b - b_zp) * scale + zp) of the next four codes; in the places between, what was q3 becomes codes. */
#define GLOW_MVE_PRODUCT(c, d, e)                                                                                    \
  "vldrb.s32 q1, [%[b]], #4\nvsub.i32 q1, q1, %[b_zp]\nvldrb.s32 q0, [%[a]], #4\nvsub.i32 q0, q0, %[a_zp]\n"        \
  "vmul.i32 q0, q0, q1\n" c "vcvt.f32.s32 q0, q0\n" d "vmul.f32 q0, q0, %[scale]\nvadd.f32 q0, q0, %[zp]\n" e     \
  "vcvtn.s32.f32 q3, q0\n"
#define GLOW_MVE_AT_LEAST "vmax.s32 q3, q3, %q[least]\n"
#define GLOW_MVE_AT_MOST "vmin.s32 q3, q3, %q[most]\n"
#define GLOW_MVE_STORE_FOUR "vstrb.32 q3, [%[out]], #4\n"

/* out[i] = clamp(rne((a - a_zp) * (b - b_zp) * scale + zp)) */
#define GLOW_MVE_MULTIPLY(moved, ...)                                                                                \
  __asm__ volatile("lsrs lr, %[n], #2\nbeq 2f\n" GLOW_MVE_PRODUCT("", "", "") "sub lr, lr, #1\nwls lr, lr, 3f\n1:"   \
                   GLOW_MVE_PRODUCT(GLOW_MVE_AT_LEAST, GLOW_MVE_AT_MOST moved, GLOW_MVE_STORE_FOUR)                  \
                   "le lr, 1b\n3: " GLOW_MVE_AT_LEAST GLOW_MVE_AT_MOST moved GLOW_MVE_STORE_FOUR                     \
                   "2: and lr, %[n], #3\nwlstp.32 lr, lr, 5f\n4: " GLOW_MVE_PRODUCT("", "", "")                      \
                   GLOW_MVE_AT_LEAST GLOW_MVE_AT_MOST moved GLOW_MVE_STORE_FOUR "letp lr, 4b\n5:"                    \
                   : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)                                                       \
                   : [n] "r"(n), [a_zp] "r"(d->a_zp), [b_zp] "r"(d->b_zp),                                           \
                     [scale] "r"(glow_mve_bits(d->scale)), [zp] "r"(glow_mve_bits(d->zp)),                           \
                     [least] "w"(vdupq_n_s32(d->low)), __VA_ARGS__                                                   \
                   : "lr", "q0", "q1", "q3", "cc", "memory")
GLOW_INLINE void glow_mve_multiply(const int8_t *a, const int8_t *b, int8_t *out, int32_t n,
                                     const glow_mve_product_t *d) {
  GLOW_MVE_MULTIPLY("", [most] "w"(vdupq_n_s32(d->high)));
}

/* The same for codes of an uint8 tensor minus 128: zero point and limits are those of that tensor. */
GLOW_INLINE void glow_mve_multiply_u8(const int8_t *a, const int8_t *b, int8_t *out, int32_t n,
                                        const glow_mve_product_t *d) {
  GLOW_MVE_MULTIPLY("veor q3, q3, %q[sign]\n", [most] "w"(vdupq_n_s32(d->high)), [sign] "w"(vdupq_n_s32(128)));
}

typedef struct {
  int32_t sum, squares;
} glow_mve_moments_t;

GLOW_INLINE glow_mve_moments_t glow_mve_moments(const int8_t *x, int32_t n) {
  glow_mve_moments_t m = {0, 0};
  __asm__ volatile("wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[x]], #16\nvaddva.s8 %[sum], q0\n"
                   "vmladava.s8 %[squares], q0, q0\nletp lr, 1b\n2:"
                   : [sum] "+Te"(m.sum), [squares] "+Te"(m.squares), [x] "+r"(x)
                   : [n] "r"(n)
                   : "lr", "q0", "cc", "memory");
  return m;
}

/* q3 = rne(((n * in - centre) * r) * gain + shift) of the next four codes; in the places between, what was q3 becomes codes. */
#define GLOW_MVE_NORMALISE(a, b, c, d)                                                                                \
  "vldrb.s32 q0, [%[in]], #4\nvmlas.s32 q0, %q[count], %[minus]\n" a "vcvt.f32.s32 q0, q0\n" b                        \
  "vldrw.32 q2, [%[shift]], #16\nvmul.f32 q0, q0, %[r]\nvldrw.32 q1, [%[gain]], #16\nvmul.f32 q0, q0, q1\n" c        \
  "vadd.f32 q0, q0, q2\n" d "vcvtn.s32.f32 q3, q0\n"
#define GLOW_MVE_ADD_ZP "vqadd.s32 q3, q3, %[zp]\n"
#define GLOW_MVE_END_FOUR GLOW_MVE_ADD_ZP GLOW_MVE_AT_LEAST GLOW_MVE_AT_MOST GLOW_MVE_STORE_FOUR

/* out[i] = clamp(rne(((n * in[i] - centre) * r) * gain[i] + shift[i]) + zp) */
GLOW_INLINE void glow_mve_normalise(const int8_t *in, const float *gain, const float *shift, int8_t *out, int32_t n,
                                      int32_t centre, float r, int32_t zp) {
  __asm__ volatile("lsrs lr, %[n], #2\nbeq 2f\n" GLOW_MVE_NORMALISE("", "", "", "") "sub lr, lr, #1\nwls lr, lr, 3f\n1:"
                   GLOW_MVE_NORMALISE(GLOW_MVE_ADD_ZP, GLOW_MVE_AT_LEAST, GLOW_MVE_AT_MOST, GLOW_MVE_STORE_FOUR)
                   "le lr, 1b\n3: " GLOW_MVE_END_FOUR "2: and lr, %[n], #3\nwlstp.32 lr, lr, 5f\n4: "
                   GLOW_MVE_NORMALISE("", "", "", "") GLOW_MVE_END_FOUR "letp lr, 4b\n5:"
                   : [in] "+l"(in), [out] "+l"(out), [gain] "+r"(gain), [shift] "+r"(shift)
                   : [n] "r"(n), [count] "w"(vdupq_n_s32(n)), [minus] "r"(-centre),
                     [r] "r"(glow_mve_bits(r)), [zp] "r"(zp), [least] "w"(vdupq_n_s32(-128)),
                     [most] "w"(vdupq_n_s32(127))
                   : "lr", "q0", "q1", "q2", "q3", "cc", "memory");
}
#endif

#endif
