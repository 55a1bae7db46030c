/* SPDX-License-Identifier: MIT-0 */
/* glow_cores.h for RP2040 and RP2350 without an SDK: core 1 is started at the first layer that is shared, and waits for
 * words in the FIFO between the cores (RP2040 datasheet, sections 2.3.1.4 and 2.8.2; RP2350 datasheet, sections 3.1.5 and
 * 5.3). Firmware that uses this FIFO or core 1 for something else has its own three functions. */
#include "glow_cores.h"

#ifndef GLOW_CORES_SERIAL
#ifndef GLOW_CORE1_STACK_BYTES
#define GLOW_CORE1_STACK_BYTES 4096
#endif

#define SIO(offset) (*(volatile uint32_t *)(0xd0000000u + (offset)))
#define FIFO_STATUS SIO(0x50u)
#define FIFO_WRITE SIO(0x54u)
#define FIFO_READ SIO(0x58u)
#define IS_THERE 1u /* a word to read */
#define HAS_ROOM 2u /* for a word */
#define VECTORS (*(volatile uint32_t *)0xe000ed08u)
#define COPROCESSORS (*(volatile uint32_t *)0xe000ed88u)

static uint64_t stack[GLOW_CORE1_STACK_BYTES / 8];
static glow_work_t now;
static const void *given;
static int is_started;

static void send(uint32_t word) {
  while ((FIFO_STATUS & HAS_ROOM) == 0u) {
  }
  __asm__ volatile("dsb" ::: "memory");
  FIFO_WRITE = word;
  __asm__ volatile("sev");
}

static uint32_t receive(void) {
  while ((FIFO_STATUS & IS_THERE) == 0u) {
    __asm__ volatile("wfe");
  }
  const uint32_t word = FIFO_READ;
  __asm__ volatile("dmb" ::: "memory");
  return word;
}

static void core1(void) {
#ifdef __ARM_FP
  COPROCESSORS |= 0xfu << 20; /* the FPU of this core */
  __asm__ volatile("dsb\n\tisb");
#endif
  for (;;) {
    (void)receive();
    now(given, 1u);
    send(1u);
  }
}

/* The ROM on core 1 answers each word with the same one, else the sequence begins again. */
static void start_core1(void) {
  const uint32_t words[] = {0u, 0u, 1u, VECTORS, (uint32_t)(uintptr_t)(stack + sizeof stack / sizeof *stack),
                            (uint32_t)(uintptr_t)core1};
  for (uint32_t i = 0u; i < sizeof words / sizeof *words;) {
    if (words[i] == 0u) {
      while ((FIFO_STATUS & IS_THERE) != 0u) {
        (void)FIFO_READ;
      }
      __asm__ volatile("sev");
    }
    send(words[i]);
    i = receive() == words[i] ? i + 1u : 0u;
  }
  is_started = 1;
}

uint32_t glow_cores_count(void) { return 2u; }

void glow_cores_start(glow_work_t work, const void *context) {
  if (!is_started) {
    start_core1();
  }
  now = work;
  given = context;
  send(1u);
}

void glow_cores_wait(void) { (void)receive(); }
#endif
