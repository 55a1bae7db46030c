/* SPDX-License-Identifier: MIT-0 */
/* What generated code needs besides arithmetic: layer hooks and a compiler barrier. */
#ifndef GLOW_RUNTIME_H
#define GLOW_RUNTIME_H

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

#endif
