/* Kernels' building blocks for CPUs with Helium (MVE, Cortex-M55 and M85).
 *
 * Matrix products read their constants as one stream of groups of four output channels. With the inputs of a pixel
 * in `segments` of `blocks` times 16 and `tail` more bytes, a group is, segment by segment: per block 4 x 16 weights,
 * then 4 x tail weights; at the end 4 biases (zero point of the input inside) and 4 scales. A run of inputs is
 * multiplied by following a list of steps: each says where the inputs of two pixels are and which code takes
 * them; LDM loads all of it and jumps. Accumulators are in even registers, as VMLADAVA wants them.
 * Requantisation: VCVT, VMUL, VCVTN (half to even), saturating narrowing and zero point, clamp: exact.
 */
#ifndef GLOW_MVE_H
#define GLOW_MVE_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include <arm_mve.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GLOW_MVE_UNUSED __attribute__((unused))
#define GLOW_MVE_FUNCTION GLOW_MVE_UNUSED __attribute__((naked, noinline, noclone)) static

enum { GLOW_MVE_SEGMENTS = 7 };

typedef struct {
  const void *x0;
  const void *x1;
  int32_t rounds; /* of four blocks, but the first; tail: bytes; end: zero point of the output */
  uint32_t code;
} glow_mve_step_t;

/* The assembly knows the offsets of the members up to `places`. */
typedef struct {
  glow_mve_step_t *list;  /* 0 */
  glow_mve_step_t *again; /* 4: where the steps of the second and later groups begin */
  int32_t count;          /* 8: pairs of pixels, or pixels */
  int32_t used;           /* 12: steps without the end */
  int8_t *out;            /* 16 */
  int32_t out_step;       /* 20 */
  const void *stream;     /* 24 */
  int32_t last;           /* 28: bytes that the last group stores */
  int32_t x_step;         /* 32 */
  int32_t low;            /* 36 */
  int32_t high;           /* 40 */
  uint16_t places[8];     /* 44: where the results of a pair go */
  const void *stream_end;
  int32_t segments;
  int32_t blocks;
  int32_t tail;
  int32_t out_c;
  int32_t zp;
  int32_t apart; /* the pixels of a pair that `places` is for */
} glow_mve_dot_t;

/* Offsets in the table of code addresses. */
enum {
  GLOW_MVE_FIRST = 0,
  GLOW_MVE_BLOCKS = 1,
  GLOW_MVE_TAIL = 5,
  GLOW_MVE_FIRST_TAIL = 6,
  GLOW_MVE_END = 7,
  GLOW_MVE_KEEP = 8, /* loads at most 16 inputs, to be used by all groups: the next step says by how many weights */
  GLOW_MVE_KEPT_16 = 9,
  GLOW_MVE_KEPT_8 = 10
};

/* clang-format off */
#define GLOW_MVE_NEXT "ldmia r9!, {r1, r3, r7, pc}\n"
#define GLOW_MVE_PAIR_BLOCK(mla) \
  "vldrb.8 q0, [r1], #16\n" "vldrb.8 q2, [r5], #16\n" "vldrb.8 q1, [r3], #16\n" \
  mla " r0, q0, q2\n" "vldrb.8 q3, [r5], #16\n" mla " r2, q1, q2\n" \
  mla " r4, q0, q3\n" "vldrb.8 q2, [r5], #16\n" mla " r6, q1, q3\n" \
  mla " r8, q0, q2\n" "vldrb.8 q3, [r5], #16\n" mla " r10, q1, q2\n" \
  mla " r12, q0, q3\n" mla " lr, q1, q3\n"
#define GLOW_MVE_PAIR_TAIL(mla) \
  "vctp.8 r7\n" "vpstt\n" "vldrbt.8 q0, [r1]\n" "vldrbt.8 q1, [r3]\n" \
  "vldrb.8 q2, [r5]\n" "add r5, r5, r7\n" mla " r0, q0, q2\n" \
  "vldrb.8 q3, [r5]\n" "add r5, r5, r7\n" mla " r2, q1, q2\n" mla " r4, q0, q3\n" \
  "vldrb.8 q2, [r5]\n" "add r5, r5, r7\n" mla " r6, q1, q3\n" mla " r8, q0, q2\n" \
  "vldrb.8 q3, [r5]\n" "add r5, r5, r7\n" mla " r10, q1, q2\n" mla " r12, q0, q3\n" mla " lr, q1, q3\n"
#define GLOW_MVE_PAIR_KEPT(n) \
  "vldrb.8 q2, [r5], #" n "\n" "vldrb.8 q3, [r5], #" n "\n" "vmladav.s8 r0, q0, q2\n" "vmladav.s8 r2, q1, q2\n" \
  "vldrb.8 q2, [r5], #" n "\n" "vmladav.s8 r4, q0, q3\n" "vmladav.s8 r6, q1, q3\n" "vldrb.8 q3, [r5], #" n "\n" \
  "vmladav.s8 r8, q0, q2\n" "vmladav.s8 r10, q1, q2\n" "vmladav.s8 r12, q0, q3\n" "vmladav.s8 lr, q1, q3\n"
#define GLOW_MVE_ONE_BLOCK(mla) \
  "vldrb.8 q0, [r1], #16\n" "vldrb.8 q2, [r5], #16\n" "vldrb.8 q3, [r5], #16\n" \
  mla " r0, q0, q2\n" "vldrb.8 q2, [r5], #16\n" mla " r2, q0, q3\n" "vldrb.8 q3, [r5], #16\n" \
  mla " r8, q0, q2\n" mla " r10, q0, q3\n"
#define GLOW_MVE_ONE_TAIL(mla) \
  "vctp.8 r7\n" "vpst\n" "vldrbt.8 q0, [r1]\n" \
  "vldrb.8 q2, [r5]\n" "add r5, r5, r7\n" "vldrb.8 q3, [r5]\n" "add r5, r5, r7\n" mla " r0, q0, q2\n" \
  "vldrb.8 q2, [r5]\n" "add r5, r5, r7\n" mla " r2, q0, q3\n" "vldrb.8 q3, [r5]\n" "add r5, r5, r7\n" \
  mla " r8, q0, q2\n" mla " r10, q0, q3\n"
/* Begin: `d` in r0 (NULL: return the table). After the last group: next pixels. */
#define GLOW_MVE_BEGIN(n, more, to) \
  "cbnz r0, 1f\n" "adr r0, .Lglow_mve_table" n "\n" "bx lr\n" \
  ".balign 4\n" ".Lglow_mve_table" n ":\n" \
  ".word 11f+1, 14f+1, 13f+1, 12f+1, 15f+1, 16f+1, 17f+1, 18f+1" more "\n" \
  "1: push {r3-r11, lr}\n" "vpush {d8-d15}\n" \
  "ldrd r1, r2, [r0, #36]\n" "vdup.16 q6, r1\n" "vdup.16 q7, r2\n" "vldrh.16 q5, [r0, #44]\n" "mov r1, r0\n" \
  "2: ldr r9, [r1]\n" "ldr r5, [r1, #24]\n" "ldr " to ", [r1, #16]\n" GLOW_MVE_NEXT
#define GLOW_MVE_ADVANCE \
  "ldrd r2, r0, [r1, #8]\n" "subs r2, r2, #1\n" "beq 4f\n" "str r2, [r1, #8]\n" \
  "ldrd r4, r6, [r1, #16]\n" "ldr r8, [r1, #32]\n" "vmov.i32 q0, #0\n" "add r4, r4, r6\n" "str r4, [r1, #16]\n" \
  "ldr r9, [r1]\n" "vmov d0, r8, r8\n" "dls lr, r0\n" \
  "3: vldrw.32 q2, [r9]\n" "vadd.i32 q2, q2, q0\n" "vstrw.32 q2, [r9], #16\n" "le lr, 3b\n" \
  "b 2b\n" \
  "4: vpop {d8-d15}\n" "pop {r3-r11, pc}\n"

/* Two pixels, `count` times. Returns the table of code addresses for NULL. */
GLOW_MVE_FUNCTION const uint32_t *glow_mve_dot2(GLOW_MVE_UNUSED glow_mve_dot_t *d) {
  __asm__(
      GLOW_MVE_BEGIN("2", ", 21f+1, 22f+1, 23f+1", "r11")
      "11:\n" GLOW_MVE_PAIR_BLOCK("vmladav.s8") GLOW_MVE_NEXT
      "14:\n" GLOW_MVE_PAIR_BLOCK("vmladava.s8")
      "13:\n" GLOW_MVE_PAIR_BLOCK("vmladava.s8")
      "12:\n" GLOW_MVE_PAIR_BLOCK("vmladava.s8")
      "15:\n" GLOW_MVE_PAIR_BLOCK("vmladava.s8")
      "subs r7, r7, #1\n" "bpl 14b\n" GLOW_MVE_NEXT
      "16:\n" GLOW_MVE_PAIR_TAIL("vmladava.s8") GLOW_MVE_NEXT
      "17:\n" GLOW_MVE_PAIR_TAIL("vmladav.s8") GLOW_MVE_NEXT
      "21: vctp.8 r7\n" "vpstt\n" "vldrbt.8 q0, [r1]\n" "vldrbt.8 q1, [r3]\n" GLOW_MVE_NEXT
      "22:\n" GLOW_MVE_PAIR_KEPT("16") GLOW_MVE_NEXT
      "23:\n" GLOW_MVE_PAIR_KEPT("8") GLOW_MVE_NEXT
      "18:\n"
      "vmov d4, r0, r4\n" "vmov d5, r8, r12\n" "vldrw.32 q4, [r5], #16\n"
      "vmov d6, r2, r6\n" "vmov d7, r10, lr\n" "vadd.i32 q2, q2, q4\n" "vadd.i32 q3, q3, q4\n"
      "vldrw.32 q4, [r5], #16\n" "vcvt.f32.s32 q2, q2\n" "vcvt.f32.s32 q3, q3\n"
      "vmul.f32 q2, q2, q4\n" "vmul.f32 q3, q3, q4\n"
      "vcvtn.s32.f32 q2, q2\n" "vcvtn.s32.f32 q3, q3\n"
      "vqmovnb.s32 q2, q2\n" "vqmovnt.s32 q2, q3\n" "vqadd.s16 q2, q2, r7\n"
      "vmax.s16 q2, q2, q6\n" "cmp r5, r3\n" "vmin.s16 q2, q2, q7\n"
      "beq 19f\n" "vstrb.16 q2, [r11, q5]\n" "add r11, r11, #4\n" "ldr r9, [r1, #4]\n" GLOW_MVE_NEXT
      "19: ldr r0, [r1, #28]\n" "vctp.16 r0\n" "vpst\n" "vstrbt.16 q2, [r11, q5]\n"
      GLOW_MVE_ADVANCE);
}

/* One pixel, `count` times. */
GLOW_MVE_FUNCTION const uint32_t *glow_mve_dot1(GLOW_MVE_UNUSED glow_mve_dot_t *d) {
  __asm__(
      GLOW_MVE_BEGIN("1", "", "r4")
      "11:\n" GLOW_MVE_ONE_BLOCK("vmladav.s8") GLOW_MVE_NEXT
      "14:\n" GLOW_MVE_ONE_BLOCK("vmladava.s8")
      "13:\n" GLOW_MVE_ONE_BLOCK("vmladava.s8")
      "12:\n" GLOW_MVE_ONE_BLOCK("vmladava.s8")
      "15:\n" GLOW_MVE_ONE_BLOCK("vmladava.s8")
      "subs r7, r7, #1\n" "bpl 14b\n" GLOW_MVE_NEXT
      "16:\n" GLOW_MVE_ONE_TAIL("vmladava.s8") GLOW_MVE_NEXT
      "17:\n" GLOW_MVE_ONE_TAIL("vmladav.s8") GLOW_MVE_NEXT
      "18:\n"
      "vldrw.32 q2, [r5], #16\n" "vmov d0, r0, r2\n" "vmov d1, r8, r10\n" "vldrw.32 q3, [r5], #16\n"
      "vadd.i32 q0, q0, q2\n" "vcvt.f32.s32 q0, q0\n" "vmul.f32 q0, q0, q3\n" "vcvtn.s32.f32 q0, q0\n"
      "vqmovnb.s32 q0, q0\n" "vqadd.s16 q0, q0, r7\n" "vmax.s16 q0, q0, q6\n" "cmp r5, r3\n" "vmin.s16 q0, q0, q7\n"
      "beq 19f\n" "vstrb.32 q0, [r4], #4\n" "ldr r9, [r1, #4]\n" GLOW_MVE_NEXT
      "19: ldr r0, [r1, #28]\n" "vctp.32 r0\n" "vpst\n" "vstrbt.32 q0, [r4]\n"
      GLOW_MVE_ADVANCE);
}
/* clang-format on */

/* Says what the stream holds: out_c channels of `segments` times `bytes` inputs. */
GLOW_MVE_UNUSED static void glow_mve_dot_init(glow_mve_dot_t *d, const void *stream, int32_t out_c, int32_t segments,
                                              int32_t bytes, int32_t zp, int32_t low, int32_t high) {
  d->stream = stream;
  d->stream_end = (const int8_t *)stream + (out_c + 3) / 4 * (4 * segments * bytes + 32);
  d->segments = segments;
  d->blocks = bytes / 16;
  d->tail = bytes % 16;
  d->out_c = out_c;
  d->zp = zp;
  d->low = low;
  d->high = high;
  d->apart = -1;
}

/* Writes at most 2 * segments + 2 steps, or 3 * segments + 1 when there is a tail: segment s of the first pixel at
 * rows[s], of the second `apart` bytes behind. Returns where the groups begin but the first. */
static inline glow_mve_step_t *glow_mve_dot_steps(glow_mve_dot_t *d, glow_mve_step_t *list, const uint32_t *code,
                                                  const int8_t *const *rows, int32_t apart, int pair) {
  glow_mve_step_t *step = list;
  if (pair != 0 && d->segments == 1 && (d->blocks * 16 + d->tail == 16 || d->blocks * 16 + d->tail == 8)) {
    *step++ = (glow_mve_step_t){rows[0], rows[0] + apart, d->blocks != 0 ? 16 : 8, code[GLOW_MVE_KEEP]};
    *step++ = (glow_mve_step_t){NULL, NULL, 0, code[d->blocks != 0 ? GLOW_MVE_KEPT_16 : GLOW_MVE_KEPT_8]};
    list++;
  } else {
    for (int32_t s = 0; s < d->segments; s++) {
      const int8_t *x = rows[s];
      int32_t blocks = d->blocks;
      if (s == 0 && blocks != 0) {
        *step++ = (glow_mve_step_t){x, x + apart, 0, code[GLOW_MVE_FIRST]};
        x += 16;
        blocks--;
      }
      if (blocks != 0) {
        *step++ = (glow_mve_step_t){x, x + apart, (blocks - 1) / 4, code[GLOW_MVE_BLOCKS + (-blocks & 3)]};
        x += blocks * 16;
      }
      if (d->tail != 0) {
        const int32_t first = s == 0 && d->blocks == 0;
        *step++ = (glow_mve_step_t){x, x + apart, d->tail, code[first != 0 ? GLOW_MVE_FIRST_TAIL : GLOW_MVE_TAIL]};
      }
    }
  }
  *step = (glow_mve_step_t){d, d->stream_end, d->zp, code[GLOW_MVE_END]};
  d->used = (int32_t)(step - list);
  return list;
}

/* Results of the second pixel of a pair go `apart` bytes behind those of the first. */
static inline void glow_mve_dot_places(glow_mve_dot_t *d, int32_t apart) {
  if (apart != d->apart) {
    const uint16x8_t index = vidupq_n_u16(0u, 1);
    const uint16x8_t second = vandq_u16(index, vdupq_n_u16(1u));
    vst1q_u16(d->places, vmlaq_n_u16(vshrq_n_u16(index, 1), second, (uint16_t)apart));
    d->apart = apart;
  }
}

/* Steps for pixels that lie in a buffer, written once and followed by glow_mve_dot_two or glow_mve_dot_one. */
GLOW_MVE_UNUSED __attribute__((noinline)) static glow_mve_step_t *glow_mve_dot_fix(glow_mve_dot_t *d,
                                                                                  glow_mve_step_t *list,
                                                                                  const int8_t *at, int32_t bytes,
                                                                                  int32_t apart, int pair) {
  const int8_t *rows[GLOW_MVE_SEGMENTS];
  for (int32_t s = 0; s < d->segments; s++) {
    rows[s] = at + s * bytes;
  }
  return glow_mve_dot_steps(d, list, pair != 0 ? glow_mve_dot2(NULL) : glow_mve_dot1(NULL), rows, apart, pair);
}

GLOW_MVE_UNUSED static void glow_mve_dot_two(glow_mve_dot_t *d, glow_mve_step_t *list, glow_mve_step_t *again,
                                             int8_t *out, int32_t apart) {
  d->list = list;
  d->again = again;
  d->out = out;
  d->count = 1;
  d->last = 2 * ((d->out_c + 3) % 4 + 1);
  glow_mve_dot_places(d, apart);
  (void)glow_mve_dot2(d);
}

GLOW_MVE_UNUSED static void glow_mve_dot_one(glow_mve_dot_t *d, glow_mve_step_t *list, int8_t *out) {
  d->list = list;
  d->again = list;
  d->out = out;
  d->count = 1;
  d->last = (d->out_c + 3) % 4 + 1;
  (void)glow_mve_dot1(d);
}

/* `count` pixels in a row: the inputs of the next one are x_step bytes behind, its outputs out_step bytes. */
GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dot_row(glow_mve_dot_t *d, glow_mve_step_t *list,
                                                                      const int8_t *const *rows, int32_t x_step,
                                                                      int8_t *out, int32_t out_step, int32_t count) {
  const int32_t rest = (d->out_c + 3) % 4 + 1;
  d->list = list;
  d->out = out;
  if (count > 1) {
    glow_mve_dot_places(d, out_step);
    d->again = glow_mve_dot_steps(d, list, glow_mve_dot2(NULL), rows, x_step, 1);
    d->used += (int32_t)(d->again - list);
    d->count = count / 2;
    d->out_step = 2 * out_step;
    d->x_step = 2 * x_step;
    d->last = 2 * rest;
    (void)glow_mve_dot2(d);
  }
  if ((count & 1) != 0) {
    const int8_t *last[GLOW_MVE_SEGMENTS];
    for (int32_t s = 0; s < d->segments; s++) {
      last[s] = rows[s] + (count - 1) * x_step;
    }
    d->again = glow_mve_dot_steps(d, list, glow_mve_dot1(NULL), last, 0, 0);
    d->out = out + (count - 1) * out_step;
    d->count = 1;
    d->last = rest;
    (void)glow_mve_dot1(d);
  }
}

/* to[0 .. n) = from[0 .. n), and = value. */
static inline void glow_mve_copy(int8_t *to, const int8_t *from, int32_t n) {
  __asm__ volatile("wlstp.8 lr, %2, 2f\n1: vldrb.8 q0, [%1], #16\nvstrb.8 q0, [%0], #16\nletp lr, 1b\n2:"
                   : "+l"(to), "+l"(from)
                   : "r"(n)
                   : "lr", "q0", "cc", "memory");
}

static inline void glow_mve_fill(int8_t *to, int32_t value, int32_t n) {
  __asm__ volatile("vdup.8 q0, %1\nwlstp.8 lr, %2, 2f\n1: vstrb.8 q0, [%0], #16\nletp lr, 1b\n2:"
                   : "+l"(to)
                   : "r"(value), "r"(n)
                   : "lr", "q0", "cc", "memory");
}

/* `count` columns of `channels` bytes from column `left` of a row of `width`; those outside hold `value`. */
GLOW_MVE_UNUSED static void glow_mve_copy_columns(int8_t *to, const int8_t *row, int32_t left, int32_t count,
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
  uint16_t *offset;
  uint8_t *row;
  uint8_t *column;
} glow_mve_gather_t;

GLOW_MVE_UNUSED static void glow_mve_gather_init(const glow_mve_gather_t *g, int32_t k_h, int32_t k_w, int32_t in_c,
                                                 int32_t dil_h, int32_t dil_w, int32_t in_row, int32_t in_col,
                                                 int32_t in_ch) {
  int32_t i = 0;
  for (int32_t ky = 0; ky < k_h; ky++) {
    for (int32_t kx = 0; kx < k_w; kx++) {
      for (int32_t c = 0; c < in_c; c++, i++) {
        g->offset[i] = (uint16_t)(ky * dil_h * in_row + kx * dil_w * in_col + c * in_ch);
        g->row[i] = (uint8_t)(ky * dil_h);
        g->column[i] = (uint8_t)(kx * dil_w);
      }
    }
  }
  for (; i % 8 != 0; i++) {
    g->offset[i] = 0u;
    g->row[i] = 0u;
    g->column[i] = 0u;
  }
}

/* As glow_mve_gather, but inputs outside of `height` x `width` are `zp`; `from` itself may lie outside. */
GLOW_MVE_UNUSED static void glow_mve_gather_edge(int8_t *to, uintptr_t from, const glow_mve_gather_t *g, int32_t n,
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

/* Of two pixels `step` bytes apart; at `to` and behind it at `to + pitch`. */
static inline void glow_mve_gather2(int8_t *to, int32_t pitch, const int8_t *from, int32_t step, const uint16_t *offset,
                                    int32_t n) {
  int8_t *second = to + pitch;
  __asm__ volatile("dls lr, %[n]\n1: vldrh.16 q0, [%[offset]], #16\nvldrb.u16 q1, [%[from], q0]\n"
                   "vldrb.u16 q2, [%[more], q0]\nvstrb.16 q1, [%[to]], #8\nvstrb.16 q2, [%[second]], #8\nle lr, 1b"
                   : [to] "+l"(to), [second] "+l"(second), [offset] "+r"(offset)
                   : [from] "r"(from), [more] "r"(from + step), [n] "r"((n + 7) / 8)
                   : "lr", "q0", "q1", "q2", "memory");
}

/* to: room for n rounded up to 8 */
static inline void glow_mve_gather(int8_t *to, const int8_t *from, const uint16_t *offset, int32_t n) {
  __asm__ volatile("dls lr, %3\n1: vldrh.16 q0, [%1], #16\nvldrb.u16 q1, [%2, q0]\nvstrb.16 q1, [%0], #8\nle lr, 1b"
                   : "+l"(to), "+l"(offset)
                   : "r"(from), "r"((n + 7) / 8)
                   : "lr", "q0", "q1", "memory");
}
/* Depthwise convolution, 16 channels at a time. The stream: 1 when `glow_mve_dw9` may take it, one input row of the
 * zero point (channels rounded up to 16), then per 16 channels 16 biases, 16 weights per tap, 16 scales; biases and
 * scales in the order 0, 4, 8, 12, 2, 6, .., 1, 5, .., 3, 7, .. in which VMULLB, VMULLT, VMOVLB and VMOVLT leave the
 * channels. The assembly knows the offsets. */
enum { GLOW_MVE_TAPS = 64 };
typedef struct {
  const int8_t *const *taps; /* 0 */
  int32_t n;                 /* 4 */
  const void *stream;        /* 8 */
  int8_t *out;               /* 12 */
  int32_t channels;          /* 16 */
  int32_t out_step;          /* 20 */
  int32_t count;             /* 24: pixels */
  int32_t advance;           /* 28: of the taps, from behind their last vector */
  int32_t zp_clamp;          /* 32: 2 * zero point + (1 when low or high is no bound of int8) */
  int8_t low[16];            /* 36 */
  int8_t high[16];           /* 52 */
} glow_mve_dw_t;

/* clang-format off */
#define GLOW_MVE_DW_WIDEN \
  "vmovlb.s16 q6, q4\n" "vmovlt.s16 q4, q4\n" "vadd.i32 q0, q0, q6\n" "vadd.i32 q1, q1, q4\n" \
  "vmovlb.s16 q6, q5\n" "vmovlt.s16 q5, q5\n" "vadd.i32 q2, q2, q6\n" "vadd.i32 q3, q3, q5\n"
#define GLOW_MVE_DW_TAP(a) \
  "vldrb.8 q6, [" a "], #16\n" "vldrb.8 q7, [r9], #16\n" "vmullb.s8 q4, q6, q7\n" "vmullt.s8 q5, q6, q7\n"
#define GLOW_MVE_DW_PAIR(a, b) \
  GLOW_MVE_DW_TAP(a) \
  "vldrb.8 q6, [" b "]\n" "vldrb.8 q7, [r9], #16\n" "vmullb.s8 q6, q6, q7\n" "vadd.i16 q4, q4, q6\n" \
  "vldrb.8 q6, [" b "], #16\n" "vmullt.s8 q6, q6, q7\n" "vadd.i16 q5, q5, q6\n" GLOW_MVE_DW_WIDEN
#define GLOW_MVE_DW_BIAS \
  "vldrw.32 q0, [r9], #16\n" "vldrw.32 q1, [r9], #16\n" "vldrw.32 q2, [r9], #16\n" "vldrw.32 q3, [r9], #16\n"
/* q0 .. q3 to bytes in q0, by way of r11 */
#define GLOW_MVE_DW_CODES \
  "vldrw.32 q4, [r9], #16\n" "vcvt.f32.s32 q0, q0\n" "vldrw.32 q5, [r9], #16\n" "vcvt.f32.s32 q1, q1\n" \
  "vldrw.32 q6, [r9], #16\n" "vcvt.f32.s32 q2, q2\n" "vldrw.32 q7, [r9], #16\n" "vcvt.f32.s32 q3, q3\n" \
  "ldr r11, [r12, #32]\n" \
  "vmul.f32 q0, q0, q4\n" "vmul.f32 q1, q1, q5\n" "vmul.f32 q2, q2, q6\n" "vmul.f32 q3, q3, q7\n" \
  "vcvtn.s32.f32 q0, q0\n" "vcvtn.s32.f32 q1, q1\n" "vcvtn.s32.f32 q2, q2\n" "vcvtn.s32.f32 q3, q3\n" \
  "vqmovnb.s32 q0, q0\n" "vqmovnt.s32 q0, q1\n" "asrs r11, r11, #1\n" "vqmovnb.s32 q2, q2\n" "vqmovnt.s32 q2, q3\n" \
  "vqadd.s16 q0, q0, r11\n" "vqadd.s16 q2, q2, r11\n" "vqmovnb.s16 q0, q0\n" "vqmovnt.s16 q0, q2\n" \
  "bcc 9f\n" "add r11, r12, #36\n" "vldrb.8 q1, [r11], #16\n" "vldrb.8 q2, [r11]\n" \
  "vmax.s8 q0, q0, q1\n" "vmin.s8 q0, q0, q2\n" "9:\n"

/* 3x3, `count` pixels; reads 16 channels of each tap. Needs |weights| of taps 0 and 1, 2 and 3, .. of a channel to sum
 * to at most 255, so that two products fit 16 bits. */
GLOW_MVE_FUNCTION void glow_mve_dw9(GLOW_MVE_UNUSED const glow_mve_dw_t *d) {
  __asm__(
      "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "mov r12, r0\n" "ldr r9, [r12]\n" "ldm r9, {r0-r8}\n"
      "ldr r10, [r12, #12]\n" "ldr lr, [r12, #16]\n" "add lr, lr, r10\n"
      "1: ldr r9, [r12, #8]\n"
      "2:\n" GLOW_MVE_DW_BIAS
      GLOW_MVE_DW_PAIR("r0", "r1") GLOW_MVE_DW_PAIR("r2", "r3") GLOW_MVE_DW_PAIR("r4", "r5")
      GLOW_MVE_DW_PAIR("r6", "r7") GLOW_MVE_DW_TAP("r8") GLOW_MVE_DW_WIDEN
      GLOW_MVE_DW_CODES
      "sub r11, lr, r10\n" "vctp.8 r11\n" "vpst\n" "vstrbt.8 q0, [r10], #16\n" "cmp r11, #16\n" "bhi 2b\n"
      "ldr r11, [r12, #24]\n" "subs r11, r11, #1\n" "beq 4f\n" "str r11, [r12, #24]\n"
      "ldr r10, [r12, #16]\n" "sub r10, lr, r10\n" "ldr r11, [r12, #20]\n" "add r10, r10, r11\n" "add lr, lr, r11\n"
      "ldr r11, [r12, #28]\n" "cmp r11, #0\n" "beq 1b\n"
      "add r0, r0, r11\n" "add r1, r1, r11\n" "add r2, r2, r11\n" "add r3, r3, r11\n" "add r4, r4, r11\n"
      "add r5, r5, r11\n" "add r6, r6, r11\n" "add r7, r7, r11\n" "add r8, r8, r11\n" "b 1b\n"
      "4: vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n");
}

/* Any taps and weights, one pixel. */
GLOW_MVE_FUNCTION void glow_mve_dw(GLOW_MVE_UNUSED const glow_mve_dw_t *d) {
  __asm__(
      "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "mov r12, r0\n" "movs r3, #0\n" "ldr r9, [r12, #8]\n"
      "ldr r10, [r12, #12]\n" "ldr r8, [r12, #16]\n"
      "1:\n" GLOW_MVE_DW_BIAS
      "ldrd r1, r2, [r12]\n" "vctp.8 r8\n" "dls lr, r2\n"
      "2: ldr r4, [r1], #4\n" "add r4, r4, r3\n" "vpst\n" "vldrbt.8 q6, [r4]\n" "vldrb.8 q7, [r9], #16\n"
      "vmullb.s8 q4, q6, q7\n" "vmullt.s8 q5, q6, q7\n" GLOW_MVE_DW_WIDEN "le lr, 2b\n"
      GLOW_MVE_DW_CODES
      "vpst\n" "vstrbt.8 q0, [r10], #16\n" "add r3, r3, #16\n" "subs r8, r8, #16\n" "bgt 1b\n"
      "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n");
}
/* clang-format on */

GLOW_MVE_UNUSED static void glow_mve_dw_init(glow_mve_dw_t *d, const int8_t *const *taps, int32_t n, int32_t zp,
                                             int32_t low, int32_t high) {
  d->taps = taps;
  d->n = n;
  d->zp_clamp = 2 * zp + (low > -128 || high < 127 ? 1 : 0);
  vst1q_s8(d->low, vdupq_n_s8((int8_t)low));
  vst1q_s8(d->high, vdupq_n_s8((int8_t)high));
}
/* out = clamp(rne((a + half) * va + ((b + half) * vb + vc)) + zp) with fused multiply-adds; out may be a or b. */
#define GLOW_MVE_ADD(moved) \
  "wlstp.32 lr, %[n], 2f\n" \
  "1: vldrb.s32 q0, [%[b]], #4\nvldrb.s32 q1, [%[a]], #4\n" moved "vcvt.f32.s32 q0, q0\nvmov q2, %q[start]\n" \
  "vfma.f32 q2, q0, %[vb]\nvcvt.f32.s32 q1, q1\nvfma.f32 q2, q1, %[va]\nvcvtn.s32.f32 q2, q2\n" \
  "vqadd.s32 q2, q2, %[zp]\nvmax.s32 q2, q2, %q[least]\nvmin.s32 q2, q2, %q[most]\nvstrb.32 q2, [%[out]], #4\n" \
  "letp lr, 1b\n2:"
static inline void glow_mve_add(const int8_t *a, const int8_t *b, int8_t *out, int32_t n, int32_t half, float va,
                                float vb, float vc, int32_t zp, int32_t low, int32_t high) {
  int32_t factor_a;
  int32_t factor_b;
  memcpy(&factor_a, &va, sizeof factor_a);
  memcpy(&factor_b, &vb, sizeof factor_b);
  const float32x4_t start = vdupq_n_f32(vc);
  const int32x4_t least = vdupq_n_s32(low);
  const int32x4_t most = vdupq_n_s32(high);
  if (half == 0) {
    __asm__ volatile(GLOW_MVE_ADD("")
                     : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)
                     : [n] "r"(n), [va] "r"(factor_a), [vb] "r"(factor_b), [zp] "r"(zp), [start] "w"(start),
                       [least] "w"(least), [most] "w"(most)
                     : "lr", "q0", "q1", "q2", "cc", "memory");
  } else {
    const int32x4_t halves = vdupq_n_s32(half);
    __asm__ volatile(GLOW_MVE_ADD("vadd.i32 q0, q0, %q[halves]\nvadd.i32 q1, q1, %q[halves]\n")
                     : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)
                     : [n] "r"(n), [va] "r"(factor_a), [vb] "r"(factor_b), [zp] "r"(zp), [halves] "w"(halves),
                       [start] "w"(start), [least] "w"(least), [most] "w"(most)
                     : "lr", "q0", "q1", "q2", "cc", "memory");
  }
}

typedef struct {
  int32_t n;
  int32_t a_zp; /* the assembly knows the offsets from here to `sy` */
  int32_t b_zp;
  float sa;
  float sb;
  float r; /* 1 / sy, rounded */
  float minus_sy;
  int32_t zp;
  int32_t low;
  int32_t high;
} glow_mve_sum_t;

/* out = clamp(rne(((a - a_zp) * sa + (b - b_zp) * sb) / sy) + zp). The quotient is rounded correctly: two Newton steps
 * with fused remainders bring x * (1 / sy) there. */
GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_add_exact(const int8_t *a, const int8_t *b, int8_t *out,
                                                                        const glow_mve_sum_t *s) {
  __asm__ volatile(
      "ldr r4, [%[s], #28]\nldr r5, [%[s], #32]\nvdup.32 q4, r5\nldr r5, [%[s], #36]\nvdup.32 q5, r5\n"
      "ldrd r5, r6, [%[s], #20]\nldrd r8, r9, [%[s], #4]\nldrd r10, r12, [%[s], #12]\nldr lr, [%[s]]\n"
      "wlstp.32 lr, lr, 2f\n"
      "1: vldrb.s32 q0, [%[a]], #4\nvldrb.s32 q1, [%[b]], #4\nvsub.i32 q0, q0, r8\nvsub.i32 q1, q1, r9\n"
      "vcvt.f32.s32 q0, q0\nvcvt.f32.s32 q1, q1\nvmul.f32 q0, q0, r10\nvmul.f32 q1, q1, r12\nvadd.f32 q0, q0, q1\n"
      "vmul.f32 q1, q0, r5\nvmov q2, q0\nvfma.f32 q2, q1, r6\nvfma.f32 q1, q2, r5\nvfma.f32 q0, q1, r6\n"
      "vfma.f32 q1, q0, r5\nvcvtn.s32.f32 q1, q1\n"
      "vqadd.s32 q1, q1, r4\nvmax.s32 q1, q1, q4\nvmin.s32 q1, q1, q5\nvstrb.32 q1, [%[out]], #4\n"
      "letp lr, 1b\n2:"
      : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)
      : [s] "r"(s)
      : "r4", "r5", "r6", "r8", "r9", "r10", "r12", "lr", "q0", "q1", "q2", "q4", "q5", "cc", "memory");
}
/* The positions [first, end) of a window of `count` that starts at `from` and lie in [0, size). */
typedef struct {
  int32_t first;
  int32_t end;
} glow_mve_range_t;

static inline glow_mve_range_t glow_mve_range(int32_t from, int32_t count, int32_t dilation, int32_t size) {
  glow_mve_range_t r = {0, 0};
  while (r.first < count && from + r.first * dilation < 0) {
    r.first++;
  }
  r.end = r.first;
  while (r.end < count && from + r.end * dilation < size) {
    r.end++;
  }
  return r;
}

/* sum + `count` times 8 codes `step` bytes apart, of which `lanes` count. */
static inline int16x8_t glow_mve_sum(int16x8_t sum, const int8_t *p, int32_t step, int32_t count, int32_t lanes) {
  __asm__ volatile("vctp.16 %[lanes]\nwls lr, %[count], 2f\n1: vpst\nvldrbt.s16 q0, [%[p]]\nadd %[p], %[p], %[step]\n"
                   "vadd.i16 %q[sum], %q[sum], q0\nle lr, 1b\n2:"
                   : [sum] "+w"(sum), [p] "+l"(p)
                   : [lanes] "r"(lanes), [count] "r"(count), [step] "r"(step)
                   : "lr", "q0", "cc", "memory");
  return sum;
}

/* max, and 16 codes `count` times. */
static inline int8x16_t glow_mve_max(int8x16_t best, const int8_t *p, int32_t step, int32_t count, int32_t lanes) {
  __asm__ volatile("vctp.8 %[lanes]\nwls lr, %[count], 2f\n1: vpst\nvldrbt.8 q0, [%[p]]\nadd %[p], %[p], %[step]\n"
                   "vpst\nvmaxt.s8 %q[best], %q[best], q0\nle lr, 1b\n2:"
                   : [best] "+w"(best), [p] "+l"(p)
                   : [lanes] "r"(lanes), [count] "r"(count), [step] "r"(step)
                   : "lr", "q0", "cc", "memory");
  return best;
}

static inline void glow_mve_store(int8_t *out, int8x16_t codes, int32_t lanes) {
  __asm__ volatile("vctp.8 %[lanes]\nvpst\nvstrbt.8 %q[codes], [%[out]]"
                   :
                   : [lanes] "r"(lanes), [codes] "w"(codes), [out] "r"(out)
                   : "cc", "memory");
}

typedef struct {
  float scale;
  int32_t zp;
  int32_t low;
  int32_t high;
} glow_mve_codes_t;

static inline int32x4_t glow_mve_codes(int32x4_t acc, const glow_mve_codes_t *q) {
  const int32x4_t rounded = vcvtnq_s32_f32(vmulq_n_f32(vcvtq_f32_s32(acc), q->scale));
  const int32x4_t code = vqaddq_n_s32(rounded, q->zp);
  return vminq_s32(vmaxq_s32(code, vdupq_n_s32(q->low)), vdupq_n_s32(q->high));
}

/* Stores `lanes` codes of sums whose even channels are in `even`. */
static inline void glow_mve_store_codes(int8_t *out, int32x4_t even, int32x4_t odd, const glow_mve_codes_t *q,
                                        int32_t lanes) {
  int16x8_t both = vreinterpretq_s16_s32(glow_mve_codes(even, q));
  both = vmovntq_s32(both, glow_mve_codes(odd, q));
  __asm__ volatile("vctp.16 %[lanes]\nvpst\nvstrbt.16 %q[both], [%[out]]"
                   :
                   : [lanes] "r"(lanes), [both] "w"(both), [out] "l"(out)
                   : "cc", "memory");
}

/* out[i] = in[i] ^ 0x80 */
static inline void glow_mve_flip(const void *in, void *out, int32_t n) {
  const uint8x16_t sign = vdupq_n_u8(0x80u);
  __asm__ volatile("wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[in]], #16\nveor q0, q0, %q[sign]\n"
                   "vstrb.8 q0, [%[out]], #16\nletp lr, 1b\n2:"
                   : [in] "+l"(in), [out] "+l"(out)
                   : [n] "r"(n), [sign] "w"(sign)
                   : "lr", "q0", "cc", "memory");
}

/* out[i] = lut[in[i] + 128] */
static inline void glow_mve_lut(const int8_t *in, const int8_t *lut, int8_t *out, int32_t n) {
  const uint8x16_t sign = vdupq_n_u8(0x80u);
  __asm__ volatile("wlstp.8 lr, %[n], 2f\n1: vldrb.8 q0, [%[in]], #16\nveor q0, q0, %q[sign]\n"
                   "vldrb.u8 q1, [%[lut], q0]\nvstrb.8 q1, [%[out]], #16\nletp lr, 1b\n2:"
                   : [in] "+l"(in), [out] "+l"(out)
                   : [n] "r"(n), [lut] "r"(lut), [sign] "w"(sign)
                   : "lr", "q0", "q1", "cc", "memory");
}

/* out[i] = (float)(in[i] - zp) * scale */
#define GLOW_MVE_DEQUANTIZE(load, size) \
  "wlstp.32 lr, %[n], 2f\n1: " load " q0, [%[in]], #" size "\nvsub.i32 q0, q0, %[zp]\nvcvt.f32.s32 q0, q0\n" \
  "vmul.f32 q0, q0, %[scale]\nvstrw.32 q0, [%[out]], #16\nletp lr, 1b\n2:"
static inline void glow_mve_dequantize(const void *in, int is_signed, float *out, int32_t n, int32_t zp, float scale) {
  int32_t factor;
  memcpy(&factor, &scale, sizeof factor);
  if (is_signed != 0) {
    __asm__ volatile(GLOW_MVE_DEQUANTIZE("vldrb.s32", "4")
                     : [in] "+l"(in), [out] "+r"(out)
                     : [n] "r"(n), [zp] "r"(zp), [scale] "r"(factor)
                     : "lr", "q0", "cc", "memory");
  } else {
    __asm__ volatile(GLOW_MVE_DEQUANTIZE("vldrb.u32", "4")
                     : [in] "+l"(in), [out] "+r"(out)
                     : [n] "r"(n), [zp] "r"(zp), [scale] "r"(factor)
                     : "lr", "q0", "cc", "memory");
  }
}
#endif

#endif
