"""Helium variants of float32 kernels, which read weights as they are (runtime_c/mve/glow_mve_f32.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import Prepared, plan_of
from glowc.kernels.common.attend import by_fours, of_codes
from glowc.kernels.common.recurrent import in_fours
from glowc.kernels.common.windows import is_point
from glowc.kernels.features import Stated
from glowc.kernels.mve.shared import FAST, GROUP, PAIRWISE, accepts_rows, in_blocks, overlap_bytes
from glowc.kernels.shapes import Conv, MatMul
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_HEADER = "glow_mve_f32.h"
_FLOAT = replace(FAST, rank=25, header=_HEADER)
_CODES = replace(FAST, form="codes", rank=26, header="glow_mve_attend_codes.h", stated=Stated(macs=1.2, outputs=20.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatPlan(Plan):
    """`int8_weights`: weights are codes with zero point 0, whose sums are scaled."""

    int8_weights: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatConvPlan(FloatPlan):
    """`direct`: rows of a window are read in place, where it lies inside of the image; `point`: a window is one pixel,
    which is. With `reads_weights_once` some output channels of all pixels are computed before the next ones, where no
    output lies over an input.
    """

    direct: bool
    point: bool
    reads_weights_once: bool = False


def _weight_kind(instr: Instr) -> DType:
    return instr.operand("weights").type.dtype


def _has_weights(instr: Instr) -> bool:
    """Say whether the weights are float32, or int8 with zero point 0."""
    kind = _weight_kind(instr)
    return kind is DType.F32 or (kind is DType.S8 and instr.int_("w_zp") == 0)


def _are_floats(instr: Instr, *roles: str) -> bool:
    return all(instr.operand(role).type.dtype is DType.F32 for role in roles)


def accepts_conv(instr: Instr) -> bool:
    """Accept one group of float32 with four outputs or more."""
    shape = Conv.of(instr)
    return _are_floats(instr, "in", "out") and shape.groups == 1 and _has_weights(instr) and shape.out_c >= GROUP


def conv_scratch(instr: Instr) -> int:
    """Bytes of four windows, where they are not pixels of the image."""
    return 0 if plan_of(instr, FloatConvPlan).point else 16 * Conv.of(instr).inputs


def prepare_conv(_: Arrays, instr: Instr) -> Prepared:
    """Return whether the rows of a window can be read in place, and by how many channels."""
    shape, kind = Conv.of(instr), _weight_kind(instr)
    dense = shape.in_ch == 1 and shape.in_col == shape.in_c
    direct = dense and (shape.dil_w == 1 or shape.k_w == 1)
    once = direct and in_blocks(GROUP * shape.inputs * kind.bytes, shape.out_c, shape.out_h * shape.out_w // 2)
    plan = FloatConvPlan(int8_weights=kind is DType.S8, direct=direct, point=is_point(shape), reads_weights_once=once)
    return Prepared(plan=plan)


def prepare_fc(_: Arrays, instr: Instr) -> Prepared:
    """Return what the weights are."""
    return Prepared(plan=FloatPlan(int8_weights=_weight_kind(instr) is DType.S8))


def accepts_depthwise(instr: Instr) -> bool:
    """Accept one output channel per input channel, channels adjacent."""
    shape = Conv.of(instr)
    same = shape.in_c == shape.out_c == shape.groups
    return _are_floats(instr, "in", "weights", "out") and same and shape.in_ch == 1


def accepts_fc(instr: Instr) -> bool:
    """Accept four outputs or more."""
    return _are_floats(instr, "in", "out") and _has_weights(instr) and instr.int_("out_n") >= GROUP


def accepts_matmul(instr: Instr) -> bool:
    """Accept adjacent columns on the left."""
    shape = MatMul.of(instr)
    return _are_floats(instr, "a", "b", "out") and (shape.a_col == 1 or shape.k == 1)


def accepts_binary(instr: Instr) -> bool:
    """Accept sums, differences and products of adjacent elements, of which rows may be repeated."""
    return instr.params["op"] in ("add", "sub", "mul") and _are_floats(instr, "a", "b", "out") and accepts_rows(instr)


def accepts_pool(instr: Instr) -> bool:
    """Accept adjacent channels."""
    return instr.int_("in_ch") == 1


_POOL = replace(_FLOAT, accepts=accepts_pool)
_CONV = replace(
    _FLOAT, accepts=accepts_conv, scratch_bytes=conv_scratch, prepare=prepare_conv, overlap_bytes=overlap_bytes
)
_FC = replace(_FLOAT, accepts=accepts_fc, prepare=prepare_fc)
_RECURRENT = in_fours(replace(_FLOAT, header="glow_mve_four.h"), "glow_mve_four", 0.8)

VARIANTS = {
    "attend_f32": (by_fours(_FLOAT, "mve"), of_codes(_CODES, "mve_attend", 8)),
    "avg_pool_f32": (_POOL,),
    "binary": (replace(PAIRWISE, rank=25, accepts=accepts_binary, header=_HEADER),),
    "conv_f32": (_CONV,),
    "conv_f32w8": (_CONV,),
    "dwconv_f32": (replace(_FLOAT, accepts=accepts_depthwise),),
    "fc_f32": (_FC,),
    "fc_f32w8": (_FC,),
    "matmul_f32": (replace(_FLOAT, accepts=accepts_matmul),),
    "max_pool_f32": (_POOL,),
    **{kernel: (variant,) for kernel, variant in _RECURRENT.items()},
}
