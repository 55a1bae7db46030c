"""Operators that are imported as simpler ones give what onnx.reference gives: Einsum, DFT, LRN, loops, ..."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.ops.interp import run_graph

RNG = np.random.default_rng(16)


def rand(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def model_of(
    op: str, inputs: list[np.ndarray], consts: dict[int, np.ndarray], outputs: int, attrs: dict[str, Any], opset: int
) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(inputs) + len(consts))]
    held = {names[i]: a for i, a in consts.items()}
    rest = [n for n in names if n not in held]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(rest, inputs, strict=True)
    ]
    outs = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, outs, **attrs)], "g", infos,
        [helper.make_empty_tensor_value_info(n) for n in outs],
        [onnx.numpy_helper.from_array(a, n) for n, a in held.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def check(
    op: str, inputs: list[np.ndarray], consts: dict[int, np.ndarray] | None = None, outputs: int = 1, opset: int = 22,
    **attrs: Any,
) -> None:  # fmt: skip
    model = model_of(op, inputs, consts or {}, outputs, attrs, opset)
    graph = import_model(model)
    feed = dict(zip(graph.inputs, inputs, strict=True))
    got, want = run_graph(graph, feed), ReferenceEvaluator(model).run(None, feed)
    for name, array in zip(graph.outputs, want, strict=True):
        assert got[name].shape == np.shape(array)
        np.testing.assert_allclose(got[name], array, rtol=1e-4, atol=1e-5)


EQUATIONS = [
    ("i,i", (5,), (5,)), ("ij,ij->", (3, 4), (3, 4)), ("ij,jk->ik", (3, 4), (4, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,bjk", (2, 3, 4), (2, 4, 5)), ("i,j->ij", (3,), (4,)), ("ij,kj->ki", (3, 4), (5, 4)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)), ("ijk,il->jl", (3, 4, 2), (3, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "a", "b"), EQUATIONS)
def test_einsum_of_two(equation: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check("Einsum", [rand(*a), rand(*b)], equation=equation)


@pytest.mark.parametrize(
    ("equation", "shape"),
    [
        ("ij->ji", (3, 4)),
        ("ij->i", (3, 4)),
        ("ii->i", (4, 4)),
        ("...ii->...i", (3, 5, 5)),
        ("ij->", (3, 4)),
        ("ba", (3, 4)),
    ],
)
def test_einsum_of_one(equation: str, shape: tuple[int, ...]) -> None:
    check("Einsum", [rand(*shape)], equation=equation)


@pytest.mark.parametrize("equation", ["ij,jk,kl->il", "ij,jk->iz", "ij,jkl->il", "ij,jk->ii"])
def test_einsum_that_is_not_understood_is_an_error(equation: str) -> None:
    arrays = [rand(3, 3) for _ in equation.split("->")[0].split(",")]
    with pytest.raises(ModelError, match="Einsum"):
        import_model(model_of("Einsum", arrays, {}, 1, {"equation": equation}, 22))


@pytest.mark.parametrize(
    ("shape", "attrs"),
    [((2, 6, 3, 1), {}), ((2, 6, 3, 2), {}), ((2, 6, 3, 2), {"inverse": 1}), ((2, 6, 3, 1), {"onesided": 1}),
     ((2, 4, 3, 2), {"onesided": 1, "inverse": 1})],
)  # fmt: skip
@pytest.mark.parametrize("length", [None, 5, 8])
def test_dft(shape: tuple[int, ...], attrs: dict[str, int], length: int | None) -> None:
    size = length or (2 * (shape[1] - 1) if len(attrs) == 2 else shape[1])
    check("DFT", [rand(*shape)], {1: np.asarray(size), 2: np.asarray(1)}, **attrs)


@pytest.mark.parametrize("size", [1, 3, 4])
def test_lrn(size: int) -> None:
    # onnx.reference takes the batch size for the number of channels
    check("LRN", [rand(5, 5, 3, 3)], size=size, alpha=0.5, beta=0.6, bias=1.5)


def test_normalisations() -> None:
    check("InstanceNormalization", [rand(2, 3, 4, 5), rand(3), rand(3)], epsilon=0.01)
    check("LpNormalization", [rand(2, 3, 4)], axis=1, p=2)
    check("LpNormalization", [np.zeros((2, 3), np.float32)], axis=1, p=2)
    check("MeanVarianceNormalization", [rand(2, 3, 4, 5)])


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 1, 1)])
def test_col2im(pads: tuple[int, ...]) -> None:
    image, block = np.asarray([5, 6]), np.asarray([2, 3])
    steps = (5 + pads[0] + pads[2] - 1) * (6 + pads[1] + pads[3] - 2)
    check("Col2Im", [rand(2, 3 * 6, steps)], {1: image, 2: block}, pads=pads)


@pytest.mark.parametrize(("interleaved", "turned"), [(0, 0), (1, 0), (0, 4), (1, 4)])
def test_rotary_embedding(interleaved: int, turned: int) -> None:
    half = (turned or 8) // 2
    position = RNG.integers(0, 9, (2, 3))
    caches = [rand(9, half), rand(9, half)]
    attrs = {"interleaved": interleaved, "rotary_embedding_dim": turned}
    check("RotaryEmbedding", [rand(2, 4, 3, 8), *caches, position], opset=23, **attrs)
    check("RotaryEmbedding", [rand(2, 3, 32), *caches, position], opset=23, num_heads=4, **attrs)


def scan_body() -> onnx.GraphProto:
    def info(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, 1, [2])

    nodes = [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Mul", ["t", "x"], ["o"])]
    return helper.make_graph(nodes, "body", [info("s"), info("x")], [info("t"), info("o")])


def test_scan() -> None:
    check("Scan", [rand(2), rand(4, 2)], None, 2, body=scan_body(), num_scan_inputs=1)


@pytest.mark.parametrize("side", ["input", "output"])
def test_scan_backwards(side: str) -> None:
    inputs, attrs = [rand(2), rand(4, 2)], {"body": scan_body(), "num_scan_inputs": 1}
    forward = model_of("Scan", [inputs[0], inputs[1][:: -1 if side == "input" else 1]], {}, 2, attrs, 22)
    fed = {"x0": inputs[0], "x1": inputs[1][:: -1 if side == "input" else 1]}
    want = ReferenceEvaluator(forward).run(None, fed)
    graph = import_model(model_of("Scan", inputs, {}, 2, {**attrs, f"scan_{side}_directions": [1]}, 22))
    got = run_graph(graph, dict(zip(graph.inputs, inputs, strict=True)))
    np.testing.assert_allclose(got["y0"], want[0], rtol=1e-6)
    np.testing.assert_allclose(got["y1"], want[1][:: -1 if side == "output" else 1], rtol=1e-6)


def loop_body() -> onnx.GraphProto:
    f32, i64, boolean = 1, 7, 9
    nodes = [
        helper.make_node("Cast", ["i"], ["real"], to=1), helper.make_node("Add", ["s", "real"], ["t"]),
        helper.make_node("Less", ["i", "last"], ["going"]), helper.make_node("Identity", ["t"], ["o"]),
    ]  # fmt: skip
    inputs = [("i", i64, []), ("c", boolean, []), ("s", f32, [2])]
    outputs = [("going", boolean, []), ("t", f32, [2]), ("o", f32, [2])]
    infos = [[helper.make_tensor_value_info(*v) for v in side] for side in (inputs, outputs)]
    last = onnx.numpy_helper.from_array(np.asarray(3), "last")
    return helper.make_graph(nodes, "body", infos[0], infos[1], [last])


def test_loop_ends_by_its_condition() -> None:
    check("Loop", [rand(2)], {0: np.asarray(10), 1: np.asarray(True)}, 2, body=loop_body())


def test_loop_without_a_known_trip_count_is_an_error() -> None:
    model = model_of("Loop", [np.asarray(3), rand(2)], {1: np.asarray(True)}, 2, {"body": loop_body()}, 22)
    with pytest.raises(ModelError, match=r"the trip count .* is computed at run time"):
        import_model(model)
