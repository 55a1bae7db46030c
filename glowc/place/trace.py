"""What a program reads and writes, action by action: the input of the byte simulator.

Written from the meaning of the kernels alone; it knows nothing of rings as the streaming worked them out, of
overlaps or of lifetimes. A row kernel is one action per output row and reads the rows under its taps; a row that is
read must hold what the instruction that makes it wrote for this very row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from glowc.kernels.choice import variant_of
from glowc.program.ir import Access, BufferKind, Instr, Operand, Program, Segment
from glowc.program.kernel import get_kernel


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes [begin, begin + size) of a root, tagged `tag`, `tag` + 1, ..."""

    root: str
    begin: int
    size: int
    tag: int


@dataclass(slots=True)
class Event:
    """One action of the simulator, in the words of programs."""

    name: str
    reads: list[Bytes] = field(default_factory=list)
    inputs: list[tuple[str, int, int]] = field(default_factory=list)
    writes: list[Bytes] = field(default_factory=list)
    elements: int = 0
    in_place: bool = False


def trace(program: Program) -> Iterator[Event]:
    """Return everything that an inference reads and writes in the arena; `program` has no markers."""
    return _Tracer(program).run()


class _Tracer:
    """Tags: every (instruction, operand) that writes has a range of its own, large enough for the whole tensor."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.next_tag = 1
        self.now: dict[str, list[Bytes]] = {}

    def run(self) -> Iterator[Event]:
        program = self.program
        feeds = {s.feed.role for s in program.segments if s.feed is not None}
        start = Event("the caller")
        for name in (*(o.buffer for o in program.inputs if o.buffer not in feeds), *program.states):
            root, offset = program.root(name)
            if not program.is_callers(root):
                start.writes.append(self._write(root, offset, program.buffers[name].size_bytes))
        yield start
        index = 0
        for segment in program.segments:
            for instr in program.instrs[index : segment.begin]:
                yield from self._instr(instr)
            yield from self._segment(segment)
            index = segment.end
        for instr in program.instrs[index:]:
            yield from self._instr(instr)
        end = Event("the caller reads the outputs")
        for operand in program.outputs:
            self._add_reads(end, operand)
        yield end

    def _fresh(self, size: int) -> int:
        tag = self.next_tag
        self.next_tag += size
        return tag

    def _write(self, root: str, begin: int, size: int, tag: int | None = None) -> Bytes:
        """Note that these bytes of a root now hold new values."""
        new = Bytes(root, begin, size, self._fresh(size) if tag is None else tag)
        kept = []
        for old in self.now.get(root, []):
            if old.begin < begin:
                kept.append(Bytes(root, old.begin, min(old.size, begin - old.begin), old.tag))
            after = max(begin + size, old.begin)
            if old.begin + old.size > after:
                kept.append(Bytes(root, after, old.begin + old.size - after, old.tag + after - old.begin))
        self.now[root] = [*kept, new]
        return new

    def _read(self, root: str, begin: int, size: int) -> list[Bytes]:
        """Return what a read of these bytes must find; bytes that nothing wrote may hold anything."""
        found = []
        for old in self.now.get(root, []):
            low, high = max(begin, old.begin), min(begin + size, old.begin + old.size)
            if low < high:
                found.append(Bytes(root, low, high - low, old.tag + low - old.begin))
        return found

    def _place(self, operand: Operand) -> tuple[str, int] | None:
        root, offset = self.program.root(operand.buffer)
        if self.program.buffers[root].kind is BufferKind.CONST or self.program.is_callers(root):
            return None
        return root, offset

    def _add_reads(self, event: Event, operand: Operand) -> None:
        place = self._place(operand)
        if place is not None:
            event.reads += self._read(*place, operand.type.size_bytes)
            if operand.access is not Access.INOUT:  # that one is written where it is read, and knows it
                event.inputs.append((*place, operand.type.size_bytes))

    def _instr(self, instr: Instr) -> Iterator[Event]:
        kernel = get_kernel(instr.kernel)
        if kernel.row_window is not None and instr.params["batch"] == 1:
            rows = range(int(instr.params["out_h"]))
            for y in reversed(rows) if instr.params["descending"] else rows:
                yield self._spatial(instr, y, None)
            return
        event = Event(instr.name, in_place=variant_of(instr).in_place)
        if kernel.length and event.in_place and int(instr.params.get("rank", 1)) == 1:
            event.elements = int(instr.params[kernel.length])
        for operand in instr.operands:
            if operand.access.reads:
                self._add_reads(event, operand)
        if kernel.name.startswith("copy_b") and self._is_copied_aside(instr):
            event.inputs.clear()
        for operand in instr.operands:
            place = self._place(operand)
            if operand.access.writes and place is not None:
                if operand.access is Access.OUT and kernel.name.startswith("copy_b"):
                    # A part of the tensor: the rest must still be there.
                    self._add_reads(event, operand)
                    event.in_place = True
                event.writes.append(self._write(*place, operand.type.size_bytes))
        yield event

    def _is_copied_aside(self, instr: Instr) -> bool:
        """Say whether a copy from a root to itself writes no element that it reads."""
        source, out = instr.operand("in"), instr.operand("out")
        if self.program.root(source.buffer)[0] != self.program.root(out.buffer)[0]:
            return False
        read, written = (self._elements(instr, o, letter) for o, letter in ((source, "i"), (out, "o")))
        return not np.intersect1d(read, written).size

    def _elements(self, instr: Instr, operand: Operand, letter: str) -> np.ndarray:
        """Return where in its root the elements of a copy begin, in bytes."""
        p, at = instr.params, np.zeros((), np.int64)
        for k in range(int(p["rank"])):
            at = at[..., None] + np.arange(int(p[f"d{k}"])) * int(p[f"{letter}{k}"])
        first = int(p["in_offset" if letter == "i" else "out_offset"])
        return self.program.root(operand.buffer)[1] + (first + at) * operand.type.dtype.bytes

    def _segment(self, segment: Segment) -> Iterator[Event]:
        program = self.program
        instrs = program.instrs[segment.begin : segment.end]
        made = [0] * (len(instrs) + 1)
        full = {}
        for number, instr in enumerate(instrs):
            for operand in instr.operands:
                if operand.access.writes:
                    rows = segment.steps.count(number)
                    full[operand.buffer] = self._fresh((rows + 1) * operand.type.size_bytes)
        if segment.feed is not None:
            root, offset = program.root(segment.feed.role)
            for operand in program.inputs:
                full[operand.buffer] = self._fresh(operand.type.size_bytes)
            full[root] = full[segment.feed.role]
        for step in segment.steps:
            y = made[step]
            made[step] += 1
            if step == len(instrs):
                assert segment.feed is not None
                size, at = segment.feed.row_bytes, y % segment.feed.ring
                yield Event("the caller", writes=[Bytes(root, offset + at * size, size, full[root] + y * size)])
                continue
            yield self._row(instrs[step], y, segment, step, full)

    def _row(self, instr: Instr, y: int, segment: Segment, step: int, full: Mapping[str, int]) -> Event:
        kernel = get_kernel(instr.kernel)
        if kernel.row_window is not None:
            return self._spatial(instr, y, full)
        event = Event(f"{instr.name} row {y}")
        moves = {a.role: a for a in segment.advances[step]}
        variant = variant_of(instr)
        if kernel.length:
            event.elements = int(instr.params[kernel.length]) if variant.in_place else 0
        for operand in instr.operands:
            place = self._place(operand)
            if place is None:
                continue
            size, at, tag_row = operand.type.size_bytes, 0, 0
            if operand.role in moves:
                size, ring = moves[operand.role].row_bytes, moves[operand.role].ring
                at, tag_row = y % ring * size, y
            elif kernel.name.startswith("sum_rows") and operand.role == "in":
                size = int(instr.params["in_row"]) * operand.type.dtype.bytes
                at, tag_row = y % int(instr.params["in_ring"]) * size, y
            elif kernel.length:
                tag_row = y
            base = self._base(operand, full)
            if kernel.name.startswith("sum_rows") and operand.role == "acc":
                if y:
                    event.reads.append(Bytes(place[0], place[1], size, full[operand.buffer] + (y - 1) * size))
                    event.inputs.append((*place, size))
                event.writes.append(Bytes(place[0], place[1], size, full[operand.buffer] + y * size))
                event.in_place = True
                continue
            if kernel.name.startswith("requant_sums") and operand.role == "in":
                tag_row = self._sum_rows(segment, operand.buffer) - 1
            if operand.access.reads:
                event.reads += self._expect(place, at, size, base, tag_row)
                event.inputs.append((place[0], place[1] + at, size))
            if operand.access.writes:
                event.writes.append(Bytes(place[0], place[1] + at, size, full[operand.buffer] + tag_row * size))
                self._note(operand, full, at, size, tag_row)
        return event

    def _sum_rows(self, segment: Segment, buffer: str) -> int:
        for number, instr in enumerate(self.program.instrs[segment.begin : segment.end]):
            if any(o.buffer == buffer and o.access.writes for o in instr.operands):
                return segment.steps.count(number)
        raise KeyError(buffer)

    def _base(self, operand: Operand, full: Mapping[str, int]) -> int | None:
        """The tag of row 0 when an instruction of the segment, or the caller, makes the tensor row by row."""
        name: str | None = operand.buffer
        while name is not None:
            if name in full:
                return full[name]
            buffer = self.program.buffers[name]
            if buffer.alias_of is not None and buffer.alias_offset_bytes:
                return None
            name = buffer.alias_of
        return None

    def _expect(self, place: tuple[str, int], at: int, size: int, base: int | None, row: int) -> list[Bytes]:
        if base is None:
            return self._read(place[0], place[1] + at, size)
        return [Bytes(place[0], place[1] + at, size, base + row * size)]

    def _note(self, operand: Operand, full: Mapping[str, int], at: int, size: int, row: int) -> None:
        """Remember what later instructions read of a tensor that leaves the segment."""
        place = self._place(operand)
        if place is not None:
            self._write(place[0], place[1] + at, size, full[operand.buffer] + row * size)

    def _spatial(self, instr: Instr, y: int, full: Mapping[str, int] | None) -> Event:
        p = instr.params
        event = Event(f"{instr.name} row {y}")
        source, out = instr.operand("in"), instr.operand("out")
        place = self._place(source)
        taps = {y * int(p["stride_h"]) - int(p["pad_top"]) + k * int(p["dil_h"]) for k in range(int(p["k_h"]))}
        if place is not None:
            row, ring = int(p["in_row"]) * source.type.dtype.bytes, int(p["in_ring"])
            plane = int(p["in_ch"]) * source.type.dtype.bytes
            planes = int(p["in_c"]) if int(p["in_col"]) == 1 and int(p["in_ch"]) != 1 else 1
            base = self._base(source, full) if full is not None else None
            for r in sorted(t for t in taps if 0 <= t < int(p["in_h"])):
                for c in range(planes):
                    at = c * plane + r % ring * row
                    event.reads += self._expect(place, at, row, base, r)
                    event.inputs.append((place[0], place[1] + at, row))
        for operand in instr.operands:
            if operand.access.reads and operand is not source:
                self._add_reads(event, operand)
        target = self._place(out)
        if target is not None:
            size = int(p["out_row"]) * out.type.dtype.bytes
            at = y % int(p["out_ring"]) * size
            if full is None:
                event.writes.append(self._write(target[0], target[1] + at, size))
            else:
                event.writes.append(Bytes(target[0], target[1] + at, size, full[out.buffer] + y * size))
                self._note(out, full, at, size, y)
        for operand in instr.operands:
            scratch = self._place(operand)
            if operand.access.writes and operand is not out and scratch is not None:
                event.writes.append(self._write(*scratch, operand.type.size_bytes))
        return event
