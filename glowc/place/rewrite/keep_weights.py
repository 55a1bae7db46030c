"""Weights that an instruction reads again and again are copied into the arena where its scratch may be larger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType, TensorType
from glowc.kernels.base import Prepared, prepared_instr
from glowc.kernels.choice import variant_of
from glowc.place.spare import Gap
from glowc.program.ir import Access, Buffer, BufferKind, Instr, Operand, Program, scratch_of

_WORD_BYTES = 4


def keep_weights(program: Program, gaps: Mapping[str, Gap], near_bytes: int = 0) -> tuple[Program, dict[str, int]]:
    """Return the program whose instructions keep weights in their scratch, and the offsets of that scratch.

    `gaps` are the bytes by name of the instruction that are free for its scratch, `near_bytes` of constants those that
    a cache of the flash keeps until they are read for the next pixels.
    """
    places: dict[str, int] = {}
    instrs, buffers, consts = list(program.instrs), dict(program.buffers), dict(program.consts)
    for index, instr in enumerate(program.instrs):
        gap = gaps.get(instr.name)
        prepared = _prepared(program, instr, gap, near_bytes) if gap is not None else None
        if prepared is not None and gap is not None:
            instrs[index] = _keeping(instr, index, prepared, buffers, consts)
            places[next(o.buffer for o in instrs[index].operands if o.role == "scratch")] = gap.begin
    if not places:
        return program, places
    return without_unused(replace(program, instrs=tuple(instrs), buffers=buffers, consts=consts)), places


def wanted_gaps(program: Program, gaps: Mapping[str, Gap], *, every: bool) -> dict[str, Gap]:
    """Return gaps by name that instructions want and have not in `gaps`: for `every` weight, or for few."""
    found = {}
    for instr in program.instrs:
        gap, wanted = gaps.get(instr.name), variant_of(instr).wanted_bytes(instr)
        if gap is None or not wanted or instr.shares > 1 or gap.size_bytes >= wanted[not every]:
            continue
        if every or _prepared(program, instr, gap, 0) is None:
            found[instr.name] = Gap(0, wanted[not every])
    return found


def _prepared(program: Program, instr: Instr, gap: Gap, near_bytes: int) -> Prepared | None:
    keeps = variant_of(instr).keeps
    if keeps is None or instr.operand("weights").buffer not in program.consts:
        return None  # they are unpacked in front of it
    constants = {o.role: program.consts[o.buffer] for o in instr.operands if o.buffer in program.consts}
    return keeps(constants, instr, gap.size_bytes // instr.shares, near_bytes)


def _keeping(
    instr: Instr, index: int, prepared: Prepared, buffers: dict[str, Buffer], consts: dict[str, np.ndarray]
) -> Instr:
    """Return an instruction prepared anew; constants and scratch of its own are added to `buffers` and `consts`."""
    instr = prepared_instr(instr, prepared)
    size = variant_of(instr).scratch_bytes(instr)
    operands = []
    for operand in instr.operands:
        if operand.role in prepared.constants:
            array = prepared.constants[operand.role]
            operand = replace(operand, buffer=f"{operand.buffer}.kept.{index}")
            consts[operand.buffer] = np.ascontiguousarray(array)
            buffers[operand.buffer] = Buffer(operand.buffer, BufferKind.CONST, array.nbytes, array.dtype.itemsize)
        if operand.role != "scratch":
            operands.append(operand)
    name = next((o.buffer for o in instr.operands if o.role == "scratch"), f"{instr.name}.scratch.{index}")
    scratch = buffers.get(name, Buffer(name, BufferKind.SCRATCH, size, _WORD_BYTES))
    buffers[name] = scratch_of(instr, replace(scratch, size_bytes=size))
    operands.append(Operand("scratch", name, Access.OUT, TensorType((size,), DType.U8)))
    return replace(instr, operands=tuple(operands))


def without_unused(program: Program) -> Program:
    """Return the program without constants that no instruction reads."""
    used = {program.root(o.buffer)[0] for i in program.instrs for o in i.operands}
    used |= {program.root(o.buffer)[0] for o in (*program.inputs, *program.outputs)}
    gone = program.consts.keys() - used
    buffers = {name: b for name, b in program.buffers.items() if name not in gone}
    return replace(program, buffers=buffers, consts={n: a for n, a in program.consts.items() if n not in gone})
