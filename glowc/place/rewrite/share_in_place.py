"""Buffer sharing: an elementwise instruction writes its result over an input that dies there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.kernels.choice import variant_of
from glowc.program.ir import Buffer, BufferKind, Instr, Program
from glowc.program.kernel import get_kernel
from glowc.program.lifetimes import dies_before, root_lifetimes


def in_place_pairs(program: Program) -> tuple[tuple[str, str], ...]:
    """Return (input root, output root) pairs that could share bytes if the input dies at the instruction."""
    pairs = []
    for instr in program.instrs:
        for role in _roles(instr):
            src, dst = (_whole_root(program, instr.operand(r).buffer) for r in (role, "out"))
            if _fits(src, dst) and not _is_constant(program, src) and _reads_whole(program, instr, src):
                pairs.append((src.name, dst.name))
    return tuple(pairs)


def share_in_place(program: Program) -> Program:
    """Return the program with outputs put over dying inputs where the kernel variant allows it.

    Lifetimes are found once and merged with every pair that shares, so that the time is linear in the layers.
    """
    buffers = dict(program.buffers)
    shared = replace(program, buffers=buffers)
    spans = root_lifetimes(program)
    streamed = program.streamed
    for index, instr in enumerate(program.instrs):
        for role in _roles(instr) if index not in streamed else ():
            pair = _pair(shared, spans, index, instr, role)
            if pair is not None:
                view, base = pair
                buffers[view.name] = replace(view, alias_of=base.name, alias_offset_bytes=0)
                buffers[base.name] = replace(base, align_bytes=max(view.align_bytes, base.align_bytes))
                (begin, end), (first, last) = spans.pop(view.name), spans[base.name]
                spans[base.name] = min(begin, first), max(end, last)
                break
    return shared if buffers != program.buffers else program


def _roles(instr: Instr) -> tuple[str, ...]:
    if instr.is_marker:
        return ()
    return get_kernel(instr.kernel).in_place if variant_of(instr).in_place else ()


def _whole_root(program: Program, name: str) -> Buffer:
    """Return the root of a buffer that is a view of all of it, else the buffer."""
    buffer = program.buffers[name]
    root, offset = program.root(name)
    return program.buffers[root] if offset == 0 and program.buffers[root].size_bytes == buffer.size_bytes else buffer


def _fits(src: Buffer, dst: Buffer) -> bool:
    """Both are whole roots of one size; only one of them may be a model input or output."""
    if src.kind in (BufferKind.CONST, BufferKind.STATE) or dst.kind is BufferKind.STATE:
        return False
    if src.alias_of is not None or dst.alias_of is not None:
        return False
    external = {BufferKind.INPUT, BufferKind.OUTPUT}
    return src.size_bytes == dst.size_bytes and not (src.kind in external and dst.kind in external)


def _is_constant(program: Program, src: Buffer) -> bool:
    """The caller's input is not ours to overwrite."""
    return src.kind is BufferKind.INPUT and program.is_callers(src.name)


def _reads_whole(program: Program, instr: Instr, src: Buffer) -> bool:
    """No operand is a part of `src`, or broadcast: it would be overwritten before the last of it was read."""
    reads = [o for o in instr.operands if program.root(o.buffer)[0] == src.name]
    n = instr.operand("out").type.elements
    return all(o.type.size_bytes == src.size_bytes and o.type.elements == n for o in reads)


def _pair(
    program: Program, spans: Mapping[str, tuple[int, int]], index: int, instr: Instr, role: str
) -> tuple[Buffer, Buffer] | None:
    """Return (the buffer that becomes a view, the buffer that keeps its bytes), None where nothing is shared."""
    src, dst = (_whole_root(program, instr.operand(r).buffer) for r in (role, "out"))
    if not _fits(src, dst) or src.name == dst.name or not _reads_whole(program, instr, src):
        return None
    if _is_constant(program, src):
        return None
    if not dies_before(program, spans, src.name, index + 1) or spans[dst.name][0] != index:
        return None
    return (dst, src) if dst.kind is not BufferKind.OUTPUT else (src, dst)
