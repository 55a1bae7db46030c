/* SPDX-License-Identifier: MIT-0 */
/* What generated code needs besides arithmetic: layer hooks, a compiler barrier, and what assembly knows of C. */
#ifndef GLOW_RUNTIME_H
#define GLOW_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "glow_numeric.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Layer hooks: with -DGLOW_PROFILE the firmware defines the first two functions and is told when each layer starts and
 * ends (read DWT->CYCCNT, SysTick or CNTVCT there). With -DGLOW_PROFILE_MODELS it defines the other two, for firmware
 * with several models: `model` is the NAME_layer_name of the one that runs. Without either they cost nothing. */
#if defined(GLOW_PROFILE_MODELS)
typedef const char *(*glow_model_t)(uint32_t layer);
void glow_profile_model_begin(glow_model_t model, uint32_t layer);
void glow_profile_model_end(glow_model_t model, uint32_t layer);
#define GLOW_LAYER_BEGIN(model, layer) glow_profile_model_begin(model##_layer_name, layer)
#define GLOW_LAYER_END(model, layer) glow_profile_model_end(model##_layer_name, layer)
#elif defined(GLOW_PROFILE)
void glow_profile_begin(uint32_t layer);
void glow_profile_end(uint32_t layer);
#define GLOW_LAYER_BEGIN(model, layer) glow_profile_begin(layer)
#define GLOW_LAYER_END(model, layer) glow_profile_end(layer)
#else
#define GLOW_LAYER_BEGIN(model, layer) ((void)0)
#define GLOW_LAYER_END(model, layer) ((void)0)
#endif

#ifdef __cplusplus
}
#endif

/* Bytes of the arena change their type from layer to layer: no access may move across this line. */
#if defined(__GNUC__)
#define GLOW_LAYER_BARRIER() __asm__ volatile("" ::: "memory")
#else
#define GLOW_LAYER_BARRIER() ((void)0)
#endif

/* Assembly reads members of structs at these offsets, and goes from struct to struct by these bytes. */
#define GLOW_AT(type, member, offset) \
  _Static_assert(offsetof(type, member) == (offset), "assembly reads " #type "." #member " at " #offset)
#define GLOW_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "to assembly, " #type " has bytes: " #bytes)

/* A number as assembly has it. */
#define GLOW_TEXT(number) GLOW_TEXT_OF(number)
#define GLOW_TEXT_OF(number) #number

#endif
