/* SPDX-License-Identifier: MIT-0 */
/* Blocks from a static pool, between bands of a pattern. A block without alignment lies at an odd address. */
#include "glow_guard.h"

#ifndef GLOW_POOL_BYTES
#define GLOW_POOL_BYTES (256 * 1024)
#endif

typedef struct {
  uint8_t *block;
  size_t bytes;
} glow_slot_t;

__attribute__((section(".bss.glow_arena"), aligned(16))) static uint8_t glow_pool[GLOW_POOL_BYTES];
static size_t glow_pool_used;
static glow_slot_t glow_slots[GLOW_GUARD_BLOCKS];

void glow_guard_reset(void) { glow_pool_used = 0u; }

void *glow_guard_place(uint32_t index, uint32_t bytes, uint32_t align) {
  size_t at = glow_pool_used + GLOW_GUARD_BAND_BYTES;
  at = align > 1u ? (at + align - 1u) / align * align : at | 1u;
  const size_t end = at + bytes + GLOW_GUARD_BAND_BYTES;
  if (end > GLOW_POOL_BYTES) {
    return NULL;
  }
  memset(glow_pool + at - GLOW_GUARD_BAND_BYTES, GLOW_GUARD_PATTERN, end - at + GLOW_GUARD_BAND_BYTES);
  glow_slots[index].block = glow_pool + at;
  glow_slots[index].bytes = bytes;
  glow_pool_used = end;
  return glow_pool + at;
}

void glow_guard_close(void) {}

int glow_guard_intact(uint32_t index) {
  const glow_slot_t *slot = &glow_slots[index];
  return glow_guard_is_pattern(slot->block - GLOW_GUARD_BAND_BYTES, GLOW_GUARD_BAND_BYTES) &&
         glow_guard_is_pattern(slot->block + slot->bytes, GLOW_GUARD_BAND_BYTES);
}
