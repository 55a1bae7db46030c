/* Fully connected layer: clamp(bias + sum in * weights).
 * Layers (FullyConnected): 0 h, 1 l.
 * Parameters: float_mlp_fc_f32_args_t; no operand overlaps another. */
GLOW_KERNEL void float_mlp_fc_f32__ref(const float *restrict in, const float *restrict weights,
    const float *restrict bias, float *restrict out, const float_mlp_fc_f32_args_t *restrict p) {
  const float *w = weights;
  for (int32_t n = 0; n < p->out_n; n++, w += p->in_k) {
    float part[4] = {bias[n], 0, 0, 0};
    for (int32_t k = 0; k < p->in_k; k++) {
      part[k % 4] += in[k] * w[k];
    }
    const float acc = (part[0] + part[1]) + (part[2] + part[3]);
    out[n] = acc < p->act_min ? p->act_min : (acc > p->act_max ? p->act_max : acc);
  }
}

/* Softmax or its logarithm.
 * Layer (Softmax): 2 y.
 * Sizes: in 1x3, out 1x3; the output may be in. */
GLOW_KERNEL void float_mlp_softmax_f32__ref(const float *in, float *out) {
  for (int32_t o = 0; o < 1; o++) {
    for (int32_t i = 0; i < 1; i++) {
      const int32_t base = o * 3 + i;
      float max = in[base];
      for (int32_t k = 1; k < 3; k++) {
        const float v = in[base + k];
        max = v > max ? v : max;
      }
      float sum = 0;
      for (int32_t k = 0; k < 3; k++) {
        const float e = expf(in[base + k] - max);
        out[base + k] = e;
        sum += e;
      }
      for (int32_t k = 0; k < 3; k++) {
        out[base + k] /= sum;
      }
    }
  }
}

static const float_mlp_fc_f32_args_t float_mlp_args_0 = {.in_k = 6, .out_n = 5, .act_min = 0.0f, .act_max = INFINITY};
static const float_mlp_fc_f32_args_t float_mlp_args_1 = {.in_k = 5, .out_n = 3, .act_min = (-INFINITY), .act_max = INFINITY};

GLOW_HOT static void float_mlp_infer(uint8_t *arena) {
  /* 0: FullyConnected h, hb, r */
  GLOW_LAYER_BEGIN(float_mlp, 0u);
  float_mlp_fc_f32__ref((const float *)(const void *)(arena + 0), float_mlp_w_w1_ok, float_mlp_w_hb_bias, (float *)(void *)(arena + 24), &float_mlp_args_0);
  GLOW_LAYER_END(float_mlp, 0u);
  GLOW_LAYER_BARRIER();
  /* 1: FullyConnected l */
  GLOW_LAYER_BEGIN(float_mlp, 1u);
  float_mlp_fc_f32__ref((const float *)(const void *)(arena + 24), float_mlp_w_w2_ok, float_mlp_w_l_bias, (float *)(void *)(arena + 0), &float_mlp_args_1);
  GLOW_LAYER_END(float_mlp, 1u);
  GLOW_LAYER_BARRIER();
  /* 2: Softmax y */
  GLOW_LAYER_BEGIN(float_mlp, 2u);
  float_mlp_softmax_f32__ref((const float *)(const void *)(arena + 0), (float *)(void *)(arena + 0));
  GLOW_LAYER_END(float_mlp, 2u);
  GLOW_LAYER_BARRIER();
}
