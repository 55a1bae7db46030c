"""What the compiler made of the Helium kernels: no spilled vectors and no predicates by way of core registers in loops.

Both are easily brought in by an intrinsic or one operand too many, and no other test sees them: the results stay right.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.codegen.printed import print_kernel
from glowc.graph.types import DType
from glowc.kernels.choice import variant_of
from glowc.kernels.registry import variants_of
from tests.conftest import RUNTIME_DIRS, require_tool
from tests.e2e.disassembly import OBJDUMP, bodies, insn_of
from tests.kernels.case import Case
from tests.kernels.machines import Machine
from tests.kernels.program import make_jobs
from tests.ops import test_conv, test_fully_connected, test_layer_norm, test_matmul, test_quantize, test_softmax

_MACHINE = Machine("mps3-an547", "mps3-an547", "pool")
_LOOP_END = re.compile(r"^le(?:tp)? .*\b([0-9a-f]+) <")
_SPILL = re.compile(r"^v(ldr|str|push|pop|ldm|stm)\S*\s.*(\[sp|\{d)")
_PREDICATE = re.compile(r"^v(msr|mrs)\s.*\bp0\b|^v(msr|mrs)\s.*\bvpr\b")
_MAC = re.compile(r"^v(mla|mul|fma|mladav)")


@dataclass(frozen=True)
class Insn:
    """One line of a disassembly."""

    address: int
    text: str

    @property
    def loop_begin(self) -> int | None:
        """Where a low-overhead loop begins that ends here."""
        found = _LOOP_END.search(self.text)
        return int(found[1], 16) if found else None


def functions(listing: str) -> dict[str, list[Insn]]:
    """Return the instructions of each function of `objdump -d`."""
    return {
        name: [Insn(*found) for found in map(insn_of, lines) if found is not None]
        for name, lines in bodies(listing).items()
    }


def inner_loops(body: list[Insn]) -> Iterator[list[Insn]]:
    """Yield the low-overhead loops of a function."""
    for last in body:
        if last.loop_begin is not None:
            yield [i for i in body if last.loop_begin <= i.address <= last.address]


def faults(loop: list[Insn]) -> list[str]:
    """Return the instructions that have no place in a loop."""
    return [i.text for i in loop if _SPILL.match(i.text) or _PREDICATE.match(i.text)]


def moved(body: list[Insn]) -> list[str]:
    """Return the faults of a function that may keep vectors on the stack, each stored once, before what reads it."""
    stored = Counter(match[1] for i in body if (match := re.match(r"^vstr\S* \S+, (\[sp.*\])$", i.text)))
    kept = {place for place, count in stored.items() if count == 1}
    return [text for text in faults(body) if text.partition(", ")[2] not in kept]


def disassemble(case: Case, folder: Path) -> dict[str, list[Insn]]:
    """Compile the mve variant of a case, with its sizes as literals, and return its functions."""
    require_tool(_MACHINE.board.cpu.cc, OBJDUMP)
    (job,) = [
        job
        for job in make_jobs([case], _MACHINE)
        if job.instr.variant == "mve" and not (job.literal or job.in_place or job.instr.cut)
    ]
    header = variant_of(job.instr).header
    code = print_kernel(job.instr, "kernel", None)
    source = folder / "kernel.c"
    includes = f'#include <math.h>\n#include "glow_numeric.h"\n#include "{header}"\n'
    source.write_text(f"{includes}{code}\nvoid *used(void);\nvoid *used(void) {{\n  return (void *)kernel;\n}}\n")
    cpu = load_board("mps3-an547").cpu
    compile_ = [cpu.cc, *cpu.cflags, "-std=c11", "-O2", *(f"-I{folder}" for folder in RUNTIME_DIRS), "-c", str(source)]
    subprocess.run([*compile_, "-o", str(folder / "kernel.o")], check=True, timeout=120)
    dump = [OBJDUMP, "-d", "-marmv8.1-m.main", str(folder / "kernel.o")]
    return functions(subprocess.run(dump, check=True, capture_output=True, text=True, timeout=60).stdout)


def _conv(**shape: object) -> Callable[[], Case]:
    return lambda: test_conv.geometry(np.random.default_rng(0), **shape)  # type: ignore[arg-type]


def _is_long_fc(case: Case) -> bool:
    return case.instr.kernel == "fc_s8" and int(case.instr.params["in_k"]) > 64


def _first(cases: Callable[[], Iterable[Case]], kernel: str) -> Callable[[], Case]:
    """Return the first case of a kernel that its mve variant accepts."""
    (mve,) = [v for v in variants_of(kernel) if v.name == "mve"]
    return lambda: next(c for c in cases() if c.instr.kernel == kernel and mve.accepts(c.instr))


_PADS = (1, 1, 1, 1)
_CASES: dict[str, Callable[[], Case]] = {
    "conv3x3": _conv(h=8, w=8, c=32, out_c=8, pads=_PADS),
    "first conv": _conv(h=8, w=9, c=3, out_c=8, pads=_PADS, planar=True),
    "first conv, clamped": _conv(h=8, w=9, c=3, out_c=8, clamp=(0, 9)),
    "pointwise 8": _conv(h=4, w=12, c=8, out_c=8, k=(1, 1)),
    "pointwise 32": _conv(h=4, w=12, c=32, out_c=8, k=(1, 1)),
    "pointwise 64": _conv(h=4, w=5, c=64, out_c=8, k=(1, 1)),
    "depthwise 3x3": _conv(h=9, w=9, c=16, out_c=16, group=16, pads=_PADS),
    "depthwise 3x3, 8 channels": _conv(h=9, w=9, c=8, out_c=8, group=8, stride=(2, 2)),
    "depthwise 5x5": _conv(h=9, w=9, c=16, out_c=16, group=16, k=(5, 5)),
    "fully connected": lambda: next(case for case in test_fully_connected.kernel_cases() if _is_long_fc(case)),
    "conv, float": _conv(h=8, w=8, c=16, out_c=8, pads=_PADS, dtype=DType.F32),
    "depthwise, float": _conv(h=8, w=8, c=16, out_c=16, group=16, pads=_PADS, dtype=DType.F32),
    "product": lambda: test_matmul.product(np.random.default_rng(0), 8, 32, 16),
    "product, float": lambda: test_matmul.product(np.random.default_rng(0), 8, 32, 16, dtype=DType.F32),
    "softmax": _first(test_softmax.kernel_cases, "softmax_s8"),
    "normalized rows": _first(test_layer_norm.kernel_cases, "layer_norm_s8"),
    "quantise": _first(test_quantize.kernel_cases, "quantize"),
    "table": _first(test_quantize.kernel_cases, "lut_s8"),
}  # fmt: skip


_ASSEMBLY = tuple(_CASES)[: 1 + tuple(_CASES).index("fully connected")]
_BRANCHES = ("pointwise 8", "pointwise 32", "depthwise 3x3", "depthwise 3x3, 8 channels")  # no low-overhead loops


@pytest.mark.qemu
@pytest.mark.parametrize("name", [name for name in _CASES if name not in _BRANCHES])
def test_inner_loops_keep_vectors_and_predicates_where_they_are(name: str, tmp_path: Path) -> None:
    loops = [(f, loop) for f, body in disassemble(_CASES[name](), tmp_path).items() for loop in inner_loops(body)]
    vector = [loop for _, loop in loops if any(insn.text.startswith("v") for insn in loop)]
    assert vector, "no loop with vector instructions was found"
    wrong = [f"{function}: {text}" for function, loop in loops for text in faults(loop)]
    assert not wrong


@pytest.mark.qemu
@pytest.mark.parametrize("name", _ASSEMBLY)
def test_assembly_functions_spill_nothing_but_at_their_ends(name: str, tmp_path: Path) -> None:
    """The products jump by tables, so that their loops are no loops to a disassembler."""
    found = disassemble(_CASES[name](), tmp_path)
    bodies = {f: [i for i in body if not re.match(r"^v(push|pop) ", i.text)] for f, body in found.items()}
    assembly = {f: body for f, body in bodies.items() if sum(bool(_MAC.match(i.text)) for i in body) >= 2}
    assert assembly, f"no products in {sorted(found)}"
    assert not [f"{f}: {text}" for f, body in assembly.items() for text in moved(body)]


def test_faults_are_recognised() -> None:
    texts = ["vstrw.32 q4, [sp, #16]", "vldr d8, [sp, #8]", "vmsr p0, r3", "vmrs r2, p0"]
    assert faults([Insn(0, text) for text in texts]) == texts
    assert not faults([Insn(0, text) for text in ("vldrw.32 q0, [r1], #16", "vpst", "vmsr fpscr, r1")])


def test_loops_are_found() -> None:
    listing = """
00000000 <f>:
   0:\tf04f e001 \tdls\tlr, lr
   4:\ted91 1e00 \tvldrb.8\tq0, [r1]
   8:\tf00f c819 \tle\tlr, 4 <f+0x4>
   c:\td1f6      \tbne.n\t0 <f>
"""
    (loop,) = inner_loops(functions(listing)["f"])
    assert [insn.address for insn in loop] == [4, 8]
