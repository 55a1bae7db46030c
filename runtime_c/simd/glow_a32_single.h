/* SPDX-License-Identifier: MIT-0 */
/* glow_a32.h, and outputs that fill no block. */
#ifndef GLOW_A32_SINGLE_H
#define GLOW_A32_SINGLE_H

#include "glow_a32.h"
#include "glow_neon_single.h"

#endif
