/* SPDX-License-Identifier: MIT-0 */
/* A QEMU TCG plugin that records what the cycles of a program depend on, from each call of glow_mark to the next: how
 * often each block of instructions ran and left by a taken branch, which fetches and reads missed a cache, what was
 * read and written where.
 *
 * Arguments: mark=ADDRESS, out=FILE; icache=LINE:WAYS:SETS and dcache=LINE:WAYS:SETS in bytes, ways and sets, replaced
 * least recently used first; memory=LINE:WAYS:SETS of a second cache, which lines come to that the data cache does not have,
 * from slow memory if it has not got them either; unified=1 where one cache has both instructions and data (icache); area=BEGIN:BYTES:KIND,
 * several, the first that holds an address counts: kind f is flash behind the caches, c is RAM behind the data cache,
 * t is memory without wait states.
 *
 * Output, a segment for each call of glow_mark:
 *   B begin bytes runs taken misses sequential    of each block that ran; a miss is sequential after its neighbour
 *   A area reads read_bytes writes written_bytes misses ahead far far_ahead
 *                                                 of the lines read that missed the data cache those that the second cache
 *                                                 had, and that did not have, ahead: the line before was the last of one
 *                                                 of the streams that were read; a line of RAM that nothing read or
 *                                                 wrote before is in the second cache: it is an input, which the
 *                                                 program has just filled
 *   U unaligned accesses
 *   M                                             the end of the segment
 * For one vCPU, as all boards here have. */
#include "glow_qemu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AREAS = 16, STREAMS = 8 };

struct block {
  struct block *next;
  uint64_t begin, end, runs, taken, misses, sequential;
};

struct area {
  uint64_t begin, end, reads, read_bytes, writes, written_bytes, misses, ahead, far, far_ahead;
  char kind;
  uint8_t *seen; /* of kind c, where there is a second cache: a bit for each line that was read or written */
};

struct cache {
  uint64_t line_bytes, ways, sets, last; /* last: the line that missed last */
  uint64_t *lines;                       /* of each set the most recently used first */
};

static struct block *blocks, *running;
static struct area areas[MOST_AREAS];
static int area_count;
static struct cache icache, dcache, memory;
static uint64_t streams[STREAMS]; /* the last line of each */
static unsigned int oldest;
static bool unified;
static uint64_t unaligned, mark_address;
static FILE *out;

enum outcome { HIT, MISS, SEQUENTIAL };

/* Bring the line of an address to the front of its set. */
static enum outcome look_up(struct cache *cache, uint64_t line) {
  uint64_t *set = cache->lines + (line % cache->sets) * cache->ways, way = 0;
  while (way < cache->ways - 1 && set[way] != line) {
    way++;
  }
  enum outcome outcome = set[way] == line ? HIT : MISS;
  memmove(set + 1, set, way * sizeof *set);
  set[0] = line;
  if (outcome == MISS) {
    outcome = line == cache->last + 1 ? SEQUENTIAL : MISS;
    cache->last = line;
  }
  return outcome;
}

/* Say whether a line follows the last one of a stream; else it begins one. */
static bool follows(uint64_t line) {
  for (int i = 0; i < STREAMS; i++) {
    if (line == streams[i] + 1) {
      streams[i] = line;
      return true;
    }
  }
  streams[oldest++ % STREAMS] = line;
  return false;
}

/* Say whether a line of RAM is read or written for the first time. */
static bool is_new(struct area *area, uint64_t line) {
  const uint64_t bytes = memory.line_bytes, first = area->begin / bytes;
  if (area->kind != 'c') {
    return false;
  }
  if (area->seen == NULL) {
    area->seen = calloc((size_t)((area->end / bytes - first) / 8 + 1), 1);
    if (area->seen == NULL) {
      (void)fprintf(stderr, "glow_trace: no memory\n");
      exit(1);
    }
  }
  uint8_t *byte = area->seen + (line - first) / 8, bit = (uint8_t)(1u << ((line - first) % 8));
  const bool was = (*byte & bit) != 0;
  *byte |= bit;
  return !was;
}

/* Count a line that the data cache did not have. */
static void miss(struct area *area, uint64_t line, bool store) {
  area->misses += !store;
  if (memory.ways != 0) {
    bool ahead = follows(line), far = look_up(&memory, line) != HIT;
    far = !is_new(area, line) && far;
    *(far ? ahead ? &area->far_ahead : &area->far : &area->ahead) += !store && (far || ahead);
  }
}

static struct area *area_of(uint64_t address) {
  for (int i = 0; i < area_count; i++) {
    if (address >= areas[i].begin && address < areas[i].end) {
      return &areas[i];
    }
  }
  return NULL;
}

static void fetch(struct block *block) {
  const struct area *area = area_of(block->begin);
  if (icache.ways == 0 || area == NULL || area->kind != 'f') {
    return;
  }
  uint64_t last = (block->end - 1) / icache.line_bytes;
  for (uint64_t line = block->begin / icache.line_bytes; line <= last; line++) {
    enum outcome outcome = look_up(&icache, line);
    block->misses += outcome == MISS;
    block->sequential += outcome == SEQUENTIAL;
  }
}

static void on_block(unsigned int vcpu_index, void *userdata) {
  (void)vcpu_index;
  struct block *block = userdata;
  if (running != NULL && running->end == block->begin + 2) { /* QEMU looked ahead at an instruction across two pages */
    running->end = block->begin;
  }
  if (running != NULL && running->end != block->begin) {
    running->taken++;
  }
  running = block;
  block->runs++;
  fetch(block);
}

static void on_access(unsigned int vcpu_index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *userdata) {
  (void)vcpu_index;
  (void)userdata;
  uint64_t bytes = UINT64_C(1) << qemu_plugin_mem_size_shift(info);
  struct area *area = area_of(vaddr);
  unaligned += (vaddr & ((bytes < 4 ? bytes : 4) - 1)) != 0;
  if (area == NULL) {
    return;
  }
  bool store = qemu_plugin_mem_is_store(info);
  *(store ? &area->writes : &area->reads) += 1;
  *(store ? &area->written_bytes : &area->read_bytes) += bytes;
  struct cache *cache = unified ? &icache : &dcache;
  if (cache->ways == 0 || area->kind == 't' || (unified && area->kind != 'f')) {
    return;
  }
  uint64_t last = (vaddr + bytes - 1) / cache->line_bytes;
  for (uint64_t line = vaddr / cache->line_bytes; line <= last; line++) {
    if (look_up(cache, line) != HIT) {
      miss(area, line, store);
    }
  }
}

static void on_mark(unsigned int vcpu_index, void *userdata) {
  (void)vcpu_index;
  (void)userdata;
  for (struct block *b = blocks; b != NULL; b = b->next) {
    if (b->runs != 0) {
      (void)fprintf(out, "B %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b->begin,
                    b->end - b->begin, b->runs, b->taken, b->misses, b->sequential);
    }
    b->runs = b->taken = b->misses = b->sequential = 0;
  }
  for (int i = 0; i < area_count; i++) {
    struct area *a = &areas[i];
    (void)fprintf(out, "A %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                  " %" PRIu64 " %" PRIu64 "\n", i, a->reads, a->read_bytes, a->writes, a->written_bytes, a->misses, a->ahead,
                  a->far, a->far_ahead);
    a->reads = a->read_bytes = a->writes = a->written_bytes = a->misses = a->ahead = a->far = a->far_ahead = 0;
  }
  (void)fprintf(out, "U %" PRIu64 "\nM\n", unaligned);
  unaligned = 0;
  (void)fflush(out);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  struct block *block = calloc(1, sizeof *block);
  size_t count = qemu_plugin_tb_n_insns(tb);
  if (block == NULL || count == 0) {
    return;
  }
  struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);
  block->begin = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
  block->end = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);
  block->next = blocks;
  blocks = block;
  qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
  for (size_t i = 0; i < count; i++) {
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    if (qemu_plugin_insn_vaddr(insn) == mark_address) {
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
  }
}

/* Read the numbers of LINE:WAYS:SETS. */
static bool make_cache(struct cache *cache, char *text) {
  cache->line_bytes = strtoull(text, &text, 0);
  cache->ways = *text == ':' ? strtoull(text + 1, &text, 0) : 0;
  cache->sets = *text == ':' ? strtoull(text + 1, &text, 0) : 0;
  size_t count = (size_t)(cache->ways * cache->sets);
  cache->lines = count != 0 ? malloc(count * sizeof *cache->lines) : NULL;
  if (cache->lines != NULL) {
    memset(cache->lines, 0xFF, count * sizeof *cache->lines); /* a line that no address has */
    cache->last = UINT64_MAX - 1;
  }
  return *text == '\0' && cache->lines != NULL && cache->line_bytes != 0;
}

static bool make_area(char *text) {
  if (area_count == MOST_AREAS) {
    return false;
  }
  struct area *area = &areas[area_count++];
  area->begin = strtoull(text, &text, 0);
  area->end = area->begin + (*text == ':' ? strtoull(text + 1, &text, 0) : 0);
  area->kind = *text == ':' ? text[1] : '\0';
  return area->kind == 'f' || area->kind == 'c' || area->kind == 't';
}

static bool take(const char *name, char *value) {
  if (strcmp(name, "mark") == 0) {
    mark_address = strtoull(value, NULL, 0);
  } else if (strcmp(name, "out") == 0) {
    out = fopen(value, "w");
    return out != NULL;
  } else if (strcmp(name, "icache") == 0) {
    return make_cache(&icache, value);
  } else if (strcmp(name, "dcache") == 0) {
    return make_cache(&dcache, value);
  } else if (strcmp(name, "memory") == 0) {
    return make_cache(&memory, value);
  } else if (strcmp(name, "unified") == 0) {
    unified = *value == '1';
  } else {
    return strcmp(name, "area") == 0 && make_area(value);
  }
  return true;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  (void)info;
  for (int i = 0; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (value != NULL) {
      *value = '\0';
    }
    if (value == NULL || !take(argv[i], value + 1)) {
      (void)fprintf(stderr, "glow_trace: wrong argument %s%s%s\n", argv[i], value ? "=" : "", value ? value + 1 : "");
      return 1;
    }
  }
  if (out == NULL) {
    (void)fprintf(stderr, "glow_trace: no out= argument\n");
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
  return 0;
}
