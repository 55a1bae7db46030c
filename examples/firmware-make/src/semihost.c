/* Arm semihosting: a breakpoint that asks the debugger, or QEMU, for a service. */
#include "semihost.h"

#include <stddef.h>
#include <string.h>

enum { SYS_OPEN = 0x01, SYS_WRITE = 0x05, SYS_EXIT_EXTENDED = 0x20, MODE_W = 4 };
#define APPLICATION_EXIT 0x20026u

static uint32_t call(uint32_t operation, const uint32_t *args) {
  register uint32_t r0 __asm__("r0") = operation;
  register const uint32_t *r1 __asm__("r1") = args;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void semihost_puts(const char *text) {
  static const char console[] = ":tt";
  static uint32_t handle_plus_1;
  if (handle_plus_1 == 0u) {
    const uint32_t open[3] = {(uint32_t)console, MODE_W, sizeof console - 1u};
    handle_plus_1 = call(SYS_OPEN, open) + 1u;
  }
  const uint32_t write[3] = {handle_plus_1 - 1u, (uint32_t)text, strlen(text)};
  (void)call(SYS_WRITE, write);
}

void semihost_put_u32(uint32_t value) {
  char text[11];
  char *first = text + sizeof text - 1;
  *first = '\0';
  do {
    *--first = (char)('0' + value % 10u);
    value /= 10u;
  } while (value != 0u);
  semihost_puts(first);
}

void semihost_exit(uint32_t status) {
  const uint32_t args[2] = {APPLICATION_EXIT, status};
  (void)call(SYS_EXIT_EXTENDED, args);
  for (;;) {
  }
}
