/* Two networks, one arena: reads a digit, computes a sine, then runs the test vectors of both. */
#include <stddef.h>
#include <stdint.h>

#include "digits_golden.h"
#include "profile.h"
#include "semihost.h"
#include "sine_golden.h"

/* The networks take turns, so the arena is as large as the larger one needs, not as both. */
static union {
  _Alignas(DIGITS_ARENA_ALIGN) uint8_t digits[DIGITS_ARENA_BYTES];
  _Alignas(SINE_ARENA_ALIGN) uint8_t sine[SINE_ARENA_BYTES];
} arena ARENA_ATTR;

/* The digit in the picture, or 10 when the inference was refused. */
static uint32_t read_digit(const int8_t picture[DIGITS_INPUT_ELEMENTS]) {
  int8_t score[DIGITS_OUTPUT_ELEMENTS];
  uint32_t best = 0u;
  if (digits_invoke_in(&arena, sizeof arena, picture, score) != GLOW_OK) {
    return DIGITS_OUTPUT_ELEMENTS;
  }
  for (uint32_t i = 1u; i < DIGITS_OUTPUT_ELEMENTS; i++) {
    best = score[i] > score[best] ? i : best;
  }
  return best;
}

/* sin(angle) in thousandths, for an angle from 0 to 2 pi: the macros of sine.h turn reals into bytes and back. */
static int32_t sine_thousandths(float angle) {
  const int8_t x = (int8_t)((int32_t)(angle / SINE_INPUT_SCALE + 0.5f) + SINE_INPUT_ZERO_POINT);
  int8_t y = 0;
  (void)sine_invoke_in(&arena, sizeof arena, &x, &y);
  return (int32_t)(1000.0f * SINE_OUTPUT_SCALE * (float)(y - SINE_OUTPUT_ZERO_POINT));
}

static void report(const char *model, uint32_t failures, uint32_t count) {
  semihost_puts(model);
  semihost_puts(": ");
  semihost_put_u32(count - failures);
  semihost_puts(" of ");
  semihost_put_u32(count);
  semihost_puts(" ok\n");
}

int main(void) {
  semihost_puts("the first picture shows a ");
  semihost_put_u32(read_digit(digits_golden_input[0]));
  semihost_puts("; the sine of pi/6 is about ");
  semihost_put_u32((uint32_t)sine_thousandths(0.5236f));
  semihost_puts("/1000\n");

  profile_start();
  const uint32_t digits_failures = digits_golden_failures_in(&arena, sizeof arena);
  profile_print("digits", digits_layer_name, DIGITS_LAYER_COUNT, DIGITS_GOLDEN_COUNT);

  profile_start();
  const uint32_t sine_failures = sine_golden_failures_in(&arena, sizeof arena);
  profile_print("sine", sine_layer_name, SINE_LAYER_COUNT, SINE_GOLDEN_COUNT);

  report("digits", digits_failures, DIGITS_GOLDEN_COUNT);
  report("sine", sine_failures, SINE_GOLDEN_COUNT);
  return digits_failures + sine_failures == 0u ? 0 : 1;
}
