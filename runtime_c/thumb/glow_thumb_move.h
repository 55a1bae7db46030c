/* SPDX-License-Identifier: MIT-0 */
/* Windows of time steps that move up in memory: blocks of eight words. */
#ifndef GLOW_THUMB_MOVE_H
#define GLOW_THUMB_MOVE_H

#include "glow_thumb_base.h"

#define GLOW_MOVE_BLOCK 32 /* bytes */

#if defined(__GNUC__) && defined(__thumb2__) && !defined(GLOW_NO_ASM)
GLOW_HOT __attribute__((naked, noinline, unused)) static void glow_thumb_blocks(
    __attribute__((unused)) void *to, __attribute__((unused)) const void *from, __attribute__((unused)) uint32_t blocks) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r10}\n"
      "1:\n"
      "ldmia.w r1!, {r3-r10}\n"
      "stmia.w r0!, {r3-r10}\n"
      "subs r2, r2, #1\n"
      "bne.n 1b\n"
      "pop {r4-r10}\n"
      "bx lr\n");
}
#else
GLOW_INLINE void glow_thumb_blocks(void *to, const void *from, uint32_t blocks) {
  memmove(to, from, (size_t)blocks * GLOW_MOVE_BLOCK);
}
#endif

/* Moves n bytes down to `to`, which lies before `from`; they may overlap. */
GLOW_INLINE void glow_thumb_move_down(void *to, const void *from, size_t n) {
  const size_t whole = (((uintptr_t)to | (uintptr_t)from) & 3u) != 0u ? 0u : n / GLOW_MOVE_BLOCK * GLOW_MOVE_BLOCK;
  if (whole != 0u) {
    glow_thumb_blocks(to, from, (uint32_t)(whole / GLOW_MOVE_BLOCK));
  }
  if (whole < n) {
    memmove((int8_t *)to + whole, (const int8_t *)from + whole, n - whole);
  }
}

#endif
