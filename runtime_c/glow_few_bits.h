/* SPDX-License-Identifier: MIT-0 */
/* Codes of floats of 8 and 4 bits, from and to float32. */
#ifndef GLOW_FEW_BITS_H
#define GLOW_FEW_BITS_H

#include "glow_numeric.h"

/* The code of x in a float kind of 8 or 4 bits, the nearest one, half to even: `places` bits of mantissa, 2^lowest the
 * smallest normal number, `most` the code of the largest. Larger ones become `over`; `zero` is the code of -0. */
GLOW_INLINE uint8_t glow_few_bits(float x, uint32_t sign, uint32_t zero, int32_t places, int32_t lowest, uint32_t most,
                                  uint32_t over, uint32_t nan) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t size = bits & 0x7FFFFFFFu;
  if (size > 0x7F800000u) {
    return (uint8_t)nan;
  }
  const int32_t exponent = (int32_t)(size >> 23) - 127;
  const int32_t below = exponent < lowest ? lowest - exponent : 0;
  const int32_t dropped = 23 - places + (below < 8 ? below : 8);
  const uint32_t whole = (size & 0x7FFFFFu) | (exponent > -127 ? 0x800000u : 0u);
  const uint32_t half = (1u << (dropped - 1)) - 1u;
  uint32_t code = (whole + half + (whole >> dropped & 1u)) >> dropped;
  code += below == 0 ? (uint32_t)(exponent - lowest) << places : 0u;
  code = code > most ? over : code;
  if (bits >> 31 != 0u) {
    code = code == 0u ? zero : code | sign;
  }
  return (uint8_t)code;
}

/* The number of a code that is finite or an infinity of E5M2; `excess` is 127 less the bias of its exponent. */
GLOW_INLINE float glow_few_value(uint32_t code, uint32_t sign, int32_t places, uint32_t excess) {
  const uint32_t size = code & (sign - 1u);
  uint32_t bits = size << (23 - places);
  uint32_t factor = (excess + 127u) << 23;
  float x;
  float scale;
  memcpy(&x, &bits, sizeof x);
  memcpy(&scale, &factor, sizeof scale);
  x *= scale;
  return (code & sign) != 0u ? -x : x;
}

/* The exponent of the power of two next to x: mode 0 up, 1 down, 2 the nearer one; 255 for what is no number. */
GLOW_INLINE uint8_t glow_power_code(float x, int32_t mode, uint32_t most) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t exponent = bits >> 23 & 0xFFu;
  const uint32_t rest = bits & 0x7FFFFFu;
  const uint32_t limit = mode == 0 ? 0u : (exponent > 0u ? 0x3FFFFFu : 0x400000u);
  const uint32_t up = mode != 1 && rest > limit ? 1u : 0u;
  const uint32_t code = exponent + up;
  return (uint8_t)(exponent == 0xFFu ? 0xFFu : (code > most ? most : code));
}

/* 2^(code - 127). */
GLOW_INLINE float glow_power_value(uint32_t code) {
  const uint32_t bits = code > 0u ? code << 23 : 0x400000u;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#endif
