"""MatMul and Gemm: shapes and values against numpy, refusal of wrong shapes, and the kernel cases of matmul_*."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType, quant
from glowc.ops.base import Call, OpError
from glowc.ops.registry import get_op
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check


def product(
    rng: np.random.Generator, m: int, k: int, n: int, *, batch: tuple[int, int] = (1, 1), dtype: DType = DType.S8,
    broadcast_b: bool = False, trans: bool = False, bias: int = 0, zp: tuple[int, int] = (3, -5),
    heads_out: bool = False, turned: bool = False,
) -> Case:  # fmt: skip
    """Return one product of two activations; `bias` is 0 (none), 1 (row) or 2 (full); `heads_out` writes row m of
    batch j to out[i, m, j, :]; `turned` stores a and out column by column."""
    count = batch[0] * batch[1]
    b_count = 1 if broadcast_b else count
    params = {
        "batch_0": batch[0], "batch_1": batch[1], "a_batch_0": batch[1] * m * k, "a_batch_1": m * k,
        "b_batch_0": 0 if broadcast_b else batch[1] * k * n, "b_batch_1": 0 if broadcast_b else k * n,
        "m": m, "k": k, "n": n, "a_row": k, "a_col": 1, "b_row": 1 if trans else n, "b_col": k if trans else 1,
        "out_batch_0": batch[1] * m * n, "out_batch_1": n if heads_out else m * n,
        "out_row": batch[1] * n if heads_out else n, "out_col": 1,
    }  # fmt: skip
    if turned:
        params |= {"a_row": 1, "a_col": m, "out_row": 1, "out_col": m}
    out = {"out": ((count, m, n), dtype)}
    if dtype.is_float:
        shape = {0: (1,), 1: (n,), 2: (m, n)}[bias]
        arrays = {
            "a": rng.standard_normal((count, m, k)).astype(dtype.numpy),
            "b": rng.standard_normal((b_count, k, n)).astype(dtype.numpy),
            "bias": rng.standard_normal(shape).astype(dtype.numpy),
        }
        extra = {
            "bias_row": n if bias == 2 else 0, "bias_col": int(bias > 0), "alpha": 0.5, "beta": 2.0,
            "act_min": -math.inf, "act_max": 3.0,
        }  # fmt: skip
        tolerance = 1e-5
        why = "the sum runs in another order than numpy's matrix product"
        return make_case(
            f"matmul_{dtype.value}", arrays, params | extra, out=out, atol=tolerance, rtol=tolerance, why=why
        )
    arrays = {
        "a": rng.integers(dtype.qmin, dtype.qmax + 1, (count, m, k)).astype(dtype.numpy),
        "b": rng.integers(dtype.qmin, dtype.qmax + 1, (b_count, k, n)).astype(dtype.numpy),
    }
    extra = {
        "a_zp": zp[0], "b_zp": zp[1], "out_zp": 9, "out_min": dtype.qmin, "out_max": dtype.qmax,
        "scale": 40 / (math.sqrt(k) * 74 * 74 * (1 if dtype is DType.S8 else 256)),
    }  # fmt: skip
    return make_case(f"matmul_{dtype.value}", arrays, params | extra, out=out)


def kernel_cases() -> Iterator[Case]:
    """All tails, both batch axes, broadcasting, transposed operands, zero points at both ends."""
    rng = np.random.default_rng(3)
    for k in (*range(1, 20), 31, 32, 33):
        yield product(rng, 3, k, 5)
    for n in range(1, 18):
        yield product(rng, 2, 7, n, trans=bool(n % 2))
    for dtype in (DType.S8, DType.F32, DType.F64, DType.S16):
        yield product(rng, 4, 6, 5, batch=(2, 3), dtype=dtype)
        yield product(rng, 4, 6, 5, batch=(2, 3), dtype=dtype, broadcast_b=True, bias=1)
        yield product(rng, 1, 6, 5, dtype=dtype, trans=True, bias=2)
        yield product(rng, 4, 6, 5, batch=(2, 3), dtype=dtype, heads_out=True)
    for m, k, n, trans in itertools.product((1, 4, 6), (8, 13, 16), (4, 9, 16), (False, True)):
        for dtype in (DType.S8, DType.F32):
            yield product(rng, m, k, n, batch=(2, 1), trans=trans, dtype=dtype, heads_out=m == 6)
    for m, n in ((4, 8), (5, 11)):
        yield product(rng, m, 18, n, batch=(2, 2), turned=True)
    for k, n in ((40, 33), (200, 70)):  # columns in several parts
        yield product(rng, 6, k, n, trans=n % 2 == 1)
    for zp in ((-128, 127), (127, -128), (0, 0)):
        yield product(rng, 3, 17, 4, zp=zp)
    yield from _products_of_sixteen_bits(rng)


def _products_of_sixteen_bits(rng: np.random.Generator) -> Iterator[Case]:
    """Tails, columns in several parts, copied rows and columns, zero points, and sums beyond 32 bits."""
    for k, zp in itertools.product((1, 2, 3, 4, 7, 8, 9, 16, 21), ((0, 0), (-32768, 32767))):
        yield product(rng, 3, k, 1 + k % 4, dtype=DType.S16, zp=zp, trans=k % 2 == 1, turned=k % 3 == 0)
    for k, n, trans in ((5, 300, True), (700, 9, False), (33, 130, False)):
        yield product(rng, 2, k, n, dtype=DType.S16, trans=trans, zp=(0, 7) if trans else (0, 0))
    for low, high in ((-32768, -32768), (-32768, 32767), (32767, 32767)):
        case = product(rng, 2, 40, 3, dtype=DType.S16, zp=(0, 0))
        yield replace(
            case,
            arrays={**case.arrays, "a": np.full_like(case.arrays["a"], low), "b": np.full_like(case.arrays["b"], high)},
        )


def _run(op: str, attrs: dict[str, int | float], *arrays: np.ndarray) -> np.ndarray:
    node = Node("n", op, tuple(f"v{i}" for i in range(len(arrays))), ("y",), attrs)
    types = tuple(TensorType(a.shape, DType.F32) for a in arrays)
    out = get_op(op).infer(node, types)
    result = get_op(op).reference(Call(node, arrays, types, out))[0]
    assert result.shape == out[0].shape
    return result


@pytest.mark.parametrize(("a", "b"), [
    ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (1, 6, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)),
])  # fmt: skip
def test_matmul_follows_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(a).astype(np.float32), rng.standard_normal(b).astype(np.float32)
    np.testing.assert_allclose(_run("MatMul", {}, x, y), np.matmul(x, y), rtol=1e-6)


@pytest.mark.parametrize("kind", ["float", "int8"])
@pytest.mark.parametrize(("a", "b", "perms"), [
    ((2, 6, 3, 4), (2, 5, 3, 4), {"perm_a": (0, 2, 1, 3), "perm_b": (0, 2, 3, 1)}),
    ((2, 3, 6, 5), (2, 5, 3, 4), {"perm_b": (0, 2, 1, 3), "perm_y": (0, 2, 1, 3)}),
    ((1, 6, 3, 4), (2, 4, 5, 3), {"perm_a": (0, 2, 1, 3), "perm_b": (0, 3, 1, 2), "perm_y": (2, 0, 3, 1)}),
    ((4, 6), (5, 4), {"perm_a": (1, 0), "perm_b": (1, 0), "perm_y": (1, 0)}),
    ((6, 3, 4), (4, 5), {"perm_a": (1, 0, 2)}),
])  # fmt: skip
def test_operands_and_result_are_transposed_by_strides(
    kind: str, a: tuple[int, ...], b: tuple[int, ...], perms: dict[str, tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(5)
    quants = [quant(0.02, 3), quant(0.03, -4)] if kind == "int8" else []
    arrays = [(40 * rng.standard_normal(s)).clip(-128, 127).astype(np.int8 if quants else np.float32) for s in (a, b)]
    out = [quant(0.05, 1) if quants else None]
    (y,) = check("MatMul", arrays, perms, quants=quants, out_quants=out, rtol=1e-5, atol=1e-2)
    left = arrays[0].transpose(perms.get("perm_a", range(len(a))))
    right = arrays[1].transpose(perms.get("perm_b", range(len(b))))
    if quants:
        left, right = (left.astype(np.float32) - 3) * 0.02, (right.astype(np.float32) + 4) * 0.03
    want = left @ right
    want = want.transpose(perms.get("perm_y", range(want.ndim)))
    if quants:
        assert np.abs(np.clip(np.rint(want / 0.05) + 1, -128, 127) - y).max() <= 1
    else:
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-2)


def test_permutation_that_does_not_fit_is_refused() -> None:
    node = Node("n", "MatMul", ("a", "b"), ("y",), {"perm_b": (0, 0)})
    with pytest.raises(OpError, match="does not permute"):
        get_op("MatMul").infer(node, (TensorType((2, 3), DType.F32), TensorType((3, 5), DType.F32)))


def test_gemm_applies_alpha_beta_and_transposes() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((4, 3), (5, 4), (5,)))
    got = _run("Gemm", {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}, a, b, c)
    np.testing.assert_allclose(got, 0.5 * (a.T @ b.T) + 2 * c, rtol=1e-5)


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_product_refuses_mismatched_inner_dimensions(op: str) -> None:
    node = Node("n", op, ("a", "b"), ("y",))
    with pytest.raises(OpError, match="inner dimensions do not match"):
        get_op(op).infer(node, (TensorType((2, 3), DType.F32), TensorType((4, 5), DType.F32)))
