"""Depthwise convolutions of int8 codes on x86-64, two taps of sixteen channels at a time (glow_wide_depth.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.constants import WEIGHTED, accepts_codes, padded
from glowc.kernels.common.factors import FIXED, Ends
from glowc.kernels.features import Stated
from glowc.kernels.shapes import Conv
from glowc.kernels.wide.codes import LANES, X86, heads
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class TapsPlan(Plan):
    """There is room for `taps` of a pixel; `fixed`: there are multipliers and shifts in place of scales."""

    taps: int
    fixed: bool = False


def room_of(s: Conv) -> int:
    """Return how many taps there is room for: those of a window and one, few numbers for all."""
    return padded(s.taps + 1, 16)


def outside(instr: Instr) -> int:
    """Return the elements of four pixels outside of the input."""
    return 3 * instr.int_("stride_w") * instr.int_("in_col") + instr.int_("in_c")


def is_depthwise(instr: Instr) -> bool:
    """Say whether a layer has one output a channel, and adjacent channels."""
    s = Conv.of(instr)
    return s.groups == s.out_c == s.in_c and s.in_ch == 1


def _accepts(instr: Instr) -> bool:
    return accepts_codes(instr) and is_depthwise(instr)


def _prepare(constants: Arrays, instr: Instr) -> Prepared:
    s = Conv.of(instr)
    blocks, pairs = padded(s.out_c, LANES) // LANES, padded(s.taps, 2) // 2
    weights = np.zeros((2 * pairs, blocks * LANES), np.int16)
    weights[: s.taps, : s.out_c] = constants["weights"].reshape(s.taps, s.out_c).astype(np.int16) - instr.int_("w_zp")
    bias = constants["bias"].astype(np.int64) - instr.int_("in_zp") * weights.sum(axis=0, dtype=np.int64)[: s.out_c]
    taps = weights.reshape(pairs, 2, blocks, LANES).transpose(2, 0, 3, 1).reshape(blocks, -1)
    ends = Ends.of(constants, s.out_c)
    data = np.concatenate([heads(bias, ends), np.ascontiguousarray(taps).view(np.int8)], axis=1)
    return Prepared({"weights": data.reshape(-1), **ends.empty}, TapsPlan(taps=room_of(s), fixed="mul" in constants))


_VARIANT = KernelVariant(
    "wide", rank=10, also=X86, header="glow_wide_depth.h", packs=WEIGHTED, accepts=_accepts, prepare=_prepare,
    scratch_bytes=outside, rows_in_order=False, stated=Stated(macs=0.5, outputs=3.0),
)  # fmt: skip

VARIANTS = {
    "dwconv_s8": (_VARIANT,),
    "dwconv_s8q31": (replace(_VARIANT, packs=FIXED, template="dwconv_s8"),),
}
