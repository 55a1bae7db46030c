/* Text and exit status through the debugger or QEMU. */
#ifndef SEMIHOST_H
#define SEMIHOST_H

#include <stdint.h>

void semihost_puts(const char *text);
void semihost_put_u32(uint32_t value);
_Noreturn void semihost_exit(uint32_t status);

#endif
