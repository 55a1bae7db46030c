/* SPDX-License-Identifier: MIT-0 */
/* glow_wire.h by the UART of Arm's Cortex-M System Design Kit (Arm DDI 0479, section 4.3), as on the MPS2 and MPS3 boards.
 * GLOW_CMSDK_UART is its address, GLOW_CMSDK_DIVIDER the clock over the speed. */
#include "glow_wire.h"

#ifndef GLOW_CMSDK_DIVIDER
#define GLOW_CMSDK_DIVIDER 217u /* 25 MHz, 115200 baud */
#endif

typedef struct {
  uint32_t data, state, control, interrupts, divider;
} cmsdk_uart_t;

enum { TX_FULL = 1, RX_FULL = 2, TX_AND_RX_ON = 3 };

static volatile cmsdk_uart_t *uart(void) { return (volatile cmsdk_uart_t *)(uintptr_t)GLOW_CMSDK_UART; }

void glow_wire_open(void) {
  uart()->divider = GLOW_CMSDK_DIVIDER;
  uart()->control = TX_AND_RX_ON;
}

int glow_wire_getc(void) { return (uart()->state & RX_FULL) != 0u ? (int)(uart()->data & 0xFFu) : -1; }

void glow_wire_putc(uint8_t byte) {
  while ((uart()->state & TX_FULL) != 0u) {
  }
  uart()->data = byte;
}
