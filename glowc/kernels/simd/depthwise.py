"""dwconv_s8 of windows that stay in registers, one output an input channel, on A64 and A32.

Weights lie by tap, the input's zero point is in the biases, a single scale is repeated for every channel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.constants import WEIGHTED, LayerPlan, accepts_codes
from glowc.kernels.common.factors import Ends
from glowc.kernels.common.sums import shifted
from glowc.kernels.common.windows import planar
from glowc.kernels.shapes import Conv
from glowc.kernels.simd.columns_block import ColumnsBlock, DotBlock, WindowBlock
from glowc.kernels.simd.conv import HEADER
from glowc.kernels.simd.core import both
from glowc.kernels.simd.ending import Ending
from glowc.kernels.simd.stream import ending_of, folded, has_pairs
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class _Windows(ColumnsBlock, LayerPlan):
    """Windows of `k_h` x `k_w` taps with a `stride`. `pairs`: two products fit 16 bits.

    `shifted`: the weights have a zero point, the shifts of their codes are after them, in 16 bits. `narrow`: there are
    fewer than 16 channels.
    """

    isa: str
    k_h: int
    k_w: int
    stride: int
    ending: Ending
    pairs: bool
    shifted: bool
    narrow: bool

    @property
    def cost_kind(self) -> str:
        """What costs are filed under: how products are added."""
        return "s8" if self.pairs else "u8"


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwisePlan(WindowBlock, _Windows):
    """Of dwconv_s8.c.j2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DotPlan(DotBlock, _Windows):
    """Of dwconv_s8_dot.c.j2."""


def _accepts(instr: Instr) -> bool:
    """Accept at least eight channels of int8, one output an input channel."""
    s = Conv.of(instr)
    same = s.groups == s.out_c == s.in_c >= 8
    return accepts_codes(instr) and same and s.in_ch == 1 and s.in_col == s.in_c


def _accepts_nine(instr: Instr) -> bool:
    """Accept windows of at most nine taps: they stay in registers; depthwise_taps.py takes the larger ones."""
    s = Conv.of(instr)
    return _accepts(instr) and s.taps <= 9 and s.dil_w == 1 and s.stride_w <= s.k_w


def _accepts_dot(instr: Instr) -> bool:
    """Accept windows of at most four rows and three columns: their weights and inputs stay in registers."""
    s = Conv.of(instr)
    small = s.k_h in (2, 3, 4) and s.k_w in (2, 3) and s.stride_w <= s.k_w
    return _accepts(instr) and small and s.dil_w == 1 and instr.int_("w_zp") == 0


def _prepare(isa: str, constants: Arrays, instr: Instr) -> Prepared:
    kind = DotPlan if isa == "dot" else DepthwisePlan
    s, values, zero = Conv.of(instr), constants["weights"], instr.int_("w_zp")
    codes, shift = shifted(values.reshape(-1, s.out_c).T, zero)
    weights, pairs = codes + shift[:, None], has_pairs(codes)
    bias, ends = folded(weights, constants, instr.int_("in_zp")), Ends.of(constants, s.out_c)
    if zero != 0:
        values = np.concatenate((codes.T.reshape(-1), shift.astype(np.int16).view(np.int8)))
    ending = ending_of(weights, bias, ends, instr)
    arrays = {"weights": values, "bias": bias, **ends.constants}
    plan = kind(
        isa=isa, k_h=s.k_h, k_w=s.k_w, stride=s.stride_w, ending=ending, pairs=pairs, shifted=zero != 0,
        narrow=s.out_c < 16, scales="mul" if ending.fixed else "scale",
    )  # fmt: skip
    return Prepared(arrays, plan)


def _prepare_dot(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare as `_prepare`, the weights as [k_w, channels, k_h]: a column's rows are adjacent."""
    s, prepared = Conv.of(instr), _prepare("dot", constants, instr)
    columns = prepared.constants["weights"].reshape(s.k_h, s.k_w, s.out_c).transpose(1, 2, 0)
    return replace(prepared, constants={**prepared.constants, "weights": np.ascontiguousarray(columns).reshape(-1)})


def _variant(isa: str, header: str = HEADER) -> KernelVariant:
    return KernelVariant(
        isa, rank=30, accepts=_accepts_nine, header=header, packs=WEIGHTED,
        prepare=lambda constants, instr: _prepare(isa, constants, instr),
    )  # fmt: skip


A32 = _variant("a32", "glow_a32.h")
A64 = _variant("a64")
DOT = KernelVariant(
    "dot", rank=31, accepts=_accepts_dot, header=HEADER, template="{}_dot",
    packs=WEIGHTED, prepare=_prepare_dot,
)  # fmt: skip

VARIANTS = {"dwconv_s8": (A32, A64, DOT, *both(planar("a64")))}
