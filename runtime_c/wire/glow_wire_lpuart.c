/* SPDX-License-Identifier: MIT-0 */
/* glow_wire.h by LPUART 6 of the i.MX RT1060 at 115200 baud, from the crystal of 24 MHz: pins 1 (TX) and 0 (RX) of a
 * Teensy 4 (reference manual IMXRT1060RM: CCM, IOMUXC, LPUART). */
#include "glow_wire.h"
#include "glow_wire_reg.h"

#define CCM_CSCDR1 0x400FC024u
#define CCM_CCGR3 0x400FC074u
#define MUX_TX 0x401F80C4u /* GPIO_AD_B0_02 */
#define MUX_RX 0x401F80C8u /* GPIO_AD_B0_03 */
#define PAD_TX 0x401F82B4u
#define PAD_RX 0x401F82B8u
#define SELECT_RX 0x401F8550u
#define UART 0x40198000u

enum { BAUD = 0x10, STATE = 0x14, CONTROL = 0x18, DATA = 0x1C };
enum { TX_AND_RX_ON = 3 << 18, OVERRUN = 1 << 19, RX_FULL = 1 << 21, TX_EMPTY = 1 << 23 };

void glow_wire_open(void) {
  reg_set(CCM_CSCDR1, 0x7Fu, 0x40u); /* UART_CLK_SEL: the crystal; UART_CLK_PODF: by 1 */
  reg_set(CCM_CCGR3, 0xC0u, 0xC0u);
  reg_write(MUX_TX, 2u); /* ALT2 */
  reg_write(MUX_RX, 2u);
  reg_write(PAD_TX, 0x10B0u); /* keeper, 100 MHz, R0/6 */
  reg_write(PAD_RX, 0x10B0u);
  reg_write(SELECT_RX, 1u);
  reg_write(UART + CONTROL, 0u);
  reg_write(UART + BAUD, 15u << 24 | 13u); /* 24 MHz / (16 * 13) */
  reg_write(UART + CONTROL, TX_AND_RX_ON);
}

int glow_wire_getc(void) {
  const uint32_t state = reg_read(UART + STATE);
  if ((state & OVERRUN) != 0u) {
    reg_write(UART + STATE, OVERRUN); /* it stops the receiver */
  }
  return (state & RX_FULL) != 0u ? (int)(reg_read(UART + DATA) & 0xFFu) : -1;
}

void glow_wire_putc(uint8_t byte) {
  reg_wait(UART + STATE, TX_EMPTY);
  reg_write(UART + DATA, byte);
}
