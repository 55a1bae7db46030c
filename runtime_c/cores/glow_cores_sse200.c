/* SPDX-License-Identifier: MIT-0 */
/* glow_cores.h for two Cortex-M33 of Arm's SSE-200 subsystem (MPS2 AN521, Musca-B1): CPU 1 waits at reset until CPU 0 lets
 * it run from a vector table of its own (SSE-200 TRM, system control registers INITSVTOR1 and CPUWAIT), then for work in
 * memory. */
#include "glow_cores.h"

#ifndef GLOW_CORES_SERIAL
#ifndef GLOW_CORE1_STACK_BYTES
#define GLOW_CORE1_STACK_BYTES 4096
#endif

#define SYSTEM(offset) (*(volatile uint32_t *)(0x50021000u + (offset))) /* Secure alias */
#define VECTORS_OF_1 SYSTEM(0x114u)
#define WAIT SYSTEM(0x118u)
#define COPROCESSORS (*(volatile uint32_t *)0xe000ed88u)

static uint64_t stack[GLOW_CORE1_STACK_BYTES / 8];
static glow_work_t now;
static const void *given;
static volatile uint32_t begun, done; /* written by CPU 0, by CPU 1 */

static void barrier(void) { __asm__ volatile("dmb" ::: "memory"); }

static void wait_for(volatile uint32_t *counter, uint32_t value) {
  while (*counter != value) {
    __asm__ volatile("wfe");
  }
  barrier();
}

static void signal(volatile uint32_t *counter, uint32_t value) {
  barrier();
  *counter = value;
  __asm__ volatile("dsb\n\tsev" ::: "memory");
}

static void cpu1(void) {
#ifdef __ARM_FP
  COPROCESSORS |= 0xfu << 20; /* the FPU of this core */
  __asm__ volatile("dsb\n\tisb");
#endif
  for (uint32_t round = 1u;; round++) {
    wait_for(&begun, round);
    now(given, 1u);
    signal(&done, round);
  }
}

typedef struct {
  uint64_t *stack;
  void (*reset)(void);
} vectors_t;

static const _Alignas(128) vectors_t vectors = {stack + sizeof stack / sizeof *stack, cpu1};

uint32_t glow_cores_count(void) { return 2u; }

void glow_cores_start(glow_work_t work, const void *context) {
  if (begun == 0u) {
    VECTORS_OF_1 = (uint32_t)(uintptr_t)&vectors;
    WAIT &= ~2u;
  }
  now = work;
  given = context;
  signal(&begun, begun + 1u);
}

void glow_cores_wait(void) { wait_for(&done, begun); }
#endif
