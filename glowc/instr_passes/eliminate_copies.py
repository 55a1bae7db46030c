"""Zero-copy reshape, slice and concat: a contiguous copy becomes a view, and the instruction goes away.

* copy of a whole destination: the destination becomes a view into the source (reshape, leading-axis slice);
  when the destination is a model output, the source becomes a view of the output instead;
* copy of a whole source into part of a destination (concat): the source becomes a view of the destination,
  if nothing else writes those bytes (a fill around the copy would come after the source was computed).
"""

from __future__ import annotations

from dataclasses import replace

from glowc.instr.ir import Buffer, BufferKind, Instr, Operand, Program


def eliminate_copies(program: Program) -> Program:
    """Return the program with every copy removed that a view can stand for."""
    index = 0
    while index < len(program.instrs):
        changed = _try_view(program, index)
        if changed is None:
            index += 1
        else:
            program = changed
    return program


def _try_view(program: Program, index: int) -> Program | None:
    instr = program.instrs[index]
    if not instr.kernel.startswith("copy_b") or instr.params["rank"] != 1 or not instr.params["contiguous"]:
        return None
    source, target = instr.operand("in"), instr.operand("out")
    size = source.type.dtype.bytes
    src_offset, dst_offset = int(instr.params["in_offset"]) * size, int(instr.params["out_offset"]) * size
    n_bytes = int(instr.params["d0"]) * size
    src, dst = program.buffers[source.buffer], program.buffers[target.buffer]
    if _written_after(program, index, src.name):
        return None
    if dst.alias_of is not None and _other_writers(program, index, dst.name):
        return None
    rest = (*program.instrs[:index], *program.instrs[index + 1 :])
    whole_target = n_bytes == dst.size_bytes and dst_offset == 0
    whole_source = n_bytes == src.size_bytes and src_offset == 0
    if whole_target and _can_view(dst, src) and not _other_writers(program, index, dst.name):
        return _alias(program, dst, src, src_offset, rest)
    ours = (dst_offset, dst_offset + n_bytes)
    if whole_source and _can_view(src, dst) and not _others_write(program, index, dst, ours):
        return _alias(program, src, dst, dst_offset, rest)
    return None


def _can_view(view: Buffer, base: Buffer) -> bool:
    """A view needs no identity of its own, and never looks into read-only memory that it may outlive."""
    return view.kind is BufferKind.ACTIVATION and view.alias_of is None and base.kind is not BufferKind.CONST


def _others_write(program: Program, index: int, dst: Buffer, span: tuple[int, int]) -> bool:
    """True when an instruction besides `index` may write bytes [begin, end) of `dst`, directly or by a view."""
    root, offset = program.root(dst.name)
    begin, end = offset + span[0], offset + span[1]
    for number, instr in enumerate(program.instrs):
        for operand in instr.operands:
            if number == index or not operand.access.writes or program.root(operand.buffer)[0] != root:
                continue
            low, high = _written_span(program, instr, operand)
            if low < end and begin < high:
                return True
    return False


def _written_span(program: Program, instr: Instr, operand: Operand) -> tuple[int, int]:
    """Bytes of the root that may be written: the range of a contiguous copy, else the whole operand."""
    start = program.root(operand.buffer)[1]
    if not instr.kernel.startswith("copy_b") or instr.params["rank"] != 1 or not instr.params["contiguous"]:
        return start, start + program.buffers[operand.buffer].size_bytes
    size = operand.type.dtype.bytes
    start += int(instr.params["out_offset"]) * size
    return start, start + int(instr.params["d0"]) * size


def _alias(program: Program, view: Buffer, base: Buffer, offset: int, rest: tuple[Instr, ...]) -> Program | None:
    root, base_offset = program.root(base.name)
    if root == view.name or (base_offset + offset) % _needed_alignment(program, view):
        return None
    buffers = dict(program.buffers)
    buffers[view.name] = replace(view, alias_of=base.name, alias_offset_bytes=offset)
    return replace(program, buffers=buffers, instrs=rest)


def _needed_alignment(program: Program, view: Buffer) -> int:
    """Bytes an element of the tensors seen through `view` must be aligned to."""
    sizes = {o.type.dtype.bytes for i in program.instrs for o in i.operands if o.buffer == view.name}
    return max(sizes, default=1)


def _written_after(program: Program, index: int, buffer: str) -> bool:
    root, _ = program.root(buffer)
    later = program.instrs[index + 1 :]
    return any(o.access.writes and program.root(o.buffer)[0] == root for i in later for o in i.operands)


def _other_writers(program: Program, index: int, buffer: str) -> bool:
    return any(
        o.buffer == buffer and o.access.writes for n, i in enumerate(program.instrs) if n != index for o in i.operands
    )
