"""Checks that a program is well formed: calls as kernels declare them, bounds, reads after writes, allocation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glowc.errors import InternalError
from glowc.program.ir import Access, BufferKind, Instr, Operand, ParamValue, Program

if TYPE_CHECKING:
    from glowc.ops.base import KernelDef, KernelVariant


def verify_program(program: Program, where: str = "", before: Program | None = None) -> None:
    """Raise InternalError naming every violation; `where` names the pass that made the program.

    The calls that it has from `before`, a program that was verified, are not compared with their kernels again.
    """
    problems = _check_buffers(program) + _check_segments(program)
    known = {id(instr) for instr in before.instrs} if before is not None else set()
    for instr in program.instrs:
        problems += _check_operands(program, instr)
        if not instr.is_marker and id(instr) not in known:
            problems += [f"{instr.name}: {problem}" for problem in call_problems(instr)]
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


def call_problems(instr: Instr) -> list[str]:
    """Return where a call differs from what its kernel declares."""
    from glowc.ops.registry import find_kernel
    from glowc.program.rows import variant_of

    kernel = find_kernel(instr.kernel)
    if kernel is None:
        return [f"no kernel {instr.kernel}"]
    variant = variant_of(instr)
    if variant is None:
        return [f"kernel {instr.kernel} has no variant {instr.isa}"]
    problems = _check_roles(kernel, instr) + _check_params(kernel, instr)
    if not problems:  # what follows reads operands and parameters
        problems = _check_kinds(kernel, variant, instr) + _check_scratch(variant, instr) + _check_rows(kernel, instr)
    return problems


def _check_roles(kernel: KernelDef, instr: Instr) -> list[str]:
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


def _check_params(kernel: KernelDef, instr: Instr) -> list[str]:
    given = instr.params.keys()
    if given != kernel.param_names:
        problems = [f"parameter {key} is missing" for key in sorted(kernel.param_names - given)]
        return problems + [f"unknown parameter {key}" for key in sorted(given - kernel.param_names)]
    whole, numbers = _wrong_kinds(kernel, instr.params)
    problems = [f"parameter {key} = {instr.params[key]!r}: needs an int32" for key in whole]
    return problems + [f"parameter {key} = {instr.params[key]!r}: needs a number" for key in numbers]


def _wrong_kinds(kernel: KernelDef, params: Mapping[str, ParamValue]) -> tuple[list[str], list[str]]:
    """Return the parameters that are no int32, and those that are no number, though the kernel needs one."""
    whole = [k for k in kernel.params if not isinstance(v := params[k], int) or not -0x80000000 <= v <= 0x7FFFFFFF]
    return whole, [key for key in kernel.float_params if isinstance(params[key], str)]


def _check_kinds(kernel: KernelDef, variant: KernelVariant, instr: Instr) -> list[str]:
    """Check the element kinds, but of constants: a variant packs its own into any."""
    wrong = [(o, f) for o, f in zip(instr.operands, kernel.signature, strict=False) if o.type.dtype not in f.kinds]
    packed = variant.packed_roles(instr) if wrong else frozenset()
    return [
        f"operand {o.role} is {o.type}, needs {'|'.join(sorted(kind.value for kind in f.kinds))}"
        for o, f in wrong
        if o.role not in packed
    ]


def _check_scratch(variant: KernelVariant, instr: Instr) -> list[str]:
    given = sum(o.type.size_bytes for o in instr.operands if o.role == "scratch")
    needed = variant.scratch_bytes(instr)
    return [f"{given} bytes of scratch, needs {needed}"] if given < needed else []


def _check_rows(kernel: KernelDef, instr: Instr) -> list[str]:
    if not kernel.rows:
        return [f"rows {instr.rows} of a kernel without rows"] if instr.rows is not None else []
    if instr.rows is None:
        return ["a kernel with rows has none"]
    begin, end = instr.rows
    last = instr.int_("out_h") if "out_h" in instr.params else end
    return [] if 0 <= begin < end <= last else [f"rows {begin}..{end} are not rows of {last}"]


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
