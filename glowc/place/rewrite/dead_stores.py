"""Removes instructions whose results nobody reads."""

from __future__ import annotations

from dataclasses import replace

from glowc.program.ir import Program


def remove_dead_stores(program: Program) -> Program:
    """Return the program without instructions that write only bytes that are never read."""
    live = {program.root(o.buffer)[0] for o in program.outputs} | set(program.states)
    kept = []
    for instr in reversed(program.instrs):
        if any(o.access.writes and program.root(o.buffer)[0] in live for o in instr.operands):
            kept.append(instr)
            live.update(program.root(o.buffer)[0] for o in instr.operands if o.access.reads)
    if len(kept) == len(program.instrs):
        return program
    kept.reverse()
    used = {o.buffer for i in kept for o in i.operands} | {o.buffer for o in (*program.inputs, *program.outputs)}
    for name in list(used):
        used.update(_bases(program, name))
    buffers = {name: b for name, b in program.buffers.items() if name in used}
    consts = {name: a for name, a in program.consts.items() if name in used}
    return replace(program, instrs=tuple(kept), buffers=buffers, consts=consts)


def _bases(program: Program, name: str) -> list[str]:
    result = []
    base = program.buffers[name].alias_of
    while base is not None:
        result.append(base)
        base = program.buffers[base].alias_of
    return result
