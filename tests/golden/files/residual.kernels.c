/* convolution: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp).
 * Layer (Conv): 0 conv.
 * Sizes: in 1x4x4x4, out 1x4x4x4; computes output rows [y_begin, y_end); the output may lie over rows of in that no
 * later row reads; scratch takes 36 bytes. */
GLOW_KERNEL void residual_conv_s8__v7m(const int8_t *in, const int8_t *restrict weights, const int32_t *restrict bias,
    const float *restrict scale, int8_t *out, uint8_t *restrict scratch, int32_t y_begin, int32_t y_end) {
  const int32_t taps = 4;
  const glow_thumb_gemm_t g = {weights, bias, scale, taps, 4, 0, -2, -128, 127, 0, NULL};
  uint32_t *const words = (uint32_t *)(void *)scratch;
  int8_t *const pad = (int8_t *)(words + 2 * taps);
  const glow_thumb_window_t window = { pad, 4, 16, 1, 4, 4, 4, 1, 4, 1, 1, 1, 1, 1};
  for (int32_t c = 0; c < window.run; c++) {
    pad[c] = (int8_t)0;
  }
  for (int32_t n = 0; n < 1; n++) {
    const int8_t *image = in + n * 64;
    glow_thumb_pixel_t from[4] = { {0, 0}, {0, 0}, {0, 0}, {0, 0} };
    int8_t *to[4] = {out, out, out, out};
    int32_t held = 0;
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = y_begin + i;
      int8_t *line = out + n * 64 + (y % 4) * 16;
      for (int32_t x = 0; x < 4; x++, line += 4) {
        to[held] = line;
        from[held].top = y;
        from[held].left = x;
        held++;
        const int last = i + 1 == y_end - y_begin && x + 1 == 4;
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

/* Strided copy.
 * Layer (Transpose): 1 conv.
 * Sizes: in 1x4x4x4, out 1x4x4x4; operands may be parts of one buffer. */
GLOW_HOT static void residual_copy_b1__ref(const int8_t *in, int8_t *out) {
  for (int32_t x0 = 0; x0 < 4; x0++) {
    for (int32_t x1 = 0; x1 < 16; x1++) {
      const int32_t i = x0 + x1 * 4;
      const int32_t o = x0 * 16 + x1;
      out[o] = in[i];
    }
  }
}

/* Quantized sum by fused multiply-add.
 * Layer (Add): 2 sum.
 * Sizes: a 1x4x4x4, b 1x4x4x4, out 1x4x4x4; the output may be a or b. */
GLOW_KERNEL void residual_add_s8f__v7m(const int8_t *a, const int8_t *b, int8_t *out) {
  const int32_t a_mul = glow_kept(3495253);
  const int32_t b_mul = glow_kept(2796202);
  const int8_t *const x = a;
  const int8_t *const y = b;
  int8_t *const to = out;
  int32_t i = 0;
  for (; i < 64; i++) {
    const int32_t sum = x[i] * a_mul + y[i] * b_mul - 529181344; /* in 2^-22 */
    if ((((uint32_t)sum + 94u) & 4194303u) < 188u) {
      const int32_t exact = glow_thumb_addf_slow(x[i], y[i], 0.8333333f, 0.6666666f, (-126.666664f), 0);
      to[i] = (int8_t)exact;
      continue;
    }
    to[i] = (int8_t)GLOW_THUMB_SAT8_ASR(sum, 22);
  }
}


GLOW_HOT static void residual_infer(uint8_t *arena) {
  /* 0: Conv conv */
  GLOW_LAYER_BEGIN(residual, 0u);
  residual_conv_s8__v7m((const int8_t *)(arena + 0), residual_w_conv_weights_v7m, residual_w_conv_bias_v7m, residual_w_conv_scale, (int8_t *)(arena + 64), (uint8_t *)(arena + 128), 0, 4);
  GLOW_LAYER_END(residual, 0u);
  GLOW_LAYER_BARRIER();
  /* 1: Transpose conv */
  GLOW_LAYER_BEGIN(residual, 1u);
  residual_copy_b1__ref((const int8_t *)(arena + 64), (int8_t *)(arena + 128));
  GLOW_LAYER_END(residual, 1u);
  GLOW_LAYER_BARRIER();
  /* 2: Add sum, relu */
  GLOW_LAYER_BEGIN(residual, 2u);
  residual_add_s8f__v7m((const int8_t *)(arena + 0), (const int8_t *)(arena + 128), (int8_t *)(arena + 128));
  GLOW_LAYER_END(residual, 2u);
  GLOW_LAYER_BARRIER();
}
