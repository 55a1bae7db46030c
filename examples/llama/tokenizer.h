/* SPDX-License-Identifier: MIT-0 */
/* Text to tokens and back by the pieces and scores of tokens.h, which make_tokenizer.py writes. */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

/* Writes the tokens of a text, the first one of a text before them; returns how many, -1 if there are more than `most`. */
int32_t tokenizer_encode(const char *text, int64_t *tokens, int32_t most);

/* The text of a token, which ends after so many bytes. */
const char *tokenizer_text(int64_t token, size_t *bytes);

#endif
