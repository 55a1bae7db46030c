"""Checks that a program is well formed: calls as kernels declare them, bounds, reads after writes, allocation.

What depends on the variant of a kernel is for `glowc.kernels.verify`, which calls this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from glowc.program.ir import Access, BufferKind, Instr, Operand, ParamValue, Program
from glowc.program.kernel import AnyKernel, Formal


def structure_problems(program: Program) -> list[str]:
    """Return what is wrong with the buffers, segments and operands of a program."""
    problems = _check_buffers(program) + _check_segments(program)
    return problems + [problem for instr in program.instrs for problem in _check_operands(program, instr)]


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
        times = instr.shares if operand.role == "scratch" else 1
        if times * operand.type.size_bytes > buffer.size_bytes:
            many = f"{times} times " if times > 1 else ""
            problems.append(f"{instr.name}: {many}{operand.role} {operand.type} does not fit {buffer.size_bytes} bytes")
        if operand.access.writes and not instr.is_marker and buffer.kind is BufferKind.CONST:
            problems.append(f"{instr.name}: writes constant {operand.buffer}")
    return problems


def declaration_problems(kernel: AnyKernel, instr: Instr) -> list[str]:
    """Return where a call differs from what its kernel declares; the kinds of elements are for `wrong_kinds`."""
    problems = _check_roles(kernel, instr) + _check_params(kernel, instr)
    return problems or _check_rows(kernel, instr)  # which read operands and parameters


def _check_roles(kernel: AnyKernel, instr: Instr) -> list[str]:
    declared = kernel.roles
    found = tuple([(o.role, o.access) for o in instr.operands])
    if found == declared or found == (*declared, ("scratch", Access.OUT)):
        return []
    return _wrong_roles(dict(declared), instr.operands) or [f"operands {found} are not in the order of {declared}"]


def _wrong_roles(declared: dict[str, Access], operands: tuple[Operand, ...]) -> list[str]:
    known = {"scratch": Access.OUT, **declared}
    count = Counter(o.role for o in operands)
    problems = [f"operand {role} is missing" for role in declared if role not in count]
    problems += [f"operand {role} stands {n} times" for role, n in count.items() if n > 1]
    problems += [f"unknown operand {role}" for role in count if role not in known]
    wrong = [o for o in operands if o.role in known and o.access is not known[o.role]]
    problems += [f"operand {o.role} is {o.access.value}, declared {known[o.role].value}" for o in wrong]
    return problems


def _check_params(kernel: AnyKernel, instr: Instr) -> list[str]:
    given = instr.params.keys()
    if given != kernel.param_names:
        problems = [f"parameter {key} is missing" for key in sorted(kernel.param_names - given)]
        return problems + [f"unknown parameter {key}" for key in sorted(given - kernel.param_names)]
    whole, numbers = _wrong_numbers(kernel, instr.params)
    problems = [f"parameter {key} = {instr.params[key]!r}: needs an int32" for key in whole]
    if not whole and kernel.period and instr.int_(kernel.length) % instr.int_(kernel.period):
        problems.append(f"{kernel.length} = {instr.params[kernel.length]} is not a multiple of {kernel.period}")
    return problems + [f"parameter {key} = {instr.params[key]!r}: needs a number" for key in numbers]


def _wrong_numbers(kernel: AnyKernel, params: Mapping[str, ParamValue]) -> tuple[list[str], list[str]]:
    """Return the parameters that are no int32, and those that are no number, though the kernel needs one."""
    whole = [k for k in kernel.params if not isinstance(v := params[k], int) or not -0x80000000 <= v <= 0x7FFFFFFF]
    return whole, [key for key in kernel.float_params if isinstance(params[key], str)]


def wrong_kinds(kernel: AnyKernel, instr: Instr) -> list[tuple[Operand, Formal]]:
    """Return the operands whose elements are of a kind that the kernel does not declare."""
    pairs = zip(instr.operands, kernel.signature, strict=False)
    return [(o, formal) for o, formal in pairs if o.type.dtype not in formal.kinds]


def _check_rows(kernel: AnyKernel, instr: Instr) -> list[str]:
    if not kernel.rows:
        return [f"rows {instr.rows} of a kernel without rows"] if instr.rows is not None else []
    if instr.rows is None:
        return ["a kernel with rows has none"]
    begin, end = instr.rows
    last = instr.int_("out_h") if "out_h" in instr.params else end
    return [] if 0 <= begin < end <= last else [f"rows {begin}..{end} are not rows of {last}"]


def liveness_problems(program: Program) -> list[str]:
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
