/* SPDX-License-Identifier: MIT-0 */
/* tanh between codes of 16 bits (MVE), eight at a time. */
#ifndef GLOW_MVE_TANH16_H
#define GLOW_MVE_TANH16_H

#if defined(__ARM_FEATURE_MVE)
#include "glow_mve.h"
#include "glow_tanh16.h"

typedef struct {
  const int32_t *row[4]; /* from the middle of the table, of each power; the assembly knows the offsets from here to `twice` */
  int32_t mul, shift, scale, start;
  int32_t twice; /* near */
  int32_t near, count;
  const int16_t *fixes;
  int32_t sums[8]; /* of the last block, the even ones first */
  int16_t codes[8];
  uint32_t mask; /* two bits of each sum that is near the next code */
} glow_mve_tanh16_t;
GLOW_AT(glow_mve_tanh16_t, row, 0); GLOW_AT(glow_mve_tanh16_t, mul, 16); GLOW_AT(glow_mve_tanh16_t, shift, 20);
GLOW_AT(glow_mve_tanh16_t, scale, 24); GLOW_AT(glow_mve_tanh16_t, start, 28); GLOW_AT(glow_mve_tanh16_t, twice, 32);
GLOW_AT(glow_mve_tanh16_t, sums, 48); GLOW_AT(glow_mve_tanh16_t, codes, 80); GLOW_AT(glow_mve_tanh16_t, mask, 96);

/* Writes the codes of blocks of eight up to one with a sum that is near the next code, the last of the struct; returns the blocks
 * that are left. q0, q3: what the polynomials are of; q1, q4: distances of rows, then codes; q2, q5: sums. */
GLOW_MVE_FUNCTION int32_t glow_mve_tanh16_blocks(GLOW_MVE_UNUSED const int16_t *in, GLOW_MVE_UNUSED int16_t *out,
                                                 GLOW_MVE_UNUSED int32_t blocks, GLOW_MVE_UNUSED glow_mve_tanh16_t *t) {
  __asm__("push {r3-r11, lr}\nvpush {d8-d15}\nmov lr, r2\nldrd r4, r5, [r3]\nldrd r6, r7, [r3, #8]\nldrd r8, r9, [r3, #16]\n"
          "ldrd r10, r11, [r3, #24]\nldr r12, [r3, #32]\nmovs r2, #0\nmvns r3, r2\nlsls r3, r3, #16\nvdup.32 q7, r3\n"
          "wls lr, lr, 2f\n"
          "1: vldrh.u16 q0, [r0], #16\nvand q3, q0, q7\nvqdmulh.s32 q3, q3, r8\nvshl.i32 q0, q0, #16\n"
          "vqdmulh.s32 q0, q0, r8\nvqshl.s32 q3, r9\nvqshl.s32 q0, r9\nvrshr.s32 q1, q0, #25\n"
          "vshl.i32 q1, q1, #4\nvrshr.s32 q4, q3, #25\nvshl.i32 q4, q4, #4\nvldrw.u32 q6, [r6, q1]\n"
          "vshl.i32 q3, q3, #7\nvldrw.u32 q2, [r7, q1]\nvshl.i32 q0, q0, #7\nvrmulh.s32 q2, q0, q2\n"
          "vldrw.u32 q5, [r7, q4]\nvadd.i32 q2, q2, q6\nvrmulh.s32 q5, q3, q5\nvldrw.u32 q6, [r6, q4]\n"
          "vrmulh.s32 q2, q0, q2\nvadd.i32 q5, q5, q6\nvldrw.u32 q6, [r5, q1]\nvrmulh.s32 q5, q3, q5\n"
          "vadd.i32 q2, q2, q6\nvldrw.u32 q6, [r5, q4]\nvrmulh.s32 q2, q0, q2\nvldrw.u32 q0, [r4, q1]\n"
          "vadd.i32 q5, q5, q6\nvrmulh.s32 q5, q3, q5\nvldrw.u32 q3, [r4, q4]\nvadd.i32 q2, q2, q0\n"
          "vqdmulh.s32 q2, q2, r10\nvadd.i32 q5, q5, q3\nvqdmulh.s32 q5, q5, r10\nvqadd.s32 q2, q2, r11\n"
          "vqadd.s32 q5, q5, r11\nvmov q0, q2\nvsli.32 q0, q5, #16\nvcmp.u16 cs, q0, r12\nvmov q1, q5\n"
          "vsri.32 q1, q2, #16\nvpnot\nvmrs r2, p0\ncbnz r2, 3f\nvstrh.16 q1, [r1], #16\nle lr, 1b\nb 2f\n"
          "3: ldr r3, [sp, #64]\nvldrh.u16 q0, [r0, #-16]\nvstrw.32 q2, [r3, #48]\nvstrw.32 q5, [r3, #64]\n"
          "vstrh.16 q0, [r3, #80]\nvstrh.16 q1, [r1]\nstr r2, [r3, #96]\nsub r2, lr, #1\n"
          "2: mov r0, r2\nvpop {d8-d15}\npop {r3-r11, pc}\n");
}

GLOW_INLINE void glow_mve_tanh16_whole(const int16_t *in, int16_t *out, int32_t blocks, glow_mve_tanh16_t *t) {
  while (blocks > 0) {
    const int32_t left = glow_mve_tanh16_blocks(in, out, blocks, t);
    in += 8 * (blocks - left);
    out += 8 * (blocks - left);
    while (t->mask != 0u) {
      const int32_t k = __builtin_ctz(t->mask) / 2;
      t->mask &= ~(3u << (2 * k));
      const int32_t sum = t->sums[k % 2 * 4 + k / 2];
      out[k - 8] = (int16_t)glow_tanh16_fixed(sum, t->codes[k], t->near, t->fixes, t->count);
    }
    blocks = left;
  }
}

GLOW_INLINE void glow_mve_tanh16(const int16_t *in, int16_t *out, int32_t n, glow_mve_tanh16_t *t) {
  int16_t rest[8] = {0};
  const int32_t whole = n & ~7;
  glow_mve_tanh16_whole(in, out, n / 8, t);
  memcpy(rest, in + whole, (size_t)(n - whole) * sizeof *rest);
  glow_mve_tanh16_whole(rest, rest, n % 8 > 0, t);
  memcpy(out + whole, rest, (size_t)(n - whole) * sizeof *rest);
}

#endif
#endif
