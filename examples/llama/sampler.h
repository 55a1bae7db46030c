/* SPDX-License-Identifier: MIT-0 */
/* The next token from logits: the most likely one, or one by chance. */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <stdint.h>

/* temperature 0: always the most likely token. top_p: only the most likely ones that have so much of the probability
 * together, 1: all. `seed` is not 0, and changes. */
typedef struct {
  float temperature;
  float top_p;
  uint64_t seed;
} sampler_t;

/* Returns a token; the `count` logits become probabilities, those of tokens that may be chosen negative. */
int32_t sampler_next(sampler_t *s, float *logits, int32_t count);

#endif
