/* SPDX-License-Identifier: MIT-0 */
#include "sampler.h"

#include <math.h>

static int32_t largest(const float *x, int32_t count) {
  int32_t best = 0;
  for (int32_t i = 1; i < count; i++) {
    best = x[i] > x[best] ? i : best;
  }
  return best;
}

/* A number from 0 to below 1 (xorshift*). */
static float chance(uint64_t *seed) {
  *seed ^= *seed >> 12;
  *seed ^= *seed << 25;
  *seed ^= *seed >> 27;
  return (float)((*seed * UINT64_C(0x2545F4914F6CDD1D)) >> 40) / 16777216.0f;
}

static void softmax(float *x, int32_t count, float temperature) {
  const float max = x[largest(x, count)];
  float total = 0.0f;
  for (int32_t i = 0; i < count; i++) {
    x[i] = expf((x[i] - max) / temperature);
    total += x[i];
  }
  for (int32_t i = 0; i < count; i++) {
    x[i] /= total;
  }
}

int32_t sampler_next(sampler_t *s, float *logits, int32_t count) {
  if (s->temperature <= 0.0f) {
    return largest(logits, count);
  }
  softmax(logits, count, s->temperature);
  float kept = 0.0f;
  int32_t last = 0;
  for (int32_t i = 0; i < count && kept < s->top_p; i++) {
    last = largest(logits, count);
    if (logits[last] <= 0.0f) {
      break;
    }
    kept += logits[last];
    logits[last] = -logits[last]; /* may be chosen */
  }
  float left = chance(&s->seed) * kept;
  for (int32_t i = 0; i < count; i++) {
    if (logits[i] < 0.0f) {
      last = i;
      left += logits[i];
      if (left < 0.0f) {
        break;
      }
    }
  }
  return last;
}
