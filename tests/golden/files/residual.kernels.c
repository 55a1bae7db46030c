static void residual_conv_s8__m3(const int8_t *in, const int8_t *restrict weights, const int32_t *restrict bias, const float *restrict scale, int8_t *out, uint8_t *restrict scratch, int32_t y_begin, int32_t y_end) {
  const int32_t taps = 1 * 1 * 4;
  const glow_m3_gemm_t g = {weights, bias, scale, taps, 4, 0, (-2), (-128), 127};
  for (int32_t n = 0; n < 1; n++) {
    const int8_t *image = in + n * 64;
    const int8_t *from[2] = {in, in};
    int8_t *to[2] = {out, out};
    int32_t held = 0;
    for (int32_t i = 0; i < y_end - y_begin; i++) {
      const int32_t y = 0 != 0 ? y_end - 1 - i : y_begin + i;
      int8_t *line = out + n * 64 + (y % 4) * 16;
      for (int32_t x = 0; x < 4; x++, line += 4) {
        to[held] = line;
        int8_t *bytes = (int8_t *)scratch + held * taps;
        from[held] = bytes;
        const int32_t left = x * 1 - 0;
        for (int32_t ky = 0; ky < 1; ky++) {
          const int32_t iy = y * 1 - 0 + ky * 1;
          const int inside = iy >= 0 && iy < 4;
          const int8_t *row = image + (inside ? iy % 4 : 0) * 4;
          for (int32_t kx = 0; kx < 1; kx++) {
            const int32_t ix = left + kx * 1;
            if (inside && ix >= 0 && ix < 4) {
              const int8_t *source = row + ix * 1;
              for (int32_t c = 0; c < 4; c++, source += 16) {
                *bytes++ = *source;
              }
            } else {
              for (int32_t c = 0; c < 4; c++) {
                *bytes++ = (int8_t)(0);
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

static void residual_copy_b1__ref(const int8_t *restrict in, int8_t *restrict out) {
  for (int32_t x0 = 0; x0 < 4; x0++) {
    for (int32_t x1 = 0; x1 < 16; x1++) {
      const int32_t i = 0 + x0 * 1 + x1 * 4;
      const int32_t o = 0 + x0 * 16 + x1 * 1;
      out[o] = in[i];
    }
  }
}

static void residual_add_s8f__ref(const int8_t *a, const int8_t *b, int8_t *out) {
  int32_t o = 0;
  for (int32_t x0 = 0; x0 < 64; x0++) {
    const int32_t qa = a[x0 * 1];
    const int32_t qb = b[x0 * 1];
    const float inner = glow_fma((float)(qb + 0), 0.6666666f, (-126.666664f));
    const float code = glow_fma((float)(qa + 0), 0.8333333f, inner);
    out[o] = (int8_t)(glow_round_clamp(code, 0, (-128) + 0, 127 + 0) - 0);
    o++;
  }
}


static void residual_infer(uint8_t *arena) {
  /* 0: Conv conv */
  glow_profile_begin(0u);
  residual_conv_s8__m3((const int8_t *)(arena + 0), residual_w_conv_weights, residual_w_conv_bias, residual_w_conv_scale, (int8_t *)(arena + 64), (uint8_t *)(arena + 128), 0, 4);
  glow_profile_end(0u);
  GLOW_LAYER_BARRIER();
  /* 1: Transpose conv */
  glow_profile_begin(1u);
  residual_copy_b1__ref((const int8_t *)(arena + 64), (int8_t *)(arena + 128));
  glow_profile_end(1u);
  GLOW_LAYER_BARRIER();
  /* 2: Add sum, relu */
  glow_profile_begin(2u);
  residual_add_s8f__ref((const int8_t *)(arena + 0), (const int8_t *)(arena + 128), (int8_t *)(arena + 128));
  glow_profile_end(2u);
  GLOW_LAYER_BARRIER();
}
