/* SPDX-License-Identifier: MIT-0 */
/* Products of two int8 activations (glow_mve_matmul.h) that end as TensorFlow Lite's do (glow_mve_fixed.h). */
#ifndef GLOW_MVE_MATMUL_Q31_H
#define GLOW_MVE_MATMUL_Q31_H

#include "glow_mve_fixed.h"
#include "glow_mve_matmul.h"

#endif
