/* SPDX-License-Identifier: MIT-0 */
/* The string.h functions that compilers call on their own, for bare-metal A64. The Linux C library
 * has them as IFUNCs, which need a loader to resolve; its plain math functions are linked as they are. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Keeps the compiler from recognising a loop as the very function it implements. */
#define OPAQUE() __asm__ volatile("" ::: "memory")

static void copy16(uint8_t *to, const uint8_t *from) {
  unsigned __int128 block;
  __builtin_memcpy(&block, from, 16);
  __builtin_memcpy(to, &block, 16);
}

static void copy_down(uint8_t *to, const uint8_t *from, size_t n) {
  while (n >= 16) {
    n -= 16;
    copy16(to + n, from + n);
    OPAQUE();
  }
  while (n > 0) {
    n--;
    to[n] = from[n];
    OPAQUE();
  }
}

void *memcpy(void *restrict dst, const void *restrict src, size_t n) {
  uint8_t *to = dst;
  const uint8_t *from = src;
  for (; n >= 16; n -= 16, to += 16, from += 16) {
    copy16(to, from);
    OPAQUE();
  }
  for (; n > 0; n--) {
    *to++ = *from++;
    OPAQUE();
  }
  return dst;
}

/* memcpy goes upwards with whole blocks loaded before they are stored: right for dst below src. */
void *memmove(void *dst, const void *src, size_t n) {
  if ((uintptr_t)dst <= (uintptr_t)src) {
    return memcpy(dst, src, n);
  }
  /* Downwards in blocks, the odd bytes at the low end last. */
  copy_down(dst, src, n);
  return dst;
}

typedef uint8_t bytes16 __attribute__((vector_size(16), aligned(1), may_alias));

void *memset(void *dst, int value, size_t n) {
  const bytes16 block = (bytes16){0} + (uint8_t)value;
  uint8_t *to = dst;
  for (; n >= 128; n -= 128, to += 128) {
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
      ((bytes16 *)to)[i] = block;
    }
    OPAQUE();
  }
  for (; n >= 16; n -= 16, to += 16) {
    *(bytes16 *)to = block;
    OPAQUE();
  }
  for (; n > 0; n--) {
    *to++ = (uint8_t)value;
    OPAQUE();
  }
  return dst;
}

int memcmp(const void *a, const void *b, size_t n) {
  const uint8_t *x = a, *y = b;
  for (; n > 0; n--, x++, y++) {
    if (*x != *y) {
      return (int)*x - (int)*y;
    }
    OPAQUE();
  }
  return 0;
}

size_t strlen(const char *s) {
  size_t n = 0;
  while (s[n] != '\0') {
    n++;
    OPAQUE();
  }
  return n;
}
