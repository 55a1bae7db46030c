/* SPDX-License-Identifier: MIT-0 */
/* The device's end of docs/WIRE.md: frames by consistent overhead byte stuffing (S. Cheshire, M. Baker: Consistent Overhead
 * Byte Stuffing, IEEE/ACM Transactions on Networking 7(2), 1999) with CRC-32 (IEEE 802.3). Every request may come twice:
 * writing again changes nothing, an inference that is done is not done again. */
#include "glow_wire.h"

#include <string.h>

#include "glow_cycles.h"

enum { HELLO = 1, WRITE = 2, RUN = 3, READ = 4, RESET = 5, ANSWER = 0x80, DAMAGED = 0xFF };
enum { OK = 0, UNKNOWN = 1, INPUTS = 2, NOT_DONE = 3, LOST_STATE = 4, FAILED = 5 };
enum { VERSION = 1, TAIL_BYTES = 4 };

static uint32_t crc32(uint32_t crc, const uint8_t *data, uint32_t bytes) {
  crc = ~crc;
  for (uint32_t i = 0u; i < bytes; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++) {
      crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
    }
  }
  return ~crc;
}

static uint32_t load32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t load16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

static void store32(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) {
    p[i] = (uint8_t)(v >> (8 * i));
  }
}

static void store16(uint8_t *p, uint32_t v) {
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
}

static uint32_t bytes_of(const glow_wire_tensor_t *tensors, uint32_t count) {
  uint32_t bytes = 0u;
  for (uint32_t i = 0u; i < count; i++) {
    bytes += tensors[i].bytes;
  }
  return bytes;
}

static uint32_t crc_of(const glow_wire_tensor_t *tensors, uint32_t count) {
  uint32_t crc = 0u;
  for (uint32_t i = 0u; i < count; i++) {
    crc = crc32(crc, (const uint8_t *)tensors[i].data, tensors[i].bytes);
  }
  return crc;
}

/* Moves bytes between a frame and tensors that lie one behind the other from `offset` on; returns 0 where they end first. */
static int move(const glow_wire_tensor_t *tensors, uint32_t count, uint32_t offset, uint8_t *data, uint32_t bytes, int in) {
  for (uint32_t i = 0u; i < count && bytes > 0u; i++) {
    if (offset >= tensors[i].bytes) {
      offset -= tensors[i].bytes;
      continue;
    }
    const uint32_t left = tensors[i].bytes - offset;
    const uint32_t now = bytes < left ? bytes : left;
    uint8_t *inside = (uint8_t *)tensors[i].data + offset;
    memcpy(in ? inside : data, in ? data : inside, now);
    data += now;
    bytes -= now;
    offset = 0u;
  }
  return bytes == 0u;
}

static void send(glow_wire_t *wire, uint32_t kind, uint32_t sequence, uint32_t bytes) {
  uint8_t *out = wire->out;
  out[0] = (uint8_t)kind;
  store16(out + 1, sequence);
  store16(out + 3, bytes);
  const uint32_t end = GLOW_WIRE_HEAD_BYTES + bytes;
  store32(out + end, crc32(0u, out, end));
  const uint32_t size = end + TAIL_BYTES;
  glow_wire_putc(0u);
  for (uint32_t begin = 0u; begin <= size;) {
    uint32_t run = 0u; /* bytes up to the next zero */
    while (begin + run < size && run < 254u && out[begin + run] != 0u) {
      run++;
    }
    glow_wire_putc((uint8_t)(run + 1u));
    for (uint32_t i = 0u; i < run; i++) {
      glow_wire_putc(out[begin + i]);
    }
    begin += run < 254u ? run + 1u : run;
  }
  glow_wire_putc(0u);
}

/* Undoes the stuffing in place; returns the bytes of the frame, 0 when it is damaged. */
static uint32_t unstuff(uint8_t *data, uint32_t bytes) {
  uint32_t from = 0u;
  uint32_t to = 0u;
  while (from < bytes) {
    const uint32_t code = data[from++];
    if (code == 0u || from + code - 1u > bytes) {
      return 0u;
    }
    for (uint32_t i = 1u; i < code; i++) {
      data[to++] = data[from++];
    }
    if (code < 255u && from < bytes) {
      data[to++] = 0u;
    }
  }
  return to;
}

static uint32_t hello(const glow_wire_t *wire, uint8_t *answer) {
  const glow_wire_model_t *model = wire->model;
  answer[0] = OK;
  answer[1] = VERSION;
  answer[2] = (uint8_t)glow_cycles_unit;
  answer[3] = model->reset != NULL ? 1u : 0u;
  store16(answer + 4, GLOW_WIRE_DATA_BYTES);
  store32(answer + 6, bytes_of(model->inputs, model->input_count));
  store32(answer + 10, bytes_of(model->outputs, model->output_count));
  memcpy(answer + 14, model->identity, GLOW_WIRE_IDENTITY_BYTES);
  return 14u + GLOW_WIRE_IDENTITY_BYTES;
}

static uint32_t run(glow_wire_t *wire, const uint8_t *data, uint8_t *answer) {
  const glow_wire_model_t *model = wire->model;
  const uint32_t id = load32(data);
  if (wire->done_id != id || id == 0u) {
    if (crc_of(model->inputs, model->input_count) != load32(data + 4)) {
      answer[0] = INPUTS;
      return 1u;
    }
    if (model->reset != NULL && wire->steps != load32(data + 8)) {
      answer[0] = LOST_STATE;
      return 1u;
    }
    const uint32_t begin = glow_cycles();
    wire->status = model->run();
    wire->cycles = glow_cycles_since(begin);
    wire->output_crc = crc_of(model->outputs, model->output_count);
    wire->steps++;
    wire->done_id = id;
  }
  answer[0] = wire->status == 0 ? OK : FAILED;
  store32(answer + 1, (uint32_t)wire->status);
  store32(answer + 5, wire->cycles);
  store32(answer + 9, wire->output_crc);
  return 13u;
}

static uint32_t read(const glow_wire_t *wire, const uint8_t *data, uint8_t *answer) {
  const glow_wire_model_t *model = wire->model;
  const uint32_t bytes = load16(data + 8);
  if (wire->done_id != load32(data) || wire->done_id == 0u) {
    answer[0] = NOT_DONE;
    return 1u;
  }
  if (bytes > GLOW_WIRE_DATA_BYTES - 1u || !move(model->outputs, model->output_count, load32(data + 4), answer + 1, bytes, 0)) {
    answer[0] = UNKNOWN;
    return 1u;
  }
  answer[0] = OK;
  return 1u + bytes;
}

static uint32_t reset(glow_wire_t *wire) {
  wire->done_id = 0u;
  wire->steps = 0u;
  return wire->model->reset == NULL || wire->model->reset() == 0 ? OK : FAILED;
}

static uint32_t answer_to(glow_wire_t *wire, uint32_t kind, uint8_t *data, uint32_t bytes, uint8_t *answer) {
  const glow_wire_model_t *model = wire->model;
  if (kind == HELLO) {
    return hello(wire, answer);
  }
  if (kind == RUN && bytes == 12u) {
    return run(wire, data, answer);
  }
  if (kind == READ && bytes == 10u) {
    return read(wire, data, answer);
  }
  answer[0] = UNKNOWN;
  if (kind == WRITE && bytes >= 4u) {
    wire->done_id = 0u; /* inputs and outputs may share memory */
    if (move(model->inputs, model->input_count, load32(data), data + 4, bytes - 4u, 1)) {
      answer[0] = OK;
    }
  } else if (kind == RESET && bytes == 0u) {
    answer[0] = (uint8_t)reset(wire);
  }
  return 1u;
}

static void take(glow_wire_t *wire) {
  uint8_t *in = wire->in;
  const uint32_t size = wire->received <= sizeof wire->in ? unstuff(in, wire->received) : 0u;
  const uint32_t bytes = size >= GLOW_WIRE_HEAD_BYTES + TAIL_BYTES ? load16(in + 3) : 0u;
  const uint32_t end = GLOW_WIRE_HEAD_BYTES + bytes;
  if (size != end + TAIL_BYTES || load32(in + end) != crc32(0u, in, end)) {
    send(wire, DAMAGED, 0u, 0u);
    return;
  }
  const uint32_t answered = answer_to(wire, in[0], in + GLOW_WIRE_HEAD_BYTES, bytes, wire->out + GLOW_WIRE_HEAD_BYTES);
  send(wire, in[0] | (uint32_t)ANSWER, load16(in + 1), answered);
}

void glow_wire_init(glow_wire_t *wire, const glow_wire_model_t *model) {
  memset(wire, 0, sizeof *wire);
  wire->model = model;
  glow_cycles_start();
  glow_wire_open();
  (void)reset(wire);
}

void glow_wire_poll(glow_wire_t *wire) {
  for (int byte = glow_wire_getc(); byte >= 0; byte = glow_wire_getc()) {
    if (byte != 0) {
      if (wire->received < sizeof wire->in) {
        wire->in[wire->received] = (uint8_t)byte;
      }
      wire->received += wire->received <= sizeof wire->in ? 1u : 0u; /* one more than fits: too long */
    } else if (wire->received > 0u) {
      take(wire);
      wire->received = 0u;
    }
  }
}
