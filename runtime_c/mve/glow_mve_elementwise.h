/* SPDX-License-Identifier: MIT-0 */
/* Sums, pools, tables and conversions of codes (MVE).
 */
#ifndef GLOW_MVE_ELEMENTWISE_H
#define GLOW_MVE_ELEMENTWISE_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"
#include "glow_reach.h"

/* q3 = rne((a + half) * va + ((b + half) * vb + vc)) of the next four codes; in the places between, what was q3 becomes codes. */
#define GLOW_MVE_ADD_FOUR(moved, c, d, e, f) \
  "vldrb.s32 q0, [%[a]], #4\n" moved("q0") "vcvt.f32.s32 q0, q0\nvldrb.s32 q1, [%[b]], #4\n" moved("q1") \
  "vcvt.f32.s32 q1, q1\n" c "vfmas.f32 q1, %q[vb], %[vc]\n" d "vfma.f32 q1, q0, %[va]\n" e f "vcvtn.s32.f32 q3, q1\n"
#define GLOW_MVE_ADD_ENDS "vqadd.s32 q3, q3, %[zp]\n", "vmax.s32 q3, q3, %q[least]\n", "vmin.s32 q3, q3, %q[most]\n", \
  "vstrb.32 q3, [%[out]], #4\n"
#define GLOW_MVE_ADD_BETWEEN(moved, ...) GLOW_MVE_ADD_FOUR(moved, __VA_ARGS__)
#define GLOW_MVE_ADD_AFTER(c, d, e, f) c d e f
#define GLOW_MVE_ADD_END(...) GLOW_MVE_ADD_AFTER(__VA_ARGS__)

/* out = clamp(rne((a + half) * va + ((b + half) * vb + vc)) + zp) with fused multiply-adds; out may be a or b. */
#define GLOW_MVE_ADD(moved) \
  __asm__ volatile("lsrs lr, %[n], #2\nbeq 2f\n" GLOW_MVE_ADD_FOUR(moved, "", "", "", "") "sub lr, lr, #1\n" \
                   "wls lr, lr, 3f\n1:" GLOW_MVE_ADD_BETWEEN(moved, GLOW_MVE_ADD_ENDS) "le lr, 1b\n" \
                   "3: " GLOW_MVE_ADD_END(GLOW_MVE_ADD_ENDS) "2: and lr, %[n], #3\nwlstp.32 lr, lr, 5f\n4: " \
                   GLOW_MVE_ADD_FOUR(moved, "", "", "", "") GLOW_MVE_ADD_END(GLOW_MVE_ADD_ENDS) "letp lr, 4b\n5:" \
                   : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out) \
                   : [n] "r"(n), [va] "r"(factor_a), [vc] "r"(start), [zp] "r"(zp), \
                     [halves] "w"(halves), [vb] "w"(factor_b), [least] "w"(least), [most] "w"(most) \
                   : "lr", "q0", "q1", "q3", "cc", "memory")
#define GLOW_MVE_ADD_MOVED(codes) "vadd.i32 " codes ", " codes ", %q[halves]\n"
#define GLOW_MVE_ADD_PLAIN(codes) ""
GLOW_INLINE void glow_mve_add(const int8_t *a, const int8_t *b, int8_t *out, int32_t n, int32_t half, float va,
                                float vb, float vc, int32_t zp, int32_t low, int32_t high) {
  int32_t factor_a;
  int32_t start;
  memcpy(&factor_a, &va, sizeof factor_a);
  memcpy(&start, &vc, sizeof start);
  const float32x4_t factor_b = vdupq_n_f32(vb);
  const int32x4_t halves = vdupq_n_s32(half);
  const int32x4_t least = vdupq_n_s32(low);
  const int32x4_t most = vdupq_n_s32(high);
  if (half == 0) {
    GLOW_MVE_ADD(GLOW_MVE_ADD_PLAIN);
  } else {
    GLOW_MVE_ADD(GLOW_MVE_ADD_MOVED);
  }
}

typedef struct {
  int32_t n;
  int32_t a_zp; /* the assembly knows the offsets from here to `sy` */
  int32_t b_zp;
  float sa, sb;
  float r; /* 1 / sy, rounded */
  float minus_sy;
  int32_t zp, low, high;
} glow_mve_sum_t;
GLOW_AT(glow_mve_sum_t, n, 0); GLOW_AT(glow_mve_sum_t, a_zp, 4); GLOW_AT(glow_mve_sum_t, b_zp, 8);
GLOW_AT(glow_mve_sum_t, sa, 12); GLOW_AT(glow_mve_sum_t, sb, 16); GLOW_AT(glow_mve_sum_t, r, 20);
GLOW_AT(glow_mve_sum_t, minus_sy, 24); GLOW_AT(glow_mve_sum_t, zp, 28); GLOW_AT(glow_mve_sum_t, low, 32);
GLOW_AT(glow_mve_sum_t, high, 36);

/* out = clamp(rne(((a - a_zp) * sa + (b - b_zp) * sb) / sy) + zp). The quotient is rounded correctly: two Newton steps
 * with fused remainders bring x * (1 / sy) there. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_add_exact(const int8_t *a, const int8_t *b, int8_t *out,
                                                                        const glow_mve_sum_t *s) {
  __asm__ volatile(
      "ldr r4, [%[s], #28]\nldr r5, [%[s], #32]\nvdup.32 q4, r5\nldr r5, [%[s], #36]\nvdup.32 q5, r5\n"
      "ldrd r5, r6, [%[s], #20]\nldrd r8, r9, [%[s], #4]\nldrd r10, r12, [%[s], #12]\nldr lr, [%[s]]\n"
      "wlstp.32 lr, lr, 2f\n"
      "1: vldrb.s32 q0, [%[a]], #4\nvldrb.s32 q1, [%[b]], #4\nvsub.i32 q0, q0, r8\nvsub.i32 q1, q1, r9\n"
      "vcvt.f32.s32 q0, q0\nvcvt.f32.s32 q1, q1\nvmul.f32 q0, q0, r10\nvmul.f32 q1, q1, r12\nvadd.f32 q0, q0, q1\n"
      "vmul.f32 q1, q0, r5\nvmov q2, q0\nvfma.f32 q2, q1, r6\nvfma.f32 q1, q2, r5\nvfma.f32 q0, q1, r6\n"
      "vfma.f32 q1, q0, r5\nvcvtn.s32.f32 q1, q1\n"
      "vqadd.s32 q1, q1, r4\nvmax.s32 q1, q1, q4\nvmin.s32 q1, q1, q5\nvstrb.32 q1, [%[out]], #4\n"
      "letp lr, 1b\n2:"
      : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)
      : [s] "r"(s)
      : "r4", "r5", "r6", "r8", "r9", "r10", "r12", "lr", "q0", "q1", "q2", "q4", "q5", "cc", "memory");
}
/* `so_far` and `count` positions of the channels of a vector, `step` elements apart, of which `lanes` count, put
 * together; what is in the other lanes is of no use. */
#define GLOW_MVE_FOLD(name, element, vector, bits, load, op)                                                           \
  GLOW_INLINE vector name(vector so_far, const element *p, int32_t step, int32_t count, int32_t lanes) {             \
    __asm__ volatile("vctp." bits " %[lanes]\nwls lr, %[count], 2f\n1: vpst\n" load " q0, [%[p]]\n"                    \
                     "add %[p], %[p], %[step]\n" op " %q[so_far], %q[so_far], q0\nle lr, 1b\n2:"                       \
                     : [so_far] "+w"(so_far), [p] "+l"(p)                                                              \
                     : [lanes] "r"(lanes), [count] "r"(count), [step] "r"(step * (int32_t)sizeof(element))             \
                     : "lr", "q0", "cc", "memory");                                                                    \
    return so_far;                                                                                                     \
  }
GLOW_MVE_FOLD(glow_mve_sum, int8_t, int16x8_t, "16", "vldrbt.s16", "vadd.i16")
GLOW_MVE_FOLD(glow_mve_max, int8_t, int8x16_t, "8", "vldrbt.8", "vmax.s8")

/* to[i] = from[i * step] by gathering loads, whose `offsets` are those of a vector's elements */
#define GLOW_MVE_STRIDED(bits, load, store, per_vector)                                                                \
  __asm__ volatile("wlstp." bits " lr, %[n], 2f\n1: " load "\nadd %[from], %[from], %[step]\n" store "\nletp lr, 1b\n2:" \
                   : [to] "+l"(to), [from] "+r"(from)                                                                  \
                   : [n] "r"(n), [offsets] "w"(offsets), [step] "r"((per_vector) * step)                               \
                   : "lr", "q0", "cc", "memory")

/* Sum of n adjacent codes. */
#define GLOW_MVE_TOTAL(name, element, bits, load, add)                                                               \
  GLOW_INLINE int32_t name(const element *p, int32_t n) {                                                             \
    int32_t sum = 0;                                                                                                   \
    __asm__ volatile("wlstp." bits " lr, %[n], 2f\n1: " load " q0, [%[p]], #16\n" add " %[sum], q0\nletp lr, 1b\n2:"   \
                     : [sum] "+Te"(sum), [p] "+r"(p)                                                                   \
                     : [n] "r"(n)                                                                                      \
                     : "lr", "q0", "cc", "memory");                                                                    \
    return sum;                                                                                                        \
  }

/* Stores the first `lanes` of a vector of codes; `place`: the constraint of the address. */
#define GLOW_MVE_STORE(name, element, vector, bits, store, place)                                                     \
  GLOW_INLINE void name(element *out, vector codes, int32_t lanes) {                                                  \
    __asm__ volatile("vctp." bits " %[lanes]\nvpst\n" store "." bits " %q[codes], [%[out]]"                             \
                     :                                                                                                 \
                     : [lanes] "r"(lanes), [codes] "w"(codes), [out] place(out)                                        \
                     : "cc", "memory");                                                                                \
  }
GLOW_MVE_STORE(glow_mve_store, int8_t, int8x16_t, "8", "vstrbt", "r")
GLOW_MVE_STORE(glow_mve_store8x8, int8_t, int16x8_t, "16", "vstrbt", "l")

typedef struct {
  float scale;
  int32_t zp, low, high;
} glow_mve_codes_t;

GLOW_INLINE int32x4_t glow_mve_codes(int32x4_t acc, const glow_mve_codes_t *q) {
  const int32x4_t rounded = vcvtnq_s32_f32(vmulq_n_f32(vcvtq_f32_s32(acc), q->scale));
  const int32x4_t code = vqaddq_n_s32(rounded, q->zp);
  return vminq_s32(vmaxq_s32(code, vdupq_n_s32(q->low)), vdupq_n_s32(q->high));
}

/* Stores `lanes` codes of sums whose even channels are in `even`. */
GLOW_INLINE void glow_mve_store_codes(int8_t *out, int32x4_t even, int32x4_t odd, const glow_mve_codes_t *q,
                                        int32_t lanes) {
  const int16x8_t both = vreinterpretq_s16_s32(glow_mve_codes(even, q));
  glow_mve_store8x8(out, vmovntq_s32(both, glow_mve_codes(odd, q)), lanes);
}

/* out[i] = in[i] ^ 0x80 */
GLOW_INLINE void glow_mve_flip(const void *in, void *out, int32_t n) {
  const uint8x16_t sign = vdupq_n_u8(0x80u);
  __asm__ volatile("wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[in]], #16\nveor q0, q0, %q[sign]\n"
                   "vstrb.8 q0, [%[out]], #16\nletp lr, 1b\n2:"
                   : [in] "+l"(in), [out] "+l"(out)
                   : [n] "r"(n), [sign] "w"(sign)
                   : "lr", "q0", "cc", "memory");
}

/* out[i] = lut[in[i] + 128] */
GLOW_INLINE void glow_mve_lut(const int8_t *in, const int8_t *lut, int8_t *out, int32_t n) {
  const uint8x16_t sign = vdupq_n_u8(0x80u);
  __asm__ volatile("wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[in]], #16\nveor q0, q0, %q[sign]\n"
                   "vldrb.u8 q1, [%[lut], q0]\nvstrb.8 q1, [%[out]], #16\nletp lr, 1b\n2:"
                   : [in] "+l"(in), [out] "+l"(out)
                   : [n] "r"(n), [lut] "r"(lut), [sign] "w"(sign)
                   : "lr", "q0", "q1", "cc", "memory");
}

/* out[i] = (float)(in[i] - zp) * scale */
#define GLOW_MVE_DEQUANTIZE(load, bytes)                                                                         \
  __asm__ volatile("wlstp.32 lr, %[n], 2f\n1: " load " q0, [%[in]], #" bytes "\nvsub.i32 q0, q0, %[zp]\n"        \
                   "vcvt.f32.s32 q0, q0\nvmul.f32 q0, q0, %[scale]\nvstrw.32 q0, [%[out]], #16\nletp lr, 1b\n2:" \
                   : [in] "+l"(in), [out] "+r"(out)                                                              \
                   : [n] "r"(n), [zp] "r"(zp), [scale] "r"(factor)                                               \
                   : "lr", "q0", "cc", "memory")
GLOW_INLINE void glow_mve_dequantize(const void *in, int is_signed, float *out, int32_t n, int32_t zp, float scale) {
  int32_t factor;
  memcpy(&factor, &scale, sizeof factor);
  if (is_signed != 0) {
    GLOW_MVE_DEQUANTIZE("vldrb.s32", "4");
  } else {
    GLOW_MVE_DEQUANTIZE("vldrb.u32", "4");
  }
}
GLOW_INLINE void glow_mve_dequantize16(const void *in, int is_signed, float *out, int32_t n, int32_t zp, float scale) {
  int32_t factor;
  memcpy(&factor, &scale, sizeof factor);
  if (is_signed != 0) {
    GLOW_MVE_DEQUANTIZE("vldrh.s32", "8");
  } else {
    GLOW_MVE_DEQUANTIZE("vldrh.u32", "8");
  }
}

#endif

#endif
