"""What the table of instructions says of each against the processor, which QEMU is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from glowc.asm.insn import CORE, FLAG, FPU, VECTOR, Insn, Register
from glowc.asm.isa import GE, ISA, P0, Kind, Memory, results
from glowc.asm.write import text
from glowc.board import load_board
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from tests.conftest import RUNTIME_DIRS, require_tool

CASES, WORDS, OPERANDS = 64, 8, 16  # words of memory, and of operands
EXTREMES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x00008000, 0x7FFF8000, 0x80007FFF, 0x80808080, 0x7F7F7F7F)
REALS = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 127.5, 3e9, -3e9, np.inf, -np.inf, np.nan, 1e-40, 0.49999997)
IMMEDIATES = {
    "ldr": (4,), "ldrd": (8,), "ldm": (3,), "vldm": (4,), "str": (4,), "str_moving": (8,), "add": (20,),
    "add_lsl": (4,), "eor": (0x80808080,), "orr_lsl": (16,), "lsl": (8,), "lsr": (8,), "asr": (8,), "bfi": (8, 8),
    "sxtb16": (8,), "ssat8_asr": (12,), "vcvt_fixed": (8,), "ldr_by": (2,), "ldrb": (7,), "vldr": (4,), "strb": (5,),
    "strd": (8,), "strb_moving": (1,), "adds": (20,), "movs": (200,), "sub_imm": (20,), "strb_by": (1,), "str_by": (2,),
    "mov_imm": (0x00010001,), "add_asr": (2,), "sub_lsl": (1,), "sxtab16": (8,), "vldrb_moving": (16,),
    "vldrw_moving": (48,), "ldr_moving": (4,), "ldrd_moving": (8,), "ldm_still": (3,), "strh": (6,), "strh_by": (1,),
    "count": (2,), "cmp_least": (1 << 29,), "ldr_wide": (4,), "rsb_lsl": (8,), "sub_asr": (8,),
    "vldrb": (16,), "vldrb_s16": (8,), "vldrb_s16_moving": (16,), "vldrb_s32": (4,), "vldrw_to": (16,),
    "vldrb_to": (16,), "vstrb_words_moving": (4,), "vshr": (31,), "and_imm": (255,), "and_lsr": (4,), "ubfx": (8, 8),
    "vldrb_some": (16,), "vldrw": (16,), "vldrb_some_moving": (16,), "vstrb_moving": (16,), "vshrnb": (16,),
}  # fmt: skip
BASES = {
    "ldr": 0, "ldrd": 0, "ldm": 0, "vldm": 0, "str": 1, "str_moving": 1, "ldr_by": 0, "ldrb": 0, "vldr": 0, "strb": 1,
    "strb_by": 1, "str_by": 1, "ldr_moving": 0, "ldrd_moving": 0, "ldm_still": 0, "strh": 1, "strh_at": 1, "strh_by": 1,
    "strd": 2, "strb_moving": 1, "vldrb": 0, "vldrb_moving": 0, "vldrw_moving": 0, "vldrw": 0, "vldrb_some_moving": 0,
    "vstrb_moving": 1, "vstrb_some": 1, "vldrb_s16": 0, "vldrb_s16_moving": 0, "vldrb_s32": 0, "vldrw_to": 0,
    "vldrb_to": 0, "vstrb_words_moving": 1,
    "vldrb_some": 0, "vstrb_places": 1, "ldr_wide": 0,
}  # fmt: skip
PLACES = {"ldr_by": (1, 4), "strb_by": (2, 8), "str_by": (2, 4), "strh_at": (2, 8), "strh_by": (2, 8)}
"""Which operand is a distance, and beyond all."""
IN_PLACE = {
    "smlad": 2, "smmlar": 2, "bfi": 0, "qadd": 0, "orr_lsl": 0, "vqdmlah": 0,
    "vmladava_s8": 0, "vmladava_s16": 0,
    "vmla": 0, "vshrnb": 0, "vqmovnb_s32": 0, "vqmovnt_s32": 0, "vqmovnb_s16": 0, "vqmovnt_s16": 0,
}  # fmt: skip
FLAGS = {
    "cmp": ("ite eq", "moveq r12, #1", "movne r12, #0"), "cmp_zero": ("ite mi", "movmi r12, #1", "movpl r12, #0"),
    "vctp": ("vmrs r12, p0",),
    "count": ("ite eq", "moveq r12, #1", "movne r12, #0"), "cmp_least": ("ite hs", "movhs r12, #1", "movlo r12, #0"),
}  # fmt: skip
FLOATS = ("vmul", "vnmul", "vcvtr", "vmul_vector", "vcvtn_vector")
VECTORS = tuple(kind for kind in Kind if kind.name.startswith("VECTOR"))
SCALARS = {"vqdmlah": 2, "vmla": 2, "vqadd_s16": 1}  # which operand of vectors is one of the core


def core(number: int) -> Register:
    return Register(CORE, number, virtual=False)


def fpu(number: int) -> Register:
    return Register(FPU, number, virtual=False)


def vector(number: int) -> Register:
    return Register(VECTOR, number, virtual=False)


def insns(*, vectors: bool = False) -> Iterator[Insn]:
    """Yield an instruction of each row that makes a value; the operands of `{r0}`, `{w0}` by what the text asks for."""
    for op, row in ISA.items():
        if row.kind is Kind.BRANCH or op == "adr_steps" or (row.kind in VECTORS) is not vectors:
            continue
        imm = IMMEDIATES.get(op, ())
        reads = tuple(core(2 + k) for k in range(max((k + 1 for k in range(4) if f"{{r{k}}}" in row.text), default=0)))
        writes = tuple(core(5 + k) for k in range(sum(f"{{w{k}}}" in row.text for k in range(2))))
        if op in ("vcvt", "vcvt_fixed", "vmul", "vnmul", "vcvtr"):
            reads = tuple(fpu(r.number) for r in reads)
            writes = (reads[0] if op == "vcvt_fixed" else fpu(8),)
        elif op == "vldr":
            writes = (fpu(8),)
        elif op in ("vmov", "vmov_pair"):
            writes = tuple(fpu(6 + k) for k in range(len(writes)))
        elif op in ("ldm", "ldm_still", "vldm"):
            writes = tuple((fpu if op == "vldm" else core)(8 + k) for k in range(imm[0]))
        elif vectors:
            writes = () if row.kind is Kind.VECTOR_STORE else (core(6) if op.startswith("vmladav") else vector(5),)
            of_core = BASES.get(op, SCALARS.get(op))
            fills = row.kind is Kind.VECTOR_FILL
            reads = tuple(r if k == of_core or fills else vector(r.number) for k, r in enumerate(reads))
        if op == "vctp":
            writes, reads = (P0,), (core(2),)
        if op == "vldrb_some":
            writes, reads = (vector(5), vector(6)), (core(2), core(2))
        if op == "bfi":
            reads = (core(5), core(3))
        elif op in IN_PLACE:
            reads = tuple(writes[0] if k == IN_PLACE[op] else r for k, r in enumerate(reads))
        if op.endswith(("_moving", "_to")) or op in ("ldm", "ldm_still", "vldm"):
            writes = (*writes, reads[BASES[op]])
        if op in ("adds", "count"):
            writes = reads
        if op in FLAGS and op != "vctp":
            writes = (*writes, Register(FLAG, 0, virtual=False))
        if op == "sel":
            reads = (*reads, GE)
        if row.text.startswith("vpst"):
            reads = (*reads, P0)
        if op == "ssub8":
            writes = (*writes, GE)
        yield Insn(op, writes, reads, imm, "memory")


def drawn(rng: np.random.Generator, insn: Insn) -> dict[Register, np.ndarray]:
    """Return operands of all cases: extremes and random ones; a base is 0, the begin of the memory."""
    found = {}
    for k, r in enumerate(insn.reads):
        shape = (CASES, 4) if r.bank == VECTOR else (CASES,)
        values = rng.integers(0, 2**32, shape, dtype=np.uint32)
        extremes = np.array(EXTREMES, np.uint32)
        values[: len(EXTREMES)] = (
            rng.choice(extremes, (len(EXTREMES), 4)) if r.bank == VECTOR else rng.permutation(extremes)
        )
        if insn.op in FLOATS:
            values = (rng.standard_normal(shape) * 200).astype(np.float32)
            values.reshape(-1)[: len(REALS)] = rng.permutation(np.array(REALS, np.float32))
            values = values.view(np.uint32)
        if insn.op in BASES and r == insn.reads[BASES[insn.op]]:
            values = np.zeros(CASES, np.uint32)
        elif PLACES.get(insn.op, (-1,))[0] == k:
            values = rng.integers(0, PLACES[insn.op][1], CASES).astype(np.uint32)
        elif insn.op == "vstrb_places" and k == 2:
            values = rng.permuted(np.tile(np.arange(32, dtype=np.uint16), (CASES, 1)), axis=1)[:, :8].copy()
            values = values.view(np.uint32)
        elif r == GE:
            values = rng.choice(np.array([0, 0xFF, 0xFF00FF00, 0xFFFFFFFF, 0xFF0000FF], np.uint32), CASES)
        elif insn.op == "asr_by" and k == 1:
            values = rng.integers(0, 40, CASES).astype(np.uint32)
        found[r] = values
    return found


def places(registers: Sequence[Register]) -> list[int]:
    """Return the bytes at which words of registers begin, one after the other."""
    return [0, *accumulate(16 if r.bank == VECTOR else 4 for r in registers)]


def move(op: str, register: Register, base: str, at: int) -> str:
    """Return a load (`op` "ld") or a store ("st") of a register."""
    name = {VECTOR: f"v{op}rw.32", FPU: f"v{op}r"}.get(register.bank, f"{op}r")
    return f"{name} {register}, [{base}, #{at}]"


def function(number: int, insn: Insn) -> str:
    """Return a function that loads operands from r0, runs the instruction and stores its results at r1."""
    base = insn.reads[BASES[insn.op]] if insn.op in BASES else None
    loads = []
    for at, r in zip(places(insn.reads), insn.reads, strict=False):
        if r == base:
            loads.append(f"add {r}, r0, #{4 * OPERANDS}")
        elif r == P0:
            loads += [f"ldr r12, [r0, #{at}]", "vmsr p0, r12"]
        elif r == GE:  # each byte that is set gives a carry
            loads += [f"ldr r12, [r0, #{at}]", "movs lr, #0", "ssub8 lr, lr, lr", "mvn lr, #0", "lsr r12, r12, #7",
                      "and r12, r12, #0x01010101", "mov lr, #0x01010101", "ssub8 lr, r12, lr"]  # fmt: skip
        else:
            loads.append(move("ld", r, "r0", at))
    stores = []
    for at, r in zip(places(insn.writes), insn.writes, strict=False):
        if r == GE:
            stores += ["mov r12, #0", "mvn lr, #0", "sel r12, lr, r12", f"str r12, [r1, #{at}]"]
        elif r.bank == FLAG:
            stores += [*FLAGS[insn.op], f"str r12, [r1, #{at}]"]
        elif r == base:
            stores += [f"sub {r}, {r}, r0", f"sub {r}, {r}, #{4 * OPERANDS}", f"str {r}, [r1, #{at}]"]
        else:
            stores.append(move("st", r, "r1", at))
    lines = ["push {r4-r11, lr}", *loads, text(insn), *stores, "pop {r4-r11, pc}"]
    body = "".join(f'"{line}\\n" ' for text_lines in lines for line in text_lines.splitlines())
    head = f"__attribute__((naked)) static void f{number}(const uint32_t *in, uint32_t *out)"
    return f"{head} {{ __asm__ volatile({body}); }}\n"


def program(all_insns: Sequence[Insn], operands: Sequence[dict[Register, np.ndarray]], memory: np.ndarray) -> str:
    """Return the C program that writes results, then the memory, of each case of each instruction."""
    rows = []
    for insn, values in zip(all_insns, operands, strict=True):
        for case in range(CASES):
            words = [int(word) for r in insn.reads for word in np.ravel(values[r][case])]
            words += [0] * (OPERANDS - len(words)) + [int(w) for w in memory[case]]
            rows.append("{" + ", ".join(f"{w}u" for w in words) + "}")
    functions = "".join(function(k, insn) for k, insn in enumerate(all_insns))
    table = ", ".join(f"f{k}" for k in range(len(all_insns)))
    return f"""#include <stdint.h>
#include "glow_io.h"
{functions}
static uint32_t in[][{OPERANDS + WORDS}] = {{{", ".join(rows)}}};
static void (*const f[])(const uint32_t *, uint32_t *) = {{{table}}};
int main(void) {{
  const int file = glow_io_open_write("results.bin");
  for (int i = 0; i < {len(all_insns) * CASES}; i++) {{
    uint32_t out[{WORDS}] = {{0}};
    f[i / {CASES}](in[i], out);
    glow_io_write(file, out, sizeof out);
    glow_io_write(file, in[i] + {OPERANDS}, sizeof out);
  }}
  glow_io_close(file);
  glow_io_exit(0);
}}
"""


@pytest.mark.parametrize(("board_name", "vectors"), [("linux-armhf", False), ("mps3-an547", True)])
def test_each_instruction_means_what_the_processor_does(tmp_path: Path, board_name: str, *, vectors: bool) -> None:
    board, rng = load_board(board_name), np.random.default_rng(3)
    require_tool(board.cpu.cc, board.run_argv[0])
    tested = list(insns(vectors=vectors))
    operands = [drawn(rng, insn) for insn in tested]
    memory = rng.integers(0, 2**32, (CASES, WORDS), dtype=np.uint32)
    (tmp_path / "rows.c").write_text(program(tested, operands, memory))
    flags = () if vectors else ("-mthumb", "-march=armv7ve+vfpv4", "-mfpu=vfpv4")
    elf = build_elf(
        [tmp_path / "rows.c"], board, tmp_path / "rows", include_dirs=RUNTIME_DIRS, opt="-O1", extra_flags=flags
    )
    run_elf(elf.path, board, cwd=tmp_path)
    found = np.fromfile(tmp_path / "results.bin", np.uint32).reshape(len(tested), CASES, 2 * WORDS)
    wrong = {}
    for insn, values, got in zip(tested, operands, found, strict=True):
        after = Memory(memory.copy())
        with np.errstate(all="ignore"):
            want = results(insn, after, [values[r] for r in insn.reads])
        for at, written in zip(places(insn.writes), want, strict=False):
            result = written if np.ndim(written) else np.full(CASES, written, np.uint32)
            told = got[:, at // 4 : at // 4 + result.size // CASES].reshape(result.shape)
            same = result == told
            if insn.op in ("vmul", "vnmul", "vmul_vector"):
                same |= np.isnan(result.view(np.float32)) & np.isnan(np.ascontiguousarray(told).view(np.float32))
            if not same.all():
                case = int(np.argmin(same.reshape(CASES, -1).all(1)))
                wrong[f"{insn.op} {at}"] = [values[r][case] for r in insn.reads], result[case], told[case]
        if not np.array_equal(after.words, got[:, WORDS:]):
            wrong[f"{insn.op} memory"] = [], memory[0], memory[0]
    assert wrong == {}
