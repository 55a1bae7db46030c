/* SPDX-License-Identifier: MIT-0 */
/* Layers of int8 codes (glow_wide_layer.h) by SVE2, with vectors of any length. */
#ifndef GLOW_WIDE_SVE2_H
#define GLOW_WIDE_SVE2_H

#include "glow_wide_layer.h"

#if defined(GLOW_WIDE_SVE2)
/* codes of a vector of sums, `some` of which there are */
GLOW_WIDE_ALWAYS void glow_wide_fixed_sve(svbool_t some, svint32_t sums, svint32_t mul, svint32_t shift,
                                          const glow_wide_layer_t *layer, int8_t *to) {
  const svuint32_t left = svreinterpret_u32(svmax_n_s32_x(some, shift, 0));
  const svuint32_t right = svreinterpret_u32(svmax_n_s32_x(some, svneg_s32_x(some, shift), 0));
  const svint32_t v = svqrdmulh_s32(svlsl_s32_x(some, sums, left), mul);
  const svuint32_t rest = svsub_n_u32_x(some, svlsl_u32_x(some, svdup_n_u32(1), right), 1);
  const svuint32_t sign = svlsr_n_u32_x(some, svreinterpret_u32(v), 31);
  const svuint32_t limit = svadd_u32_x(some, svlsr_n_u32_x(some, rest, 1), sign);
  const svbool_t up = svcmpgt_u32(some, svand_u32_x(some, svreinterpret_u32(v), rest), limit);
  const svint32_t rounded = svadd_n_s32_m(up, svasr_s32_x(some, v, right), 1);
  const svint32_t code = svadd_n_s32_x(some, rounded, layer->zp);
  svst1b_s32(some, to, svmin_n_s32_x(some, svmax_n_s32_x(some, code, layer->lo), layer->hi));
}

GLOW_WIDE_ALWAYS void glow_wide_scaled_sve(svbool_t some, svint32_t sums, svfloat32_t scale, const glow_wide_layer_t *layer,
                                           int8_t *to) {
  const svfloat32_t product = svmul_f32_x(some, svcvt_f32_s32_x(some, sums), scale);
  const svfloat32_t low = svmax_n_f32_x(some, product, (float)(layer->lo - layer->zp));
  const svfloat32_t v = svrintn_f32_x(some, svmin_n_f32_x(some, low, (float)(layer->hi - layer->zp)));
  svst1b_s32(some, to, svadd_n_s32_x(some, svcvt_s32_f32_x(some, v), layer->zp));
}

/* Eight pixels, or two, and `vectors` of weights: a product adds eight inputs of two pixels to two outputs in each 16
 * bytes. The inputs of two pixels are put one behind the other in registers. */
#define GLOW_WIDE_SUMS(i) svint32_t s##i##0 = zero, s##i##1 = zero, s##i##2 = zero, s##i##3 = zero;
#define GLOW_WIDE_PRODUCTS(i, x, w0, w1, w2, w3)  \
  s##i##0 = svusmmla_s32(s##i##0, x, w0);         \
  s##i##1 = svusmmla_s32(s##i##1, x, w1);         \
  if (vectors > 2) {                              \
    s##i##2 = svusmmla_s32(s##i##2, x, w2);       \
    s##i##3 = svusmmla_s32(s##i##3, x, w3);       \
  }
#define GLOW_WIDE_INPUTS(i)                                                                                        \
  const svuint64_t a##i = svreinterpret_u64(svld1rq_u8(inputs, x + (2 * i) * pitch + k));                          \
  const svuint64_t b##i = svreinterpret_u64(svld1rq_u8(inputs, x + (2 * i + 1) * pitch + k));
#define GLOW_WIDE_FIRST(i)                                                        \
  {                                                                               \
    const svuint8_t first = svreinterpret_u8(svtrn1_u64(a##i, b##i));             \
    GLOW_WIDE_PRODUCTS(i, first, w0, w1, w2, w3)                                  \
  }
#define GLOW_WIDE_BOTH(i)                                                         \
  {                                                                               \
    GLOW_WIDE_INPUTS(i)                                                           \
    GLOW_WIDE_FIRST(i)                                                            \
    const svuint8_t second = svreinterpret_u8(svtrn2_u64(a##i, b##i));            \
    GLOW_WIDE_PRODUCTS(i, second, v0, v1, v2, v3)                                 \
  }
#define GLOW_WIDE_REST(i)                                                         \
  {                                                                               \
    GLOW_WIDE_INPUTS(i)                                                           \
    GLOW_WIDE_FIRST(i)                                                            \
  }
#define GLOW_WIDE_WEIGHTS(name, from)                                              \
  const svint8_t name##0 = svld1_vnum_s8(bytes, from, 0), name##1 = svld1_vnum_s8(more, from, 1); \
  const svint8_t name##2 = vectors > 2 ? svld1_vnum_s8(bytes, from, 2) : name##0;  \
  const svint8_t name##3 = vectors > 2 ? svld1_vnum_s8(bytes, from, 3) : name##0;
#define GLOW_WIDE_RESULT(i, pick)                                                                                     \
  if (2 * i + pick - 1 < pixels) {                                                                                   \
    const int32_t at = 2 * i + pick - 1;                                                                             \
    const svint32_t low = svreinterpret_s32(svuzp##pick##_s64(svreinterpret_s64(s##i##0), svreinterpret_s64(s##i##1))); \
    const svint32_t high = svreinterpret_s32(svuzp##pick##_s64(svreinterpret_s64(s##i##2), svreinterpret_s64(s##i##3))); \
    int8_t *result = to[at] + o + lane;                                                                              \
    svint32_t sums = svadd_s32_x(all, low, bias0), next = svadd_s32_x(all, high, bias1);                             \
    if (starts != NULL) {                                                                                            \
      sums = svadd_n_s32_x(all, sums, starts[at]);                                                                   \
      next = svadd_n_s32_x(all, next, starts[at]);                                                                   \
    }                                                                                                                \
    if (layer->fixed) {                                                                                              \
      glow_wide_fixed_sve(some0, sums, end0, shift0, layer, result);                                                 \
      if (vectors > 2) {                                                                                             \
        glow_wide_fixed_sve(some1, next, end1, shift1, layer, result + lanes);                                       \
      }                                                                                                              \
    } else {                                                                                                         \
      glow_wide_scaled_sve(some0, sums, svreinterpret_f32(end0), layer, result);                                     \
      if (vectors > 2) {                                                                                             \
        glow_wide_scaled_sve(some1, next, svreinterpret_f32(end1), layer, result + lanes);                           \
      }                                                                                                              \
    }                                                                                                                \
  }
#define GLOW_WIDE_FINISH(i) GLOW_WIDE_RESULT(i, 1) GLOW_WIDE_RESULT(i, 2)
#define GLOW_WIDE_TILE(name, EACH, vectors_)                                                                         \
  GLOW_WIDE_ALWAYS void name(const glow_wide_layer_t *layer, const int8_t *w, const uint8_t *x, int8_t *const *to,   \
                             int32_t pixels, int32_t o, int64_t lane, const int32_t *starts) {                       \
    enum { vectors = vectors_ };                                                                                     \
    const int64_t lanes = (int64_t)svcntw(), pitch = 8 * layer->steps;                                               \
    const int32_t count = layer->outputs - o < GLOW_WIDE_LANES ? layer->outputs - o : GLOW_WIDE_LANES;               \
    const svbool_t all = svptrue_b32(), bytes = svwhilelt_b8_s64(8 * lane, 8 * GLOW_WIDE_LANES);                     \
    const svbool_t some0 = svwhilelt_b32_s64(lane, count), some1 = svwhilelt_b32_s64(lane + lanes, count);           \
    const svbool_t more = svwhilelt_b8_s64(8 * lane + (int64_t)svcntb(), 8 * GLOW_WIDE_LANES);                       \
    const int8_t *head = w + 4 * lane;                                                                               \
    const svint32_t zero = svdup_n_s32(0);                                                                           \
    EACH(GLOW_WIDE_SUMS)                                                                                             \
    w += glow_wide_head(layer) + 8 * lane;                                                                           \
    svbool_t inputs = svptrue_b8();                                                                                  \
    int64_t k = 0;                                                                                                   \
    for (; k + 16 <= pitch; k += 16, w += 256) {                                                                     \
      GLOW_WIDE_WEIGHTS(w, w)                                                                                        \
      GLOW_WIDE_WEIGHTS(v, w + 128)                                                                                  \
      EACH(GLOW_WIDE_BOTH)                                                                                           \
    }                                                                                                                \
    if (k < pitch) {                                                                                                 \
      inputs = svwhilelt_b8_s64(0, 8);                                                                               \
      GLOW_WIDE_WEIGHTS(w, w)                                                                                        \
      EACH(GLOW_WIDE_REST)                                                                                           \
    }                                                                                                                \
    const svint32_t bias0 = svld1_s32(some0, (const void *)head);                                                    \
    const svint32_t bias1 = svld1_s32(some1, (const void *)(head + 4 * lanes));                                      \
    const svint32_t end0 = svld1_s32(some0, (const void *)(head + 64));                                              \
    const svint32_t end1 = svld1_s32(some1, (const void *)(head + 64 + 4 * lanes));                                  \
    const svbool_t fixed0 = layer->fixed ? some0 : svpfalse_b(), fixed1 = layer->fixed ? some1 : svpfalse_b();       \
    const svint32_t shift0 = svld1_s32(fixed0, (const void *)(head + 128));                                          \
    const svint32_t shift1 = svld1_s32(fixed1, (const void *)(head + 128 + 4 * lanes));                              \
    EACH(GLOW_WIDE_FINISH)                                                                                           \
  }
#define GLOW_WIDE_1(M) M(0)
GLOW_WIDE_TILE(glow_wide_eight_sve, GLOW_WIDE_4, 4)
GLOW_WIDE_TILE(glow_wide_two_sve, GLOW_WIDE_1, 4)
GLOW_WIDE_TILE(glow_wide_eight_long_sve, GLOW_WIDE_4, 2)
GLOW_WIDE_TILE(glow_wide_two_long_sve, GLOW_WIDE_1, 2)

__attribute__((unused)) static void glow_wide_layer_sve(const glow_wide_layer_t *layer, const uint8_t *x, int8_t *const *to,
                                                        int32_t pixels) {
  const int8_t *w = layer->weights;
  const int64_t lanes = (int64_t)svcntw(), wide = lanes < GLOW_WIDE_LANES ? 2 * lanes : lanes;
  for (int32_t o = 0; o < layer->outputs; o += GLOW_WIDE_LANES, w += glow_wide_head(layer) + 128 * layer->steps) {
    for (int64_t lane = 0; lane < GLOW_WIDE_LANES && o + lane < layer->outputs; lane += wide) {
      for (int32_t i = 0; i < pixels;) {
        const int32_t *starts = layer->starts == NULL ? NULL : layer->starts + i;
        const uint8_t *from = x + i * 8 * layer->steps;
        const int32_t left = pixels - i;
        if (left > 2) {
          if (lanes < GLOW_WIDE_LANES) {
            glow_wide_eight_sve(layer, w, from, to + i, left, o, lane, starts);
          } else {
            glow_wide_eight_long_sve(layer, w, from, to + i, left, o, lane, starts);
          }
          i += 8;
        } else {
          if (lanes < GLOW_WIDE_LANES) {
            glow_wide_two_sve(layer, w, from, to + i, left, o, lane, starts);
          } else {
            glow_wide_two_long_sve(layer, w, from, to + i, left, o, lane, starts);
          }
          i += 2;
        }
      }
    }
  }
}
#endif

#endif
