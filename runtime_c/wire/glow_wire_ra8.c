/* SPDX-License-Identifier: MIT-0 */
/* glow_wire.h by SCI 9 of the Renesas RA8 at 115200 baud, from the crystal of 20 MHz of an EK-RA8D1, on P1014 (TX) and
 * P1015 (RX): the USB port of its debugger (RA8D1 hardware manual: clocks, module stop, I/O ports, SCI). */
#include "glow_wire.h"
#include "glow_wire_reg.h"

#define SYSTEM 0x4001E000u
#define PROTECTION (SYSTEM + 0x3FEu)
#define MODULE_STOP_B 0x40203004u
#define PIN(number) (0x40400800u + 0x40u * 10u + 4u * (number)) /* of port 10: PFS */
#define PIN_PROTECTION 0x40400D03u                              /* PWPR; that of secure code two bytes behind it */
#define SCI 0x40358900u

enum { CRYSTAL_STOP = 0x32, RUNNING = 0x3C, SCI_DIVIDER = 0x54, SCI_CLOCK = 0x55, FROM_CRYSTAL = 3 };
enum { RX_DATA = 0x00, TX_DATA = 0x04, ON = 0x08, SPEED = 0x10, STATE = 0x48, CLEAR = 0x68 };
#define RX_FULL (1u << 31)
#define TX_EMPTY (1u << 29)
#define ERRORS 0x19000000u /* overrun, parity, framing */

/* The clock of all SCI may change between a request (bit 6) and its end, when it is quiet (bit 7). */
static void choose_clock(void) {
  reg_write8(SYSTEM + CRYSTAL_STOP, 0u);
  while ((reg_read8(SYSTEM + RUNNING) & 0x08u) == 0u) {
  }
  reg_write8(SYSTEM + SCI_CLOCK, reg_read8(SYSTEM + SCI_CLOCK) | 0x40u);
  while ((reg_read8(SYSTEM + SCI_CLOCK) & 0x80u) == 0u) {
  }
  reg_write8(SYSTEM + SCI_DIVIDER, 0u);
  reg_write8(SYSTEM + SCI_CLOCK, 0x40u | FROM_CRYSTAL);
  reg_write8(SYSTEM + SCI_CLOCK, FROM_CRYSTAL);
  while ((reg_read8(SYSTEM + SCI_CLOCK) & 0x80u) != 0u) {
  }
}

static void use_pin(uint32_t number) {
  reg_write(PIN(number), 5u << 24); /* SCI 1, 3, 5, 7, 9 */
  reg_write(PIN(number), 5u << 24 | 1u << 16);
}

void glow_wire_open(void) {
  reg_write16(PROTECTION, 0xA503u);
  choose_clock();
  reg_set(MODULE_STOP_B, 1u << 22, 0u);
  reg_write16(PROTECTION, 0xA500u);
  for (uint32_t secure = 0u; secure < 4u; secure += 2u) {
    reg_write8(PIN_PROTECTION + secure, 0u);
    reg_write8(PIN_PROTECTION + secure, 0x40u);
  }
  use_pin(14u);
  use_pin(15u);
  reg_write(SCI + ON, 0u);
  reg_write(SCI + SPEED, 0xFF001C44u); /* 20 MHz * 2 / (12 * (28 + 1)): ABCSE, BRR 28 */
  reg_write(SCI + ON, 0x11u);
}

int glow_wire_getc(void) {
  const uint32_t state = reg_read(SCI + STATE);
  if ((state & ERRORS) != 0u) {
    reg_write(SCI + CLEAR, ERRORS);
  }
  if ((state & RX_FULL) == 0u) {
    return -1;
  }
  const int byte = (int)(reg_read(SCI + RX_DATA) & 0xFFu);
  reg_write(SCI + CLEAR, RX_FULL);
  return byte;
}

void glow_wire_putc(uint8_t byte) {
  reg_wait(SCI + STATE, TX_EMPTY);
  reg_write(SCI + TX_DATA, byte);
}
