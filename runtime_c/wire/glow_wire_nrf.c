/* SPDX-License-Identifier: MIT-0 */
/* glow_wire.h by the UART of nRF51 and nRF52 (nRF51 reference manual, section 29; nRF52840 product specification, section 6.33)
 * at 115200 baud. GLOW_NRF_TX and GLOW_NRF_RX are pins: number, plus 32 for port 1. */
#include "glow_wire.h"

#define REGISTER(offset) (*(volatile uint32_t *)(uintptr_t)(0x40002000u + (offset)))
#define PORT(pin) ((pin) < 32u ? 0x50000500u : 0x50000800u) /* GPIO: OUTSET 8, DIRSET 0x18 from here */
#define GPIO(pin, offset) (*(volatile uint32_t *)(uintptr_t)(PORT(pin) + (offset)))

enum { START_RX = 0x000, START_TX = 0x008, RX_READY = 0x108, TX_READY = 0x11C, ENABLE = 0x500 };
enum { TX_PIN = 0x50C, RX_PIN = 0x514, RX_DATA = 0x518, TX_DATA = 0x51C, SPEED = 0x524 };

static int sending; /* a byte is on its way */

void glow_wire_open(void) {
  GPIO(GLOW_NRF_TX, 0x08u) = 1u << (GLOW_NRF_TX % 32u);
  GPIO(GLOW_NRF_TX, 0x18u) = 1u << (GLOW_NRF_TX % 32u);
  REGISTER(TX_PIN) = GLOW_NRF_TX;
  REGISTER(RX_PIN) = GLOW_NRF_RX;
  REGISTER(SPEED) = 0x01D7E000u;
  REGISTER(ENABLE) = 4u;
  REGISTER(RX_READY) = 0u;
  REGISTER(START_TX) = 1u;
  REGISTER(START_RX) = 1u;
}

int glow_wire_getc(void) {
  if (REGISTER(RX_READY) == 0u) {
    return -1;
  }
  REGISTER(RX_READY) = 0u;
  return (int)(REGISTER(RX_DATA) & 0xFFu);
}

void glow_wire_putc(uint8_t byte) {
  while (sending && REGISTER(TX_READY) == 0u) {
  }
  REGISTER(TX_READY) = 0u;
  REGISTER(TX_DATA) = byte;
  sending = 1;
}
