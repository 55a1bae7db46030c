"""What a variant of a kernel is to the compiler: the CPUs and shapes that it is for, and what it needs besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from glowc.errors import InternalError
from glowc.graph.types import type_of
from glowc.program.ir import NO_PLAN, Access, Instr, ParamValue, Plan
from glowc.program.kernel import Arrays

P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a variant makes of an instruction: the constants that it replaces, by role, and its plan."""

    constants: Arrays = field(default_factory=dict)
    plan: Plan = NO_PLAN


@dataclass(frozen=True, slots=True)
class Packed:
    """What packing made of the constants: arrays by role, and facts that it found, which the plan may print with."""

    arrays: Arrays
    facts: Mapping[str, ParamValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoosePlan(Plan):
    """A plan without a type: names with values, in the order of the names."""

    items: tuple[tuple[str, ParamValue], ...] = ()
    facts: tuple[tuple[str, ParamValue], ...] = ()

    @staticmethod
    def of(values: Mapping[str, ParamValue], facts: Mapping[str, ParamValue]) -> Plan:
        """Return the plan of these values."""
        path = str(values.get("path", ""))
        return LoosePlan(path=path, items=tuple(sorted(values.items())), facts=tuple(facts.items()))

    @property
    def cost_path(self) -> str:
        """What the costs of a path are filed under."""
        values = dict(self.items)
        return self.path or (f"point{values['point']}" if "point" in values else "")

    def get(self, key: str, default: ParamValue) -> ParamValue:
        """Return a value, or the default."""
        return dict(self.items).get(key, default)

    def __getattr__(self, key: str) -> ParamValue:
        """Return a value by its name."""
        for name, value in self.items:
            if name == key:
                return value
        raise AttributeError(key)


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
    `prepare` takes all constant operands by role and returns those that it replaces (weights as they are read, biases
    with the zero point folded in ...) and the plan that the template prints by as `v`; the constants that it needs are
    `packs`. `placed` returns the plan anew once it is known which rows the instruction reads and writes in rings.
    `pack_weights` rearranges the constant operand `weights` at compile time; `pack` takes all constant operands
    by role and returns those that it replaces (weights with the bias folded in, an empty bias ...), with what it found
    out about them as `Packed`: `plan` and `scratch_bytes` see that by `facts_of`. `plan` gives
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
    prepare: Callable[[Arrays, Instr], Prepared] | None = None
    placed: Callable[[Instr], Plan] | None = None
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
            return self.packs or frozenset()
        read = frozenset(o.role for o in instr.operands if o.access is Access.IN) - _ACTIVATIONS
        return read if self.packs is None else self.packs


def facts_of(instr: Instr) -> Mapping[str, ParamValue]:
    """Return what packing found out about the constants of an instruction."""
    return dict(instr.plan.facts) if isinstance(instr.plan, LoosePlan) else {}


def pack_constants(variant: KernelVariant, constants: Arrays, instr: Instr) -> Packed:
    """Return the constants that a variant replaces, and what it found out about them."""
    replaced: dict[str, np.ndarray] = {}
    if variant.pack_weights is not None:
        replaced["weights"] = variant.pack_weights(constants["weights"], instr)
    found = variant.pack(constants, instr) if variant.pack is not None else Packed({})
    packed = found if isinstance(found, Packed) else Packed(found)
    return Packed({**replaced, **packed.arrays}, packed.facts)


def prepare(variant: KernelVariant, constants: Arrays, instr: Instr) -> Prepared:
    """Return what a variant makes of an instruction with these constants, by role."""
    if variant.prepare is not None:
        return variant.prepare(constants, instr)
    packed = pack_constants(variant, constants, instr)
    arrays = {role: np.ascontiguousarray(array) for role, array in packed.arrays.items()}
    seen = prepared_instr(instr, Prepared(arrays, LoosePlan.of({}, packed.facts)))
    return Prepared(arrays, LoosePlan.of(variant.plan(seen), packed.facts))


def plan_of(instr: Instr, kind: type[P]) -> P:
    """Return the plan of an instruction, which is of that kind; InternalError when it has another."""
    if not isinstance(instr.plan, kind):
        raise InternalError(f"{instr.name}: {instr.kernel}__{instr.isa} has no {kind.__name__}: {instr.plan}")
    return instr.plan


def prepared_instr(instr: Instr, prepared: Prepared) -> Instr:
    """Return an instruction with its plan, and operands of the types that its prepared constants have."""
    arrays = prepared.constants
    operands = (replace(o, type=type_of(arrays[o.role])) if o.role in arrays else o for o in instr.operands)
    return replace(instr, operands=tuple(operands), plan=prepared.plan)


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
