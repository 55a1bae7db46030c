/* SPDX-License-Identifier: MIT-0 */
/* Depthwise layers without printed tiles that end as TensorFlow Lite does, on cores without SIMD. */
#ifndef GLOW_FIXED_THUMB_DW_H
#define GLOW_FIXED_THUMB_DW_H

#include "glow_fixed_thumb.h"
#include "glow_thumb_dw.h"

#endif
