/* SPDX-License-Identifier: MIT-0 */
/* Wide vectors: what the products of codes and of floats share. On x86-64 a function is compiled for several levels of the
 * instruction set, and the best that the CPU has runs. Code for a CPU with SVE2 takes vectors of any length. Elsewhere it
 * is portable C; all results are equal. GLOW_WIDE_MOST caps the level (0 to 3). Outputs come in blocks of sixteen. */
#ifndef GLOW_WIDE_H
#define GLOW_WIDE_H

#include "glow_runtime.h"

#define GLOW_WIDE_LANES 16
#define GLOW_WIDE_GROUP 64 /* pixels, at most, over which the weights of a block go */

#ifndef GLOW_WIDE_MOST
#define GLOW_WIDE_MOST 3
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(_WIN32) && GLOW_WIDE_MOST > 0
#define GLOW_WIDE_LEVELS 1
#include <immintrin.h>
#define GLOW_WIDE_AVX2 __attribute__((target("avx2")))
#define GLOW_WIDE_AVX_VNNI __attribute__((target("avx2,avxvnni")))
#define GLOW_WIDE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

GLOW_INLINE int32_t glow_wide_has_avx512(void) {
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

GLOW_INLINE int32_t glow_wide_has_avx_vnni(void) {
#if defined(__clang__)
  return 0; /* clang 14 does not know its name */
#else
  return __builtin_cpu_supports("avxvnni");
#endif
}

/* 3: AVX-512 with VNNI, 2: VNNI with vectors of 256 bits, 1: AVX2, 0: none of them */
GLOW_INLINE int32_t glow_wide_level(void) {
  if (GLOW_WIDE_MOST > 2 && glow_wide_has_avx512()) {
    return 3;
  }
  if (GLOW_WIDE_MOST > 1 && (glow_wide_has_avx_vnni() || glow_wide_has_avx512())) {
    return 2;
  }
  return __builtin_cpu_supports("avx2") ? 1 : 0;
}
#endif

#if defined(__ARM_FEATURE_SVE2) && defined(__ARM_FEATURE_SVE_MATMUL_INT8) && GLOW_WIDE_MOST > 0
#define GLOW_WIDE_SVE2 1
#include <arm_sve.h>
#endif

#define GLOW_WIDE_ALWAYS static inline __attribute__((always_inline, unused))
#define GLOW_WIDE_1(M) M(0)
#define GLOW_WIDE_2(M) GLOW_WIDE_1(M) M(1)
#define GLOW_WIDE_3(M) GLOW_WIDE_2(M) M(2)
#define GLOW_WIDE_4(M) GLOW_WIDE_3(M) M(3)
#define GLOW_WIDE_5(M) GLOW_WIDE_4(M) M(4)
#define GLOW_WIDE_6(M) GLOW_WIDE_5(M) M(5)
#define GLOW_WIDE_7(M) GLOW_WIDE_6(M) M(6)
#define GLOW_WIDE_8(M) GLOW_WIDE_7(M) M(7)

#endif
