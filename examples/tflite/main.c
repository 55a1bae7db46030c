/* The inference that replaces tflite::MicroInterpreter: no arena to guess, no resolver, no library. */
#include <stdio.h>

#include "sine.h"

int main(void) {
  const int8_t angle = -64; /* x / SINE_INPUT_SCALE + SINE_INPUT_ZERO_POINT: a quarter of the way to 2 pi */
  int8_t y = 0;
  const int status = sine_invoke(&angle, &y);
  printf("sin(%.2f) is about %.2f\n", (double)(SINE_INPUT_SCALE * (float)(angle - SINE_INPUT_ZERO_POINT)),
         (double)(SINE_OUTPUT_SCALE * (float)(y - SINE_OUTPUT_ZERO_POINT)));
  return status;
}
