"""Attention on rows that were kept: Append puts new rows into a cache, Attend is softmax(scale q k^T) v on its rows.

Append(cache, new, position): the cache with new rows from index `position` along attr `axis`; where the cache is a
state of which this is the next value, its buffer is written in place. `append_b<N>` is the kernel, by element size.
Attend(q[H, S, D], k, v, position): query i of S sees the rows before position + S, before position + i + 1 where
attr `causal` is not 0. Head h reads k at h / group * k_steps[0] + row * k_steps[1] elements and D on, v likewise.
Caches are float32 or int8, whose scales are factors of `scale` and `v_scale`. A position is clamped so that all new
rows fit. Tolerance: 1e-5 + 1e-4 of a result, as exp and sums are in another order; with int8 caches, integer kernels
round queries and shares to 16 bits (runtime_c/glow_shares.h), on average a hundredth of what the codes do.
Sources: ONNX Attention-23, com.microsoft GroupQueryAttention.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Int, IntList
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.copy import SIZES
from glowc.ops.derived import derived
from glowc.ops.strided import axis_of, emit_copy, present, whole
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed


@dataclass(frozen=True, slots=True)
class AppendParams(Params):
    """Of `append_b<N>`: parts of the cache, rows of each, of which `fresh` come, and elements of a row."""

    outer: int
    most: int
    fresh: int
    inner: int


@dataclass(frozen=True, slots=True)
class AttendParams(Params):
    """Of `attend_f32`: elements of a row of k and of v, and the steps of heads and rows in elements."""

    heads: int
    group: Printed
    queries: int
    key: Printed
    value: Printed
    most: int
    k_head: int
    k_row: int
    v_head: int
    v_row: int
    causal: int
    scale: float
    v_scale: float


def _check_position(position: TensorType) -> None:
    if position.dtype is not DType.S32 or position.elements != 1:
        raise OpError(f"position {position}: needs one s32")


def infer_append(node: Node, in_types: MaybeTypes) -> Types:
    """The type of the cache."""
    cache, new, position = present(in_types[:3])
    axis = axis_of(node.int_("axis"), cache.rank)
    rest = [t.shape[:axis] + t.shape[axis + 1 :] for t in (cache, new)]
    if cache.dtype != new.dtype or cache.rank != new.rank or rest[0] != rest[1] or new.shape[axis] > cache.shape[axis]:
        raise OpError(f"new rows {new} of a cache {cache} along axis {axis}")
    _check_position(position)
    return (cache,)


def lower_append(node: Node, ctx: LowerCtx) -> None:
    """One `append_b<N>`, after a copy of the cache where it is not the output's own buffer."""
    cache, new, position = (ctx.read(name) for name in node.inputs)
    out, shape = ctx.write(node.outputs[0]), cache.type.shape
    if out.buffer != cache.buffer:
        emit_copy(ctx, cache, out, whole(shape))
    axis = axis_of(node.int_("axis"), len(shape))
    params = AppendParams(math.prod(shape[:axis]), shape[axis], new.type.shape[axis], math.prod(shape[axis + 1 :]))
    ctx.emit(f"append_b{new.type.dtype.bytes}", {"cache": out, "in": new, "position": position}, params)


def first_row(position: np.ndarray, most: int, fresh: int) -> int:
    """Return where the first of the new rows lies."""
    return int(np.clip(position.reshape(-1)[0], 0, most - fresh))


def interpret_append(arrays: Arrays, p: AppendParams) -> None:
    """Evaluate append_b<N>."""
    at = first_row(arrays["position"], p.most, p.fresh)
    new = arrays["in"].reshape(p.outer, p.fresh, p.inner)
    arrays["cache"].reshape(p.outer, p.most, p.inner)[:, at : at + p.fresh] = new


def infer_attend(node: Node, in_types: MaybeTypes) -> Types:
    """The shape of q, with the last axis of v."""
    q, k, v, position = present(in_types[:4])
    group, queries, key = _sizes(node, q)
    if q.dtype is not DType.F32 or k.dtype != v.dtype or k.dtype not in (DType.F32, DType.S8) or not group:
        raise OpError(f"attention of {q} to {k} and {v}")
    rows, value, heads = node.int_("rows"), node.int_("value"), q.elements // (queries * key)
    last = heads // group - 1
    for cache, steps, n in ((k, node.ints("k_steps"), key), (v, node.ints("v_steps"), value)):
        if last * steps[0] + (rows - 1) * steps[1] + n > cache.elements or queries > rows:
            raise OpError(f"{rows} rows of {n} elements, {heads} heads in groups of {group}, of {cache}")
    _check_position(position)
    return (q.with_shape((*q.shape[:-1], value)),)


def _sizes(node: Node, q: TensorType) -> tuple[int, int, int]:
    """Return heads of a group, queries and elements of a query."""
    if q.rank < 2:
        raise OpError(f"queries {q}")
    return node.int_("group"), q.shape[-2], q.shape[-1]


def lower_attend(node: Node, ctx: LowerCtx) -> None:
    """One `attend_f32`."""
    q, k, v, position = (ctx.read(name) for name in node.inputs)
    group, queries, key = _sizes(node, q.type)
    heads, value, rows = q.type.elements // (queries * key), node.int_("value"), node.int_("rows")
    (k_head, k_row), (v_head, v_row) = node.ints("k_steps"), node.ints("v_steps")
    params = AttendParams(
        heads, group, queries, key, value, rows, k_head, k_row, v_head, v_row, node.int_("causal"),
        node.float_("scale"), node.float_("v_scale"),
    )  # fmt: skip
    operands = {"q": q, "k": k, "v": v, "position": position, "out": ctx.write(node.outputs[0])}
    ctx.emit("attend_f32", operands, params, macs=heads * queries * rows * (key + value))


def _rows_of(cache: np.ndarray, at: int, step: int, rows: int, n: int) -> np.ndarray:
    taken = at + np.arange(rows)[:, None] * step + np.arange(n)
    return np.asarray(cache.reshape(-1)[taken], np.float32)


def interpret_attend(arrays: Arrays, p: AttendParams) -> None:
    """Evaluate attend_f32."""
    first = first_row(arrays["position"], p.most, p.queries)
    q, out = arrays["q"].reshape(p.heads, p.queries, p.key), arrays["out"].reshape(p.heads, p.queries, p.value)
    for h in range(p.heads):
        k = _rows_of(arrays["k"], h // p.group * p.k_head, p.k_row, first + p.queries, p.key)
        v = _rows_of(arrays["v"], h // p.group * p.v_head, p.v_row, first + p.queries, p.value)
        for i in range(p.queries):
            seen = first + (i + 1 if p.causal else p.queries)
            scores = k[:seen] @ q[h, i] * np.float32(p.scale)
            shares = np.exp(scores - scores.max())
            out[h, i] = shares @ v[:seen] / shares.sum() * np.float32(p.v_scale)


KERNELS = (
    *(
        KernelDef(
            f"append_b{n}", ("inout cache", "in in", "in position:s32"), AppendParams, interpret_append,
            template="append", kind=f"b{n}", doc="put rows into a cache at a position",
        )
        for n in SIZES
    ),
    KernelDef("attend_f32", ("in q", "in k:f32|s8", "in v:f32|s8", "in position:s32", "out out"), AttendParams,
              interpret_attend, kind="f32", needs_math=True, doc="attention to the rows of a cache"),
)  # fmt: skip

_STEPS = {"k_steps": IntList(), "v_steps": IntList()}
OPS = (
    OpDef("Append", infer_append, derived, lower_append, attrs={"axis": Int()},
          doc="new rows of a cache that is kept between inferences"),
    OpDef("Attend", infer_attend, derived, lower_attend,
          attrs={"group": Int(), "rows": Int(), "value": Int(), "causal": Int(), "scale": Float(),
                 "v_scale": Float(1.0), **_STEPS},
          doc="attention to the rows of a cache"),
)  # fmt: skip
