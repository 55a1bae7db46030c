/* SPDX-License-Identifier: MIT-0 */
/* Arithmetic of Fourier transforms in fixed point of 15 and 31 fractional bits, and in floats by the same names.
 *
 * Sums and products are of the wider kind; low_* is what is stored of one, modulo 2^16 or 2^32, and round_* a product without its
 * fraction, rounded half up. The right shift of a negative number is arithmetic. */
#ifndef GLOW_FFT_H
#define GLOW_FFT_H

#include "glow_numeric.h"

GLOW_INLINE int16_t glow_fft_low_s16(int32_t x) { return (int16_t)x; }
GLOW_INLINE int32_t glow_fft_low_s32(int64_t x) { return (int32_t)x; }
GLOW_INLINE float glow_fft_low_f32(float x) { return x; }

GLOW_INLINE int32_t glow_fft_round_s16(int32_t x) { return (x + (1 << 14)) >> 15; }
GLOW_INLINE int64_t glow_fft_round_s32(int64_t x) { return (x + (1 << 30)) >> 31; }
GLOW_INLINE float glow_fft_round_f32(float x) { return x; }

/* x / 2, downwards */
GLOW_INLINE int16_t glow_fft_half_s16(int32_t x) { return (int16_t)(x >> 1); }
GLOW_INLINE int32_t glow_fft_half_s32(int64_t x) { return (int32_t)(x >> 1); }
GLOW_INLINE float glow_fft_half_f32(float x) { return x * 0.5f; }

/* One of so many parts of x, so that as many of them do not overflow; floats as they are. */
GLOW_INLINE int32_t glow_fft_share_s16(int32_t x, int32_t parts) { return glow_fft_round_s16(x * (INT16_MAX / parts)); }
GLOW_INLINE int64_t glow_fft_share_s32(int64_t x, int32_t parts) { return glow_fft_round_s32(x * (INT32_MAX / parts)); }
GLOW_INLINE float glow_fft_share_f32(float x, int32_t parts) {
  (void)parts;
  return x;
}

#endif
