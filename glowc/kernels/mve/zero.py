"""The `mve_zero` variants of conv_s8 and fc_s8: weights with a zero point on Helium (runtime_c/mve/glow_mve_zero.h).

sum (x - zx) * (w - zw) = [bias - zx * sum (w - zw)] - zw * sum x + sum x * w: the first part is a constant of a
channel, the second one number of a pixel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.constants import EMPTY
from glowc.kernels.common.singles import with_singles
from glowc.kernels.common.windows import is_point
from glowc.kernels.mve.layers import stream
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

_NEEDS, _HEADER = frozenset({"mve", "mve-fp"}), "glow_mve_zero.h"
_ROW_COST = 80  # multiply-accumulates that a row of a window costs to collect


def _accepts(instr: Instr) -> bool:
    """Accept int8 layers whose weights have a zero point."""
    return instr.int_("w_zp") != 0 and all(
        instr.operand(role).type.dtype is DType.S8 for role in ("in", "weights", "out")
    )


def _taps(instr: Instr) -> int:
    return instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c")


def accepts_conv(instr: Instr) -> bool:
    """Accept dense convolutions; results of a pair are stored by 16-bit offsets."""
    dense = _accepts(instr) and instr.int_("groups") == 1 and instr.int_("out_c") < 1 << 15
    return dense and (plan(instr)["path"] == "point" or _pays(instr))


def _pays(instr: Instr) -> bool:
    """Say whether the products of a pixel are worth the collection of its inputs row by row."""
    return _taps(instr) * instr.int_("out_c") >= _ROW_COST * (instr.int_("k_h") + 1)


def accepts_fc(instr: Instr) -> bool:
    """Accept layers whose results of two rows are stored by 16-bit offsets."""
    return _accepts(instr) and instr.int_("out_n") < 1 << 15


def plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Tell whether pixels are read in place."""
    return {"path": "point" if is_point(Conv.of(instr)) else "any"}


def scratch_bytes(instr: Instr) -> int:
    """Two pixels of inputs, where they are copied."""
    return 0 if plan(instr)["path"] == "point" else 2 * _taps(instr)


def _pack(constants: Arrays, instr: Instr, outputs: int) -> Arrays:
    """Pack the constants of `outputs` channels."""
    weights = constants["weights"].reshape(outputs, 1, -1)
    in_zp = instr.int_("in_zp")
    bias = constants["bias"].astype(np.int64) + in_zp * instr.int_("w_zp") * weights.shape[2]
    return {"weights": stream(weights, bias, constants["scale"], in_zp), **EMPTY}


CONV = KernelVariant(
    "mve_zero", _NEEDS, rank=20, header=_HEADER, template="{}_zero", accepts=accepts_conv, plan=plan,
    scratch_bytes=scratch_bytes, streams=True, row_block=2,
    pack=lambda constants, instr: _pack(constants, instr, instr.int_("out_c")),
)  # fmt: skip
FC = KernelVariant(
    "mve_zero", _NEEDS, rank=20, header=_HEADER, template="{}_zero", accepts=accepts_fc,
    pack=lambda constants, instr: _pack(constants, instr, instr.int_("out_n")),
)  # fmt: skip
_ROW = replace(
    FC, accepts=lambda instr: instr.int_("rows") == 1 and accepts_fc(instr)
)  # of two the offsets would differ
FC_SINGLE = with_singles(_ROW, "glow_mve_dot_s8", "glow_mve_single.h")

VARIANTS = {
    "conv_s8": (CONV,),
    "fc_s8": (FC, FC_SINGLE),
}
