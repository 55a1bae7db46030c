"""Checks that a program is well formed, the variants of its calls included."""

from __future__ import annotations

from glowc.errors import InternalError
from glowc.kernels.base import KernelVariant
from glowc.kernels.choice import find_variant
from glowc.program.ir import Instr, Program
from glowc.program.kernel import AnyKernel, find_kernel
from glowc.program.verify import declaration_problems, liveness_problems, structure_problems, wrong_kinds


def verify_program(program: Program, where: str = "", before: Program | None = None) -> None:
    """Raise InternalError naming every violation; `where` names the pass that made the program.

    The calls that it has from `before`, a program that was verified, are not compared with their kernels again.
    """
    problems = structure_problems(program)
    known = {id(instr) for instr in before.instrs} if before is not None else set()
    for instr in program.instrs:
        if not instr.is_marker and id(instr) not in known:
            problems += [f"{instr.name}: {problem}" for problem in call_problems(instr)]
    if not problems:  # liveness follows aliases, which must lead somewhere
        problems = liveness_problems(program)
    if problems:
        suffix = f" after {where}" if where else ""
        raise InternalError(f"invalid program {program.name!r}{suffix}", details=problems)


def call_problems(instr: Instr) -> list[str]:
    """Return where a call differs from what its kernel and its variant declare."""
    kernel = find_kernel(instr.kernel)
    if kernel is None:
        return [f"no kernel {instr.kernel}"]
    variant = find_variant(instr)
    if variant is None:
        return [f"kernel {instr.kernel} has no variant {instr.variant}"]
    problems = declaration_problems(kernel, instr)
    return problems or _check_kinds(kernel, variant, instr) + _check_scratch(variant, instr)


def _check_kinds(kernel: AnyKernel, variant: KernelVariant, instr: Instr) -> list[str]:
    """Check the element kinds, but of constants: a variant packs its own into any."""
    wrong = wrong_kinds(kernel, instr)
    packed = variant.packs if wrong else frozenset()
    return [
        f"operand {o.role} is {o.type}, needs {'|'.join(sorted(kind.value for kind in f.kinds))}"
        for o, f in wrong
        if o.role not in packed
    ]


def _check_scratch(variant: KernelVariant, instr: Instr) -> list[str]:
    given = sum(o.type.size_bytes for o in instr.operands if o.role == "scratch")
    needed = variant.scratch_bytes(instr)
    return [f"{given} bytes of scratch, needs {needed}"] if given < needed else []
