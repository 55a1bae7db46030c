"""The instruction sets that kernels are written for: what a CPU must have for each, and where its files lie."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.errors import InternalError
from glowc.graph.scope import Table
from glowc.kernels.features import Stated


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """The CPU features (boards/_cpu/*.toml) of a set, its `folder` in the three trees, what kernels take roughly."""

    needs: frozenset[str]
    folder: str
    stated: Stated


def _of(folder: str, *needs: str, macs: float = 1.0, outputs: float = 5.0) -> InstructionSet:
    return InstructionSet(frozenset(needs), folder, Stated(macs=macs, outputs=outputs))


ISAS = {
    "ref": _of("ref", macs=25.0, outputs=20.0),  # portable C11
    "soft": _of("thumb", "softfloat"),  # portable C11 in integers, where floats are functions
    "v6m": _of("thumb", "thumb1"),
    "v7m": _of("thumb", "thumb2"),
    "dsp": _of("dsp", "dsp", "unaligned"),
    "fpu": _of("fpu", "fpu"),
    "mve": _of("mve", "mve", macs=0.35, outputs=3.0),
    "a32": _of("simd", "a32", "neon", macs=0.8),
    "a64": _of("simd", "a64", "neon", macs=0.6),
    "dot": _of("simd", "a64", "neon", "dot", macs=0.25),
    "i8mm": _of("simd", "a64", "neon", "dot", "i8mm", macs=0.15),
    "sve2": _of("wide", "a64", "sve2", "i8mm"),
    "wide": _of("wide", "wide"),
}
"""By the name that variants have it by, and functions in C."""

FOREIGN: Table[InstructionSet] = Table()
"""Those of plugins."""


def is_foreign(name: str) -> bool:
    """Say whether a plugin brought the instruction set of that name."""
    return name in FOREIGN.all()


def set_names() -> tuple[str, ...]:
    """Return the names of all instruction sets, those of plugins last."""
    return (*ISAS, *FOREIGN.all())


def instruction_set(name: str) -> InstructionSet:
    """Return an instruction set; InternalError when there is none of that name."""
    found = ISAS.get(name) or FOREIGN.all().get(name)
    if found is None:
        raise InternalError(f"no instruction set {name} in glowc/kernels/isas.py")
    return found
