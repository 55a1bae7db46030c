/* SPDX-License-Identifier: MIT-0 */
/* glow_wire.h by UART 2 of the Alif Ensemble at 115200 baud, from the oscillator of 38.4 MHz, on P1_0 (RX) and P1_1 (TX):
 * what the DevKit's USB port has for the high-performance core (hardware reference manual: CLKCTL_PER_SLV, PINMUX, UART;
 * the UART is a 16550). */
#include "glow_wire.h"
#include "glow_wire_reg.h"

#define CLOCK_CONTROL 0x4902F000u /* EXPMST0_CTRL; UART_CTRL lies behind it */
#define PINMUX 0x1A603000u        /* 32 bytes a port, 4 a pin */
#define UART 0x4901A000u

enum { DATA = 0x00, DIVIDER_LOW = 0x00, DIVIDER_HIGH = 0x04, FIFO = 0x08, LINE = 0x0C, STATE = 0x14 };
enum { RX_FULL = 1 << 0, TX_EMPTY = 1 << 5, EIGHT_BITS = 0x03, DIVIDER_SHOWN = 0x80, FIFO_ON_AND_EMPTY = 0x07, DIVIDER = 21 };

void glow_wire_open(void) {
  reg_set(CLOCK_CONTROL, 0u, 3u << 30); /* clocks of the peripherals and of their bus */
  reg_set(CLOCK_CONTROL + 0x08u, 1u << 10, 1u << 2); /* UART_CTRL: UART 2 on, from HFOSC */
  reg_write(PINMUX + 32u, 1u << 16 | 1u); /* P1_0: UART2_RX_A, read enable */
  reg_write(PINMUX + 36u, 1u);            /* P1_1: UART2_TX_A */
  reg_write(UART + LINE, EIGHT_BITS | DIVIDER_SHOWN);
  reg_write(UART + DIVIDER_LOW, DIVIDER);
  reg_write(UART + DIVIDER_HIGH, 0u);
  reg_write(UART + LINE, EIGHT_BITS);
  reg_write(UART + FIFO, FIFO_ON_AND_EMPTY);
}

int glow_wire_getc(void) {
  return (reg_read(UART + STATE) & RX_FULL) != 0u ? (int)(reg_read(UART + DATA) & 0xFFu) : -1;
}

void glow_wire_putc(uint8_t byte) {
  reg_wait(UART + STATE, TX_EMPTY);
  reg_write(UART + DATA, byte);
}
