/* Fully connected layer: clamp(rne((bias + sum (in - in_zp) * (weights - w_zp)) * scale) + out_zp).
 * Layer (FullyConnected): 0 fc.
 * Sizes: in 1x8, out 1x3; no operand overlaps another. */
GLOW_KERNEL void dense_fc_s8__v7m(const int8_t *restrict in, const int8_t *restrict weights,
    const int32_t *restrict bias, const float *restrict scale, int8_t *restrict out) {
  const int8_t *w = weights;
  const glow_thumb_fc_t ends = { scale, 0, (uint32_t)bias[3], 4, NULL, out};
  for (int32_t n = 0; n < 3; n += GLOW_THUMB_FC) {
    const int32_t many = 3 - n < GLOW_THUMB_FC ? 3 - n : GLOW_THUMB_FC;
    int32_t sum[GLOW_THUMB_FC];
    memcpy(sum, bias + n, (size_t)many * sizeof sum[0]);
    if (many == GLOW_THUMB_FC) {
      glow_thumb_fc8(sum, in, w, 8);
    } else {
      for (int32_t i = 0; i < many; i++) {
        sum[i] = glow_thumb_fc1(sum[i], in, w + i * 8, 8);
      }
    }
    w += many * 8;
    glow_thumb_fc_store(&ends, out + n, sum, many);
  }
}

/* table: a[16], b[16], top, fall. Entry d: mantissa a[d / 16] * b[d % 16], biased exponent floor(top - d * fall). */
GLOW_HOT static float dense_softmax_s8p__ref_exp(const uint32_t *table, uint32_t d) {
  const uint32_t product = (uint32_t)(((uint64_t)table[d / 16u] * table[16u + d % 16u]) >> 32);
  const int32_t power = (int32_t)(table[32] - d * table[33]) >> 20;
  const uint32_t drop = 6u + (product >> 31);
  uint32_t bits = 0u;
  if (power > 0) {
    bits = ((product >> drop) + 1u) / 2u + ((uint32_t)(power - 1) << 23);
  } else if (power > -24) {
    bits = ((product >> (drop + 1u - (uint32_t)power)) + 1u) / 2u; /* denormal */
  }
  float e;
  memcpy(&e, &bits, sizeof e);
  return e;
}

/* int8 softmax by products of two table entries.
 * Layer (Softmax): 1 soft.
 * Sizes: in 1x3, out 1x3; the output may be in. */
GLOW_KERNEL void dense_softmax_s8p__ref(const int8_t *in, const uint32_t *restrict table, int8_t *out) {
  for (int32_t o = 0; o < 1; o++) {
    for (int32_t i = 0; i < 1; i++) {
      const int32_t base = o * 3 + i;
      int32_t max = -128;
      for (int32_t k = 0; k < 3; k++) {
        const int32_t q = in[base + k];
        max = q > max ? q : max;
      }
      float sum = 0.0f;
      for (int32_t k = 0; k < 3; k++) {
        sum += dense_softmax_s8p__ref_exp(table, (uint32_t)(max - in[base + k]));
      }
      for (int32_t k = 0; k < 3; k++) {
        const float part = dense_softmax_s8p__ref_exp(table, (uint32_t)(max - in[base + k])) * 256.0f;
        out[base + k] = (int8_t)glow_round_clamp(part / sum, -128, -128, 127);
      }
    }
  }
}


GLOW_HOT static void dense_infer(uint8_t *arena) {
  /* 0: FullyConnected fc */
  GLOW_LAYER_BEGIN(dense, 0u);
  dense_fc_s8__v7m((const int8_t *)(arena + 0), dense_w_fc_weights_v7m, dense_w_fc_bias_v7m, dense_w_fc_scale, (int8_t *)(arena + 8));
  GLOW_LAYER_END(dense, 0u);
  GLOW_LAYER_BARRIER();
  /* 1: Softmax soft */
  GLOW_LAYER_BEGIN(dense, 1u);
  dense_softmax_s8p__ref((const int8_t *)(arena + 8), dense_w_soft_exp, (int8_t *)(arena + 8));
  GLOW_LAYER_END(dense, 1u);
  GLOW_LAYER_BARRIER();
}
