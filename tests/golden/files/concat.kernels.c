/* Fully connected layer: clamp(bias + sum in * weights).
 * Layer (FullyConnected): 0 left.
 * Sizes: in 2x4, out 2x3; no operand overlaps another. */
GLOW_KERNEL void concat_fc_f32__ref(const float *restrict in, const float *restrict weights, const float *restrict bias,
    float *restrict out) {
  for (int32_t r = 0; r < 2; r++) {
    const float *x = in + r * 4;
    const float *w = weights;
    for (int32_t n = 0; n < 3; n++, w += 4) {
      float part[4] = {bias[n], 0, 0, 0};
      for (int32_t k = 0; k < 4; k++) {
        part[k % 4] += x[k] * w[k];
      }
      const float acc = (part[0] + part[1]) + (part[2] + part[3]);
      out[r * 3 + n] = acc < (-INFINITY) ? (-INFINITY) : (acc > INFINITY ? INFINITY : acc);
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
  concat_fc_f32__ref((const float *)(const void *)(arena + 36), concat_w_w_ok, concat_w_left_bias, (float *)(void *)(arena + 0));
  GLOW_LAYER_END(concat, 0u);
  GLOW_LAYER_BARRIER();
  /* 1: Relu right */
  GLOW_LAYER_BEGIN(concat, 1u);
  concat_unary__ref((const float *)(const void *)(arena + 68), (float *)(void *)(arena + 24));
  GLOW_LAYER_END(concat, 1u);
  GLOW_LAYER_BARRIER();
}
