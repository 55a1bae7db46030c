/* SPDX-License-Identifier: MIT-0 */
/* What generated code needs besides arithmetic: layer hooks, a compiler barrier, and what assembly knows of C. */
#ifndef GLOW_RUNTIME_H
#define GLOW_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* Layer hooks: with -DGLOW_PROFILE the firmware defines these two functions and is told when each layer
 * starts and ends (read DWT->CYCCNT, SysTick or CNTVCT there); without it they cost nothing. */
#ifdef GLOW_PROFILE
void glow_profile_begin(uint32_t layer);
void glow_profile_end(uint32_t layer);
#else
#define glow_profile_begin(layer) ((void)0)
#define glow_profile_end(layer) ((void)0)
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
