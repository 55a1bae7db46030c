/* SPDX-License-Identifier: MIT-0 */
/* A QEMU TCG plugin that counts executed guest instructions exactly and writes the running count,
 * one decimal per line, each time the instruction at address `mark` (glow_mark) executes.
 * Arguments: mark=ADDRESS,out=FILE. For one vCPU, as all boards here have.
 *
 * The declarations below are version 1 of QEMU's plugin interface (include/qemu/qemu-plugin.h as of
 * QEMU 7.2); distributions do not package that header. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned int vcpu_index, void *userdata);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t cb,
                                            enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, enum qemu_plugin_op op,
                                                void *ptr, uint64_t imm);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

static uint64_t executed;
static uint64_t mark_address;
static FILE *marks;

/* Flushed each time: a guest that crashes later keeps the marks it passed. */
static void on_mark(unsigned int vcpu_index, void *userdata) {
  (void)vcpu_index;
  (void)userdata;
  (void)fprintf(marks, "%" PRIu64 "\n", executed);
  (void)fflush(marks);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &executed, 1);
    if (qemu_plugin_insn_vaddr(insn) == mark_address) {
      qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
  }
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  (void)info;
  const char *out = NULL;
  for (int i = 0; i < argc; i++) {
    if (strncmp(argv[i], "mark=", 5) == 0) {
      mark_address = strtoull(argv[i] + 5, NULL, 0);
    } else if (strncmp(argv[i], "out=", 4) == 0) {
      out = argv[i] + 4;
    } else {
      (void)fprintf(stderr, "glow_count: unknown argument %s\n", argv[i]);
      return 1;
    }
  }
  marks = out != NULL ? fopen(out, "w") : NULL;
  if (marks == NULL) {
    (void)fprintf(stderr, "glow_count: cannot write %s\n", out != NULL ? out : "(no out= argument)");
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
  return 0;
}
