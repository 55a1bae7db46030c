"""When the bytes of each buffer are needed: lifetimes of roots, and placement of alloc and dealloc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate

from glowc.graph.types import DType, TensorType
from glowc.program.ir import Access, BufferKind, Instr, Operand, Program


def strip_markers(program: Program) -> Program:
    """Return the program without alloc and dealloc."""
    if not any(i.is_marker for i in program.instrs):
        return program
    return replace(program, instrs=tuple(i for i in program.instrs if not i.is_marker))


def root_lifetimes(program: Program) -> dict[str, tuple[int, int]]:
    """Return half-open [first, last + 1) instruction indices of each root that needs arena bytes.

    Inputs live from 0, outputs to the end, states all the time; a scratch buffer lives for its one instruction.
    What a streamed segment uses lives as long as the segment.
    """
    spans: dict[str, tuple[int, int]] = {}
    together = {i: (s.begin, s.end - 1) for s in program.segments for i in range(s.begin, s.end)}

    def touch(buffer: str, index: int) -> None:
        root, _ = program.root(buffer)
        if program.buffers[root].kind is not BufferKind.CONST:
            begin, end = together.get(index, (index, index))
            first, last = spans.get(root, (begin, end + 1))
            spans[root] = (min(first, begin), max(last, end + 1))

    end = max(len(program.instrs), 1)
    for operand in program.inputs:
        touch(operand.buffer, 0)
    for index, instr in enumerate(program.instrs):
        for operand in instr.operands:
            touch(operand.buffer, index)
    for operand in program.outputs:
        touch(operand.buffer, end - 1)
    progress = [s.progress for s in (*program.segments, program.slices) if s is not None and s.progress]
    for state in (*program.states, *progress):
        touch(state, 0)
        touch(state, end - 1)
    return spans


def dies_before(program: Program, spans: Mapping[str, tuple[int, int]], root: str, end: int) -> bool:
    """Say whether nothing needs `root` from instruction `end` on; `spans` are the lifetimes.

    The caller reads outputs after the last instruction, also those that lie in an input, so they die in none.
    """
    return spans[root][1] <= end and all(program.root(o.buffer)[0] != root for o in program.outputs)


def place_markers(program: Program) -> Program:
    """Return the program with `alloc` before the first and `dealloc` after the last use of every root."""
    plain = strip_markers(program)
    spans = root_lifetimes(plain)
    starts: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for root, (first, last) in spans.items():
        starts.setdefault(first, []).append(root)
        ends.setdefault(last, []).append(root)
    instrs: list[Instr] = []
    for index, instr in enumerate(plain.instrs):
        instrs += [_marker(plain, "alloc", root) for root in starts.get(index, [])]
        instrs.append(instr)
        instrs += [_marker(plain, "dealloc", root) for root in ends.get(index + 1, [])]
    return replace(plain, instrs=tuple(instrs))


def _marker(program: Program, kind: str, root: str) -> Instr:
    size = program.buffers[root].size_bytes
    access = Access.OUT if kind == "alloc" else Access.INOUT
    return Instr(kind, "", (Operand("buffer", root, access, TensorType((size,), DType.U8)),), name=f"{kind} {root}")


def live_bytes(program: Program) -> tuple[int, ...]:
    """Return the bytes alive at each instruction (markers not counted as instructions)."""
    plain = strip_markers(program)
    changes = [0] * (len(plain.instrs) + 2)  # a program without instructions has lifetimes as one with a single one
    for root, (first, last) in root_lifetimes(plain).items():
        changes[first] += plain.buffers[root].size_bytes
        changes[last] -= plain.buffers[root].size_bytes
    return tuple(accumulate(changes))[: len(plain.instrs)]
