#include "frame_energy.h"

void dsp_frame_energy(const float *in, float *out, int32_t frames, int32_t length) {
  for (int32_t f = 0; f < frames; f++) {
    float acc = 0.0f;
    for (int32_t i = 0; i < length; i++) {
      const float x = in[f * length + i];
      acc += x * x;
    }
    out[f] = acc;
  }
}
