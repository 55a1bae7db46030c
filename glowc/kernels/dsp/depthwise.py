"""dwconv_s8 on SMLABB and SMLATT: printed tiles of up to three outputs, or loops that take little code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.constants import EMPTY, WEIGHTED
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.sums import sums
from glowc.kernels.dsp.depthwise_tile import PlainTile, Tile
from glowc.kernels.dsp.forms import GROUP
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MAX_TAPS = 36  # of a window (code size)
_MAX_KINDS, _MAX_COLUMNS = 6, 24
_LONG = 5  # columns of a tile of 3 x 3 whose text is more than a kilobyte
_SHORT = 32000.0  # rounded it fits 16 bits, and so it does when float32 has rounded the product


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwisePlan(PlainTile):
    """Tiles of any window, its rows from the first to the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPlan(Plan):
    """`offset`: the weights have a zero point; `fixed`: codes end in a multiplier and a shift."""

    offset: bool
    fixed: bool = False


def tile_outputs(k_w: int) -> int:
    """Outputs of a depthwise tile: nine registers hold the weights of a row and two sums per output."""
    return min(3, (9 - held_columns(k_w)) // 2)


def held_columns(k_w: int) -> int:
    """Return how many columns of a row's weights the registers hold."""
    return k_w if k_w <= 7 else 3


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of an output row: (outputs, first, end) with the columns [first, end) that exist."""

    kinds: tuple[tuple[int, int, int], ...]
    middle: int  # index of the kind that is repeated, -1: none
    left: int  # outputs before it
    right: int  # outputs after it


def plan_tiles(in_w: int, out_w: int, k_w: int, stride: int, dilation: int, pad: int) -> Tiles:
    """Cut a row into tiles: in the middle those without padding, which are all alike."""
    most, span = tile_outputs(k_w), (k_w - 1) * dilation + 1
    inside = [x for x in range(out_w) if x * stride >= pad and x * stride - pad + span <= in_w]

    def kind(x: int, outputs: int) -> tuple[int, int, int]:
        begin = x * stride - pad
        return outputs, max(0, -begin), min((outputs - 1) * stride + span, in_w - begin)

    def cut(begin: int, end: int) -> list[tuple[int, int, int]]:
        return [kind(x, min(most, end - x)) for x in range(begin, end, most)]

    left = -(-inside[0] // most) * most if inside else out_w
    count = (inside[-1] + 1 - left) // most if inside else 0
    if count < 1:
        return Tiles(tuple(cut(0, out_w)), -1, 0, 0)
    right = left + count * most
    kinds = (*cut(0, left), kind(left, most), *cut(right, out_w))
    return Tiles(kinds, left // most, left, out_w - right)


def _cut(shape: Conv) -> Tiles:
    return plan_tiles(shape.in_w, shape.out_w, shape.k_w, shape.stride_w, shape.dil_w, shape.pad_left)


def begins_late(kind: tuple[int, int, int], shape: Conv) -> bool:
    """Say whether in a row of the window the first output's sums change after those of all others.

    The columns come in the order of depthwise_tile.py: of those that are 0, 1, 2, 4 or 8 after a base the last one
    first, then the base moves by one; of a column the last output first.
    """
    outputs, first, end = kind
    if held_columns(shape.k_w) < shape.k_w:
        return False
    uses = [(x * shape.stride_w + kx * shape.dil_w, x) for x in range(outputs) for kx in range(shape.k_w)]
    left, order = sorted({column for column, _ in uses if first <= column < end}), list[int]()
    for base in range(first, end):
        now = [column for column in left if column - base in (0, 1, 2, 4, 8)]
        order += [x for column in reversed(now) for x in range(outputs - 1, -1, -1) if (column, x) in uses]
        left = [column for column in left if column not in now]
    return set(order[: order.index(0)] if 0 in order else ()) == set(range(1, outputs))


def accepts(instr: Instr) -> bool:
    """Accept channels of their own, at least four of them, and windows that fit the registers."""
    shape, rows = Conv.of(instr), header_number("glow_dsp_dw.h", "GLOW_DSP_MAX_ROWS")
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    if shape.in_c < GROUP or shape.in_ch != 1 or shape.k_h > rows or shape.taps > _MAX_TAPS:
        return False
    kinds = _cut(shape).kinds
    return len(kinds) <= _MAX_KINDS and all(first < end <= first + _MAX_COLUMNS for _, first, end in kinds)


def fits_short(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, instr: Instr) -> bool:
    """Prove that no product float32(sum) * scale of weights[taps, C] leaves +-32000, whatever the inputs."""
    low, high = sums(weights.T.astype(np.int64) - instr.int_("w_zp"), instr)
    largest = np.maximum(np.abs(low + bias), np.abs(high + bias)).astype(np.float64)
    return bool(np.all(largest * np.abs(scale.astype(np.float64)) <= _SHORT))


def plan_by(instr: Instr, *, short: bool) -> DepthwisePlan:
    """Return the plan of dwconv_s8."""
    shape, all_codes = Conv.of(instr), (instr.int_("out_min"), instr.int_("out_max")) == (-128, 127)
    tiles = _cut(shape)
    kinds = (Tile(outputs=k[0], first=k[1], end=k[2], late=begins_late(k, shape)) for k in tiles.kinds)
    return DepthwisePlan(
        k_h=shape.k_h, k_w=shape.k_w, stride_w=shape.stride_w, dil_w=shape.dil_w, tiles=tuple(kinds),
        middle=tiles.middle, left=tiles.left, right=tiles.right, u8=instr.int_("out_zp") == -128 and all_codes,
        offset=int(instr.int_("w_zp") != 0), mult=shape.out_c // shape.in_c, held=held_columns(shape.k_w), short=short,
        loops=shape.k_h == shape.k_w == 3 and any(k[2] - k[1] >= _LONG for k in tiles.kinds),
    )  # fmt: skip


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare dwconv_s8."""
    shape = Conv.of(instr)
    scale = np.broadcast_to(constants["scale"].reshape(-1).astype(np.float32), shape.out_c)
    weights, bias = weights_of(constants, instr)
    words = np.ascontiguousarray(scale).view(np.int32)
    stream = stream_of(weights, bias, lambda own: words[own[[0, 2, 1, 3]]], shape.out_c // shape.in_c)
    return Prepared({"weights": stream, **EMPTY}, plan_by(instr, short=fits_short(weights, bias, scale, instr)))


def weights_of(constants: Arrays, instr: Instr) -> tuple[np.ndarray, np.ndarray]:
    """Return weights[taps, C] and biases[C]."""
    weights = constants["weights"].reshape(-1, Conv.of(instr).out_c).astype(np.int8)
    return weights, constants["bias"].reshape(-1).astype(np.int32)


def stream_of(weights: np.ndarray, bias: np.ndarray, ends: Callable[[np.ndarray], np.ndarray], mult: int) -> np.ndarray:
    """Return the words of weights[taps, C]: the first output channels of all inputs, then the second ones ...

    Per four channels bias 0, 2, 1, 3, weights, and what `ends` gives for their numbers.
    """
    parts = []
    for channels in (np.arange(j, bias.size, mult) for j in range(mult)):
        rest = [channels.size - GROUP] if channels.size % GROUP else []
        for own in (channels[c : c + GROUP] for c in (*range(0, channels.size - 3, GROUP), *rest)):
            words = np.ascontiguousarray(weights[:, own]).view(np.int32).reshape(-1)
            parts += [bias[own[0::2]], bias[own[1::2]], words, ends(own)]
    return np.concatenate(parts)


def accepts_small(instr: Instr) -> bool:
    """Accept int8, one output channel per input channel, at least four adjacent channels."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    shape = Conv.of(instr)
    alike = shape.in_c == shape.out_c == shape.groups >= GROUP and shape.in_ch == 1
    return alike and shape.k_h <= header_number("glow_dsp_small.h", "GLOW_DSP_SMALL_ROWS")


def prepare_small(_: Arrays, instr: Instr) -> Prepared:
    """Constants stay as those of `ref`."""
    return Prepared(plan=SmallPlan(offset=instr.int_("w_zp") != 0))


DEPTHWISE = KernelVariant(
    "dsp", also=FPU, rank=10, header="glow_dsp_dw.h", accepts=accepts, prepare=prepare, packs=WEIGHTED
)  # fmt: skip
SMALL = KernelVariant(
    "dsp", form="small", also=FPU, rank=7, header="glow_dsp_small.h", template="{}_small", accepts=accepts_small,
    prepare=prepare_small,
)  # fmt: skip

VARIANTS = {
    "dwconv_s8": (DEPTHWISE, SMALL),
}
