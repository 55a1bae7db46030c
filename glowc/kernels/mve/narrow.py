"""Helium variants of fully connected layers whose weights have few bits (runtime_c/mve/glow_mve_narrow.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.kernels.base import Prepared, prepared_instr
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.narrow import (
    by_lanes,
    has_few_rows,
    weight_bits,
    weight_form,
    weight_palette,
    with_palette,
    words_of,
)
from glowc.kernels.features import Stated
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
    return weight_bits(instr) > 0 and _has_vectors(instr)


def accepts_palette(instr: Instr) -> bool:
    """Accept the same of weights of a palette."""
    return bool(weight_palette(instr)) and _has_vectors(instr)


def _has_vectors(instr: Instr) -> bool:
    return has_few_rows(instr) and instr.int_("in_k") % VECTOR == 0 and fully_connected.accepts(instr)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants with its weights as they are stored, behind their palette if they have one."""
    plain, form = fully_connected.prepare(constants, instr), weight_form(instr)
    records = group_records(prepared_instr(instr, plain), instr.int_("out_n"))
    assert records is not None
    assert form is not None
    packed = with_palette(words_of(plain.constants["weights"]), records, form, by_lanes(4))
    return Prepared({**plain.constants, "weights": packed}, NarrowPlan(bits=form.bits))


NARROW = replace(
    FAST, form="narrow", rank=21, accepts=accepts, prepare=prepare, packs=WEIGHTED, header="glow_mve_narrow.h",
    template="{}_narrow", unpacks=True, stated=Stated(macs=0.25),
)  # fmt: skip
PALETTE = replace(NARROW, form="palette", template="{}_palette", accepts=accepts_palette, stated=Stated(macs=0.32))

VARIANTS = {"fc_s8": (NARROW, PALETTE)}
