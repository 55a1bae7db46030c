/* SPDX-License-Identifier: MIT-0 */
/* glow_wire.h by a USART of STM32F2 and F4 on pins of port A, at 115200 baud by the 16 MHz that the chip starts with (RM0390,
 * sections 6.3, 7.4 and 25.6). GLOW_STM32_USART is 1 (PA9, PA10) or 2 (PA2, PA3: the Nucleo boards' USB port). */
#include "glow_wire.h"

#if GLOW_STM32_USART == 1
#define USART_BASE 0x40011000u
#define CLOCK_REGISTER 0x40023844u /* RCC_APB2ENR */
#define CLOCK_BIT 4u
#define TX_PIN 9u
#elif GLOW_STM32_USART == 2
#define USART_BASE 0x40004400u
#define CLOCK_REGISTER 0x40023840u /* RCC_APB1ENR */
#define CLOCK_BIT 17u
#define TX_PIN 2u
#else
#error "GLOW_STM32_USART is 1 or 2"
#endif
#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define PORT_A 0x40020000u
#define PORT_CLOCKS 0x40023830u /* RCC_AHB1ENR */

enum { RECEIVED = 1 << 5, TX_EMPTY = 1 << 7, TX_AND_RX_ON = 0x200C };
enum { ALTERNATE = 2, USART_FUNCTION = 7, DIVIDER = 139 };

static void use_pin(uint32_t pin) {
  const uint32_t function = PORT_A + 0x20u + 4u * (pin / 8u); /* GPIOA_AFRL or AFRH */
  const uint32_t shift = 4u * (pin % 8u);
  REGISTER(PORT_A) = (REGISTER(PORT_A) & ~(3u << (2u * pin))) | (uint32_t)ALTERNATE << (2u * pin);
  REGISTER(function) = (REGISTER(function) & ~(15u << shift)) | (uint32_t)USART_FUNCTION << shift;
}

void glow_wire_open(void) {
  REGISTER(PORT_CLOCKS) |= 1u;
  REGISTER(CLOCK_REGISTER) |= 1u << CLOCK_BIT;
  use_pin(TX_PIN);
  use_pin(TX_PIN + 1u);
  REGISTER(USART_BASE + 0x08u) = DIVIDER;
  REGISTER(USART_BASE + 0x0Cu) = TX_AND_RX_ON;
}

int glow_wire_getc(void) {
  return (REGISTER(USART_BASE) & RECEIVED) != 0u ? (int)(REGISTER(USART_BASE + 0x04u) & 0xFFu) : -1;
}

void glow_wire_putc(uint8_t byte) {
  while ((REGISTER(USART_BASE) & TX_EMPTY) == 0u) {
  }
  REGISTER(USART_BASE + 0x04u) = byte;
}
