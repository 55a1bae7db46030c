/* SPDX-License-Identifier: MIT-0 */
/* For the serial line alone: the first GB of addresses stays unmapped but for the 2 MB of the UART, as device memory. */
#include <stdint.h>

enum { UART = 0x09000000, BLOCK_BYTES = 0x200000 };

extern volatile uint64_t glow_a64_table[]; /* of a64_start.S: a GB an entry */
void glow_wire_map(void);

void glow_wire_map(void) {
  static volatile uint64_t blocks[512] __attribute__((aligned(4096)));
  blocks[UART / BLOCK_BYTES] = (uint64_t)UART | 1ull << 54 | 0x405u; /* never executed, AF, attribute 1, block */
  __asm__ volatile("dsb ish" ::: "memory");
  glow_a64_table[0] = (uint64_t)(uintptr_t)blocks | 3u; /* a table */
  __asm__ volatile("dsb ish\n\tisb" ::: "memory");
}
