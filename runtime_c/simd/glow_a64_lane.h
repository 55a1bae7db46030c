/* SPDX-License-Identifier: MIT-0 */
/* Blocks of 8 pixels x 8 outputs for A64 from one lane of a vector of inputs: SMLAL by element, or SDOT of four bytes.
 *
 * Nothing is summed across lanes at the end, which pays where a window holds few inputs. The weights of a block are one
 * stream: biases (s32), scales (f32), then for each input eight weights of 16 bits (points: 8), or for each four inputs four bytes
 * of each output (glowc/kernels/simd/conv_lane.py). Operands: w, to, next, magic, zp, lo, hi as in glow_a64.h; head (the
 * stream's begin), from (a cursor), step (bytes from a pixel's inputs to the next's).
 */
#ifndef GLOW_A64_LANE_H
#define GLOW_A64_LANE_H

#include "glow_a64.h"
#include "glow_lane_rows.h"

#endif
