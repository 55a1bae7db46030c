/* SPDX-License-Identifier: MIT-0 */
/* What a bare-metal A64 board does on an exception: name it, print where, exit with status 3. */
#include "glow_io.h"

void glow_a64_fault(uint64_t pc, uint64_t esr);

/* ESR_EL1.EC (Arm ARM D17.2.37). */
static const char *exception_name(uint64_t esr) {
  switch (esr >> 26) {
    case 0x00: return "undefined instruction";
    case 0x07: return "trapped FP or SIMD instruction";
    case 0x20:
    case 0x21: return "instruction abort";
    case 0x22: return "misaligned pc";
    case 0x24:
    case 0x25: return "data abort";
    case 0x26: return "misaligned stack pointer";
    case 0x3C: return "breakpoint instruction";
    default: return "exception";
  }
}

static void put_hex(uint64_t v) {
  char text[19] = "0x0000000000000000";
  for (int i = 0; i < 16; i++) {
    text[17 - i] = "0123456789abcdef"[v & 15u];
    v >>= 4;
  }
  glow_io_puts(text);
}

__attribute__((used)) void glow_a64_fault(uint64_t pc, uint64_t esr) {
  glow_io_puts("\nfault: ");
  glow_io_puts(exception_name(esr));
  glow_io_puts(" at pc ");
  put_hex(pc);
  glow_io_puts(", ESR ");
  put_hex(esr);
  glow_io_puts("\n");
  glow_io_exit(3);
}
