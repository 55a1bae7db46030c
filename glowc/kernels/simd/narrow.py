"""fc_s8 on A64 of weights of few bits or of a palette as they are stored (runtime_c/simd/glow_neon_narrow.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.narrow import has_few_rows, read_as_stored, weight_bits, weight_palette
from glowc.kernels.features import Stated
from glowc.kernels.simd.conv import accepts_codes
from glowc.kernels.simd.fully_connected import A64
from glowc.kernels.simd.stream import CHUNK
from glowc.program.ir import Instr

_OUTPUTS = 8


def accepts(instr: Instr) -> bool:
    """Accept weights of few bits, few rows, whole vectors of inputs, and whole blocks of outputs."""
    return weight_bits(instr) > 0 and _has_blocks(instr)


def accepts_palette(instr: Instr) -> bool:
    """Accept the same of weights of a palette, two products of which fit 16 bits."""
    return bool(weight_palette(instr)) and weight_palette(instr)[0] > DType.S8.qmin and _has_blocks(instr)


def _has_blocks(instr: Instr) -> bool:
    whole = instr.int_("in_k") % CHUNK == instr.int_("out_n") % _OUTPUTS == 0
    return has_few_rows(instr) and instr.int_("w_zp") == 0 and accepts_codes(instr) and whole


NARROW = KernelVariant(
    "a64", form="narrow", rank=31, header="glow_neon_narrow.h", template="{}_narrow", accepts=accepts,
    prepare=read_as_stored(A64[0], lanes=4), packs=WEIGHTED, unpacks=True, stated=Stated(macs=0.33),
)  # fmt: skip
PALETTE = replace(NARROW, form="palette", template="{}_palette", accepts=accepts_palette, stated=Stated(macs=0.42))

VARIANTS = {"fc_s8": (NARROW, PALETTE)}
