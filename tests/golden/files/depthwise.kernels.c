/* convolution: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp).
 * Layer (Conv): 0 point.
 * Sizes: in 1x2x5x5, out 1x5x5x4; computes output rows [y_begin, y_end); the output may lie over rows of in that no
 * later row reads; scratch takes 18 bytes. */
GLOW_KERNEL void depthwise_conv_s8__v7m(const int8_t *in, const int8_t *restrict weights, const int32_t *restrict bias,
    const float *restrict scale, int8_t *out, uint8_t *restrict scratch, int32_t y_begin, int32_t y_end) {
  const int32_t taps = 2;
  const glow_thumb_gemm_t g = {weights, bias, scale, taps, 4, 0, 5, -128, 127, 0, NULL};
  uint32_t *const words = (uint32_t *)(void *)scratch;
  int8_t *const pad = (int8_t *)(words + 2 * taps);
  const glow_thumb_window_t window = { pad, 2, 25, 1, 5, 5, 5, 1, 5, 1, 1, 1, 1, 1};
  for (int32_t c = 0; c < window.run; c++) {
    pad[c] = (int8_t)1;
  }
  for (int32_t n = 0; n < 1; n++) {
    const int8_t *image = in + n * 50;
    glow_thumb_pixel_t from[4] = { {0, 0}, {0, 0}, {0, 0}, {0, 0} };
    int8_t *to[4] = {out, out, out, out};
    int32_t held = 0;
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = y_begin + i;
      int8_t *line = out + n * 100 + (y % 5) * 20;
      for (int32_t x = 0; x < 5; x++, line += 4) {
        to[held] = line;
        from[held].top = y;
        from[held].left = x;
        held++;
        const int last = i + 1 == y_end - y_begin && x + 1 == 5;
        if (held < 4 && !last) {
          continue;
        }
        for (int32_t k = held; k < 4; k++) {
          from[k] = from[held - 1];
          to[k] = line;
        }
        held = 0;
        glow_thumb_fill(words, &window, image, from);
        glow_thumb_gemm(&g, words, to);
      }
    }
  }
}

GLOW_HOT GLOW_THUMB_NOINLINE static void depthwise_dwconv_s8__v7m_tile(const glow_thumb_dw_t *d, int8_t *to) {
  const int8_t *w = d->weights;
  const uint32_t near_tie = (uint32_t)d->bias[d->channels];
  const uint32_t span = near_tie < 0x80000000u ? GLOW_THUMB_SPAN : 0u;
  const int32_t step = d->in_col;
  const int32_t out_step = d->channels;
  const int32_t zp = d->in_zp;
  const int32_t out_zp = d->out_zp;
  const int32_t outside = d->above + d->below;
  const int8_t *const *const rows_end = d->row + d->rows;
  for (int32_t c = 0; c != d->channels; c++, to++) {
    int32_t s0 = d->bias[c];
    if (outside != 0) {
      s0 += glow_thumb_dw_pad(d, w);
      w += d->above;
    }
    int32_t s1 = s0;
    int32_t s2 = s0;
    for (const int8_t *const *row = d->row; row != rows_end; row++) {
      const int8_t *p = *row + c;
#if GLOW_THUMB_ASM && defined(__OPTIMIZE__) /* at -O0 gcc lacks registers */
      int32_t x;
      int32_t v0;
      int32_t v1;
      int32_t v2;
      __asm__ volatile(
        "ldrsb %[v0], [%[w]], #1\n\t"
        "ldrsb %[v1], [%[w]], #1\n\t"
        "ldrsb %[v2], [%[w]], #1\n\t"
        "ldr %[x], %[zp]\n\t"
        "mla %[s0], %[x], %[v0], %[s0]\n\t"
        "ldrsb %[x], [%[p]]\n\t"
        "mla %[s0], %[x], %[v1], %[s0]\n\t"
        "ldrsb %[x], [%[p], %[step]]\n\t"
        "mla %[s0], %[x], %[v2], %[s0]\n\t"
        "mla %[s1], %[x], %[v0], %[s1]\n\t"
        "ldrsb %[x], [%[p], %[step], lsl #1]\n\t"
        "mla %[s1], %[x], %[v1], %[s1]\n\t"
        "add %[p], %[p], %[step], lsl #1\n\t"
        "ldrsb %[x], [%[p], %[step]]\n\t"
        "mla %[s1], %[x], %[v2], %[s1]\n\t"
        "mla %[s2], %[x], %[v0], %[s2]\n\t"
        "ldrsb %[x], [%[p], %[step], lsl #1]\n\t"
        "mla %[s2], %[x], %[v1], %[s2]\n\t"
        "ldr %[x], %[zp]\n\t"
        "mla %[s2], %[x], %[v2], %[s2]\n\t"
          : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [v0] "=&r"(v0), [v1] "=&r"(v1), [v2] "=&r"(v2), [x] "=&r"(x), [p] "+r"(p), [w] "+r"(w)
          : [step] "r"(step), [zp] "m"(zp)      : "memory");
#else
      const int32_t v0 = w[0];
      const int32_t v1 = w[1];
      const int32_t v2 = w[2];
      w += 3;
      (void)zp;
      (void)step;
      const int32_t x0 = zp;
      s0 += x0 * v0;
      const int32_t x1 = *p;
      s0 += x1 * v1;
      p += step;
      const int32_t x2 = *p;
      s0 += x2 * v2; s1 += x2 * v0;
      p += step;
      const int32_t x3 = *p;
      s1 += x3 * v1;
      p += step;
      const int32_t x4 = *p;
      s1 += x4 * v2; s2 += x4 * v0;
      p += step;
      const int32_t x5 = *p;
      s2 += x5 * v1;
      const int32_t x6 = zp;
      s2 += x6 * v2;
#endif
    }
    if (outside != 0) {
      w += d->below;
    }
    uint32_t bits;
    memcpy(&bits, d->scale + c * d->scale_step, sizeof bits);
    int good = bits - GLOW_THUMB_LEAST < span;
    if (good) {
      good = glow_thumb_round3(&s0, &s1, &s2, glow_thumb_factor(bits), near_tie, out_zp);
    }
    if (!good) {
      glow_thumb_dw_slow(d, c, c, to);
      continue;
    }
    to[0] = (int8_t)s0;
    to[out_step] = (int8_t)s1;
    to[2 * out_step] = (int8_t)s2;
  }
}

/* Depthwise convolution: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp).
 * Layer (Conv): 1 depth.
 * Sizes: in 1x5x5x4, out 1x3x3x4; computes output rows [y_begin, y_end); the output may lie over rows of in that no
 * later row reads. */
GLOW_KERNEL void depthwise_dwconv_s8__v7m(const int8_t *in, const int8_t *restrict weights,
    const int32_t *restrict bias, const float *restrict scale, int8_t *out, int32_t y_begin, int32_t y_end) {
  glow_thumb_dw_t d;
  d.weights = weights;
  d.bias = bias;
  d.scale = scale;
  d.scale_step = 1;
  d.shift = NULL;
  d.channels = 4;
  d.in_w = 5;
  d.in_col = 4;
  d.in_zp = 5;
  d.w_zp = 0;
  d.out_zp = -7;
  d.out_min = -128;
  d.out_max = 127;
  d.k_w = 3;
  d.stride_w = 2;
  d.dil_w = 1;
  d.outputs = 3;
  for (int32_t n = 0; n < 1; n++) {
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = y_end - 1 - i;
      int8_t *line = out + n * 36 + (y % 3) * 12;
      const int8_t *rows[3] = {0};
      d.rows = 0;
      d.above = 0;
      for (int32_t ky = 0; ky < 3; ky++) {
        const int32_t iy = y * 2 - 1 + ky;
        if (iy >= 0 && iy < 5) {
          rows[d.rows++] = in + n * 100 + (iy % 5) * 20;
        } else if (d.rows == 0) {
          d.above += 3;
        }
      }
      d.below = 9 - d.above - d.rows * 3;
      const int32_t tiles = 1;
      for (int32_t t = 0; t < tiles; t++) {
        const int32_t x = t + 1 < tiles ? t * 3 : 0;
        d.left = x * 2 - 1;
        for (int32_t r = 0; r < d.rows; r++) {
          d.row[r] = rows[r] + (d.left > 0 ? d.left : 0) * 4;
        }
        int8_t *to = line + x * 4;
        if (t == 0) {
          depthwise_dwconv_s8__v7m_tile(&d, to);
        }
      }
    }
  }
}

/* Quantized mean of an axis.
 * Layer (ReduceMean): 2 mean.
 * Sizes: in 1x3x3x4, out 1x1x1x4; no operand overlaps another. */
GLOW_KERNEL void depthwise_reduce_mean_s8__v7m(const int8_t *restrict in, int8_t *restrict out) {
  const glow_thumb_mean_t mean = { 0.22222222f, 0.0f, 0.0f, 9, -7, 0, -128, 127, 0, 67832u, 0};
  glow_thumb_pool_t window;
  window.rows = 1;
  window.taps = 9;
  window.step = 4;
  for (int32_t o = 0; o < 1; o++) {
    window.row[0] = in + o * 9 * 4;
    glow_thumb_means(&mean, &window, 4, out + o * 4);
  }
}


GLOW_HOT static void depthwise_infer(uint8_t *arena) {
  /* 0: Conv point */
  GLOW_LAYER_BEGIN(depthwise, 0u);
  depthwise_conv_s8__v7m((const int8_t *)(arena + 80), depthwise_w_point_weights_v7m, depthwise_w_point_bias_v7m, depthwise_w_point_scale, (int8_t *)(arena + 0), (uint8_t *)(arena + 132), 0, 5);
  GLOW_LAYER_END(depthwise, 0u);
  GLOW_LAYER_BARRIER();
  /* 1: Conv depth */
  GLOW_LAYER_BEGIN(depthwise, 1u);
  depthwise_dwconv_s8__v7m((const int8_t *)(arena + 0), depthwise_w_depth_weights_v7m, depthwise_w_point_bias_v7m_1, depthwise_w_depth_scale, (int8_t *)(arena + 76), 0, 3);
  GLOW_LAYER_END(depthwise, 1u);
  GLOW_LAYER_BARRIER();
  /* 2: ReduceMean mean */
  GLOW_LAYER_BEGIN(depthwise, 2u);
  depthwise_reduce_mean_s8__v7m((const int8_t *)(arena + 76), (int8_t *)(arena + 0));
  GLOW_LAYER_END(depthwise, 2u);
  GLOW_LAYER_BARRIER();
}
