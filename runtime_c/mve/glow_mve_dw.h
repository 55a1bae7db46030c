/* SPDX-License-Identifier: MIT-0 */
/* Depthwise convolution of adjacent channels, 16 at a time (MVE): any window. Biases and scales are in the order of
 * glow_mve_dw_nine.h. */
#ifndef GLOW_MVE_DW_H
#define GLOW_MVE_DW_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_dw_nine.h"

/* q0 .. q3 times the scales q4 .. q7, which the texts `a` .. `d` load, to bytes in q0; zp: a register. Loads alternate
 * with conversions and products: each works while the other's result is on its way. */
#define GLOW_MVE_DW_CODES(a, b, c, d, zp, clamp) \
  "vcvt.f32.s32 q0, q0\n" a "vcvt.f32.s32 q1, q1\n" b "vmul.f32 q0, q0, q4\n" c "vcvt.f32.s32 q2, q2\n" d \
  "vmul.f32 q1, q1, q5\n" "vcvt.f32.s32 q3, q3\n" "vmul.f32 q2, q2, q6\n" "vcvtn.s32.f32 q0, q0\n" \
  "vmul.f32 q3, q3, q7\n" "vcvtn.s32.f32 q1, q1\n" "vqmovnb.s32 q0, q0\n" "vcvtn.s32.f32 q2, q2\n" \
  "vqmovnt.s32 q0, q1\n" "vcvtn.s32.f32 q3, q3\n" "vqmovnb.s32 q2, q2\n" "vqadd.s16 q0, q0, " zp "\n" \
  "vqmovnt.s32 q2, q3\n" "vqmovnb.s16 q0, q0\n" "vqadd.s16 q2, q2, " zp "\n" "vqmovnt.s16 q0, q2\n" clamp
#define GLOW_MVE_DW_CLAMP \
  "vldrb.8 q1, [r12, #0]\n" "vldrb.8 q2, [r12, #16]\n" "vmax.s8 q0, q0, q1\n" "vmin.s8 q0, q0, q2\n"

/* products of 16 bits in q4, q5 to the sums q0 .. q3, by way of q6 */
#define GLOW_MVE_DW_WIDEN \
  "vmovlb.s16 q6, q4\n" "vmovlt.s16 q4, q4\n" "vadd.i32 q0, q0, q6\n" "vadd.i32 q1, q1, q4\n" \
  "vmovlb.s16 q6, q5\n" "vmovlt.s16 q5, q5\n" "vadd.i32 q2, q2, q6\n" "vadd.i32 q3, q3, q5\n"
/* Any kernel. The constants: per 16 channels 16 biases, for kernels that gather 16 numbers of channels of the input, 16
 * weights per tap, 16 scales (glow_mve_dw_q31.h: others). The assembly knows the offsets. */
typedef struct {
  int8_t low[16];            /* 0 */
  int8_t high[16];           /* 16 */
  const int8_t *const *rows; /* 32: NULL: outside of the image */
  int32_t row_count;         /* 36 */
  int32_t left;              /* 40: bytes from the begin of a row to the window */
  int32_t row_bytes;         /* 44: of the image */
  int32_t columns;           /* 48: of the kernel */
  int32_t column_step;       /* 52 */
  const int8_t *zeros;       /* 56 */
  const int8_t *stream;      /* 60 */
  int8_t *out;               /* 64 */
  int32_t channels;          /* 68 */
  int32_t zp;                /* 72 */
  int32_t pixels;            /* 76 */
  int32_t pixel_step;        /* 80 */
  int32_t neg_w_zp;          /* 84: of kernels for weights with a zero point */
} glow_mve_dw_t;
GLOW_AT(glow_mve_dw_t, low, 0); GLOW_AT(glow_mve_dw_t, high, 16); GLOW_AT(glow_mve_dw_t, rows, 32);
GLOW_AT(glow_mve_dw_t, row_count, 36); GLOW_AT(glow_mve_dw_t, left, 40); GLOW_AT(glow_mve_dw_t, row_bytes, 44);
GLOW_AT(glow_mve_dw_t, columns, 48); GLOW_AT(glow_mve_dw_t, column_step, 52); GLOW_AT(glow_mve_dw_t, zeros, 56);
GLOW_AT(glow_mve_dw_t, stream, 60); GLOW_AT(glow_mve_dw_t, out, 64); GLOW_AT(glow_mve_dw_t, channels, 68);
GLOW_AT(glow_mve_dw_t, zp, 72); GLOW_AT(glow_mve_dw_t, pixels, 76); GLOW_AT(glow_mve_dw_t, pixel_step, 80);
GLOW_AT(glow_mve_dw_t, neg_w_zp, 84);

#define GLOW_MVE_DW(begin, row, taps, block, codes) \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "mov r12, r0\n" "ldr r2, [r12, #52]\n" "ldr r10, [r12, #64]\n" \
  "1: ldr r9, [r12, #60]\n" "ldr r8, [r12, #68]\n" "ldr r0, [r12, #56]\n" "movs r3, #0\n" \
  "2: vldrw.32 q0, [r9], #16\n" "vldrw.32 q1, [r9], #16\n" "vldrw.32 q2, [r9], #16\n" "vldrw.32 q3, [r9], #16\n" \
  begin "vctp.8 r8\n" "ldrd r1, r11, [r12, #32]\n" \
  "3: ldr r4, [r1], #4\n" "ldrd r5, r6, [r12, #40]\n" "cmp r4, #0\n" "it eq\n" "moveq r6, #0\n" row \
  "ldr r7, [r12, #48]\n" "dls lr, r7\n" \
  taps "subs r11, r11, #1\n" "bne 3b\n" \
  "ldr lr, [r12, #72]\n" codes \
  "vpst\n" "vstrbt.8 q0, [r10]\n" "cmp r8, #16\n" "ite lt\n" "addlt r10, r10, r8\n" "addge r10, r10, #16\n" block \
  "subs r8, r8, #16\n" "bgt 2b\n" \
  "ldr r4, [r12, #40]\n" "ldrd r5, r6, [r12, #76]\n" "add r4, r4, r6\n" "str r4, [r12, #40]\n" "subs r5, r5, #1\n" \
  "str r5, [r12, #76]\n" "bne 1b\n" "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n"
/* r7: the pixel at r5, or that of zeros */
#define GLOW_MVE_DW_AT "add r7, r4, r5\n" "cmp r5, r6\n" "csel r7, r7, r0, lo\n"
#define GLOW_MVE_DW_TAPS(load, more) \
  "4: " GLOW_MVE_DW_AT load "vldrb.8 q7, [r9], #16\n" \
  "vmullb.s8 q4, q6, q7\n" "vmullt.s8 q5, q6, q7\n" more GLOW_MVE_DW_WIDEN "add r5, r5, r2\n" "le lr, 4b\n"
#define GLOW_MVE_DW_SCALED \
  GLOW_MVE_DW_CODES("vldrw.32 q4, [r9], #16\n", "vldrw.32 q5, [r9], #16\n", "vldrw.32 q6, [r9], #16\n", \
                    "vldrw.32 q7, [r9], #16\n", "lr", GLOW_MVE_DW_CLAMP)
#define GLOW_MVE_DW_BLOCKS(taps, codes) GLOW_MVE_DW("", "add r4, r4, r3\n", taps, "add r3, r3, #16\n" "add r0, r0, #16\n", codes)
#define GLOW_MVE_DW_ALIKE(more, codes) \
  GLOW_MVE_DW_BLOCKS(GLOW_MVE_DW_TAPS("vpst\n" "vldrbt.8 q6, [r7]\n", more), codes)
#define GLOW_MVE_DW_GATHERED(more, codes) \
  GLOW_MVE_DW("mov r3, r9\n" "add r9, r9, #16\n", "", \
              GLOW_MVE_DW_TAPS("vldrb.8 q7, [r3]\n" "vpst\n" "vldrbt.u8 q6, [r7, q7]\n", more), "", codes)
/* products with the weights less their zero point: they fit 16 bits */
#define GLOW_MVE_DW_OFFSET \
  "ldr r7, [r12, #84]\n" "vmovlb.s8 q7, q6\n" "vmla.s16 q4, q7, r7\n" "vmovlt.s8 q7, q6\n" "vmla.s16 q5, q7, r7\n"

/* `pixels` in a row, of as many channels as the input has, or (gathered) of more; `offset`: the weights have a zero point. */
#define GLOW_MVE_DW_FUNCTIONS(alike, alike_offset, gathered, gathered_offset, end)                                     \
  GLOW_MVE_FUNCTION void alike(GLOW_MVE_UNUSED glow_mve_dw_t *d) { __asm__(GLOW_MVE_DW_ALIKE("", end)); }              \
  GLOW_MVE_FUNCTION void alike_offset(GLOW_MVE_UNUSED glow_mve_dw_t *d) {                                              \
    __asm__(GLOW_MVE_DW_ALIKE(GLOW_MVE_DW_OFFSET, end));                                                               \
  }                                                                                                                    \
  GLOW_MVE_FUNCTION void gathered(GLOW_MVE_UNUSED glow_mve_dw_t *d) { __asm__(GLOW_MVE_DW_GATHERED("", end)); }        \
  GLOW_MVE_FUNCTION void gathered_offset(GLOW_MVE_UNUSED glow_mve_dw_t *d) {                                           \
    __asm__(GLOW_MVE_DW_GATHERED(GLOW_MVE_DW_OFFSET, end));                                                            \
  }
GLOW_MVE_DW_FUNCTIONS(glow_mve_dw, glow_mve_dw_offset, glow_mve_dw_gathered, glow_mve_dw_gathered_offset, GLOW_MVE_DW_SCALED)

GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dw_init(
    glow_mve_dw_t *d, const int8_t *stream, int32_t channels, int32_t zp, int32_t low, int32_t high) {
  vst1q_s8(d->low, vdupq_n_s8((int8_t)low));
  vst1q_s8(d->high, vdupq_n_s8((int8_t)high));
  d->stream = stream;
  d->channels = channels;
  d->zp = zp;
}

/* Windows over copies of 16 channels of the columns, next to each other. Rows outside of the image are left out: what they
 * add is in what sums begin with. The stream: as of any kernel. The assembly knows the offsets. */
typedef struct {
  int8_t low[16];        /* 0 */
  int8_t high[16];       /* 16 */
  const int8_t *x;       /* 32: the window of the first pixel */
  int32_t rows;          /* 36: of the window inside of the image; or parts of its only one */
  int32_t pitch;         /* 40: bytes from one to the next */
  const int8_t *weights; /* 44: of the first */
  const int32_t *sums;   /* 48: what sums begin with */
  const int8_t *ends;    /* 52: scales */
  int8_t *out;           /* 56 */
  int32_t pixels;        /* 60: at least 1 */
  int32_t step;          /* 64: bytes from a window to the next, or to that after it */
  int32_t channels;      /* 68: bytes from an output to the next */
  int32_t lanes;         /* 72: channels, up to 16 */
  int32_t zp;            /* 76 */
  int32_t halves;        /* 80: 1: the upper 8 of 16 channels are those of the next pixel */
} glow_mve_dw_window_t;
GLOW_AT(glow_mve_dw_window_t, low, 0); GLOW_AT(glow_mve_dw_window_t, high, 16); GLOW_AT(glow_mve_dw_window_t, x, 32);
GLOW_AT(glow_mve_dw_window_t, rows, 36); GLOW_AT(glow_mve_dw_window_t, pitch, 40);
GLOW_AT(glow_mve_dw_window_t, weights, 44); GLOW_AT(glow_mve_dw_window_t, sums, 48);
GLOW_AT(glow_mve_dw_window_t, ends, 52); GLOW_AT(glow_mve_dw_window_t, out, 56); GLOW_AT(glow_mve_dw_window_t, pixels, 60);
GLOW_AT(glow_mve_dw_window_t, step, 64); GLOW_AT(glow_mve_dw_window_t, channels, 68);
GLOW_AT(glow_mve_dw_window_t, lanes, 72); GLOW_AT(glow_mve_dw_window_t, zp, 76);
GLOW_AT(glow_mve_dw_window_t, halves, 80);

typedef void glow_mve_dw_window_fn(glow_mve_dw_window_t *);

/* `taps`: the products of a row, or of a part; `rest`: of what is left of the only one (glowc/kernels/mve/window_tile.py) */
#define GLOW_MVE_DW_WINDOW(taps, rest, codes) \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "mov r12, r0\n" "ldr r0, [r12, #32]\n" "ldrd r11, r6, [r12, #36]\n" \
  "ldrd r1, r3, [r12, #44]\n" "ldrd r4, r10, [r12, #52]\n" "ldrd r2, r8, [r12, #60]\n" "ldr r5, [r12, #72]\n" \
  "vctp.8 r5\n" \
  "1: vldrw.32 q0, [r3]\n" "mov r9, r1\n" "vldrw.32 q1, [r3, #16]\n" "mov r5, r0\n" "vldrw.32 q2, [r3, #32]\n" \
  "mov r12, #32768\n" "vldrw.32 q3, [r3, #48]\n" "wls lr, r11, 3f\n" \
  "2: mov r7, r5\n" taps "add r5, r5, r6\n" "le lr, 2b\n" \
  "3: " rest "ldr r12, [sp, #64]\n" "mov r9, r4\n" "ldr lr, [r12, #76]\n" codes \
  "vpst\n" "vstrbt.8 q0, [r10]\n" "ldr r7, [r12, #68]\n" "ldr r5, [r12, #80]\n" "add r10, r10, r7\n" "cbnz r5, 6f\n" \
  "4: add r0, r0, r8\n" "subs r2, r2, #1\n" "bne 1b\n" "5: vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n" \
  "6: subs r2, r2, #1\n" "beq 5b\n" "vmov r5, r9, d1\n" "vmov d0, r5, r9\n" "vpst\n" "vstrbt.8 q0, [r10]\n" \
  "add r10, r10, r7\n" "b 4b\n"

/* A layer of them. */
typedef struct {
  const int8_t *stream;
  int32_t block; /* bytes of the stream of 16 channels */
  int32_t k_h, k_w;
  int32_t turns, part;       /* of a window of one row: parts, and their columns */
  int32_t in_w, in_col, in_zp, stride, dilation, pad, out_w;
  int32_t pixels;            /* of a row whose columns are copied at a time */
} glow_mve_dw_windows_t;

/* What the sums of 16 channels begin with where the rows [first, first + count) of the window are inside. */
GLOW_INLINE void glow_mve_dw_outside(int32_t *sums, const glow_mve_dw_windows_t *w, const int8_t *stream, int32_t first,
                                     int32_t count) {
  int16x8_t even = vdupq_n_s16(0);
  int16x8_t odd = even;
  for (int32_t k = first > 0 ? 0 : count; k < w->k_h; k = k + 1 == first ? first + count : k + 1) {
    const int8_t *weights = stream + 64 + 16 * k * w->k_w;
    for (int32_t i = 0; i < w->k_w; i++, weights += 16) {
      even = vaddq_s16(even, vmovlbq_s8(vldrbq_s8(weights)));
      odd = vaddq_s16(odd, vmovltq_s8(vldrbq_s8(weights)));
    }
  }
  const int32_t *begin = (const int32_t *)(const void *)stream;
  vst1q_s32(sums, vmlaq_n_s32(vld1q_s32(begin), vmovlbq_s16(even), w->in_zp));
  vst1q_s32(sums + 4, vmlaq_n_s32(vld1q_s32(begin + 4), vmovltq_s16(even), w->in_zp));
  vst1q_s32(sums + 8, vmlaq_n_s32(vld1q_s32(begin + 8), vmovlbq_s16(odd), w->in_zp));
  vst1q_s32(sums + 12, vmlaq_n_s32(vld1q_s32(begin + 12), vmovltq_s16(odd), w->in_zp));
}

/* Up to 16 channels of the columns [x, x + count) of a row; `fills`: zero points where columns are outside of the image. */
GLOW_INLINE void glow_mve_dw_copy(int8_t *to, const glow_mve_dw_windows_t *w, const int8_t *row, int32_t x, int32_t count,
                                  int32_t channels, int32_t fills) {
  const int32_t first = glow_clamp(-x, 0, count);
  const int32_t last = glow_clamp(w->in_w - x, first, count);
  if (fills != 0) {
    glow_mve_fill(to, w->in_zp, 16 * first);
    glow_mve_fill(to + 16 * last, w->in_zp, 16 * (count - last));
  }
  if (first < last) {
    const int8_t *from = row + (x + first) * w->in_col;
    int8_t *next = to + 16 * first;
    __asm__ volatile("vctp.8 %4\ndls lr, %2\n1: vpstt\nvldrbt.8 q0, [%1]\nvstrbt.8 q0, [%0], #16\nadd %1, %1, %3\nle lr, 1b"
                     : "+l"(next), "+r"(from)
                     : "r"(last - first), "r"(w->in_col), "r"(channels)
                     : "lr", "q0", "cc", "memory");
  }
}

GLOW_INLINE void glow_mve_dw_window_init(glow_mve_dw_window_t *d, int32_t channels, int32_t zp, int32_t low, int32_t high) {
  vst1q_s8(d->low, vdupq_n_s8((int8_t)low));
  vst1q_s8(d->high, vdupq_n_s8((int8_t)high));
  d->channels = channels;
  d->zp = zp;
}

/* A row of the output; `rows`: NULL: outside of the image; `scratch`: 64 bytes, then those of columns that are copied. */
GLOW_HOT GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_dw_windows(
    glow_mve_dw_window_t *d, glow_mve_dw_window_fn *run, const glow_mve_dw_windows_t *w, const int8_t *const *rows,
    int8_t *out, int8_t *scratch) {
  const int32_t columns = (w->pixels - 1) * w->stride + (w->k_w - 1) * w->dilation + 1;
  const int8_t *stream = w->stream;
  int32_t first = 0;
  int32_t last = w->k_h;
  while (first < last && w->turns == 0 && rows[first] == NULL) {
    first++;
  }
  while (last > first && w->turns == 0 && rows[last - 1] == NULL) {
    last--;
  }
  d->rows = w->turns > 0 ? w->turns : last - first;
  d->pitch = w->turns > 0 ? 16 * w->dilation * w->part : 16 * columns;
  for (int32_t c = 0; c < d->channels; c += 16, stream += w->block) {
    d->lanes = d->channels - c < 16 ? d->channels - c : 16;
    d->halves = d->lanes <= 8;
    d->step = 16 * w->stride * (1 + d->halves);
    d->sums = (const int32_t *)(const void *)stream;
    d->weights = stream + 64 + 16 * first * w->k_w;
    d->ends = stream + 64 + 16 * w->k_h * w->k_w;
    if (last - first < w->k_h) {
      d->sums = (const int32_t *)(const void *)scratch;
      glow_mve_dw_outside((int32_t *)(void *)scratch, w, stream, first, last - first);
    }
    for (int32_t x = 0; x < w->out_w; x += w->pixels) {
      d->pixels = w->out_w - x < w->pixels ? w->out_w - x : w->pixels;
      d->x = scratch + 64;
      d->out = out + x * d->channels + c;
      const int32_t left = x * w->stride - w->pad;
      const int32_t count = (d->pixels - 1) * w->stride + (w->k_w - 1) * w->dilation + 1;
      int8_t *to = scratch + 64;
      for (int32_t k = first; k < last; k++, to += 16 * columns) {
        if (d->halves != 0 || rows[k] == NULL) {
          glow_mve_fill(to, w->in_zp, 16 * count);
        }
        if (rows[k] != NULL) {
          glow_mve_dw_copy(to, w, rows[k] + c, left, count, d->lanes, d->halves == 0);
        }
        if (rows[k] != NULL && d->halves != 0) {
          glow_mve_dw_copy(to + 8, w, rows[k] + c, left + w->stride, count, d->lanes, 0);
        }
      }
      run(d);
    }
  }
}

#endif

#endif
