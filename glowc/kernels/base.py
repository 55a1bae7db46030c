"""What a variant of a kernel is to the compiler: the CPUs and shapes that it is for, and what it needs besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from glowc.program.ir import Access, Instr, ParamValue
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True)
class Packed:
    """What packing made of the constants: arrays by role, and facts that it found, which the plan may print with."""

    arrays: Arrays
    facts: Mapping[str, ParamValue] = field(default_factory=dict)


def always(_: Instr) -> bool:
    """Accept every instruction."""
    return True


def no_scratch(_: Instr) -> int:
    """Need no scratch."""
    return 0


_ACTIVATIONS = frozenset({"in", "in_scale", "in_zp", "a", "b", "scratch"})


def no_plan(_: Instr) -> Mapping[str, ParamValue]:
    """Print with the kernel's own parameters only."""
    return {}


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """One C implementation of a kernel: for which CPUs, which shapes, and what it needs besides.

    `needs` are CPU features; `in_place` allows the output to have the same address as the first input
    named in the kernel's `in_place`; the variant with the highest `rank` among the accepted is chosen.
    `pack_weights` rearranges the constant operand `weights` at compile time; `pack` takes all constant operands
    by role and returns those that it replaces (weights with the bias folded in, an empty bias ...), with what it found
    out about them as `Packed`: `plan` and `scratch_bytes` see that in `Instr.facts`. `plan` gives
    further values that the template prints as `v.<key>`; they belong to the function's identity. `template`
    names the template file, with {} for the kernel's name or that of its family (`KernelDef.template`), and the folder
    where it is not that of the instruction set; `header` is the runtime header that it needs. `packs` are the operands
    that `pack` reads, by default all but the activations: where one of them is computed or an input of the model, the
    variant is not for the instruction. `like` names the variant whose costs it has, where it is not measured by itself.
    `rows_in_order` keeps the kernel's row contract (`KernelDef.row_window`, `length`), so that the output may be
    planned over input that is dead by then; `streams` says of a variant with scratch that calls for single rows
    give what one call for all gives at little more cost, and that no scratch lives from one call to the next.
    `speed_only` variants spend RAM or flash that only `--opt speed` is for.
    `folder` is that of the instruction set; the registry sets it.
    `row_block` are the pixels that it computes together: a row of a call costs as much as one of a whole multiple.
    """

    isa: str
    needs: frozenset[str] = frozenset()
    rank: int = 0
    in_place: bool = False
    accepts: Callable[[Instr], bool] = always
    scratch_bytes: Callable[[Instr], int] = no_scratch
    pack_weights: Callable[[np.ndarray, Instr], np.ndarray] | None = None
    pack: Callable[[Arrays, Instr], Arrays | Packed] | None = None
    plan: Callable[[Instr], Mapping[str, ParamValue]] = no_plan
    rows_in_order: bool = True
    streams: bool = False
    row_block: int = 1
    speed_only: bool = False
    template: str = "{}"
    header: str = ""
    packs: frozenset[str] | None = None
    like: str = ""
    folder: str = ""

    def packed_roles(self, instr: Instr) -> frozenset[str]:
        """Return the operands of an instruction that must be constants for this variant to prepare them."""
        if self.pack is None and self.pack_weights is None:
            return frozenset()
        read = frozenset(o.role for o in instr.operands if o.access is Access.IN) - _ACTIVATIONS
        return read if self.packs is None else self.packs


def pack_constants(variant: KernelVariant, constants: Arrays, instr: Instr) -> Packed:
    """Return the constants that a variant replaces, and what it found out about them."""
    replaced: dict[str, np.ndarray] = {}
    if variant.pack_weights is not None:
        replaced["weights"] = variant.pack_weights(constants["weights"], instr)
    found = variant.pack(constants, instr) if variant.pack is not None else Packed({})
    packed = found if isinstance(found, Packed) else Packed(found)
    return Packed({**replaced, **packed.arrays}, packed.facts)


def streams_rows(variant: KernelVariant, instr: Instr) -> bool:
    """Say whether a variant may compute the rows of an instruction one call at a time, in rings."""
    return variant.rows_in_order and (variant.streams or variant.scratch_bytes(instr) == 0)


def row_waste(variant: KernelVariant, instr: Instr) -> float:
    """Return what calls for single rows cost, as a multiple of one call for all rows."""
    width = int(instr.params.get("out_w", 0)) if instr.rows is not None else 0
    return -(-width // variant.row_block) * variant.row_block / width if width else 1.0


def guessed_insns(instr: Instr) -> int:
    """Return what a call takes, roughly, where nothing was measured: fast kernels, the slow reference, little code."""
    return instr.macs * _GUESSES.get(instr.isa, 1)


_GUESSES = {"ref": 25, "m3s": 15, "m0s": 15}
