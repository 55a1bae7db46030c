/* SPDX-License-Identifier: MIT-0 */
/* Continues the text of prompt.txt: whole groups of tokens by the model `prompt`, the others one by one by `step`. Both have
 * the same weights and the same caches. Tokens go to tokens.bin for whoever compares them. */
#include "glow_io.h"
#include "llama.h"
#include "prompt.h"
#include "sampler.h"
#include "step.h"
#include "tokenizer.h"

#ifndef STEPS
#define STEPS 64
#endif
#ifndef TEMPERATURE
#define TEMPERATURE 0.0f
#endif
#ifndef TOP_P
#define TOP_P 0.9f
#endif
#ifndef SEED
#define SEED 1
#endif
#define GROUP ((int32_t)PROMPT_INPUT_TOKENS_ELEMENTS)
#define VOCABULARY ((int32_t)STEP_OUTPUT_ELEMENTS)
#define MOST 256 /* rows of the caches */

static int64_t tokens[MOST + 1];
static char text[2048];

/* Computes what follows tokens [first, end), returns the logits of the last one. */
static float *logits_of(int32_t first, int32_t end) {
  float *logits = NULL;
  while (first < end) {
    const int32_t count = end - first >= GROUP ? GROUP : 1;
    int64_t *in = count == GROUP ? prompt_input_tokens() : step_input_tokens();
    int64_t *places = count == GROUP ? prompt_input_position_ids() : step_input_position_ids();
    for (int32_t i = 0; i < count; i++) {
      in[i] = tokens[first + i];
      places[i] = first + i;
    }
    if ((count == GROUP ? prompt_run() : step_run()) != GLOW_OK) {
      return NULL;
    }
    logits = count == GROUP ? prompt_output() + (GROUP - 1) * VOCABULARY : step_output();
    first += count;
  }
  return logits;
}

static void print(int64_t token) {
  char piece[64];
  size_t bytes;
  const char *from = tokenizer_text(token, &bytes);
  for (size_t i = 0; i < bytes && i + 1 < sizeof piece; i++) {
    piece[i] = from[i];
    piece[i + 1] = '\0';
  }
  if (bytes > 0) {
    glow_io_puts(piece);
  }
}

int main(void) {
  const int in = glow_io_open_read("prompt.txt");
  const int out = glow_io_open_write("tokens.bin");
  sampler_t sampler = {TEMPERATURE, TOP_P, SEED};
  if (in < 0 || out < 0 || glow_io_read(in, text, sizeof text - 1) < 0 || step_reset() != GLOW_OK) {
    return 1;
  }
  int32_t count = tokenizer_encode(text, tokens, MOST - STEPS + 1);
  if (count < 0) {
    glow_io_puts("the prompt is too long\n");
    return 1;
  }
  float *logits = logits_of(0, count);
  glow_mark();
  for (int32_t i = 0; i < STEPS && logits != NULL; i++) {
    tokens[count] = sampler_next(&sampler, logits, VOCABULARY);
    print(tokens[count]);
    count++;
    logits = i + 1 < STEPS ? logits_of(count - 1, count) : logits;
  }
  glow_mark();
  glow_io_puts("\n");
  return logits == NULL || glow_io_write(out, tokens, (size_t)count * sizeof *tokens) < 0;
}
