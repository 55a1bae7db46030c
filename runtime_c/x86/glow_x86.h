/* SPDX-License-Identifier: MIT-0 */
/* x86-64: what the products of codes and of floats share. A function is compiled for several levels of the instruction
 * set, and the best that the CPU has runs; without any of them, and on other CPUs, it is portable C with equal results.
 * GLOW_X86_MOST caps the level (0 to 2). Outputs come in blocks of sixteen. */
#ifndef GLOW_X86_H
#define GLOW_X86_H

#include "glow_runtime.h"

#define GLOW_X86_LANES 16
#define GLOW_X86_GROUP 64 /* pixels, at most, over which the weights of a block go */

#ifndef GLOW_X86_MOST
#define GLOW_X86_MOST 2
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(_WIN32) && GLOW_X86_MOST > 0
#define GLOW_X86_LEVELS 1
#include <immintrin.h>
#define GLOW_X86_AVX2 __attribute__((target("avx2")))
#define GLOW_X86_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define GLOW_X86_ALWAYS static inline __attribute__((always_inline, unused))

/* 2: AVX-512 with VNNI, 1: AVX2, 0: neither */
GLOW_INLINE int32_t glow_x86_level(void) {
  if (GLOW_X86_MOST > 1 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw")) {
    return 2;
  }
  return __builtin_cpu_supports("avx2") ? 1 : 0;
}
#endif

#define GLOW_X86_4(M) M(0) M(1) M(2) M(3)
#define GLOW_X86_8(M) GLOW_X86_4(M) M(4) M(5) M(6) M(7)

#endif
