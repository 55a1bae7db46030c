/* SPDX-License-Identifier: MIT-0 */
/* What all headers with building blocks for CPUs with Helium (MVE, Cortex-M55 and M85) share.
 *
 * Requantisation: VCVT, VMUL, VCVTN (half to even), saturating narrowing and zero point, clamp: exact.
 */
#ifndef GLOW_MVE_H
#define GLOW_MVE_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include <arm_mve.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "glow_runtime.h"

#define GLOW_MVE_UNUSED __attribute__((unused))
#define GLOW_MVE_APART __attribute__((noinline)) /* so that what calls it has no room for its variables on the stack */
#ifdef __clang__ /* has no clones, nor a name for them */
#define GLOW_MVE_FUNCTION GLOW_HOT GLOW_MVE_UNUSED __attribute__((naked, noinline)) static
#else
#define GLOW_MVE_FUNCTION GLOW_HOT GLOW_MVE_UNUSED __attribute__((naked, noinline, noclone)) static
#endif

/* The output channels whose constants a data cache keeps while all pixels are computed; those of four have `group` bytes. */
GLOW_INLINE int32_t glow_mve_block(int32_t group) {
  const int32_t groups = 16384 / group;
  return groups > 1 ? 4 * groups : 4;
}

/* The numbers of lanes. Not by the intrinsic: VIDUP adds 4 to its register, and GCC 12 then reads the register for a
 * constant 4 elsewhere, but puts the 0 from before the addition there. */
#define GLOW_MVE_INDEX(bits, V)                                                    \
  GLOW_INLINE V glow_mve_index##bits(void) {                                       \
    uint32_t first = 0;                                                            \
    V lanes;                                                                       \
    __asm__("vidup.u" #bits " %q[lanes], %[first], #1" : [lanes] "=w"(lanes), [first] "+Te"(first)); \
    return lanes;                                                                  \
  }
GLOW_MVE_INDEX(16, uint16x8_t)
GLOW_MVE_INDEX(32, uint32x4_t)

/* Vectors that scalar code reads or writes element by element: GCC 12 takes an intrinsic's load or store for one of the
 * first element, and moves what belongs to the others past it. */
#define GLOW_MVE_SHARED(kind, T, V)                                                                  \
  GLOW_INLINE V glow_mve_get_##kind(const T *x) {                                                    \
    V v;                                                                                             \
    __asm__("vldrw.32 %q[v], [%[x]]" : [v] "=w"(v) : [x] "r"(x), "m"(*(const T(*)[4])x));            \
    return v;                                                                                        \
  }                                                                                                  \
  GLOW_INLINE void glow_mve_put_##kind(T *x, V v) {                                                  \
    __asm__("vstrw.32 %q[v], [%[x]]" : "=m"(*(T(*)[4])x) : [v] "w"(v), [x] "r"(x));                  \
  }
GLOW_MVE_SHARED(f32, float, float32x4_t)
GLOW_MVE_SHARED(s32, int32_t, int32x4_t)

/* to[0 .. n) = from[0 .. n), and = value. */
GLOW_INLINE void glow_mve_copy(int8_t *to, const int8_t *from, int32_t n) {
  __asm__ volatile("wlstp.8 lr, %2, 2f\n1: vldrb.8 q0, [%1], #16\nvstrb.8 q0, [%0], #16\nletp lr, 1b\n2:"
                   : "+l"(to), "+l"(from)
                   : "r"(n)
                   : "lr", "q0", "cc", "memory");
}

GLOW_INLINE void glow_mve_fill(int8_t *to, int32_t value, int32_t n) {
  __asm__ volatile("vdup.8 q0, %1\nwlstp.8 lr, %2, 2f\n1: vstrb.8 q0, [%0], #16\nletp lr, 1b\n2:"
                   : "+l"(to)
                   : "r"(value), "r"(n)
                   : "lr", "q0", "cc", "memory");
}

#endif

#endif
