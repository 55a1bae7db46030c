"""conv_s8 on A64 and A32 for windows of few inputs: constants, paths and scratch of conv_s8_lane.c.j2.

A block is `pixels` x 8 outputs, an input is one lane of a vector (glow_a64_lane.h, glow_a32_lane.h). A block
of outputs is one stream: biases with the input's zero point folded in, scales, then 8 weights of 16 bits for each
input (of 8 bits for points, if they have no zero point); `dot`: for each four inputs, four bytes of each output, where
a pixel of an image is padded to four channels. Weights of 16 bits hold any difference to their zero point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared, plan_of
from glowc.kernels.common.constants import WEIGHTED, padded
from glowc.kernels.common.factors import Ends
from glowc.kernels.shapes import Conv
from glowc.kernels.simd.conv import accepts, is_dense_point, is_spread, path_of, row_slots
from glowc.kernels.simd.core import CORES
from glowc.kernels.simd.ending import Ending
from glowc.kernels.simd.lane_block import LaneBlock
from glowc.kernels.simd.stream import blocks, ending_of, folded, stream
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

OUTPUTS = 8
PIXELS = {"a32": 4, "a64": 8, "dot": 8}
POINT_INPUTS = {"a32": 48, "a64": 24, "dot": 0}  # beyond, products of two inputs in 16 bits are fewer instructions
WINDOW_INPUTS = 160
RUN = 40
_DOT_REGISTERS = 6
_SPARE = 16  # bytes that the last vector of a row may read after its last window


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePlan(LaneBlock, Plan):
    """What the template prints by.

    `path`: lane-point, pixels of the tensor itself, or lane-rows, windows of padded rows. `partial`: there are fewer
    than 8 outputs. lane-point: `rest` inputs after whole eights; `adjacent`: the pixels of a block have 8 inputs each
    and lie side by side; `short`: weights of 8 bits. lane-rows: windows of `k_h` x `k_w` with a `stride`, `run` inputs
    of a row of a window, `slots` padded rows, `spare` bytes after each.
    """

    isa: str
    pixels: int
    partial: bool
    ending: Ending
    pairs: bool = False
    rest: int = 0
    adjacent: bool = False
    short: bool = False
    k_h: int = 0
    k_w: int = 0
    stride: int = 0
    slots: int = 0
    run: int = 0
    spare: int = 0

    outputs, grain = OUTPUTS, 1


def _suits_windows(isa: str, s: Conv) -> bool:
    """Say whether padded rows suit: what conv.py would copy window by window, and not too much of it."""
    if path_of("a32" if CORES[isa].a32 else "a64", s) != "pixels":
        return False
    if not CORES[isa].paired:
        return s.in_c in (3, 4) and 7 * s.stride_w + s.k_w <= 4 * _DOT_REGISTERS
    return s.inputs <= WINDOW_INPUTS and s.k_w * s.in_c <= RUN


def _accepts(isa: str, instr: Instr) -> bool:
    """Accept rows that blocks fill well, of few inputs a window."""
    s, pixels = Conv.of(instr), PIXELS[isa]
    if not accepts(instr) or is_spread(s) or (not CORES[isa].paired and instr.int_("w_zp") != 0):
        return False
    if s.out_w < pixels or padded(s.out_w, pixels) * 4 > s.out_w * 5:
        return False
    return s.in_c <= POINT_INPUTS[isa] if is_dense_point(s) else _suits_windows(isa, s)


def _plan(isa: str, s: Conv, ending: Ending, *, point: bool, short: bool) -> LanePlan:
    pixels, partial = PIXELS[isa], s.out_c < OUTPUTS
    if point:
        adjacent = s.in_c == OUTPUTS == s.in_col * s.stride_w
        return LanePlan(
            path="lane-point", isa=isa, pixels=pixels, partial=partial, ending=ending, rest=s.in_c % 8,
            adjacent=adjacent, short=short,
        )  # fmt: skip
    return LanePlan(
        path="lane-rows", isa=isa, pixels=pixels, partial=partial, ending=ending, k_h=s.k_h, k_w=s.k_w,
        stride=s.stride_w, slots=row_slots(s), run=s.k_w * s.in_c, spare=_SPARE,
    )  # fmt: skip


def _scratch_bytes(instr: Instr) -> int:
    """Bytes: the padded rows of one window, and what vectors read after the last."""
    plan, s = plan_of(instr, LanePlan), Conv.of(instr)
    if plan.point:
        return 0
    columns = (s.out_w - 1) * plan.stride + plan.k_w
    pixel = 2 * s.in_c if plan.core.paired else plan.core.group
    return plan.slots * padded(columns * pixel + plan.spare, 16)


def _rows(isa: str, weights: np.ndarray, *, short: bool) -> np.ndarray:
    """Return weights[O, taps, C] as they are in the stream."""
    core = CORES[isa]
    if core.paired:
        return weights.astype(np.int8) if short else weights
    rows = np.zeros((*weights.shape[:2], core.group), np.int8)
    rows[..., : weights.shape[2]] = weights
    return rows


def _prepare(isa: str, constants: Arrays, instr: Instr) -> Prepared:
    s = Conv.of(instr)
    point = is_dense_point(s)
    short = point and instr.int_("w_zp") == 0
    weights = constants["weights"].reshape(s.out_c, -1, s.in_c).astype(np.int16) - instr.int_("w_zp")
    bias, ends = folded(weights, constants, instr.int_("in_zp")), Ends.of(constants, s.out_c)
    rows = _rows(isa, weights, short=short).reshape(s.out_c, -1)
    data = stream(rows, bias, ends, blocks(s.out_c, OUTPUTS), CORES[isa].group)
    ending = ending_of(weights, bias, ends, instr)
    return Prepared({"weights": data, **ends.empty}, _plan(isa, s, ending, point=point, short=short))


def _variant(isa: str, rank: int, header: str) -> KernelVariant:
    return KernelVariant(
        isa, form="lane", rank=rank, accepts=lambda instr: _accepts(isa, instr), header=header,
        template="{}_lane", packs=WEIGHTED, prepare=lambda constants, instr: _prepare(isa, constants, instr),
        scratch_bytes=_scratch_bytes, streams=True, row_block=PIXELS[isa],
    )  # fmt: skip


LANE = (
    _variant("a32", 31, "glow_a32_lane.h"),
    _variant("a64", 31, "glow_a64_lane.h"),
    _variant("dot", 34, "glow_a64_lane.h"),
)

VARIANTS = {"conv_s8": LANE}
