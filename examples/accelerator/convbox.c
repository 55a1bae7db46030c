/* A model of the accelerator: what the hardware would do with the commands. SPDX-License-Identifier: MIT-0 */
#include "convbox.h"

#include <string.h>

/* One layer as convbox.py writes it: 16 words. */
typedef struct {
  int32_t in_h, in_w, in_c, out_h, out_w, out_c, k_h, k_w, stride_h, stride_w, pad_top, pad_left, group, in_zp, out_zp, data;
} convbox_layer;

static int32_t word_at(const uint8_t *bytes) {
  int32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

/* Rounds half to even: between -2^22 and 2^22 the sum has no room for a fraction. */
static int32_t rounded(float value) {
  const float shifted = value + 12582912.0f;
  return (int32_t)(shifted - 12582912.0f);
}

static int8_t ended(int32_t sum, float scale, int32_t zero_point) {
  const float low = (float)(-128 - zero_point), high = (float)(127 - zero_point);
  float value = (float)sum * scale;
  value = value < low ? low : value;
  value = value > high ? high : value;
  return (int8_t)(rounded(value) + zero_point);
}

static int32_t window(const convbox_layer *l, const int8_t *in, const int8_t *weights, int32_t y, int32_t x, int32_t first, int32_t channels) {
  int32_t sum = 0;
  for (int32_t ky = 0; ky < l->k_h; ky++) {
    for (int32_t kx = 0; kx < l->k_w; kx++) {
      const int32_t row = y * l->stride_h - l->pad_top + ky, column = x * l->stride_w - l->pad_left + kx;
      if (row < 0 || row >= l->in_h || column < 0 || column >= l->in_w) {
        continue;
      }
      for (int32_t c = 0; c < channels; c++) {
        sum += ((int32_t)in[(row * l->in_w + column) * l->in_c + first + c] - l->in_zp) * weights[(ky * l->k_w + kx) * channels + c];
      }
    }
  }
  return sum;
}

static void run_layer(const convbox_layer *l, const uint8_t *data, const int8_t *in, int8_t *out) {
  const int32_t channels = l->in_c / l->group, taps = l->k_h * l->k_w * channels;
  const int8_t *weights = (const int8_t *)(data + 8 * l->out_c);
  for (int32_t y = 0; y < l->out_h; y++) {
    for (int32_t x = 0; x < l->out_w; x++) {
      for (int32_t o = 0; o < l->out_c; o++) {
        const int32_t first = o / (l->out_c / l->group) * channels;
        float scale;
        memcpy(&scale, data + 4 * l->out_c + 4 * o, sizeof scale);
        const int32_t sum = word_at(data + 4 * o) + window(l, in, weights + o * taps, y, x, first, channels);
        out[(y * l->out_w + x) * l->out_c + o] = ended(sum, scale, l->out_zp);
      }
    }
  }
}

void convbox_run(const int8_t *in, int8_t *out, const uint8_t *commands, uint8_t *scratch) {
  const int32_t count = word_at(commands);
  const uint8_t *layers = commands + 4, *data = layers + (uint32_t)count * sizeof(convbox_layer);
  int32_t most = 0;
  for (int32_t i = 0; i + 1 < count; i++) {
    convbox_layer layer;
    memcpy(&layer, layers + (uint32_t)i * sizeof layer, sizeof layer);
    const int32_t size = layer.out_h * layer.out_w * layer.out_c;
    most = size > most ? size : most;
  }
  for (int32_t i = 0; i < count; i++) {
    convbox_layer layer;
    memcpy(&layer, layers + (uint32_t)i * sizeof layer, sizeof layer);
    int8_t *to = i + 1 < count ? (int8_t *)scratch + (i % 2) * most : out;
    run_layer(&layer, data + layer.data, in, to);
    in = to;
  }
}

void convbox_run_one(const int8_t *in, int8_t *out, const uint8_t *commands) {
  convbox_layer layer;
  memcpy(&layer, commands + 4, sizeof layer);
  run_layer(&layer, commands + 4 + sizeof layer + layer.data, in, out);
}
