/* Start-up of a Cortex-M4F: vector table, FPU, initialised data, main. The one interrupt is SysTick, where it is used. */
#include <stdint.h>

#include "semihost.h"

extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];

int main(void);
_Noreturn void reset(void);
_Noreturn void fault(void);
void systick(void);

void reset(void) {
  *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: the FPU is on */
  __asm__ volatile("dsb\n\tisb" ::: "memory");
  const uint32_t *from = data_load;
  for (uint32_t *to = data_start; to < data_end; to++) {
    *to = *from++;
  }
  for (uint32_t *to = bss_start; to < bss_end; to++) {
    *to = 0u;
  }
  semihost_exit((uint32_t)main());
}

void fault(void) {
  semihost_puts("fault\n");
  semihost_exit(3u);
}

__attribute__((weak)) void systick(void) { fault(); }

typedef union {
  uint32_t *stack;
  void (*handler)(void);
} vector_t;

__attribute__((section(".vectors"), used)) static const vector_t vectors[16] = {
    {.stack = stack_top}, {.handler = reset}, {.handler = fault}, {.handler = fault},
    {.handler = fault},   {.handler = fault}, {.handler = fault}, {.handler = fault},
    {.handler = fault},   {.handler = fault}, {.handler = fault}, {.handler = fault},
    {.handler = fault},   {.handler = fault}, {.handler = fault}, {.handler = systick},
};
