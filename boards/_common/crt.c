/* SPDX-License-Identifier: MIT-0 */
/* The C start-up shared by all bare-metal boards: initialised data, zeroed data, main, exit.
 * Called with a valid stack and the FPU already on, as the compiler may vectorise these loops. */
#include <stdint.h>
#ifdef GLOW_SEMIHOSTING
#include "glow_io.h"
#endif

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];
int main(void);
void glow_start(void);

void glow_start(void) {
  const uint32_t *from = __data_load;
  for (uint32_t *to = __data_start; to < __data_end; to++) {
    *to = *from++;
  }
  for (uint32_t *to = __bss_start; to < __bss_end; to++) {
    *to = 0u;
  }
#ifdef GLOW_SEMIHOSTING
  glow_io_exit(main());
#else
  (void)main();
  for (;;) { /* firmware does not return; there is nowhere to go */
  }
#endif
}
