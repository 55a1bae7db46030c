"""Planar pooling: LpPool, three axes, indices of MaxPool; against onnxruntime and numpy; their kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.kernels.case import Case
from tests.ops.one_node import check, onnx_run, ort_run
from tests.ops.program_cases import cases_of

RNG = np.random.default_rng(15)
VOLUME = RNG.normal(size=(2, 2, 5, 4, 6)).astype(np.float32)
GEOMETRY = [
    {"kernel_shape": (2, 2, 2)}, {"kernel_shape": (3, 2, 3), "strides": (2, 1, 2), "pads": (1, 0, 1, 1, 1, 0)},
    {"kernel_shape": (2, 1, 2), "dilations": (2, 1, 3)},
    {"kernel_shape": (2, 3, 2), "strides": (2, 2, 4), "ceil_mode": 1},
]  # fmt: skip


@pytest.mark.parametrize("attrs", GEOMETRY)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_three_axes(op: str, attrs: dict[str, object]) -> None:
    (y,) = check(op, [VOLUME], attrs, rtol=1e-6)  # type: ignore[arg-type]
    if op == "LpPool" and "ceil_mode" in attrs:
        return  # onnxruntime's LpPool ignores it
    run = ort_run if op == "LpPool" else lambda *given: onnx_run(*given)[0]
    np.testing.assert_allclose(y, run(op, [VOLUME], attrs), rtol=1e-5, atol=1e-6)


def test_average_that_counts_padding() -> None:
    attrs = {"kernel_shape": (3, 3, 3), "pads": (1,) * 6, "count_include_pad": 1}
    (y,) = check("AveragePool", [VOLUME], attrs, rtol=1e-6)  # type: ignore[arg-type]
    np.testing.assert_allclose(y, onnx_run("AveragePool", [VOLUME], attrs)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(p: int) -> None:
    x = VOLUME[0]
    (y,) = check("LpPool", [x], {"kernel_shape": (2, 3), "p": p}, rtol=1e-5)
    parts = [np.abs(x[..., i : i + 3, j : j + 4]) ** p for i in range(2) for j in range(3)]
    np.testing.assert_allclose(y, sum(parts) ** (1 / p), rtol=1e-5)


@pytest.mark.parametrize("order", [0, 1])
def test_indices_of_max_pool(order: int) -> None:
    x = VOLUME[0]
    attrs = {"kernel_shape": (2, 2), "strides": (2, 2), "storage_order": order}
    y, where = check("MaxPool", [x], attrs, out_quants=(None, None))  # type: ignore[arg-type]
    plane = x.shape[-1] * x.shape[-2]
    flat = x.reshape(-1) if order == 0 else x.swapaxes(-1, -2).reshape(-1)
    np.testing.assert_array_equal(flat[where.reshape(-1)], y.reshape(-1))
    assert (where // plane == np.arange(where.size).reshape(where.shape) // (where.shape[-1] * where.shape[-2])).all()


def kernel_cases() -> Iterator[Case]:
    libm = "libm's pow differs between C libraries"
    for dtype in ("float32", "float64"):
        for attrs in GEOMETRY:
            for op in ("MaxPool", "AveragePool", "LpPool"):
                x = VOLUME.astype(dtype)
                yield from cases_of({"window"}, op, [x], attrs, rtol=1e-6, atol=1e-6, why=libm)  # type: ignore[arg-type]
            yield from cases_of({"window_arg"}, "MaxPool", [x], attrs, outputs=2)  # type: ignore[arg-type]
        for p in (1, 3):
            lp = {"kernel_shape": (2, 3), "p": p}
            yield from cases_of({"window"}, "LpPool", [VOLUME[0].astype(dtype)], lp, rtol=1e-5, atol=1e-5, why=libm)  # type: ignore[arg-type]
        padded = {"kernel_shape": (3, 3, 3), "pads": (1,) * 6, "count_include_pad": 1}
        yield from cases_of({"window"}, "AveragePool", [VOLUME.astype(dtype)], padded, rtol=1e-6, atol=1e-6, why=libm)  # type: ignore[arg-type]
    image = RNG.integers(0, 256, (1, 5, 6, 3)).astype(np.uint8)
    for attrs in ({"kernel_shape": (2, 3), "strides": (2, 1)}, {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}):
        yield from cases_of({"max_pool_u8"}, "MaxPool", [image], {**attrs, "layout": "nhwc"})  # type: ignore[arg-type]
    for kind in ("int8", "uint8"):
        x = RNG.integers(0, 100, (1, 2, 5, 6)).astype(kind)
        for order in (0, 1):
            attrs = {"kernel_shape": (2, 3), "strides": (2, 1), "pads": (0, 1, 1, 1), "storage_order": order}
            yield from cases_of({"window", "window_arg"}, "MaxPool", [x], attrs, outputs=2)  # type: ignore[arg-type]
