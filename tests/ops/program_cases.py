"""Kernel cases out of a lowering: the instructions of a one-node graph with the arrays they see."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from glowc.board import load_cpu
from glowc.graph.attrs import AttrValue
from glowc.lower.lowering import lower_graph
from glowc.program.interp import Memory, run_instr
from glowc.program.ir import Access
from glowc.program.kernel import get_kernel
from tests.kernels.case import Case, make_case
from tests.ops.one_node import Quants, graph_of


def cases_of(
    kernels: Collection[str],
    op: str,
    inputs: Sequence[np.ndarray | None],
    attrs: Mapping[str, AttrValue] | None = None,
    *,
    outputs: int = 1,
    quants: Quants = (),
    out_quants: Quants = (),
    consts: Sequence[int] = (),
    rtol: float = 0.0,
    atol: float = 0.0,
    why: str = "",
) -> Iterator[Case]:
    """Yield a case for every instruction of these kernels that the node lowers to."""
    graph = graph_of(op, inputs, attrs, quants=quants, out_quants=out_quants or (None,) * outputs, consts=consts)
    program = lower_graph(graph, load_cpu("cortex-m4"))
    memory = Memory(program, None, 0)
    for operand in program.inputs:
        array = inputs[int(operand.role[1:])]
        assert array is not None
        memory.array(operand)[...] = array
    for instr in program.instrs:
        if instr.kernel in kernels:
            declared = {role for role, _ in get_kernel(instr.kernel).roles}  # the variant may have scratch besides
            operands = [o for o in instr.operands if o.role in declared]
            given = {o.role: memory.array(o).copy() for o in operands if o.access is not Access.OUT}
            out = {o.role: (o.type.shape, o.type.dtype) for o in operands if o.access is Access.OUT}
            params = dict(instr.params)
            yield make_case(instr.kernel, given, params, rows=instr.rows, out=out, rtol=rtol, atol=atol, why=why)
        run_instr(instr, memory)
