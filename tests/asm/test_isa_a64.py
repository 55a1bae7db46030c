"""What the table of A64 says of each instruction against the processor, which QEMU is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from glowc.asm.insn import VECTOR, Insn, Register
from glowc.asm.isa import Kind, Memory, Words, results
from glowc.asm.isa_a64 import A64
from glowc.asm.write import text
from glowc.board import load_board
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from tests.conftest import RUNTIME_DIRS, require_tool

CASES, BYTES, STEP = 64, 128, 24
EXTREMES = (0, 0x80808080, 0x7F7F7F7F, 0x80008000, 0x7FFF7FFF, 0xFFFFFFFF)
IMMEDIATES = {"ldr_q": 16, "ldr_d": 8, "ldp_q": 32, "smlal_lane": 5, "smlal2_lane": 3, "sdot": 2, "add_lsl": 1,
              "ssra": 31, "mov_lane": 1, "st1_d": 1, "st1_s": 2, "st1_h": 5, "ldr_s": 4,
              "ldp_s": 8, "ld1r_moving": 8, "ldr_h": 6, "ldur_q": 5, "str_d_moving": 8, "str_q_moving": 16,
              "ldp_q_moving": 48, "ld1_four_moving": 64, "ld1_two_moving": 32, "ld1_halves_moving": 16}  # fmt: skip
FIRST = {"smlal2": 0, "sadalp": 0, "smlal_lane": 0, "smlal2_lane": 0, "sdot": 0, "smmla": 0, "ld1_low_by": 0,
         "ld1_high_by": 0, "sqxtn2_s32": 0, "sqxtn2_s16": 0, "ssra": 0}  # fmt: skip


def register(bank: str, number: int) -> Register:
    return Register(bank, number, virtual=False)


def insns() -> Iterator[Insn]:
    """Yield an instruction of each row: v0 to v3 are read, v4 to v7 written; x2 is an address, x3 a distance."""
    for op, row in A64.items():
        used = [max((int(k) + 1 for k in re.findall(rf"\{{{kind}(\d)", row.text)), default=0) for kind in "rw"]
        writes = [register(VECTOR, 4 + k) for k in range(used[1])]
        reads = [register(VECTOR, k) for k in range(used[0])]
        if op in FIRST:
            reads[0] = writes[0]
        if row.kind is not Kind.VECTOR_MULTIPLY and row.kind is not Kind.VECTOR:
            places = [k for k in range(used[0]) if k or (op not in FIRST and row.kind is not Kind.VECTOR_STORE)]
            for k, place in enumerate(places):
                reads[place] = register("x", 2 + k)
            stores = [register("x", 2)] if op.endswith("moving") else []
            writes = {Kind.VECTOR_LOAD: writes, Kind.VECTOR_STORE: stores}.get(row.kind, [register("x", 2)])
            if (op.endswith("moving") and row.kind is Kind.VECTOR_LOAD) or "}}, [{r0}], {" in row.text or op in FIRST:
                writes.append(register("x", 2))
        immediates = (IMMEDIATES.get(op, STEP),) if "{i0}" in row.text else ()
        yield Insn(op, tuple(writes), tuple(reads), immediates, "memory")


def function(number: int, insn: Insn) -> str:
    """Return a function that loads v0 to v7 from x0, has memory behind them, and stores what is written at x1."""
    lines = [f"f{number}:", *(f"ldr q{k}, [x0, #{16 * k}]" for k in range(8)), "add x2, x0, #128", f"mov x3, #{STEP}",
             text(insn, isa=A64), *(f"str q{k}, [x1, #{16 * k}]" for k in range(8)), "sub x2, x2, x0",
             "str w2, [x1, #128]", "ret"]  # fmt: skip
    return "".join(f'  "{line}\\n"\n' for line in lines)


def test_each_instruction_means_what_the_processor_does(tmp_path: Path) -> None:
    board, rng, tested = load_board("linux-aarch64", "armv8.6-i8mm"), np.random.default_rng(5), list(insns())
    require_tool(board.cpu.cc, board.run_argv[0])
    given = rng.integers(0, 2**32, (CASES, 64), dtype=np.uint32)
    given[: len(EXTREMES)] = np.array(EXTREMES, np.uint32)[:, None]
    rows = ", ".join("{" + ", ".join(f"{w}u" for w in row) + "}" for row in given)
    names = [f"f{k}" for k in range(len(tested))]
    (tmp_path / "rows.c").write_text(
        f"""#include <stdint.h>
#include <string.h>
#include "glow_io.h"
__asm__(".arch armv8.6-a\\n"
{"".join(function(k, insn) for k, insn in enumerate(tested))});
void {", ".join(f"{name}(const uint32_t *in, uint32_t *out)" for name in names)};
static const uint32_t all[][64] = {{{rows}}};
static void (*const f[])(const uint32_t *, uint32_t *) = {{{", ".join(names)}}};
int main(void) {{
  const int file = glow_io_open_write("results.bin");
  for (int i = 0; i < {len(tested) * CASES}; i++) {{
    uint32_t out[36] = {{0}};
    uint32_t in[64];
    memcpy(in, all[i % {CASES}], sizeof in);
    f[i / {CASES}](in, out);
    glow_io_write(file, out, sizeof out);
    glow_io_write(file, in + 32, 128);
  }}
  glow_io_close(file);
  glow_io_exit(0);
}}
"""
    )
    elf = build_elf([tmp_path / "rows.c"], board, tmp_path / "rows", include_dirs=RUNTIME_DIRS, opt="-O1")
    run_elf(elf.path, board, cwd=tmp_path)
    found = np.fromfile(tmp_path / "results.bin", np.uint32).reshape(len(tested), CASES, 68)
    wrong = []
    for insn, got in zip(tested, found, strict=True):
        state: dict[Register, Words] = {register(VECTOR, k): given[:, 4 * k : 4 * k + 4] for k in range(8)}
        state |= {register("x", 2): np.zeros(CASES, np.uint32), register("x", 3): np.full(CASES, STEP, np.uint32)}
        memory = Memory(given[:, 32:].copy())
        with np.errstate(all="ignore"):
            written = results(insn, memory, [state[r] for r in insn.reads], A64)
        for r, want in zip(insn.writes, written, strict=True):
            told = got[:, 4 * r.number : 4 * r.number + 4] if r.bank == VECTOR else got[:, 32] - BYTES
            nan = insn.op in ("fmul", "fadd") and np.isnan(want.view(np.float32)) & np.isnan(
                told.copy().view(np.float32)
            )
            if not ((told == want) | nan).all():
                wrong.append((insn.op, str(r)))
        if not np.array_equal(memory.words, got[:, 36:]):
            wrong.append((insn.op, "memory"))
    assert wrong == []
