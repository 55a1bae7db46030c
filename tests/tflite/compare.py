"""Runs a model by glowc's interpreter of the program and compares with what the runtime says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowc.board import load_cpu
from glowc.frontend import import_model
from glowc.lower.lowering import lower_graph
from glowc.passes.pipeline import run_pipeline
from glowc.program.interp import Memory, run_instr
from tests.tflite.cases import Arrays


def difference(got: Sequence[Arrays], want: Sequence[Arrays], rtol: float) -> str:
    """Return what differs first, empty when nothing does; floats within rtol of the largest magnitude."""
    for n, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"call {n} output {i}: {a.dtype}{a.shape}, the runtime has {b.dtype}{b.shape}"
            if a.dtype.kind == "f":
                close = np.isclose(a, b, rtol=rtol, atol=rtol * max(1.0, float(np.nanmax(np.abs(b), initial=0))),
                                   equal_nan=True)  # fmt: skip
            else:
                close = a == b
            if not close.all():
                at = np.flatnonzero(~close.reshape(-1))
                first = [f"{a.reshape(-1)[j]} for {b.reshape(-1)[j]} at {j}" for j in at[:4]]
                return f"call {n} output {i}: {at.size} of {a.size} differ: {', '.join(first)}"
    return ""


def lowered(model: bytes, calls: Sequence[Arrays]) -> list[Arrays]:
    """Return the outputs of every call by the interpreter of the optimised program, which keeps its states."""
    graph = run_pipeline(import_model(model, name="net"))
    program = lower_graph(graph, load_cpu("cortex-m4"))
    memory, found = Memory(program, None, 0), []
    for call in calls:
        for operand, array in zip(program.inputs, call, strict=True):
            memory.array(operand)[...] = array
        for instr in program.instrs:
            run_instr(instr, memory)
        found.append(tuple(memory.array(operand).copy() for operand in program.outputs))
    return found
