"""dwconv_s8* for cores without SIMD: tiles of adjacent outputs, printed for the paddings that occur."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, Reads
from glowc.kernels.common.constants import SHIFTED, WEIGHTED
from glowc.kernels.common.factors import FIXED
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.windows import planar
from glowc.kernels.features import Stated, numbers
from glowc.kernels.shapes import Conv
from glowc.kernels.thumb.depthwise_tile import ThumbTile
from glowc.kernels.thumb.fold import fold, fold_fixed, fold_shift, has_large
from glowc.kernels.thumb.forms import HEADER, SMALL_HEADER, both, fixed
from glowc.kernels.tile_features import inside
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_REGISTERS = 8  # for the sums of a depthwise tile and the weights of a kernel row
_HELD = 3  # weights of a row that is too wide for them
_MAX_OUTPUTS, _USUAL_OUTPUTS = 5, 4  # of a tile; layers with tiles alike share a function
_MAX_SPAN, _MAX_KINDS = 24, 8
_LINE, _TILE = 40, 60  # instructions: of a row of outputs, and of a tile
_CHANNEL, _OUTPUT, _ROW = 26, 9, 5  # of a channel of a tile, of each of its outputs, and of a row of the window
_PAD, _PAD_TAP = 20, 6  # of a channel of a tile with rows outside of the input, and of each tap of these


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwisePlan(ThumbTile, Plan):
    """The window, and the tiles of `n` adjacent outputs that are printed.

    `kinds` are the (columns missing at the left, at the right) of the tiles; `first` and `last` the kinds of the first
    and last tiles of a row, `middle` that of all between, -1: none. `small`: no tiles are printed. `held`: columns of a
    kernel row that are taken at a time. `mult`: output channels of an input channel. `offset`: the weights have a zero
    point. `full`: all int8 codes are allowed. `large`: some scales are 1/4 or more. `thumb2`: inner loops are assembly
    for Armv7-M. `shifts`: dwconv_s8rs, or where `fixed` dwconv_s8q31.
    """

    k_h: int
    k_w: int
    stride_w: int
    dil_w: int
    offset: bool
    mult: int
    shifts: bool
    fixed: bool = False
    small: bool = False
    n: int = 1
    kinds: tuple[tuple[int, int], ...] = ()
    first: tuple[int, ...] = ()
    middle: int = -1
    last: tuple[int, ...] = ()
    full: bool = False
    large: bool = False
    thumb2: bool = False
    held: int = 0

    def work(self, instr: Instr) -> Mapping[str, float]:
        """Count the instructions of printed rows of the window, and of all that is around them, roughly."""
        if self.small:
            return {}
        shape, rows = Conv.of(instr), inside(numbers(instr), "h")
        tiles, outside = self._tiles_of(-(-shape.out_w // self.n)), self.k_h - rows
        each = {kind: self.insns(*kind) + _ROW for kind in self.kinds}
        pads = np.where(outside > 0, _PAD + _PAD_TAP * self.k_w * outside, 0)
        around = len(tiles) * (_TILE + shape.out_c * (_CHANNEL + _OUTPUT * self.n + pads))
        return {
            "window_insns": shape.batch * shape.out_c * float(rows.sum()) * sum(each[kind] for kind in tiles),
            "plane_insns": shape.batch * float((around + _LINE).sum()),
        }

    def _tiles_of(self, count: int) -> list[tuple[int, int]]:
        """Return the kinds of the tiles of a row."""
        between = count - len(self.first) - len(self.last)
        return [self.kinds[kind] for kind in (*self.first, *[self.middle] * between, *self.last)]


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of `outputs` outputs that cover a row: kinds (columns missing left, right), by place."""

    outputs: int
    kinds: tuple[tuple[int, int], ...]
    first: tuple[int, ...]  # kinds of the tiles before the complete ones
    middle: int  # kind of the complete ones, -1: none
    last: tuple[int, ...]


def held_weights(k_w: int) -> int:
    """Return how many columns of a kernel row are taken at a time."""
    return k_w if k_w < _REGISTERS else _HELD


def cut_row(in_w: int, out_w: int, k_w: int, stride: int, dilation: int, pad: int) -> Tiles:
    """Return the cheapest tiles of a row of out_w outputs; the last one ends with the row and may overlap others."""
    held = held_weights(k_w)
    most = min(_MAX_OUTPUTS, _REGISTERS - held, out_w)

    def cost(outputs: int) -> float:
        columns = (outputs - 1) * stride + (held - 1) * dilation + 1
        per_tile = k_w * (outputs * k_w + min(columns, k_w * outputs) + k_w + columns // 2 + 4) + 12 * outputs + 30
        return -(-out_w // outputs) * per_tile * (0.93 if outputs == _USUAL_OUTPUTS else 1.0)

    outputs = min(range(1, most + 1), key=cost)
    columns = (outputs - 1) * stride + (k_w - 1) * dilation + 1
    starts = [min(x, out_w - outputs) * stride - pad for x in range(0, out_w, outputs)]
    missing = [(min(max(-x, 0), columns), min(max(x + columns - in_w, 0), columns)) for x in starts]
    kinds = tuple(dict.fromkeys(missing))
    whole = [i for i, kind in enumerate(missing) if kind == (0, 0)]
    if not whole:
        return Tiles(outputs, kinds, tuple(map(kinds.index, missing)), -1, ())
    first, last = missing[: whole[0]], missing[whole[-1] + 1 :]
    places = tuple(map(kinds.index, first)), tuple(map(kinds.index, last))
    return Tiles(outputs, kinds, places[0], kinds.index((0, 0)), places[1])


def _cut(shape: Conv) -> Tiles:
    return cut_row(shape.in_w, shape.out_w, shape.k_w, shape.stride_w, shape.dil_w, shape.pad_left)


def accepts_depthwise(instr: Instr) -> bool:
    """Accept what `accepts_small` does, and windows that unrolled code serves."""
    if not accepts_small(instr):
        return False
    shape = Conv.of(instr)
    return (shape.k_w - 1) * shape.dil_w + 1 <= _MAX_SPAN and len(_cut(shape).kinds) <= _MAX_KINDS


def accepts_small(instr: Instr) -> bool:
    """Accept int8, channels of their own, which are adjacent."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    return instr.int_("k_h") <= header_number("glow_thumb.h", "GLOW_THUMB_DW_ROWS") and instr.int_("in_ch") == 1


def plan_small(instr: Instr, *, shifts: bool, fixed: bool = False) -> DepthwisePlan:
    """Return the plan of a layer without printed tiles."""
    shape = Conv.of(instr)
    return DepthwisePlan(
        k_h=shape.k_h, k_w=shape.k_w, stride_w=shape.stride_w, dil_w=shape.dil_w, offset=instr.int_("w_zp") != 0,
        mult=shape.out_c // shape.in_c, shifts=shifts, fixed=fixed, small=True,
    )  # fmt: skip


def plan_tiles(instr: Instr, *, shifts: bool, thumb2: bool, fixed: bool = False) -> DepthwisePlan:
    """Return the plan of a layer whose tiles are printed."""
    tiles = _cut(Conv.of(instr))
    return replace(
        plan_small(instr, shifts=shifts, fixed=fixed), small=False, n=tiles.outputs, kinds=tiles.kinds,
        first=tiles.first, middle=tiles.middle, last=tiles.last,
        full=(instr.int_("out_min"), instr.int_("out_max")) == (-128, 127), thumb2=thumb2,
        held=held_weights(instr.int_("k_w")),
    )  # fmt: skip


def weights_of(constants: Arrays, instr: Instr) -> np.ndarray:
    """Return the weights as [channels, taps]."""
    return np.ascontiguousarray(constants["weights"].reshape(-1, instr.int_("out_c")).T)


Folded = Callable[[np.ndarray, Arrays, Instr], Arrays]
Planned = Callable[[Instr], DepthwisePlan]


def _preparing(plan: Planned, folded: Folded) -> Callable[[Arrays, Instr], Prepared]:
    """Return what prepares weights channel by channel, with the zero point in the biases, and this plan."""

    def prepare(constants: Arrays, instr: Instr) -> Prepared:
        weights = weights_of(constants, instr)
        done = folded(weights, constants, instr)
        planned = plan(instr)
        large = not planned.small and not planned.fixed and has_large(constants, done, len(weights))
        return Prepared({"weights": weights, **done}, replace(planned, large=large))

    return prepare


def _depthwise(
    folded: Folded, packs: frozenset[str], *, shifts: bool = True, fixed: bool = False
) -> tuple[KernelVariant, ...]:
    one, some = (partial(plan, shifts=shifts, fixed=fixed) for plan in (plan_small, plan_tiles))
    tiles = KernelVariant(
        "v7m", rank=5, header=HEADER, accepts=accepts_depthwise, packs=packs,
        prepare=_preparing(partial(some, thumb2=True), folded), reads=Reads(along=True),
    )  # fmt: skip
    small = replace(
        tiles, form="small", rank=4, header=SMALL_HEADER, accepts=accepts_small,
        prepare=_preparing(one, folded), reads=Reads(), stated=Stated(macs=15),
    )  # fmt: skip
    v7m, v6m = both(tiles)
    plain = replace(v6m, prepare=_preparing(partial(some, thumb2=False), folded))
    return v7m, plain, *both(small)


def _bias(weights: np.ndarray, constants: Arrays, instr: Instr) -> Arrays:
    return {"bias": fold(weights, constants, instr)}


VARIANTS = {
    "dwconv_s8": (*_depthwise(_bias, WEIGHTED, shifts=False), planar("v7m")),
    "dwconv_s8q31": fixed(_depthwise(fold_fixed, FIXED, fixed=True)),
    "dwconv_s8rs": _depthwise(fold_shift, SHIFTED),
}
