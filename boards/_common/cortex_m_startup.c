/* SPDX-License-Identifier: MIT-0 */
/* Reset and fault handling for every Cortex-M (Armv6-M to Armv8.1-M). No interrupt is enabled, so
 * the 16 system vectors are the whole table. On QEMU boards (GLOW_SEMIHOSTING) a fault prints its
 * name and address and exits with status 3; on silicon it stops for the debugger. */
#include <stdint.h>
#ifdef GLOW_SEMIHOSTING
#include "glow_io.h"
#endif

typedef void (*glow_vector_t)(void);

extern uint32_t __stack_top[];
void glow_start(void);
void glow_reset(void);
void glow_fault_entry(void);
void glow_fault(uint32_t pc, uint32_t number);

__attribute__((section(".vectors"), used)) static const struct {
  uint32_t *initial_sp;
  glow_vector_t handlers[15];
} glow_vectors = {
    __stack_top,
    {glow_reset, glow_fault_entry, glow_fault_entry, glow_fault_entry, glow_fault_entry,
     glow_fault_entry, glow_fault_entry, glow_fault_entry, glow_fault_entry, glow_fault_entry,
     glow_fault_entry, glow_fault_entry, glow_fault_entry, glow_fault_entry, glow_fault_entry},
};

/* Assembly up to glow_start: the FPU (and MVE, same switch) must be on before any compiled code,
 * and on v8-M the stack limit turns a stack overflow into a UsageFault instead of silent damage. */
__attribute__((naked, used)) void glow_reset(void) {
  __asm__ volatile(
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
      "ldr r0, =__stack_limit\n"
      "msr msplim, r0\n"
#endif
#if (defined(__ARM_FP) && __ARM_FP != 0) || defined(__ARM_FEATURE_MVE)
      "ldr r0, =0xE000ED88\n" /* CPACR: full access to CP10 and CP11 */
      "ldr r1, [r0]\n"
      "ldr r2, =0x00F00000\n"
      "orrs r1, r2\n"
      "str r1, [r0]\n"
      "dsb\n"
      "isb\n"
#endif
#if !defined(__ARM_ARCH_6M__)
      "ldr r0, =0xE000ED24\n" /* SHCSR: MemManage, Bus, Usage and (v8-M) SecureFault get own vectors */
      "ldr r1, =0x000F0000\n"
      "ldr r2, [r0]\n"
      "orrs r2, r1\n"
      "str r2, [r0]\n"
#endif
      "ldr r0, =glow_start\n"
      "bx r0\n"
      ".ltorg\n");
}

/* The stacked PC is the seventh word of the frame. The stack starts afresh, as a fault by stack
 * overflow would leave no room to report it. */
__attribute__((naked, used)) void glow_fault_entry(void) {
  __asm__ volatile(
      "mrs r0, msp\n"
      "ldr r0, [r0, #24]\n"
      "mrs r1, ipsr\n"
      "ldr r2, =__stack_top\n"
      "mov sp, r2\n"
      "ldr r2, =glow_fault\n"
      "bx r2\n"
      ".ltorg\n");
}

#ifdef GLOW_SEMIHOSTING
static const char *fault_name(uint32_t number) {
  switch (number) {
    case 2: return "NMI";
    case 3: return "HardFault";
    case 4: return "MemManage fault";
    case 5: return "BusFault";
    case 6: return "UsageFault";
    case 7: return "SecureFault";
    default: return "unexpected exception";
  }
}

static void put_hex(uint32_t v) {
  char text[11] = "0x00000000";
  for (int i = 0; i < 8; i++) {
    text[9 - i] = "0123456789abcdef"[v & 15u];
    v >>= 4;
  }
  glow_io_puts(text);
}
#endif

__attribute__((used)) void glow_fault(uint32_t pc, uint32_t number) {
#ifdef GLOW_SEMIHOSTING
  glow_io_puts("\nfault: ");
  glow_io_puts(fault_name(number));
  glow_io_puts(" at pc ");
  put_hex(pc);
#if !defined(__ARM_ARCH_6M__)
  glow_io_puts(", CFSR ");
  put_hex(*(volatile uint32_t *)0xE000ED28u);
#endif
  glow_io_puts("\n");
  glow_io_exit(3);
#else
  (void)pc; /* visible to the debugger, with the exception number */
  (void)number;
  for (;;) {
  }
#endif
}
