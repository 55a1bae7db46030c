"""Slices: an inference in steps, each of which takes about as many cycles as it may.

A step computes whole layers, or parts of one: rows by the row contract, columns of a row, units that a variant counts
by itself, turns of an outer loop, runs of elements. Parts come in the order in which one call computes the layer, so a
plan that holds for layers holds for parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from glowc.kernels.choice import variant_of
from glowc.place.planning import Planned
from glowc.program.ir import WHOLE, Advance, Buffer, BufferKind, Instr, Operand, Part, Program, Slices
from glowc.program.kernel import get_kernel
from glowc.program.rows import is_dense, walked_roles

PROGRESS = "slices.progress"
_PROGRESS_BYTES = 4
_ALIGN_ELEMENTS = 16  # of a run of elements, where its length allows
_TURNS = 4  # of an outer loop that kernels take together
_CALL_CYCLES = 150  # that a part takes besides its share of the layer
_MOST_PARTS = 65_535


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
    UNITS = "units"
    TURNS = "turns"
    RUNS = "runs"


@dataclass(frozen=True, slots=True)
class _Cut:
    """An instruction as so many `units` of at most equal cost, `count` of them a part; `cycles` are those of a unit.

    `columns` and `channels` are those of a unit of a row, 0 is all.
    """

    by: _By = _By.NOTHING
    units: int = 1
    count: int = 1
    cycles: float = 0.0
    columns: int = 0
    channels: int = 0

    @property
    def end(self) -> int:
        """Where the last part ends."""
        return WHOLE if self.by is _By.UNITS else self.units


def sliced(planned: Planned, cycles: Sequence[float], bound: float, most: float) -> Sliced:
    """Return the plan in steps of at most `bound` cycles; `cycles` are those predicted of each instruction.

    Layers are too long whose smallest part takes more than `most`.
    The plan has no segments, regions or markers. Its arena grows by the bytes that keep the part which comes next.
    """
    program = planned.program
    instrs, walks, ends = list(program.instrs), dict[int, tuple[Advance, ...]](), dict[int, int]()
    parts, long = list[tuple[Part, float]](), list[Long]()
    for index, (instr, taken) in enumerate(zip(program.instrs, cycles, strict=True)):
        whole = _Cut(units=_rows(instr), count=_rows(instr), cycles=taken / _rows(instr))
        found = _cut(program, instr, taken, bound - _CALL_CYCLES) if taken > bound else whole
        cut = found if found.units > found.count else whole
        if cut.by is _By.RUNS:
            instrs[index], walks[index] = _run_of(instr, cut.units)
        elif cut.by is not _By.NOTHING:
            instrs[index] = replace(instr, cut=True, columns=cut.columns, channels=cut.channels)
            ends |= {index: cut.end} if cut.by is not _By.ROWS else {}
        own = list(_parts(instr, index, cut))
        largest = max(cost for _, cost in own)
        if largest > most:
            long.append(Long(instr.name, largest))
        parts += own
    steps = list(_steps(parts, bound))
    made = Slices(tuple(tuple(part for part, _ in step) for step in steps), walks, ends, PROGRESS)
    longest = max((sum(cost for _, cost in step) for step in steps), default=0.0)
    return Sliced(
        _with_slices(replace(planned, program=replace(program, instrs=tuple(instrs))), made), longest, tuple(long)
    )


def _with_slices(planned: Planned, slices: Slices) -> Planned:
    """Return a plan with the slices of its program, and a place for what keeps the part which comes next."""
    program, plan = planned.program, planned.plan
    place = -(-plan.arena_bytes // _PROGRESS_BYTES) * _PROGRESS_BYTES
    buffer = Buffer(PROGRESS, BufferKind.ACTIVATION, _PROGRESS_BYTES, _PROGRESS_BYTES)
    program = replace(program, slices=slices, buffers={**program.buffers, PROGRESS: buffer})
    offsets: Mapping[str, int] = {**plan.offsets_bytes, PROGRESS: place}
    return replace(
        planned, program=program, plan=replace(plan, offsets_bytes=offsets, arena_bytes=place + _PROGRESS_BYTES)
    )


def _rows(instr: Instr) -> int:
    return instr.rows[1] - instr.rows[0] if instr.rows is not None else 1


def _cut(program: Program, instr: Instr, cycles: float, bound: float) -> _Cut:
    """Return the parts of an instruction that takes so many cycles, each of at most `bound` where that is possible."""
    if units := variant_of(instr).units(instr):
        return _by(_By.UNITS, units, cycles / units, bound)
    if instr.rows is not None:
        rows = _rows(instr)
        columns = _columns(instr, cycles / rows, bound)
        return (
            _in_columns(instr, rows, columns, cycles, bound) if columns else _by(_By.ROWS, rows, cycles / rows, bound)
        )
    loop = get_kernel(instr.kernel).outer_of(instr.params)
    if loop is not None:
        turns = instr.int_(loop.count)
        found = _by(_By.TURNS, turns, cycles / turns, bound)
        return replace(found, count=found.count // _TURNS * _TURNS or found.count)
    runs = _runs(program, instr, cycles, bound)
    return _Cut(_By.RUNS, runs, 1, cycles / runs) if runs > 1 else _Cut(cycles=cycles)


def _in_columns(instr: Instr, rows: int, columns: int, cycles: float, bound: float) -> _Cut:
    """Return parts of rows of so many columns, and of some channels of them where all take too long."""
    width, outputs = instr.int_("out_w"), int(instr.params.get("out_c", 1))
    unit = cycles / rows * columns / width
    channels = _channels(instr, unit, bound)
    blocks = -(-outputs // channels) if channels else 1
    found = _by(_By.COLUMNS, rows * -(-width // columns) * blocks, unit * (channels or outputs) / outputs, bound)
    return replace(found, columns=columns, channels=channels)


def _by(by: _By, units: int, cycles: float, bound: float) -> _Cut:
    """Return parts of as many units, each of so many cycles, as are within the bound; at least one."""
    return _Cut(by, units, max(1, min(units, int(bound / cycles))), cycles)


def _columns(instr: Instr, cycles: float, bound: float) -> int:
    """Return how many columns of a row that takes so many cycles a part has, 0: all, and no channels of theirs."""
    columns, width = variant_of(instr).columns, instr.int_("out_w")
    if cycles <= bound or columns is None:
        return 0
    fits = [n for n in range(columns.step, width, columns.step) if width % n == 0 or width % n >= columns.least(instr)]
    smallest = min(fits, default=width if variant_of(instr).channels(instr) else 0)
    return next((n for n in reversed(fits) if cycles * n / width <= bound), smallest)


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
    n, least = prod(instr.operand("out").type.shape), max(1, int(cycles / bound))
    counts = [d for d in range(least, min(n, _MOST_PARTS) + 1) if n % d == 0 and cycles / d <= bound]
    aligned = [d for d in counts if n // d % _ALIGN_ELEMENTS == 0]
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
    return replace(instr, operands=operands, params=params), advances


def _parts(instr: Instr, index: int, cut: _Cut) -> Iterator[tuple[Part, float]]:
    """Yield the parts of an instruction in the order in which one call computes them, and the cycles of each."""
    begins = range(0, cut.units, cut.count)
    backwards = cut.by is _By.ROWS and bool(instr.params.get("descending", 0))
    for begin in begins:
        end = min(cut.units, begin + cut.count)
        span = (cut.units - end, cut.units - begin) if backwards else (begin, end)
        taken = cut.cycles * (end - begin) + (_CALL_CYCLES if cut.by is not _By.NOTHING else 0)
        yield Part(index, *(_position(at, cut) for at in span)), taken


def _position(unit: int, cut: _Cut) -> int:
    """Return where a unit begins: of units that a variant counts by itself in parts of WHOLE, rounded up."""
    return -(-unit * cut.end // cut.units)


def _steps(parts: Sequence[tuple[Part, float]], bound: float) -> Iterator[list[tuple[Part, float]]]:
    """Yield as many parts at a time as are within the bound together."""
    step: list[tuple[Part, float]] = []
    for part in parts:
        if step and sum(cost for _, cost in step) + part[1] > bound:
            yield step
            step = []
        step.append(part)
    if step:
        yield step
