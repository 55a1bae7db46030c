"""Products of int8 codes with wide vectors (runtime_c/wide/glow_wide_codes.h): convolutions, fully connected layers.

Windows become bytes in scratch, a group of pixels at a time; the weights of sixteen outputs then go over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, plan_of
from glowc.kernels.common.constants import WEIGHTED, accepts_codes, padded
from glowc.kernels.common.factors import FIXED, Ends
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.features import Stated
from glowc.kernels.shapes import Conv, FullyConnected, MatMul
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

HEADER = "glow_wide.h"
X86 = frozenset({"x86"})
"""What a CPU has where kernels have no level for Arm."""
LANES = 16  # outputs of a block
_STEP = 4  # inputs of an output that are multiplied at once
_MATRIX = 8  # the same of products of matrices
_FLIP = 128  # a byte is a code and this
_TILE = 8  # pixels that stay in registers
_VECTOR = 16  # bytes of inputs that are read at once
_GROUP_BYTES = 32768


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan(Plan):
    """`group` pixels are gathered before weights go over them; `shifted`: weights have a zero point; `fixed`: there are
    multipliers and shifts in place of scales."""

    numbers: ClassVar[tuple[str, ...]] = ("group",)
    group: int
    shifted: bool
    fixed: bool = False

    @property
    def declared(self) -> str:
        """The variable that holds what is added to all sums of a pixel."""
        return "  int32_t starts[GLOW_WIDE_GROUP];\n" if self.shifted else ""

    def start(self, at: str, count: str, in_zp: str, w_zp: str) -> str:
        """Return the line that sets it for the pixel of `count` bytes that was gathered last."""
        return f"starts[count] = glow_wide_start({at}, {count}, {in_zp}, {w_zp});\n" if self.shifted else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan(GroupPlan):
    """A pixel has `pitch` bytes, of which a product takes `grain` of each output; `widens`: after the bytes of a
    group there is room for them as words."""

    numbers: ClassVar[tuple[str, ...]] = ("group", "pitch")
    pitch: int
    grain: int
    widens: bool


def group_of(pitch: int, pixels: int) -> int:
    """Return the pixels of a group, whole tiles; of one alone two may be read."""
    most = min(header_number(HEADER, "GLOW_WIDE_GROUP"), _GROUP_BYTES // pitch // _TILE * _TILE)
    return 2 if pixels == 1 else min(padded(pixels, _TILE), max(_TILE, most))


def _accepts_conv(instr: Instr) -> bool:
    return accepts_codes(instr) and instr.int_("groups") == 1


def heads(bias: np.ndarray, ends: Ends) -> np.ndarray:
    """Return the heads of streams, int8[blocks, 128 or 192]: biases and ends of sixteen outputs."""
    rows = [bias.astype(np.int32), ends.words, *([] if ends.shifts is None else [ends.shifts.astype(np.int32)])]
    words = np.zeros((len(rows), padded(len(bias), LANES)), np.int32)
    words[:, : len(bias)] = rows
    blocks = np.ascontiguousarray(words.reshape(len(rows), -1, LANES).transpose(1, 0, 2))
    return blocks.view(np.int8).reshape(len(blocks), -1)


def stream(weights: np.ndarray, constants: Arrays, instr: Instr, grain: int) -> np.ndarray:
    """Return the stream of int8 weights[O, K]: of each sixteen outputs biases, ends and steps of `grain` inputs."""
    out_n, inputs = weights.shape
    ends, sums = Ends.of(constants, out_n), weights.sum(axis=1, dtype=np.int64)
    bias = constants["bias"].astype(np.int64) - (instr.int_("in_zp") + _FLIP) * sums
    steps, blocks = padded(inputs, grain) // grain, padded(out_n, LANES) // LANES
    taps = np.zeros((blocks * LANES, steps * grain), np.int8)
    taps[:out_n, :inputs] = weights
    parts = taps.reshape(blocks, LANES, steps, grain).transpose(0, 2, 1, 3).reshape(blocks, -1)
    return np.concatenate([heads(bias, ends), parts], axis=1).reshape(-1)


def _prepared(constants: Arrays, instr: Instr, shape: tuple[int, int], pixels: int, grain: int) -> Prepared:
    weights = constants["weights"].reshape(shape)
    packed = {"weights": stream(weights, constants, instr, grain), **Ends.of(constants, shape[0]).empty}
    pitch = padded(shape[1], grain)
    plan = LayerPlan(
        group=group_of(pitch, pixels), pitch=pitch, grain=grain,
        shifted=instr.int_("w_zp") != 0, fixed="mul" in constants, widens=grain == _STEP,
    )  # fmt: skip
    return Prepared(packed, plan)


def _prepare_conv(constants: Arrays, instr: Instr, grain: int) -> Prepared:
    s = Conv.of(instr)
    return _prepared(constants, instr, (s.out_c, s.inputs), s.out_h * s.out_w, grain)


def _prepare_fc(constants: Arrays, instr: Instr, grain: int) -> Prepared:
    s = FullyConnected.of(instr)
    return _prepared(constants, instr, (s.out_n, s.in_k), 1, grain)


def _conv_bytes(instr: Instr) -> int:
    """Bytes: the same, and the columns of a row that the windows of a group have."""
    s, group = Conv.of(instr), plan_of(instr, LayerPlan).group
    return _scratch_bytes(instr) + ((group - 1) * s.stride_w + (s.k_w - 1) * s.dil_w + 1) * s.in_c


def _accepts_matmul(instr: Instr) -> bool:
    """Accept products of several rows: for one the right matrix would be read once more than it is now."""
    s = MatMul.of(instr)
    codes = all(instr.operand(role).type.dtype is DType.S8 for role in ("a", "b", "out"))
    return codes and s.out_col == 1 and s.m >= _TILE // 2


def _prepare_matmul(_: Arrays, instr: Instr) -> Prepared:
    s = MatMul.of(instr)
    return Prepared(plan=GroupPlan(group=group_of(padded(s.k, _STEP), s.m), shifted=instr.int_("b_zp") != 0))


def _matmul_bytes(instr: Instr) -> int:
    """Bytes: the stream of the right matrix, a group of rows of the left one and their words."""
    s, plan = MatMul.of(instr), plan_of(instr, GroupPlan)
    pitch = padded(s.k, _STEP)
    return padded(s.n, LANES) // LANES * (8 * LANES + LANES * pitch) + 3 * (plan.group * pitch + _VECTOR)


def _scratch_bytes(instr: Instr) -> int:
    """Bytes: a group of pixels, and their words; vectors may read or write after the last."""
    plan = plan_of(instr, LayerPlan)
    return (3 if plan.widens else 1) * (plan.group * plan.pitch + _VECTOR)


_CONV = KernelVariant(
    "wide", rank=40, header="glow_wide_codes.h", packs=WEIGHTED, scratch_bytes=_conv_bytes, accepts=_accepts_conv,
    prepare=partial(_prepare_conv, grain=_STEP), rows_in_order=False, stated=Stated(macs=0.1, outputs=3.0),
)  # fmt: skip
_FC = replace(
    _CONV, scratch_bytes=_scratch_bytes, accepts=accepts_codes, prepare=partial(_prepare_fc, grain=_STEP),
    rows_in_order=True,
)  # fmt: skip
_MATMUL = replace(
    _FC, header="glow_wide_columns.h", packs=frozenset(), scratch_bytes=_matmul_bytes, accepts=_accepts_matmul,
    prepare=_prepare_matmul,
)  # fmt: skip


def _both(plain: KernelVariant, prepare_sve: Callable[[Arrays, Instr], Prepared]) -> tuple[KernelVariant, ...]:
    return replace(plain, also=X86), replace(plain, isa="sve2", prepare=prepare_sve)


_CONVS = _both(_CONV, partial(_prepare_conv, grain=_MATRIX))
_FCS = _both(_FC, partial(_prepare_fc, grain=_MATRIX))

VARIANTS = {
    "conv_s8": _CONVS,
    "conv_s8q31": tuple(replace(v, packs=FIXED, template="conv_s8") for v in _CONVS),
    "fc_s8": _FCS,
    "fc_s8q31": tuple(replace(v, packs=FIXED, template="fc_s8") for v in _FCS),
    "matmul_s8": (replace(_MATMUL, also=X86),),
}
