/* SPDX-License-Identifier: MIT-0 */
/* A model on a serial line: `glowc run --port` writes inputs, runs it and reads outputs. docs/WIRE.md has the protocol.
 *
 * The board supplies three functions, for example in a uart.c of its own; everything else is here and portable. */
#ifndef GLOW_WIRE_H
#define GLOW_WIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the line ready: pins, clock, speed. */
void glow_wire_open(void);
/* Returns the next byte that came in, or -1 when there is none yet. May wait; need not. */
int glow_wire_getc(void);
/* Sends a byte, waiting until there is room for it. */
void glow_wire_putc(uint8_t byte);

/* Most bytes of data in a frame; two frames are held. The host asks for it. */
#ifndef GLOW_WIRE_DATA_BYTES
#define GLOW_WIRE_DATA_BYTES 256
#endif
#define GLOW_WIRE_HEAD_BYTES 5 /* kind, sequence number (16 bits), length (16 bits) */
#define GLOW_WIRE_FRAME_BYTES (GLOW_WIRE_HEAD_BYTES + GLOW_WIRE_DATA_BYTES + 4)
#define GLOW_WIRE_IDENTITY_BYTES 8

typedef struct {
  void *data;
  uint32_t bytes;
} glow_wire_tensor_t;

/* What is served. `run` and `reset` return 0 or the status of the model; `reset` is NULL for one without state. */
typedef struct {
  const uint8_t *identity;
  const glow_wire_tensor_t *inputs;
  const glow_wire_tensor_t *outputs;
  uint32_t input_count, output_count;
  int (*run)(void);
  int (*reset)(void);
} glow_wire_model_t;

/* The server; its members are its own. */
typedef struct {
  const glow_wire_model_t *model;
  uint32_t done_id; /* of the inference whose outputs are there; 0: none */
  uint32_t steps;   /* inferences since the state was reset */
  uint32_t cycles, output_crc;
  int status;
  uint32_t received;
  uint8_t in[GLOW_WIRE_FRAME_BYTES + GLOW_WIRE_FRAME_BYTES / 254 + 1];
  uint8_t out[GLOW_WIRE_FRAME_BYTES];
} glow_wire_t;

void glow_wire_init(glow_wire_t *wire, const glow_wire_model_t *model);

/* Takes the bytes that have come in, and answers when they end a frame. Call it again and again. */
void glow_wire_poll(glow_wire_t *wire);

#ifdef __cplusplus
}
#endif

#endif
