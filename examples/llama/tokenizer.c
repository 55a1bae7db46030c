/* SPDX-License-Identifier: MIT-0 */
/* Byte-pair encoding as SentencePiece has it: a text is its characters, or bytes of those that are no piece, and the two
 * neighbors whose joined piece has the best score become that piece, until none do. */
#include "tokenizer.h"

#include <string.h>

#include "tokens.h"

const char *tokenizer_text(int64_t token, size_t *bytes) {
  *bytes = (size_t)(tokens_begin[token + 1] - tokens_begin[token]);
  return (const char *)(tokens_text + tokens_begin[token]);
}

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
  const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
  return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* The piece with that text, -1 if there is none. */
static int32_t find(const char *text, size_t bytes) {
  int32_t low = 0;
  int32_t high = TOKENS_SORTED;
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    size_t own;
    const char *piece = tokenizer_text(tokens_sorted[middle], &own);
    const int order = compare(text, bytes, piece, own);
    if (order == 0) {
      return tokens_sorted[middle];
    }
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return -1;
}

/* The piece that two neighbors are together, -1 if there is none. */
static int32_t joined(int64_t left, int64_t right) {
  char text[TOKENS_LONGEST];
  size_t a;
  size_t b;
  const char *first = tokenizer_text(left, &a);
  const char *second = tokenizer_text(right, &b);
  if (a + b > sizeof text) {
    return -1;
  }
  memcpy(text, first, a);
  memcpy(text + a, second, b);
  return find(text, a + b);
}

/* Bytes of the character that a text begins with (UTF-8). */
static size_t character(const char *text) {
  size_t bytes = 1;
  while (((unsigned)text[bytes] & 0xC0u) == 0x80u) {
    bytes++;
  }
  return bytes;
}

/* Appends a character, a piece or its bytes; returns how many tokens there are, -1 if they are too many. */
static int32_t append(const char *text, size_t bytes, int64_t *tokens, int32_t count, int32_t most) {
  const int32_t piece = find(text, bytes);
  const int32_t more = piece >= 0 ? 1 : (int32_t)bytes;
  if (count + more > most) {
    return -1;
  }
  for (int32_t i = 0; i < more; i++) {
    tokens[count + i] = piece >= 0 ? piece : TOKENS_BYTES + (unsigned char)text[i];
  }
  return count + more;
}

static int32_t merge(int64_t *tokens, int32_t count) {
  for (;;) {
    int32_t at = -1;
    int32_t best = -1;
    for (int32_t i = 1; i + 1 < count; i++) {
      const int32_t piece = joined(tokens[i], tokens[i + 1]);
      if (piece >= 0 && (best < 0 || tokens_score[piece] > tokens_score[best])) {
        best = piece;
        at = i;
      }
    }
    if (at < 0) {
      return count;
    }
    tokens[at] = best;
    count--;
    memmove(tokens + at + 1, tokens + at + 2, (size_t)(count - at - 1) * sizeof *tokens);
  }
}

int32_t tokenizer_encode(const char *text, int64_t *tokens, int32_t most) {
  if (most < 1) {
    return -1;
  }
  tokens[0] = TOKENS_FIRST;
  int32_t count = 1;
  if (*text != '\0') {
    count = append(" ", 1, tokens, count, most);
  }
  while (*text != '\0' && count > 0) {
    const size_t bytes = character(text);
    count = append(text, bytes, tokens, count, most);
    text += bytes;
  }
  return count < 0 ? -1 : merge(tokens, count);
}
