"""Gather, Resize, DepthToSpace, SpaceToDepth, Cast, BatchNormalization: against onnx.reference; their kernels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import CODED, NARROW, DType
from glowc.ops.base import OpError
from glowc.ops.cast import KINDS, expression
from tests.conftest import require_module
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check, graph_of, onnx_run
from tests.ops.test_pool import geometry

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [[0, 2, 1, 1], [[0, -1], [2, -3]], 1, [2, 1, 0], [0, 0, 2, 0, 1, 1, 2, 0, 2]])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather(axis: int, indices: object, dtype: str) -> None:
    x, i = RNG.normal(size=(3, 4, 5)).astype(np.float32), np.asarray(indices, dtype)
    (want,) = onnx_run("Gather", [x, i], {"axis": axis})
    for consts in ([], [1]):
        np.testing.assert_array_equal(check("Gather", [x, i], {"axis": axis}, consts=consts)[0], want)


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks(op: str, mode: str) -> None:
    x = RNG.normal(size=(2, 8, 4, 6)).astype(np.float32)
    attrs = {"blocksize": 2, "mode": mode}
    (y,) = check(op, [x], attrs)
    other = {"DepthToSpace": "SpaceToDepth", "SpaceToDepth": "DepthToSpace"}[op]
    np.testing.assert_array_equal(check(other, [y], attrs)[0], x)
    if op == "DepthToSpace":
        np.testing.assert_array_equal(y, onnx_run(op, [x], attrs)[0])
    elif mode == "DCR":
        np.testing.assert_array_equal(y, onnx_run(op, [x], {"blocksize": 2})[0])
    (z,) = check(op, [np.ascontiguousarray(x.transpose(0, 2, 3, 1))], {**attrs, "layout": "nhwc"})
    np.testing.assert_array_equal(z.transpose(0, 3, 1, 2), y)


TRANSFORMS = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
PAIRS = [
    *itertools.product((1, 2, 3, 5, 7, 8), (1, 2, 3, 4, 5, 7, 8, 10, 14, 16)),
    (14, 19),
    (14, 31),
    (20, 26),
    (50, 15),
]
"""Lengths; the last ones have coordinates that are a half but for a rounding."""


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_resize_nearest_equals_onnxruntime(transform: str, rounding: str) -> None:
    ort = require_module("onnxruntime")
    from onnx import helper

    quiet = ort.SessionOptions()
    quiet.log_severity_level = 4
    attrs = {"mode": "nearest", "coordinate_transformation_mode": transform, "nearest_mode": rounding}
    for length, size in PAIRS:
        x = np.arange(length, dtype=np.float32).reshape(1, 1, 1, length)
        graph = helper.make_graph(
            [helper.make_node("Resize", ["x", "", "", "s"], ["y"], **attrs)], "g",
            [helper.make_tensor_value_info("x", 1, x.shape)], [helper.make_tensor_value_info("y", 1, None)],
            [helper.make_tensor("s", 7, [4], [1, 1, 1, size])],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        (want,) = ort.InferenceSession(model.SerializeToString(), quiet).run(None, {"x": x})
        (y,) = check("Resize", [x], {**attrs, "sizes": (1, 1, 1, size)})
        np.testing.assert_array_equal(y, want, err_msg=f"{length} -> {size}")


@pytest.mark.parametrize("sizes", [(10, 14), (3, 5), (1, 28)])
def test_resize_of_both_layouts(sizes: tuple[int, int]) -> None:
    x = RNG.normal(size=(2, 3, 5, 7)).astype(np.float32)
    (want,) = onnx_run("Resize", [x, None, None, np.asarray((2, 3, *sizes))], {"mode": "nearest"})
    (y,) = check("Resize", [x], {"sizes": (2, 3, *sizes)})
    np.testing.assert_array_equal(y, want)
    image = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    (z,) = check("Resize", [image], {"sizes": (2, *sizes, 3), "layout": "nhwc"})
    np.testing.assert_array_equal(z.transpose(0, 3, 1, 2), y)


def test_resize_of_many_axes_is_a_chain_of_gathers() -> None:
    x = RNG.normal(size=(3, 4, 5, 6)).astype(np.float32)
    (want,) = onnx_run("Resize", [x, None, None, np.asarray((7, 9, 11, 13))], {"mode": "nearest"})
    np.testing.assert_array_equal(check("Resize", [x], {"sizes": (7, 9, 11, 13)})[0], want)


def test_resize_by_scales() -> None:
    x = RNG.normal(size=(1, 1, 4, 5)).astype(np.float32)
    scales = (1.0, 1.0, 1.5, 2.0)
    (want,) = onnx_run("Resize", [x, None, np.asarray(scales, np.float32)], {"mode": "nearest"})
    np.testing.assert_array_equal(check("Resize", [x], {"sizes": (1, 1, 6, 10), "scales": scales})[0], want)


def test_resize_linear_of_plain_integers_is_an_error() -> None:
    with pytest.raises(OpError, match="mode 'linear' of s32"):
        check("Resize", [np.zeros((1, 1, 2, 2), np.int32)], {"mode": "linear", "sizes": (1, 1, 4, 4)})


PLAIN = {number: kind for number, kind in KINDS.items() if kind not in CODED}  # others: test_few_bits.py


@pytest.mark.parametrize("to", list(PLAIN))
@pytest.mark.parametrize("source", list(PLAIN.values()))
def test_cast(source: DType, to: int) -> None:
    x = np.asarray([0, 1, 2, 100, 1, 0, 7], source.numpy)
    if source.is_float:
        x[:2] = [0.75, 1.5]
    if source in NARROW:
        x = np.asarray([0, source.qmax, source.qmin], source.numpy)
    (y,) = check("Cast", [x], {"to": to})
    want = x.astype(np.int64) & (2 ** int(KINDS[to].value[1:]) - 1) if KINDS[to] in NARROW else x
    want = np.where(want > KINDS[to].qmax, want + 2 * KINDS[to].qmin, want) if KINDS[to] in NARROW else want
    np.testing.assert_array_equal(y, want.astype(KINDS[to].numpy))


def test_cast_of_floats_saturates() -> None:
    x = np.asarray([1e10, -1e10, np.nan, np.inf, -0.9, 127.5, -128.5], np.float32)
    assert check("Cast", [x], {"to": 3})[0].tolist() == [127, -128, 0, 127, 0, 127, -128]
    assert check("Cast", [x], {"to": 2})[0].tolist() == [255, 0, 0, 255, 0, 127, 0]


def test_cast_to_a_string_is_an_error() -> None:
    with pytest.raises(OpError, match="element type 8"):
        graph_of("Cast", [np.zeros(2, np.float32)], {"to": 8})


def test_batch_normalization() -> None:
    x = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
    p = [RNG.uniform(0.5, 2, 3).astype(np.float32) for _ in range(4)]
    (y,) = check("BatchNormalization", [x, *p], {"epsilon": 1e-3}, consts=[1, 2, 3, 4])
    (want,) = onnx_run("BatchNormalization", [x, *p], {"epsilon": 1e-3})
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


def kernel_cases() -> Iterator[Case]:
    for kind in (DType.S8, DType.S16, DType.F32, DType.F64):
        for index in (np.int32, np.int64):
            for outer, n, inner in ((1, 1, 1), (2, 5, 3), (1, 7, 16), (3, 4, 1)):
                x = RNG.integers(-99, 99, (outer, n, inner)).astype(kind.numpy)
                indices = np.asarray([0, n - 1, -1, -n, n, -n - 1, 1000], index)
                p = {"outer": outer, "axis_n": n, "index_n": indices.size, "inner": inner}
                out = {"out": ((outer, indices.size, inner), kind)}
                yield make_case(f"gather_b{kind.bytes}", {"in": x, "indices": indices}, p, out=out)
        for ring, rows, down in ((5, (0, 8), 0), (5, (0, 8), 1), (2, (3, 6), 0), (5, (7, 8), 1)):
            p = geometry(5, 4, 3, 1, 1, 0, 1, ring=ring)
            p = {k: v for k, v in p.items() if not k.startswith(("k_", "stride", "dil", "pad"))}
            p |= {"out_h": 8, "out_w": 6, "out_batch": 8 * 18, "out_row": 18, "out_ring": 8, "descending": down}
            x = RNG.integers(-99, 99, (1, ring, 4, 3)).astype(kind.numpy)
            lists = {"rows": [0, 0, 1, 2, 2, 3, 4, 4], "cols": [3, 0, 0, 1, 2, 2]}
            tables = {role: np.asarray(index, np.int32) for role, index in lists.items()}
            out = {"out": ((1, 8, 6, 3), kind)}
            yield make_case(f"remap2d_b{kind.bytes}", {"in": x, **tables}, p, rows=rows, out=out)
        for n, rank in ((4, 1), (24, 3)):
            pick = RNG.integers(0, 2, n).astype(bool)
            a, b = (RNG.integers(-99, 99, n).astype(kind.numpy) for _ in range(2))
            dims = {"d0": n} if rank == 1 else {"d0": 2, "d1": 3, "d2": 4}
            p = {f"{letter}{i}": int(letter == "d") for letter in "dabc" for i in range(6)} | dims | {"rank": rank}
            p |= {"a0": 1, "b0": 1, "c0": 1} if rank == 1 else {"a0": 12, "a1": 4, "a2": 1, "b2": 1, "c1": 1}
            yield make_case(f"where_b{kind.bytes}", {"pick": pick, "a": a, "b": b}, p, out={"out": ((n,), kind)})
    yield from cast_cases()


def cast_cases() -> Iterator[Case]:
    reals = np.asarray([0, -0.0, 0.5, -0.75, 1.5, 127.9, 128, -128.9, 255.5, 256, 65536, 3e9, -3e9, 1e19, -1e19, 2e19,
                        np.inf, -np.inf, np.nan])  # fmt: skip
    for source in PLAIN.values():
        for to in PLAIN.values():
            if source == to:
                continue
            if source.is_float:
                x = reals.astype(source.numpy)
            elif source == DType.BOOL:
                x = np.asarray([True, False, True])
            else:
                x = np.asarray([source.qmin, source.qmax, 0, 1, 100, 77], source.numpy)
            p = {"n": x.size, "expr": expression(source, to)}
            yield make_case("cast", {"in": x}, p, out={"out": (x.shape, to)})
