/* 3x3 depthwise convolution by VMLADAV (MVE).
 *
 * Three rows of inputs are interleaved: a word holds what one channel has in the three rows of a column, a column is
 * 16 such words (or 8, when there are 8 channels in all). The window of a channel is then three words `dilation`
 * columns apart, which one gathering load fetches; its products with the weights in the same form are summed by one
 * VMLADAV. The fourth word of a window and the fourth byte of a word have weight 0. Four channels at a time keep their
 * weights in registers for all pixels of a row, which are taken in pairs.
 * Constants: per four channels 4 biases and 4 scales, 0 where there is no channel; then per 16 channels, or what is
 * left of them, the weights of the taps (0, 0), (1, 0), (2, 0), (0, 1), .. of all of these channels.
 */
#ifndef GLOW_MVE_PLANES_H
#define GLOW_MVE_PLANES_H

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include "glow_mve_dw.h"

enum { GLOW_MVE_PLANES_BYTES = 1024 };

/* The assembly knows the offsets of the members up to `high`. */
typedef struct {
  uint32_t w[4];     /* 0: addresses of the weights of the window's columns */
  uint32_t x[4];     /* 16: of the inputs of the pair before the first one */
  const int8_t *numbers; /* 32: biases and scales */
  int8_t *out;       /* 36 */
  int32_t pairs;     /* 40 */
  int32_t odd;       /* 44: 1: a pixel is left */
  int32_t channels;  /* 48 */
  int32_t zp;        /* 52 */
  int32_t out_step;  /* 56: of a pair */
  uint16_t places[8]; /* 60: where the results of a pair go */
  int16_t low[8];    /* 76 */
  int16_t high[8];   /* 92 */
} glow_mve_planes_run_t;

typedef void glow_mve_planes_fn(glow_mve_planes_run_t *);

typedef struct {
  const int8_t *constants;
  int32_t channels;
  int32_t in_w;
  int32_t in_col;
  int32_t in_zp;
  int32_t out_w;
  int32_t stride;
  int32_t dilation;
  int32_t pad;
  int32_t pitch;  /* bytes of a column of words */
  int32_t pixels; /* whose columns fit the buffer, even */
  int32_t from;   /* the first column of the pixels at `x` that lies in the image */
  int32_t before; /* columns that the buffer holds in front of it */
  int32_t inside; /* columns in the image */
  int32_t x;      /* -1: none */
  const int8_t *weights_begin;
  const int8_t *held; /* those that are in `weights` */
  uint32_t w[4]; /* run.w and run.x of the first four channels */
  uint32_t x_words[4];
  glow_mve_planes_run_t run;
  int8_t zeros[16];
  int8_t weights[4 * 64];
  int8_t words[GLOW_MVE_PLANES_BYTES + 64];
} glow_mve_planes_t;

/* clang-format off */
#define GLOW_MVE_PLANES_TWO(at, second, a, b, w) \
  "vldrw.u32 q0, [q2, #" at "]\n" "vmladav.s8 " a ", q0, " w "\n" \
  "vldrw.u32 q1, [q2, #" second " + " at "]\n" "vmladav.s8 " b ", q1, " w "\n"
#define GLOW_MVE_PLANES_NARROW "vqmovnb.s16 q0, q0\n"
#define GLOW_MVE_PLANES_CLAMP \
  "vldrh.16 q1, [r5, #16]\n" "vmax.s16 q0, q0, q1\n" "vldrh.16 q1, [r5, #32]\n" "vmin.s16 q0, q0, q1\n"
/* `second` is the distance of the words of two pixels: stride * pitch */
#define GLOW_MVE_PLANES_RUN(second, clamp) \
  "push {r0, r4-r11, lr}\n" "vpush {d8-d15}\n" "ldrd r7, r11, [r0, #52]\n" "add r5, r0, #60\n" \
  "1: ldr r0, [sp, #64]\n" "vldrw.32 q0, [r0]\n" "movs r2, #16\n" \
  "vldrw.u32 q4, [q0, #0]\n" "vldrw.u32 q5, [q0, #4]\n" "vldrw.u32 q6, [q0, #8]\n" "vldrw.u32 q7, [q0, #12]\n" \
  "vadd.i32 q0, q0, r2\n" "vldrw.32 q2, [r0, #16]\n" "vstrw.32 q0, [r0]\n" "vadd.i32 q1, q2, r2\n" \
  "ldrd r3, r9, [r0, #32]\n" "vstrw.32 q1, [r0, #16]\n" "add r4, r3, #32\n" "add r6, r9, #4\n" \
  "strd r4, r6, [r0, #32]\n" "ldr r4, [r0, #48]\n" "lsls r6, r4, #1\n" "vctp.16 r6\n" "subs r4, r4, #4\n" \
  "str r4, [r0, #48]\n" "ldr r1, [r0, #40]\n" "cmp r1, #0\n" "beq 3f\n" \
  "2: vldrw.u32 q0, [q2, #2 * " second "]!\n" "vmladav.s8 r0, q0, q4\n" \
  "vldrw.u32 q1, [q2, #" second "]\n" "vmladav.s8 r2, q1, q4\n" \
  GLOW_MVE_PLANES_TWO("4", second, "r4", "r6", "q5") GLOW_MVE_PLANES_TWO("8", second, "r8", "r10", "q6") \
  GLOW_MVE_PLANES_TWO("12", second, "r12", "lr", "q7") \
  "vldrw.32 q3, [r3]\n" "vmov d0, r0, r4\n" "vmov d1, r8, r12\n" "vmov d2, r2, r6\n" "vmov d3, r10, lr\n" \
  "vadd.i32 q0, q0, q3\n" "vadd.i32 q1, q1, q3\n" "vldrw.32 q3, [r3, #16]\n" \
  "vcvt.f32.s32 q0, q0\n" "vcvt.f32.s32 q1, q1\n" "vmul.f32 q0, q0, q3\n" "vmul.f32 q1, q1, q3\n" \
  "vcvtn.s32.f32 q0, q0\n" "vcvtn.s32.f32 q1, q1\n" "vqmovnb.s32 q0, q0\n" "vqmovnt.s32 q0, q1\n" \
  "vqadd.s16 q0, q0, r7\n" clamp "vldrh.16 q1, [r5]\n" "subs r1, r1, #1\n" \
  "vpst\n" "vstrbt.16 q0, [r9, q1]\n" "add r9, r9, r11\n" "bgt 2b\n" \
  "3: ldr r0, [sp, #64]\n" "ldr r4, [r0, #44]\n" "cmp r4, #0\n" "beq 4f\n" \
  "vldrw.u32 q0, [q2, #2 * " second "]!\n" "vmladav.s8 r0, q0, q4\n" \
  "vldrw.u32 q1, [q2, #4]\n" "vmladav.s8 r4, q1, q5\n" "vldrw.u32 q0, [q2, #8]\n" "vmladav.s8 r8, q0, q6\n" \
  "vldrw.u32 q1, [q2, #12]\n" "vmladav.s8 r12, q1, q7\n" "ldr r6, [sp, #64]\n" "ldr r6, [r6, #48]\n" \
  "vldrw.32 q3, [r3]\n" "vmov d0, r0, r4\n" "vmov d1, r8, r12\n" "adds r6, r6, #4\n" "vadd.i32 q0, q0, q3\n" \
  "vldrw.32 q3, [r3, #16]\n" "vcvt.f32.s32 q0, q0\n" "vmul.f32 q0, q0, q3\n" "vcvtn.s32.f32 q0, q0\n" \
  "vqmovnb.s32 q0, q0\n" "vqadd.s16 q0, q0, r7\n" "vctp.32 r6\n" clamp "mov r1, r9\n" "vpst\n" "vstrbt.32 q0, [r1]\n" \
  "4: ldr r0, [sp, #64]\n" "ldr r4, [r0, #48]\n" "cmp r4, #0\n" "bgt 1b\n" \
  "vpop {d8-d15}\n" "pop {r0, r4-r11, pc}\n"
/* clang-format on */

#define GLOW_MVE_PLANES_DEFINE(second)                                                                        \
  GLOW_MVE_FUNCTION void glow_mve_planes##second(GLOW_MVE_UNUSED glow_mve_planes_run_t *d) {                  \
    __asm__(GLOW_MVE_PLANES_RUN(#second, GLOW_MVE_PLANES_NARROW));                                            \
  }                                                                                                           \
  GLOW_MVE_FUNCTION void glow_mve_planes##second##_clamped(GLOW_MVE_UNUSED glow_mve_planes_run_t *d) {        \
    __asm__(GLOW_MVE_PLANES_RUN(#second, GLOW_MVE_PLANES_CLAMP));                                             \
  }
GLOW_MVE_PLANES_DEFINE(32)
GLOW_MVE_PLANES_DEFINE(64)
GLOW_MVE_PLANES_DEFINE(128)

/* Three rows of inputs, and how far their columns are apart: 0 for a row outside of the image. */
typedef struct {
  const int8_t *row[3];
  int32_t step[3];
} glow_mve_planes_rows_t;

/* The words of `count` columns of the first `lanes` channels. */
static inline void glow_mve_planes_columns(int8_t *to, const glow_mve_planes_rows_t *rows, int32_t count,
                                           int32_t lanes) {
  __asm__ volatile("vctp.8 %[lanes]\nldm %[rows], {r4, r5, r6, r8, r9, r10}\nwls lr, %[count], 2f\n"
                   "1: vpsttt\nvldrbt.8 q0, [r4]\nvldrbt.8 q1, [r5]\nvldrbt.8 q2, [r6]\n"
                   "vst40.8 {q0, q1, q2, q3}, [%[to]]\nadd r4, r4, r8\nvst41.8 {q0, q1, q2, q3}, [%[to]]\n"
                   "add r5, r5, r9\nvst42.8 {q0, q1, q2, q3}, [%[to]]\nadd r6, r6, r10\n"
                   "vst43.8 {q0, q1, q2, q3}, [%[to]]!\nle lr, 1b\n2:"
                   : [to] "+r"(to)
                   : [lanes] "r"(lanes), [count] "r"(count), [rows] "r"(rows)
                   : "lr", "r4", "r5", "r6", "r8", "r9", "r10", "q0", "q1", "q2", "q3", "cc", "memory");
}

/* The same of 8 channels that lie close together: `bytes` of each row, two columns at a time. */
static inline void glow_mve_planes_bytes(int8_t *to, const glow_mve_planes_rows_t *rows, int32_t bytes) {
  glow_mve_planes_rows_t two = *rows;
  for (int32_t i = 0; i < 3; i++) {
    two.step[i] = 2 * rows->step[i];
  }
  glow_mve_planes_columns(to, &two, bytes / 16, 16);
  if (bytes % 16 != 0) {
    for (int32_t i = 0; i < 3; i++) {
      two.row[i] += bytes / 16 * two.step[i];
    }
    glow_mve_planes_columns(to + bytes / 16 * 64, &two, 1, bytes % 16);
  }
}

/* Weights of `lanes` channels, as words. */
static inline void glow_mve_planes_weights(int8_t *to, const int8_t *from, int32_t lanes) {
  __asm__ volatile("vctp.8 %[n]\nvmov.i32 q3, #0\nmov lr, #3\ndls lr, lr\n"
                   "1: vpst\nvldrbt.8 q0, [%[from]]\nadd %[from], %[from], %[n]\n"
                   "vpst\nvldrbt.8 q1, [%[from]]\nadd %[from], %[from], %[n]\n"
                   "vpst\nvldrbt.8 q2, [%[from]]\nadd %[from], %[from], %[n]\n"
                   "vst40.8 {q0, q1, q2, q3}, [%[to]]\nvst41.8 {q0, q1, q2, q3}, [%[to]]\n"
                   "vst42.8 {q0, q1, q2, q3}, [%[to]]\nvst43.8 {q0, q1, q2, q3}, [%[to]]!\nle lr, 1b"
                   : [to] "+r"(to), [from] "+l"(from)
                   : [n] "r"(lanes)
                   : "lr", "q0", "q1", "q2", "q3", "cc", "memory");
}

GLOW_MVE_UNUSED static void glow_mve_planes_init(glow_mve_planes_t *d, int32_t out_zp, int32_t low, int32_t high) {
  const uint16x8_t index = vidupq_n_u16(0u, 1);
  const uint16x8_t second = vandq_u16(index, vdupq_n_u16(1u));
  vst1q_u16(d->run.places, vmlaq_n_u16(vshrq_n_u16(index, 1), second, (uint16_t)d->channels));
  vst1q_s16(d->run.low, vdupq_n_s16((int16_t)low));
  vst1q_s16(d->run.high, vdupq_n_s16((int16_t)high));
  d->run.zp = out_zp;
  d->run.out_step = 2 * d->channels;
  d->pitch = d->channels == 8 && d->in_col == 8 ? 32 : 64;
  d->pixels = ((GLOW_MVE_PLANES_BYTES / d->pitch - 2 * d->dilation - 1) / d->stride + 1) / 2 * 2;
  d->x = -1;
  d->held = NULL;
  d->weights_begin = d->constants + (d->channels + 3) / 4 * 32;
  const uint32x4_t lane = vidupq_n_u32(0u, 1);
  const uint32x4_t column = vminq_u32(lane, vdupq_n_u32(2u));
  const uint32_t begin = (uint32_t)(uintptr_t)d->words - (uint32_t)(2 * d->stride * d->pitch);
  vst1q_u32(d->w, vmlaq_n_u32(vdupq_n_u32((uint32_t)(uintptr_t)d->weights), lane, 64u));
  vst1q_u32(d->x_words, vmlaq_n_u32(vdupq_n_u32(begin), column, (uint32_t)(d->dilation * d->pitch)));
  glow_mve_fill(d->zeros, d->in_zp, 16);
  glow_mve_fill(d->weights + 3 * 64, 0, 64);
}

/* The pixels [x, x + count): which columns they need, and those outside of the image. */
GLOW_MVE_UNUSED __attribute__((noinline)) static void glow_mve_planes_go(glow_mve_planes_t *d, int32_t x,
                                                                        int32_t count) {
  const int32_t left = x * d->stride - d->pad;
  const int32_t columns = (count - 1) * d->stride + 2 * d->dilation + 1;
  const int32_t first = left < 0 ? (-left < columns ? -left : columns) : 0;
  const int32_t room = d->in_w - left < columns ? d->in_w - left : columns;
  const int32_t end = room > first ? room : first;
  d->x = x;
  d->from = left + first;
  d->before = first;
  d->inside = end - first;
  d->run.pairs = count / 2;
  d->run.odd = count % 2;
  glow_mve_fill(d->words, d->in_zp, first * d->pitch);
  glow_mve_fill(d->words + end * d->pitch, d->in_zp, (columns - end) * d->pitch);
}

/* One row of outputs; `pitch` is that of `d`. */
static inline void glow_mve_planes_row(glow_mve_planes_t *d, glow_mve_planes_fn *run,
                                       const glow_mve_planes_rows_t *rows, int32_t pitch, int8_t *out) {
  glow_mve_planes_rows_t at = *rows;
  const int32_t next[3] = {rows->step[0] != 0 ? 16 : 0, rows->step[1] != 0 ? 16 : 0, rows->step[2] != 0 ? 16 : 0};
  for (int32_t x = 0; x < d->out_w; x += d->pixels) {
    if (d->x != x) {
      glow_mve_planes_go(d, x, d->out_w - x < d->pixels ? d->out_w - x : d->pixels);
    }
    for (int32_t i = 0; i < 3; i++) {
      at.row[i] = rows->row[i] + d->from * rows->step[i];
    }
    const int8_t *weights = d->weights_begin;
    d->run.numbers = d->constants;
    d->run.out = out + x * d->channels;
    for (int32_t left = d->channels; left > 0; left -= 16) {
      const int32_t lanes = left < 16 ? left : 16;
      if (d->held != weights) {
        glow_mve_planes_weights(d->weights, weights, lanes);
        d->held = weights;
      }
      weights += 9 * 16;
      if (pitch == 64) {
        glow_mve_planes_columns(d->words + d->before * 64, &at, d->inside, lanes);
      } else {
        glow_mve_planes_bytes(d->words + d->before * 32, &at, d->inside * 8);
        glow_mve_fill(d->words + (d->before + d->inside) * 32, d->in_zp, 32); /* that vectors of two columns wrote */
      }
      vst1q_u32(d->run.w, vld1q_u32(d->w));
      vst1q_u32(d->run.x, vld1q_u32(d->x_words));
      d->run.channels = lanes;
      run(&d->run);
      for (int32_t i = 0; i < 3; i++) {
        at.row[i] += next[i];
      }
    }
  }
}

#endif

#endif
