/* SPDX-License-Identifier: MIT-0 */
/* glow_wire.h by a USART or the LPUART of the newer STM32 at 115200 baud. Its clock is the internal oscillator (HSI), so
 * that the speed is right whatever the rest of the chip runs by. GLOW_STM32_L4, _G4, _U5, _F7, _H743 or _H7A3 names the
 * family; GLOW_STM32_LPUART or GLOW_STM32_USART (1, 3) the line, GLOW_STM32_TX and _RX its pins (16 * port + number, port
 * A is 0), GLOW_STM32_FUNCTION their alternate function. Reference manuals: RM0432, RM0440, RM0456, RM0385, RM0433,
 * RM0455, the chapters on RCC, GPIO, USART and LPUART. */
#include "glow_wire.h"
#include "glow_wire_reg.h"

/* RCC, its switches of the ports' and the lines' clocks, where a line's clock is chosen, the oscillator's bits in CR. */
#if defined(GLOW_STM32_L4) || defined(GLOW_STM32_G4)
#define RCC 0x40021000u
#define PORTS 0x48000000u
#define PORT_CLOCKS 0x4Cu /* AHB2ENR */
#define HSI_ON 0x100u
#define HSI_READY 0x400u
#define HSI_HZ 16000000u
#elif defined(GLOW_STM32_U5)
#define RCC 0x46020C00u
#define PORTS 0x42020000u
#define PORT_CLOCKS 0x8Cu /* AHB2ENR1 */
#define HSI_ON 0x100u
#define HSI_READY 0x400u
#define HSI_HZ 16000000u
#elif defined(GLOW_STM32_F7)
#define RCC 0x40023800u
#define PORTS 0x40020000u
#define PORT_CLOCKS 0x30u /* AHB1ENR */
#define HSI_ON 0x1u
#define HSI_READY 0x2u
#define HSI_HZ 16000000u
#elif defined(GLOW_STM32_H743) || defined(GLOW_STM32_H7A3)
#define RCC 0x58024400u
#define PORTS 0x58020000u
#ifdef GLOW_STM32_H743
#define PORT_CLOCKS 0xE0u /* AHB4ENR */
#define APB1_CLOCKS 0xE8u /* APB1LENR */
#define APB2_CLOCKS 0xF0u
#else
#define PORT_CLOCKS 0x140u
#define APB1_CLOCKS 0x148u
#define APB2_CLOCKS 0x150u
#endif
#define HSI_DIVIDER 0x18u
#define HSI_ON 0x1u
#define HSI_READY 0x4u
#define HSI_HZ 64000000u
#else
#error "name the family: GLOW_STM32_L4, _G4, _U5, _F7, _H743 or _H7A3"
#endif

/* The line's registers, the switch of its clock (offset in RCC, bit), where that is chosen (offset, mask, HSI). */
#if defined(GLOW_STM32_LPUART) && (defined(GLOW_STM32_L4) || defined(GLOW_STM32_G4))
#define UART 0x40008000u
#define UART_CLOCKS 0x5Cu /* APB1ENR2 */
#define UART_CLOCK 0x1u
#define CHOICE 0x88u /* CCIPR, LPUART1SEL */
#define CHOICE_MASK 0xC00u
#define CHOICE_HSI 0x800u
#elif defined(GLOW_STM32_U5) && GLOW_STM32_USART == 1
#define UART 0x40013800u
#define UART_CLOCKS 0xA4u /* APB2ENR */
#define UART_CLOCK 0x4000u
#define CHOICE 0xE0u /* CCIPR1, USART1SEL */
#define CHOICE_MASK 0x3u
#define CHOICE_HSI 0x2u
#elif defined(GLOW_STM32_F7) && GLOW_STM32_USART == 1
#define UART 0x40011000u
#define UART_CLOCKS 0x44u /* APB2ENR */
#define UART_CLOCK 0x10u
#define CHOICE 0x90u /* DCKCFGR2, USART1SEL */
#define CHOICE_MASK 0x3u
#define CHOICE_HSI 0x2u
#elif defined(APB1_CLOCKS) && GLOW_STM32_USART == 3
#define UART 0x40004800u
#define UART_CLOCKS APB1_CLOCKS
#define UART_CLOCK 0x40000u
#define CHOICE 0x54u /* D2CCIP2R or CDCCIP2R, USART234578SEL */
#define CHOICE_MASK 0x7u
#define CHOICE_HSI 0x3u
#elif defined(APB2_CLOCKS) && GLOW_STM32_USART == 1
#define UART 0x40011000u
#define UART_CLOCKS APB2_CLOCKS
#define UART_CLOCK 0x10u
#define CHOICE 0x54u /* USART16SEL or USART16910SEL */
#define CHOICE_MASK 0x38u
#define CHOICE_HSI 0x18u
#else
#error "this family has no such line here: GLOW_STM32_LPUART, or GLOW_STM32_USART of 1 or 3"
#endif

enum { BAUD = 115200, CONTROL = 0x00, SPEED = 0x0C, STATE = 0x1C, CLEAR = 0x20, RX_DATA = 0x24, TX_DATA = 0x28 };
enum { ON_TX_RX = 0xD, ERRORS = 0xE, RX_FULL = 0x20, TX_EMPTY = 0x80 };
#ifdef GLOW_STM32_LPUART
#define DIVIDER (uint32_t)((256ull * HSI_HZ + BAUD / 2) / BAUD)
#else
#define DIVIDER ((HSI_HZ + BAUD / 2) / BAUD)
#endif

static void use_pin(uint32_t pin) {
  const uint32_t port = PORTS + 0x400u * (pin / 16u);
  const uint32_t number = pin % 16u;
  reg_set(RCC + PORT_CLOCKS, 0u, 1u << (pin / 16u));
  (void)reg_read(RCC + PORT_CLOCKS); /* the clock is there two cycles later */
  reg_set(port + 0x20u + 4u * (number / 8u), 15u << (4u * (number % 8u)), (uint32_t)GLOW_STM32_FUNCTION << (4u * (number % 8u)));
  reg_set(port, 3u << (2u * number), 2u << (2u * number)); /* MODER: alternate function */
}

void glow_wire_open(void) {
#ifdef HSI_DIVIDER
  reg_set(RCC, HSI_DIVIDER, 0u);
#endif
  reg_set(RCC, 0u, HSI_ON);
  reg_wait(RCC, HSI_READY);
#ifdef GLOW_STM32_VDDIO2 /* port G of the L4 has a supply of its own: PWR_CR2, IOSV */
  reg_set(RCC + 0x58u, 0u, 1u << 28);
  (void)reg_read(RCC + 0x58u);
  reg_set(0x40007004u, 0u, 1u << 9);
#endif
  use_pin(GLOW_STM32_TX);
  use_pin(GLOW_STM32_RX);
  reg_set(RCC + CHOICE, CHOICE_MASK, CHOICE_HSI);
  reg_set(RCC + UART_CLOCKS, 0u, UART_CLOCK);
  (void)reg_read(RCC + UART_CLOCKS);
  reg_write(UART + CONTROL, 0u);
  reg_write(UART + SPEED, DIVIDER);
  reg_write(UART + CONTROL, ON_TX_RX);
}

int glow_wire_getc(void) {
  const uint32_t state = reg_read(UART + STATE);
  if ((state & ERRORS) != 0u) {
    reg_write(UART + CLEAR, ERRORS);
  }
  return (state & RX_FULL) != 0u ? (int)(reg_read(UART + RX_DATA) & 0xFFu) : -1;
}

void glow_wire_putc(uint8_t byte) {
  reg_wait(UART + STATE, TX_EMPTY);
  reg_write(UART + TX_DATA, byte);
}
