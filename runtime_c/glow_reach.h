/* SPDX-License-Identifier: MIT-0 */
/* The taps of a window that lie inside an image. */
#ifndef GLOW_REACH_H
#define GLOW_REACH_H

#include <stdint.h>

typedef struct {
  int32_t begin, end;
} glow_reach_t;

/* Of `count` taps, `step` apart from `at` on, those whose place is in [low, high). */
static inline glow_reach_t glow_reach(int32_t at, int32_t step, int32_t count, int32_t low, int32_t high) {
  glow_reach_t r = {0, count};
  while (r.begin < r.end && at + r.begin * step < low) {
    r.begin++;
  }
  while (r.end > r.begin && at + (r.end - 1) * step >= high) {
    r.end--;
  }
  return r;
}

static inline int32_t glow_reached(glow_reach_t r) { return r.end - r.begin; }

#endif
