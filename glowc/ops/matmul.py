"""MatMul of two activations and Gemm as ONNX writes it: batched, broadcast, optionally transposed.

Integers: acc = sum (a - za) * (b - zb) in int32, then clamp(rne(float32(acc) * (sa * sb) / sy) + zy), the scale
computed in float32 in that order. Attributes perm_a, perm_b and perm_y of MatMul transpose the operands before and
the result after the product: the kernels read and write by strides, so that nothing is copied.
Sources: ONNX MatMul-13, Gemm-13, QLinearMatMul-21.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from glowc.graph.attrs import Float, Int, IntList
from glowc.graph.graph import Node
from glowc.graph.numerics import act_range, requant_scale, requantize
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import MatMul
from glowc.ops.base import CLAMP, Call, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.strided import broadcast_shape, collapse, dense_strides, present
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef

Ints = tuple[int, ...]
F32 = np.float32


def infer_matmul(node: Node, in_types: MaybeTypes) -> Types:
    a, b = present(in_types[:2])
    if not a.rank or not b.rank:
        raise OpError(f"product of {a} and {b}: needs at least one axis")
    a, b = (t.with_shape(_permuted(t.shape, node, key)) for t, key in ((a, "perm_a"), (b, "perm_b")))
    left = (1, *a.shape) if a.rank == 1 else a.shape
    right = (*b.shape, 1) if b.rank == 1 else b.shape
    if left[-1] != right[-2]:
        raise OpError(f"inner dimensions do not match: {a} times {b}")
    try:
        lead = np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        raise OpError(f"leading dimensions do not broadcast: {a} times {b}") from None
    tail = (() if a.rank == 1 else (left[-2],)) + (() if b.rank == 1 else (right[-1],))
    return (TensorType(_permuted((*lead, *tail), node, "perm_y"), a.dtype),)


def operand_perm(node: Node, key: str, rank: int) -> Ints:
    """Return an attribute that permutes axes; they stay as they are where the node lacks it."""
    return node.ints(key) if key in node.attrs else tuple(range(rank))


def _permuted(shape: Ints, node: Node, key: str) -> Ints:
    """Return the shape permuted by an attribute, when the node has it."""
    perm = operand_perm(node, key, len(shape))
    if sorted(perm) != list(range(len(shape))):
        raise OpError(f"{key} {list(perm)} does not permute {list(shape)}")
    return tuple(shape[axis] for axis in perm)


def infer_gemm(node: Node, in_types: MaybeTypes) -> Types:
    a, b = present(in_types[:2])
    if a.rank != 2 or b.rank != 2:
        raise OpError(f"Gemm of {a} and {b}: needs rank 2")
    m, k = a.shape[::-1] if node.int_("transA") else a.shape
    n, k2 = b.shape if node.int_("transB") else b.shape[::-1]
    if k != k2:
        raise OpError(f"inner dimensions do not match: {a} times {b}")
    bias = in_types[2] if len(in_types) > 2 else None
    if bias is not None and broadcast_shape((bias, bias.with_shape((m, n)))) != (m, n):
        raise OpError(f"bias {bias} does not broadcast to [{m},{n}]")
    return (TensorType((m, n), a.dtype),)


def _factors(node: Node) -> tuple[float, float]:
    """Return alpha and beta of a Gemm."""
    return (node.float_("alpha"), node.float_("beta")) if node.op == "Gemm" else (1.0, 1.0)


def _product(call: Call, a: np.ndarray, b: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    node, out = call.node, call.out_types[0]
    low, high = clamp_of(node)
    alpha, beta = _factors(node)
    qa, qb, qy = call.quant(0), call.quant(1), call.out_quant
    if qa is None or qb is None or qy is None:
        y = np.matmul(a, b)
        y = y if alpha == 1.0 else (y * np.asarray(alpha, y.dtype))
        y = y if bias is None else y + (bias if beta == 1.0 else bias * np.asarray(beta, bias.dtype))
        return np.asarray(np.clip(y, low, high) if y.dtype.kind == "f" else y).astype(out.dtype.numpy)
    acc = np.matmul(a.astype(np.float64) - qa.zero_point[0], b.astype(np.float64) - np.asarray(qb.zero_point))
    acc = acc if bias is None else acc + bias
    scale = requant_scale(qa, qb, qy)
    bounds = act_range(low, high, qy, out.dtype)
    return requantize(acc, scale if scale.size > 1 else scale[0], qy.zero_point[0], *bounds).astype(out.dtype.numpy)


def reference_matmul(call: Call) -> tuple[np.ndarray, ...]:
    a, b = (x.transpose(operand_perm(call.node, key, x.ndim)) for x, key in _operands(call))
    y = _product(call, a, b, None)
    return (np.ascontiguousarray(y.transpose(operand_perm(call.node, "perm_y", y.ndim))).reshape(y_shape(call)),)


def _operands(call: Call) -> tuple[tuple[np.ndarray, str], ...]:
    return (call.array(0), "perm_a"), (call.array(1), "perm_b")


def y_shape(call: Call) -> Ints:
    """Return the shape of the result."""
    return call.out_types[0].shape


def reference_gemm(call: Call) -> tuple[np.ndarray, ...]:
    a = call.array(0).T if call.node.int_("transA") else call.array(0)
    b = call.array(1).T if call.node.int_("transB") else call.array(1)
    return (_product(call, a, b, call.optional(2)),)


def lower_matmul(node: Node, ctx: LowerCtx) -> None:
    _emit(node, ctx, matmul_params(node, ctx.type(node.inputs[0]).shape, ctx.type(node.inputs[1]).shape))


def lower_gemm(node: Node, ctx: LowerCtx) -> None:
    a, b = ctx.type(node.inputs[0]), ctx.type(node.inputs[1])
    m, k = a.shape[::-1] if node.int_("transA") else a.shape
    n = b.shape[0] if node.int_("transB") else b.shape[1]
    a_strides = (1, m) if node.int_("transA") else (k, 1)
    b_strides = (1, k) if node.int_("transB") else (n, 1)
    _emit(node, ctx, _params([], (m, k, n), a_strides, b_strides, (n, 1)))


def matmul_params(node: Node, a: Ints, b: Ints) -> dict[str, ParamValue]:
    """Return lengths and strides of a MatMul of shapes `a` and `b`, which may be transposed by attributes.

    OpError when the leading axes do not collapse to two.
    """
    left, left_steps = _walked(a, node, "perm_a")
    right, right_steps = _walked(b, node, "perm_b")
    if len(left) == 1:
        left, left_steps = (1, *left), (0, *left_steps)
    if len(right) == 1:
        right, right_steps = (*right, 1), (*right_steps, 0)
    lead = tuple(np.broadcast_shapes(left[:-2], right[:-2]))
    shape = (*lead, left[-2], right[-1])
    perm = operand_perm(node, "perm_y", len(shape))
    dense = dense_strides([shape[axis] for axis in perm])
    out = tuple(dense[perm.index(axis)] for axis in range(len(shape)))
    steps = (_broadcast(left, left_steps, lead), _broadcast(right, right_steps, lead), out[:-2])
    axes, walks = collapse(lead, *steps)
    batch = [(d, *walk) for d, *walk in zip(axes, *walks, strict=True) if d > 1]
    if len(batch) > 2:
        raise OpError(f"leading dimensions {list(a)} and {list(b)} need more than two separate axes")
    sizes = left[-2], left[-1], right[-1]
    return _params(batch, sizes, left_steps[-2:], right_steps[-2:], out[-2:])


def _walked(shape: Ints, node: Node, key: str) -> tuple[Ints, Ints]:
    """Return the transposed shape of a dense operand, and the strides with which it is read."""
    perm, dense = operand_perm(node, key, len(shape)), dense_strides(shape)
    return tuple(shape[axis] for axis in perm), tuple(dense[axis] for axis in perm)


def _broadcast(shape: Ints, steps: Ints, lead: Ints) -> Ints:
    """Return the strides of the leading axes; 0 where the operand is repeated."""
    own = tuple(0 if d == 1 else step for d, step in zip(shape[:-2], steps[:-2], strict=True))
    return (0,) * (len(lead) - len(own)) + own


def _params(
    batch: Sequence[Sequence[int]], sizes: tuple[int, int, int], a: Ints, b: Ints, out: Ints
) -> dict[str, ParamValue]:
    """Return the parameters from up to two batch axes (length, step of a, b, out), m k n, and (row, column) steps."""
    params: dict[str, ParamValue] = {}
    for i, (count, *steps) in enumerate([*[(1, 0, 0, 0)] * (2 - len(batch)), *batch]):
        params[f"batch_{i}"] = count
        params |= {f"{name}_batch_{i}": step for name, step in zip(("a", "b", "out"), steps, strict=True)}
    params |= dict(zip(("m", "k", "n"), sizes, strict=True))
    for name, (row, column) in (("a", a), ("b", b), ("out", out)):
        params |= {f"{name}_row": row, f"{name}_col": column}
    return params


def _pad(shape: Ints, rank: int) -> Ints:
    return (1,) * (rank - len(shape)) + shape


def _emit(node: Node, ctx: LowerCtx, params: dict[str, ParamValue]) -> None:
    a, b, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    k = int(params["k"])
    macs, qa, qb, qy = y.type.elements * k, a.type.quant, b.type.quant, y.type.quant
    operands = {"a": a, "b": b, "out": y}
    if qa is not None and qb is not None and qy is not None:
        if qb.axis is not None or any(node.inputs[2:]):
            raise OpError("a product of two activations takes per-tensor quantisation and no bias")
        low, high = clamp_of(node)
        out_min, out_max = act_range(low, high, qy, y.type.dtype)
        params |= {
            "a_zp": qa.zero_point[0], "b_zp": qb.zero_point[0], "out_zp": qy.zero_point[0], "out_min": out_min,
            "out_max": out_max, "scale": float(requant_scale(qa, qb, qy)[0]),
        }  # fmt: skip
        ctx.emit(f"matmul_{a.type.dtype.value}", operands, params, macs=macs)
        return
    bias = ctx.type(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    alpha, beta = _factors(node)
    has_bias = bias is not None and beta != 0.0
    shape = _pad(bias.shape, 2) if bias is not None else (1, 1)
    operands["bias"] = (
        ctx.read(node.inputs[2]) if has_bias else ctx.const(np.zeros(1, a.type.dtype.numpy), f"{node.name}_zero")
    )
    params |= {
        "bias_row": shape[1] if has_bias and shape[0] > 1 else 0, "bias_col": int(has_bias and shape[1] > 1),
        "alpha": alpha, "beta": beta,
        "act_min": node.float_("act_min"), "act_max": node.float_("act_max"),
    }  # fmt: skip
    ctx.emit(f"matmul_{a.type.dtype.value}", operands, params, macs=macs)


def interpret(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    """Evaluate matmul_* on flat arrays."""
    m, k, n = int(p["m"]), int(p["k"]), int(p["n"])
    a, b, out = arrays["a"].reshape(-1), arrays["b"].reshape(-1), arrays["out"].reshape(-1)
    index_a = np.arange(m)[:, None] * int(p["a_row"]) + np.arange(k)[None, :] * int(p["a_col"])
    index_b = np.arange(k)[:, None] * int(p["b_row"]) + np.arange(n)[None, :] * int(p["b_col"])
    index_out = np.arange(m)[:, None] * int(p["out_row"]) + np.arange(n)[None, :] * int(p["out_col"])
    for i in range(int(p["batch_0"]) * int(p["batch_1"])):
        outer, inner = divmod(i, int(p["batch_1"]))
        x = a[index_a + outer * int(p["a_batch_0"]) + inner * int(p["a_batch_1"])]
        y = b[index_b + outer * int(p["b_batch_0"]) + inner * int(p["b_batch_1"])]
        to = index_out + outer * int(p["out_batch_0"]) + inner * int(p["out_batch_1"])
        if "scale" in p:
            acc = (x.astype(np.float64) - int(p["a_zp"])) @ (y.astype(np.float64) - int(p["b_zp"]))
            scale = F32(p["scale"])
            out[to] = requantize(acc, scale, int(p["out_zp"]), int(p["out_min"]), int(p["out_max"]))
            continue
        bias_index = np.arange(m)[:, None] * int(p["bias_row"]) + np.arange(n)[None, :] * int(p["bias_col"])
        bias = arrays["bias"].reshape(-1)[bias_index]
        value = x @ y * x.dtype.type(p["alpha"]) + bias * x.dtype.type(p["beta"])
        out[to] = np.clip(value, p["act_min"], p["act_max"])


_SHAPE = MatMul.names()
KERNELS = (
    *(
        KernelDef(
            f"matmul_{dtype.value}", ("in a", "in b", "out out"),
            (*_SHAPE, "a_zp", "b_zp", "out_zp", "out_min", "out_max"), interpret, float_params=("scale",),
            template="matmul_s8", kind=dtype.value,
            doc="matrix product: clamp(rne(sum (a - a_zp) * (b - b_zp) * scale) + out_zp)",
        )
        for dtype in (DType.S8, DType.S16)
    ),
    *(
        KernelDef(
            f"matmul_{dtype.value}", ("in a", "in b", "in bias", "out out"), (*_SHAPE, "bias_row", "bias_col"),
            interpret, float_params=("alpha", "beta", "act_min", "act_max"), template="matmul_f32", needs_math=True,
            kind=dtype.value, doc="matrix product: clamp(alpha * sum a * b + beta * bias)",
        )
        for dtype in (DType.F32, DType.F64)
    ),
)  # fmt: skip

_PERMS = {key: IntList(optional=True) for key in ("perm_a", "perm_b", "perm_y")}
_GEMM = {"alpha": Float(1.0), "beta": Float(1.0), "transA": Int(0), "transB": Int(0)}
OPS = (
    OpDef("MatMul", infer_matmul, reference_matmul, lower_matmul, int8=True, max_version=13,
          attrs={**CLAMP, **_PERMS}, doc="matrix product of two tensors, batched"),
    OpDef("Gemm", infer_gemm, reference_gemm, lower_gemm, int8=True, max_version=13,
          attrs={**CLAMP, **_GEMM}, doc="alpha * A @ B + beta * C"),
)  # fmt: skip
