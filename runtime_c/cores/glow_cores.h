/* SPDX-License-Identifier: MIT-0 */
/* Cores that compute parts of a layer at once: three functions that firmware has. A model made with --cores calls them
 * for each layer that its cores share, always in this order: start, its own part, wait.
 *
 * With -DGLOW_CORES_SERIAL all parts are computed by the core that calls, one after the other. */
#ifndef GLOW_CORES_H
#define GLOW_CORES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work for core `core`: 0 is the one that calls, and does its own part itself. */
typedef void (*glow_work_t)(const void *context, uint32_t core);

#ifdef GLOW_CORES_SERIAL
static inline uint32_t glow_cores_count(void) { return 1u; }
static inline void glow_cores_start(glow_work_t work, const void *context) {
  (void)work;
  (void)context;
}
static inline void glow_cores_wait(void) {}
#else
/* Returns how many cores there are, the same from start to wait. Parts of those that are missing are done by the others. */
uint32_t glow_cores_count(void);

/* Calls work(context, core) on the cores 1, 2 .. count - 1, once on each, and returns without waiting. They see all that
 * the caller has written. */
void glow_cores_start(glow_work_t work, const void *context);

/* Returns when the last of these calls has returned. The caller then sees all that they have written. */
void glow_cores_wait(void);
#endif

#ifdef __cplusplus
}
#endif

#endif
