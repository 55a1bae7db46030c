"""The forms `zero` of conv_s8 and fc_s8: weights with a zero point on Helium (runtime_c/mve/glow_mve_zero.h).

sum (x - zx) * (w - zw) = [bias - zx * sum (w - zw)] - zw * sum x + sum x * w: the first part is a constant of a
channel, the second one number of a pixel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import Prepared, plan_of
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.factors import Ends, with_factors
from glowc.kernels.common.singles import OutputsPlan, with_singles
from glowc.kernels.common.windows import is_point
from glowc.kernels.mve.dot_tile import Zero
from glowc.kernels.mve.shared import FAST, GROUP, has_codes, in_blocks, overlap_bytes
from glowc.kernels.mve.stream import end_bytes, stream
from glowc.kernels.shapes import Conv, FullyConnected
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_ROW_COST = 80  # multiply-accumulates that a row of a window costs to collect


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroConvPlan(Plan):
    """Where a pixel's inputs are: in place (path "point"), or in the scratch, of two pixels together ("any").

    `fixed`: codes end in a multiplier and a shift. With `reads_weights_once` some output channels of all pixels in
    place are computed before the next ones, where no output lies over an input.
    """

    fixed: bool
    reads_weights_once: bool = False

    @property
    def ends_bytes(self) -> int:
        """The bytes of biases and ends of four channels."""
        return _ends_bytes(fixed=self.fixed)

    @property
    def zeros(self) -> tuple[Zero, Zero]:
        """The functions for two pixels and for one."""
        return _zeros(fixed=self.fixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroPlan(OutputsPlan):
    """`fixed`: codes end in a multiplier and a shift."""

    fixed: bool

    @property
    def ends_bytes(self) -> int:
        """The bytes of biases and ends of four outputs."""
        return _ends_bytes(fixed=self.fixed)

    @property
    def zeros(self) -> tuple[Zero, Zero]:
        """The functions for two rows and for one."""
        return _zeros(fixed=self.fixed)


def _ends_bytes(*, fixed: bool) -> int:
    return end_bytes("fixed" if fixed else "scaled")


def _zeros(*, fixed: bool) -> tuple[Zero, Zero]:
    end = "fixed" if fixed else "scaled"
    return Zero(2, end), Zero(1, end)


def _accepts(instr: Instr) -> bool:
    """Accept int8 layers whose weights have a zero point."""
    return instr.int_("w_zp") != 0 and has_codes(instr)


def accepts_conv(instr: Instr) -> bool:
    """Accept dense convolutions; results of a pair are stored by 16-bit offsets."""
    shape = Conv.of(instr)
    dense = _accepts(instr) and shape.groups == 1 and shape.out_c < 1 << 15
    return dense and (is_point(shape) or _pays(shape))


def _pays(shape: Conv) -> bool:
    """Say whether the products of a pixel are worth the collection of its inputs row by row."""
    return shape.inputs * shape.out_c >= _ROW_COST * (shape.k_h + 1)


def scratch_bytes(instr: Instr) -> int:
    """Two pixels of inputs, where they are copied."""
    return 2 * Conv.of(instr).inputs if plan_of(instr, ZeroConvPlan).path == "any" else 0


def prepare_conv(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants, and whether pixels are read in place."""
    shape, fixed = Conv.of(instr), "mul" in constants
    group_bytes, point = GROUP * shape.inputs + _ends_bytes(fixed=fixed), is_point(shape)
    once = point and in_blocks(group_bytes, shape.out_c, shape.out_h * shape.out_w)
    plan = ZeroConvPlan(path="point" if point else "any", fixed=fixed, reads_weights_once=once)
    return Prepared(_packed(constants, instr, shape.out_c), plan)


def prepare_fc(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants."""
    plan = ZeroPlan(fixed="mul" in constants)
    return Prepared(_packed(constants, instr, FullyConnected.of(instr).out_n), plan)


def _packed(constants: Arrays, instr: Instr, outputs: int) -> Arrays:
    """Return the stream of `outputs` channels."""
    weights = constants["weights"].reshape(outputs, 1, -1)
    in_zp = instr.int_("in_zp")
    bias = constants["bias"].astype(np.int64) + in_zp * instr.int_("w_zp") * weights.shape[2]
    ends = Ends.of(constants, outputs)
    return {"weights": stream(weights, bias, ends, in_zp), **ends.empty}


FC = replace(
    FAST, form="zero", header="glow_mve_zero.h", template="{}_zero",
    accepts=_accepts, prepare=prepare_fc, packs=WEIGHTED,
)  # fmt: skip
CONV = replace(
    FC, accepts=accepts_conv, prepare=prepare_conv, scratch_bytes=scratch_bytes, streams=True, row_block=2,
    overlap_bytes=overlap_bytes,
)  # fmt: skip
FC_SINGLE = with_singles(FC, "glow_mve_dot_s8", "glow_mve_single.h")

VARIANTS = {
    "conv_s8": (CONV,),
    "conv_s8q31": (with_factors(CONV, "glow_mve_zero.h"),),
    "fc_s8": (FC, FC_SINGLE),
    "fc_s8q31": (with_factors(FC, "glow_mve_zero.h"),),
}
