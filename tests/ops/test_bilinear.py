"""Linear Resize of rows and columns: the bytes of onnxruntime in every form; the kernels with rings and row ranges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType, TensorType
from glowc.ops.bilinear import fixed_pairs_of, pairs_of
from glowc.ops.interp import run_graph
from glowc.program.ir import ParamValue
from tests.kernels.case import Case, make_case
from tests.kernels.params import row_params
from tests.unit.quirk_models import Net, onnxruntime_outputs, optimised, same_as_onnxruntime

RNG = np.random.default_rng(17)
TRANSFORMS = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
Forms = tuple[tuple[str, DType, dict[str, ParamValue]], ...]
SCALES = [(2.0, 2.0), (1.7, 2.3), (0.6, 1.0), (4.0, 3.0)]


FORMS = [(t, s) for t in TRANSFORMS for s in SCALES]


def codes(*shape: int, dtype: type = np.int8) -> np.ndarray:
    """Return random codes."""
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_align_corners_ends_on_the_last_input_where_a_scaled_length_is_no_whole_number(mode: str) -> None:
    """As in ONNX's words, onnxruntime and PyTorch; ONNX's reference evaluator divides by scale * length - 1."""
    net = Net()
    net.input("x", "f32[1,1,5,9]")
    net.const("scales", np.asarray([1, 1, 1.5, 2.5], np.float32))
    net.op("Resize", "x _ scales", "y", mode=mode, coordinate_transformation_mode="align_corners")
    x = RNG.normal(size=(1, 1, 5, 9)).astype(np.float32)
    graph = same_as_onnxruntime(net.build({"y": "f32"}), {"x": x}, tolerance=1e-6)
    y = run_graph(graph, {"x": x})["y"]
    np.testing.assert_array_equal(y[0, 0, [0, 0, -1, -1], [0, -1, 0, -1]], x[0, 0, [0, 0, -1, -1], [0, -1, 0, -1]])


def kinds(dtype: type) -> str:
    return "u8" if dtype is np.uint8 else "s8"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("transform", "scales"), FORMS)
def test_between_dequantise_and_quantise(dtype: type, transform: str, scales: tuple[float, float]) -> None:
    """onnxruntime computes in float there; equal scales of both sides make ties, which its order of the sum decides."""
    zero = dtype(3)
    net = Net()
    net.input("x", f"{kinds(dtype)}[1,6,9,8]")
    net.dq("x", 0.0131, zero)
    net.const("scales", np.asarray([1, 1, *scales], np.float32))
    net.op("Resize", "x_r _ scales", "r", mode="linear", coordinate_transformation_mode=transform)
    net.q("r", 0.0131, zero, "y")
    graph = same_as_onnxruntime(net.build({"y": kinds(dtype)}), {"x": codes(1, 6, 9, 8, dtype=dtype)})
    assert [n.op for n in graph.nodes].count("Resize") == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("transform", "scales"), FORMS)
def test_of_codes_between_convolutions(dtype: type, transform: str, scales: tuple[float, float]) -> None:
    """QLinearConv, Resize, QLinearConv: codes without their fraction, in whole numbers."""
    net = Net()
    net.input("x", f"{kinds(dtype)}[1,3,9,8]")
    for name, value in (("zero", dtype(7)), ("wzero", np.int8(0)), ("scale", np.float32(0.02))):
        net.const(name, value)
    net.const("one", np.float32(0.02))
    net.const("scales", np.asarray([1, 1, *scales], np.float32))
    net.const("w", codes(8, 3, 1, 1) // 2)
    net.const("v", np.eye(8, dtype=np.int8).reshape(8, 8, 1, 1))
    net.const("unit", np.float32(1))
    net.op("QLinearConv", "x scale zero w scale wzero scale zero", "a")
    net.op("Resize", "a _ scales", "r", mode="linear", coordinate_transformation_mode=transform)
    net.op("QLinearConv", "r scale zero v unit wzero one zero", "y")
    same_as_onnxruntime_bytes(net, dtype)


def same_as_onnxruntime_bytes(net: Net, dtype: type) -> None:
    """Compare the optimised graph; in the imported one, the Resize stands alone."""
    proto, feeds = net.build({"y": kinds(dtype)}), {"x": codes(1, 3, 9, 8, dtype=dtype)}
    np.testing.assert_array_equal(run_graph(optimised(proto), feeds)["y"], onnxruntime_outputs(proto, feeds)["y"])


def test_network_in_c() -> None:
    net = Net()
    net.input("x", "u8[1,5,4,6]")
    net.dq("x", 0.02, np.uint8(100))
    net.const("scales", np.asarray([1, 1, 2, 2], np.float32))
    net.op("Resize", "x_r _ scales", "r", mode="linear")
    net.q("r", 0.02, np.uint8(100), "y")
    same_as_onnxruntime(net.build({"y": "u8"}), {"x": codes(1, 5, 4, 6, dtype=np.uint8)}, in_c=True)


def kernel_cases() -> Iterator[Case]:
    """Whole tensors, a ring of input rows, both directions, an edge with equal neighbours."""
    for (h, w, c), (out_h, out_w) in (((4, 5, 3), (8, 10)), ((5, 3, 8), (3, 7)), ((1, 4, 1), (2, 8))):
        x, y = TensorType((2, h, w, c), DType.S8), TensorType((2, out_h, out_w, c), DType.S8)
        p = row_params(x, y)
        places = [(np.arange(n) + 0.5) * m / n - 0.5 for n, m in ((out_h, h), (out_w, w))]
        yield from cases(p, places, (h, w), (0, out_h))
        yield from cases({**p, "descending": 1}, places, (h, w), (1, out_h))
    ring = row_params(TensorType((1, 8, 4, 3), DType.S8), TensorType((1, 16, 8, 3), DType.S8))
    ring |= {"in_ring": 3, "in_batch": 36, "out_ring": 4, "out_batch": 96}
    places = [(np.arange(n) + 0.5) / 2 - 0.5 for n in (16, 8)]
    yield from cases(ring, places, (8, 4), (6, 9))  # rows 2..4 of the input

    for (h, w, c), (out_h, out_w), scales in (
        ((4, 4, 33), (8, 8), (0.02, 0.02)), ((3, 4, 16), (7, 9), (0.013, 0.0117)), ((5, 4, 8), (15, 12), (0.7, 0.02)),
        ((4, 4, 70), (7, 7), (0.0031, 0.1)),
    ):  # fmt: skip
        p = row_params(TensorType((1, h, w, c), DType.S8), TensorType((1, out_h, out_w, c), DType.S8))
        places = [(np.arange(n) + 0.5) * m / n - 0.5 for n, m in ((out_h, h), (out_w, w))]
        yield from quantised_cases(p, places, (h, w), scales)
        halves: Forms = tuple(("bilinear_codes_s8", DType.S8, {"half": half}) for half in (0, 128))
        yield from of_forms(p, places, (h, w), (0, out_h), halves)
    planar = row_params(TensorType((1, 9, 4, 5), DType.S8), TensorType((1, 10, 8, 9), DType.S8), planar=True)
    yield from quantised_cases(planar, [np.arange(n) / 2 for n in (10, 8)], (4, 5), (0.02, 0.02))


def quantised_cases(
    p: dict[str, ParamValue], places: list[np.ndarray], lengths: tuple[int, int], scales: tuple[float, float]
) -> Iterator[Case]:
    """Zero points inside and at both ends."""
    for in_zp, out_zp in ((5, 5), (-128, 127), (127, -128)):
        more: dict[str, ParamValue] = {"in_scale": scales[0], "out_scale": scales[1], "in_zp": in_zp, "out_zp": out_zp}
        yield from of_forms(p, places, lengths, (0, int(p["out_h"])), (("bilinear_s8", DType.S8, more),))


def cases(
    p: dict[str, ParamValue], places: list[np.ndarray], lengths: tuple[int, int], rows: tuple[int, int]
) -> Iterator[Case]:
    """Return one case of each kernel."""
    forms: Forms = (
        ("bilinear_f32", DType.F32, {}),
        ("bilinear_s8", DType.S8, {"in_scale": 0.013, "out_scale": 0.0117, "in_zp": -9, "out_zp": 40}),
        ("bilinear_codes_s8", DType.S8, {"half": 0}), ("bilinear_codes_s8", DType.S8, {"half": 128}),
    )  # fmt: skip
    yield from of_forms(p, places, lengths, rows, forms)


def of_forms(
    p: dict[str, ParamValue], places: list[np.ndarray], lengths: tuple[int, int], rows: tuple[int, int], forms: Forms
) -> Iterator[Case]:
    """Return one case of each of the forms: kernel, kind of elements, further parameters."""
    size, out_size = int(p["batch"]) * int(p["in_batch"]), int(p["batch"]) * int(p["out_batch"])
    for kernel, dtype, more in forms:
        table = fixed_pairs_of if "codes" in kernel else pairs_of
        arrays = {"in": codes(size) if dtype is DType.S8 else RNG.standard_normal(size).astype(np.float32)}
        for key, place, length in zip(("rows", "cols"), places, lengths, strict=True):
            made = table(place, length)
            arrays |= {key: made.index, f"{key}_weights": made.weights}
        yield make_case(kernel, arrays, {**p, **more}, rows=rows, out={"out": ((out_size,), dtype)})
