"""conv_s8 on SMLAD: two pixels times blocks of four channels, or four pixels times pairs of channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import Columns, KernelVariant, Prepared, Reads, plan_of
from glowc.kernels.common.constants import SHIFTED, WEIGHTED
from glowc.kernels.common.sums import sums
from glowc.kernels.common.windows import is_point
from glowc.kernels.dsp.ends import ends_bytes
from glowc.kernels.dsp.forms import GROUP, summed_groups
from glowc.kernels.dsp.needs import DUAL_ISSUE, FPU
from glowc.kernels.dsp.pixel_tile import PixelTile
from glowc.kernels.dsp.quad_tile import QuadTile
from glowc.kernels.dsp.shift import short_offset
from glowc.kernels.dsp.stream import (
    accepts_any_zero,
    block_records,
    ending,
    fours,
    pair_records,
    pairs,
    quad_step_count,
    words_before,
)
from glowc.kernels.features import Stated
from glowc.kernels.records import Records
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MAX_PLANAR_ROWS = 16  # channels x kernel rows of a planar input that are printed one by one
_PIXELS = 4
_TILE = 8  # outputs
_FORM = "quad"  # of variants for four pixels
_MOST_WASTE = 1.1  # of pixels computed to those that a row has
_BLOCK_CHANNELS = 8  # of which a call may compute some
_FEW_READS, _FEW_BYTES = 4, 256  # of weights: fewer are not kept
_COPY_CYCLES = 1.5  # of a byte of weights, from flash
_NEAR_BYTES = 224  # of a pair of channels, which a flash cache of 256 bytes keeps for the next pixels
_QUADS = (8, 4, 2)  # whose inputs are collected at once
_FOURS = (8, 4, 2, 1)  # whose pixels a pass over the weights is for
_SHIFT_BYTES = 8192  # of scratch for four pixels and their sums


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPlan(Plan):
    """How the inputs of a pixel are collected, the `form` of the stream, and the `end` of codes.

    path: "point", a 1x1 kernel reads one pixel, with a `tail` after whole words; "rows", whole groups in every kernel
    row, of whole `words`, or one `run` of them; "across", the same for blocks of pixels of two rows; "word", that where
    a row is a single word; "three", a planar input and a kernel three columns wide, `rows` of `k_h` x `in_c` printed
    one by one; "gather", by bytes, by a `run` of them, or by the `tap` bytes of a pixel; "planar", of each channel.
    `shifts`: the layer ends in a multiplication and a shift, in 32 bits where `short`. `row_ends`: blocks of pixels end
    with their row. `kept`: bytes of weights that are copied into the scratch, of as many pairs of channels as the
    stream's first word says, which is one of those before the first pair if there are any.
    `quads`: of pixels that are collected before a pair of channels of all of them is computed, and the next pair; then
    the weights of none are kept, or those of all. `fours`: of pixels, where more than one, that are collected before
    pairs of channels of `near` words in all are computed for all of them, and the next pairs.
    `fixed`: codes end in a multiplier and a shift; `lined`: most by lines (runtime_c/dsp/glow_dsp_quads_line.h).
    `rest`: inputs of a kernel row after whole groups, on path "rows"; those of all `k_h` rows come last.
    `steps` of a round that divide those of the layer (pixel_tile.py), 0: the loop is entered at one; `pairs` of pixels,
    where more than one, are collected before blocks of channels of `near` words in all are computed, and the next ones;
    `shared`: windows of a pair are three columns wide and one apart. `summed`: groups of sums of inputs after these
    (forms.py). `alone`: the only channel of a layer, of which a pair is computed.
    """

    form: str = ""
    end: str = ""
    tail: bool = False
    words: bool = False
    run: int = 0
    tap: int = 0
    k_h: int = 0
    in_c: int = 0
    rows: int = 0
    stride_w: int = 0
    shifts: bool = False
    short: bool = False
    row_ends: bool = False
    kept: int = 0
    quads: int = 1
    fours: int = 1
    near: int = 0
    fixed: bool = False
    lined: bool = False
    rest: int = 0
    steps: int = 0
    pairs: int = 1
    shared: bool = False
    summed: int = 0
    alone: bool = False

    @property
    def cost_path(self) -> str:
        """What the costs of a path are filed under: blocks of two rows collect by rows too, taps apart one by one."""
        spread = self.path == "planar" and not self.run
        return "rows" if self.path in ("across", "word") else f"{self.path}_spread" if spread else self.path

    def work(self, instr: Instr) -> Mapping[str, float]:
        """Count runs of adjacent inputs that are collected, or taps, of paths that do so one by one; sums of inputs.

        Of fours of pixels the passes over pairs of channels, and the bytes of weights that are read from flash.
        """
        shape = Conv.of(instr)
        found = _passed(instr, self, shape) if instr.variant.endswith(_FORM) else {}
        if self.summed:
            pixels = float(shape.batch * shape.out_h * shape.out_w)
            found |= {"shifted_tiles": pixels * shape.out_c / _TILE, "shifted_patch": pixels * shape.inputs}
        if self.path not in ("point", "rows"):
            rows = shape.k_h * (shape.in_c if self.path in ("three", "planar") else 1)
            taps = 1 if self.path not in ("gather", "planar") or self.run else shape.k_w
            found["window_runs"] = float(shape.batch * shape.out_h * shape.out_w * rows * taps)
        return found

    @property
    def head(self) -> int:
        """Words of a pair of channels before those of its steps."""
        return 5 if self.fixed else 4

    @property
    def ends_bytes(self) -> int:
        """Bytes of biases and endings of a block of four channels."""
        return ends_bytes(fixed=self.fixed)

    def pair(self, form: str) -> PixelTile:
        """Return the product of two pixels with blocks of four channels in a form."""
        end, steps = (self.end, self.steps) if form == "dual" else ("s8", 0)
        return PixelTile(form, end, self.fixed, steps)

    @property
    def tiled(self) -> bool:
        """True where layers that differ in the end of codes alone share a function."""
        return self.form != "wide" and not self.shifts

    def product(self, form: str, *, many: bool) -> QuadTile:
        """Return the products of one or `many` fours of pixels with pairs of channels in a form."""
        by = "sums" if self.shifts else "multiplier" if self.fixed else "line" if self.lined else "scale"
        return QuadTile(form, by, self.end if form == "dual" else "s8", many)

    def planes(self, ky: int) -> tuple[tuple[int, int], ...]:
        """Return the channels of a row of the window on path "three", with their number among the rows."""
        return tuple((c, ky * self.in_c + c) for c in range(self.in_c))

    @property
    def ends_with_rows(self) -> bool:
        """True when no block of pixels holds some of two rows."""
        return self.row_ends

    @property
    def row_groups(self) -> int:
        """Groups of inputs on path "three": the outer columns of each row, and the middle ones of two rows."""
        return (self._row_steps + 1) // 2

    @property
    def row_padding(self) -> int:
        """Steps of two inputs on path "three" that fill its last group up."""
        return self._row_steps % 2

    @property
    def _row_steps(self) -> int:
        return self.rows + (self.rows + 1) // 2


def collecting(s: Conv) -> ConvPlan:
    """Choose how the inputs of a pixel are collected."""
    run = s.k_w * s.in_c
    if is_point(s):
        return ConvPlan(path="point", tail=s.in_c % GROUP != 0)
    dense = s.in_ch == 1 and s.in_col == s.in_c and (s.dil_w == 1 or s.k_w == 1)
    if dense and run % GROUP == 0:
        return ConvPlan(path="rows", words=s.in_c % GROUP == 0, run=GROUP if run == GROUP else 0)
    planar, rows = s.in_ch != 1 or s.in_c == 1, s.in_c * s.k_h
    three = planar and s.k_w == 3 and s.dil_w == s.in_col == 1 and s.stride_w in (1, 2)
    if three and rows <= _MAX_PLANAR_ROWS:
        return ConvPlan(path="three", k_h=s.k_h, in_c=s.in_c, rows=rows, stride_w=s.stride_w)
    if s.in_ch != 1 and s.in_c > 1:
        return ConvPlan(path="planar", run=s.k_w if s.in_col == 1 and (s.dil_w == 1 or s.k_w == 1) else 0)
    return ConvPlan(path="gather", run=run if dense else 0, tap=0 if dense or s.in_c < GROUP else s.in_c)


def collecting_quad(s: Conv, *, rests: bool = False) -> ConvPlan:
    """Choose how the inputs of four pixels are collected: of two rows where the rows do not hold whole blocks.

    With `rests` kernel rows of adjacent inputs need not be whole groups.
    """
    plan = replace(collecting(s), alone=s.out_c == 1)
    even = -(-s.out_w // _PIXELS) * _PIXELS <= _MOST_WASTE * s.out_w
    if rests and even and plan.path == "gather" and plan.run > GROUP:
        return ConvPlan(path="rows", rest=plan.run % GROUP, k_h=s.k_h, alone=plan.alone)
    if plan.path != "rows" or even:
        return plan
    return replace(plan, path="word" if plan.run and s.in_w >= s.k_w else "across")


def groups_of(plan: ConvPlan, shape: Conv) -> int:
    """Return the groups of four inputs of a pixel, with those of their sums."""
    return plan.summed + (plan.row_groups if plan.path == "three" else -(-shape.inputs // GROUP))


def collected(weights: np.ndarray, shape: Conv, path: str, rest: int = 0) -> np.ndarray:
    """Return conv_s8's weights[O, K] in the order in which the inputs are collected."""
    weights = weights.reshape(shape.out_c, shape.k_h, shape.k_w, shape.in_c)
    if rest:
        rows = weights.reshape(shape.out_c, shape.k_h, -1)
        parts = (rows[:, :, :-rest], rows[:, :, -rest:])
        return np.concatenate([part.reshape(shape.out_c, -1) for part in parts], axis=1)
    if path == "three":
        return _three(weights.transpose(0, 1, 3, 2))
    return (weights.transpose(0, 1, 3, 2) if path == "planar" else weights).reshape(len(weights), -1)


def _three(weights: np.ndarray) -> np.ndarray:
    """Reorder weights[O, kH, C, 3]: columns 0 and 2 of every row as pairs, then columns 1, two rows a pair."""
    rows = weights.reshape(len(weights), -1, 3)
    count = rows.shape[1]
    middle = np.pad(rows[:, :, 1], ((0, 0), (0, count % 2))).reshape(len(weights), -1, 2)
    pairs = np.concatenate((rows[:, :, 0::2], middle), axis=1)
    pairs = np.pad(pairs, ((0, 0), (0, pairs.shape[1] % 2), (0, 0)))
    return np.ascontiguousarray(pairs.reshape(len(weights), -1, 2, 2).transpose(0, 1, 3, 2)).reshape(len(weights), -1)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare conv_s8 by blocks of four channels."""
    shape = Conv.of(instr)
    plan = collecting(shape)
    weights = collected(constants["weights"], shape, plan.path)
    summed = summed_groups(weights, instr)
    stream = fours(weights, constants, instr, summed=summed)
    return Prepared(stream.constants, replace(plan, form=stream.form, end=ending(instr), summed=summed))


def scratch(instr: Instr) -> int:
    """Two pixels of inputs as int16, and as bytes where they are gathered."""
    plan = plan_of(instr, ConvPlan)
    return groups_of(plan, Conv.of(instr)) * (24 if plan.path in ("gather", "planar") else 16)


def prepare_quad(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare conv_s8 by pairs of channels."""
    shape = Conv.of(instr)
    plan = collecting_quad(shape)
    weights = collected(constants["weights"], shape, plan.path)
    summed = summed_groups(weights, instr)
    stream = pairs(weights, constants, instr, lines=True, summed=summed)
    end = ending(instr)
    end = {"u8": "n8", "v8": "s8"}.get(end, end) if stream.lined else end
    plan = replace(plan, form=stream.form, end=end, lined=stream.lined, row_ends=plan.path == "rows", summed=summed)
    return Prepared(stream.constants, plan)


def prepare_shift(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare conv_s8rs by pairs of channels; the bias is in its constant `offset`."""
    shape = Conv.of(instr)
    plan = collecting_quad(shape)
    plain: Arrays = {"bias": np.zeros(shape.out_c, np.int64), "scale": np.ones(shape.out_c, np.float32)}
    weights = collected(constants["weights"], shape, plan.path)
    less = weights.astype(np.int64) - instr.int_("w_zp")
    stream = pairs(weights, plain, instr, signed=False)
    offset = short_offset(*sums(less, instr), constants, instr)
    found = {"weights": stream.constants["weights"], **({} if offset is None else {"offset": offset})}
    plan = replace(plan, form=stream.form, end=ending(instr), shifts=True, short=offset is not None)
    return Prepared(found, plan)


def _quad_bytes(plan: ConvPlan, shape: Conv) -> int:
    """Four pixels of inputs as int16, and as bytes where they are gathered; at its edges also pieces of rows."""
    span = (3 * shape.stride_w + shape.k_w) * shape.in_c  # of one row under the windows of four pixels
    pieces = {"rows": span, "across": _PIXELS * shape.k_w * shape.in_c}
    pieces |= dict.fromkeys(("gather", "planar"), _PIXELS * GROUP * -(-shape.inputs // GROUP))
    return 8 * _PIXELS * groups_of(plan, shape) + pieces.get(plan.path, 0)


def quad_scratch(instr: Instr) -> int:
    """Return the bytes of inputs of four pixels, or of several fours, and of the weights that are kept."""
    plan = plan_of(instr, ConvPlan)
    return plan.kept + plan.quads * plan.fours * _quad_bytes(plan, Conv.of(instr))


def keep_quad(constants: Arrays, instr: Instr, scratch_bytes: int, near_bytes: int) -> Prepared | None:
    """Keep the weights of as many pairs of channels as there is room for, or compute more pixels at a time.

    That is done with fours of pixels where no more is read from flash then, and pairs of channels take no more than
    the `near_bytes` that its cache keeps. Else eight pixels are computed at a time, or the weights are kept.

    The weights of a pair are then read twice in a row, the second time from the flash cache: as if half of all pairs
    were kept. So is the code that collects pixels, which pays also where all are kept. Not of channels in several
    forms, nor where they are read a few times only, or a few of them.
    """
    plan, shape = plan_of(instr, ConvPlan), Conv.of(instr)
    words = {"dual": 1, "wide": 2}.get(plan.form, 0)
    reads = shape.batch * shape.out_h * shape.out_w / _PIXELS
    if words == 0 or plan.quads > 1 or plan.fours > 1:
        return None
    steps = _quad_steps(plan, shape)
    before, pair = 4 * words_before(steps, words), 4 * (plan.head + words * steps)
    fours = next((n for n in _FOURS if n * _quad_bytes(plan, shape) <= scratch_bytes), 1)
    batch = replace(plan, fours=fours, near=near_bytes // 4)
    in_batches = plan.path == "point" and pair <= near_bytes and fours > 1 and not wanted_bytes(instr)
    if reads < _FEW_READS:
        return Prepared({}, batch) if in_batches and reads > 1 else None

    def kept(plan: ConvPlan, pairs: int) -> Prepared | None:
        if before + pairs * pair == 0:
            return None
        stream = constants["weights"].view(np.int32)
        first = np.concatenate((np.array([pairs], np.int32), stream[min(before, 4) // 4 :]))
        return Prepared({"weights": first.view(constants["weights"].dtype)}, replace(plan, kept=before + pairs * pair))

    pairs = min(shape.out_c // 2, (scratch_bytes - before - _quad_bytes(plan, shape)) // pair)
    every, near = wanted_bytes(instr) or (0, 0)
    if 0 < every <= scratch_bytes:
        fitting = (n for n in _QUADS if every + near * (n // 2 - 1) <= scratch_bytes)
        return kept(replace(plan, quads=next(fitting)), shape.out_c // 2)
    if 0 < near <= scratch_bytes and (plan.path == "three" or 4 * pairs < shape.out_c):
        return Prepared({}, replace(plan, quads=2))
    if in_batches and _passes(batch, shape) * shape.out_c / 2 <= reads * (shape.out_c / 2 - pairs) + pairs:
        return Prepared({}, batch)
    if pairs < shape.out_c // 2 and pairs * pair < _FEW_BYTES:
        return None
    return kept(plan, pairs)


def _passes(plan: ConvPlan, shape: Conv) -> int:
    """Return how often all weights are read."""
    return shape.batch * -(-shape.out_h * shape.out_w // (_PIXELS * plan.fours))


def _passed(instr: Instr, plan: ConvPlan, shape: Conv) -> dict[str, float]:
    """Return fours of pixels times pairs of channels, their inputs, passes over pairs, and what these read of flash."""
    rows, width, pairs = shape.batch * shape.out_h, shape.out_w, -(-shape.out_c // 2)
    if not (plan.row_ends or (plan.path == "three" and plan.quads > 1)):
        rows, width = 1, rows * width
    fours, passes = (rows * -(-width // n) for n in (_PIXELS, _PIXELS * plan.fours * plan.quads))
    flash = instr.operand("weights").type.size_bytes - plan.kept
    found = {"quads": fours * pairs, "quad_products": fours * pairs * shape.inputs, "passes": passes * pairs}
    return {name: float(n) for name, n in {**found, "reread": passes * flash + plan.kept}.items()}


def _quad_steps(plan: ConvPlan, shape: Conv) -> int:
    return 2 * plan.summed + quad_step_count(shape.inputs if plan.path != "three" else plan.row_groups * GROUP)


def wanted_bytes(instr: Instr) -> tuple[int, ...]:
    """Return the bytes of scratch for eight pixels at a time, with all weights beside them and without.

    None where that is not for the layer: those of a row are four pixels at least, and a flash cache keeps the weights
    of a pair of channels. They lie one after another, in whole words, or are collected by code that is as long as the
    kernel's.
    """
    plan, s = plan_of(instr, ConvPlan), Conv.of(instr)
    steps = _quad_steps(plan, s)
    pair = 4 * (plan.head + steps)
    if plan.form != "dual" or plan.summed or s.out_c % 2 or s.out_w < _PIXELS or pair > _NEAR_BYTES:
        return ()
    flat = s.stride_h == s.stride_w == 1 and s.in_row == s.out_w * s.in_col and s.out_row == s.out_w * s.out_c
    whole = s.in_ring >= s.in_h and s.out_ring >= s.out_h
    if plan.path == "three" or (plan.path == "point" and not plan.tail and flat and whole):
        near = 2 * _quad_bytes(plan, s)
        return near + 4 * words_before(steps, 1) + s.out_c // 2 * pair, near
    return ()


def _shift_bytes(plan: ConvPlan, shape: Conv) -> int:
    """As of `_quad_bytes`, and the sums of four pixels."""
    return _quad_bytes(plan, shape) + 4 * _PIXELS * 2 * -(-shape.out_c // 2)


def shift_scratch(instr: Instr) -> int:
    """Return the bytes of inputs and sums of four pixels."""
    return _shift_bytes(plan_of(instr, ConvPlan), Conv.of(instr))


def accepts_quad(instr: Instr) -> bool:
    """Accept layers whose inputs of four pixels are few enough."""
    return accepts_any_zero(instr) and _is_small(instr, collecting_quad(Conv.of(instr)))


def accepts_rests(instr: Instr) -> bool:
    """Accept the same, and kernel rows that are not whole groups."""
    return accepts_any_zero(instr) and _is_small(instr, collecting_quad(Conv.of(instr), rests=True))


def _is_small(instr: Instr, plan: ConvPlan) -> bool:
    return _quad_bytes(plan, Conv.of(instr)) <= _SHIFT_BYTES


def modest_quad(instr: Instr) -> int:
    """Return the bytes of three input rows, or two pixels, as int16."""
    shape = Conv.of(instr)
    return max(2 * 3 * shape.in_w * shape.in_c, 2 * 8 * groups_of(plan_of(instr, ConvPlan), shape))


def _accepts_shift(instr: Instr) -> bool:
    """Accept any number of pixels: no variant for two of them stands after this one."""
    shape = Conv.of(instr)
    return accepts_any_zero(instr) and _shift_bytes(collecting_quad(shape), shape) <= _SHIFT_BYTES


def records(instr: Instr) -> Records | None:
    """Return those of blocks of four channels."""
    plan = instr.plan
    if not isinstance(plan, ConvPlan):
        return None
    return block_records(instr, plan.form, instr.int_("out_c"), plan.ends_bytes)


def quad_records(instr: Instr) -> Records | None:
    """Return those of pairs of channels."""
    plan, shape = instr.plan, Conv.of(instr)
    if not isinstance(plan, ConvPlan):
        return None
    inputs = shape.inputs if plan.path != "three" else plan.row_groups * GROUP
    return pair_records(instr, plan.form, shape.out_c, inputs, plan.head)


def _least_columns(instr: Instr) -> int:
    """Return four, of pixels that several fours may have in common."""
    return 4 if plan_of(instr, ConvPlan).quads > 1 else 1


def _whole_columns(instr: Instr) -> int:
    """Return the pixels that a pass over the weights is for, where those are several fours."""
    fours = plan_of(instr, ConvPlan).fours
    return _PIXELS * fours if fours > 1 else 1


def _leads(instr: Instr) -> tuple[int, int, float]:
    """Return what it takes to copy the weights that are kept."""
    return 0, 0, _COPY_CYCLES * plan_of(instr, ConvPlan).kept


def _channels(instr: Instr) -> int:
    """Return blocks of channels, unless the stream tells by a table where they begin."""
    plan = instr.plan
    return _BLOCK_CHANNELS if isinstance(plan, ConvPlan) and plan.form != "mixed" and not plan.shifts else 0


CONV = KernelVariant(
    "dsp", also=FPU, rank=10, header="glow_dsp_gemm.h", accepts=accepts_any_zero, prepare=prepare, packs=WEIGHTED,
    scratch_bytes=scratch, streams=True, row_block=2, columns=Columns(2), channels=_channels,
    reads=Reads(value_bytes=2), stated=Stated(macs=0.75, outputs=9), records=records,
)  # fmt: skip
QUAD = KernelVariant(
    "dsp", form=_FORM, also=FPU, slow_with=DUAL_ISSUE, template="{}_quad", rank=11, header="glow_dsp_quads_line.h",
    accepts=accepts_quad, prepare=prepare_quad, packs=WEIGHTED, scratch_bytes=quad_scratch, streams=True, row_block=4,
    columns=Columns(4, _least_columns, _whole_columns), channels=_channels,
    reads=Reads(at_once=2, value_bytes=2), stated=Stated(macs=0.7, outputs=9), modest_bytes=modest_quad,
    keeps=keep_quad, wanted_bytes=wanted_bytes, records=quad_records, leads=_leads,
)  # fmt: skip
SHIFT = replace(
    QUAD, accepts=_accepts_shift, prepare=prepare_shift, packs=SHIFTED, scratch_bytes=shift_scratch,
    header="glow_dsp_shift.h", stated=None, slow_with=frozenset(), modest_bytes=None, keeps=None,
    wanted_bytes=lambda _: (),
)  # fmt: skip

VARIANTS = {
    "conv_s8": (CONV, QUAD),
    "conv_s8rs": (SHIFT,),
}
