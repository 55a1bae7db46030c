/* Time of every layer (make PROFILE=1); without GLOW_PROFILE the calls vanish. */
#ifndef PROFILE_H
#define PROFILE_H

#include <stdint.h>

#ifdef GLOW_PROFILE
/* Between the two, layers are timed; the end prints the mean of `runs` inferences. */
void profile_start(void);
void profile_print(const char *model, const char *(*layer_name)(uint32_t), uint32_t layers, uint32_t runs);
#else
#define profile_start() ((void)0)
#define profile_print(model, layer_name, layers, runs) ((void)0)
#endif

#endif
