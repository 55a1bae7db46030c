"""Instruction order: what each instruction reads and writes, as a scheduler needs it, and the reordering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from glowc.program.ir import BufferKind, Program


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction for the scheduler. Values are write events `index:buffer`, one per written operand."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class Steps:
    """All instructions, the bytes of each value, and which values share storage."""

    steps: tuple[Step, ...]
    sizes: dict[str, int]
    alias_of: dict[str, str]
    in_place: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def steps_of(program: Program, pairs: Sequence[tuple[str, str]] = ()) -> Steps:
    """Return the instructions as steps; `pairs` are (input root, output root) that could share bytes.

    A read depends on every earlier write to the same root; so does a write (partial writes of a concat keep
    their order). A write depends on every earlier read of the same bytes, by a value of no bytes.
    """
    sizes: dict[str, int] = {}
    alias_of: dict[str, str] = {}
    events: dict[str, list[str]] = {}
    steps = []
    before: dict[int, list[int]] = {}
    read_first: set[int] = set()
    for reader, writer in _overwritten(program):
        before.setdefault(writer, []).append(reader)
        read_first.add(reader)
    for operand in program.inputs:
        root, _ = program.root(operand.buffer)
        events[root] = [root]
    for state in program.states:
        events[state] = [state]
    for buffer in program.buffers.values():
        if buffer.alias_of is None and buffer.kind not in (BufferKind.CONST, BufferKind.SCRATCH):
            sizes[buffer.name] = buffer.size_bytes
    for index, instr in enumerate(program.instrs):
        inputs: dict[str, None] = {}
        outputs = []
        scratch = 0
        for operand in instr.operands:
            root, _ = program.root(operand.buffer)
            kind = program.buffers[root].kind
            if kind is BufferKind.SCRATCH:
                scratch += program.buffers[root].size_bytes
            elif kind is not BufferKind.CONST:
                inputs.update(dict.fromkeys(events.get(root, [])))
                if operand.access.writes:
                    outputs.append((root, f"{index}:{operand.buffer}"))
        for root, event in outputs:
            alias_of[event] = root
            sizes[event] = sizes[root]
            events.setdefault(root, []).append(event)
        inputs.update(dict.fromkeys(f"{reader}:read" for reader in before.get(index, [])))
        reads = [f"{index}:read"] if index in read_first else []
        sizes.update(dict.fromkeys(reads, 0))
        steps.append(Step(instr.name, tuple(inputs), (*(e for _, e in outputs), *reads), scratch))
    input_roots, output_roots = (
        (*(program.root(o.buffer)[0] for o in operands), *program.states)
        for operands in (program.inputs, program.outputs)
    )
    in_place = tuple((target, source) for source, target in pairs)
    return Steps(
        tuple(steps),
        sizes,
        alias_of,
        in_place,
        input_roots,
        output_roots,
    )


def _overwritten(program: Program) -> set[tuple[int, int]]:
    """Return (reader, writer) of instructions of which the later one overwrites bytes that the earlier one reads."""
    pairs: set[tuple[int, int]] = set()
    reads: dict[str, list[tuple[int, int, int]]] = {}
    for index, instr in enumerate(program.instrs):
        spans = [(o, *_span(program, o.buffer)) for o in instr.operands]
        for operand, root, begin, end in spans:
            if operand.access.writes:
                earlier = (r for r, low, high in reads.get(root, []) if low < end and begin < high)
                pairs.update((reader, index) for reader in earlier)
        for operand, root, begin, end in spans:
            if operand.access.reads and program.buffers[root].kind is not BufferKind.CONST:
                reads.setdefault(root, []).append((index, begin, end))
    return pairs


def _span(program: Program, buffer: str) -> tuple[str, int, int]:
    root, begin = program.root(buffer)
    return root, begin, begin + program.buffers[buffer].size_bytes


def reorder(program: Program, order: Sequence[int]) -> Program:
    """Return the program with its instructions in the given order."""
    if list(order) == list(range(len(program.instrs))):
        return program
    return replace(program, instrs=tuple(program.instrs[i] for i in order))
