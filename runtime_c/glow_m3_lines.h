/* Straight lines in integers on codes, for Thumb-2: out = ssat8((m * x + b) >> s), of a second line from a code on. */
#ifndef GLOW_M3_LINES_H
#define GLOW_M3_LINES_H

#if defined(__thumb2__)
#include <stdint.h>

#define GLOW_LINES_STORE "ssat r3, #8, r3\nstrb r3, [%[out]], #1\n"
#define GLOW_LINES_LOAD "ldrsb r3, [%[in]], #1\n"

/* Two rounds of `element` and a last one, n times in all. */
#define GLOW_LINES_TWICE(element) \
  "lsrs r8, %[n], #1\nbeq 2f\n1:\n" element element "subs r8, r8, #1\nbne 1b\n2: lsls r8, %[n], #31\nbeq 3f\n" element \
  "3:\n"

/* A line for each code: lines[n] = {m, b, s}. */
static inline void glow_m3_lines1(const int8_t *in, const int32_t *lines, int8_t *out, int32_t n) {
  __asm__ volatile(GLOW_LINES_TWICE("ldm %[l]!, {r4, r5, r6}\n" GLOW_LINES_LOAD "mla r3, r3, r4, r5\nasr r3, r3, r6\n"
                                    GLOW_LINES_STORE)
                   : [in] "+r"(in), [out] "+r"(out), [l] "+r"(lines)
                   : [n] "r"(n)
                   : "r3", "r4", "r5", "r6", "r8", "cc", "memory");
}

/* Two lines for each code: lines[n] = {first, m, b, s, m', b', s'}. */
static inline void glow_m3_lines2(const int8_t *in, const int32_t *lines, int8_t *out, int32_t n) {
  __asm__ volatile(GLOW_LINES_TWICE("ldm %[l]!, {r4, r5, r6, r9}\n" GLOW_LINES_LOAD
                                    "cmp r3, r4\nit ge\nldmge %[l], {r5, r6, r9}\nadds %[l], %[l], #12\n"
                                    "mla r3, r3, r5, r6\nasr r3, r3, r9\n" GLOW_LINES_STORE)
                   : [in] "+r"(in), [out] "+r"(out), [l] "+r"(lines)
                   : [n] "r"(n)
                   : "r3", "r4", "r5", "r6", "r8", "r9", "cc", "memory");
}

/* One line for n codes. */
static inline void glow_m3_line1(const int8_t *in, const int32_t *line, int8_t *out, int32_t n) {
  __asm__ volatile(GLOW_LINES_TWICE(GLOW_LINES_LOAD "mla r3, r3, %[m], %[b]\nasr r3, r3, %[s]\n" GLOW_LINES_STORE)
                   : [in] "+r"(in), [out] "+r"(out)
                   : [n] "r"(n), [m] "r"(line[0]), [b] "r"(line[1]), [s] "r"(line[2])
                   : "r3", "r8", "cc", "memory");
}

/* Two lines for n codes. */
static inline void glow_m3_line2(const int8_t *in, const int32_t *line, int8_t *out, int32_t n) {
  __asm__ volatile("ldm %[l], {r4, r5, r6, r9, r10, r11, r12}\n" GLOW_LINES_TWICE(
                       GLOW_LINES_LOAD "cmp r3, r4\nitete ge\nmlage r3, r3, r10, r11\nmlalt r3, r3, r5, r6\n"
                                       "asrge r3, r3, r12\nasrlt r3, r3, r9\n" GLOW_LINES_STORE)
                   : [in] "+r"(in), [out] "+r"(out)
                   : [n] "r"(n), [l] "r"(line)
                   : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
}
#endif
#endif
