"""What the table of instructions says of each against the processor, which QEMU is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from glowc.asm.insn import CORE, FLAG, FPU, Insn, Register
from glowc.asm.isa import GE, ISA, Kind, Memory, results
from glowc.asm.write import text
from glowc.board import load_board
from glowc.machine.qemu import run_argv
from tests.conftest import require_tool

CASES, WORDS = 64, 8
EXTREMES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x00008000, 0x7FFF8000, 0x80007FFF, 0x80808080, 0x7F7F7F7F)
REALS = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 127.5, 3e9, -3e9, np.inf, -np.inf, np.nan, 1e-40, 0.49999997)
IMMEDIATES = {
    "ldr": (4,), "ldrd": (8,), "ldm": (3,), "vldm": (4,), "str": (4,), "str_moving": (8,), "add": (20,),
    "add_lsl": (4,), "eor": (0x80808080,), "orr_lsl": (16,), "lsl": (8,), "lsr": (8,), "asr": (8,), "bfi": (8, 8),
    "sxtb16": (8,), "ssat8_asr": (12,), "vcvt_fixed": (8,), "ldr_by": (2,), "ldrb": (7,), "vldr": (4,), "strb": (5,),
    "strd": (8,), "strb_moving": (1,), "adds": (20,), "movs": (200,), "sub_imm": (20,), "strb_by": (1,), "str_by": (2,),
    "mov_imm": (0x00010001,), "add_asr": (2,), "sub_lsl": (1,), "sxtab16": (8,),
}  # fmt: skip
BASES = {
    "ldr": 0, "ldrd": 0, "ldm": 0, "vldm": 0, "str": 1, "str_moving": 1, "ldr_by": 0, "ldrb": 0, "vldr": 0, "strb": 1,
    "strb_by": 1, "str_by": 1, "strd": 2, "strb_moving": 1,
}  # fmt: skip
PLACES = {"ldr_by": (1, 4), "strb_by": (2, 8), "str_by": (2, 4)}  # which operand is a distance, and beyond all
IN_PLACE = {"smlad": 2, "smmlar": 2, "bfi": 0, "qadd": 0, "orr_lsl": 0}
FLAGS = {
    "cmp": ("ite eq", "moveq r12, #1", "movne r12, #0"), "cmp_zero": ("ite mi", "movmi r12, #1", "movpl r12, #0"),
}  # fmt: skip
FLOATS = {"vmul": 2, "vnmul": 2, "vcvtr": 1}


def core(number: int) -> Register:
    return Register(CORE, number, virtual=False)


def fpu(number: int) -> Register:
    return Register(FPU, number, virtual=False)


def insns() -> Iterator[Insn]:
    """Yield an instruction of each row that makes a value; the operands of `{r0}`, `{w0}` by what the text asks for."""
    for op, row in ISA.items():
        if row.kind is Kind.BRANCH:
            continue
        imm = IMMEDIATES.get(op, ())
        reads = tuple(core(2 + k) for k in range(sum(f"{{r{k}}}" in row.text for k in range(3))))
        writes = tuple(core(5 + k) for k in range(sum(f"{{w{k}}}" in row.text for k in range(2))))
        if op in ("vcvt", "vcvt_fixed", "vmul", "vnmul", "vcvtr"):
            reads = tuple(fpu(r.number) for r in reads)
            writes = (reads[0] if op == "vcvt_fixed" else fpu(8),)
        elif op == "vldr":
            writes = (fpu(8),)
        elif op in ("vmov", "vmov_pair"):
            writes = tuple(fpu(6 + k) for k in range(len(writes)))
        elif op in ("ldm", "vldm"):
            writes = tuple((core if op == "ldm" else fpu)(8 + k) for k in range(imm[0]))
        if op == "bfi":
            reads = (core(5), core(3))
        elif op in IN_PLACE:
            reads = tuple(writes[0] if k == IN_PLACE[op] else r for k, r in enumerate(reads))
        if op.endswith("_moving") or op in ("ldm", "vldm"):
            writes = (*writes, reads[BASES[op]])
        if op == "adds":
            writes = reads
        if op in FLAGS:
            writes = (Register(FLAG, 0, virtual=False),)
        if op == "sel":
            reads = (*reads, GE)
        if op == "ssub8":
            writes = (*writes, GE)
        yield Insn(op, writes, reads, imm, "memory")


def drawn(rng: np.random.Generator, insn: Insn) -> dict[Register, np.ndarray]:
    """Return operands of all cases: extremes and random ones; a base is 0, the begin of the memory."""
    found = {}
    for k, r in enumerate(insn.reads):
        values = rng.integers(0, 2**32, CASES, dtype=np.uint32)
        values[: len(EXTREMES)] = rng.permutation(np.array(EXTREMES, np.uint32))
        if insn.op in FLOATS:
            values = (rng.standard_normal(CASES) * 200).astype(np.float32)
            values[: len(REALS)] = rng.permutation(np.array(REALS, np.float32))
            values = values.view(np.uint32)
        if BASES.get(insn.op) == k:
            values = np.zeros(CASES, np.uint32)
        elif PLACES.get(insn.op, (-1,))[0] == k:
            values = rng.integers(0, PLACES[insn.op][1], CASES).astype(np.uint32)
        elif r == GE:
            values = rng.choice(np.array([0, 0xFF, 0xFF00FF00, 0xFFFFFFFF, 0xFF0000FF], np.uint32), CASES)
        elif insn.op == "asr_by" and k == 1:
            values = rng.integers(0, 40, CASES).astype(np.uint32)
        found[r] = values
    return found


def function(number: int, insn: Insn) -> str:
    """Return a function that loads operands from r0, runs the instruction and stores its results at r1."""
    base = insn.reads[BASES[insn.op]] if insn.op in BASES else None
    loads = []
    for k, r in enumerate(insn.reads):
        if r == base:
            loads.append(f"add {r}, r0, #{4 * WORDS}")
        elif r == GE:  # each byte that is set gives a carry
            loads += [f"ldr r12, [r0, #{4 * k}]", "movs lr, #0", "ssub8 lr, lr, lr", "mvn lr, #0", "lsr r12, r12, #7",
                      "and r12, r12, #0x01010101", "mov lr, #0x01010101", "ssub8 lr, r12, lr"]  # fmt: skip
        else:
            loads.append(f"{'vldr' if r.bank == FPU else 'ldr'} {r}, [r0, #{4 * k}]")
    stores = []
    for k, r in enumerate(insn.writes):
        if r == GE:
            stores += ["mov r12, #0", "mvn lr, #0", "sel r12, lr, r12", f"str r12, [r1, #{4 * k}]"]
        elif r.bank == FLAG:
            stores += [*FLAGS[insn.op], f"str r12, [r1, #{4 * k}]"]
        elif r == base:
            stores += [f"sub {r}, {r}, r0", f"sub {r}, {r}, #{4 * WORDS}", f"str {r}, [r1, #{4 * k}]"]
        else:
            stores.append(f"{'vstr' if r.bank == FPU else 'str'} {r}, [r1, #{4 * k}]")
    lines = ["push {r4-r11, lr}", *loads, text(insn), *stores, "pop {r4-r11, pc}"]
    body = "".join(f'"{line}\\n" ' for line in lines)
    head = f"__attribute__((naked)) static void f{number}(const uint32_t *in, uint32_t *out)"
    return f"{head} {{ __asm__ volatile({body}); }}\n"


def program(all_insns: Sequence[Insn], operands: Sequence[dict[Register, np.ndarray]], memory: np.ndarray) -> str:
    """Return the C program that prints results, then the memory, of each case of each instruction."""
    rows = []
    for insn, values in zip(all_insns, operands, strict=True):
        for case in range(CASES):
            words = [int(values[r][case]) for r in insn.reads]
            words += [0] * (WORDS - len(words)) + [int(w) for w in memory[case]]
            rows.append("{" + ", ".join(f"{w}u" for w in words) + "}")
    functions = "".join(function(k, insn) for k, insn in enumerate(all_insns))
    table = ", ".join(f"f{k}" for k in range(len(all_insns)))
    return f"""#include <stdint.h>
#include <stdio.h>
{functions}
static uint32_t in[][{2 * WORDS}] = {{{", ".join(rows)}}};
static void (*const f[])(const uint32_t *, uint32_t *) = {{{table}}};
int main(void) {{
  for (int i = 0; i < {len(all_insns) * CASES}; i++) {{
    uint32_t out[{WORDS}] = {{0}};
    f[i / {CASES}](in[i], out);
    for (int k = 0; k < {WORDS}; k++) printf("%u ", (unsigned)out[k]);
    for (int k = {WORDS}; k < {2 * WORDS}; k++) printf("%u ", (unsigned)in[i][k]);
    printf("\\n");
  }}
  return 0;
}}
"""


def test_each_instruction_means_what_the_processor_does(tmp_path: Path) -> None:
    board, rng = load_board("linux-armhf"), np.random.default_rng(3)
    require_tool(board.cpu.cc, "qemu-arm")
    tested = list(insns())
    operands = [drawn(rng, insn) for insn in tested]
    memory = rng.integers(0, 2**32, (CASES, WORDS), dtype=np.uint32)
    (tmp_path / "rows.c").write_text(program(tested, operands, memory))
    elf = tmp_path / "rows"
    flags = ["-O1", "-mthumb", "-march=armv7ve+vfpv4", "-mfloat-abi=hard", "-mfpu=vfpv4", "-static"]
    subprocess.run([board.cpu.cc, *flags, str(tmp_path / "rows.c"), "-o", str(elf)], check=True)
    out = subprocess.run(run_argv(elf, board), check=True, capture_output=True, text=True).stdout
    found = np.array([line.split() for line in out.splitlines()], np.uint64).astype(np.uint32)
    found = found.reshape(len(tested), CASES, 2 * WORDS)
    wrong = {}
    for insn, values, got in zip(tested, operands, found, strict=True):
        after = Memory(memory.copy())
        with np.errstate(all="ignore"):
            want = results(insn, after, [values[r] for r in insn.reads])
        for k, result in enumerate(want):
            same = np.asarray(result, np.uint32) == got[:, k]
            if insn.op == "vmul":
                same |= np.isnan(result.view(np.float32)) & np.isnan(np.ascontiguousarray(got[:, k]).view(np.float32))
            if not same.all():
                case = int(np.argmin(same))
                wrong[f"{insn.op} {k}"] = (
                    [hex(int(values[r][case])) for r in insn.reads],
                    hex(int(result[case])),
                    hex(int(got[case, k])),
                )
        if not np.array_equal(after.words, got[:, WORDS:]):
            wrong[f"{insn.op} memory"] = [], "", ""
    assert wrong == {}
