"""fc_s8 on A64 of weights of few bits as they are stored (runtime_c/simd/glow_neon_narrow.h)."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.graph.few_codes import FewCodes
from glowc.kernels.base import KernelVariant, Prepared, prepare, prepared_instr
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.narrow import by_lanes, has_few_rows, narrowed, weight_bits, words_of
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
    few = weight_bits(instr) > 0 and has_few_rows(instr) and instr.int_("w_zp") == 0
    return few and accepts_codes(instr) and instr.int_("in_k") % CHUNK == instr.int_("out_n") % _OUTPUTS == 0


def prepare_narrow(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants with its weights as they are stored."""
    plain, bits = prepare(_PLAIN, constants, instr), weight_bits(instr)
    records = _PLAIN.records(prepared_instr(instr, plain)) if _PLAIN.records is not None else None
    packed = (
        narrowed(words_of(plain.constants["weights"]), records, FewCodes(bits), by_lanes(_LANES))
        if records is not None
        else None
    )
    assert packed is not None
    return Prepared({**plain.constants, "weights": packed}, NarrowPlan(bits=bits))


NARROW = KernelVariant(
    "a64", form="narrow", rank=31, header="glow_neon_narrow.h", template="{}_narrow", accepts=accepts,
    prepare=prepare_narrow, packs=WEIGHTED, unpacks=True,
)  # fmt: skip

VARIANTS = {"fc_s8": (NARROW,)}
