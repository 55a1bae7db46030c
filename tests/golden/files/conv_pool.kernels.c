static void conv_pool_conv_s8__m3(const int8_t *in, const int8_t *restrict weights, const int32_t *restrict bias, const float *restrict scale, int8_t *out, uint8_t *restrict scratch, int32_t y_begin, int32_t y_end) {
  const int32_t taps = 3 * 3 * 1;
  const glow_m3_gemm_t g = {weights, bias, scale, taps, 2, 1, (-128), (-128), 127};
  for (int32_t n = 0; n < 1; n++) {
    const int8_t *image = in + n * 36;
    const int8_t *from[2] = {in, in};
    int8_t *to[2] = {out, out};
    int32_t held = 0;
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = 0 != 0 ? y_end - 1 - i : y_begin + i;
      int8_t *line = out + n * 72 + (y % 6) * 12;
      for (int32_t x = 0; x < 6; x++, line += 2) {
        to[held] = line;
        int8_t *bytes = (int8_t *)scratch + held * taps;
        from[held] = bytes;
        const int32_t left = x * 1 - 1;
        for (int32_t ky = 0; ky < 3; ky++) {
          const int32_t iy = y * 1 - 1 + ky * 1;
          const int inside = iy >= 0 && iy < 6;
          const int8_t *row = image + (inside ? iy % 6 : 0) * 6;
          if (inside && left >= 0 && left + 3 <= 6) {
            glow_m3_copy(bytes, row + left * 1, 3 * 1);
            bytes += 3 * 1;
            continue;
          }
          for (int32_t kx = 0; kx < 3; kx++) {
            const int32_t ix = left + kx * 1;
            if (inside && ix >= 0 && ix < 6) {
              const int8_t *source = row + ix * 1;
              for (int32_t c = 0; c < 1; c++, source += 1) {
                *bytes++ = *source;
              }
            } else {
              for (int32_t c = 0; c < 1; c++) {
                *bytes++ = (int8_t)(3);
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

static void conv_pool_max_pool_s8__ref(const int8_t *in, int8_t *out, int32_t y_begin, int32_t y_end) {
  for (int32_t n = 0; n < 1; n++) {
    for (int32_t row = 0; row < y_end - y_begin; row++) {
      const int32_t y = 1 != 0 ? y_end - 1 - row : y_begin + row;
      const int32_t top = y * 2 - 0;
      int8_t *line = out + n * 18 + (y % 3) * 6;
      for (int32_t x = 0; x < 3; x++) {
        const int32_t left = x * 2 - 0;
        for (int32_t c = 0; c < 2; c++) {
          int8_t best = INT8_MIN;
          for (int32_t ky = 0; ky < 2; ky++) {
            const int32_t r = top + ky * 1;
            if (r < 0 || r >= 6) {
              continue;
            }
            const int8_t *source = in + n * 72 + (r % 6) * 12;
            for (int32_t kx = 0; kx < 2; kx++) {
              const int32_t q = left + kx * 1;
              if (q < 0 || q >= 6) {
                continue;
              }
              const int8_t v = source[q * 2 + c * 1];
              best = v > best ? v : best;
            }
          }
          line[x * 2 + c] = best;
        }
      }
    }
  }
}

static void conv_pool_copy_b1__ref(const int8_t *restrict in, int8_t *restrict out) {
  for (int32_t x0 = 0; x0 < 2; x0++) {
    for (int32_t x1 = 0; x1 < 9; x1++) {
      const int32_t i = 0 + x0 * 1 + x1 * 2;
      const int32_t o = 0 + x0 * 9 + x1 * 1;
      out[o] = in[i];
    }
  }
}


static void conv_pool_infer(uint8_t *arena) {
  /* 0: Conv conv, relu */
  glow_profile_begin(0u);
  conv_pool_conv_s8__m3((const int8_t *)(arena + 48), conv_pool_w_conv_weights, conv_pool_w_conv_bias_m3, conv_pool_w_conv_scale, (int8_t *)(arena + 0), (uint8_t *)(arena + 84), 0, 6);
  glow_profile_end(0u);
  GLOW_LAYER_BARRIER();
  /* 1: MaxPool pool */
  glow_profile_begin(1u);
  conv_pool_max_pool_s8__ref((const int8_t *)(arena + 0), (int8_t *)(arena + 60), 0, 3);
  glow_profile_end(1u);
  GLOW_LAYER_BARRIER();
  /* 2: Transpose pool */
  glow_profile_begin(2u);
  conv_pool_copy_b1__ref((const int8_t *)(arena + 60), (int8_t *)(arena + 0));
  glow_profile_end(2u);
  GLOW_LAYER_BARRIER();
}
