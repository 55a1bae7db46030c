/* SPDX-License-Identifier: MIT-0 */
/* Registers of a chip, for drivers of serial lines. With GLOW_WIRE_MOCK a test on another machine plays the chip. */
#ifndef GLOW_WIRE_REG_H
#define GLOW_WIRE_REG_H

#include <stdint.h>

#ifdef GLOW_WIRE_MOCK
uint32_t glow_mock_read(uint32_t address, uint32_t bytes);
void glow_mock_write(uint32_t address, uint32_t bytes, uint32_t value);

static inline uint32_t reg_read(uint32_t address) { return glow_mock_read(address, 4u); }
static inline void reg_write(uint32_t address, uint32_t value) { glow_mock_write(address, 4u, value); }
static inline void reg_write16(uint32_t address, uint32_t value) { glow_mock_write(address, 2u, value); }
static inline uint32_t reg_read8(uint32_t address) { return glow_mock_read(address, 1u); }
static inline void reg_write8(uint32_t address, uint32_t value) { glow_mock_write(address, 1u, value); }
#else
static inline uint32_t reg_read(uint32_t address) { return *(volatile uint32_t *)(uintptr_t)address; }
static inline void reg_write(uint32_t address, uint32_t value) { *(volatile uint32_t *)(uintptr_t)address = value; }
static inline void reg_write16(uint32_t address, uint32_t value) {
  *(volatile uint16_t *)(uintptr_t)address = (uint16_t)value;
}
static inline uint32_t reg_read8(uint32_t address) { return *(volatile uint8_t *)(uintptr_t)address; }
static inline void reg_write8(uint32_t address, uint32_t value) {
  *(volatile uint8_t *)(uintptr_t)address = (uint8_t)value;
}
#endif

/* Sets the bits of `mask` to those of `value`; the others stay. */
static inline void reg_set(uint32_t address, uint32_t mask, uint32_t value) {
  reg_write(address, (reg_read(address) & ~mask) | value);
}

/* Waits until all bits of `mask` are set. */
static inline void reg_wait(uint32_t address, uint32_t mask) {
  while ((reg_read(address) & mask) != mask) {
  }
}

#endif
