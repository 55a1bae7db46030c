/* SPDX-License-Identifier: MIT-0 */
#include <zephyr/kernel.h>

#include "sine_golden.h"

int main(void) {
  printk("sine: %u of %u vectors wrong\n", (unsigned int)sine_golden_failures(), (unsigned int)SINE_GOLDEN_COUNT);

  const float x = 1.5708f;
  *sine_input() = (int8_t)((int)(x / SINE_INPUT_SCALE + 0.5f) + SINE_INPUT_ZERO_POINT);
  if (sine_run() != GLOW_OK) {
    return 1;
  }
  const float y = SINE_OUTPUT_SCALE * (float)(*sine_output() - SINE_OUTPUT_ZERO_POINT);
  printk("sin(1.5708) is about %d thousandths\n", (int)(y * 1000.0f));
  return 0;
}
