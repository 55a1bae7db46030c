"""dwconv_s8 on SMLAD: two products an instruction, over planes of one channel (runtime_c/dsp/glow_dsp_planar.h).

Weights stay bytes in flash and become words of two taps once for a layer; inputs become halfwords once for a band of
rows and channels, as many as the scratch holds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import ClassVar

import numpy as np

from glowc.asm.cores import CORES
from glowc.asm.insn import Insn, Listing, Loop, instructions
from glowc.asm.order import ordered, orders_of
from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, plan_in, plan_of
from glowc.kernels.common.constants import EMPTY, WEIGHTED
from glowc.kernels.common.factors import Ends
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.straight import Straight, straight
from glowc.kernels.common.sums import sums
from glowc.kernels.dsp.ends import LEAST_LINES, factors_of, line
from glowc.kernels.dsp.needs import DUAL_ISSUE, FPU
from glowc.kernels.dsp.pixel_tile import CORTEX_M7
from glowc.kernels.dsp.planar_tile import Window, pairs_assembly, rows_assembly, singles_assembly
from glowc.kernels.dsp.planar_tile import rows as rows_of
from glowc.kernels.features import Stated
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_GROUP = 4  # channels
_USUAL_BYTES = 3072  # of scratch, or a quarter of the tensors: more where a plan leaves it free
_MOST_TAPS, _MOST_STRIDE = 128, 4
_PAIR, _SINGLE, _ROW = 17, 16, 12  # instructions: of words of two columns, of one, and of a row of four channels
_BAND, _CALL, _ROWS = 140, 50, 140  # of a band, and of calls that make planes and rows
_CHANNEL, _LINE = 30, 16  # of a channel of rows of outputs, and of each of them
_CLEAR, _PAD, _LINED = 3, 35, 7  # of a word of planes, of what is above and below one, of a word of weights of lines
_SPREAD_CYCLES = 3.0  # of an input that becomes a halfword of a plane
_PLAIN_ENDS = 1.35  # of the cycles of outputs that are no lines to those of all
_SLOWER, _COLD = 1.4, 5.0  # of planes, and of calls, in those of rows of outputs: their cycles
_COPY, _COPY_FEW = 1, 15  # of an output that is copied with three others, and with fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanarPlan(Plan):
    """A `window`, whose codes may be `limited`; `rows` and `channels` of a band.

    Codes of most channels are made by lines where `lined`, those of others as `by` tells (kernels/dsp/planar_tile.py).
    A row of a plane has `words` for each remainder of the dilation, the last row `slack` more; the rows of a band are
    one where they are `flat`. `upright`: rows of planes are columns of the image. Instructions are in order for a
    `core`, "" for none.
    """

    numbers: ClassVar[tuple[str, ...]] = ("rows", "channels", "words", "flat", "slack")
    unit_rows: ClassVar[int] = 4
    window: Window
    limited: bool
    by: str
    rows: int
    channels: int
    words: int
    flat: bool
    slack: int
    upright: bool
    lined: bool
    core: str = ""

    @property
    def pairs(self) -> str:
        """The assembly that makes words of two columns, or of two taps."""
        return pairs_assembly(self.core)

    @property
    def singles(self) -> str:
        """The assembly that makes words of one column."""
        return singles_assembly(self.core)

    def compute(self, by: str) -> str:
        """Return the assembly of rows of outputs, whose codes are made by one of the ways."""
        return rows_assembly(self.core, self.window, by, limited=self.limited)

    def touched(self, instr: Instr) -> Mapping[str, int]:
        """Inputs: those below each band. Scratch: planes that are written and read, and words of weights."""
        way, window = _way(instr, self), self.window
        read = way.shape.batch * way.shape.in_c * way.expanded(self.rows) * way.shape.in_w
        blocks = way.outputs(way.shape.out_h) // window.outputs * way.shape.batch * way.shape.out_c
        taps = 4 * window.k_h * (window.k_w - 1)
        used = 4 * blocks * window.k_h * window.words + way.shape.out_c * taps
        return {"in": read, "scratch": 2 * read + used + (0 if window.held else blocks * taps)}

    def work(self, instr: Instr) -> Mapping[str, float]:
        """Count the instructions of rows of outputs, of planes and of calls; cycles of the former on a core."""
        way, by = _way(instr, self), "line" if self.lined else self.by
        batch = way.shape.batch
        found = {
            "window_insns": batch * way.window_sum(self.rows, block_insns(way.window, by)),
            "plane_insns": batch * way.planes(self.rows, self.channels, lined=self.lined),
            "plane_calls": batch * way.calls(self.rows, self.channels),
        }
        if self.core:
            found["window_cycles"] = batch * way.window_sum(self.rows, block_cycles(way.window, by, self.core))
        return found

    def row_waste(self, instr: Instr) -> float:
        """Each call takes apart the rows below a row, and the weights."""
        shape = Conv.of(instr)
        row = replace(shape, out_h=1, in_h=min(shape.in_h, (shape.k_h - 1) * shape.dil_h + 1), pad_top=0)
        way, rows, channels = _best(row, 0, upright=False)
        return shape.out_h * way.cost(rows, channels) / _way(instr, self).cost(self.rows, self.channels)


@dataclass(frozen=True, slots=True)
class _Way:
    """How a layer is walked: its shape as planes have it, outputs at a time, whether the rows of a band are one.

    Rows of a band are those of the image; of `upright` planes a band has all columns.
    """

    shape: Conv
    window: Window
    flat: bool
    upright: bool

    @property
    def columns(self) -> list[tuple[int, int]]:
        """The columns of padding before the input and those of the input, of each remainder of the dilation."""
        s, found = self.shape, []
        for first in range(s.dil_w):
            pads = -(-max(s.pad_left - first, 0) // s.dil_w)
            begin = first + pads * s.dil_w - s.pad_left
            found.append((pads, -(-max(s.in_w - begin, 0) // s.dil_w)))
        return found

    @property
    def plane_words(self) -> list[tuple[int, int]]:
        """The words of two columns of a row and those of one, of each remainder of the dilation."""
        found = []
        for pads, columns in self.columns:
            left = min(pads % 2, columns)
            found.append(((columns - left) // 2, left + (columns - left) % 2))
        return found

    @property
    def words(self) -> int:
        """The words of a row of a plane; the padding of flat rows is that of the next row as well."""
        written = max(-(-(pads + columns) // 2) for pads, columns in self.columns)
        if self.flat:
            s = self.shape
            return max(written, -(-s.out_w // 2), -(-(s.out_w - 1 + self.window.k_w - s.pad_left) // 2))
        return max(written, (self._blocks - 1) * self.window.advance + self.window.words)

    @property
    def _blocks(self) -> int:
        """The blocks of a row, of one remainder of the dilation."""
        return -(-self.shape.out_w // (self.shape.dil_w * self.window.outputs))

    @property
    def slack(self) -> int:
        """The words after the last row of a plane."""
        return self.window.advance + self.window.words if self.flat else 0

    @property
    def direct(self) -> bool:
        """Whether outputs are written where they belong."""
        return not self.flat and self.shape.out_w % (self.shape.dil_w * self.window.outputs) == 0

    def across(self, rows: int) -> int:
        """Return the rows of outputs of a band, as planes have it."""
        return self.shape.out_h if self.upright else rows

    def bands(self, rows: int) -> int:
        """Return the bands of an image."""
        return -(-self.shape.out_h // self.across(rows))

    def below(self, rows: int) -> int:
        """Return the rows of a plane."""
        return (self.across(rows) - 1) * self.shape.stride_h + (self.shape.k_h - 1) * self.shape.dil_h + 1

    def expanded(self, rows: int) -> int:
        """Return the rows of an image that become rows of planes, those of all bands."""
        return self.bands(rows) * min(self.below(rows), self.shape.in_h)

    def outputs(self, rows: int) -> int:
        """Return the outputs of so many rows of a plane, with those that are left out."""
        if self.flat:
            return -(-rows * 2 * self.words // self.window.outputs) * self.window.outputs
        return rows * self.shape.dil_w * self._blocks * self.window.outputs

    def plane(self, rows: int) -> int:
        """Return the words of a plane."""
        return self.below(rows) * self.shape.dil_w * self.words + self.slack

    def bytes(self, rows: int, channels: int) -> int:
        """Return the bytes of scratch for so many rows and channels of a band."""
        mult = self.shape.out_c // self.shape.in_c
        weights = 4 * mult * self.window.k_h * (self.window.k_w - 1)
        line = 0 if self.direct else self.outputs(self.across(rows)) // self.shape.dil_w
        return channels * (weights + 4 * self.plane(rows)) + line * (_GROUP if mult == 1 else mult)

    def window_sum(self, rows: int, block: float) -> float:
        """Return what all rows of outputs take, with so many rows in a band, of which each block takes so much."""
        s, parts, outputs = self.shape, self.shape.dil_w * self.bands(rows) * _CHANNEL, self.window.outputs
        if self.flat:
            return s.out_c * (self.outputs(s.out_h) // outputs * block + parts)
        blocks = sum(-(-(s.out_w - first) // (s.dil_w * outputs)) for first in range(min(s.dil_w, s.out_w)))
        return s.out_c * (s.out_h * (blocks * block + s.dil_w * _LINE) + parts)

    def planes(self, rows: int, channels: int, *, lined: bool = True) -> float:
        """Return the instructions of planes and weights of bands of so many rows and channels, and of copies."""
        s, words, bands = self.shape, self.plane_words, self.bands(rows)
        row = self._parts * _ROW + sum(_PAIR * pairs + _SINGLE * singles for pairs, singles in words)
        planes = -(-s.in_c // _GROUP) * self.expanded(rows) * row + _CLEAR * channels * self.plane(rows)
        outside = (bands * self.below(rows) - self.expanded(rows)) * s.dil_w * self.words
        planes += s.in_c * (bands * _PAD + _CLEAR * outside) if bands > 1 else 0
        taps = self.window.k_h * (self.window.k_w - 1)
        weights = -(-s.out_c // _GROUP) * (self.window.k_h * _ROW + taps * _PAIR) + s.out_c * taps * _LINED * lined
        copies = 0 if self.direct else s.out_c * s.out_h * s.out_w * (_COPY if s.out_c == s.in_c else _COPY_FEW)
        return planes + weights + copies

    def calls(self, rows: int, channels: int) -> float:
        """Return the instructions of calls that make planes, weights and rows, and of bands, outside of their loops."""
        s, bands = self.shape, self.bands(rows)
        groups, fours = -(-s.in_c // channels), -(-s.in_c // _GROUP)
        made = (fours * bands * self._parts + -(-s.out_c // _GROUP)) * _CALL
        computed = bands * s.dil_w * (s.in_c if s.out_c > s.in_c else groups if self.direct else fours) * _ROWS
        return made + computed + (groups * bands + 1) * _BAND

    @property
    def _parts(self) -> int:
        """The calls that make a row of planes of four channels."""
        return sum((pairs > 0) + singles for pairs, singles in self.plane_words)

    def cost(self, rows: int, channels: int) -> float:
        """Return what a layer with so many rows and channels in a band takes, roughly, in instructions of windows."""
        around = _SLOWER * self.planes(rows, channels) + _COLD * self.calls(rows, channels)
        return self.window_sum(rows, block_insns(self.window, "line")) + around

    def cuts(self) -> Iterator[tuple[int, int, int]]:
        """Yield the ways to cut a layer into bands: bytes of scratch, rows and channels."""
        heights = (self.shape.out_w,) if self.upright else _shares(self.shape.out_h)
        for rows, fours in itertools.product(heights, _shares(-(-self.shape.in_c // _GROUP))):
            yield self.bytes(rows, fours * _GROUP), rows, fours * _GROUP


def _shares(number: int) -> list[int]:
    """Return the numbers into which so many can be cut evenly, the last one apart."""
    return sorted({-(-number // parts) for parts in range(1, number + 1)})


def _turned(s: Conv) -> Conv:
    """Return a shape whose rows are the columns of another one."""
    return replace(
        s, in_h=s.in_w, in_w=s.in_h, out_h=s.out_w, out_w=s.out_h, in_row=s.in_col, in_col=s.in_row, k_h=s.k_w,
        k_w=s.k_h, stride_h=s.stride_w, stride_w=s.stride_h, dil_h=s.dil_w, dil_w=s.dil_h, pad_top=s.pad_left,
        pad_left=s.pad_top,
    )  # fmt: skip


def _way(instr: Instr, plan: PlanarPlan) -> _Way:
    shape = Conv.of(instr)
    return _Way(_turned(shape) if plan.upright else shape, plan.window, plan.flat, plan.upright)


def _ringed(shape: Conv) -> bool:
    """Return whether rows are in rings."""
    return shape.in_ring < shape.in_h or shape.out_ring < shape.out_h


def _ways(shape: Conv, *, upright: bool) -> Iterator[_Way]:
    """Yield the ways to walk over a layer, those with upright planes as well where rows are in no rings."""
    plain = (shape.stride_h, shape.stride_w, shape.dil_h, shape.dil_w) == (1, 1, 1, 1)
    for outputs in (2, 4):
        window = Window(k_h=shape.k_h, k_w=max(shape.k_w, 2), stride=shape.stride_w, outputs=outputs)
        turned = Window(k_h=shape.k_w, k_w=shape.k_h, stride=1, outputs=outputs)
        if window.fits:
            yield from (_Way(shape, window, flat, upright=False) for flat in (False, True)[: 1 + plain])
        if upright and plain and shape.k_h > 1 and not _ringed(shape):
            yield _Way(_turned(shape), turned, flat=True, upright=True)


@lru_cache(maxsize=4096)
def _best(shape: Conv, limit_bytes: int, *, upright: bool = True) -> tuple[_Way, int, int]:
    """Return the way, rows and channels of a band that take least in so much scratch, or the least scratch."""
    found = [(size, way, rows, some) for way in _ways(shape, upright=upright) for size, rows, some in way.cuts()]
    fitting = [(way.cost(rows, some), size, way, rows, some) for size, way, rows, some in found if size <= limit_bytes]
    if fitting:
        return min(fitting, key=lambda f: (f[:2], f[3:]))[2:]
    return min(found, key=lambda f: (f[0], f[2:]))[1:]


@cache
def block_insns(window: Window, by: str) -> int:
    """Return the instructions of a block of outputs."""
    return len(_block(window, rows_of(window, by, limited=False)[0]))


@cache
def block_cycles(window: Window, by: str, core: str) -> int:
    """Return the cycles of a block of outputs after another one on a core, in the order for it."""
    issuing = CORES[core]()
    block = _block(window, ordered(rows_of(window, by, limited=False)[0], orders_of(core)))
    first, second = (max(issuing.issue(insn) for insn in block) for _ in range(2))
    return second - first


def _block(window: Window, listing: Listing) -> list[Insn]:
    """Return the instructions of a block of outputs of a listing one after the other."""
    blocks: Listing = listing
    while loops := [item for item in blocks if isinstance(item, Loop)]:
        outer, blocks = blocks, loops[0].body
    inside = list(instructions(blocks))
    if window.printed_rows:
        return inside
    parts = [inside * window.k_h if isinstance(item, Loop) else list(instructions((item,))) for item in outer]
    return list(itertools.chain(*parts))


def accepts(instr: Instr) -> bool:
    """Accept int8, four channels or more of their own, strides of windows whose columns are beside each other."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    shape = Conv.of(instr)
    alone = shape.in_ch == 1 and shape.groups == shape.in_c >= _GROUP
    return alone and shape.taps <= _MOST_TAPS and shape.stride_w <= (_MOST_STRIDE if shape.dil_w == 1 else 1)


def _own_channels(instr: Instr) -> int:
    """Return the bytes of a pixel: outputs that lie such a multiple over the input lie over no other channels.

    0 where they always do.
    """
    return instr.int_("in_c") if instr.int_("out_c") == instr.int_("in_c") == instr.int_("in_col") else 0


def scratch_bytes(instr: Instr) -> int:
    """Words of weights, planes of a band, and outputs that do not fill a row; enough for one row of rings as well."""
    plan = plan_of(instr, PlanarPlan)
    own = _way(instr, plan).bytes(plan.rows, plan.channels)
    if not plan.upright:
        return own
    way, rows, channels = _best(Conv.of(instr), 0, upright=False)
    return max(own, way.bytes(rows, channels))


def placed(instr: Instr) -> Plan:
    """Return a plan without upright planes for rows in rings."""
    plan, shape = plan_of(instr, PlanarPlan), Conv.of(instr)
    if not plan.upright or not _ringed(shape):
        return plan
    return _planned(plan, *_best(shape, scratch_bytes(instr)))


def _planned(plan: PlanarPlan, way: _Way, rows: int, channels: int) -> PlanarPlan:
    """Return a plan that walks another way."""
    return replace(
        plan, window=way.window, rows=rows, channels=channels, words=way.words, flat=way.flat, slack=way.slack,
        upright=way.upright,
    )  # fmt: skip


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return bytes of the weights, then what the codes of each channel are made of."""
    shape = Conv.of(instr)
    weights = constants["weights"].reshape(shape.taps, shape.out_c).astype(np.int8)
    ends = Ends.of(constants, shape.out_c)
    bias = np.broadcast_to(constants["bias"].reshape(-1), (shape.out_c,)).astype(np.int64)
    lines = _lines(weights, bias, ends, instr)
    factors = factors_of(constants, shape.out_c) if ends.shifts is not None else None
    begin = np.where(lines.found, (bias << line().shift) + lines.offset, bias)
    words = np.where(lines.found, lines.mul, factors.muls if factors else ends.words)
    places = factors.places.astype(np.int8) if factors else np.zeros(0, np.int8)
    bits = np.packbits(lines.found, bitorder="little")
    parts = weights.reshape(-1), np.stack((begin, words), axis=1).astype(np.int32).reshape(-1), places, bits
    tensors = shape.in_h * shape.in_w * shape.in_c + shape.out_h * shape.out_w * shape.out_c
    way, rows, channels = _best(shape, min(_USUAL_BYTES, tensors // 4))
    plan = PlanarPlan(
        window=way.window, limited=instr.int_("out_min") > -128 or instr.int_("out_max") < 127,
        by="multiplier" if factors else "scale", rows=rows, channels=channels, words=way.words,
        flat=way.flat, slack=way.slack, upright=way.upright, lined=bool(lines.found.any()),
    )  # fmt: skip
    return Prepared({"weights": np.concatenate([_filled(part) for part in parts]), **EMPTY}, plan)


def _lines(weights: np.ndarray, bias: np.ndarray, ends: Ends, instr: Instr) -> Straight:
    """Return the lines of channels of weights[taps, O]: those of none where few have one.

    Weights less a zero point do not fit their halfwords. Where an input has several outputs words of weights are often
    made anew for each row, which takes longer for lines.
    """
    low, high = sums(weights.T.astype(np.int64), instr)
    bounds = instr.int_("out_min"), instr.int_("out_max")
    found = straight(line(), ends, (bias + low, bias + high), instr.int_("out_zp"), bounds)
    alone = instr.int_("w_zp") == 0 and instr.int_("in_c") == instr.int_("out_c")
    many = alone and found.found.mean() >= LEAST_LINES
    return found if many else replace(found, found=np.zeros_like(found.found))


def _filled(values: np.ndarray) -> np.ndarray:
    """Return numbers as words, their bytes filled up."""
    values = np.ascontiguousarray(values).view(np.int8)
    return np.pad(values, (0, -values.size % 4)).view(np.int32)


def spend(instr: Instr, scratch_bytes: int) -> Plan:
    """Compute more rows and channels in a band, in so many bytes of scratch."""
    return _planned(plan_of(instr, PlanarPlan), *_best(Conv.of(instr), scratch_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallPlan(Plan):
    """`offset`: the weights have a zero point; `fixed`: codes end in a multiplier and a shift."""

    offset: bool
    fixed: bool = False


def accepts_small(instr: Instr) -> bool:
    """Accept int8, one output channel per input channel, at least four adjacent channels."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    shape = Conv.of(instr)
    alike = shape.in_c == shape.out_c == shape.groups >= _GROUP and shape.in_ch == 1
    return alike and shape.k_h <= header_number("glow_dsp_small.h", "GLOW_DSP_SMALL_ROWS")


def prepare_small(_: Arrays, instr: Instr) -> Prepared:
    """Constants stay as those of `ref`."""
    return Prepared(plan=SmallPlan(offset=instr.int_("w_zp") != 0))


def in_order(prepare: Callable[[Arrays, Instr], Prepared]) -> Callable[[Arrays, Instr], Prepared]:
    """Return a preparation whose instructions are in the order that was found for two at a time."""

    def prepared(constants: Arrays, instr: Instr) -> Prepared:
        found = prepare(constants, instr)
        return replace(found, plan=replace(plan_in(found, PlanarPlan), core=CORTEX_M7))

    return prepared


def _units(instr: Instr) -> int:
    """Return the units of all bands of some channels each, of one image."""
    plan, shape = plan_of(instr, PlanarPlan), Conv.of(instr)
    bands = -(-shape.out_h // plan.rows) * -(-shape.in_c // plan.channels)
    return bands * sum(_band_units(plan, shape)) if shape.batch == 1 else 0


def _plane_rows(plan: PlanarPlan, shape: Conv) -> tuple[int, int]:
    """Return the rows of outputs of a band as planes have them, and those of its planes."""
    if plan.upright:
        return shape.out_w, (shape.out_w - 1) * shape.stride_w + (shape.k_w - 1) * shape.dil_w + 1
    rows = min(plan.rows, shape.out_h)
    return rows, (rows - 1) * shape.stride_h + (shape.k_h - 1) * shape.dil_h + 1


def _band_units(plan: PlanarPlan, shape: Conv) -> tuple[int, int]:
    """Return the units of a band: some rows of its planes each, where there are several, and some rows of outputs."""
    rows, high = _plane_rows(plan, shape)
    spread = header_number("glow_dsp_planar.h", "GLOW_PLANAR_PART") * plan.unit_rows
    return -(-high // spread) if rows > plan.unit_rows else 0, -(-rows // plan.unit_rows)


def _leads(instr: Instr) -> tuple[int, int, float]:
    """Return the units of a band, those that make its planes, and the cycles of one of these."""
    plan, shape = plan_of(instr, PlanarPlan), Conv.of(instr)
    spread, outputs = _band_units(plan, shape)
    width = min(shape.in_h, plan.rows * shape.stride_h + shape.k_h) if plan.upright else shape.in_w
    inputs = _plane_rows(plan, shape)[1] * width * min(plan.channels, shape.in_c)
    return spread + outputs, spread, _SPREAD_CYCLES * inputs / max(spread, 1)


def _doubt(instr: Instr) -> float:
    """Return more where no code is a line: costs are fitted to layers of which many are."""
    return 1.0 if plan_of(instr, PlanarPlan).lined else _PLAIN_ENDS


DEPTHWISE = KernelVariant(
    "dsp", also=FPU, slow_with=DUAL_ISSUE, rank=10, header="glow_dsp_planar.h", accepts=accepts,
    prepare=prepare, packs=WEIGHTED, scratch_bytes=scratch_bytes, spends=spend, placed=placed, streams=True,
    overlap_bytes=_own_channels, stated=Stated(macs=1.2, outputs=12), units=_units, leads=_leads, doubt=_doubt,
)  # fmt: skip

PAIRED = replace(
    DEPTHWISE, form="paired", also=FPU | DUAL_ISSUE, slow_with=frozenset(), rank=11, prepare=in_order(prepare),
)  # fmt: skip

SMALL = KernelVariant(
    "dsp", form="small", also=FPU, rank=7, header="glow_dsp_small.h", template="{}_small", accepts=accepts_small,
    prepare=prepare_small,
)  # fmt: skip

VARIANTS = {
    "dwconv_s8": (DEPTHWISE, PAIRED, SMALL),
}
