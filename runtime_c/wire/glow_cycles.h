/* SPDX-License-Identifier: MIT-0 */
/* A counter of which only differences mean something; include it in one source of a program.
 *
 * Cortex-M: cycles of the core, by the DWT, or by SysTick (24 bits: an inference of up to 16.7 million cycles) where there is
 * no DWT or it stands still. AArch64: ticks of the generic timer. Elsewhere: nothing. */
#ifndef GLOW_CYCLES_H
#define GLOW_CYCLES_H

#include <stdint.h>

enum { GLOW_CYCLES_NONE = 0, GLOW_CYCLES_DWT = 1, GLOW_CYCLES_SYSTICK = 2, GLOW_CYCLES_TIMER = 3 };

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define GLOW_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
static uint32_t glow_cycles_unit = GLOW_CYCLES_SYSTICK;

/* Starts the counter; glow_cycles_unit tells which one it is. */
static inline void glow_cycles_start(void) {
  GLOW_REGISTER(0xE000E014u) = 0x00FFFFFFu; /* SYST_RVR */
  GLOW_REGISTER(0xE000E018u) = 0u;          /* SYST_CVR */
  GLOW_REGISTER(0xE000E010u) = 5u;          /* SYST_CSR: on, by the core's clock, no interrupt */
#if !defined(__ARM_ARCH_6M__) && !defined(__ARM_ARCH_8M_BASE__)
  GLOW_REGISTER(0xE000EDFCu) |= 1u << 24;   /* DEMCR.TRCENA */
  GLOW_REGISTER(0xE0001FB0u) = 0xC5ACCE55u; /* DWT_LAR: locked on Cortex-M7 */
  GLOW_REGISTER(0xE0001000u) |= 1u;         /* DWT_CTRL.CYCCNTENA */
  const uint32_t first = GLOW_REGISTER(0xE0001004u); /* DWT_CYCCNT */
  for (uint32_t i = 0u; i < 16u && glow_cycles_unit != GLOW_CYCLES_DWT; i++) {
    glow_cycles_unit = GLOW_REGISTER(0xE0001004u) != first ? GLOW_CYCLES_DWT : GLOW_CYCLES_SYSTICK;
  }
#endif
}

static inline uint32_t glow_cycles(void) {
  return glow_cycles_unit == GLOW_CYCLES_DWT ? GLOW_REGISTER(0xE0001004u) : 0x00FFFFFFu - GLOW_REGISTER(0xE000E018u);
}

#elif defined(__aarch64__)
static const uint32_t glow_cycles_unit = GLOW_CYCLES_TIMER;
static inline void glow_cycles_start(void) {}
static inline uint32_t glow_cycles(void) {
  uint64_t ticks;
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks));
  return (uint32_t)ticks;
}

#else
static const uint32_t glow_cycles_unit = GLOW_CYCLES_NONE;
static inline void glow_cycles_start(void) {}
static inline uint32_t glow_cycles(void) { return 0u; }
#endif

/* Returns the count from `begin` to now. */
static inline uint32_t glow_cycles_since(uint32_t begin) {
  const uint32_t count = glow_cycles() - begin;
  return glow_cycles_unit == GLOW_CYCLES_SYSTICK ? count & 0x00FFFFFFu : count;
}

#endif
