"""Checks that a program is well formed: operands, bounds, access, reads after writes, allocation."""

from __future__ import annotations

from glowc.errors import InternalError
from glowc.instr.ir import BufferKind, Instr, Program


def verify_program(program: Program, where: str = "") -> None:
    """Raise InternalError naming every violation; `where` names the pass that made the program."""
    problems = _check_buffers(program) + _check_segments(program)
    for instr in program.instrs:
        problems += _check_operands(program, instr)
    if not problems:  # liveness follows aliases, which must lead somewhere
        problems = _check_liveness(program)
    if problems:
        suffix = f" after {where}" if where else ""
        raise InternalError(f"invalid program {program.name!r}{suffix}", details=problems)


def _check_buffers(program: Program) -> list[str]:
    problems = []
    for buffer in program.buffers.values():
        if buffer.alias_of is None:
            continue
        seen = {buffer.name}
        current = buffer
        while current.alias_of is not None:
            if current.alias_of not in program.buffers or current.alias_of in seen:
                problems.append(f"{buffer.name}: alias of {current.alias_of}, which is missing or circular")
                break
            seen.add(current.alias_of)
            current = program.buffers[current.alias_of]
        else:
            root, offset = program.root(buffer.name)
            if offset < 0 or offset + buffer.size_bytes > program.buffers[root].size_bytes:
                problems.append(f"{buffer.name}: bytes {offset}..{offset + buffer.size_bytes} lie outside {root}")
    for name, array in program.states.items():
        state = program.buffers.get(name)
        if state is None or state.kind is not BufferKind.STATE or state.alias_of or state.size_bytes != array.nbytes:
            problems.append(f"state {name} has no buffer of its own of {array.nbytes} bytes")
    for name in program.consts:
        if name not in program.buffers or program.buffers[name].kind is not BufferKind.CONST:
            problems.append(f"constant {name} has no constant buffer")
    for operand in (*program.inputs, *program.outputs):
        if operand.buffer not in program.buffers:
            problems.append(f"model tensor {operand.role} names no buffer: {operand.buffer}")
    return problems


def _check_segments(program: Program) -> list[str]:
    """Segments follow each other, and every instruction of one is stepped through."""
    problems = []
    count = sum(not i.is_marker for i in program.instrs)
    done = 0
    for s in program.segments:
        where = f"segment {s.begin}..{s.end}"
        if not done <= s.begin < s.end <= count:
            problems.append(f"{where}: overlaps another one or leaves the {count} instructions")
        done = s.end
        kinds = set(range(s.end - s.begin + (s.feed is not None)))
        if set(s.steps) != kinds or len(s.advances) != s.end - s.begin:
            problems.append(f"{where}: steps {sorted(set(s.steps) ^ kinds)} are missing or unknown")
        if s.feed is not None and (s.feed.role not in program.buffers or s.progress not in program.buffers):
            problems.append(f"{where}: the input {s.feed.role} or the progress of its rows has no buffer")
    return problems


def _check_operands(program: Program, instr: Instr) -> list[str]:
    problems = []
    for operand in instr.operands:
        buffer = program.buffers.get(operand.buffer)
        if buffer is None:
            problems.append(f"{instr.name}: operand {operand.role} names no buffer: {operand.buffer}")
            continue
        if operand.type.size_bytes > buffer.size_bytes:
            problems.append(f"{instr.name}: {operand.role} {operand.type} does not fit {buffer.size_bytes} bytes")
        if operand.access.writes and not instr.is_marker and buffer.kind is BufferKind.CONST:
            problems.append(f"{instr.name}: writes constant {operand.buffer}")
    return problems


def _check_liveness(program: Program) -> list[str]:
    """Every root is allocated once, written before it is read and freed after its last use."""
    problems: list[str] = []
    markers = any(i.is_marker for i in program.instrs)
    roots = {n: program.root(n)[0] for n, b in program.buffers.items() if b.kind is not BufferKind.CONST}
    written = {roots[o.buffer] for o in program.inputs if o.buffer in roots} | set(program.states)
    alive: set[str] = set()
    for instr in program.instrs:
        touched = [(o, roots[o.buffer]) for o in instr.operands if o.buffer in roots]
        if instr.kernel == "alloc":
            if touched[0][1] in alive:
                problems.append(f"{touched[0][1]} allocated twice")
            alive.add(touched[0][1])
            continue
        if instr.kernel == "dealloc":
            alive.discard(touched[0][1])
            continue
        for operand, root in touched:
            if operand.access.reads and root not in written:
                problems.append(f"{instr.name}: reads {operand.buffer} before anything wrote it")
            if markers and root not in alive:
                problems.append(f"{instr.name}: uses {operand.buffer} outside its allocation")
        written.update(root for operand, root in touched if operand.access.writes)
    problems += [f"output {o.buffer} is never written" for o in program.outputs if roots.get(o.buffer) not in written]
    return problems
