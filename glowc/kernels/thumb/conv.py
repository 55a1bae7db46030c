"""conv_s8*, conv_s16rs for cores without SIMD: four pixels at a time, two of them in a word of scratch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, Reads, plan_of
from glowc.kernels.common.constants import SHIFTED, WEIGHTED
from glowc.kernels.common.windows import is_point
from glowc.kernels.records import plain_records
from glowc.kernels.shapes import Conv
from glowc.kernels.thumb.fold import accepts_matrix, fold, fold_fixed, fold_shift, has_large
from glowc.kernels.thumb.forms import HEADER, both, fixed
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_WIDE_BYTES = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPlan(Plan):
    """How pixels are read: `point` in place; a row of a window is `dense` (0 or 1); channels are planes, `planar`.

    `shifts`: the layer ends in a multiplication and a shift, where `fixed` those of TensorFlow Lite; `wide`: inputs of
    16 bits, a pixel in a word. `large`: some scales are 1/4 or more.
    """

    point: bool = False
    dense: int = 0
    planar: bool = False
    shifts: bool = False
    fixed: bool = False
    wide: bool = False
    large: bool = False

    @property
    def cost_path(self) -> str:
        """Points have costs of their own."""
        return f"point{int(self.point)}"


def weights_of(constants: Arrays, instr: Instr) -> np.ndarray:
    """Return the weights as [outputs, rows, columns, channels]."""
    shape = Conv.of(instr)
    return constants["weights"].reshape(shape.out_c, shape.k_h, shape.k_w, shape.in_c)


def _order(weights: np.ndarray, shape: Conv) -> Arrays:
    """Return the `weights` of a planar input in the order kernel row, channel, column."""
    return {"weights": np.ascontiguousarray(weights.transpose(0, 1, 3, 2))} if shape.in_ch != 1 else {}


def _plan(instr: Instr, *, shifts: bool) -> ConvPlan:
    shape = Conv.of(instr)
    if is_point(shape):
        return ConvPlan(point=True, shifts=shifts)
    planar = shape.in_ch != 1
    dense = shape.in_col == (1 if planar else shape.in_c) and shape.dil_w == 1
    return ConvPlan(dense=int(dense), planar=planar, shifts=shifts)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Fold the zero point into the bias; weights of a planar input stand in the order kernel row, channel, column."""
    weights = weights_of(constants, instr)
    bias = fold(weights.reshape(len(weights), -1), constants, instr)
    plan = replace(_plan(instr, shifts=False), large=has_large(constants, {}, len(weights)))
    return Prepared({"bias": bias, **_order(weights, Conv.of(instr))}, plan)


def prepare_shift(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of conv_s8rs."""
    weights = weights_of(constants, instr)
    folded = fold_shift(weights.reshape(len(weights), -1), constants, instr)
    return Prepared({**folded, **_order(weights, Conv.of(instr))}, _plan(instr, shifts=True))


def prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of conv_s8q31."""
    weights = weights_of(constants, instr)
    folded = fold_fixed(weights.reshape(len(weights), -1), constants, instr)
    plan = replace(_plan(instr, shifts=True), fixed=True)
    return Prepared({**folded, **_order(weights, Conv.of(instr))}, plan)


def prepare_wide(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of conv_s16rs."""
    plan = ConvPlan(planar=Conv.of(instr).in_ch != 1, shifts=True, wide=True)
    return Prepared(prepare_shift(constants, instr).constants, plan)


def scratch(instr: Instr) -> int:
    """Two words per tap for four pixels, and one run of zero points."""
    shape = Conv.of(instr)
    return 8 * shape.inputs + (0 if plan_of(instr, ConvPlan).point else shape.in_c)


def _accepts_wide(instr: Instr) -> bool:
    """Accept int16 inputs without groups, weights without zero point, and windows of which the scratch is small."""
    kinds = tuple(instr.operand(role).type.dtype for role in ("in", "weights", "out"))
    plain = instr.int_("groups") == 1 and instr.int_("w_zp") == 0
    return kinds == (DType.S16, DType.S8, DType.S8) and plain and _wide_scratch(instr) <= _WIDE_BYTES


def _wide_scratch(instr: Instr) -> int:
    """Four words per tap."""
    return 16 * Conv.of(instr).inputs


CONV = both(
    KernelVariant("v7m", rank=5, header=HEADER, accepts=accepts_matrix, prepare=prepare, packs=WEIGHTED,
                  scratch_bytes=scratch, streams=True, row_block=4, reads=Reads(at_once=1, value_bytes=2),
                  records=plain_records)
)  # fmt: skip
CONV_SHIFT = tuple(replace(variant, prepare=prepare_shift, packs=SHIFTED) for variant in CONV)
CONV_FIXED = fixed(replace(variant, prepare=prepare_fixed) for variant in CONV)
CONV_WIDE = replace(
    CONV_SHIFT[0], header="glow_thumb_wide.h", accepts=_accepts_wide, prepare=prepare_wide, scratch_bytes=_wide_scratch
)

VARIANTS = {
    "conv_s16rs": (CONV_WIDE,),
    "conv_s8": CONV,
    "conv_s8q31": CONV_FIXED,
    "conv_s8rs": CONV_SHIFT,
}
