"""Runs a program in numpy: every instruction by its kernel's `interpret`, on real bytes.

With a memory plan all buffers lie in one arena, as in the generated C, so that a wrong plan gives wrong bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType, TensorType
from glowc.program.ir import Advance, BufferKind, Instr, Operand, Part, Program, Segment, Slices
from glowc.program.kernel import get_kernel


class Memory:
    """The bytes of a program's buffers."""

    def __init__(self, program: Program, offsets_bytes: Mapping[str, int] | None, arena_bytes: int) -> None:
        self._program = program
        self._offsets = offsets_bytes
        self._arena = np.full(arena_bytes, 0xA5, np.uint8)
        self._own: dict[str, np.ndarray] = {}
        self.reset()

    def reset(self) -> None:
        """Give every state its initial value."""
        for name, initial in self._program.states.items():
            self._bytes(name)[...] = np.frombuffer(initial.tobytes(), np.uint8)

    def array(self, operand: Operand, at: int = 0) -> np.ndarray:
        """Return the array that an operand sees `at` bytes further on, sharing memory with every alias."""
        root, offset = self._program.root(operand.buffer)
        offset += at
        size = operand.type.size_bytes
        raw = self._bytes(root)[offset : offset + size]
        return raw.view(operand.type.dtype.numpy).reshape(operand.type.shape)

    def unpacked(self, instr: Instr, operand: Operand, at: int = 0) -> np.ndarray:
        """Return the array of an operand as the interpreter reads it: the original of a rearranged constant."""
        original = self._program.unpacked.get(f"{instr.name}:{operand.role}")
        return self.array(operand, at) if original is None else original

    def _bytes(self, root: str) -> np.ndarray:
        buffer = self._program.buffers[root]
        if buffer.kind is BufferKind.CONST:
            return self._program.consts[root].reshape(-1).view(np.uint8)
        if self._offsets is not None and not self._program.is_callers(root):
            start = self._offsets[root]
            return self._arena[start : start + buffer.size_bytes]
        if root not in self._own:
            self._own[root] = np.full(buffer.size_bytes, 0xA5, np.uint8)
        return self._own[root]


def run_instr(instr: Instr, memory: Memory) -> None:
    """Execute one instruction."""
    arrays = {operand.role: memory.unpacked(instr, operand) for operand in instr.operands}
    inputs = {role: a.copy() if role in get_kernel(instr.kernel).in_place else a for role, a in arrays.items()}
    get_kernel(instr.kernel).run(inputs, instr.params, instr.rows)


def run_segment(
    program: Program, segment: Segment, plain: Sequence[Instr], memory: Memory, inputs: Mapping[str, np.ndarray]
) -> None:
    """Execute a segment step by step; `plain` are the instructions without markers."""
    rows = [0] * (segment.end - segment.begin + 1)
    for step in segment.steps:
        y = rows[step]
        rows[step] += 1
        if step < segment.end - segment.begin:
            _run_row(plain[segment.begin + step], segment.advances[step], y, memory)
            continue
        assert segment.feed is not None
        fed = next(o for o in program.inputs if o.buffer == segment.feed.role)
        size = segment.feed.row_bytes
        row = np.frombuffer(inputs[fed.role].tobytes()[y * size : (y + 1) * size], np.uint8)
        at = y % segment.feed.ring * size
        memory.array(replace(fed, type=TensorType((size,), DType.U8)), at)[...] = row


def _run_row(instr: Instr, advances: Sequence[Advance], y: int, memory: Memory) -> None:
    if instr.rows is not None:
        run_instr(replace(instr, rows=(y, y + 1)), memory)
        return
    at = {a.role: y % a.ring * a.row_bytes for a in advances}
    arrays = {o.role: memory.unpacked(instr, o, at.get(o.role, 0)) for o in instr.operands}
    copied = {role: a.copy() if role in get_kernel(instr.kernel).in_place else a for role, a in arrays.items()}
    get_kernel(instr.kernel).run(copied, instr.params)


def _run_part(instr: Instr, part: Part, slices: Slices, memory: Memory) -> None:
    if part.index in slices.ends:
        if part.end == slices.ends[part.index]:
            run_instr(instr, memory)
    elif instr.rows is not None:
        run_instr(replace(instr, rows=(part.begin, part.end)), memory)
    else:
        for y in range(part.begin, part.end):
            _run_row(instr, slices.walks.get(part.index, ()), y, memory)


def run_program(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    *,
    offsets_bytes: Mapping[str, int] | None = None,
    arena_bytes: int = 0,
    memory: Memory | None = None,
) -> dict[str, np.ndarray]:
    """Return the outputs by name. `inputs` have the model's shapes and dtypes; `memory` carries states on."""
    memory = memory or Memory(program, offsets_bytes, arena_bytes)
    feed = next((s.feed for s in program.segments if s.feed is not None), None)
    for operand in program.inputs:
        if feed is None or feed.role != operand.buffer:
            memory.array(operand)[...] = inputs[operand.role]
    plain = [instr for instr in program.instrs if not instr.is_marker]
    if program.slices is not None:
        for part in program.slices.parts:
            _run_part(plain[part.index], part, program.slices, memory)
        return {operand.role: memory.array(operand).copy() for operand in program.outputs}
    done = 0
    for segment in program.segments:
        for instr in plain[done : segment.begin]:
            run_instr(instr, memory)
        run_segment(program, segment, plain, memory, inputs)
        done = segment.end
    for instr in plain[done:]:
        run_instr(instr, memory)
    return {operand.role: memory.array(operand).copy() for operand in program.outputs}
