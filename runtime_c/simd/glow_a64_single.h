/* SPDX-License-Identifier: MIT-0 */
/* glow_a64.h, and outputs that fill no block. */
#ifndef GLOW_A64_SINGLE_H
#define GLOW_A64_SINGLE_H

#include "glow_a64.h"
#include "glow_neon_single.h"

#endif
