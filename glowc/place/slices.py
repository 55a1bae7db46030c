"""Slices: an inference in steps, each of which takes about as many cycles as it may; and shares of cores.

A step computes whole layers, or parts of one: rows by the row contract, columns of a row, units that a variant counts
by itself, turns of an outer loop, runs of elements. Parts of one core come in the order in which one call computes the
layer, so a plan that holds for layers holds for parts. Cores compute parts of a layer at once: its output lies apart
from its inputs, or each element over the one that it comes from, and each core has scratch of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise, zip_longest
from math import inf, prod

from glowc.kernels.choice import columns_of, placed, variant_of
from glowc.place.planning import Planned
from glowc.program.ir import (
    WHOLE,
    Advance,
    Buffer,
    BufferKind,
    Instr,
    Operand,
    Part,
    Program,
    Slices,
    Stage,
    scratch_of,
)
from glowc.program.kernel import get_kernel
from glowc.program.rows import is_dense, walked_roles

PROGRESS = "slices.progress"
_PROGRESS_BYTES = 4
_ALIGN_ELEMENTS = 16  # of a run of elements, where its length allows
_TURNS = 4  # of an outer loop that kernels take together
_CALL_CYCLES = 150  # that a part takes besides its share of the layer
_MOST_PARTS = 65_535
_GRAINS = (4, 2, 1)  # rows that kernels take together
_READ, _GATHERED = 8, 2  # pixels whose time it takes to read weights, channels whose time it takes to gather a pixel
_WORTH = 0.9  # of the time of one core, above which one computes a layer


@dataclass(frozen=True, slots=True)
class Long:
    """A layer whose smallest part is predicted to take more cycles than a step may."""

    name: str
    cycles: float


@dataclass(frozen=True, slots=True)
class Sliced:
    """A plan with its slices, the predicted cycles of the longest step, and the layers that are too long."""

    planned: Planned
    longest: float
    long: tuple[Long, ...]


class _By(Enum):
    """What the parts of an instruction are parts of."""

    NOTHING = "nothing"
    ROWS = "rows"
    COLUMNS = "columns"
    CHANNELS = "channels"
    UNITS = "units"
    TURNS = "turns"
    RUNS = "runs"


@dataclass(frozen=True, slots=True)
class _Cut:
    """An instruction as so many `units` of at most equal cost, `count` of them a part; `cycles` are those of a unit.

    `columns` and `channels` are those of a unit of a row, 0 is all; channels alone are those of all pixels. Units
    come in groups of `period`; the first `leading` of a group take `more` cycles besides, which may be negative.
    """

    by: _By = _By.NOTHING
    units: int = 1
    count: int = 1
    cycles: float = 0.0
    columns: int = 0
    channels: int = 0
    period: int = 1
    leading: int = 0
    more: float = 0.0

    def cost(self, begin: int, end: int) -> float:
        """Return the cycles of the units from `begin` to `end`."""
        leading = sum(unit % self.period < self.leading for unit in range(begin, end)) if self.leading else 0
        return self.cycles * (end - begin) + self.more * leading

    @property
    def end(self) -> int:
        """Where the last part ends."""
        return WHOLE if self.by is _By.UNITS else self.units


def sliced(planned: Planned, cycles: Sequence[float], bound: float, most: float, cores: int = 1) -> Sliced:
    """Return the plan in steps of at most `bound` cycles, inf: one; `cycles` are those predicted of each instruction.

    Layers are too long whose smallest part takes more than `most`. The plan has no segments, regions or markers. Its
    arena grows by the bytes that keep the stage which comes next, where there are several steps. Instructions with
    shares are those of `cores`.
    """
    program = planned.program
    instrs, walks, ends = list(program.instrs), dict[int, tuple[Advance, ...]](), dict[int, int]()
    stages, long, single = list[tuple[Stage, float]](), list[Long](), set[int]()
    for index, (instr, taken) in enumerate(zip(program.instrs, cycles, strict=True)):
        if taken > bound and instr.shares == 1 and variant_of(instr).columns and variant_of(instr).row_block > 1:
            instrs[index] = instr = _in_one_row(instr)
        cut = _cut_of(program, instr, taken * variant_of(instr).doubt(instr), bound)
        if cut.by is _By.RUNS:
            instrs[index], walks[index] = _run_of(instr, cut.units)
        elif cut.by is not _By.NOTHING:
            instrs[index] = replace(instr, cut=True, columns=cut.columns, channels=cut.channels)
            ends |= {index: cut.end} if cut.by is not _By.ROWS else {}
        if cut.more:
            single.add(index)
        own = list(_stages(instr, index, cut))
        largest = max(cost for _, cost in own)
        if largest > most:
            long.append(Long(instr.name, largest))
        stages += own
    steps = list(_steps(stages, bound, single))
    progress = PROGRESS if bound < inf else ""
    made = Slices(tuple(tuple(stage for stage, _ in step) for step in steps), walks, ends, progress, cores)
    longest = max((sum(cost for _, cost in step) for step in steps), default=0.0)
    return Sliced(
        _with_slices(replace(planned, program=replace(program, instrs=tuple(instrs))), made), longest, tuple(long)
    )


def shared(program: Program, cores: int, cycles: Sequence[float], fork: float) -> Program:
    """Return the program whose instructions have shares, of so many cores, where that pays.

    `cycles` are those predicted of each instruction, `fork` those that it takes to begin and to end a stage of several
    cores. Their scratch is that of all shares, which begin at multiples of its alignment.
    """
    instrs, buffers = list(program.instrs), dict(program.buffers)
    for index, (instr, taken) in enumerate(zip(program.instrs, cycles, strict=True)):
        if instr.is_marker or taken < fork or _writes_over_inputs(program, instr):
            continue
        several = replace(instr, shares=cores)
        longest = max(cost for _, cost in _stages(several, index, _share(program, several, taken, inf)))
        if longest + fork < _WORTH * taken:
            instrs[index] = several
            for operand in (o for o in instr.operands if o.role == "scratch"):
                buffers[operand.buffer] = scratch_of(several, buffers[operand.buffer])
    return replace(program, instrs=tuple(instrs), buffers=buffers)


def _writes_over_inputs(program: Program, instr: Instr) -> bool:
    """Say whether outputs lie over inputs in another way than in place, as in a copy that moves a state on."""
    in_place = get_kernel(instr.kernel).in_place

    def place(operand: Operand) -> tuple[str, int, int]:
        root, offset = program.root(operand.buffer)
        return root, offset, offset + operand.type.size_bytes

    for out in (o for o in instr.operands if o.access.writes):
        for source in (o for o in instr.operands if o.access.reads and o is not out):
            (root, begin, end), (other, first, last) = place(out), place(source)
            same = source.role in in_place and (begin, end) == (first, last)
            if root == other and begin < last and first < end and not same:
                return True
    return False


def _cut_of(program: Program, instr: Instr, cycles: float, bound: float) -> _Cut:
    """Return the parts of an instruction, whole where it takes no longer than a step may."""
    if instr.shares > 1:
        return _share(program, instr, cycles, bound)
    whole = _Cut(units=_rows(instr), count=_rows(instr), cycles=cycles / _rows(instr))
    found = _cut(program, instr, cycles, bound - _CALL_CYCLES) if cycles > bound else whole
    return found if found.units > found.count else whole


def _share(program: Program, instr: Instr, cycles: float, bound: float) -> _Cut:
    """Return the parts of an instruction that cores share, each core with parts of at most `bound` cycles."""
    most = min(bound - _CALL_CYCLES, cycles / instr.shares)
    found = [_cut(program, instr, cycles, most)]
    if instr.rows is not None:
        rows, columns = _rows(instr), _columns(instr, cycles / _rows(instr), most)
        found = [_by(_By.ROWS, rows, cycles / rows, most)]
        found += [_in_columns(instr, rows, columns, cycles, most)] if columns else []
        found += _even_columns(instr, cycles) + _even_channels(instr, cycles)
    within = [cut for cut in found if cut.cycles <= bound - _CALL_CYCLES] or found
    cut = min(within, key=lambda cut: _longest_share(instr, cut))
    return _by(cut.by, cut.units, cut.cycles, bound - _CALL_CYCLES, cut.columns, cut.channels)


def _even_columns(instr: Instr, cycles: float) -> list[_Cut]:
    """Return the columns by which parts of a row are about as many as cores."""
    columns, width = columns_of(instr), instr.int_("out_w")
    if columns is None:
        return []
    step = -(-width // (instr.shares * columns.step)) * columns.step
    if step >= width or (width % step and width % step < columns.least(instr)):
        return []
    parts = _rows(instr) * -(-width // step)
    return [_by(_By.COLUMNS, parts, cycles * step / (width * _rows(instr)), inf, step)]


def _even_channels(instr: Instr, cycles: float) -> list[_Cut]:
    """Return the blocks of channels of all pixels that are as many as cores."""
    least, channels = variant_of(instr).channels(instr), int(instr.params.get("out_c", 0))
    some = -(-channels // (instr.shares * least)) * least if least else channels
    if some >= channels or channels % some == 1:
        return []
    return [_by(_By.CHANNELS, -(-channels // some), cycles * some / channels, inf, 0, some)]


def _longest_share(instr: Instr, cut: _Cut) -> float:
    """Return the cycles of the core that computes most.

    That is with what is done once more for each part: weights are read, or pixels gathered.
    """
    most = max(end - begin for begin, end in _ranges(cut, instr.shares))
    if cut.by is _By.CHANNELS:
        return most * cut.cycles * (1 + _GATHERED / cut.channels)
    pixels = most * (cut.columns or int(instr.params.get("out_w", 1)))
    again = 1 + _READ / pixels if variant_of(instr).channels(instr) else 1
    return most * (cut.cycles * again + (_CALL_CYCLES if cut.by is _By.COLUMNS else 0))


def _ranges(cut: _Cut, cores: int) -> list[tuple[int, int]]:
    """Return the units of each core, in as large grains as leave the most units of one core the same."""
    most = -(-cut.units // cores)
    for grain in _GRAINS:
        grains = -(-cut.units // grain)
        ends = [min(cut.units, -(-grains * core // cores) * grain) for core in range(cores + 1)]
        if max(end - begin for begin, end in pairwise(ends)) <= most:
            break
    return [(begin, end) for begin, end in pairwise(ends) if begin < end]


def _with_slices(planned: Planned, slices: Slices) -> Planned:
    """Return a plan with the slices of its program, and a place for what keeps the stage which comes next."""
    program, plan = replace(planned.program, slices=slices), planned.plan
    if not slices.progress:
        return replace(planned, program=program)
    place = -(-plan.arena_bytes // _PROGRESS_BYTES) * _PROGRESS_BYTES
    buffer = Buffer(PROGRESS, BufferKind.ACTIVATION, _PROGRESS_BYTES, _PROGRESS_BYTES)
    program = replace(program, buffers={**program.buffers, PROGRESS: buffer})
    offsets: Mapping[str, int] = {**plan.offsets_bytes, PROGRESS: place}
    return replace(
        planned, program=program, plan=replace(plan, offsets_bytes=offsets, arena_bytes=place + _PROGRESS_BYTES)
    )


def _rows(instr: Instr) -> int:
    return instr.rows[1] - instr.rows[0] if instr.rows is not None else 1


def _cut(program: Program, instr: Instr, cycles: float, bound: float) -> _Cut:
    """Return the parts of an instruction that takes so many cycles, each of at most `bound` where that is possible."""
    period, leading, more = variant_of(instr).leads(instr) if instr.shares == 1 else (0, 0, 0.0)
    if (units := variant_of(instr).units(instr)) and instr.shares == 1:
        leads = units // period * leading if period else 0
        more = min(more, cycles / 2 / max(1, leads))
        each = (cycles - leads * more) / (units - leads)
        return _leading(_by(_By.UNITS, units, each, bound), period, leading, more - each if leads else 0.0)
    more = min(more, cycles / 2)
    if instr.rows is not None:
        rows, alike = _rows(instr), cycles - more
        columns = _columns(instr, alike / rows, bound - more)
        if not columns:
            return _leading(_by(_By.ROWS, rows, alike / rows, bound), rows, 1, more)
        found = _in_columns(instr, rows, columns, alike, bound, more)
        blocks = -(-int(instr.params.get("out_c", 1)) // found.channels) if found.channels else 1
        return _leading(found, found.units, blocks, more / blocks)
    loop = get_kernel(instr.kernel).outer_of(instr.params)
    if loop is not None:
        turns = loop.turns(instr.params)
        found = _by(_By.TURNS, turns, cycles / turns, bound)
        return replace(found, count=found.count // _TURNS * _TURNS or found.count)
    runs = _runs(program, instr, cycles, bound)
    return _Cut(_By.RUNS, runs, 1, cycles / runs) if runs > 1 else _Cut(cycles=cycles)


def _leading(cut: _Cut, period: int, leading: int, more: float) -> _Cut:
    """Return parts of one unit each, of which some take more cycles."""
    return replace(cut, count=1, period=period, leading=leading, more=more) if more else cut


def _in_one_row(instr: Instr) -> Instr:
    """Return a pointwise layer whose pixels lie one after another as one of a single row: it is divided more evenly.

    Its kernel takes pixels of two rows together anyway.
    """
    p = instr.params
    alike = all(p.get(name) == 1 for name in ("batch", "k_h", "k_w", "stride_h", "stride_w", "in_ch"))
    if not alike or p["pad_top"] or p["pad_left"] or p["descending"] or instr.rows != (0, p["out_h"]):
        return instr
    width, height = instr.int_("out_w"), instr.int_("out_h")
    dense = p["in_row"] == width * instr.int_("in_col") and p["out_row"] == width * instr.int_("out_c")
    if not dense or instr.int_("in_ring") < height or instr.int_("out_ring") < height:
        return instr
    pixels = width * height
    row = {f"{side}_row": instr.int_(f"{side}_row") * height for side in ("in", "out")}
    one = dict.fromkeys(("in_h", "out_h", "in_ring", "out_ring"), 1)
    return replace(instr, params={**p, **one, **row, "in_w": pixels, "out_w": pixels}, rows=(0, 1))


def _in_columns(instr: Instr, rows: int, columns: int, cycles: float, bound: float, more: float = 0.0) -> _Cut:
    """Return parts of rows of so many columns, and of some channels of them where all take too long.

    Those of the first pixels take `more`.
    """
    width, outputs = instr.int_("out_w"), int(instr.params.get("out_c", 1))
    unit = cycles / rows * columns / width
    channels = _channels(instr, unit + more, bound)
    blocks = -(-outputs // channels) if channels else 1
    found = _by(_By.COLUMNS, rows * -(-width // columns) * blocks, unit * (channels or outputs) / outputs, bound)
    return replace(found, columns=columns, channels=channels)


def _by(by: _By, units: int, cycles: float, bound: float, columns: int = 0, channels: int = 0) -> _Cut:
    """Return parts of as many units, each of so many cycles, as are within the bound; at least one."""
    count = units if bound == inf else max(1, min(units, int(bound / cycles)))
    return _Cut(by, units, count, cycles, columns, channels)


def _columns(instr: Instr, cycles: float, bound: float) -> int:
    """Return how many columns of a row that takes so many cycles a part has, 0: all, and no channels of theirs."""
    columns, width = columns_of(instr), instr.int_("out_w")
    if cycles <= bound or columns is None:
        return 0
    fits = [n for n in range(columns.step, width, columns.step) if width % n == 0 or width % n >= columns.least(instr)]
    several = columns.whole(instr)
    whole = [n for n in fits if n % several == 0] or ([] if width <= several else fits)
    if least := variant_of(instr).channels(instr):
        part = cycles * min(whole, default=width) / width * least / instr.int_("out_c")
        smallest = min(whole if part <= bound else fits, default=width)
    else:
        whole, smallest = fits, min(fits, default=0)
    return next((n for n in reversed(whole) if cycles * n / width <= bound), smallest)


def _channels(instr: Instr, cycles: float, bound: float) -> int:
    """Return how many output channels of columns that take so many cycles a part has, 0: all.

    What is left of them is none, or a pair at least.
    """
    least, channels = variant_of(instr).channels(instr), int(instr.params.get("out_c", 0))
    if cycles <= bound or not least:
        return 0
    fits = [n for n in range(least, channels, least) if channels % n != 1]
    return next((n for n in reversed(fits) if cycles * n / channels <= bound), min(fits, default=0))


def _runs(program: Program, instr: Instr, cycles: float, bound: float) -> int:
    """Return into how many runs of elements an elementwise instruction is cut, 1 where it is not."""
    kernel = get_kernel(instr.kernel)
    if not kernel.length or not is_dense(kernel, instr):
        return 1
    walked = (*walked_roles(kernel, instr), "out")
    for operand in instr.operands:
        const = program.buffers[program.root(operand.buffer)[0]].kind is BufferKind.CONST
        if (operand.role in walked) == const:
            return 1
    period = instr.int_(kernel.period) if kernel.period else 1
    groups, least = prod(instr.operand("out").type.shape) // period, max(1, int(cycles / bound))
    counts = [d for d in range(least, min(groups, _MOST_PARTS) + 1) if groups % d == 0 and cycles / d <= bound]
    counts = [d for d in counts if d % instr.shares == 0] or counts
    aligned = [d for d in counts if groups // d * period % _ALIGN_ELEMENTS == 0]
    return min(aligned or counts, default=1)


def _run_of(instr: Instr, runs: int) -> tuple[Instr, tuple[Advance, ...]]:
    """Return an elementwise instruction that computes one of so many runs of elements, and what advances with them."""
    kernel = get_kernel(instr.kernel)
    walked = (*walked_roles(kernel, instr), "out")

    def run(operand: Operand) -> Operand:
        if operand.role not in walked:
            return operand
        return replace(operand, type=operand.type.with_shape((prod(operand.type.shape) // runs,)))

    operands = tuple(map(run, instr.operands))
    params = {**instr.params, kernel.length: instr.int_(kernel.length) // runs}
    advances = tuple(Advance(o.role, o.type.size_bytes, runs) for o in operands if o.role in walked)
    return placed(replace(instr, operands=operands, params=params)), advances


def _stages(instr: Instr, index: int, cut: _Cut) -> Iterator[tuple[Stage, float]]:
    """Yield the stages of an instruction: the next part of each core; and the cycles of the longest of these."""
    shares = _ranges(cut, instr.shares) if instr.shares > 1 else [(0, cut.units)]
    for parts in zip_longest(*(_parts(instr, index, cut, span) for span in shares)):
        found = [part for part in parts if part is not None]
        yield tuple(part for part, _ in found), max(cost for _, cost in found)


def _parts(instr: Instr, index: int, cut: _Cut, units: tuple[int, int]) -> Iterator[tuple[Part, float]]:
    """Yield parts of an instruction in the order in which one call computes these units, and the cycles of each."""
    first, last = units
    backwards = cut.by is _By.ROWS and bool(instr.params.get("descending", 0))
    for begin in range(first, last, cut.count):
        end = min(last, begin + cut.count)
        span = (cut.units - end, cut.units - begin) if backwards else (begin, end)
        taken = cut.cost(begin, end) + (_CALL_CYCLES if cut.by is not _By.NOTHING else 0)
        yield Part(index, *(_position(at, cut) for at in span)), taken


def _position(unit: int, cut: _Cut) -> int:
    """Return where a unit begins: of units that a variant counts by itself in parts of WHOLE, rounded up."""
    return -(-unit * cut.end // cut.units)


def _steps(
    stages: Sequence[tuple[Stage, float]], bound: float, single: Collection[int]
) -> Iterator[list[tuple[Stage, float]]]:  # fmt: skip
    """Yield as many stages at a time as are within the bound together; those of `single` units are joined again."""
    step: list[tuple[Stage, float]] = []
    taken = 0.0
    for stage, cost in stages:
        joined = _joined(step[-1][0], stage) if step and stage[0].index in single else None
        more = cost - _CALL_CYCLES if joined else cost
        if step and taken + more > bound:
            yield step
            step, taken, joined, more = [], 0.0, None, cost
        taken += more
        if joined:
            step[-1] = joined, step[-1][1] + more
        else:
            step.append((stage, cost))
    if step:
        yield step


def _joined(stage: Stage, other: Stage) -> Stage | None:
    """Return two stages as one where the second one computes what comes after the first."""
    if len(stage) != 1 or len(other) != 1 or stage[0].index != other[0].index:
        return None
    (one,), (two,) = stage, other
    if one.end == two.begin:
        return (replace(one, end=two.end),)
    return (replace(one, begin=two.begin),) if two.end == one.begin else None
