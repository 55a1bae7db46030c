/* A QEMU TCG plugin that counts the bytes read and written in ranges of addresses, and writes the counts of all ranges
 * on one line each time the instruction at address `mark` (glow_mark) executes.
 * Arguments: mark=ADDRESS,out=FILE,range=BEGIN:BYTES,range=BEGIN:BYTES... For one vCPU.
 *
 * The declarations below are version 1 of QEMU's plugin interface (include/qemu/qemu-plugin.h as of QEMU 7.2);
 * distributions do not package that header. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned int vcpu_index, void *userdata);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned int vcpu_index, qemu_plugin_meminfo_t info, uint64_t vaddr,
                                          void *userdata);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t cb,
                                            enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_mem_cb_t cb,
                                      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw, void *userdata);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

enum { MOST_RANGES = 8 };
static struct {
  uint64_t begin, end, bytes;
} ranges[MOST_RANGES];
static int range_count;
static uint64_t mark_address;
static FILE *lines;

static void on_access(unsigned int vcpu_index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *userdata) {
  (void)vcpu_index;
  (void)userdata;
  for (int i = 0; i < range_count; i++) {
    if (vaddr >= ranges[i].begin && vaddr < ranges[i].end) {
      ranges[i].bytes += UINT64_C(1) << qemu_plugin_mem_size_shift(info);
    }
  }
}

static void on_mark(unsigned int vcpu_index, void *userdata) {
  (void)vcpu_index;
  (void)userdata;
  for (int i = 0; i < range_count; i++) {
    (void)fprintf(lines, "%" PRIu64 "%c", ranges[i].bytes, i + 1 < range_count ? ' ' : '\n');
  }
  (void)fflush(lines);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    if (qemu_plugin_insn_vaddr(insn) == mark_address) {
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
  }
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  (void)info;
  for (int i = 0; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (value == NULL) {
      return 1;
    }
    value++;
    if (strncmp(argv[i], "mark=", 5) == 0) {
      mark_address = strtoull(value, NULL, 0);
    } else if (strncmp(argv[i], "out=", 4) == 0) {
      lines = fopen(value, "w");
    } else if (strncmp(argv[i], "range=", 6) == 0 && range_count < MOST_RANGES) {
      char *size = NULL;
      ranges[range_count].begin = strtoull(value, &size, 0);
      ranges[range_count].end = ranges[range_count].begin + strtoull(size + 1, NULL, 0);
      range_count++;
    } else {
      return 1;
    }
  }
  if (lines == NULL) {
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
  return 0;
}
