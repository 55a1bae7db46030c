"""Zero-copy reshape, slice and concat: a contiguous copy becomes a view, and the instruction goes away.

* copy of a whole destination: the destination becomes a view into the source (reshape, leading-axis slice);
  when the destination is a model output, the source becomes a view of the output instead;
* copy of a whole source into part of a destination (concat): the source becomes a view of the destination,
  if nothing else writes those bytes (a fill around the copy would come after the source was computed).

Instructions whose results nobody reads go away as well.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from glowc.program.ir import Buffer, BufferKind, Instr, Operand, Program


def eliminate_copies(program: Program) -> Program:
    """Return the program with every copy removed that a view can stand for."""
    views = _Views(program)
    kept = tuple(instr for n, instr in enumerate(program.instrs) if not views.stand_for(n, instr))
    return replace(program, buffers=views.buffers, instrs=kept) if len(kept) < len(program.instrs) else program


def _is_contiguous(instr: Instr) -> bool:
    return instr.kernel.startswith("copy_b") and instr.params["rank"] == 1 and bool(instr.params["contiguous"])


def _can_view(view: Buffer, base: Buffer) -> bool:
    """A view needs no identity of its own, and never looks into read-only memory that it may outlive."""
    return view.kind is BufferKind.ACTIVATION and view.alias_of is None and base.kind is not BufferKind.CONST


@dataclass(slots=True)
class _Writes:
    """Who writes which bytes [low, high) of a buffer that is no view, sorted by `low`."""

    spans: list[tuple[int, int, int]] = field(default_factory=list)
    longest: int = 0
    last: int = -1

    def add(self, low: int, high: int, number: int) -> None:
        insort(self.spans, (low, high, number))
        self.longest, self.last = max(self.longest, high - low), max(self.last, number)

    def overlap(self, begin: int, end: int, but: int) -> bool:
        """Say whether an instruction besides number `but` writes one of the bytes [begin, end)."""
        first = bisect_left(self.spans, (begin - self.longest,))
        for low, high, number in self.spans[first : bisect_left(self.spans, (end,))]:
            if begin < high and low < end and number != but:
                return True
        return False


class _Views:
    """The buffers of a program while copies become views, and who writes them; instructions go by number."""

    def __init__(self, program: Program) -> None:
        self.buffers = dict(program.buffers)
        self.writers: defaultdict[str, set[int]] = defaultdict(set)  # of the buffer itself, not of views into it
        self.writes: defaultdict[str, _Writes] = defaultdict(_Writes)
        self.elements: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for number, instr in enumerate(program.instrs):
            for operand in instr.operands:
                self.elements[operand.buffer][operand.type.dtype.bytes] += 1
                if operand.access.writes:
                    self.writers[operand.buffer].add(number)
                    root, low, high = self._written(instr, operand)
                    self.writes[root].add(low, high, number)

    def stand_for(self, number: int, instr: Instr) -> bool:
        """Make a view that stands for the copy `instr`, if one can; say whether the copy goes."""
        if not _is_contiguous(instr):
            return False
        source, target = instr.operand("in"), instr.operand("out")
        size = source.type.dtype.bytes
        src_offset, dst_offset = int(instr.params["in_offset"]) * size, int(instr.params["out_offset"]) * size
        n_bytes = int(instr.params["d0"]) * size
        src, dst = self.buffers[source.buffer], self.buffers[target.buffer]
        alone = self.writers[dst.name] <= {number}
        if self.writes[self._root(src.name)[0]].last > number or (dst.alias_of is not None and not alone):
            return False
        whole_target = n_bytes == dst.size_bytes and dst_offset == 0
        whole_source = n_bytes == src.size_bytes and src_offset == 0
        if whole_target and _can_view(dst, src) and alone:
            return self._alias(dst, src, src_offset, number, instr)
        ours = (dst_offset, dst_offset + n_bytes)
        if dst.kind is BufferKind.STATE:  # what it was before may be read until the copy
            return False
        if whole_source and _can_view(src, dst) and not self._others_write(number, dst, ours):
            return self._alias(src, dst, dst_offset, number, instr)
        return False

    def _root(self, name: str) -> tuple[str, int]:
        """Return the buffer that owns the bytes of `name`, and where they begin in it."""
        buffer, offset = self.buffers[name], 0
        while buffer.alias_of is not None:
            offset += buffer.alias_offset_bytes
            buffer = self.buffers[buffer.alias_of]
        return buffer.name, offset

    def _written(self, instr: Instr, operand: Operand) -> tuple[str, int, int]:
        """Return the root and its bytes that may be written: the range of a contiguous copy, else the whole operand."""
        root, start = self._root(operand.buffer)
        if not _is_contiguous(instr):
            return root, start, start + self.buffers[operand.buffer].size_bytes
        size = operand.type.dtype.bytes
        start += int(instr.params["out_offset"]) * size
        return root, start, start + int(instr.params["d0"]) * size

    def _others_write(self, number: int, dst: Buffer, span: tuple[int, int]) -> bool:
        """True when an instruction besides `number` may write bytes [begin, end) of `dst`, directly or by a view."""
        root, offset = self._root(dst.name)
        return self.writes[root].overlap(offset + span[0], offset + span[1], number)

    def _alias(self, view: Buffer, base: Buffer, offset: int, number: int, copy: Instr) -> bool:
        root, base_offset = self._root(base.name)
        start = base_offset + offset
        if root == view.name or start % max(+self.elements[view.name], default=1):
            return False
        self._forget(number, copy)
        self.buffers[view.name] = replace(view, alias_of=base.name, alias_offset_bytes=offset)
        for low, high, writer in self.writes.pop(view.name, _Writes()).spans:
            self.writes[root].add(start + low, start + high, writer)
        return True

    def _forget(self, number: int, copy: Instr) -> None:
        target = copy.operand("out")
        self.writers[target.buffer].discard(number)
        root, low, high = self._written(copy, target)
        self.writes[root].spans.remove((low, high, number))
        for operand in copy.operands:
            self.elements[operand.buffer][operand.type.dtype.bytes] -= 1


def remove_dead_stores(program: Program) -> Program:
    """Return the program without instructions that write only bytes that are never read."""
    live = {program.root(o.buffer)[0] for o in program.outputs} | set(program.states)
    kept = []
    for instr in reversed(program.instrs):
        if any(o.access.writes and program.root(o.buffer)[0] in live for o in instr.operands):
            kept.append(instr)
            live.update(program.root(o.buffer)[0] for o in instr.operands if o.access.reads)
    if len(kept) == len(program.instrs):
        return program
    kept.reverse()
    used = {o.buffer for i in kept for o in i.operands} | {o.buffer for o in (*program.inputs, *program.outputs)}
    for name in list(used):
        used.update(_bases(program, name))
    buffers = {name: b for name, b in program.buffers.items() if name in used}
    consts = {name: a for name, a in program.consts.items() if name in used}
    return replace(program, instrs=tuple(kept), buffers=buffers, consts=consts)


def _bases(program: Program, name: str) -> list[str]:
    result = []
    base = program.buffers[name].alias_of
    while base is not None:
        result.append(base)
        base = program.buffers[base].alias_of
    return result
