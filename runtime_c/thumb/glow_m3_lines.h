/* SPDX-License-Identifier: MIT-0 */
/* Straight lines in integers on codes, for Thumb-2: out = ssat8((m * x + b) >> s), of a second line from a code on. */
#ifndef GLOW_M3_LINES_H
#define GLOW_M3_LINES_H

#include "glow_numeric.h"

#include <stdint.h>

#if defined(__GNUC__) && defined(__thumb2__) && !defined(GLOW_NO_ASM)

/* Without optimisation the compiler has but low registers for operands, one of them for its frame: what these loops hold
 * is as far as possible in the high ones. */
#define GLOW_LINES_STORE(code) "ssat " code ", #8, " code "\nstrb " code ", [%[out]], #1\n"
#define GLOW_LINES_LOAD(code) "ldrsb " code ", [%[in]], #1\n"

/* Two rounds of `element` and a last one, n times in all. */
#define GLOW_LINES_TWICE(element) \
  "lsrs r8, %[n], #1\nbeq 2f\n1:\n" element element "subs r8, r8, #1\nbne 1b\n2: lsls r8, %[n], #31\nbeq 3f\n" element \
  "3:\n"

/* A line for each code: lines[n] = {m, b, s}. */
GLOW_INLINE void glow_m3_lines1(const int8_t *in, const int32_t *lines, int8_t *out, int32_t n) {
  __asm__ volatile(GLOW_LINES_TWICE("ldm %[l]!, {r4, r5, r6}\n" GLOW_LINES_LOAD("r12") "mla r12, r12, r4, r5\nasr r12, r12, r6\n"
                                    GLOW_LINES_STORE("r12"))
                   : [in] "+r"(in), [out] "+r"(out), [l] "+r"(lines)
                   : [n] "r"(n)
                   : "r4", "r5", "r6", "r8", "r12", "cc", "memory");
}

/* Two lines for each code: lines[n] = {first, m, b, s, m', b', s'}. */
GLOW_INLINE void glow_m3_lines2(const int8_t *in, const int32_t *lines, int8_t *out, int32_t n) {
  __asm__ volatile(GLOW_LINES_TWICE("ldm %[l]!, {r4, r5, r6, r9}\n" GLOW_LINES_LOAD("r12")
                                    "cmp r12, r4\nit ge\nldmge %[l], {r5, r6, r9}\nadds %[l], %[l], #12\n"
                                    "mla r12, r12, r5, r6\nasr r12, r12, r9\n" GLOW_LINES_STORE("r12"))
                   : [in] "+r"(in), [out] "+r"(out), [l] "+r"(lines)
                   : [n] "r"(n)
                   : "r4", "r5", "r6", "r8", "r9", "r12", "cc", "memory");
}

/* One line for n codes. */
GLOW_INLINE void glow_m3_line1(const int8_t *in, const int32_t *line, int8_t *out, int32_t n) {
  __asm__ volatile(GLOW_LINES_TWICE(GLOW_LINES_LOAD("r12") "mla r12, r12, %[m], %[b]\nasr r12, r12, %[s]\n" GLOW_LINES_STORE("r12"))
                   : [in] "+r"(in), [out] "+r"(out)
                   : [n] "r"(n), [m] "r"(line[0]), [b] "r"(line[1]), [s] "r"(line[2])
                   : "r8", "r12", "cc", "memory");
}

/* Two lines for n codes. */
GLOW_INLINE void glow_m3_line2(const int8_t *in, const int32_t *line, int8_t *out, int32_t n) {
  __asm__ volatile("ldm %[l], {r4, r5, r6, r9, r10, r11, r12}\n" GLOW_LINES_TWICE(
                       GLOW_LINES_LOAD("lr") "cmp lr, r4\nitete ge\nmlage lr, lr, r10, r11\nmlalt lr, lr, r5, r6\n"
                                       "asrge lr, lr, r12\nasrlt lr, lr, r9\n" GLOW_LINES_STORE("lr"))
                   : [in] "+r"(in), [out] "+r"(out)
                   : [n] "r"(n), [l] "r"(line)
                   : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
}
#else
/* The value of a line {m, b, s} at a code. */
GLOW_INLINE int8_t glow_m3_at(const int32_t *line, int32_t code) {
  return (int8_t)glow_clamp((line[0] * code + line[1]) >> line[2], -128, 127);
}

GLOW_INLINE void glow_m3_lines1(const int8_t *in, const int32_t *lines, int8_t *out, int32_t n) {
  for (int32_t i = 0; i < n; i++, lines += 3) {
    out[i] = glow_m3_at(lines, in[i]);
  }
}

GLOW_INLINE void glow_m3_lines2(const int8_t *in, const int32_t *lines, int8_t *out, int32_t n) {
  for (int32_t i = 0; i < n; i++, lines += 7) {
    out[i] = glow_m3_at(in[i] < lines[0] ? lines + 1 : lines + 4, in[i]);
  }
}

GLOW_INLINE void glow_m3_line1(const int8_t *in, const int32_t *line, int8_t *out, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    out[i] = glow_m3_at(line, in[i]);
  }
}

GLOW_INLINE void glow_m3_line2(const int8_t *in, const int32_t *line, int8_t *out, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    out[i] = glow_m3_at(in[i] < line[0] ? line + 1 : line + 4, in[i]);
  }
}
#endif
#endif
