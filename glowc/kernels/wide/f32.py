"""Layers and products of float32 on x86-64 (runtime_c/wide/glow_wide_f32.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, no_scratch, plan_of
from glowc.kernels.common.constants import padded
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.windows import is_point
from glowc.kernels.features import Stated
from glowc.kernels.shapes import Conv, FullyConnected, MatMul
from glowc.kernels.wide.codes import HEADER, LANES, X86
from glowc.kernels.wide.depthwise import TapsPlan, is_depthwise, outside, room_of
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_CODED = frozenset({"weights", "bias", "scale"})
_PACKS = _CODED - {"scale"}
_TILE = 6  # pixels that stay in registers
_GROUP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatPlan(Plan):
    """`group` pixels are gathered before weights go over them; `path`: point, or windows in scratch."""

    numbers: ClassVar[tuple[str, ...]] = ("group",)
    group: int


def _is_f32(instr: Instr, *roles: str) -> bool:
    return all(instr.operand(role).type.dtype is DType.F32 for role in roles)


def _group(pixels: int, pixel_bytes: int = 1) -> int:
    """Return the pixels of a group, with so many bytes each in scratch: groups of about as many, or whole tiles."""
    most = min(header_number(HEADER, "GLOW_WIDE_GROUP"), _GROUP_BYTES // pixel_bytes) // _TILE * _TILE
    groups = -(-pixels // max(_TILE, most))
    return min(padded(-(-pixels // groups), _TILE), pixels)


def _stream(weights: np.ndarray, constants: Arrays, instr: Instr) -> Arrays:
    """Return weights[K, O] and biases as the stream of each sixteen outputs; of codes those that they stand for."""
    bias, real = constants["bias"], weights
    if "scale" in constants:
        real = (weights.astype(np.float32) - np.float32(instr.int_("w_zp"))) * constants["scale"].reshape(1, -1)
    rows = np.zeros((len(real) + 1, padded(len(bias), LANES)), np.float32)
    rows[0, : len(bias)], rows[1:, : len(bias)] = bias, real
    stream = rows.reshape(len(rows), -1, LANES).transpose(1, 0, 2)
    unread = {role: np.zeros(1, np.float32) for role in ("bias", "scale") if role in constants}
    return {"weights": np.ascontiguousarray(stream).reshape(-1), **unread}


def _accepts_weights(instr: Instr) -> bool:
    """Accept weights of float32 or int8."""
    return _is_f32(instr, "in", "out") and instr.operand("weights").type.dtype in (DType.F32, DType.S8)


def _accepts_conv(instr: Instr) -> bool:
    return _accepts_weights(instr) and instr.int_("groups") == 1


def _prepare_conv(constants: Arrays, instr: Instr) -> Prepared:
    s = Conv.of(instr)
    path, gathered = ("point", 1) if is_point(s) else ("windows", 4 * s.inputs)
    plan = FloatPlan(path=path, group=_group(s.out_h * s.out_w, gathered))
    return Prepared(_stream(constants["weights"].reshape(s.out_c, -1).T, constants, instr), plan)


def _conv_bytes(instr: Instr) -> int:
    plan = plan_of(instr, FloatPlan)
    return 0 if plan.path == "point" else 4 * plan.group * Conv.of(instr).inputs


def _prepare_fc(constants: Arrays, instr: Instr) -> Prepared:
    s = FullyConnected.of(instr)
    plan = FloatPlan(group=1)
    return Prepared(_stream(constants["weights"].reshape(s.out_n, s.in_k).T, constants, instr), plan)


def _accepts_depthwise(instr: Instr) -> bool:
    return _accepts_weights(instr) and is_depthwise(instr)


def _prepare_depthwise(constants: Arrays, instr: Instr) -> Prepared:
    s = Conv.of(instr)
    return Prepared(_stream(constants["weights"].reshape(s.taps, s.out_c), constants, instr), TapsPlan(taps=room_of(s)))


def _accepts_matmul(instr: Instr) -> bool:
    """Accept products of several rows: for one the right matrix would be read once more than it is now."""
    s = MatMul.of(instr)
    return _is_f32(instr, "a", "b", "bias", "out") and s.a_col == s.out_col == 1 and s.m >= _TILE


def _prepare_matmul(_: Arrays, instr: Instr) -> Prepared:
    s = MatMul.of(instr)
    return Prepared(plan=FloatPlan(group=_group(s.m)))


def _matmul_bytes(instr: Instr) -> int:
    s = MatMul.of(instr)
    return 4 * (s.k + 1) * padded(s.n, LANES)


_CONV = KernelVariant(
    "wide", rank=10, also=X86, header="glow_wide_f32.h", packs=_PACKS, accepts=_accepts_conv, prepare=_prepare_conv,
    scratch_bytes=_conv_bytes, rows_in_order=False, stated=Stated(macs=0.2, outputs=3.0),
)  # fmt: skip
_DEPTHWISE = replace(
    _CONV, accepts=_accepts_depthwise, prepare=_prepare_depthwise, scratch_bytes=lambda instr: 4 * outside(instr)
)
_FC = replace(
    _CONV, accepts=_accepts_weights, prepare=_prepare_fc, scratch_bytes=no_scratch, rows_in_order=True
)  # fmt: skip
_MATMUL = replace(_FC, packs=frozenset(), accepts=_accepts_matmul, prepare=_prepare_matmul, scratch_bytes=_matmul_bytes)
_LAYERS = {"conv_f32": _CONV, "dwconv_f32": _DEPTHWISE, "fc_f32": _FC}

VARIANTS = {
    **{kernel: (variant,) for kernel, variant in _LAYERS.items()},
    **{f"{kernel}w8": (replace(v, packs=_CODED, template=f"{kernel}"),) for kernel, v in _LAYERS.items()},
    "matmul_f32": (_MATMUL,),
}
