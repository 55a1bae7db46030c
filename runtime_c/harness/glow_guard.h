/* SPDX-License-Identifier: MIT-0 */
/* Memory for the operands of one kernel call, fenced on both sides. Four implementations, one is linked:
 *   glow_guard_page.c    ends at a page without access: one byte of over-read stops the program (Linux)
 *   glow_guard_malloc.c  a block of the exact size: AddressSanitizer reports what strays (host)
 *   glow_guard_mpu.c     ends where the memory protection unit forbids access: one byte of over-read is a fault (bare
 *                        metal with such a unit)
 *   glow_guard_pool.c    a static pool with pattern bands, checked after the call (bare metal) */
#ifndef GLOW_GUARD_H
#define GLOW_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GLOW_GUARD_BLOCKS = 16, GLOW_GUARD_BAND_BYTES = 64, GLOW_GUARD_PATTERN = 0x5A };

/* Give back all blocks. */
void glow_guard_reset(void);

/* Return block number `index` of `bytes` bytes, with just that alignment where the fence allows it; NULL
 * when memory does not suffice. Blocks are asked for in the order 0, 1, 2, ... */
void *glow_guard_place(uint32_t index, uint32_t bytes, uint32_t align);

/* The blocks are filled: fences that get in the way of that stand from here to the first glow_guard_intact. */
void glow_guard_close(void);

/* 1 when the bytes around block `index` are as they were. */
int glow_guard_intact(uint32_t index);

static inline int glow_guard_is_pattern(const uint8_t *from, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    if (from[i] != GLOW_GUARD_PATTERN) {
      return 0;
    }
  }
  return 1;
}

#endif
