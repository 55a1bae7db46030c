"""GatherElements and GatherND: single elements, or rows, picked by index tensors.

`pick_b<N>`: out[o] = in[sum x_k * a_k + indices[sum x_k * c_k] * axis_stride] in `rank` loops, out dense.
`nd_index`: rows of k coordinates -> the number of the element (or row) that they name, for `gather_b<N>` and `scatter`.
A negative index counts from the end; one out of range (undefined in ONNX) is clamped, so that the C never reads
outside. Source: ONNX GatherElements-13, GatherND-13.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import axis_keys
from glowc.ops.base import Call, LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.gather import clamped
from glowc.ops.strided import axis_of, axis_params, collapse, dense_strides, present
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef

INDEX_KINDS = (DType.S32, DType.S64)


def infer_elements(node: Node, in_types: MaybeTypes) -> Types:
    """The shape of the indices."""
    x, indices = present(in_types[:2])
    axis = axis_of(node.int_("axis"), x.rank)
    longer = any(n > d for i, (n, d) in enumerate(zip(indices.shape, x.shape, strict=False)) if i != axis)
    if indices.dtype not in INDEX_KINDS or indices.rank != x.rank or x.rank == 0 or longer:
        raise OpError(f"elements of {x} by {indices} along axis {axis}")
    return (x.with_shape(indices.shape),)


def reference_elements(call: Call) -> tuple[np.ndarray, ...]:
    """numpy.take_along_axis, on the part of the input that the indices cover."""
    x, indices = call.array(0), call.array(1)
    axis = axis_of(call.node.int_("axis"), x.ndim)
    part = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
    return (np.take_along_axis(part, clamped(indices, x.shape[axis]), axis),)


def along(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    """Return dense strides with 0 for `axis`, which an index tensor walks."""
    return tuple(0 if i == axis else s for i, s in enumerate(dense_strides(shape)))


def lower_elements(node: Node, ctx: LowerCtx) -> None:
    """One `pick_b<N>`."""
    x, indices, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    axis, shape = axis_of(node.int_("axis"), x.type.rank), x.type.shape
    dims, (a, c) = collapse(indices.type.shape, along(shape, axis), dense_strides(indices.type.shape))
    params: dict[str, ParamValue] = {
        "rank": len(dims), "axis_n": shape[axis], "axis_stride": dense_strides(shape)[axis],
        **axis_params("d", dims, 1), **axis_params("a", a, 0), **axis_params("c", c, 0),
    }  # fmt: skip
    ctx.emit(f"pick_b{x.type.dtype.bytes}", {"in": x, "indices": indices, "out": y}, params)


def positions(p: Mapping[str, ParamValue], letter: str) -> np.ndarray:
    """Return sum x_k * stride_k of every loop iteration, in order."""
    rank = int(p["rank"])
    total = np.zeros((), np.int64)
    for i, (d, s) in enumerate(zip(axis_keys("d")[:rank], axis_keys(letter)[:rank], strict=True)):
        steps = np.arange(int(p[d]), dtype=np.int64) * int(p[s])
        total = total + steps.reshape([-1 if j == i else 1 for j in range(rank)])
    return np.asarray(total).reshape(-1)


def interpret_pick(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    """Evaluate pick_b<N>."""
    k = clamped(arrays["indices"].reshape(-1)[positions(p, "c")], int(p["axis_n"]))
    y = arrays["in"].reshape(-1)[positions(p, "a") + k * int(p["axis_stride"])]
    arrays["out"].reshape(-1)[: y.size] = y


def infer_nd(node: Node, in_types: MaybeTypes) -> Types:
    """Shape of the indices but their last axis, then what they leave of the data."""
    x, indices = present(in_types[:2])
    b, k = node.int_("batch_dims"), indices.shape[-1] if indices.rank else 0
    if indices.dtype not in INDEX_KINDS or not 0 < k <= x.rank - b or x.shape[:b] != indices.shape[:b]:
        raise OpError(f"gather from {x} by {indices}, batch_dims {b}")
    return (x.with_shape([*indices.shape[:-1], *x.shape[b + k :]]),)


def reference_nd(call: Call) -> tuple[np.ndarray, ...]:
    """Index every batch."""
    x, indices, b = call.array(0), call.array(1), call.node.int_("batch_dims")
    k, batch = indices.shape[-1], math.prod(x.shape[:b])
    data, where = x.reshape(batch, *x.shape[b:]), indices.reshape(batch, -1, k)
    rows = [one[tuple(clamped(at[:, j], one.shape[j]) for j in range(k))] for one, at in zip(data, where, strict=True)]
    return (np.stack(rows).reshape(call.out_types[0].shape),)


def emit_nd_index(ctx: LowerCtx, indices: Ref, shape: Sequence[int], batch_dims: int, name: str) -> Ref:
    """Emit the numbers of the rows of a tensor of `shape` that `indices` [..., k] name."""
    k = indices.type.shape[-1]
    n = indices.type.elements // k
    named = tuple(shape[batch_dims : batch_dims + k])
    rows = ctx.temp(TensorType((n,), DType.S32), f"{name}_rows")
    params: dict[str, ParamValue] = {
        "n": n, "k": k, "per_batch": n // math.prod(shape[:batch_dims]), "batch_rows": math.prod(named),
        **axis_params("d", _six(named), 1), **axis_params("s", _six(dense_strides(named)), 0),
    }  # fmt: skip
    ctx.emit("nd_index", {"indices": indices, "out": rows}, params)
    return rows


def _six(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(values) > len(axis_keys("d")):
        raise OpError(f"{len(values)} coordinates, at most {len(axis_keys('d'))}")
    return values


def lower_nd(node: Node, ctx: LowerCtx) -> None:
    """`nd_index`, then a gather of rows."""
    x, indices, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    b, k, shape = node.int_("batch_dims"), indices.type.shape[-1], x.type.shape
    rows = emit_nd_index(ctx, indices, shape, b, node.name)
    params: dict[str, ParamValue] = {
        "outer": 1, "axis_n": math.prod(shape[: b + k]), "index_n": rows.type.elements,
        "inner": math.prod(shape[b + k :]),
    }  # fmt: skip
    ctx.emit(f"gather_b{x.type.dtype.bytes}", {"in": x, "indices": rows, "out": y}, params)


def interpret_nd_index(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    """Evaluate nd_index."""
    n, k = int(p["n"]), int(p["k"])
    at = arrays["indices"].reshape(-1)[: n * k].reshape(n, k)
    total = np.arange(n, dtype=np.int64) // int(p["per_batch"]) * int(p["batch_rows"])
    for j in range(k):
        total = total + clamped(at[:, j], int(p[f"d{j}"])) * int(p[f"s{j}"])
    arrays["out"].reshape(-1)[:n] = total


KERNELS = (
    *(
        KernelDef(f"pick_b{n}", ("in in", "in indices:s32|s64", "out out"),
                  (*axis_keys("d"), *axis_keys("a"), *axis_keys("c"), "axis_n", "axis_stride"), interpret_pick,
                  print_params=("rank",), template="pick", kind=f"b{n}", doc="elements picked by an index tensor")
        for n in (1, 2, 4, 8)
    ),
    KernelDef("nd_index", ("in indices:s32|s64", "out out:s32"),
              ("n", "per_batch", "batch_rows", *axis_keys("d"), *axis_keys("s")), interpret_nd_index,
              print_params=("k",), doc="coordinates to row numbers"),
)  # fmt: skip

OPS = (
    OpDef("GatherElements", infer_elements, reference_elements, lower_elements, attrs={"axis": Int(0)},
          max_version=13, int8=True, doc="elements picked along an axis by an index tensor"),
    OpDef("GatherND", infer_nd, reference_nd, lower_nd, attrs={"batch_dims": Int(0)}, max_version=13, int8=True,
          doc="rows picked by coordinates"),
)  # fmt: skip
