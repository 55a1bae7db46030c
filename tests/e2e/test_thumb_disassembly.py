"""What the compiler made of the int8 kernels for cores without FPU: no library arithmetic in their inner loops.

A product of 64 bits, a quotient or a float where none was meant is a call of dozens of instructions, and no other test
sees it: the results stay right. Functions named `slow`, which are called for codes near a tie, are what they are.
Quotients of 32 bits are allowed: a row of a window is found in a ring by one.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from glowc.codegen.printed import print_kernel
from glowc.kernels.choice import variant_of
from glowc.kernels.registry import variants_of
from tests.conftest import RUNTIME_DIRS, require_tool
from tests.e2e.disassembly import OBJDUMP, bodies, insn_of
from tests.kernels.collect import all_cases
from tests.kernels.functions import Job
from tests.kernels.machines import machine
from tests.kernels.program import make_jobs

_ISAS = ("v7m", "v6m", "soft")
_MACHINES = {"mps2-an385": ("v7m", "soft"), "mps2-an385-m0": ("v6m",)}
_SAMPLES = 3  # cases of a kernel
_CALL = re.compile(r"R_ARM_THM_(?:CALL|JUMP24)\s+(\S+)$")
_BRANCH = re.compile(r"^(?:b|cbn?z)(?!l|x|ic)\S*\s.*?\b([0-9a-f]+) <")
_LOCAL = re.compile(r"^bl\s.*<([^+>]+)>$")
_LIBRARY = re.compile(r"^(?:__(?!aeabi_u?idiv)|sqrt|rint|exp|log|pow|glow_(?:requant|round_clamp|fma|shift_rne)$)")
_SLOW = re.compile(r"slow|^glow_(?:bilinear_exact|requant|round_clamp|fma|shift_rne)$")


@dataclass(frozen=True)
class Insn:
    """One instruction: where it is, where it may jump to, what it calls."""

    address: int
    target: int | None = None
    callee: str = ""


def functions(listing: str) -> dict[str, list[Insn]]:
    """Return the instructions of each function of `objdump -dr`."""
    return {name: list(insns(lines)) for name, lines in bodies(listing).items()}


def insns(lines: list[str]) -> Iterator[Insn]:
    """Yield the instructions of a function; a relocation names the callee of the one before it."""
    for line, after in itertools.pairwise([*lines, ""]):
        if found := insn_of(line):
            address, text = found
            jump, local, call = _BRANCH.match(text), _LOCAL.match(text), _CALL.search(after)
            callee = call[1] if call else local[1] if local else ""
            yield Insn(address, int(jump[1], 16) if jump and not call else None, callee)


def inner_loops(body: list[Insn]) -> Iterator[list[Insn]]:
    """Yield the loops of a function that hold no other: from where a backward jump goes to the jump."""
    spans = {
        (insn.target, insn.address)
        for insn in body
        if insn.target is not None and body[0].address <= insn.target <= insn.address
    }
    for first, last in spans:
        if not any((first, last) != (a, b) and first <= a and b <= last for a, b in spans):
            yield [insn for insn in body if first <= insn.address <= last]


def faults(found: dict[str, list[Insn]]) -> list[str]:
    """Return "function: callee" of library calls in inner loops, or in functions without loops that those call."""
    straight = {name: body for name, body in found.items() if not list(inner_loops(body))}
    indirect = {
        name
        for name, body in straight.items()
        if not _SLOW.search(name) and any(_LIBRARY.match(insn.callee) for insn in body)
    }
    return [
        f"{name}: {insn.callee}"
        for name, body in found.items()
        if not _SLOW.search(name)
        for loop in inner_loops(body)
        for insn in loop
        if _LIBRARY.match(insn.callee) or insn.callee in indirect
    ]


def _bytes(job: Job) -> int:
    return sum(array.nbytes for array in job.arrays.values())


def disassemble(name: str, folder: Path) -> dict[str, list[Insn]]:
    """Compile the kernels of a machine for a sample of their cases, sizes as literals; return all functions."""
    tested = machine(name)
    cpu = tested.board.cpu
    require_tool(cpu.cc, OBJDUMP)
    jobs = [
        job
        for job in make_jobs(all_cases(), tested)
        if variant_of(job.instr).isa in _MACHINES[name] and not job.literal and not job.in_place
    ]
    sources, headers = [], set()
    for kernel in sorted({job.instr.kernel for job in jobs}):
        mine = sorted((job for job in jobs if job.instr.kernel == kernel), key=_bytes)
        mine = mine[len(mine) // 2 :]  # the larger ones: a loop that runs once is none
        for index, job in enumerate(mine[:: max(1, len(mine) // _SAMPLES)][:_SAMPLES]):
            function = f"fn_{kernel}_{index}"
            headers.add(variant_of(job.instr).header or "glow_numeric.h")
            keep = f"void *used_{function}(void);\nvoid *used_{function}(void) {{\n  return (void *){function};\n}}\n"
            sources.append(print_kernel(job.instr, function, None) + keep)
    includes = "#include <math.h>\n" + "".join(f'#include "{header}"\n' for header in sorted(headers))
    (folder / "kernels.c").write_text(includes + "\n".join(sources))
    obj = folder / "kernels.o"
    flags = [*cpu.cflags, "-std=c11", "-O2", "-ffunction-sections", *(f"-I{folder}" for folder in RUNTIME_DIRS)]
    subprocess.run([cpu.cc, *flags, "-c", str(folder / "kernels.c"), "-o", str(obj)], check=True, timeout=300)
    dump = subprocess.run([OBJDUMP, "-dr", str(obj)], check=True, capture_output=True, text=True, timeout=60)
    return functions(dump.stdout)


@pytest.mark.qemu
@pytest.mark.parametrize("name", _MACHINES)
def test_inner_loops_call_no_library_arithmetic(name: str, tmp_path: Path) -> None:
    found = disassemble(name, tmp_path)
    assert any(list(inner_loops(body)) for function, body in found.items() if function.startswith("fn_"))
    assert not sorted(set(faults(found)))


def test_every_int8_kernel_of_models_has_a_variant() -> None:
    """Those that quantised models consist of."""
    kernels = (
        *("add_s8", "add_s8f", "add_s8rs", "mul_s8", "lut_s8", "matmul_s8", "softmax_s8", "quantize"),
        *("avg_pool_s8", "avg_pool_s8w", "reduce_mean_s8"),
        *(f"{layer}_s8{end}" for layer in ("conv", "dwconv", "fc") for end in ("", "rs")),
    )
    for name in kernels:
        assert {v.isa for v in variants_of(name)} & set(_ISAS), name


def test_calls_in_loops_are_found() -> None:
    listing = """
00000000 <near>:
   0:\tf7ff fffe \tbl\t0 <__aeabi_fmul>
\t\t\t0: R_ARM_THM_CALL\t__aeabi_fmul
   4:\t4770      \tbx\tlr

00000010 <f>:
  10:\tf7ff fffe \tbl\t0 <near>
  14:\tf7ff fffe \tbl\t0 <g_slow>
  18:\td1f6      \tbne.n\t10 <f>
  1a:\tf7ff fffe \tbl\t0 <__aeabi_lmul>
\t\t\t1a: R_ARM_THM_CALL\t__aeabi_lmul
"""
    found = functions(listing)
    assert [len(loop) for loop in inner_loops(found["f"])] == [3]
    assert faults(found) == ["f: near"]
