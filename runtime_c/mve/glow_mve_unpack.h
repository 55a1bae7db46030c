/* SPDX-License-Identifier: MIT-0 */
/* Codes of 4 and of 2 bits, stored plus half of the codes, to bytes (MVE). */
#ifndef GLOW_MVE_UNPACK_H
#define GLOW_MVE_UNPACK_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

/* `rounds` times 32 codes: those in the low halves of 16 bytes, then those in the high halves. */
GLOW_INLINE void glow_mve_unpack_s4(const uint32_t *from, uint32_t *to, int32_t rounds) {
  __asm__ volatile("vmov.i8 q2, #15\nvmov.i8 q3, #8\nwls lr, %[rounds], 2f\n"
                   "1: vldrw.u32 q0, [%[from]], #16\nvand q1, q0, q2\nvshr.u8 q0, q0, #4\nvsub.i8 q1, q1, q3\n"
                   "vstrw.32 q1, [%[to]], #16\nvsub.i8 q0, q0, q3\nvstrw.32 q0, [%[to]], #16\nle lr, 1b\n2:"
                   : [from] "+l"(from), [to] "+l"(to)
                   : [rounds] "r"(rounds)
                   : "lr", "q0", "q1", "q2", "q3", "cc", "memory");
}

/* `rounds` times 64 codes: the lowest of 16 bytes, then those above them. */
GLOW_INLINE void glow_mve_unpack_s2(const uint32_t *from, uint32_t *to, int32_t rounds) {
  __asm__ volatile("vmov.i8 q2, #3\nvmov.i8 q3, #2\nwls lr, %[rounds], 2f\n"
                   "1: vldrw.u32 q0, [%[from]], #16\nvand q1, q0, q2\nvshr.u8 q0, q0, #2\nvsub.i8 q1, q1, q3\n"
                   "vstrw.32 q1, [%[to]], #16\nvand q1, q0, q2\nvshr.u8 q0, q0, #2\nvsub.i8 q1, q1, q3\n"
                   "vstrw.32 q1, [%[to]], #16\nvand q1, q0, q2\nvshr.u8 q0, q0, #2\nvsub.i8 q1, q1, q3\n"
                   "vstrw.32 q1, [%[to]], #16\nvsub.i8 q0, q0, q3\nvstrw.32 q0, [%[to]], #16\nle lr, 1b\n2:"
                   : [from] "+l"(from), [to] "+l"(to)
                   : [rounds] "r"(rounds)
                   : "lr", "q0", "q1", "q2", "q3", "cc", "memory");
}

#endif
#endif
