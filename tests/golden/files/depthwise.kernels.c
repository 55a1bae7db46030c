static void depthwise_conv_s8__m3(const int8_t *in, const int8_t *restrict weights, const int32_t *restrict bias, const float *restrict scale, int8_t *out, uint8_t *restrict scratch, int32_t y_begin, int32_t y_end) {
  const int32_t taps = 1 * 1 * 2;
  const glow_m3_gemm_t g = {weights, bias, scale, taps, 4, 0, 5, (-128), 127};
  for (int32_t n = 0; n < 1; n++) {
    const int8_t *image = in + n * 50;
    const int8_t *from[2] = {in, in};
    int8_t *to[2] = {out, out};
    int32_t held = 0;
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = 0 != 0 ? y_end - 1 - i : y_begin + i;
      int8_t *line = out + n * 100 + (y % 5) * 20;
      for (int32_t x = 0; x < 5; x++, line += 4) {
        to[held] = line;
        int8_t *bytes = (int8_t *)scratch + held * taps;
        from[held] = bytes;
        const int32_t left = x * 1 - 0;
        for (int32_t ky = 0; ky < 1; ky++) {
          const int32_t iy = y * 1 - 0 + ky * 1;
          const int inside = iy >= 0 && iy < 5;
          const int8_t *row = image + (inside ? iy % 5 : 0) * 5;
          for (int32_t kx = 0; kx < 1; kx++) {
            const int32_t ix = left + kx * 1;
            if (inside && ix >= 0 && ix < 5) {
              const int8_t *source = row + ix * 1;
              for (int32_t c = 0; c < 2; c++, source += 25) {
                *bytes++ = *source;
              }
            } else {
              for (int32_t c = 0; c < 2; c++) {
                *bytes++ = (int8_t)(1);
              }
            }
          }
        }
        if (held == 1) {
          glow_m3_gemm(&g, from[0], from[1], to[0], to[1]);
        }
        held ^= 1;
      }
    }
    if (held == 1) {
      glow_m3_gemm(&g, from[0], from[0], to[0], to[0]);
    }
  }
}

static void depthwise_dwconv_s8__m3(const int8_t *in, const int8_t *restrict weights, const int32_t *restrict bias, const float *restrict scale, int8_t *out, int32_t y_begin, int32_t y_end) {
  for (int32_t n = 0; n < 1; n++) {
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = 1 != 0 ? y_end - 1 - i : y_begin + i;
      int8_t *to = out + n * 36 + (y % 3) * 12;
      const int8_t *rows[3];
      for (int32_t ky = 0; ky < 3; ky++) {
        const int32_t iy = y * 2 - 1 + ky * 1;
        rows[ky] = iy >= 0 && iy < 5 ? in + n * 100 + (iy % 5) * 20 : NULL;
      }
      for (int32_t x = 0; x < 3; x++) {
        const int32_t left = x * 2 - 1;
        int32_t first = 0;
        int32_t end = 3;
        while (first < end && left + first * 1 < 0) {
          first++;
        }
        while (end > first && left + (end - 1) * 1 >= 5) {
          end--;
        }
        const int32_t step = 1 * 4;
        for (int32_t c = 0; c < 4; c++) {
          int32_t acc = bias[c];
          for (int32_t ky = 0; ky < 3; ky++) {
            if (rows[ky] == NULL) {
              continue;
            }
            const int8_t *from = rows[ky] + left * 4 + first * step + c;
            const int8_t *w = weights + (ky * 3 + first) * 4 + c;
            if (end - first == 3) {
              acc += (from[0 * step] - 5) * w[0 * 4];
              acc += (from[1 * step] - 5) * w[1 * 4];
              acc += (from[2 * step] - 5) * w[2 * 4];
              continue;
            }
            for (int32_t kx = first; kx < end; kx++, from += step, w += 4) {
              acc += (*from - 5) * *w;
            }
          }
          const float s = scale[c * 1];
          to[c] = (int8_t)glow_m3_requant(acc, glow_m3_factor(s), s, (-7), (-128), 127);
        }
        to += 4;
      }
    }
  }
}

static void depthwise_reduce_mean_s8__ref(const int8_t *restrict in, int8_t *restrict out) {
  for (int32_t o = 0; o < 1; o++) {
    for (int32_t i = 0; i < 4; i++) {
      int32_t acc = 0;
      for (int32_t k = 0; k < 9; k++) {
        acc += (int32_t)in[(o * 9 + k) * 4 + i] - (-7);
      }
      const int32_t code = glow_requant(acc, 0.22222222f, 0, (-128), 127);
      out[o * 4 + i] = (int8_t)code;
    }
  }
}


static void depthwise_infer(uint8_t *arena) {
  /* 0: Conv point */
  glow_profile_begin(0u);
  depthwise_conv_s8__m3((const int8_t *)(arena + 84), depthwise_w_point_weights, depthwise_w_point_bias_m3, depthwise_w_point_scale, (int8_t *)(arena + 4), (uint8_t *)(arena + 0), 0, 5);
  glow_profile_end(0u);
  GLOW_LAYER_BARRIER();
  /* 1: Conv depth */
  glow_profile_begin(1u);
  depthwise_dwconv_s8__m3((const int8_t *)(arena + 4), depthwise_w_depth_weights, depthwise_w_point_bias, depthwise_w_depth_scale, (int8_t *)(arena + 80), 0, 3);
  glow_profile_end(1u);
  GLOW_LAYER_BARRIER();
  /* 2: ReduceMean mean */
  glow_profile_begin(2u);
  depthwise_reduce_mean_s8__ref((const int8_t *)(arena + 80), (int8_t *)(arena + 0));
  glow_profile_end(2u);
  GLOW_LAYER_BARRIER();
}
