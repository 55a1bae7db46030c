/* SPDX-License-Identifier: MIT-0 */
/* Gates of LSTM and GRU layers of codes on A64: of one cell of an LSTM, of two of a GRU at a time. Of a GRU that resets first four
 * gates at a time, as of an LSTM: (update, reset) of two cells, then new of four.
 *
 * The stream has for each of these, first for the inputs and then for the state: per 16 codes 16 weights of each gate, then those of
 * the codes that are left; then biases and scales. An LSTM has (input, output, forget, cell) of the inputs, the same of the state. Of
 * a GRU's two cells there are (update, reset, new) of both; biases and scales are (update, reset) of both of the inputs, the same of
 * the state, and new of the inputs and of the state of both. No weight is -128, so that two products fit int16. Codes are whole
 * blocks, zeros at the end: what is read beside the weights of those that are left is in the stream, too.
 */
#ifndef GLOW_A64_GATES_H
#define GLOW_A64_GATES_H

#include "glow_neon_gates.h"

#if defined(__aarch64__) && defined(__ARM_NEON)
/* `to` = or += the products of so many codes in v0 with weights, step by step of all gates, so that none waits for its own
 * result. `op`: saddlp for the first, sadalp. */
#define GLOW_A64_GATES_LOW(w, sum) "smull " sum ".8h, " w ".8b, v0.8b\n"
#define GLOW_A64_GATES_HIGH(w, sum) "smlal2 " sum ".8h, " w ".16b, v0.16b\n"
#define GLOW_A64_GATES_SUM(op, to, sum) op " " to ".4s, " sum ".8h\n"
/* Gates in v16-v19, or v16-v21, of the inputs; of the state in v22-v25, or v22-v27. */
#define GLOW_A64_GATES_FOUR(part) part("v2", "v28") part("v3", "v29") part("v4", "v30") part("v5", "v31")
#define GLOW_A64_GATES_SIX(part) GLOW_A64_GATES_FOUR(part) part("v6", "v1") part("v7", "v8")
#define GLOW_A64_LSTM_FOUR(codes, op, a, b, c, d) \
  GLOW_A64_GATES_FOUR(GLOW_A64_GATES_LOW) ".if " codes " > 8\n" GLOW_A64_GATES_FOUR(GLOW_A64_GATES_HIGH) ".endif\n" \
  GLOW_A64_GATES_SUM(op, a, "v28") GLOW_A64_GATES_SUM(op, b, "v29") GLOW_A64_GATES_SUM(op, c, "v30") \
  GLOW_A64_GATES_SUM(op, d, "v31")
#define GLOW_A64_LSTM_BLOCK(op, ...) \
  "ldr q0, [%[from]], #16\n" "ldp q2, q3, [%[stream]]\n" "ldp q4, q5, [%[stream], #32]\n" \
  "add %[stream], %[stream], #64\n" GLOW_A64_LSTM_FOUR("16", op, __VA_ARGS__)
#define GLOW_A64_LSTM_LEFT(more, op, ...) \
  "ldr q0, [%[from]], #16\n" "ldr q2, [%[stream]]\n" "ldur q3, [%[stream], #" more "]\n" \
  "ldur q4, [%[stream], #(2*" more ")]\n" "ldur q5, [%[stream], #(3*" more ")]\n" \
  "add %[stream], %[stream], #(4*" more ")\n" GLOW_A64_LSTM_FOUR(more, op, __VA_ARGS__)
#define GLOW_A64_GRU_SIX(codes, op, a, b, c, d, e, f) \
  GLOW_A64_GATES_SIX(GLOW_A64_GATES_LOW) ".if " codes " > 8\n" GLOW_A64_GATES_SIX(GLOW_A64_GATES_HIGH) ".endif\n" \
  GLOW_A64_GATES_SUM(op, a, "v28") GLOW_A64_GATES_SUM(op, b, "v29") GLOW_A64_GATES_SUM(op, c, "v30") \
  GLOW_A64_GATES_SUM(op, d, "v31") GLOW_A64_GATES_SUM(op, e, "v1") GLOW_A64_GATES_SUM(op, f, "v8")
#define GLOW_A64_GRU_BLOCK(op, ...) \
  "ldr q0, [%[from]], #16\n" "ldp q2, q3, [%[stream]]\n" "ldp q4, q5, [%[stream], #32]\n" \
  "ldp q6, q7, [%[stream], #64]\n" "add %[stream], %[stream], #96\n" GLOW_A64_GRU_SIX("16", op, __VA_ARGS__)
#define GLOW_A64_GRU_LEFT(more, op, ...) \
  "ldr q0, [%[from]], #16\n" "ldr q2, [%[stream]]\n" "ldur q3, [%[stream], #" more "]\n" \
  "ldur q4, [%[stream], #(2*" more ")]\n" "ldur q5, [%[stream], #(3*" more ")]\n" \
  "ldur q6, [%[stream], #(4*" more ")]\n" "ldur q7, [%[stream], #(5*" more ")]\n" \
  "add %[stream], %[stream], #(6*" more ")\n" GLOW_A64_GRU_SIX(more, op, __VA_ARGS__)
/* Sums over inputs, or the state: a `whole` block, so many blocks so many `times`, then `more` codes; any of them may be none. */
#define GLOW_A64_GATES_SUMS(label, block, left, whole, blocks, times, more, ...) \
  ".if " whole "\n" block("saddlp", __VA_ARGS__) ".else\n" left(more, "saddlp", __VA_ARGS__) ".endif\n" \
  ".if " times " > 1\n" "mov %w[times], #" times "\n" ".endif\n" \
  ".if " times "\n" label ": .rept " blocks "\n" block("sadalp", __VA_ARGS__) ".endr\n" ".endif\n" \
  ".if " times " > 1\n" "subs %w[times], %w[times], #1\n" "b.ne " label "b\n" ".endif\n" \
  ".if " whole " && " more "\n" left(more, "sadalp", __VA_ARGS__) ".endif\n"
/* Four sums of each of four in `a`, of two fours that take turns. */
#define GLOW_A64_GATES_PAIRS(a, b, c, d, e, f, g, h) \
  "addp " a ".4s, " a ".4s, " b ".4s\n" "addp " c ".4s, " c ".4s, " d ".4s\n" "addp " e ".4s, " e ".4s, " f ".4s\n" \
  "addp " g ".4s, " g ".4s, " h ".4s\n" "addp " a ".4s, " a ".4s, " c ".4s\n" "addp " e ".4s, " e ".4s, " g ".4s\n"
#define GLOW_A64_GATES_ADDED(sum, bias) "add " sum ".4s, " sum ".4s, " bias ".4s\n"
#define GLOW_A64_GATES_REAL(sum) "scvtf " sum ".4s, " sum ".4s\n"
#define GLOW_A64_GATES_SCALED(sum, scale) "fmul " sum ".4s, " sum ".4s, " scale ".4s\n"
#define GLOW_A64_GATES_ROUNDED(sum) "fcvtns " sum ".4s, " sum ".4s\n" "sqxtn " sum ".4h, " sum ".4s\n"

/* name: the gates of all cells, four of each, `times` cells or pairs of cells; by how many blocks own and past sums are. */
#define GLOW_A64_GATES(name, sums, end)                                                                                   \
  static inline void name(const int8_t *stream, const int8_t *codes, int16_t *gates, int32_t count) {                     \
    const int8_t *from;                                                                                                   \
    int32_t times;                                                                                                        \
    __asm__ volatile("5: mov %[from], %[codes]\n" sums end "subs %w[count], %w[count], #1\n" "b.ne 5b\n"                 \
                     : [stream] "+&r"(stream), [gates] "+&r"(gates), [count] "+&r"(count), [from] "=&r"(from),            \
                       [times] "=&r"(times)                                                                               \
                     : [codes] "r"(codes)                                                                                 \
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",  \
                       "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");                           \
  }
#define GLOW_A64_LSTM(name, whole, blocks, times, more, past_whole, past_blocks, past_times, past_more)                   \
  GLOW_A64_GATES(name,                                                                                                    \
    GLOW_A64_GATES_SUMS("1", GLOW_A64_LSTM_BLOCK, GLOW_A64_LSTM_LEFT, whole, blocks, times, more,                         \
                        "v16", "v17", "v18", "v19")                                                                       \
    GLOW_A64_GATES_SUMS("2", GLOW_A64_LSTM_BLOCK, GLOW_A64_LSTM_LEFT, past_whole, past_blocks, past_times, past_more,     \
                        "v22", "v23", "v24", "v25"),                                                                      \
    "ldp q2, q3, [%[stream]]\n" "ldp q4, q5, [%[stream], #32]\n" "add %[stream], %[stream], #64\n"                        \
    GLOW_A64_GATES_PAIRS("v16", "v17", "v18", "v19", "v22", "v23", "v24", "v25")                                          \
    GLOW_A64_GATES_ADDED("v16", "v2") GLOW_A64_GATES_ADDED("v22", "v3") GLOW_A64_GATES_REAL("v16")                        \
    GLOW_A64_GATES_REAL("v22") GLOW_A64_GATES_SCALED("v16", "v4") GLOW_A64_GATES_SCALED("v22", "v5")                      \
    "fadd v16.4s, v16.4s, v22.4s\n" GLOW_A64_GATES_ROUNDED("v16") "str d16, [%[gates]], #8\n")
#define GLOW_A64_GRU(name, whole, blocks, times, more, past_whole, past_blocks, past_times, past_more)                    \
  GLOW_A64_GATES(name,                                                                                                    \
    GLOW_A64_GATES_SUMS("1", GLOW_A64_GRU_BLOCK, GLOW_A64_GRU_LEFT, whole, blocks, times, more,                           \
                        "v16", "v17", "v18", "v19", "v20", "v21")                                                         \
    GLOW_A64_GATES_SUMS("2", GLOW_A64_GRU_BLOCK, GLOW_A64_GRU_LEFT, past_whole, past_blocks, past_times, past_more,       \
                        "v22", "v23", "v24", "v25", "v26", "v27"),                                                        \
    "ldp q2, q3, [%[stream]]\n" "ldp q4, q5, [%[stream], #32]\n" "ldp q6, q7, [%[stream], #64]\n"                         \
    "add %[stream], %[stream], #96\n" GLOW_A64_GATES_PAIRS("v16", "v17", "v19", "v20", "v22", "v23", "v25", "v26")        \
    "addp v18.4s, v18.4s, v24.4s\n" "addp v21.4s, v21.4s, v27.4s\n" GLOW_A64_GATES_ADDED("v16", "v2")                     \
    GLOW_A64_GATES_ADDED("v22", "v3") "addp v18.4s, v18.4s, v21.4s\n" GLOW_A64_GATES_REAL("v16")                          \
    GLOW_A64_GATES_REAL("v22") GLOW_A64_GATES_ADDED("v18", "v4") GLOW_A64_GATES_SCALED("v16", "v5")                       \
    GLOW_A64_GATES_SCALED("v22", "v6") GLOW_A64_GATES_REAL("v18") GLOW_A64_GATES_SCALED("v18", "v7")                      \
    "fadd v16.4s, v16.4s, v22.4s\n" GLOW_A64_GATES_ROUNDED("v16") GLOW_A64_GATES_ROUNDED("v18")                           \
    "zip1 v16.4s, v16.4s, v18.4s\n" "str q16, [%[gates]], #16\n")

#endif
#endif
