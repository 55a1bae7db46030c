/* SPDX-License-Identifier: MIT-0 */
/* Listens for a wake word: every 10 ms of sound the features, every 30 ms the network, and the mean of its last answers.
 *
 * Sound is read from audio.pcm (16 kHz, 16 bits); a product would take it from its microphone. Features and probabilities go to
 * files for whoever compares them. glow_mark() stands around both so that QEMU's plugin counts their instructions. */
#include <string.h>

#include "features.h"
#include "glow_io.h"
#include "wake_word.h"

#define HOP 160u
#define FRAME FEATURES_INPUT_ELEMENTS
#define STEPS 3u /* hops for each answer of the network */

static int16_t frame[FRAME];
static uint8_t last[WINDOW]; /* the network's last answers, 255 is nearly certain */

static int write(int file, const void *data, size_t bytes) { return glow_io_write(file, data, bytes) == (long)bytes; }

/* The mean of the last answers is above the cutoff: both sides times WINDOW * 256. */
static int detected(uint8_t probability, uint32_t answers) {
  uint32_t sum = 0;
  last[answers % WINDOW] = probability;
  for (uint32_t i = 0; i < WINDOW; i++) {
    sum += last[i];
  }
  return answers + 1u >= WINDOW && sum * 100u > CUTOFF_PERCENT * WINDOW * 256u;
}

static void report(uint32_t hops) {
  glow_io_puts("wake word at ");
  glow_io_put_u32(hops * 10u);
  glow_io_puts(" ms\n");
}

int main(void) {
  const int audio = glow_io_open_read("audio.pcm");
  const int features = glow_io_open_write("features.bin"), answers = glow_io_open_write("probabilities.bin");
  int ok = features_reset() == GLOW_OK && wake_word_reset() == GLOW_OK, was = 0;
  uint32_t hops = 0, frames = 0;
  glow_mark();
  glow_mark();
  while (ok && glow_io_read(audio, frame + FRAME - HOP, HOP * sizeof frame[0]) == (long)(HOP * sizeof frame[0])) {
    hops++;
    if (hops * HOP >= FRAME) {
      memcpy(features_input(), frame, sizeof frame);
      glow_mark();
      ok = features_run() == GLOW_OK;
      glow_mark();
      ok = ok && write(features, features_output_features(), FEATURES_OUTPUT_FEATURES_BYTES);
      memcpy(wake_word_input() + frames % STEPS * FEATURES_OUTPUT_CODES_ELEMENTS, features_output_codes(),
             FEATURES_OUTPUT_CODES_BYTES);
      frames++;
      if (frames % STEPS == 0u) {
        glow_mark();
        ok = ok && wake_word_run() == GLOW_OK;
        glow_mark();
        const uint8_t probability = wake_word_output()[0];
        ok = ok && write(answers, &probability, sizeof probability);
        const int is = detected(probability, frames / STEPS - 1u);
        if (is && !was) {
          report(hops);
        }
        was = is;
      }
    }
    memmove(frame, frame + HOP, sizeof frame - HOP * sizeof frame[0]);
  }
  glow_io_close(audio);
  glow_io_close(features);
  glow_io_close(answers);
  glow_io_exit(ok ? 0 : 1);
  return 0;
}
