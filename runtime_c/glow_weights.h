/* SPDX-License-Identifier: MIT-0 */
/* A model's constants as a blob, NAME_weights.bin, that is linked into the image, or replaced without being linked again.
 *
 *   byte  0  'G' 'L' 'W' 'B'
 *         4  uint16 version of this layout, uint16 bytes before the constants
 *         8  uint32 bytes of the constants
 *        12  uint32 CRC-32 (IEEE 802.3) of everything behind this field
 *        16  8 bytes: hash of the C code that the constants are for
 *        24  8 bytes: hash of the model that they come from
 *        64  the constants
 *
 * Numbers are little-endian, and so must be the core: the constants are used where they lie.
 */
#ifndef GLOW_WEIGHTS_H
#define GLOW_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "glow_status.h"

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the blob of constants is little-endian"
#endif
#endif

#define GLOW_WEIGHTS_VERSION 1u
#define GLOW_WEIGHTS_HEADER_BYTES 64u

/* What NAME_use_weights() returns besides GLOW_OK and GLOW_ERROR_NULL; an inference returns the first one. */
typedef enum {
  GLOW_ERROR_WEIGHTS = 16,           /* no blob is in use */
  GLOW_ERROR_WEIGHTS_FORMAT = 17,    /* no blob, or one of another version */
  GLOW_ERROR_WEIGHTS_MODEL = 18,     /* a blob for other code: another graph, quantisation, option or glowc */
  GLOW_ERROR_WEIGHTS_LENGTH = 19,    /* cut off, or of another length than the code needs */
  GLOW_ERROR_WEIGHTS_CRC = 20,       /* damaged */
  GLOW_ERROR_WEIGHTS_ALIGN = 21,     /* not aligned to NAME_WEIGHTS_ALIGN */
  GLOW_ERROR_WEIGHTS_SIGNATURE = 22, /* the caller's function does not accept it */
  GLOW_ERROR_WEIGHTS_FILE = 23       /* --weights file: it cannot be opened or mapped */
} glow_weights_status_t;

/* Says whether a blob, intact already, may be used: 0 refuses it. `blob_bytes` is what the caller of NAME_use_weights_if()
 * gave, so that a signature may stand behind the blob. */
typedef int (*glow_weights_accept_t)(void *context, const void *blob, size_t blob_bytes);

static inline uint32_t glow_weights_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* CRC-32 with the reflected polynomial 0xEDB88320, four bits a step. */
static inline uint32_t glow_weights_crc32(const uint8_t *bytes, size_t count) {
  static const uint32_t table[16] = {0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u,
                                     0x4DB26158u, 0x5005713Cu, 0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu,
                                     0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu};
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0u; i < count; i++) {
    crc ^= bytes[i];
    crc = crc >> 4 ^ table[crc & 15u];
    crc = crc >> 4 ^ table[crc & 15u];
  }
  return ~crc;
}

/* Returns GLOW_OK for a whole blob of `payload_bytes` constants for the code with this hash, else why not. */
static inline int glow_weights_check(const void *blob, size_t blob_bytes, const uint8_t *code, uint32_t payload_bytes,
                                     uint32_t align) {
  const uint8_t *bytes = (const uint8_t *)blob;
  if (bytes == NULL) {
    return GLOW_ERROR_NULL;
  }
  if ((uintptr_t)bytes % align != 0u) {
    return GLOW_ERROR_WEIGHTS_ALIGN;
  }
  if (blob_bytes < GLOW_WEIGHTS_HEADER_BYTES) {
    return GLOW_ERROR_WEIGHTS_LENGTH;
  }
  if (bytes[0] != 'G' || bytes[1] != 'L' || bytes[2] != 'W' || bytes[3] != 'B' ||
      glow_weights_u32(bytes + 4) != (GLOW_WEIGHTS_HEADER_BYTES << 16 | GLOW_WEIGHTS_VERSION)) {
    return GLOW_ERROR_WEIGHTS_FORMAT;
  }
  for (uint32_t i = 0u; i < 8u; i++) {
    if (bytes[16u + i] != code[i]) {
      return GLOW_ERROR_WEIGHTS_MODEL;
    }
  }
  if (glow_weights_u32(bytes + 8) != payload_bytes || blob_bytes - GLOW_WEIGHTS_HEADER_BYTES < payload_bytes) {
    return GLOW_ERROR_WEIGHTS_LENGTH;
  }
  const size_t checked = GLOW_WEIGHTS_HEADER_BYTES - 16u + (size_t)payload_bytes;
  if (glow_weights_crc32(bytes + 16, checked) != glow_weights_u32(bytes + 12)) {
    return GLOW_ERROR_WEIGHTS_CRC;
  }
  return GLOW_OK;
}

#endif
