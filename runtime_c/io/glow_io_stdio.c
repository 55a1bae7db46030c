/* SPDX-License-Identifier: MIT-0 */
/* glow_io.h on a hosted system (Linux, natively or under qemu-user). */
#include "glow_io.h"

#include <stdio.h>
#include <stdlib.h>

enum { GLOW_IO_FILES = 8, GLOW_STACK_PAINT_BYTES = 256 * 1024 };
#define GLOW_STACK_PATTERN 0xA5u

/* The deep frames of these two functions are the painted area: a sanitizer must neither move them to
 * its own heap nor complain about reading what was left there. */
#if defined(__clang__) || defined(__GNUC__)
#define GLOW_RAW_STACK __attribute__((noinline, no_sanitize("address")))
#else
#define GLOW_RAW_STACK
#endif

static FILE *glow_files[GLOW_IO_FILES];
static uintptr_t glow_painted; /* lowest painted address; an integer, as the array itself is gone */

static int glow_io_open(const char *path, const char *mode) {
  for (int h = 0; h < GLOW_IO_FILES; h++) {
    if (glow_files[h] == NULL) {
      glow_files[h] = fopen(path, mode);
      return glow_files[h] != NULL ? h : -1;
    }
  }
  return -1;
}

static FILE *glow_io_file(int h) {
  return h >= 0 && h < GLOW_IO_FILES ? glow_files[h] : NULL;
}

int glow_io_open_read(const char *path) { return glow_io_open(path, "rb"); }

int glow_io_open_write(const char *path) { return glow_io_open(path, "wb"); }

long glow_io_read(int h, void *dst, size_t n) {
  FILE *f = glow_io_file(h);
  if (f == NULL) {
    return -1;
  }
  size_t got = fread(dst, 1, n, f);
  return ferror(f) ? -1 : (long)got;
}

long glow_io_write(int h, const void *src, size_t n) {
  FILE *f = glow_io_file(h);
  if (f == NULL) {
    return -1;
  }
  size_t put = fwrite(src, 1, n, f);
  return ferror(f) || fflush(f) != 0 ? -1 : (long)put; /* what was written survives a crash */
}

void glow_io_close(int h) {
  FILE *f = glow_io_file(h);
  if (f != NULL) {
    (void)fclose(f);
    glow_files[h] = NULL;
  }
}

void glow_io_puts(const char *s) {
  (void)fputs(s, stdout);
  (void)fflush(stdout);
}

void glow_io_put_u32(uint32_t v) {
  (void)printf("%lu", (unsigned long)v);
  (void)fflush(stdout);
}

void glow_io_exit(int status) { exit(status); }

GLOW_RAW_STACK void glow_stack_paint(void) {
  volatile uint8_t area[GLOW_STACK_PAINT_BYTES];
  for (size_t i = 0; i < sizeof area; i++) {
    area[i] = GLOW_STACK_PATTERN;
  }
  glow_painted = (uintptr_t)area;
}

GLOW_RAW_STACK uint32_t glow_stack_used_bytes(void) {
  const volatile uint8_t *low = (const volatile uint8_t *)glow_painted;
  if (low == NULL) {
    return 0;
  }
  uint32_t untouched = 0;
  while (untouched < GLOW_STACK_PAINT_BYTES && low[untouched] == GLOW_STACK_PATTERN) {
    untouched++;
  }
  return (uint32_t)GLOW_STACK_PAINT_BYTES - untouched;
}

#if defined(__clang__) || defined(__GNUC__)
__attribute__((noinline))
#endif
void glow_mark(void) {
#if defined(__clang__) || defined(__GNUC__)
  __asm__ volatile("" ::: "memory"); /* keeps calls from being dropped or moved */
#endif
}
