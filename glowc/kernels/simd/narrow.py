"""fc_s8 on A64 of weights of few bits or of a palette as they are stored (runtime_c/simd/glow_neon_narrow.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, prepare, prepared_instr
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
from glowc.kernels.simd.conv import accepts_codes
from glowc.kernels.simd.fully_connected import A64
from glowc.kernels.simd.stream import CHUNK
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_OUTPUTS, _LANES = 8, 4
_PLAIN = A64[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowPlan(Plan):
    """`bits` of a weight."""

    bits: int


def accepts(instr: Instr) -> bool:
    """Accept weights of few bits, few rows, whole vectors of inputs, and whole blocks of outputs."""
    return weight_bits(instr) > 0 and _has_blocks(instr)


def accepts_palette(instr: Instr) -> bool:
    """Accept the same of weights of a palette, two products of which fit 16 bits."""
    return bool(weight_palette(instr)) and weight_palette(instr)[0] > DType.S8.qmin and _has_blocks(instr)


def _has_blocks(instr: Instr) -> bool:
    whole = instr.int_("in_k") % CHUNK == instr.int_("out_n") % _OUTPUTS == 0
    return has_few_rows(instr) and instr.int_("w_zp") == 0 and accepts_codes(instr) and whole


def prepare_narrow(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants with its weights as they are stored, behind their palette if they have one."""
    plain, form = prepare(_PLAIN, constants, instr), weight_form(instr)
    records = _PLAIN.records(prepared_instr(instr, plain)) if _PLAIN.records is not None else None
    assert records is not None
    assert form is not None
    packed = with_palette(words_of(plain.constants["weights"]), records, form, by_lanes(_LANES))
    return Prepared({**plain.constants, "weights": packed}, NarrowPlan(bits=form.bits))


NARROW = KernelVariant(
    "a64", form="narrow", rank=31, header="glow_neon_narrow.h", template="{}_narrow", accepts=accepts,
    prepare=prepare_narrow, packs=WEIGHTED, unpacks=True, stated=Stated(macs=0.33),
)  # fmt: skip
PALETTE = replace(NARROW, form="palette", template="{}_palette", accepts=accepts_palette, stated=Stated(macs=0.42))

VARIANTS = {"fc_s8": (NARROW, PALETTE)}
