"""ArgMax, ArgMin, TopK, Hardmax: where the largest or smallest elements of an axis are.

The tensor is seen as [outer, n, inner]. Of equal elements the first counts (the last with attr
select_last_index); TopK gives equal elements in index order, sorted whether asked to or not. NaN is never larger or
smaller than anything. Source: ONNX ArgMax-13, ArgMin-13, TopK-24, Hardmax-13.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.cumulate import dims_of
from glowc.ops.derived import derived
from glowc.ops.one_hot import emit_one_hot
from glowc.ops.params import Along
from glowc.ops.strided import axis_of, present
from glowc.program.kernel import Arrays, KernelDef


@dataclass(frozen=True, slots=True)
class ArgParams(Along):
    """Of `arg_reduce`: the comparison by which a later element wins, < > <= or >=."""

    compare: str


@dataclass(frozen=True, slots=True)
class TopKParams(Along):
    """Of `top_k`: how many, and the largest (>) or the smallest (<)."""

    k: int
    compare: str


def infer_arg(node: Node, in_types: MaybeTypes) -> Types:
    """int64; the axis becomes 1, or vanishes without keepdims."""
    (x,) = present(in_types[:1])
    axis = axis_of(node.int_("axis"), x.rank)
    keep = node.int_("keepdims") == 1
    shape = [1 if i == axis else d for i, d in enumerate(x.shape) if keep or i != axis]
    return (TensorType(tuple(shape), DType.S64),)


def find(x: np.ndarray, *, largest: bool, last: bool) -> np.ndarray:
    """Return the index along axis 1 of x[outer, n, inner]."""
    best, where = x[:, 0].copy(), np.zeros((x.shape[0], x.shape[2]), np.int64)
    for k in range(1, x.shape[1]):
        v = x[:, k]
        better = (v > best if largest else v < best) | (last & (v == best))
        best, where = np.where(better, v, best), np.where(better, k, where)
    return where


def _dims(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    return dims_of(shape, axis) if shape else (1, 1, 1)


def lower_arg(node: Node, ctx: LowerCtx) -> None:
    """One `arg_reduce`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    _emit_arg(ctx, x, y, node.int_("axis"), largest=node.op == "ArgMax", last=node.int_("select_last_index"))


def _emit_arg(ctx: LowerCtx, x: Ref, y: Ref, axis: int, *, largest: bool, last: int = 0) -> None:
    compare = (">" if largest else "<") + ("=" if last else "")
    ctx.emit("arg_reduce", {"in": x, "out": y}, ArgParams(*_dims(x.type.shape, axis), compare))


def infer_hardmax(node: Node, in_types: MaybeTypes) -> Types:
    """The type of the input."""
    (x,) = present(in_types[:1])
    axis_of(node.int_("axis"), x.rank)
    return (x,)


def lower_hardmax(node: Node, ctx: LowerCtx) -> None:
    """`arg_reduce`, then `one_hot`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    outer, n, inner = dims_of(x.type.shape, node.int_("axis"))
    where = ctx.temp(TensorType((outer, 1, inner), DType.S64), f"{node.name}_where")
    _emit_arg(ctx, x, where, node.int_("axis"), largest=True)
    values = ctx.const(np.asarray([0, 1], x.type.dtype.numpy), f"{node.name}_values")
    emit_one_hot(ctx, where, values, y, (outer, n, inner))


def infer_top_k(node: Node, in_types: MaybeTypes) -> Types:
    """Values and int64 indices; the axis becomes k."""
    (x,) = present(in_types[:1])
    axis, k = axis_of(node.int_("axis"), x.rank), node.int_("k")
    if x.rank == 0 or not 0 < k <= x.shape[axis]:
        raise OpError(f"the {k} largest along axis {axis} of {x}")
    y = x.with_shape([k if i == axis else d for i, d in enumerate(x.shape)])
    return (y, TensorType(y.shape, DType.S64))


def top_k(x: np.ndarray, k: int, *, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return values and indices along axis 1 of x[outer, n, inner]."""
    order = np.argsort(-(x.astype(np.float64)) if largest and x.dtype.kind == "f" else x, axis=1, kind="stable")
    if largest and x.dtype.kind != "f":
        order = x.shape[1] - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
    where = order[:, :k]
    return np.take_along_axis(x, where, 1), where.astype(np.int64)


def lower_top_k(node: Node, ctx: LowerCtx) -> None:
    """One `top_k`."""
    x = ctx.read(node.inputs[0])
    types = infer_top_k(node, (x.type,))
    names = (*node.outputs, "", "")
    values, indices = (
        ctx.write(name) if name else ctx.temp(t, f"{node.name}_unused{i}")
        for i, (name, t) in enumerate(zip(names, types, strict=False))
    )
    compare = ">" if node.int_("largest") else "<"
    params = TopKParams(*_dims(x.type.shape, node.int_("axis")), node.int_("k"), compare)
    ctx.emit("top_k", {"in": x, "values": values, "indices": indices}, params)


def _interpret_arg(a: Arrays, p: ArgParams) -> None:
    y = find(p.view(a["in"]), largest=p.compare[0] == ">", last=p.compare.endswith("="))
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


def _interpret_top_k(a: Arrays, p: TopKParams) -> None:
    values, where = top_k(p.view(a["in"]), p.k, largest=p.compare == ">")
    a["values"].reshape(-1)[: values.size] = values.reshape(-1)
    a["indices"].reshape(-1)[: where.size] = where.reshape(-1)


KERNELS = (
    KernelDef("arg_reduce", ("in in", "out out:s64"), ArgParams, _interpret_arg,
              doc="index of the largest or smallest of an axis"),
    KernelDef("top_k", ("in in", "out values", "out indices:s64"), TopKParams, _interpret_top_k,
              doc="the k largest or smallest of an axis"),
)  # fmt: skip

_ARG = {"axis": Int(0), "keepdims": Int(1), "select_last_index": Int(0)}
OPS = (
    OpDef("ArgMax", infer_arg, derived, lower_arg, attrs=_ARG, max_version=13, doc="index of the largest"),
    OpDef("ArgMin", infer_arg, derived, lower_arg, attrs=_ARG, max_version=13, doc="index of the smallest"),
    OpDef("Hardmax", infer_hardmax, derived, lower_hardmax, attrs={"axis": Int(-1)}, max_version=13,
          doc="1 at the largest, else 0"),
    OpDef("TopK", infer_top_k, derived, lower_top_k, max_version=24,
          attrs={"axis": Int(-1), "k": Int(), "largest": Int(1), "sorted": Int(1)},
          doc="the k largest or smallest with their indices"),
)  # fmt: skip
