/* SPDX-License-Identifier: MIT-0 */
/* Constants of sine; included by sine.c and sine_weights.c only.
 *
 * SINE_WEIGHTS_ATTR places them, for example __attribute__((section(".xip"))).
 */
#ifndef SINE_WEIGHTS_H
#define SINE_WEIGHTS_H

#include <stdint.h>

#ifndef SINE_WEIGHTS_ATTR
#define SINE_WEIGHTS_ATTR
#endif

extern const int8_t sine_w_hidden_weights[15];
extern const int32_t sine_w_hidden_bias[15];
extern const int32_t sine_w_hidden_mul[1];
extern const int8_t sine_w_hidden_shift[1];
extern const int8_t sine_w_y_1_weights[15];
extern const int32_t sine_w_y_1_bias[1];
extern const int32_t sine_w_y_1_mul[1];
extern const int8_t sine_w_y_1_shift[1];

#endif
