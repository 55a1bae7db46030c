/* Energy of frames of samples; a function of the firmware that a kernel calls. */
#ifndef FRAME_ENERGY_H
#define FRAME_ENERGY_H

#include <stdint.h>

/* out[f] = sum of in[f * length + i]^2 over i, added in index order. */
void dsp_frame_energy(const float *in, float *out, int32_t frames, int32_t length);

#endif
