"""MatMul of two activations and Gemm as ONNX writes it: batched, broadcast, optionally transposed.

Integers: acc = sum (a - za) * (b - zb) in int32, in int64 of two int16 tensors, then
clamp(rne(float32(acc) * (sa * sb) / sy) + zy), the scale computed in float32 in that order.
Attributes perm_a, perm_b and perm_y of MatMul transpose the operands before and the result after
the product: the kernels read and write by strides, so that nothing is copied.
Sources: ONNX MatMul-13, Gemm-13, QLinearMatMul-21.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Int, IntList
from glowc.graph.graph import Node
from glowc.graph.numerics import act_range, requant_scale, requantize
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import MatMul
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.derived import derived
from glowc.ops.integer import FLOAT_WEIGHTS
from glowc.ops.params import Clamp, OutCodes
from glowc.ops.strided import broadcast_shape, collapse, dense_strides, present
from glowc.program.kernel import Arrays, KernelDef, Outer
from glowc.program.params import Params

Ints = tuple[int, ...]
F32 = np.float32


@dataclass(frozen=True, slots=True)
class MatMulCodes(Params):
    """Of the kernels on codes: zero points, the result's codes, (sa * sb) / sy in float32."""

    shape: MatMul
    a_zp: int
    b_zp: int
    out: OutCodes
    scale: float


@dataclass(frozen=True, slots=True)
class MatMulFloat(Params):
    """Of the float kernels: the steps with which the bias is read, and factors of the product and of the bias."""

    shape: MatMul
    bias_row: int
    bias_col: int
    alpha: float
    beta: float
    clamp: Clamp


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


def lower_matmul(node: Node, ctx: LowerCtx) -> None:
    _emit(node, ctx, matmul_params(node, ctx.type(node.inputs[0]).shape, ctx.type(node.inputs[1]).shape))


def lower_gemm(node: Node, ctx: LowerCtx) -> None:
    a, b = ctx.type(node.inputs[0]), ctx.type(node.inputs[1])
    m, k = a.shape[::-1] if node.int_("transA") else a.shape
    n = b.shape[0] if node.int_("transB") else b.shape[1]
    a_strides = (1, m) if node.int_("transA") else (k, 1)
    b_strides = (1, k) if node.int_("transB") else (n, 1)
    _emit(node, ctx, _params([], (m, k, n), a_strides, b_strides, (n, 1)))


def matmul_params(node: Node, a: Ints, b: Ints) -> MatMul:
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
) -> MatMul:  # fmt: skip
    """Return the parameters from up to two batch axes (length, step of a, b, out), m k n, and (row, column) steps."""
    single: Sequence[int] = (1, 0, 0, 0)
    first, second = [single] * (2 - len(batch)) + list(batch)
    (m, k, n), steps = sizes, tuple(zip(first[1:], second[1:], strict=True))
    return MatMul(
        batch_0=first[0], batch_1=second[0], a_batch_0=steps[0][0], a_batch_1=steps[0][1],
        b_batch_0=steps[1][0], b_batch_1=steps[1][1], out_batch_0=steps[2][0], out_batch_1=steps[2][1],
        m=m, k=k, n=n, a_row=a[0], a_col=a[1], b_row=b[0], b_col=b[1], out_row=out[0], out_col=out[1],
    )  # fmt: skip


def _pad(shape: Ints, rank: int) -> Ints:
    return (1,) * (rank - len(shape)) + shape


def _emit(node: Node, ctx: LowerCtx, shape: MatMul) -> None:
    a, b, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    macs, qa, qb, qy = y.type.elements * shape.k, a.type.quant, b.type.quant, y.type.quant
    operands = {"a": a, "b": b, "out": y}
    if qa is not None and qb is not None and qy is not None:
        if qb.axis is not None or any(node.inputs[2:]):
            raise OpError("a product of two activations takes per-tensor quantization and no bias")
        out = OutCodes(qy.zero_point[0], *act_range(*clamp_of(node), qy, y.type.dtype))
        scale = float(requant_scale(qa, qb, qy)[0])
        codes = MatMulCodes(shape, qa.zero_point[0], qb.zero_point[0], out, scale)
        ctx.emit(f"matmul_{a.type.dtype.value}", operands, codes, macs=macs)
        return
    bias = ctx.type(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    alpha, beta = _factors(node)
    has_bias = bias is not None and beta != 0.0
    rows, columns = _pad(bias.shape, 2) if bias is not None else (1, 1)
    operands["bias"] = (
        ctx.read(node.inputs[2]) if has_bias else ctx.const(np.zeros(1, a.type.dtype.numpy), f"{node.name}_zero")
    )
    params = MatMulFloat(
        shape, columns if has_bias and rows > 1 else 0, int(has_bias and columns > 1), alpha, beta,
        Clamp(*clamp_of(node)),
    )  # fmt: skip
    ctx.emit(f"matmul_{a.type.dtype.value}", operands, params, macs=macs)


def _grid(rows: int, columns: int, row: int, column: int) -> np.ndarray:
    """Return where the elements of a matrix lie."""
    return np.asarray(np.arange(rows)[:, None] * row + np.arange(columns)[None, :] * column)


def products(arrays: Arrays, p: MatMul) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield both matrices of every product, and where its result goes."""
    a, b = arrays["a"].reshape(-1), arrays["b"].reshape(-1)
    at_a, at_b = _grid(p.m, p.k, p.a_row, p.a_col), _grid(p.k, p.n, p.b_row, p.b_col)
    at_out = _grid(p.m, p.n, p.out_row, p.out_col)
    for i in range(p.batch_0 * p.batch_1):
        outer, inner = divmod(i, p.batch_1)
        x = a[at_a + outer * p.a_batch_0 + inner * p.a_batch_1]
        y = b[at_b + outer * p.b_batch_0 + inner * p.b_batch_1]
        yield x, y, at_out + outer * p.out_batch_0 + inner * p.out_batch_1


def _interpret_codes(arrays: Arrays, p: MatMulCodes) -> None:
    for x, y, to in products(arrays, p.shape):
        acc = (x.astype(np.float64) - p.a_zp) @ (y.astype(np.float64) - p.b_zp)
        arrays["out"].reshape(-1)[to] = requantize(acc, F32(p.scale), *p.out.bounds)


def _interpret_float(arrays: Arrays, p: MatMulFloat) -> None:
    bias = arrays["bias"].reshape(-1)[_grid(p.shape.m, p.shape.n, p.bias_row, p.bias_col)]
    for x, y, to in products(arrays, p.shape):
        value = x @ y * x.dtype.type(p.alpha) + bias * x.dtype.type(p.beta)
        arrays["out"].reshape(-1)[to] = np.clip(value, p.clamp.act_min, p.clamp.act_max)


_OUTER = (
    *(Outer(f"batch_{i}", {role: (f"{role}_batch_{i}",) for role in ("a", "b", "out")}) for i in (0, 1)),
    Outer("m", {"a": ("a_row",), "out": ("out_row",)}),
)
KERNELS = (
    *(
        KernelDef(
            f"matmul_{dtype.value}", ("in a", "in b", "out out"), MatMulCodes, _interpret_codes,
            template=f"matmul_{dtype.value}", kind=dtype.value, outer=_OUTER,
            doc="matrix product: clamp(rne(sum (a - a_zp) * (b - b_zp) * scale) + out_zp)",
        )
        for dtype in (DType.S8, DType.S16)
    ),
    *(
        KernelDef(
            f"matmul_{dtype.value}", ("in a", "in b", "in bias", "out out"), MatMulFloat,
            _interpret_float, template="matmul_f32", needs_math=True,
            kind=dtype.value, doc="matrix product: clamp(alpha * sum a * b + beta * bias)",
        )
        for dtype in (DType.F32, DType.F64)
    ),
)  # fmt: skip

_PERMS = {key: IntList(optional=True) for key in ("perm_a", "perm_b", "perm_y")}
_GEMM = {"alpha": Float(1.0), "beta": Float(1.0), "transA": Int(0), "transB": Int(0)}
OPS = (
    OpDef("MatMul", infer_matmul, derived, lower_matmul, int8=True, max_version=13,
          attrs={**CLAMP, **_PERMS, **FLOAT_WEIGHTS}, doc="matrix product of two tensors, batched"),
    OpDef("Gemm", infer_gemm, derived, lower_gemm, int8=True, max_version=13,
          attrs={**CLAMP, **_GEMM, **FLOAT_WEIGHTS}, doc="alpha * A @ B + beta * C"),
)  # fmt: skip
