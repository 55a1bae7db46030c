/* convolution: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp).
 * Layer (Conv): 0 conv.
 * Sizes: in 1x6x6x1, out 1x6x6x2; computes output rows [y_begin, y_end); the output may lie over rows of in that no
 * later row reads; scratch takes 73 bytes. */
GLOW_KERNEL void conv_pool_conv_s8__v7m(const int8_t *in, const int8_t *restrict weights, const int32_t *restrict bias,
    const float *restrict scale, int8_t *out, uint8_t *restrict scratch, int32_t y_begin, int32_t y_end) {
  const int32_t taps = 9;
  const glow_thumb_gemm_t g = {weights, bias, scale, taps, 2, 1, -128, -128, 127, 0, NULL};
  uint32_t *const words = (uint32_t *)(void *)scratch;
  int8_t *const pad = (int8_t *)(words + 2 * taps);
  const glow_thumb_window_t window = { pad, 1, 1, 1, 6, 6, 6, 1, 6, 3, 3, 1, 1, 1};
  for (int32_t c = 0; c < window.run; c++) {
    pad[c] = (int8_t)3;
  }
  for (int32_t n = 0; n < 1; n++) {
    const int8_t *image = in + n * 36;
    glow_thumb_pixel_t from[4] = { {0, 0}, {0, 0}, {0, 0}, {0, 0} };
    int8_t *to[4] = {out, out, out, out};
    int32_t held = 0;
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = y_end - 1 - i;
      int8_t *line = out + n * 72 + (y % 6) * 12;
      for (int32_t x = 0; x < 6; x++, line += 2) {
        to[held] = line;
        from[held].top = y - 1;
        from[held].left = x - 1;
        held++;
        const int last = i + 1 == y_end - y_begin && x + 1 == 6;
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

/* Maximum of windows.
 * Layer (MaxPool): 1 pool.
 * Sizes: in 1x6x6x2, out 1x3x3x2; computes output rows [y_begin, y_end); the output may lie over rows of in that no
 * later row reads. */
GLOW_KERNEL void conv_pool_max_pool_s8__ref(const int8_t *in, int8_t *out, int32_t y_begin, int32_t y_end) {
  for (int32_t n = 0; n < 1; n++) {
    for (int32_t row = 0; row < y_end - y_begin; row++) {
      const int32_t y = y_begin + row;
      const int32_t top = y * 2;
      int8_t *line = out + n * 18 + (y % 3) * 6;
      for (int32_t x = 0; x < 3; x++) {
        const int32_t left = x * 2;
        for (int32_t c = 0; c < 2; c++) {
          int8_t best = INT8_MIN;
          for (int32_t ky = 0; ky < 2; ky++) {
            const int32_t r = top + ky;
            if (r < 0 || r >= 6) {
              continue;
            }
            const int8_t *source = in + n * 72 + (r % 6) * 12;
            for (int32_t kx = 0; kx < 2; kx++) {
              const int32_t q = left + kx;
              if (q < 0 || q >= 6) {
                continue;
              }
              const int8_t v = source[q * 2 + c];
              best = v > best ? v : best;
            }
          }
          line[x * 2 + c] = best;
        }
      }
    }
  }
}

/* Strided copy.
 * Layer (Transpose): 2 pool.
 * Sizes: in 1x3x3x2, out 1x2x3x3; operands may be parts of one buffer. */
GLOW_HOT static void conv_pool_copy_b1__ref(const int8_t *in, int8_t *out) {
  for (int32_t x0 = 0; x0 < 2; x0++) {
    for (int32_t x1 = 0; x1 < 9; x1++) {
      const int32_t i = x0 + x1 * 2;
      const int32_t o = x0 * 9 + x1;
      out[o] = in[i];
    }
  }
}


GLOW_HOT static void conv_pool_infer(uint8_t *arena) {
  /* 0: Conv conv, relu */
  GLOW_LAYER_BEGIN(conv_pool, 0u);
  conv_pool_conv_s8__v7m((const int8_t *)(arena + 0), conv_pool_w_conv_weights, conv_pool_w_conv_bias_v7m, conv_pool_w_conv_scale, (int8_t *)(arena + 12), (uint8_t *)(arena + 84), 0, 6);
  GLOW_LAYER_END(conv_pool, 0u);
  GLOW_LAYER_BARRIER();
  /* 1: MaxPool pool */
  GLOW_LAYER_BEGIN(conv_pool, 1u);
  conv_pool_max_pool_s8__ref((const int8_t *)(arena + 12), (int8_t *)(arena + 0), 0, 3);
  GLOW_LAYER_END(conv_pool, 1u);
  GLOW_LAYER_BARRIER();
  /* 2: Transpose pool */
  GLOW_LAYER_BEGIN(conv_pool, 2u);
  conv_pool_copy_b1__ref((const int8_t *)(arena + 0), (int8_t *)(arena + 20));
  GLOW_LAYER_END(conv_pool, 2u);
  GLOW_LAYER_BARRIER();
}
