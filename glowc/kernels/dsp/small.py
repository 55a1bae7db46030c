"""The `dsps` variant of dwconv_s8: little code where the `dsp` one prints tiles; constants as those of `ref`."""

from __future__ import annotations

from collections.abc import Mapping

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.dsp.layers import NEEDS
from glowc.program.ir import Instr, ParamValue

_GROUP = 4  # channels of a word


def accepts(instr: Instr) -> bool:
    """Accept int8, one output channel per input channel, at least four adjacent channels."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    p = {key: int(value) for key, value in instr.params.items() if not isinstance(value, str)}
    alike = p["in_c"] == p["out_c"] == p["groups"] >= _GROUP and p["in_ch"] == 1
    return alike and p["k_h"] <= header_number("glow_dsp_small.h", "GLOW_DSP_SMALL_ROWS")


def plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Tell whether the weights have a zero point."""
    return {"offset": int(instr.params["w_zp"] != 0)}


DEPTHWISE = KernelVariant(
    "dsps", NEEDS, rank=7, header="glow_dsp_small.h", template="{}_small", accepts=accepts, plan=plan
)

VARIANTS = {
    "dwconv_s8": (DEPTHWISE,),
}
