/* SPDX-License-Identifier: MIT-0 */
/* Runs kernel calls recorded in cases.bin and writes what they produced to results.bin.
 *
 * A record is, in 32-bit words of the machine's (little) endianness:
 *   entry, number, parameters, operands, y_begin, y_end
 *   parameters x word
 *   operands x (access, bytes, align, alias)
 *   the bytes of each operand that is no alias, one after the other
 * entry 0xFFFFFFFF ends the file. alias = k + 1: the operand has the address of operand k.
 * The answer is a word (bit i: bytes around operand i changed; bit 16 + i: input i changed), then the bytes
 * of every OUT and INOUT operand. Exit status 0: all cases ran; 2: the file does not fit this program. */
#include "glow_guard.h"
#include "glow_harness.h"
#include "glow_io.h"

enum { ENTRY, NUMBER, PARAMS, OPERANDS, Y_BEGIN, Y_END, HEADER_WORDS };
enum { ACCESS, BYTES, ALIGN, ALIAS, OPERAND_WORDS };
enum { IN, OUT, INOUT, SCRATCH };
enum { MAX_PARAMS = 256, MAX_OPERANDS = GLOW_GUARD_BLOCKS };

static uint32_t glow_params[MAX_PARAMS];
static uint32_t glow_operands[MAX_OPERANDS][OPERAND_WORDS];
static void *glow_pointers[MAX_OPERANDS];
static uint32_t glow_sums[MAX_OPERANDS];

static void stop(const char *why) {
  glow_io_puts("harness: ");
  glow_io_puts(why);
  glow_io_puts("\n");
  glow_io_exit(2);
}

static void read_exactly(int file, void *dst, size_t bytes) {
  if (bytes != 0u && glow_io_read(file, dst, bytes) != (long)bytes) {
    stop("cases.bin ends early");
  }
}

static void write_exactly(int file, const void *src, size_t bytes) {
  if (bytes != 0u && glow_io_write(file, src, bytes) != (long)bytes) {
    stop("cannot write results.bin");
  }
}

static size_t append(char *line, size_t at, size_t limit, const char *text) {
  while (*text != '\0' && at < limit) {
    line[at++] = *text++;
  }
  return at;
}

/* One call of puts per case: under semihosting each costs a host call. */
static void announce(uint32_t number, const char *name) {
  char line[160];
  char digits[10];
  size_t first = sizeof digits;
  size_t at = append(line, 0u, sizeof line, "case ");
  do {
    digits[--first] = (char)('0' + (int)(number % 10u));
    number /= 10u;
  } while (number != 0u);
  while (first < sizeof digits) {
    line[at++] = digits[first++];
  }
  at = append(line, at, sizeof line, " ");
  at = append(line, at, sizeof line - 2u, name);
  line[at] = '\n';
  line[at + 1u] = '\0';
  glow_io_puts(line);
}

static uint32_t sum_of(const uint8_t *data, uint32_t bytes) { /* FNV-1a */
  uint32_t sum = 0x811C9DC5u;
  for (uint32_t i = 0; i < bytes; i++) {
    sum = (sum ^ data[i]) * 0x01000193u;
  }
  return sum;
}

static void place(int file, uint32_t operands) {
  uint32_t blocks = 0;
  glow_guard_reset();
  for (uint32_t i = 0; i < operands; i++) {
    const uint32_t *o = glow_operands[i];
    if (o[ALIAS] != 0u) {
      glow_pointers[i] = glow_pointers[o[ALIAS] - 1u];
      glow_operands[o[ALIAS] - 1u][ACCESS] = SCRATCH; /* overwritten by design, reported by this one */
      continue;
    }
    glow_pointers[i] = glow_guard_place(blocks++, o[BYTES], o[ALIGN]);
    if (glow_pointers[i] == NULL) {
      stop("out of memory for the operands");
    }
    read_exactly(file, glow_pointers[i], o[BYTES]);
    glow_sums[i] = o[ACCESS] == IN ? sum_of(glow_pointers[i], o[BYTES]) : 0u;
  }
}

static uint32_t damage(uint32_t operands) {
  uint32_t mask = 0;
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < operands; i++) {
    const uint32_t *o = glow_operands[i];
    if (o[ALIAS] == 0u && !glow_guard_intact(blocks++)) {
      mask |= (uint32_t)1 << i;
    }
    if (o[ACCESS] == IN && sum_of(glow_pointers[i], o[BYTES]) != glow_sums[i]) {
      mask |= (uint32_t)1 << (16u + i);
    }
  }
  return mask;
}

static void answer(int file, uint32_t operands) {
  const uint32_t mask = damage(operands);
  write_exactly(file, &mask, sizeof mask);
  for (uint32_t i = 0; i < operands; i++) {
    const uint32_t *o = glow_operands[i];
    if (o[ACCESS] == OUT || o[ACCESS] == INOUT) {
      write_exactly(file, glow_pointers[i], o[BYTES]);
    }
  }
}

static int as_int32(uint32_t word) {
  int32_t value;
  memcpy(&value, &word, sizeof value);
  return (int)value;
}

int main(void) {
  const int cases = glow_io_open_read("cases.bin");
  const int results = glow_io_open_write("results.bin");
  if (cases < 0 || results < 0) {
    stop("cannot open cases.bin or results.bin");
  }
  for (;;) {
    uint32_t header[HEADER_WORDS];
    read_exactly(cases, header, sizeof header);
    if (header[ENTRY] == 0xFFFFFFFFu) {
      break;
    }
    if (header[ENTRY] >= glow_entry_count || header[PARAMS] > MAX_PARAMS || header[OPERANDS] > MAX_OPERANDS) {
      stop("a record that this program does not know");
    }
    read_exactly(cases, glow_params, header[PARAMS] * sizeof glow_params[0]);
    read_exactly(cases, glow_operands, header[OPERANDS] * sizeof glow_operands[0]);
    const glow_entry_t *entry = &glow_entries[header[ENTRY]];
    announce(header[NUMBER], entry->name);
    place(cases, header[OPERANDS]);
    glow_guard_close();
    entry->call(glow_pointers, glow_params, as_int32(header[Y_BEGIN]), as_int32(header[Y_END]));
    answer(results, header[OPERANDS]);
  }
  glow_guard_reset();
  glow_io_close(cases);
  glow_io_close(results);
  return 0;
}
