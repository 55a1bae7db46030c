"""Row overlap: where the output of an instruction may lie over the input rows that it has used up.

A spatial kernel that writes output row y reads the rows of its own window only. With rows in ascending order the
output may start below its input, at a distance at which no row is overwritten that a later one still needs; in
descending order it may start above:

    ascending   out - in <= low  = -max over y of ((y + 1) * out_row - first_needed(y) * in_row)
    descending  out - in >= high =  max over y of (last_needed(y) * in_row - y * out_row)

first_needed(y) is the lowest input row of all windows from y on, last_needed(y) the end of all windows up to y.
An elementwise kernel reads element i before it writes it, so an output that is no wider may start with its input,
and a wider one may end with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.choice import variant_of
from glowc.program.ir import BufferKind, Instr, Program
from glowc.program.kernel import get_kernel
from glowc.program.lifetimes import dies_before, root_lifetimes
from glowc.program.rows import RowInput, is_dense, row_form, walked_roles


@dataclass(frozen=True, slots=True)
class RowOverlap:
    """Forbidden is low < offset[out] - offset[source] < high, in bytes between the roots.

    A layer is faster where the operands, which are `shift` further apart, are a multiple of `grid` away; 0: where they
    are apart.
    """

    index: int
    out: str
    source: str
    low: int
    high: int
    shift: int = 0
    grid: int = 1


def row_overlaps(program: Program) -> tuple[RowOverlap, ...]:
    """Return the overlaps of all instructions outside of streamed segments; `program` has no markers."""
    spans, streamed = root_lifetimes(program), program.streamed
    outside = (index for index in range(len(program.instrs)) if index not in streamed)
    return tuple(overlap for index in outside for overlap in operand_distances(program, index, spans))


def off_grid(program: Program, overlaps: Sequence[RowOverlap], offsets: Mapping[str, int]) -> frozenset[int]:
    """Return the instructions whose outputs lie over their inputs where that is slower."""
    found = set()
    for o in overlaps:
        distance = offsets[o.out] - offsets[o.source]
        apart = not -program.buffers[o.out].size_bytes < distance < program.buffers[o.source].size_bytes
        if not apart and (o.grid == 0 or (distance + o.shift) % o.grid):
            found.add(o.index)
    return frozenset(found)


def set_directions(program: Program, overlaps: Sequence[RowOverlap], offsets: Mapping[str, int]) -> Program:
    """Return the program with `descending` rows where the output was placed above its input."""
    turned: dict[int, Instr] = {}
    for overlap in overlaps:
        instr = program.instrs[overlap.index]
        distance = offsets[overlap.out] - offsets[overlap.source]
        apart = distance >= program.buffers[overlap.source].size_bytes
        if "descending" in instr.params and overlap.low < distance and not apart:
            turned[overlap.index] = replace(instr, params={**instr.params, "descending": 1})
    if not turned:
        return program
    return replace(program, instrs=tuple(turned.get(i, instr) for i, instr in enumerate(program.instrs)))


def operand_distances(program: Program, index: int, spans: Mapping[str, tuple[int, int]]) -> Iterator[RowOverlap]:
    """Return the overlaps of one instruction; `spans` are the lifetimes of the roots."""
    instr = program.instrs[index]
    variant = variant_of(instr)
    if not variant.rows_in_order or instr.shares > 1:
        return
    for role, low, high in _distances(program, instr):
        source, source_at = program.root(instr.operand(role).buffer)
        out, out_at = program.root(instr.operand("out").buffer)
        if _may_share(program, instr, index, source, out, spans):
            shift = source_at - out_at
            low = max(low + shift, -program.buffers[out].size_bytes)
            high = min(high + shift, program.buffers[source].size_bytes)
            yield RowOverlap(index, out, source, low, high, -shift, variant.overlap_bytes(instr))


def _may_share(
    program: Program, instr: Instr, index: int, source: str, out: str, spans: Mapping[str, tuple[int, int]]
) -> bool:
    """The source dies here, the output is born here, and the source is read through one operand only."""
    kinds = program.buffers[source].kind, program.buffers[out].kind
    if program.is_callers(source) or program.is_callers(out):
        return False
    if kinds[0] in (BufferKind.CONST, BufferKind.STATE) or kinds[1] is BufferKind.STATE:
        return False
    if kinds[1] is BufferKind.INPUT or any(o.access.reads and program.root(o.buffer)[0] == out for o in instr.operands):
        return False  # the output lies over another input already, which was there before this instruction
    readers = [o for o in instr.operands if program.root(o.buffer)[0] == source]
    dies = dies_before(program, spans, source, index + 1)
    return source != out and len(readers) == 1 and dies and spans[out][0] == index


def _distances(program: Program, instr: Instr) -> Iterator[tuple[str, int, int]]:
    """(role of the input, low, high) between the operands of one instruction."""
    kernel, variant = get_kernel(instr.kernel), variant_of(instr)
    if kernel.length:
        if variant.in_place and is_dense(kernel, instr):
            out = instr.operand("out").type.size_bytes
            for role in walked_roles(kernel, instr):
                size = instr.operand(role).type.size_bytes
                yield role, min(0, size - out), size
        return
    form = row_form(program, instr)
    for source in form.inputs if form is not None else ():
        assert form is not None
        low, high, step = _low(source, form.row_bytes), _high(source, form.row_bytes), variant.overlap_bytes(instr)
        if step > 1:
            grid = math.lcm(step, program.buffers[program.root(instr.operand("out").buffer)[0]].align_bytes)
            low, high = low // grid * grid, -(-high // grid) * grid
        yield source.role, low, high


def _low(source: RowInput, out_row: int) -> int:
    first, last = np.asarray(source.windows, np.int64).reshape(-1, 2).T
    needed = np.minimum.accumulate(np.where(first < last, first, source.rows)[::-1])[::-1]
    ends = np.arange(1, len(needed) + 1) * out_row
    return -int((ends - needed * source.row_bytes).max(initial=0))


def _high(source: RowInput, out_row: int) -> int:
    before = (source.planes - 1) * source.rows * source.row_bytes
    first, last = np.asarray(source.windows, np.int64).reshape(-1, 2).T
    needed = np.maximum.accumulate(np.where(first < last, last, 0))
    begins = np.arange(len(needed)) * out_row
    return int((before + needed * source.row_bytes - begins).max(initial=0))
