"""Instructions row by row: which rows of its inputs an instruction needs for a row of its output.

Known of spatial kernels that declare their window (`KernelDef.row_window`) and of elementwise kernels on dense
[1,H,W,C] tensors (`KernelDef.length`); everything else has no row form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from glowc.program.ir import BufferKind, Instr, Program
from glowc.program.kernel import AnyKernel, get_kernel
from glowc.program.params import Params, typed


@dataclass(frozen=True, slots=True)
class RowInput:
    """One input by rows of `row_bytes`; output row y reads rows [windows[y][0], windows[y][1]).

    A planar input has `planes` planes of `rows` rows each; output row y reads those rows of every plane.
    """

    role: str
    rows: int
    row_bytes: int
    windows: tuple[tuple[int, int], ...]
    planes: int = 1


@dataclass(frozen=True, slots=True)
class RowForm:
    """An instruction as `rows` steps; step y writes the output row y of `row_bytes`."""

    rows: int
    row_bytes: int
    inputs: tuple[RowInput, ...]
    elementwise: bool


def row_form(program: Program, instr: Instr) -> RowForm | None:
    """Return the row form of an instruction, None when it has none."""
    if instr.is_marker:
        return None
    kernel = get_kernel(instr.kernel)
    if kernel.row_window is not None and instr.params["batch"] == 1:
        return _spatial(kernel, instr)
    if kernel.length:
        return _elementwise(program, kernel, instr)
    return None


def _spatial(kernel: AnyKernel, instr: Instr) -> RowForm:
    assert kernel.row_window is not None
    p = instr.params
    rows, in_h = int(p["out_h"]), int(p["in_h"])
    windows = _windows(kernel.row_window, typed(kernel.takes, p), rows)
    planar = int(p["in_ch"]) != 1 and int(p["in_c"]) > 1
    sizes = {role: instr.operand(role).type.dtype.bytes for role in ("in", "out")}
    source = RowInput("in", in_h, int(p["in_row"]) * sizes["in"], windows, int(p["in_c"]) if planar else 1)
    return RowForm(rows, int(p["out_row"]) * sizes["out"], (source,), elementwise=False)


@lru_cache(maxsize=64)
def _windows(
    row_window: Callable[[Any, int], tuple[int, int]], p: Params, rows: int
) -> tuple[tuple[int, int], ...]:  # fmt: skip
    """Return the window of every row; the variants of a layer have the same ones."""
    return tuple(row_window(p, y) for y in range(rows))


def _elementwise(program: Program, kernel: AnyKernel, instr: Instr) -> RowForm | None:
    out = instr.operand("out").type
    if not is_dense(kernel, instr):
        return None
    rows = out.shape[1] if out.rank == 4 and out.shape[0] == 1 else 1
    inputs = []
    for role in walked_roles(kernel, instr):
        operand = instr.operand(role)
        if program.buffers[program.root(operand.buffer)[0]].kind is BufferKind.CONST:
            return None
        windows = tuple((y, y + 1) for y in range(rows))
        inputs.append(RowInput(role, rows, operand.type.size_bytes // rows, windows))
    others = [o for o in instr.operands if o.role not in (*walked_roles(kernel, instr), "out")]
    if any(program.buffers[program.root(o.buffer)[0]].kind is not BufferKind.CONST for o in others):
        return None
    return RowForm(rows, out.size_bytes // rows, tuple(inputs), elementwise=True)


def is_dense(kernel: AnyKernel, instr: Instr) -> bool:
    """True when an elementwise instruction is one loop over the elements of its output."""
    n = math.prod(instr.operand("out").type.shape)
    return int(instr.params.get("rank", 1)) == 1 and int(instr.params[kernel.length]) == n > 0


def walked_roles(kernel: AnyKernel, instr: Instr) -> tuple[str, ...]:
    """Return the inputs of a dense elementwise instruction that advance with its output."""
    return tuple(r for r in kernel.in_place if int(instr.params.get(f"{r}0", 1)) == 1)
