"""FullyConnected: the reference against numpy, and the kernel cases of fc_*."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.board import load_cpu
from glowc.graph.graph import Node
from glowc.graph.text import parse
from glowc.graph.types import DType, TensorType
from glowc.lower.lowering import lower_graph
from glowc.ops.base import Call, OpError
from glowc.ops.fully_connected import OP
from glowc.ops.interp import run_graph
from glowc.program.interp import run_program
from glowc.program.ir import ParamValue
from tests.kernels.case import Case
from tests.ops.dense import make_dense


def layer(
    rng: np.random.Generator,
    k: int,
    n: int,
    *,
    rows: int = 1,
    dtype: DType = DType.S8,
    w_dtype: DType = DType.S8,
    x_zp: int = -128,
    y_zp: int = -4,
    w_zp: int = 0,
    extreme: bool = False,
    per_channel: bool = True,
    clamp: tuple[int, int] | None = None,
) -> Case:
    """Return one layer with random data, of several rows as a convolution."""
    if dtype.is_float:
        arrays = {
            role: rng.standard_normal(s).astype(dtype.numpy)
            for role, s in (("in", (rows, k)), ("weights", (n, k)), ("bias", (n,)))
        }
        bounds: dict[str, ParamValue] = {"act_min": 0.0 if clamp else -math.inf, "act_max": math.inf}
        tolerance = 1e-5 if dtype is DType.F32 else 1e-12
        why = "the sum runs in another order than numpy's matrix product"
        return make_dense(f"fc_{dtype.value}", arrays, bounds, out=dtype, atol=tolerance, rtol=tolerance, why=why)
    x = (
        rng.choice([dtype.qmin, dtype.qmax], (rows, k))
        if extreme
        else rng.integers(dtype.qmin, dtype.qmax + 1, (rows, k))
    )
    limit = 255 if w_dtype is DType.S16 else 127
    w = rng.choice([-128, 127], (n, k)) if extreme else rng.integers(-limit, limit + 1, (n, k))
    scale = rng.uniform(0.5, 1.5, n if per_channel else 1) * 40 / (math.sqrt(k) * 74 * dtype.qmax * 0.6)
    arrays = {
        "in": x.astype(dtype.numpy), "weights": w.astype(w_dtype.numpy),
        "bias": rng.integers(-3000, 3000, n).astype(np.int32), "scale": scale.astype(np.float32),
    }  # fmt: skip
    low, high = clamp or (dtype.qmin, dtype.qmax)
    params: dict[str, ParamValue] = {
        "in_zp": x_zp, "w_zp": w_zp, "out_zp": y_zp, "out_min": low, "out_max": high,
        "scale_step": int(per_channel and n > 1),
    }  # fmt: skip
    suffix = "w16" if w_dtype is DType.S16 else ""
    return make_dense(f"fc_{dtype.value}{suffix}", arrays, params, out=dtype)


def kernel_cases() -> Iterator[Case]:
    """All lengths around the vector width, extreme values, zero points, several rows."""
    rng = np.random.default_rng(2)
    for k in (*range(1, 37), 47, 48, 63, 64, 65, 128):
        yield layer(rng, k, 5)
    for n in range(1, 20):
        yield layer(rng, 9, n)
    for x_zp, extreme in itertools.product((-128, 0, 127), (False, True)):
        yield layer(rng, 33, 6, x_zp=x_zp, extreme=extreme)
    yield layer(rng, 20, 7, rows=3)
    yield layer(rng, 1027, 6)  # too long to be expanded in scratch
    for clamp in (None, (-128, 60), (-20, 127), (-20, 60)):
        yield layer(rng, 75, 10, y_zp=-128, clamp=clamp)
        yield layer(rng, 136, 9, y_zp=5, clamp=clamp, extreme=True)
    for w_zp in (-128, 11, 127):
        yield layer(rng, 20, 7, w_zp=w_zp)
        yield layer(rng, 43, 14, w_zp=w_zp, extreme=True)
        for rows, other in ((1, 1), (5, 8)):
            yield layer(rng, 43, 9, rows=rows, w_zp=w_zp, extreme=w_zp == 11)
            yield layer(rng, 22, 5, rows=other, w_zp=w_zp)
    for n in (5, 24):  # ties, scales of 0.25 and more
        case = layer(rng, 12, n)
        case.arrays["in"][:] //= 16
        scales = [2**-6, 2**-9, 0.25, 0.5, 0.75, 2**-33, 0.249, 3.3, 255.9, 256]
        case.arrays["scale"][:] = rng.choice(np.asarray(scales, np.float32), n)
        yield case
    yield layer(rng, 20, 7, per_channel=False)
    yield layer(rng, 20, 7, clamp=(-4, 30))
    yield layer(rng, 20, 7, w_dtype=DType.S16)
    yield layer(rng, 20, 7, dtype=DType.S16, x_zp=0)
    yield layer(rng, 20, 7, dtype=DType.S16, w_dtype=DType.S16, x_zp=3)
    for rows in (24, 27):  # in parts, too
        yield layer(rng, 33, 9, rows=rows)
        yield layer(rng, 19, 6, rows=rows, dtype=DType.F32)
        yield layer(rng, 20, 7, rows=rows, dtype=DType.S16, x_zp=0)
    for w_dtype in (DType.S8, DType.S16):
        yield layer(rng, 20, 7, rows=3, w_dtype=w_dtype)
        yield layer(rng, 20, 7, rows=3, dtype=DType.S16, w_dtype=w_dtype, x_zp=0)
    for rows, k, clamp in itertools.product((1, 3, 4, 7), (3, 12, 50, 101), (None, (-128, 60), (-20, 60))):
        yield layer(rng, k, 7, rows=rows, y_zp=-128 if k % 2 else 6, clamp=clamp)
    yield layer(rng, 24, 6, rows=4, extreme=True)
    for rows, (k, n) in itertools.product((1, 3), ((4, 4), (15, 5), (16, 8), (22, 7), (37, 6))):
        yield layer(rng, k, n, rows=rows, dtype=DType.F32)
    for rows, (k, n) in itertools.product((1, 2), ((1, 16), (2, 3), (3, 7), (16, 1), (23, 3), (5, 2))):
        yield layer(rng, k, n, rows=rows, dtype=DType.F32, clamp=(0, 0) if k % 2 else None)
    for dtype in (DType.F32, DType.F64):
        yield layer(rng, 13, 6, rows=2, dtype=dtype)
        yield layer(rng, 8, 6, dtype=dtype, clamp=(0, 0))


def test_fully_connected_accepts_any_number_of_leading_axes() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 4)).astype(np.float32), rng.standard_normal((5, 4)).astype(np.float32)
    node = Node("n", "FullyConnected", ("x", "w", "b"), ("y",), {"act_min": 0.0})
    b = np.ones(5, np.float32)
    types = tuple(TensorType(a.shape, DType.F32) for a in (x, w, b))
    out = OP.infer(node, types)
    assert out[0].shape == (2, 3, 5)
    np.testing.assert_allclose(
        OP.reference(Call(node, (x, w, b), types, out))[0], np.maximum(x @ w.T + 1, 0), rtol=1e-6
    )


def test_fully_connected_refuses_mismatched_inner_dimensions() -> None:
    node = Node("n", "FullyConnected", ("x", "w"), ("y",))
    with pytest.raises(OpError, match="inner dimensions do not match"):
        OP.infer(node, (TensorType((1, 4), DType.F32), TensorType((2, 3), DType.F32)))


@pytest.mark.parametrize(
    ("shape", "kernel"), [((1, 6), "fc_"), ((6,), "fc_"), ((2, 6), "conv_"), ((3, 1, 2, 6), "conv_")]
)
@pytest.mark.parametrize("kind", ["f32", "s8", "s16"])
def test_rows_are_pixels_of_a_convolution(shape: tuple[int, ...], kernel: str, kind: str) -> None:
    dims = ",".join(map(str, shape))
    out = ",".join(map(str, (*shape[:-1], 4)))
    codes, weights, bias = ("", "f32", "f32") if kind == "f32" else (" q(0.5, 0)", "s8", "s32")
    values = json.dumps([[1 + i * k for k in range(6)] for i in range(4)])
    graph = parse(
        f"""graph "t" {{
        input %x : {kind}[{dims}]{codes}
        const %w : {weights}[4,6]{codes} = {values}
        const %b : {bias}[4] = [1, 2, 3, 4]
        %y : {kind}[{out}]{codes} = FullyConnected(%x, %w, %b) from "layer"
        output %y
        }}"""
    )
    program = lower_graph(graph, load_cpu("cortex-a7"))
    (call,) = [instr for instr in program.instrs if not instr.is_marker]
    assert call.kernel == kernel + kind
    assert (call.op, call.origin) == ("FullyConnected", ("layer",))
    x = np.arange(math.prod(shape)).reshape(shape).astype(DType(kind).numpy)
    assert np.array_equal(run_program(program, {"x": x})["y"], run_graph(graph, {"x": x})["y"])
