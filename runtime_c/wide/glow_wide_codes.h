/* SPDX-License-Identifier: MIT-0 */
/* Layers of int8 codes (glow_wide_layer.h) at the level of the CPU. */
#ifndef GLOW_WIDE_CODES_H
#define GLOW_WIDE_CODES_H

#include "glow_wide_avx.h"
#include "glow_wide_sve2.h"

/* `x`: whole groups of eight pixels may be read, of one pixel alone two, and 16 bytes behind them */
GLOW_INLINE void glow_wide_layer(const glow_wide_layer_t *layer, const uint8_t *x, int8_t *const *to, int32_t pixels) {
#if defined(GLOW_WIDE_LEVELS)
  switch (glow_wide_level()) {
    case 3: glow_wide_layer_avx512(layer, x, to, pixels); return;
    case 2:
      if (glow_wide_has_avx_vnni()) {
        glow_wide_layer_avx_vnni(layer, x, to, pixels);
      } else {
        glow_wide_layer_avx512_short(layer, x, to, pixels);
      }
      return;
    case 1: glow_wide_layer_avx2(layer, x, to, pixels); return;
    default: break;
  }
#elif defined(GLOW_WIDE_SVE2)
  glow_wide_layer_sve(layer, x, to, pixels);
  return;
#endif
  glow_wide_layer_plain(layer, x, to, pixels);
}

#endif
