/* SPDX-License-Identifier: MIT-0 */
/* glow_wire.h by Arm's PL011 (DDI 0183) at 115200 baud, from a clock of GLOW_PL011_HZ. GLOW_PL011 is its address. With
 * GLOW_RP2040 or GLOW_RP2350 it is UART 0 on GPIO 0 and 1 of a Raspberry Pi Pico, by the crystal of 12 MHz (datasheets:
 * resets, clocks, XOSC, GPIO). */
#include "glow_wire.h"
#include "glow_wire_reg.h"

#ifdef GLOW_RP2040
#define GLOW_PL011 0x40034000u
#define RESETS 0x4000C000u
#define NEEDED 0x00400120u /* UART 0, pads, pins */
#define CLOCKS 0x40008000u
#define CRYSTAL 0x40024000u
#define PINS 0x40014000u
#define PADS 0x4001C000u
#elif defined(GLOW_RP2350)
#define GLOW_PL011 0x40070000u
#define RESETS 0x40020000u
#define NEEDED 0x04000240u
#define CLOCKS 0x40010000u
#define CRYSTAL 0x40048000u
#define PINS 0x40028000u
#define PADS 0x40038000u
#endif
#ifdef PADS
#define GLOW_PL011_HZ 12000000u
#endif

enum { DATA = 0x00, FLAGS = 0x18, WHOLE = 0x24, FRACTION = 0x28, LINE = 0x2C, CONTROL = 0x30 };
enum { RX_EMPTY = 1 << 4, TX_FULL = 1 << 5, EIGHT_BITS_FIFO = 0x70, ON_TX_RX = 0x301 };
#define DIVIDER_64THS ((GLOW_PL011_HZ * 4u + 115200u / 2u) / 115200u)

#ifdef PADS
static void open_pico(void) {
  reg_write(CRYSTAL + 0x0Cu, 47u); /* 1 ms to start */
  reg_write(CRYSTAL, 0xFABAA0u);   /* on, 1 to 15 MHz */
  reg_wait(CRYSTAL + 0x04u, 1u << 31);
  reg_write(CLOCKS + 0x48u, 1u << 11 | 4u << 5); /* CLK_PERI_CTRL: on, from the crystal */
  reg_set(RESETS, NEEDED, 0u);
  reg_wait(RESETS + 0x08u, NEEDED);
  for (uint32_t pin = 0u; pin < 2u; pin++) {
    reg_write(PADS + 4u + 4u * pin, 0x5Au); /* input on, 4 mA, pulled up; not isolated (RP2350) */
    reg_write(PINS + 4u + 8u * pin, 2u);    /* function: UART */
  }
}
#endif

#ifdef GLOW_WIRE_MAP
void glow_wire_map(void); /* of the board: makes the registers visible */
#endif

void glow_wire_open(void) {
#ifdef GLOW_WIRE_MAP
  glow_wire_map();
#endif
#ifdef PADS
  open_pico();
#endif
  reg_write(GLOW_PL011 + CONTROL, 0u);
  reg_write(GLOW_PL011 + WHOLE, DIVIDER_64THS / 64u);
  reg_write(GLOW_PL011 + FRACTION, DIVIDER_64THS % 64u);
  reg_write(GLOW_PL011 + LINE, EIGHT_BITS_FIFO);
  reg_write(GLOW_PL011 + CONTROL, ON_TX_RX);
}

int glow_wire_getc(void) {
  return (reg_read(GLOW_PL011 + FLAGS) & RX_EMPTY) == 0u ? (int)(reg_read(GLOW_PL011 + DATA) & 0xFFu) : -1;
}

void glow_wire_putc(uint8_t byte) {
  while ((reg_read(GLOW_PL011 + FLAGS) & TX_FULL) != 0u) {
  }
  reg_write(GLOW_PL011 + DATA, byte);
}
