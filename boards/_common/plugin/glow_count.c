/* SPDX-License-Identifier: MIT-0 */
/* A QEMU TCG plugin that counts executed guest instructions exactly and writes the running count,
 * one decimal per line, each time the instruction at address `mark` (glow_mark) executes.
 * Arguments: mark=ADDRESS,out=FILE. For one vCPU, as all boards here have. */
#include "glow_qemu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
