/* SPDX-License-Identifier: MIT-0 */
/* Listens for a wake word: pushes sound into a bundle of a front end and networks, and takes the mean of its last answers.
 *
 * Sound is read from audio.pcm (16 kHz, 16 bits) in pieces of 10 ms; a product would take it from its microphone. Answers go to a
 * file for whoever compares them. demo.py gives ANSWER, the function of the output that is looked at, its scale and zero point. */
#include "glow_io.h"
#include "word.h"

#define PIECE 160u

static int16_t samples[PIECE];
static float last[WINDOW];

/* The mean of the last answers is above the cutoff. */
static int detected(float probability, uint32_t answers) {
  float sum = 0.0f;
  last[answers % WINDOW] = probability;
  for (uint32_t i = 0u; i < WINDOW; i++) {
    sum += last[i];
  }
  return answers + 1u >= WINDOW && sum > CUTOFF * WINDOW;
}

static void report(uint32_t heard) {
  glow_io_puts("wake word at ");
  glow_io_put_u32(heard / 16u);
  glow_io_puts(" ms\n");
}

int main(void) {
  const int audio = glow_io_open_read("audio.pcm"), answers = glow_io_open_write("answers.bin");
  int status = word_reset(), was = 0;
  uint32_t heard = 0u, count = 0u;
  while (status >= GLOW_OK && glow_io_read(audio, samples, sizeof samples) == (long)sizeof samples) {
    size_t taken = 0u;
    for (size_t used = 0u; used < PIECE && status >= GLOW_OK; used += taken) {
      status = word_push(samples + used, PIECE - used, &taken);
      heard += (uint32_t)taken;
      if (status == GLOW_OK) {
        const float probability = SCALE * ((float)ANSWER()[CLASS] - ZERO_POINT);
        const int is = detected(probability, count++);
        glow_io_write(answers, &probability, sizeof probability);
        if (is && !was) {
          report(heard);
        }
        was = is;
      }
    }
  }
  glow_io_close(audio);
  glow_io_close(answers);
  glow_io_exit(status >= GLOW_OK ? 0 : 1);
  return 0;
}
