/* SPDX-License-Identifier: MIT-0 */
/* Blocks from a static pool; where one ends, the memory protection unit of Armv7-M or Armv8-M forbids access, so that
 * one byte of over-read is a fault. A block aligned to more than its size allows leaves a gap before that place, which
 * is pattern, like the band before the block. With more blocks than regions, the call runs with the patterns only. */
#include "glow_guard.h"

#ifndef GLOW_POOL_BYTES
#define GLOW_POOL_BYTES (256 * 1024)
#endif

enum { GRAIN = 1024 }; /* a page of QEMU's: with a border within it, it looks up every access in it */

typedef struct {
  uint8_t *block;
  size_t bytes;
  size_t tail; /* pattern after it */
} glow_slot_t;

typedef struct {
  uint32_t type;
  uint32_t control;
  uint32_t number;
  uint32_t base;
  uint32_t limit; /* Armv7-M: size and attributes */
} glow_mpu_t;

__attribute__((section(".bss.glow_arena"), aligned(64))) static uint8_t glow_pool[GLOW_POOL_BYTES];
static size_t glow_pool_used;
static uint32_t glow_regions;
static int glow_complete; /* every block has its region */
static glow_slot_t glow_slots[GLOW_GUARD_BLOCKS];

static volatile glow_mpu_t *const glow_mpu = (volatile glow_mpu_t *)0xE000ED90u;

static void set_region(uint32_t base, uint32_t limit) {
  glow_mpu->number = glow_regions++;
  glow_mpu->base = base;
  glow_mpu->limit = limit;
}

static void control(uint32_t bits) {
  glow_mpu->control = bits;
  __asm__ volatile("dsb\nisb\n" ::: "memory");
}

#if __ARM_ARCH >= 8

/* Without a background map, everything outside of the regions is forbidden. */
enum { ON = 1, WRITE_EXECUTE_NEVER = 1, READ_ONLY = 4 };

static void allow(uint32_t begin, uint32_t end, uint32_t access) { set_region(begin | access, ((end - 1u) & ~31u) | 1u); }

static void start(void) {
  const uint32_t pool = (uint32_t)(uintptr_t)glow_pool;
  *(volatile uint32_t *)0xE000EDC0u = 0x44u; /* MAIR0: normal memory */
  allow(0u, 0x20000000u, READ_ONLY);
  allow(0x20000000u, pool, WRITE_EXECUTE_NEVER);
  allow(pool + GLOW_POOL_BYTES, 0x60000000u, WRITE_EXECUTE_NEVER);
  allow(0x60000000u, 0xA0000000u, READ_ONLY);
}

static void fence(const glow_slot_t *slot) {
  const uint32_t begin = (uint32_t)(uintptr_t)slot->block;
  allow(begin & ~(GRAIN - 1u), (uint32_t)(begin + slot->bytes + slot->tail), WRITE_EXECUTE_NEVER);
}

#else

enum { ON = 5, NO_ACCESS = 1 << 28 }; /* with the background map */

static void start(void) {}

static void fence(const glow_slot_t *slot) {
  uint32_t size = 1; /* region of 2^(size + 1) bytes */
  while ((2u << size) < GRAIN) {
    size++;
  }
  set_region((uint32_t)(uintptr_t)(slot->block + slot->bytes + slot->tail), NO_ACCESS | (size << 1) | 1u);
}

#endif

void glow_guard_reset(void) {
  const uint32_t regions = (glow_mpu->type >> 8) & 255u;
  control(0u);
  for (glow_regions = 0u; glow_regions < regions;) {
    set_region(0u, 0u);
  }
  glow_regions = 0u;
  glow_complete = 1;
  glow_pool_used = 0u;
  start();
}

void *glow_guard_place(uint32_t index, uint32_t bytes, uint32_t align) {
  const size_t tail = (align - bytes % align) % align;
  const size_t end = (glow_pool_used + GLOW_GUARD_BAND_BYTES + bytes + tail + GRAIN - 1u) / GRAIN * GRAIN;
  if (end + GRAIN > GLOW_POOL_BYTES) {
    return NULL;
  }
  glow_slot_t *slot = &glow_slots[index];
  slot->bytes = bytes;
  slot->tail = tail;
  slot->block = glow_pool + end - tail - bytes;
  memset(slot->block - GLOW_GUARD_BAND_BYTES, GLOW_GUARD_PATTERN, GLOW_GUARD_BAND_BYTES);
  memset(slot->block + bytes, GLOW_GUARD_PATTERN, tail);
  glow_pool_used = end + GRAIN;
  if (bytes + tail != 0u) {
    if (glow_regions < ((glow_mpu->type >> 8) & 255u)) {
      fence(slot);
    } else {
      glow_complete = 0;
    }
  }
  return slot->block;
}

void glow_guard_close(void) {
  if (glow_complete) {
    control(ON);
  }
}

int glow_guard_intact(uint32_t index) {
  const glow_slot_t *slot = &glow_slots[index];
  control(0u);
  return glow_guard_is_pattern(slot->block - GLOW_GUARD_BAND_BYTES, GLOW_GUARD_BAND_BYTES) &&
         glow_guard_is_pattern(slot->block + slot->bytes, slot->tail);
}
