/* SPDX-License-Identifier: MIT-0; the numbers are the model's, as its owner has licensed them. */
/* Constants of sine (glowc 0.1.0+e2c21a6b, model sha256:98c7ef8ca0cfb085). */
#include "sine_weights.h"

/* s8 15x1 */
_Alignas(1) const int8_t sine_w_hidden_weights[15] SINE_WEIGHTS_ATTR = {
  127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127,
};

/* s32 15 */
_Alignas(16) const int32_t sine_w_hidden_bias[15] SINE_WEIGHTS_ATTR = {
  0, -2024, -4048, -6072, -8096, -10120, -12144, -14168, -18217, -20241, -22265, -24289, -26313,
  -28337, -30361,
};

/* s32 1 */
_Alignas(4) const int32_t sine_w_hidden_mul[1] SINE_WEIGHTS_ATTR = {
  1082196480,
};

/* s8 1 */
_Alignas(1) const int8_t sine_w_hidden_shift[1] SINE_WEIGHTS_ATTR = {
  -6,
};

/* s8 1x15 */
_Alignas(1) const int8_t sine_w_y_1_weights[15] SINE_WEIGHTS_ATTR = {
  127, -19, -36, -47, -51, -47, -36, -19, 19, 36, 47, 51, 47, 36, 19,
};

/* s32 1 */
_Alignas(4) const int32_t sine_w_y_1_bias[1] SINE_WEIGHTS_ATTR = {
  0,
};

/* s32 1 */
_Alignas(4) const int32_t sine_w_y_1_mul[1] SINE_WEIGHTS_ATTR = {
  1505958743,
};

/* s8 1 */
_Alignas(1) const int8_t sine_w_y_1_shift[1] SINE_WEIGHTS_ATTR = {
  -5,
};

