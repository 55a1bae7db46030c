/* The driver of the accelerator; here a model of it in plain C. SPDX-License-Identifier: MIT-0 */
#ifndef CONVBOX_H
#define CONVBOX_H
#include <stdint.h>

/* Runs the layers of `commands`; `scratch` holds what goes from one layer to the next. */
void convbox_run(const int8_t *in, int8_t *out, const uint8_t *commands, uint8_t *scratch);

/* The same for one layer, which needs no scratch: glowc leaves an argument of 0 bytes out. */
void convbox_run_one(const int8_t *in, int8_t *out, const uint8_t *commands);

#endif
