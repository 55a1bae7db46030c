/* SPDX-License-Identifier: MIT-0 */
/* glow_io.h by Arm semihosting (Arm IHI 0100, "Semihosting for AArch32 and AArch64"): Cortex-M and
 * bare-metal A64, under QEMU or a debugger. Uses no libc: newlib's rdimon wants a heap, and finds
 * none on mps3-an547. The linker script supplies __stack_limit. */
#include "glow_io.h"

enum {
  SYS_OPEN = 0x01,
  SYS_CLOSE = 0x02,
  SYS_WRITE = 0x05,
  SYS_READ = 0x06,
  SYS_EXIT_EXTENDED = 0x20
};
enum { OPEN_RB = 1, OPEN_W = 4, OPEN_WB = 5 };
#define ADP_STOPPED_APPLICATION_EXIT 0x20026u
#define GLOW_STACK_PATTERN 0xA5A5A5A5u
#define GLOW_STACK_MARGIN_WORDS 16

extern uint32_t __stack_limit[]; /* lowest word of the stack */
static uint32_t *glow_stack_top; /* where the painted area ended; NULL before the first paint */
static intptr_t glow_tty;        /* handle of the console + 1; 0 before the first text */

static intptr_t semihost(uintptr_t op, const uintptr_t *args) {
#if defined(__aarch64__)
  register uintptr_t r0 __asm__("x0") = op;
  register const uintptr_t *r1 __asm__("x1") = args;
  __asm__ volatile("hlt 0xf000" : "+r"(r0) : "r"(r1) : "memory");
#else
  register uintptr_t r0 __asm__("r0") = op;
  register const uintptr_t *r1 __asm__("r1") = args;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
#endif
  return (intptr_t)r0;
}

static size_t length(const char *s) {
  size_t n = 0;
  while (s[n] != '\0') {
    n++;
  }
  return n;
}

static int open_mode(const char *path, uintptr_t mode) {
  const uintptr_t args[3] = {(uintptr_t)path, mode, length(path)};
  return (int)semihost(SYS_OPEN, args);
}

int glow_io_open_read(const char *path) { return open_mode(path, OPEN_RB); }

int glow_io_open_write(const char *path) { return open_mode(path, OPEN_WB); }

/* Both calls return the bytes NOT moved, and may move fewer than asked for. */
static long transfer(uintptr_t op, int h, uintptr_t data, size_t n) {
  size_t done = 0;
  while (done < n) {
    const uintptr_t args[3] = {(uintptr_t)h, data + done, n - done};
    const intptr_t left = semihost(op, args);
    if (left < 0 || (size_t)left > n - done) {
      return -1;
    }
    if ((size_t)left == n - done) {
      break; /* end of file, or a full disk */
    }
    done = n - (size_t)left;
  }
  return (long)done;
}

long glow_io_read(int h, void *dst, size_t n) { return transfer(SYS_READ, h, (uintptr_t)dst, n); }

long glow_io_write(int h, const void *src, size_t n) {
  return transfer(SYS_WRITE, h, (uintptr_t)src, n);
}

void glow_io_close(int h) {
  const uintptr_t args[1] = {(uintptr_t)h};
  (void)semihost(SYS_CLOSE, args);
}

/* ":tt" opened for writing is the console; SYS_WRITE0 would cost one host call per character. */
static void put(const char *s, size_t n) {
  if (glow_tty == 0) {
    glow_tty = (intptr_t)open_mode(":tt", OPEN_W) + 1;
  }
  (void)transfer(SYS_WRITE, (int)glow_tty - 1, (uintptr_t)s, n);
}

void glow_io_puts(const char *s) { put(s, length(s)); }

void glow_io_put_u32(uint32_t v) {
  char digits[10];
  size_t first = sizeof digits;
  do {
    digits[--first] = (char)('0' + (int)(v % 10u));
    v /= 10u;
  } while (v != 0u);
  put(digits + first, sizeof digits - first);
}

void glow_io_exit(int status) {
  const uintptr_t args[2] = {ADP_STOPPED_APPLICATION_EXIT, (uintptr_t)(unsigned int)status};
  (void)semihost(SYS_EXIT_EXTENDED, args);
  for (;;) {
  }
}

static uint32_t *stack_pointer(void) {
  uint32_t *sp;
  __asm__ volatile("mov %0, sp" : "=r"(sp));
  return sp;
}

/* The margin keeps this function's own frame: the compiler may read sp before it pushes registers.
 * volatile: the loop must not become a call of memset, whose frame it would overwrite. */
__attribute__((noinline)) void glow_stack_paint(void) {
  uint32_t *top = stack_pointer();
  for (volatile uint32_t *word = __stack_limit; word < top - GLOW_STACK_MARGIN_WORDS; word++) {
    *word = GLOW_STACK_PATTERN;
  }
  glow_stack_top = top;
}

__attribute__((noinline)) uint32_t glow_stack_used_bytes(void) {
  const volatile uint32_t *word = __stack_limit;
  if (glow_stack_top == NULL) {
    return 0;
  }
  while (word < glow_stack_top - GLOW_STACK_MARGIN_WORDS && *word == GLOW_STACK_PATTERN) {
    word++;
  }
  return (uint32_t)((uintptr_t)glow_stack_top - (uintptr_t)word);
}

__attribute__((noinline)) void glow_mark(void) {
  __asm__ volatile("" ::: "memory"); /* keeps calls from being dropped or moved */
}
