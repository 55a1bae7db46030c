/* SPDX-License-Identifier: MIT-0 */
/* Each block ends where a page without access begins; pattern bytes before it show an under-write.
 * A block aligned to more than its size allows leaves a gap before that page, which is pattern too. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, sysconf */
#include "glow_guard.h"

#include <sys/mman.h>
#include <unistd.h>

typedef struct {
  uint8_t *base;  /* first mapped byte */
  size_t usable;  /* bytes before the page without access */
  uint8_t *block; /* the operand, and the bytes it was asked for */
  size_t bytes;
} glow_slot_t;

static glow_slot_t glow_slots[GLOW_GUARD_BLOCKS];

void glow_guard_reset(void) {}

static int grow(glow_slot_t *slot, size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t usable = (bytes + GLOW_GUARD_BAND_BYTES + page - 1u) / page * page;
  if (slot->base != NULL) {
    (void)munmap(slot->base, slot->usable + page);
  }
  void *base = mmap(NULL, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return 0;
  }
  slot->base = base;
  slot->usable = usable;
  return mprotect(slot->base + usable, page, PROT_NONE) == 0;
}

void *glow_guard_place(uint32_t index, uint32_t bytes, uint32_t align) {
  glow_slot_t *slot = &glow_slots[index];
  const size_t tail = (align - bytes % align) % align;
  if (bytes + tail + GLOW_GUARD_BAND_BYTES > slot->usable && !grow(slot, bytes + tail)) {
    return NULL;
  }
  slot->block = slot->base + slot->usable - tail - bytes;
  slot->bytes = bytes;
  memset(slot->block - GLOW_GUARD_BAND_BYTES, GLOW_GUARD_PATTERN, GLOW_GUARD_BAND_BYTES);
  memset(slot->block + bytes, GLOW_GUARD_PATTERN, tail);
  return slot->block;
}

void glow_guard_close(void) {}

int glow_guard_intact(uint32_t index) {
  const glow_slot_t *slot = &glow_slots[index];
  const uint8_t *end = slot->block + slot->bytes;
  return glow_guard_is_pattern(slot->block - GLOW_GUARD_BAND_BYTES, GLOW_GUARD_BAND_BYTES) &&
         glow_guard_is_pattern(end, (size_t)(slot->base + slot->usable - end));
}
