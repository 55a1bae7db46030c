/* SPDX-License-Identifier: MIT-0 */
/* Inputs of a pixel, copied together (MVE).
 */
#ifndef GLOW_MVE_GATHER_H
#define GLOW_MVE_GATHER_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_dot.h"
#include "glow_mve_point.h"
#include "glow_mve_run.h"

/* `count` columns of `channels` bytes from column `left` of a row of `width`; those outside hold `value`. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_copy_columns(int8_t *to, const int8_t *row, int32_t left, int32_t count,
                                                  int32_t width, int32_t channels, int32_t value) {
  const int32_t begin = left >= 0 ? 0 : (-left < count ? -left : count);
  const int32_t room = width - left;
  const int32_t end = room >= count ? count : (room > begin ? room : begin);
  glow_mve_fill(to, value, begin * channels);
  glow_mve_copy(to + begin * channels, row + (left + begin) * channels, (end - begin) * channels);
  glow_mve_fill(to + end * channels, value, (count - end) * channels);
}

/* Where the inputs of a pixel are, relative to the first one, and in which row and column of the kernel; with room
 * for a multiple of 8. */
typedef struct {
  const uint16_t *offset;
  const uint8_t *row;
  const uint8_t *column;
} glow_mve_gather_t;

/* A table of n inputs: offsets, rows, columns. */
GLOW_INLINE glow_mve_gather_t glow_mve_gather_table(const void *table, int32_t n) {
  const int32_t whole = (n + 7) / 8 * 8;
  const uint8_t *rows = (const uint8_t *)table + 2 * whole;
  return (glow_mve_gather_t){(const uint16_t *)table, rows, rows + whole};
}

GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_gather_init(void *table, int32_t k_h, int32_t k_w, int32_t in_c, int32_t dil_h,
                                                 int32_t dil_w, int32_t in_row, int32_t in_col, int32_t in_ch) {
  const int32_t whole = (k_h * k_w * in_c + 7) / 8 * 8;
  uint16_t *offset = (uint16_t *)table;
  uint8_t *row = (uint8_t *)(offset + whole);
  uint8_t *column = row + whole;
  memset(table, 0, (size_t)(4 * whole));
  for (int32_t ky = 0; ky < k_h; ky++) {
    for (int32_t kx = 0; kx < k_w; kx++) {
      for (int32_t c = 0; c < in_c; c++) {
        *offset++ = (uint16_t)(ky * dil_h * in_row + kx * dil_w * in_col + c * in_ch);
        *row++ = (uint8_t)(ky * dil_h);
        *column++ = (uint8_t)(kx * dil_w);
      }
    }
  }
}

/* As glow_mve_gather, but inputs outside of `height` x `width` are `zp`; `from` itself may lie outside. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_gather_edge(int8_t *to, uintptr_t from, const glow_mve_gather_t *g, int32_t n,
                                                 int32_t top, int32_t left, int32_t height, int32_t width, int32_t zp) {
  const uint16_t *offset = g->offset;
  const uint8_t *row = g->row;
  const uint8_t *column = g->column;
  const uint16x8_t rows = vdupq_n_u16((uint16_t)height);
  const uint16x8_t columns = vdupq_n_u16((uint16_t)width);
  const int8x16_t other = vdupq_n_s8((int8_t)zp);
  __asm__ volatile(
      "lsr lr, %[n], #3\ndls lr, lr\n"
      "1: vldrb.u16 q0, [%[row]], #8\nvldrb.u16 q1, [%[column]], #8\nvadd.i16 q0, q0, %[top]\n"
      "vadd.i16 q1, q1, %[left]\nvldrh.16 q2, [%[offset]], #16\n"
      "vptt.u16 hi, %q[rows], q0\nvcmpt.u16 hi, %q[columns], q1\nvldrbt.u16 q3, [%[from], q2]\n"
      "vpsel q3, q3, %q[other]\nvstrb.16 q3, [%[to]], #8\nle lr, 1b"
      : [to] "+l"(to), [offset] "+l"(offset), [row] "+l"(row), [column] "+l"(column)
      : [n] "r"(n + 7), [from] "r"(from), [top] "r"(top), [left] "r"(left), [rows] "w"(rows), [columns] "w"(columns),
        [other] "w"(other)
      : "lr", "q0", "q1", "q2", "q3", "cc", "memory");
}

/* to: room for n rounded up to 8 */
GLOW_INLINE void glow_mve_gather(int8_t *to, const int8_t *from, const uint16_t *offset, int32_t n) {
  __asm__ volatile("dls lr, %3\n1: vldrh.16 q0, [%1], #16\nvldrb.u16 q1, [%2, q0]\nvstrb.16 q1, [%0], #8\nle lr, 1b"
                   : "+l"(to), "+l"(offset)
                   : "r"(from), "r"((n + 7) / 8)
                   : "lr", "q0", "q1", "memory");
}

/* Of `count` pixels `step` bytes apart, with the offsets in registers; they are written one after the other, each with
 * room for a multiple of 16. glow_mve_gather_run<vectors of 8 offsets>. */
#define GLOW_MVE_GATHER_RUN(vectors, offsets, loads) \
  GLOW_INLINE void glow_mve_gather_run##vectors(int8_t *to, const int8_t *from, int32_t step, \
                                                  const uint16_t *offset, int32_t count) { \
    __asm__ volatile(offsets "wls lr, %[count], 2f\n1: " loads "add %[from], %[from], %[step]\nle lr, 1b\n2:" \
                     : [to] "+l"(to), [from] "+r"(from), [offset] "+l"(offset) \
                     : [step] "r"(step), [count] "r"(count) \
                     : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory"); \
  }
#define GLOW_MVE_GATHER_OFFSETS(q, at) "vldrh.16 " q ", [%[offset], #" at "]\n"
#define GLOW_MVE_GATHER_EIGHT(q, behind) "vldrb.u16 q0, [%[from], " q "]\nvstrb.16 q0, [%[to]], #" behind "\n"
#define GLOW_MVE_GATHER_OFFSETS_2 GLOW_MVE_GATHER_OFFSETS("q2", "0") GLOW_MVE_GATHER_OFFSETS("q3", "16")
#define GLOW_MVE_GATHER_OFFSETS_4 \
  GLOW_MVE_GATHER_OFFSETS_2 GLOW_MVE_GATHER_OFFSETS("q4", "32") GLOW_MVE_GATHER_OFFSETS("q5", "48")
#define GLOW_MVE_GATHER_TWO GLOW_MVE_GATHER_EIGHT("q2", "8") GLOW_MVE_GATHER_EIGHT("q3", "8")
#define GLOW_MVE_GATHER_FOUR \
  GLOW_MVE_GATHER_TWO GLOW_MVE_GATHER_EIGHT("q4", "8") GLOW_MVE_GATHER_EIGHT("q5", "8")
GLOW_MVE_GATHER_RUN(1, GLOW_MVE_GATHER_OFFSETS("q2", "0"), GLOW_MVE_GATHER_EIGHT("q2", "16"))
GLOW_MVE_GATHER_RUN(2, GLOW_MVE_GATHER_OFFSETS_2, GLOW_MVE_GATHER_TWO)
GLOW_MVE_GATHER_RUN(3, GLOW_MVE_GATHER_OFFSETS_2 GLOW_MVE_GATHER_OFFSETS("q4", "32"),
                    GLOW_MVE_GATHER_TWO GLOW_MVE_GATHER_EIGHT("q4", "16"))
/* inputs with even numbers and those with odd ones, stored 16 at a time */
GLOW_MVE_GATHER_RUN(4,
                    "vld20.16 {q2, q3}, [%[offset]]\nvld21.16 {q2, q3}, [%[offset]]!\n"
                    "vld20.16 {q4, q5}, [%[offset]]\nvld21.16 {q4, q5}, [%[offset]]\n",
                    "vldrb.u16 q0, [%[from], q2]\nvldrb.u16 q1, [%[from], q3]\nvldrb.u16 q6, [%[from], q4]\n"
                    "vmovnt.i16 q0, q1\nvldrb.u16 q7, [%[from], q5]\nvmovnt.i16 q6, q7\nvstrb.8 q0, [%[to]], #16\n"
                    "vstrb.8 q6, [%[to]], #16\n")
GLOW_MVE_GATHER_RUN(5, GLOW_MVE_GATHER_OFFSETS_4 GLOW_MVE_GATHER_OFFSETS("q6", "64"),
                    GLOW_MVE_GATHER_FOUR GLOW_MVE_GATHER_EIGHT("q6", "16"))
GLOW_MVE_GATHER_RUN(6, GLOW_MVE_GATHER_OFFSETS_4 GLOW_MVE_GATHER_OFFSETS("q6", "64") GLOW_MVE_GATHER_OFFSETS("q7", "80"),
                    GLOW_MVE_GATHER_FOUR GLOW_MVE_GATHER_EIGHT("q6", "8") GLOW_MVE_GATHER_EIGHT("q7", "8"))

/* Byte by byte, from an image whose row r is at r mod `ring`. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_gather_bytes(int8_t *to, const int8_t *image, const glow_mve_gather_t *g, int32_t n,
                                                  int32_t in_c, int32_t top, int32_t left, int32_t height,
                                                  int32_t width, int32_t ring, int32_t in_row, int32_t in_col,
                                                  int32_t in_ch, int32_t zp) {
  int32_t channel = 0;
  for (int32_t i = 0; i < n; i++) {
    const int32_t y = top + g->row[i];
    const int32_t x = left + g->column[i];
    const int32_t inside = y >= 0 && y < height && x >= 0 && x < width;
    to[i] = inside != 0 ? image[(y % ring) * in_row + x * in_col + channel * in_ch] : (int8_t)zp;
    channel = channel + 1 < in_c ? channel + 1 : 0;
  }
}

#endif

#endif
