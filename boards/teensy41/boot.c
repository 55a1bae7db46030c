/* SPDX-License-Identifier: MIT-0 */
/* What the boot ROM of the i.MX RT1062 reads from the external flash: the FlexSPI configuration block (reference manual,
 * section 9.6.3.1) and the image vector table with its boot data (section 9.7.1). */
#include <stdint.h>

#define FLASH_BASE 0x60000000u
#define FLASH_BYTES 0x800000u

/* Two instructions of the look-up table: code, pads (0: one), operand. */
#define INSTR(code, operand) ((uint32_t)(code) << 10 | (uint32_t)(operand))
#define PAIR(first, second) (INSTR first | INSTR second << 16)
enum { CMD_SDR = 1, RADDR_SDR = 2, READ_SDR = 9 };

__attribute__((section(".boot_config"), used)) static const struct {
  uint32_t tag, version, reserved0;
  uint8_t read_sample_clock, cs_hold, cs_setup, reserved1[49];
  uint32_t controller_options;
  uint8_t device_type, pads, clock, reserved2[9];
  uint32_t flash_bytes[4], reserved3[8];
  uint32_t lookup[64];
  uint32_t reserved4[16];
  uint32_t page_bytes, sector_bytes, reserved5[14];
} glow_flash_config = {
    .tag = 0x42464346u, /* FCFB */
    .version = 0x56010400u,
    .cs_hold = 3,
    .cs_setup = 3,
    .device_type = 1, /* serial NOR */
    .pads = 1,
    .clock = 1, /* 30 MHz */
    .flash_bytes = {FLASH_BYTES},
    .lookup = {PAIR((CMD_SDR, 0x03), (RADDR_SDR, 24)), PAIR((READ_SDR, 4), (0, 0))},
    .page_bytes = 256,
    .sector_bytes = 4096,
};
_Static_assert(sizeof glow_flash_config == 512, "the block has 512 bytes");

extern const uint32_t glow_image[]; /* of the linker script: the vector table */
static const uint32_t glow_boot_data[3];

__attribute__((section(".boot_table"), used)) static const struct {
  uint32_t header;
  const void *entry;
  uint32_t reserved0, device_configuration;
  const void *boot_data, *self;
  uint32_t signature, reserved1;
} glow_image_table = {
    .header = 0x402000D1u, /* of 32 bytes, version 4.0 */
    .entry = glow_image,
    .boot_data = glow_boot_data,
    .self = &glow_image_table,
};

__attribute__((section(".boot_data"), used)) static const uint32_t glow_boot_data[3] = {FLASH_BASE, FLASH_BYTES, 0u};
