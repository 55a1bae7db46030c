/* SPDX-License-Identifier: MIT-0 */
/* Products of four pixels, and of several times four, whose codes are lines of the sums (glow_dsp_quad.h, glow_dsp_quads.h;
 * glow_dsp.h).
 *
 * The stream has, per pair of channels, dual: begin of the odd channel, two multipliers, begin of the even one, the words of
 * the steps. `out_zp` is start: the zero point and a half, with their fraction. A pair that has no lines is told by its
 * second word, which is then 2^29 or more: bias of the odd channel, two float32 scales, 256 times bias of the even one. */
#ifndef GLOW_DSP_QUADS_LINE_H
#define GLOW_DSP_QUADS_LINE_H

#include "glow_dsp_quads.h"

#define GLOW_DSP_LINE_MUL_BITS 29

#if !GLOW_DSP_ASM
GLOW_INLINE void glow_dsp_quad_line_twin(const glow_dsp_quad_t *q) {
  const uint32_t *w = q->stream;
  const int32_t steps = (int32_t)((q->acts_end - q->acts) / 4);
  for (int32_t b = 0; b < q->blocks; b++, w += 4 + steps) {
    for (int32_t pixel = 0; pixel < 4; pixel++) {
      int32_t sums[2] = {(int32_t)w[3], 0}; /* 256 * even + odd, odd */
      for (int32_t i = 0; i < steps; i++) {
        sums[0] = glow_dsp_smlad(q->acts[4 * i + pixel], w[4 + i], sums[0]);
        sums[1] = glow_dsp_smlad(q->acts[4 * i + pixel], glow_sxtab16(0u, w[4 + i]), sums[1]);
      }
      sums[0] = (int32_t)((uint32_t)sums[0] - (uint32_t)sums[1]);
      const int line = w[1] >> GLOW_DSP_LINE_MUL_BITS == 0u;
      for (int32_t i = 0; i < 2; i++) {
        int32_t value;
        if (line) {
          const int32_t sum = i == 0 ? sums[0] : (int32_t)(w[0] + ((uint32_t)sums[1] << GLOW_DSP_LINE_SHIFT));
          value = (int32_t)((int64_t)sum * (int32_t)w[1 + i] >> 32);
        } else {
          float scale;
          memcpy(&scale, &w[1 + i], sizeof scale);
          const int32_t sum = i == 0 ? sums[0] / 256 : sums[1] + (int32_t)w[0];
          value = glow_requant(sum, scale, 0, -1048576, 1048575) * (1 << GLOW_DSP_LINE_FRACTION);
        }
        q->out[pixel][2 * b + i] = (int8_t)glow_clamp((q->out_zp + value) >> GLOW_DSP_LINE_FRACTION,
                                                      glow_first8(q->low), glow_first8(q->high));
      }
    }
  }
}
#endif

#endif
