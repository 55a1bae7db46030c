"""Headers that stand in for those of build systems which are not here."""

from __future__ import annotations

ARDUINO = """\
#ifndef ARDUINO_H
#define ARDUINO_H
#include <stdint.h>
#include <stdio.h>
static inline unsigned long micros(void) { return 0; }
static inline void delay(unsigned long) {}
struct Port {
  void begin(long) {}
  void print(const char *s) { fputs(s, stdout); }
  void print(int v) { printf("%d", v); }
  void println(unsigned long v) { printf("%lu\\n", v); }
  void println(double v) { printf("%.2f\\n", v); }
};
extern Port Serial;
#endif
"""
ZEPHYR_KERNEL = "#include <stdio.h>\n#define printk printf\n"
