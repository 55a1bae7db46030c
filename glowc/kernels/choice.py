"""Which variants an instruction can have, and which one it has."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from glowc.errors import InternalError
from glowc.kernels.base import Columns, KernelVariant, stated_insns
from glowc.kernels.registry import variant_named, variants_of
from glowc.program.ir import Instr, Program

_PAIR = 2  # pixels that kernels compute together at least


def find_variant(instr: Instr) -> KernelVariant | None:
    """Return the variant that an instruction was lowered to, None when its kernel has none of that name."""
    return variant_named(instr.kernel, instr.variant)


def variant_of(instr: Instr) -> KernelVariant:
    """Return the variant that an instruction was lowered to; InternalError when its kernel has none of that name."""
    variant = find_variant(instr)
    if variant is None:
        raise InternalError(f"kernel {instr.kernel} has no variant {instr.variant}")
    return variant


def columns_of(instr: Instr) -> Columns | None:
    """Return the pixels of a row that a call may compute: those of blocks, where the variant itself has none, of an
    image of one row whose pixels are products with the same weights."""
    variant = variant_of(instr)
    if variant.columns is not None or not _is_row_of_products(instr):
        return variant.columns
    block = max(_PAIR, variant.row_block)
    return Columns(block, lambda _: block)


def _is_row_of_products(instr: Instr) -> bool:
    p = instr.params
    ones = ("batch", "in_h", "out_h", "k_h", "k_w", "stride_w", "in_ch", "groups")
    return all(p.get(key) == 1 for key in ones) and p["in_w"] == p["out_w"] and p["pad_left"] == 0


def placed(instr: Instr) -> Instr:
    """Return an instruction with its plan made anew, where that depends on rings, directions or lengths."""
    hook = variant_of(instr).placed
    return instr if hook is None else replace(instr, plan=hook(instr))


def as_placed(program: Program) -> Program:
    """Return the program with the plans that depend on rings, directions and lengths made anew: these are settled."""
    return replace(program, instrs=tuple(i if i.is_marker else placed(i) for i in program.instrs))


def candidates(instr: Instr, features: frozenset[str], constants: Set[str]) -> list[KernelVariant]:
    """Return the variants that a CPU with `features` has for an instruction whose operands `constants` are known."""
    fits = [v for v in variants_of(instr.kernel, features) if v.needs <= features and not v.slow_with & features]
    return [v for v in fits if v.packs <= constants and v.accepts(instr)]


def guessed_insns(instr: Instr) -> int:
    """Return what a call takes, roughly, where nothing was measured."""
    return round(stated_insns(variant_of(instr), instr))
