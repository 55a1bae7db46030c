"""Streaming: runs of instructions become segments whose tensors are rings of a few rows.

`Streamer.segment` works out one segment, `Streamer.apply` puts a choice of them into the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from glowc.place.stream.model import (
    Companions,
    Model,
    Outside,
    Ring,
    Source,
    Stage,
    Timeline,
    order_rows,
    possible_companions,
)
from glowc.place.stream.parts import Part, parts_of
from glowc.place.stream.share import best_merges, forbidden, sizes_of
from glowc.program.ir import Advance, Buffer, BufferKind, Instr, Program, Segment
from glowc.program.kernel import get_kernel
from glowc.program.lifetimes import dies_before, root_lifetimes
from glowc.program.rows import RowInput

_MOST_STEPS = 65_535


@dataclass(frozen=True, slots=True)
class Streamed:
    """A segment worked out: instructions [begin, end) of the program become `parts` with `rings`."""

    begin: int
    end: int
    parts: tuple[Part, ...]
    model: Model
    steps: tuple[int, ...]
    rings: tuple[Ring, ...]
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Distance:
    """Forbidden is low < offset[a] - offset[b] < high; None: the two never hold data at the same time."""

    a: str
    b: str
    interval: tuple[int, int] | None


class Streamer:
    """Segments of one program (ordered, nothing shared in place yet, no markers)."""

    def __init__(self, program: Program, *, fed: bool = False, whole: Mapping[str, Instr] | None = None) -> None:
        """Note what `program` is made of; `whole` are its instructions, by name, in variants that need not stream."""
        self.program, self.whole = program, whole or {}
        self.fed = program.inputs[0].buffer if fed else None
        self.spans = root_lifetimes(program)
        writers: dict[str, int] = {}
        for instr in program.instrs:
            for root in {program.root(o.buffer)[0] for o in instr.operands if o.access.writes}:
                writers[root] = writers.get(root, 0) + 1
        self.parts = [parts_of(program, instr, writers) for instr in program.instrs]

    @cached_property
    def last_reader(self) -> int:
        """The last instruction that reads the input that is fed, -1 when none is."""
        return self.spans[self.fed][1] - 1 if self.fed is not None else -1

    def _is_callers(self, root: str) -> bool:
        return root != self.fed and root in self.program.buffers and self.program.is_callers(root)

    def live_besides(self, begin: int, end: int) -> int:
        """Bytes of the roots that live through [begin, end) without being used there."""
        used = {self.program.root(o.buffer)[0] for i in self.program.instrs[begin:end] for o in i.operands}
        used |= {r for r in self.spans if self._is_callers(r)}
        alive = (r for r, (first, last) in self.spans.items() if first < end and last > begin and r not in used)
        scratch = scratch_of(self.program, begin, end)
        return sum(self.program.buffers[r].size_bytes for r in alive) + (scratch.size_bytes if scratch else 0)

    def segment(self, begin: int, end: int) -> Streamed | None:
        """Return the segment of instructions [begin, end), None when they cannot run row by row."""
        parts = [part for group in self.parts[begin:end] for part in group]
        if not all(self.parts[begin:end]):
            return None
        model = self._model(parts, begin, end)
        if model is None or (model.fed is not None and model.fed.planes > 1):
            return None
        if max(s.rows for s in model.stages) < 2 or sum(s.rows for s in model.stages) > _MOST_STEPS:
            return None
        companions: Companions = ()
        timeline = Timeline(model, order_rows(model))
        rings = timeline.rings({})
        for pair in possible_companions(model):
            tried = Timeline(model, order_rows(model, (*companions, pair)))
            other = tried.rings({})
            if sum(r.size_bytes for r in other) < sum(r.size_bytes for r in rings):
                companions, timeline, rings = (*companions, pair), tried, other
        rings = timeline.rings(best_merges(timeline))
        inside = [r for r in rings if not self._is_callers(r.buffer)]
        peak = sizes_of(inside, len(timeline.steps)) + self.live_besides(begin, end)
        return Streamed(begin, end, tuple(parts), model, tuple(timeline.steps), tuple(rings), peak)

    def _model(self, parts: Sequence[Part], begin: int, end: int) -> Model | None:
        """Return the stages, None when two instructions see the rows of a tensor in different ways."""
        program = self.program
        outs = [_root(program, p.instr.operand(p.out_role).buffer, p) for p in parts]
        stages: list[Stage] = []
        outside: dict[str, Outside] = {}
        for i, part in enumerate(parts):
            sources = []
            for wanted in part.form.inputs:
                name = _root(program, part.instr.operand(wanted.role).buffer, part)
                producer = outs[:i].index(name) if name in outs[:i] else None
                sources.append(Source(wanted.role, name, producer, wanted.windows))
                if producer is not None and not _same_rows(stages[producer], wanted):
                    return None
                if producer is None:
                    dies = dies_before(program, self.spans, name, end) and not program.is_callers(name)
                    tensor = Outside(name, wanted.rows, wanted.row_bytes, wanted.planes, dies, fed=name == self.fed)
                    if outside.setdefault(name, tensor) != tensor:
                        return None
            out = outs[i]
            leaves = out in self.spans and not dies_before(program, self.spans, out, end)
            over = tuple(s.buffer for s in sources if s.role in part.over and s.producer is not None)
            stages.append(Stage(out, part.form.rows, part.form.row_bytes, tuple(sources), leaves, part.sums, over))
        return Model(tuple(stages), outside)

    def apply(self, segments: Sequence[Streamed]) -> Program:
        """Return the program with these segments in it; they are in order and do not overlap."""
        buffers = dict(self.program.buffers)
        instrs: list[Instr] = []
        made: list[Segment] = []
        at = 0
        for segment in segments:
            instrs += self.program.instrs[at : segment.begin]
            begin = len(instrs)
            steps = _Rewriter(self.program, segment, buffers)
            instrs += share_scratch(steps.instrs(), scratch_of(self.program, segment.begin, segment.end))
            made.append(Segment(begin, len(instrs), segment.steps, steps.advances(), steps.feed(), steps.progress()))
            at = segment.end
        instrs += self.program.instrs[at:]
        used = {o.buffer for i in instrs for o in i.operands}
        buffers = {n: b for n, b in buffers.items() if b.kind is not BufferKind.SCRATCH or n in used}
        return replace(self.program, instrs=tuple(instrs), buffers=buffers, segments=tuple(made))


def scratch_of(program: Program, begin: int, end: int) -> Buffer | None:
    """Return the largest scratch of instructions [begin, end); it serves all: none is kept from call to call."""
    names = [o.buffer for i in program.instrs[begin:end] for o in i.operands if o.role == "scratch"]
    return max((program.buffers[n] for n in names), key=lambda b: (b.size_bytes, b.name), default=None)


def share_scratch(instrs: Sequence[Instr], scratch: Buffer | None) -> list[Instr]:
    """Return the instructions with their scratch in one buffer."""
    if scratch is None:
        return list(instrs)
    return [
        replace(i, operands=tuple(replace(o, buffer=scratch.name) if o.role == "scratch" else o for o in i.operands))
        for i in instrs
    ]


def distances(segment: Streamed) -> list[Distance]:
    """Return how close any two buffers of a segment may come, from the steps at which their rows hold data."""
    steps = len(segment.steps)
    hulls = [(r, r.hull(steps)) for r in segment.rings]
    result = []
    for i, (a, of_a) in enumerate(hulls):
        for b, of_b in hulls[i + 1 :]:
            interval = forbidden(of_a, of_b)
            if interval is None:
                result.append(Distance(a.buffer, b.buffer, None))
            elif interval[0] > -a.size_bytes or interval[1] < b.size_bytes:
                result.append(Distance(a.buffer, b.buffer, interval))
    return result


def _same_rows(stage: Stage, wanted: RowInput) -> bool:
    if stage.sums:
        return wanted.rows == stage.rows and wanted.row_bytes == stage.row_bytes
    return (stage.rows, stage.row_bytes, 1) == (wanted.rows, wanted.row_bytes, wanted.planes)


def _root(program: Program, buffer: str, part: Part) -> str:
    return program.root(buffer)[0] if buffer in program.buffers else buffer


class _Rewriter:
    """The instructions of a segment with their tensors in rings; adds the rings to `buffers`."""

    def __init__(self, program: Program, segment: Streamed, buffers: dict[str, Buffer]) -> None:
        self.program, self.segment, self.buffers = program, segment, buffers
        self.ring_of: dict[str, Ring] = {}
        for ring in segment.rings:
            names = [segment.model.stages[s].out for s in ring.stages] or [ring.buffer]
            self.ring_of.update(dict.fromkeys(names, ring))
        for part in segment.parts:
            if part.buffer is not None:
                buffers[part.buffer.name] = replace(part.buffer, align_bytes=self._align(part))
        for name in self._whole_views():
            buffers[name] = replace(buffers[name], size_bytes=self.ring_of[program.root(name)[0]].size_bytes)
        for name, ring in self.ring_of.items():
            buffers[name] = replace(buffers[name], size_bytes=ring.size_bytes)
            if name != ring.buffer:
                buffers[name] = replace(buffers[name], alias_of=ring.buffer, alias_offset_bytes=0)
        for ring in segment.rings:
            names = [n for n, r in self.ring_of.items() if r is ring]
            align = max(buffers[n].align_bytes for n in names)
            buffers[ring.buffer] = replace(buffers[ring.buffer], align_bytes=align)

    def _whole_views(self) -> list[str]:
        """Return the views of whole tensors; those of parts are used outside of the segment, where rows are whole."""
        found = []
        for name in self.buffers.keys() & self.program.buffers.keys():
            root, offset = self.program.root(name)
            size = self.program.buffers[root].size_bytes
            if root in self.ring_of and (offset, self.program.buffers[name].size_bytes) == (0, size):
                found.append(name)
        return sorted(found)

    def _align(self, part: Part) -> int:
        source = part.instr.operand("in").buffer
        return max(4, self.program.buffers[source].align_bytes)

    def instrs(self) -> list[Instr]:
        return [self._instr(part) for part in self.segment.parts]

    def _instr(self, part: Part) -> Instr:
        params = dict(part.instr.params)
        kernel_rows = part.instr.rows is not None
        operands = []
        for operand in part.instr.operands:
            ring = self.ring_of.get(_root(self.program, operand.buffer, part))
            if ring is None or ring.sums:
                operands.append(operand)
                continue
            rows = 1 if operand.role in part.walks and ring.rows * ring.planes >= 1 else ring.rows
            shape = operand.type.shape
            if len(shape) == 4 and ring.planes == 1 and shape[1] != rows:
                operand = replace(operand, type=operand.type.with_shape((1, rows, *shape[2:])))
            operands.append(operand)
            if kernel_rows and f"{operand.role}_ring" in params:
                params[f"{operand.role}_ring"] = ring.rows
        if part.walks:
            length = get_kernel(part.instr.kernel).length
            params[length] = int(params[length]) // part.form.rows
        return replace(part.instr, operands=tuple(operands), params=params)

    def advances(self) -> tuple[tuple[Advance, ...], ...]:
        return tuple(
            tuple(
                Advance(role, ring.row_bytes, ring.rows)
                for role in part.walks
                if (ring := self.ring_of[_root(self.program, part.instr.operand(role).buffer, part)]).rows > 1
            )
            for part in self.segment.parts
        )

    def progress(self) -> str:
        """Add the buffer for the step and the rows of all stages and of the input, in words."""
        fed = self.segment.model.fed
        if fed is None:
            return ""
        name = f"{fed.buffer}.progress"
        align = max(4, self.buffers[fed.buffer].align_bytes)
        self.buffers[fed.buffer] = replace(self.buffers[fed.buffer], kind=BufferKind.ACTIVATION)
        self.buffers[name] = Buffer(name, BufferKind.ACTIVATION, 4 * (len(self.segment.parts) + 2), align)
        return name

    def feed(self) -> Advance | None:
        fed = self.segment.model.fed
        ring = self.ring_of[fed.buffer] if fed is not None else None
        return Advance(fed.buffer, ring.row_bytes, ring.rows) if fed is not None and ring is not None else None
