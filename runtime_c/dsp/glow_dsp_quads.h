/* SPDX-License-Identifier: MIT-0 */
/* Products of several quads of pixels (glow_dsp_quad.h): the weights of a pair of channels are read for all of them
 * before those of the next pair, so that a small cache of the flash keeps them. */
#ifndef GLOW_DSP_QUADS_H
#define GLOW_DSP_QUADS_H

#include "glow_dsp_quad.h"

/* One call. The pixels of a quad lie `stride` bytes apart. */
typedef struct {
  const uint32_t *acts; /* of all quads, one after another */
  const uint32_t *stream;
  int8_t *out;    /* of the first pixel */
  int32_t stride; /* of pixels, in bytes */
  int32_t step;   /* from a quad's first pixel to that of the next one, in bytes */
  int32_t quads;
  int32_t blocks;
  int32_t quad_bytes; /* of a quad's activations */
  int32_t skip;
  int32_t out_zp;
  uint32_t low;
  uint32_t high;
} glow_dsp_quads_t;
#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_quads_t, acts, 0); GLOW_AT(glow_dsp_quads_t, stream, 4); GLOW_AT(glow_dsp_quads_t, out, 8);
GLOW_AT(glow_dsp_quads_t, stride, 12); GLOW_AT(glow_dsp_quads_t, step, 16); GLOW_AT(glow_dsp_quads_t, quads, 20);
GLOW_AT(glow_dsp_quads_t, blocks, 24); GLOW_AT(glow_dsp_quads_t, quad_bytes, 28);
GLOW_AT(glow_dsp_quads_t, skip, 32); GLOW_AT(glow_dsp_quads_t, out_zp, 36); GLOW_AT(glow_dsp_quads_t, low, 40);
GLOW_AT(glow_dsp_quads_t, high, 44);
#endif

#if !GLOW_DSP_ASM
/* A quad of several as a call of its own. */
GLOW_INLINE glow_dsp_quad_t glow_dsp_quad_of(const glow_dsp_quads_t *q, int32_t quad) {
  const uint32_t *acts = q->acts + quad * (q->quad_bytes / 4);
  int8_t *out = q->out + quad * q->step;
  const glow_dsp_quad_t one = {acts, q->stream, {out, out + q->stride, out + 2 * q->stride, out + 3 * q->stride},
                               q->blocks, acts + q->quad_bytes / 4, q->skip, q->out_zp, q->low, q->high};
  return one;
}

#endif

#endif
