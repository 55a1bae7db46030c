/* SPDX-License-Identifier: MIT-0 */
/* Blocks from one lane of a vector (glow_a64_lane.h) with the ends of glow_a64_q31.h. */
#ifndef GLOW_A64_LANE_Q31_H
#define GLOW_A64_LANE_Q31_H

#include "glow_a64_lane.h"
#include "glow_a64_q31.h"

#endif
