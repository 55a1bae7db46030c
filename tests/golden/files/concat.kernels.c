/* convolution: clamp(bias + sum in * weights).
 * Layer (FullyConnected): 0 left.
 * Sizes: in 2x4, out 2x3; computes output rows [y_begin, y_end); the output may lie over rows of in that no later row
 * reads. */
GLOW_KERNEL void concat_conv_f32__ref(const float *in, const float *restrict weights, const float *restrict bias,
    float *out, int32_t y_begin, int32_t y_end) {
  const int32_t in_group = 4;
  const int32_t out_group = 3;
  for (int32_t n = 0; n < 1; n++) {
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = y_begin + i;
      float *to = out + n * 6;
      for (int32_t x = 0; x < 2; x++) {
        for (int32_t o = 0; o < 3; o++) {
          const int32_t first = (o / out_group) * in_group;
          const float *w = weights + o * in_group;
          float acc = bias[o];
          for (int32_t ky = 0; ky < 1; ky++) {
            const int32_t iy = y + ky;
            for (int32_t kx = 0; kx < 1; kx++, w += in_group) {
              const int32_t ix = x + kx;
              if (iy < 0 || iy >= 1 || ix < 0 || ix >= 2) {
                continue;
              }
              const float *from = in + n * 8 +
                                   ix * 4 + first;
              for (int32_t c = 0; c < in_group; c++) {
                acc += from[c] * w[c];
              }
            }
          }
          *to++ = acc < (-INFINITY) ? (-INFINITY) : (acc > INFINITY ? INFINITY : acc);
        }
      }
    }
  }
}

/* Elementwise function.
 * Layer (Relu): 1 right.
 * Sizes: in 1x3, out 1x3; the output may be in. */
GLOW_KERNEL void concat_unary__ref(const float *in, float *out) {
  for (int32_t i = 0; i < 3; i++) {
    const float x = in[i];
    out[i] = x < 0 ? 0 : x;
  }
}


GLOW_HOT static void concat_infer(uint8_t *arena) {
  /* 0: FullyConnected left */
  GLOW_LAYER_BEGIN(concat, 0u);
  concat_conv_f32__ref((const float *)(const void *)(arena + 24), concat_w_left_weights, concat_w_left_bias, (float *)(void *)(arena + 0), 0, 1);
  GLOW_LAYER_END(concat, 0u);
  GLOW_LAYER_BARRIER();
  /* 1: Relu right */
  GLOW_LAYER_BEGIN(concat, 1u);
  concat_unary__ref((const float *)(const void *)(arena + 56), (float *)(void *)(arena + 24));
  GLOW_LAYER_END(concat, 1u);
  GLOW_LAYER_BARRIER();
}
