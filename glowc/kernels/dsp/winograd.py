"""The form `winograd` of conv_s8: F(2x2, 3x3) in integers, 16 products instead of 36 (3x3 kernels, stride 1).

Weights stay int8. The products U = (2G) g (2G)' of so many output channels as the scratch holds are made before they
are used, once for a group of rows: four times as large as in the formula, so that they are int16
(runtime_c/dsp/glow_dsp_winograd.h). Source: Lavin and Gray, arXiv:1509.09308.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from glowc.graph.fixed_point import wrapped
from glowc.kernels.base import UNFIT, KernelVariant, Prepared, plan_in, plan_of
from glowc.kernels.common.constants import EMPTY, WEIGHTED
from glowc.kernels.common.factors import Ends
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.straight import straight
from glowc.kernels.common.sums import sums
from glowc.kernels.dsp.ends import ends_of, factors_of, fixed_end
from glowc.kernels.dsp.needs import DUAL_ISSUE, FPU
from glowc.kernels.dsp.pixel_tile import CORTEX_M7
from glowc.kernels.dsp.stream import accepts_any_zero, ending
from glowc.kernels.dsp.winograd_tile import LINE, blocks_assembly, inputs_assembly, steps_of, turned_assembly
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_CHANNELS = 4  # of a block
_WIDTH, _HEIGHT = 4, 2  # outputs computed together
_PIECE = 4 * 6  # inputs below two tiles
_TAPS = 9
# Of 16 products in 4 outputs of two tiles: 11 instructions for two inputs and 7 besides; 17 an output; 60. Of an input
# and an output channel's products: 58.
_STATED = Stated(tile_products=16 * 11 / 2, tiles=16 * 7 + 17 * _CHANNELS * _WIDTH * _HEIGHT + 60, tile_inputs=89,
                 turned_weights=58)  # fmt: skip
_MAX_INPUTS = 1024  # 4 * 9 * 1024 * 255 * 128 < 2^31: four times a sum fits int32, whatever the weights
_USUAL_BYTES = 8192  # of scratch: more where a plan leaves it free
_MOST_REAL = 1 << 20  # of a code before it is limited
_OTHERS = DUAL_ISSUE | frozenset({"mve"})  # a variant of their own, and Helium


def accepts(instr: Instr) -> bool:
    """Accept 3x3 kernels, stride 1, channels of whole words."""
    if not accepts_any_zero(instr) or any(instr.int_(key) != 3 for key in ("k_h", "k_w")):
        return False
    if any(instr.int_(key) != 1 for key in ("stride_h", "stride_w", "dil_h", "dil_w", "in_ch")):
        return False
    inputs = instr.int_("in_c")
    dense = instr.int_("in_col") == inputs and inputs % _CHANNELS == 0
    return dense and inputs <= _MAX_INPUTS


def _products() -> int:
    """Return the products of a tile."""
    return header_number("glow_dsp_winograd.h", "GLOW_WINOGRAD_PRODUCTS")


@dataclass(frozen=True, slots=True, kw_only=True)
class WinogradPlan(Plan):
    """How codes end, by a multiplier and a shift where `fixed`, by `lines` where sums are straight lines to codes or
    small reals; `steps` of a round, `single` where it is the only one.

    `channels` of output are computed in a pass, for `rows` of output before the next pass. Instructions are in order
    for a `core`, "" for none.
    """

    numbers: ClassVar[tuple[str, ...]] = ("channels", "rows")
    unit_channels: ClassVar[int] = 16
    end: str
    steps: int
    single: bool
    channels: int
    rows: int
    fixed: bool = False
    lines: bool = False
    core: str = ""

    @property
    def turned(self) -> str:
        """The assembly of the products of weights."""
        return turned_assembly(self.core)

    @property
    def row_sums(self) -> str:
        """The assembly of the products of inputs from the sum of two rows."""
        return inputs_assembly(self.core, sums=True)

    @property
    def row_differences(self) -> str:
        """The assembly of the products of inputs from the difference of two rows."""
        return inputs_assembly(self.core, sums=False)

    @property
    def blocks(self) -> str:
        """The assembly that multiplies these, adds, and makes codes of the sums."""
        return blocks_assembly(self.core, self.steps, self.end, single=self.single, fixed=self.fixed, lines=self.lines)

    def zero(self, point: str) -> str:
        """Return what the functions take for the zero point of the output."""
        one = 1 << LINE.fraction
        return f"{one} * {point} + {one // 2}" if self.lines else f"1 + 2 * {point}" if self.fixed else point

    def work(self, instr: Instr) -> Mapping[str, float]:
        """Count the inputs of tiles in each pass, and the weights that are transformed."""
        inputs, (passed, turns) = instr.int_("in_c"), _passed(instr, self.channels, self.rows)
        return {"tile_inputs": inputs * passed, "turned_weights": inputs * instr.int_("out_c") * turns}

    def touched(self, instr: Instr) -> Mapping[str, int]:
        """Inputs: two rows of six columns for each row of products. Scratch: products, and sums twice."""
        inputs, outputs = instr.int_("in_c"), instr.int_("out_c")
        passed, turns, blocks = *_passed(instr, self.channels, self.rows), -(-outputs // _CHANNELS)
        of_inputs, of_block, sums = 4 * _products() * inputs, 2 * _CHANNELS * _products() * inputs, 32 * _products()
        made = passed * of_inputs + turns * outputs * of_block // _CHANNELS
        used = _tiles(instr) * blocks * (of_inputs + of_block + 2 * sums)
        return {"in": passed * 2 * _PIECE * inputs, "scratch": made + used}


def _padded(number: int, to: int) -> int:
    return -(-number // to) * to


def _tiles(instr: Instr) -> int:
    """Return the pairs of tiles of all images."""
    return instr.int_("batch") * -(-instr.int_("out_h") // _HEIGHT) * -(-instr.int_("out_w") // _WIDTH)


def _passed(instr: Instr, channels: int, rows: int) -> tuple[int, int]:
    """Return the pairs of tiles of all passes, and how often products of all weights are made."""
    passes = -(-instr.int_("out_c") // channels)
    return _tiles(instr) * passes, instr.int_("batch") * -(-instr.int_("out_h") // rows) if passes > 1 else 1


def scratch_bytes(instr: Instr) -> int:
    """Products of a pass; inputs of those of two tiles; their sums or the codes below; rows of a group."""
    plan = plan_of(instr, WinogradPlan)
    return _bytes(instr, plan.channels, plan.rows)


def _bytes(instr: Instr, channels: int, rows: int) -> int:
    inputs, out_w, out_c = (instr.int_(key) for key in ("in_c", "out_w", "out_c"))
    direct = channels >= out_c and out_w % _WIDTH == 0
    products = 2 * _products() * inputs * channels
    tiles = 4 * _products() * inputs + max(4 * 8 * _products(), _PIECE * inputs)
    return products + tiles + (rows - direct) * _padded(out_w, _WIDTH) * out_c


def _ways(instr: Instr) -> Iterator[tuple[float, int, int]]:
    """Yield the ways to pass over a layer: what they take, roughly, channels of a pass and rows of a group."""
    inputs, outputs, height = instr.int_("in_c"), instr.int_("out_c"), instr.int_("out_h")
    for channels in range(_CHANNELS, _padded(outputs, _CHANNELS) + 1, _CHANNELS):
        most = _padded(height, _HEIGHT) if channels < outputs else _HEIGHT
        for rows in range(_HEIGHT, most + 1, _HEIGHT):
            passed, turns = _passed(instr, channels, rows)
            work = inputs * (_STATED.tile_inputs * passed + _STATED.turned_weights * outputs * turns)
            yield work, channels, rows


def _way(instr: Instr, limit_bytes: int) -> tuple[int, int]:
    """Return channels of a pass and rows of a group that take least in so much scratch, or the least scratch."""
    ways = [(work, _bytes(instr, channels, rows), channels, rows) for work, channels, rows in _ways(instr)]
    fitting = [way for way in ways if way[1] <= limit_bytes]
    best = min(fitting) if fitting else min(ways, key=lambda way: way[1:])
    return best[2:]


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return words of the weights, then what ends the sums of all channels: lines, or biases and scales."""
    prepared = prepare_scaled(constants, instr)
    lines = None if prepared == UNFIT else _lines(constants, instr)
    if lines is None:
        return prepared
    stream = np.concatenate((prepared.constants["weights"][: -lines.size], lines), axis=None)
    plan = replace(plan_in(prepared, WinogradPlan), lines=True)
    return replace(prepared, constants={**prepared.constants, "weights": stream}, plan=plan)


def prepare_scaled(constants: Arrays, instr: Instr) -> Prepared:
    """Return words of the weights, then biases and scales of all channels."""
    return _prepared(constants, instr, "n8" if ending(instr) in ("u8", "n8") else "s8")


def prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
    """The same of a layer that ends in a multiplier and a shift."""
    return _prepared(constants, instr, fixed_end(instr), fixed=True)


def _prepared(constants: Arrays, instr: Instr, end: str, *, fixed: bool = False) -> Prepared:
    out_c, in_c = instr.int_("out_c"), instr.int_("in_c")
    weights = constants["weights"].reshape(out_c, _TAPS, in_c).astype(np.int32) - instr.int_("w_zp")
    if weights.min(initial=0) < -128 or weights.max(initial=0) > 127:
        return UNFIT
    taps = weights.astype(np.int8).view(np.int32).transpose(0, 2, 1)
    bias = constants["bias"].astype(np.int64) - instr.int_("in_zp") * weights.sum((1, 2), dtype=np.int64)
    bias = wrapped(bias)  # as the sums, modulo 2^32
    factors = factors_of(constants, out_c) if fixed else None
    words = factors.muls if factors else ends_of(constants, out_c).words(1)[:, 0]
    ends = np.stack((bias, words), axis=1).astype(np.int32)
    places = factors.places.astype(np.int8) if factors else np.zeros(0, np.int8)
    shifts = np.pad(places, (0, -len(places) % 4)).view(np.int32)
    steps, (channels, rows) = steps_of(in_c), _way(instr, _USUAL_BYTES)
    plan = WinogradPlan(end=end, steps=steps, single=2 * steps == in_c, channels=channels, rows=rows, fixed=fixed)
    return Prepared({"weights": np.concatenate((taps, ends, shifts), axis=None), **EMPTY}, plan)


def _lines(constants: Arrays, instr: Instr) -> np.ndarray | None:
    """Return four times the bias and the multiplier of each channel int32[O, 2]: of a line, with its offset, or less
    the float32 scale. None where four times a sum, or a code before it is limited, may be too large.
    """
    out_c, bias = instr.int_("out_c"), constants["bias"].astype(np.int64)
    weights = constants["weights"].reshape(out_c, -1).astype(np.int64) - instr.int_("w_zp")
    ends = Ends.of(constants, out_c)
    low, high = (bias + side for side in sums(weights, instr))
    most = np.maximum(-low, high)
    if (4 * most >= 1 << 31).any() or (most * ends.factors >= _MOST_REAL).any() or (ends.factors <= 0).any():
        return None
    found = straight(LINE, ends, (low, high), instr.int_("out_zp"), (instr.int_("out_min"), instr.int_("out_max")))
    begin = 4 * (bias - instr.int_("in_zp") * weights.sum(1)) + np.where(found.found, found.offset, 0)
    mul = np.where(found.found, found.mul, ends.words.astype(np.int64) - (1 << 31))
    return np.stack((wrapped(begin), mul), axis=1).astype(np.int32)


def spend(instr: Instr, scratch_bytes: int) -> Plan:
    """Compute more channels in a pass, or more rows with them, in so many bytes of scratch."""
    channels, rows = _way(instr, scratch_bytes)
    return replace(plan_of(instr, WinogradPlan), channels=channels, rows=rows)


def _units(instr: Instr) -> int:
    """Return the tiles of all passes over one image, in blocks of so many channels."""
    plan = plan_of(instr, WinogradPlan)
    outputs, unit = instr.int_("out_c"), plan.unit_channels
    blocks = sum(-(-min(plan.channels, outputs - c) // unit) for c in range(0, outputs, plan.channels))
    tiles = -(-instr.int_("out_h") // _HEIGHT) * -(-instr.int_("out_w") // _WIDTH)
    return tiles * blocks if instr.int_("batch") == 1 else 0


def in_order(prepare: Callable[[Arrays, Instr], Prepared]) -> Callable[[Arrays, Instr], Prepared]:
    """Return a preparation whose steps are in the order that was found for two instructions at a time."""

    def prepared(constants: Arrays, instr: Instr) -> Prepared:
        found = prepare(constants, instr)
        if found == UNFIT:
            return UNFIT
        return replace(found, plan=replace(plan_in(found, WinogradPlan), core=CORTEX_M7, single=False))

    return prepared


CONV = KernelVariant(
    "dsp", form="winograd", also=FPU, slow_with=_OTHERS, template="{}_winograd", rank=12, header="glow_dsp_winograd.h",
    accepts=accepts, prepare=prepare, packs=WEIGHTED, scratch_bytes=scratch_bytes, spends=spend, stated=_STATED,
    units=_units,
)  # fmt: skip

PAIRED = replace(
    CONV, form="winograd_paired", also=FPU | DUAL_ISSUE, slow_with=frozenset({"mve"}), prepare=in_order(prepare_scaled),
    stated=replace(_STATED, tile_inputs=45, turned_weights=30),  # additions two at a time
)  # fmt: skip

VARIANTS = {
    "conv_s8": (CONV, PAIRED),
}
