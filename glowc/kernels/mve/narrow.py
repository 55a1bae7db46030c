"""Helium variant of fully connected layers whose weights have few bits (runtime_c/mve/glow_mve_narrow.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.few_codes import FewCodes
from glowc.kernels.base import Prepared, prepared_instr
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.narrow import by_lanes, has_few_rows, narrowed, weight_bits, words_of
from glowc.kernels.mve import fully_connected
from glowc.kernels.mve.shared import FAST
from glowc.kernels.mve.stream import VECTOR, group_records
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowPlan(Plan):
    """`bits` of a weight."""

    bits: int


def accepts(instr: Instr) -> bool:
    """Accept weights of few bits, few rows, and whole vectors of inputs."""
    few = weight_bits(instr) > 0 and has_few_rows(instr) and instr.int_("in_k") % VECTOR == 0
    return few and fully_connected.accepts(instr)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants with its weights as they are stored."""
    plain, bits = fully_connected.prepare(constants, instr), weight_bits(instr)
    records = group_records(prepared_instr(instr, plain), instr.int_("out_n"))
    packed = (
        narrowed(words_of(plain.constants["weights"]), records, FewCodes(bits), by_lanes(4))
        if records is not None
        else None
    )
    assert packed is not None
    return Prepared({**plain.constants, "weights": packed}, NarrowPlan(bits=bits))


NARROW = replace(
    FAST, form="narrow", rank=21, accepts=accepts, prepare=prepare, packs=WEIGHTED, header="glow_mve_narrow.h",
    template="{}_narrow", unpacks=True,
)  # fmt: skip

VARIANTS = {"fc_s8": (NARROW,)}
