static void dense_fc_s8__m3(const int8_t *restrict in, const int8_t *restrict weights, const int32_t *restrict bias, const float *restrict scale, int8_t *restrict out) {
  for (int32_t r = 0; r < 1; r++) {
    const int8_t *x = in + r * 8;
    int8_t *y = out + r * 3;
    for (int32_t n = 0; n < 3; n += 4) {
      const int32_t many = 3 - n < 4 ? 3 - n : 4;
      const int8_t *w0 = weights + n * 8;
      const int8_t *w1 = w0 + (many > 1 ? 1 : 0) * 8;
      const int8_t *w2 = w0 + (many > 2 ? 2 : 0) * 8;
      const int8_t *w3 = w0 + (many > 3 ? 3 : 0) * 8;
      int32_t sum[4] = {0, 0, 0, 0};
      int32_t a = 0;
      int32_t b = 0;
      int32_t c = 0;
      int32_t d = 0;
      int32_t k = 0;
      for (; k + 4 <= 8; k += 4, w0 += 4, w1 += 4, w2 += 4, w3 += 4) {
        const int32_t v0 = x[k + 0];
        a += v0 * w0[0];
        b += v0 * w1[0];
        c += v0 * w2[0];
        d += v0 * w3[0];
        const int32_t v1 = x[k + 1];
        a += v1 * w0[1];
        b += v1 * w1[1];
        c += v1 * w2[1];
        d += v1 * w3[1];
        const int32_t v2 = x[k + 2];
        a += v2 * w0[2];
        b += v2 * w1[2];
        c += v2 * w2[2];
        d += v2 * w3[2];
        const int32_t v3 = x[k + 3];
        a += v3 * w0[3];
        b += v3 * w1[3];
        c += v3 * w2[3];
        d += v3 * w3[3];
      }
      for (; k < 8; k++) {
        const int32_t v = x[k];
        a += v * *w0++;
        b += v * *w1++;
        c += v * *w2++;
        d += v * *w3++;
      }
      sum[0] = a;
      sum[1] = b;
      sum[2] = c;
      sum[3] = d;
      for (int32_t i = 0; i < many; i++) {
        const float s = scale[(n + i) * 0];
        y[n + i] = (int8_t)glow_m3_requant(sum[i] + bias[n + i], glow_m3_factor(s), s, 4, (-128), 127);
      }
    }
  }
}

static void dense_softmax_s8__ref(const int8_t *in, const float *restrict table, int8_t *out) {
  for (int32_t o = 0; o < 1; o++) {
    for (int32_t i = 0; i < 1; i++) {
      const int32_t base = o * 3 * 1 + i;
      int32_t max = -128;
      for (int32_t k = 0; k < 3; k++) {
        const int32_t q = in[base + k * 1];
        max = q > max ? q : max;
      }
      float sum = 0.0f;
      for (int32_t k = 0; k < 3; k++) {
        sum += table[max - in[base + k * 1]];
      }
      for (int32_t k = 0; k < 3; k++) {
        const float part = table[max - in[base + k * 1]] * 256.0f;
        out[base + k * 1] = (int8_t)glow_round_clamp(part / sum, (-128), -128, 127);
      }
    }
  }
}


static void dense_infer(uint8_t *arena) {
  /* 0: FullyConnected fc */
  glow_profile_begin(0u);
  dense_fc_s8__m3((const int8_t *)(arena + 0), dense_w_fc_weights, dense_w_fc_bias_m3, dense_w_fc_scale, (int8_t *)(arena + 8));
  glow_profile_end(0u);
  GLOW_LAYER_BARRIER();
  /* 1: Softmax soft */
  glow_profile_begin(1u);
  dense_softmax_s8__ref((const int8_t *)(arena + 8), dense_w_soft_exp, (int8_t *)(arena + 8));
  glow_profile_end(1u);
  GLOW_LAYER_BARRIER();
}
