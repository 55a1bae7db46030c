/* SPDX-License-Identifier: MIT-0 */
/* Matrix products by VMLADAVA (MVE).
 *
 * They read their constants as one stream of groups of four output channels. With the inputs of a pixel
 * in `segments` of `blocks` times 16 and `tail` more bytes, a group is, segment by segment: per block 4 x 16 weights,
 * then 4 x tail weights; at the end 4 biases (zero point of the input inside) and 4 scales. A run of inputs is
 * multiplied by following a list of steps: each says where the inputs of two pixels are and which code takes
 * them; LDM loads all of it and jumps. Accumulators are in even registers, as VMLADAVA wants them. Between steps q2
 * holds the 16 bytes of the stream at r5, so that loads and products take turns from one block to the next.
 *
 * Layers may end as those of TensorFlow Lite: by a multiplier and a shift (glow_q31.h). Then 4 multipliers stand in place of
 * the scales, and after them 4 bytes, the shifts. VQRDMULH gives the upper half of twice the product, rounded half up. VRSHL
 * by a negative number of places rounds half up again, which is half away from zero after one was taken from what is negative
 * (fixed); where no code is below the zero point, that makes no difference (rectified).
 */
#ifndef GLOW_MVE_DOT_H
#define GLOW_MVE_DOT_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve.h"

enum { GLOW_MVE_SEGMENTS = 7 }; /* of a pixel: most rows of a kernel */
#define GLOW_MVE_STEP_BYTES 16

typedef struct {
  const void *x0;
  const void *x1;
  int32_t rounds; /* of four blocks, but the first; tail: bytes; end: zero point of the output */
  uint32_t code;
} glow_mve_step_t;
GLOW_AT(glow_mve_step_t, x0, 0); GLOW_AT(glow_mve_step_t, x1, 4); GLOW_AT(glow_mve_step_t, rounds, 8);
GLOW_AT(glow_mve_step_t, code, 12); GLOW_SIZE(glow_mve_step_t, GLOW_MVE_STEP_BYTES);

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
  const void *last_biases; /* where those of the last group are */
  int32_t segments, blocks, tail, out_c, zp;
  int32_t apart; /* the pixels of a pair that `places` is for */
} glow_mve_dot_t;
GLOW_AT(glow_mve_dot_t, list, 0); GLOW_AT(glow_mve_dot_t, again, 4); GLOW_AT(glow_mve_dot_t, count, 8);
GLOW_AT(glow_mve_dot_t, used, 12); GLOW_AT(glow_mve_dot_t, out, 16); GLOW_AT(glow_mve_dot_t, out_step, 20);
GLOW_AT(glow_mve_dot_t, stream, 24); GLOW_AT(glow_mve_dot_t, last, 28); GLOW_AT(glow_mve_dot_t, x_step, 32);
GLOW_AT(glow_mve_dot_t, low, 36); GLOW_AT(glow_mve_dot_t, high, 40); GLOW_AT(glow_mve_dot_t, places, 44);

/* Places in the table of code addresses, where the assembly puts them by these numbers. */
#define GLOW_MVE_FIRST 0
#define GLOW_MVE_BLOCKS 1 /* 4, 3, 2, 1 at first, by fours from then on */
#define GLOW_MVE_FEW 5 /* 4, 3, 2, 1, where there are no more */
#define GLOW_MVE_TAIL 9
#define GLOW_MVE_FIRST_TAIL 10
#define GLOW_MVE_END 11
#define GLOW_MVE_END_FIRST 12 /* then the first step of the next group, if there is one */
#define GLOW_MVE_KEEP 13 /* loads at most 16 inputs, to be used by all groups: the next step says by how many weights */
#define GLOW_MVE_KEPT_16 14
#define GLOW_MVE_KEPT_8 15

#define GLOW_MVE_CODE(n, place, label) ".org .Lglow_mve_table" n " + 4 * (" GLOW_TEXT(place) ")\n" ".word " label "f+1\n"
#define GLOW_MVE_NEXT "ldmia r9!, {r1, r3, r7, pc}\n"
/* Begin: `d` in r0 (NULL: return the table); `few`: what labels of few blocks begin with. After the last group: next
 * pixels. */
#define GLOW_MVE_BEGIN(n, few, more, to) \
  "cbnz r0, 1f\n" "adr r0, .Lglow_mve_table" n "\n" "bx lr\n" \
  ".balign 4\n" ".Lglow_mve_table" n ":\n" \
  GLOW_MVE_CODE(n, GLOW_MVE_FIRST, "11") \
  GLOW_MVE_CODE(n, GLOW_MVE_BLOCKS, "14") GLOW_MVE_CODE(n, GLOW_MVE_BLOCKS + 1, "13") \
  GLOW_MVE_CODE(n, GLOW_MVE_BLOCKS + 2, "12") GLOW_MVE_CODE(n, GLOW_MVE_BLOCKS + 3, "15") \
  GLOW_MVE_CODE(n, GLOW_MVE_FEW, few "4") GLOW_MVE_CODE(n, GLOW_MVE_FEW + 1, few "3") \
  GLOW_MVE_CODE(n, GLOW_MVE_FEW + 2, few "2") GLOW_MVE_CODE(n, GLOW_MVE_FEW + 3, few "5") \
  GLOW_MVE_CODE(n, GLOW_MVE_TAIL, "16") GLOW_MVE_CODE(n, GLOW_MVE_FIRST_TAIL, "17") \
  GLOW_MVE_CODE(n, GLOW_MVE_END, "18") GLOW_MVE_CODE(n, GLOW_MVE_END_FIRST, "20") more \
  "1: push {r3-r11, lr}\n" "vpush {d8-d15}\n" \
  "ldrd r1, r2, [r0, #36]\n" "vdup.16 q6, r1\n" "vdup.16 q7, r2\n" "vldrh.16 q5, [r0, #44]\n" "mov r1, r0\n" \
  "2: ldr r9, [r1]\n" "ldr r5, [r1, #24]\n" "ldr " to ", [r1, #16]\n" \
  "vldrb.8 q2, [r5]\n" GLOW_MVE_NEXT
#define GLOW_MVE_ADVANCE \
  "ldrd r2, r0, [r1, #8]\n" "subs r2, r2, #1\n" "beq 4f\n" "str r2, [r1, #8]\n" \
  "ldrd r4, r6, [r1, #16]\n" "ldr r8, [r1, #32]\n" "vmov.i32 q0, #0\n" "add r4, r4, r6\n" "str r4, [r1, #16]\n" \
  "ldr r9, [r1]\n" "vmov d0, r8, r8\n" "dls lr, r0\n" \
  "3: vldrw.32 q2, [r9]\n" "vadd.i32 q2, q2, q0\n" "vstrw.32 q2, [r9], #" GLOW_TEXT(GLOW_MVE_STEP_BYTES) "\n" \
  "le lr, 3b\n" \
  "b 2b\n" \
  "4: vpop {d8-d15}\n" "pop {r3-r11, pc}\n"

/* Two pixels, `count` times; returns the table of code addresses for NULL. `numbers`: bytes of a group's biases and ends. 16
 * inputs that begin the sums (first) and others (block), fewer (first_tail, tail), 16 and 8 that all groups use; `next`: the
 * codes of a group and the first step of the next one, `last`: the codes in q3 (glowc/kernels/mve/dot_tile.py). */
#define GLOW_MVE_DOT_PAIR(numbers, n, first, block, first_tail, tail, kept_16, kept_8, next, last) \
      GLOW_MVE_BEGIN(n, "3", GLOW_MVE_CODE(n, GLOW_MVE_KEEP, "21") GLOW_MVE_CODE(n, GLOW_MVE_KEPT_16, "22") \
                     GLOW_MVE_CODE(n, GLOW_MVE_KEPT_8, "23"), "r11") \
      GLOW_MVE_STEPS(first, block, first_tail, tail) \
      "34: " block "33: " block "32: " block "35: " block GLOW_MVE_NEXT \
      "21: vctp.8 r7\n" "vpstt\n" "vldrbt.8 q0, [r1]\n" "vldrbt.8 q1, [r3]\n" GLOW_MVE_NEXT \
      "22: " kept_16 GLOW_MVE_NEXT "23: " kept_8 GLOW_MVE_NEXT \
      "20: cmp r5, r3\n" "beq 18f\n" next GLOW_MVE_NEXT \
      "18: cmp r5, r3\n" last "beq 19f\n" "vstrb.16 q3, [r11, q5]\n" "vldrb.8 q2, [r5, #" numbers "]!\n" \
      "add r11, r11, #4\n" "ldr r9, [r1, #4]\n" GLOW_MVE_NEXT \
      "19: ldr r0, [r1, #28]\n" "vctp.16 r0\n" "vpst\n" "vstrbt.16 q3, [r11, q5]\n" GLOW_MVE_ADVANCE
#define GLOW_MVE_STEPS(first, block, first_tail, tail) \
      "11: " first GLOW_MVE_NEXT \
      "14: " block "13: " block "12: " block "15: subs r7, r7, #1\n" block "bpl 14b\n" GLOW_MVE_NEXT \
      "16: " tail GLOW_MVE_NEXT "17: " first_tail GLOW_MVE_NEXT
/* The same of one pixel. */
#define GLOW_MVE_DOT_ONE(numbers, n, first, block, first_tail, tail, next, last) \
      GLOW_MVE_BEGIN(n, "1", "", "r4") GLOW_MVE_STEPS(first, block, first_tail, tail) \
      "20: cmp r5, r3\n" "beq 18f\n" next GLOW_MVE_NEXT \
      "18: cmp r5, r3\n" last "beq 19f\n" "vldrb.8 q2, [r5, #" numbers "]!\n" "vstrb.32 q3, [r4], #4\n" \
      "ldr r9, [r1, #4]\n" GLOW_MVE_NEXT \
      "19: ldr r0, [r1, #28]\n" "vctp.32 r0\n" "vpst\n" "vstrbt.32 q3, [r4]\n" GLOW_MVE_ADVANCE

/* Where all channels have one scale, it is not in the stream, but in `places`, which only pairs of pixels need. */
GLOW_INLINE void glow_mve_dot_scale(glow_mve_dot_t *d, float scale) {
  vst1q_u16(d->places, vreinterpretq_u16_f32(vdupq_n_f32(scale)));
}

/* A function for two pixels or for one. */
typedef const uint32_t *glow_mve_dot_fn(glow_mve_dot_t *);

/* Says what the stream holds: out_c channels of `segments` times `bytes` inputs; `numbers` bytes of a group are its biases
 * and ends. */
GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_dot_init(glow_mve_dot_t *d, const void *stream, int32_t numbers, int32_t out_c,
                                              int32_t segments, int32_t bytes, int32_t zp, int32_t low, int32_t high) {
  d->stream = stream;
  d->last_biases = (const int8_t *)stream + (out_c + 3) / 4 * (4 * segments * bytes + numbers) - numbers;
  d->segments = segments;
  d->blocks = bytes / 16;
  d->tail = bytes % 16;
  d->out_c = out_c;
  d->zp = zp;
  d->low = low;
  d->high = high;
  d->apart = -1;
}

/* Writes at most 2 * segments + 2 steps, or 3 * segments + 1 when there is a tail: segment s of the first pixel `at`
 * bytes after rows[s], of the second `apart` bytes after that. Returns where the groups begin but the first. */
GLOW_INLINE glow_mve_step_t *glow_mve_dot_steps(glow_mve_dot_t *d, glow_mve_step_t *list, const uint32_t *code,
                                                  const int8_t *const *rows, int32_t at, int32_t apart, int pair) {
  const int32_t bytes = d->blocks * 16 + d->tail;
  const int32_t is_kept = pair != 0 && d->segments == 1 && (bytes == 16 || bytes == 8);
  const int32_t last = d->blocks != 0 && !is_kept ? GLOW_MVE_END_FIRST : GLOW_MVE_END;
  glow_mve_step_t *step = list;
  if (is_kept) {
    *step++ = (glow_mve_step_t){rows[0] + at, rows[0] + at + apart, d->blocks != 0 ? 16 : 8, code[GLOW_MVE_KEEP]};
    *step++ = (glow_mve_step_t){NULL, NULL, 0, code[d->blocks != 0 ? GLOW_MVE_KEPT_16 : GLOW_MVE_KEPT_8]};
    list++;
  } else {
    for (int32_t s = 0; s < d->segments; s++) {
      const int8_t *x = rows[s] + at;
      int32_t blocks = d->blocks;
      if (s == 0 && blocks != 0) {
        *step++ = (glow_mve_step_t){x, x + apart, 0, code[GLOW_MVE_FIRST]};
        x += 16;
        blocks--;
      }
      if (blocks != 0) {
        const int32_t place = blocks <= 4 ? GLOW_MVE_FEW : GLOW_MVE_BLOCKS;
        *step++ = (glow_mve_step_t){x, x + apart, (blocks - 1) / 4, code[place + (-blocks & 3)]};
        x += blocks * 16;
      }
      if (d->tail != 0) {
        const int32_t first = s == 0 && d->blocks == 0;
        *step++ = (glow_mve_step_t){x, x + apart, d->tail, code[first != 0 ? GLOW_MVE_FIRST_TAIL : GLOW_MVE_TAIL]};
      }
    }
  }
  *step = (glow_mve_step_t){d, d->last_biases, d->zp, code[last]};
  d->used = (int32_t)(step - list);
  return list;
}

/* Results of the second pixel of a pair go `apart` bytes after those of the first. */
GLOW_INLINE void glow_mve_dot_places(glow_mve_dot_t *d, int32_t apart) {
  if (apart != d->apart) {
    const uint16x8_t index = glow_mve_index16();
    const uint16x8_t second = vandq_u16(index, vdupq_n_u16(1u));
    vst1q_u16(d->places, vmlaq_n_u16(vshrq_n_u16(index, 1), second, (uint16_t)apart));
    d->apart = apart;
  }
}

/* Steps for pixels that lie in a buffer, written once and followed by glow_mve_dot_two or glow_mve_dot_one: at most 3
 * when the segments have no tail. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static glow_mve_step_t *glow_mve_dot_fix(glow_mve_dot_fn *two, glow_mve_dot_fn *one,
                                                                                  glow_mve_dot_t *d,
                                                                                  glow_mve_step_t *list,
                                                                                  const int8_t *at, int32_t bytes,
                                                                                  int32_t apart, int pair) {
  const int8_t *rows[GLOW_MVE_SEGMENTS];
  const int32_t segments = d->segments;
  const int32_t blocks = d->blocks;
  for (int32_t s = 0; s < segments; s++) {
    rows[s] = at + s * bytes;
  }
  if (d->tail == 0) {
    d->segments = 1;
    d->blocks = segments * blocks;
  }
  list = glow_mve_dot_steps(d, list, pair != 0 ? two(NULL) : one(NULL), rows, 0, apart, pair);
  d->segments = segments;
  d->blocks = blocks;
  return list;
}

GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_dot_two(glow_mve_dot_fn *two, glow_mve_dot_t *d,
                                                      glow_mve_step_t *list, glow_mve_step_t *again, int8_t *out,
                                                      int32_t apart) {
  d->list = list;
  d->again = again;
  d->out = out;
  d->count = 1;
  d->last = 2 * ((d->out_c + 3) % 4 + 1);
  glow_mve_dot_places(d, apart);
  (void)two(d);
}

GLOW_HOT GLOW_MVE_UNUSED static void glow_mve_dot_one(glow_mve_dot_fn *one, glow_mve_dot_t *d,
                                                      glow_mve_step_t *list, int8_t *out) {
  d->list = list;
  d->again = list;
  d->out = out;
  d->count = 1;
  d->last = (d->out_c + 3) % 4 + 1;
  (void)one(d);
}

/* `count` pixels in a row: the inputs of the next one are x_step bytes after, its outputs out_step bytes. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dot_row(glow_mve_dot_fn *two, glow_mve_dot_fn *one,
                                                                      glow_mve_dot_t *d, glow_mve_step_t *list,
                                                                      const int8_t *const *rows, int32_t x_step,
                                                                      int8_t *out, int32_t out_step, int32_t count) {
  const int32_t rest = (d->out_c + 3) % 4 + 1;
  d->list = list;
  d->out = out;
  if (count > 1) {
    glow_mve_dot_places(d, out_step);
    d->again = glow_mve_dot_steps(d, list, two(NULL), rows, 0, x_step, 1);
    d->used += (int32_t)(d->again - list);
    d->count = count / 2;
    d->out_step = 2 * out_step;
    d->x_step = 2 * x_step;
    d->last = 2 * rest;
    (void)two(d);
  }
  if ((count & 1) != 0) {
    d->again = glow_mve_dot_steps(d, list, one(NULL), rows, (count - 1) * x_step, 0, 0);
    d->out = out + (count - 1) * out_step;
    d->count = 1;
    d->last = rest;
    (void)one(d);
  }
}

/* One pixel, or row, whose inputs are rows[0]. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dot_alone(glow_mve_dot_fn *one, glow_mve_dot_t *d,
                                                                        glow_mve_step_t *list,
                                                                        const int8_t *const *rows, int8_t *out) {
  d->list = list;
  d->out = out;
  d->again = glow_mve_dot_steps(d, list, one(NULL), rows, 0, 0, 0);
  d->count = 1;
  d->last = (d->out_c + 3) % 4 + 1;
  (void)one(d);
}

/* Pixels whose inputs are copied: two of them are multiplied together, wherever their results go. */
typedef struct {
  glow_mve_dot_t *dot;
  glow_mve_step_t *list;  /* of a pair, if `again` says so: 4, or 3 * segments + 2 when there is a tail */
  glow_mve_step_t *again; /* NULL: to be written */
  int8_t *pixels;
  int32_t pitch;
  int32_t bytes; /* of a segment */
  int8_t *out[2];
  int32_t held;
} glow_mve_pairs_t;

/* Multiplies what is held. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_pairs_flush(glow_mve_dot_fn *two, glow_mve_dot_fn *one,
                                                                          glow_mve_pairs_t *p) {
  if (p->held == 2) {
    if (p->again == NULL) {
      p->again = glow_mve_dot_fix(two, one, p->dot, p->list, p->pixels, p->bytes, p->pitch, 1);
    }
    glow_mve_dot_two(two, p->dot, p->list, p->again, p->out[0], (int32_t)(p->out[1] - p->out[0]));
  } else if (p->held == 1) {
    (void)glow_mve_dot_fix(two, one, p->dot, p->list, p->pixels, p->bytes, 0, 0);
    p->again = NULL;
    glow_mve_dot_one(one, p->dot, p->list, p->out[0]);
  }
  p->held = 0;
}

/* Returns where the inputs of the pixel go whose results go to `out`; multiplies two before them. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static int8_t *glow_mve_pairs_next(glow_mve_dot_fn *two, glow_mve_dot_fn *one,
                                                                            glow_mve_pairs_t *p, int8_t *out) {
  if (p->held == 2 || (p->held == 1 && (out < p->out[0] || out - p->out[0] >= 1 << 15))) {
    glow_mve_pairs_flush(two, one, p);
  }
  p->out[p->held] = out;
  return p->pixels + p->held++ * p->pitch;
}

#endif

#endif
