/* app X prints the network's sine of X; without an argument it runs the test vectors. */
#include <stdio.h>
#include <stdlib.h>

#include "sine_golden.h"

/* The macros of sine.h turn reals into bytes and back. */
static int8_t to_input(float angle) {
  const float q = angle / SINE_INPUT_SCALE + (float)SINE_INPUT_ZERO_POINT;
  return (int8_t)(q < -128.0f ? -128.0f : (q > 127.0f ? 127.0f : q));
}

static int print_sine(const char *text) {
  const float angle = strtof(text, NULL);
  const int8_t x = to_input(angle);
  int8_t y = 0;
  const int status = sine_invoke(&x, &y);
  const float result = SINE_OUTPUT_SCALE * (float)(y - SINE_OUTPUT_ZERO_POINT);
  printf("sin(%g) is about %.3f\n", (double)angle, (double)result);
  return status == GLOW_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
  if (argc > 1) {
    return print_sine(argv[1]);
  }
  const uint32_t failures = sine_golden_failures();
  printf("sine: %u of %u ok\n", (unsigned)(SINE_GOLDEN_COUNT - failures), (unsigned)SINE_GOLDEN_COUNT);
  return failures == 0u ? EXIT_SUCCESS : EXIT_FAILURE;
}
