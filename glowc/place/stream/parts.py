"""Instructions as parts of a streamed segment: what each is row by row, and a global mean as sums and their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType, TensorType
from glowc.kernels.base import streams_rows
from glowc.kernels.choice import variant_of
from glowc.ops.params import OutCodes
from glowc.ops.row_sum import RequantSums, SumRows
from glowc.program.ir import NO_PLAN, Access, Buffer, BufferKind, Instr, Operand, Program
from glowc.program.kernel import get_kernel
from glowc.program.params import as_mapping, typed
from glowc.program.rows import RowForm, RowInput, row_form, walked_roles


@dataclass(frozen=True, slots=True)
class Part:
    """One instruction of a segment before its rows are put into rings.

    `over` are the inputs that its output rows may overwrite; `walks` are the operands that advance row by row
    because the kernel knows nothing of rows; `buffer` is one that the part brings along.
    """

    instr: Instr
    form: RowForm
    out_role: str = "out"
    sums: bool = False
    over: tuple[str, ...] = ()
    walks: tuple[str, ...] = ()
    buffer: Buffer | None = None


def parts_of(program: Program, instr: Instr, writers: Mapping[str, int]) -> tuple[Part, ...]:
    """Return the parts of an instruction, nothing when it cannot run row by row.

    `writers` counts the instructions that write each root: a tensor that is put together is no stream.
    """
    if instr.is_marker or not streams_rows(variant_of(instr), instr):
        return ()
    if any(not _whole(program, o) for o in instr.operands):
        return ()
    if any(writers.get(program.root(o.buffer)[0], 0) > 1 for o in instr.operands if o.access.writes):
        return ()
    mean = _mean(instr)
    if mean is not None:
        return mean
    form = row_form(program, instr)
    if form is None:
        return ()
    if not form.elementwise:
        return (Part(instr, form),)
    walks = walked_roles(get_kernel(instr.kernel), instr)
    size = instr.operand("out").type.dtype.bytes
    over = tuple(r for r in walks if variant_of(instr).in_place and instr.operand(r).type.dtype.bytes == size)
    return (Part(instr, form, over=over, walks=(*walks, "out")),)


def _whole(program: Program, operand: Operand) -> bool:
    root, offset = program.root(operand.buffer)
    buffer = program.buffers[root]
    if buffer.kind is BufferKind.CONST:
        return True
    return offset == 0 and buffer.size_bytes == operand.type.size_bytes and buffer.kind is not BufferKind.STATE


def _mean(instr: Instr) -> tuple[Part, ...] | None:
    """Return sums and their requantisation for a quantised mean over all rows and columns of [1,H,W,C]."""
    name, p, x = instr.kernel, instr.params, instr.operand("in").type if _has(instr, "in") else None
    if x is None or x.rank != 4 or x.shape[0] != 1 or x.dtype not in (DType.S8, DType.S16):
        return None
    _, height, width, channels = x.shape
    if name == f"avg_pool_{x.dtype.value}":
        window = {"out_h": 1, "out_w": 1, "in_h": height, "in_w": width, "k_h": height, "k_w": width, "dil_h": 1,
                  "dil_w": 1, "pad_top": 0, "pad_left": 0, "pad_bottom": 0, "pad_right": 0}  # fmt: skip
        if any(p[key] != value for key, value in window.items()):
            return None
        count = np.float32(height * width)
        scale = float(np.float32(p["in_scale"]) / (np.float32(p["out_scale"]) * count))
    elif name == f"reduce_mean_{x.dtype.value}" and (p["outer"], p["n"], p["inner"]) == (1, height * width, channels):
        scale = float(p["scale"])
    else:
        return None
    return _sums(instr, x, scale)


def _has(instr: Instr, role: str) -> bool:
    return any(o.role == role for o in instr.operands)


def _sums(instr: Instr, x: TensorType, scale: float) -> tuple[Part, ...]:
    _, height, width, channels = x.shape
    kind, row = x.dtype.value, width * channels * x.dtype.bytes
    sums = Buffer(f"{instr.name}.sums", BufferKind.ACTIVATION, 4 * channels, 4)
    total = TensorType((channels,), DType.S32)
    add = as_mapping(SumRows(width, channels, width * channels, height, instr.int_("in_zp")))
    end = as_mapping(RequantSums(channels, typed(OutCodes, instr.params), scale))
    source, out = instr.operand("in"), instr.operand("out")
    first = replace(
        instr, kernel=f"sum_rows_{kind}", variant="ref",
        operands=(source, Operand("acc", sums.name, Access.OUT, total)),
        params=add, rows=(0, height), name=f"{instr.name}.sum", plan=NO_PLAN,
    )  # fmt: skip
    last = replace(
        instr, kernel=f"requant_sums_{kind}", variant="ref", operands=(Operand("in", sums.name, Access.IN, total), out),
        params=end, rows=None, name=f"{instr.name}.mean", macs=0, plan=NO_PLAN,
    )  # fmt: skip
    each = RowInput("in", height, row, tuple((y, y + 1) for y in range(height)))
    after = RowInput("in", height, sums.size_bytes, ((height - 1, height),))
    return (
        Part(first, RowForm(height, sums.size_bytes, (each,), False), out_role="acc", sums=True, buffer=sums),
        Part(last, RowForm(1, out.type.size_bytes, (after,), False)),
    )
