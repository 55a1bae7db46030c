/* SPDX-License-Identifier: MIT-0 */
/* Codes of 4 and of 2 bits, stored plus half of the codes or as places in a palette, to bytes (MVE). */
#ifndef GLOW_MVE_UNPACK_H
#define GLOW_MVE_UNPACK_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"
#include "glow_palette.h"

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

/* The same of places in a palette of 16, which are gathered from it. */
GLOW_INLINE void glow_mve_unpack_p4(const uint32_t *from, const int8_t *palette, uint32_t *to, int32_t rounds) {
  __asm__ volatile("vmov.i8 q2, #15\nwls lr, %[rounds], 2f\n"
                   "1: vldrw.u32 q0, [%[from]], #16\nvand q1, q0, q2\nvshr.u8 q0, q0, #4\n"
                   "vldrb.u8 q3, [%[palette], q1]\nvldrb.u8 q1, [%[palette], q0]\n"
                   "vstrw.32 q3, [%[to]], #16\nvstrw.32 q1, [%[to]], #16\nle lr, 1b\n2:"
                   : [from] "+l"(from), [to] "+l"(to)
                   : [rounds] "r"(rounds), [palette] "r"(palette)
                   : "lr", "q0", "q1", "q2", "q3", "cc", "memory");
}

#define GLOW_MVE_UNPACK_NEXT "vshr.u8 q0, q0, #2\nvldrb.u8 q3, [%[palette], q1]\nvand q1, q0, q2\nvstrw.32 q3, [%[to]], #16\n"

/* And of 4. */
GLOW_INLINE void glow_mve_unpack_p2(const uint32_t *from, const int8_t *palette, uint32_t *to, int32_t rounds) {
  __asm__ volatile("vmov.i8 q2, #3\nwls lr, %[rounds], 2f\n"
                   "1: vldrw.u32 q0, [%[from]], #16\nvand q1, q0, q2\n" GLOW_MVE_UNPACK_NEXT GLOW_MVE_UNPACK_NEXT
                   GLOW_MVE_UNPACK_NEXT "vldrb.u8 q3, [%[palette], q1]\nvstrw.32 q3, [%[to]], #16\nle lr, 1b\n2:"
                   : [from] "+l"(from), [to] "+l"(to)
                   : [rounds] "r"(rounds), [palette] "r"(palette)
                   : "lr", "q0", "q1", "q2", "q3", "cc", "memory");
}

#undef GLOW_MVE_UNPACK_NEXT

#endif
#endif
