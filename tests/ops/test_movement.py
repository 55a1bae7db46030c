"""Transpose, Concat, Slice, Split, Expand, Tile, Pad, Reshape: against onnx.reference, and the copy kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.numerics import dequantize, quantize
from glowc.graph.types import DType, quant
from glowc.ops.base import OpError
from glowc.ops.strided import Run, collapse, runs_of
from tests.kernels.case import Case, make_case
from tests.kernels.params import axis_params
from tests.ops.one_node import check, graph_of, onnx_run

RNG = np.random.default_rng(1)


def numbered(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape).astype(dtype)


@pytest.mark.parametrize("perm", [(0, 2, 3, 1), (3, 2, 1, 0), (0, 1, 2, 3), (1, 0, 3, 2)])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64"])
def test_transpose(perm: tuple[int, ...], dtype: str) -> None:
    x = numbered(2, 3, 4, 5, dtype=dtype)
    (y,) = check("Transpose", [x], {"perm": perm})
    np.testing.assert_array_equal(y, onnx_run("Transpose", [x], {"perm": perm})[0])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis: int) -> None:
    shapes = [[2, 3, 4] for _ in range(3)]
    shapes[1][axis], shapes[2][axis] = 1, 7
    xs = [RNG.normal(size=s).astype(np.float32) for s in shapes]
    (y,) = check("Concat", xs, {"axis": axis})
    np.testing.assert_array_equal(y, np.concatenate(xs, axis))


def test_concat_requantises_inputs_with_another_scale() -> None:
    xs = [np.arange(-128, 128, dtype=np.int8).reshape(2, 128) for _ in range(2)]
    qs, qy = [quant(0.1, 3), quant(0.05, -128)], quant(0.1, 3)
    (y,) = check("Concat", xs, {"axis": 1}, quants=qs, out_quants=[qy])
    np.testing.assert_array_equal(y[:, :128], xs[0])
    np.testing.assert_array_equal(y[:, 128:], quantize(dequantize(xs[1], qs[1]), qy, DType.S8))


def test_concat_of_other_shapes_is_an_error_that_shows_them() -> None:
    with pytest.raises(OpError, match=r"f32\[2,3\], f32\[2,4\]"):
        graph_of("Concat", [numbered(2, 3), numbered(2, 4)], {"axis": 0})


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ((1,), (3,), (1,), (1,)), ((-1,), (-100,), (2,), (-1,)), ((0, 1), (2, 100), (0, 2), (1, 3)),
        ((5, -2), (0, 4), (2, 1), (-2, 1)), ((3,), (3,), (0,), (1,)),
    ],
)  # fmt: skip
def test_slice(starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...], steps: tuple[int, ...]) -> None:
    x = numbered(3, 4, 7)
    arrays = [x, *(np.asarray(v, np.int64) for v in (starts, ends, axes, steps))]
    (want,) = onnx_run("Slice", arrays)
    if want.size:
        (y,) = check("Slice", [x], {"starts": starts, "ends": ends, "axes": axes, "steps": steps})
        np.testing.assert_array_equal(y, want)


def test_slice_to_the_front_by_the_end_that_the_import_writes() -> None:
    x = numbered(4)
    (y,) = check("Slice", [x], {"starts": (3,), "ends": (-5,), "axes": (0,), "steps": (-1,)})
    np.testing.assert_array_equal(y, x[::-1])


def test_split() -> None:
    x = numbered(2, 7, 3)
    ys = check("Split", [x], {"axis": 1, "split": (1, 4, 2)}, out_quants=[None] * 3)
    for y, want in zip(ys, np.split(x, [1, 5], 1), strict=True):
        np.testing.assert_array_equal(y, want)
    last = check("Split", [x], {"axis": 1, "num_outputs": 3}, out_quants=[None] * 3)[2]
    np.testing.assert_array_equal(last, x[:, 6:])


def test_expand_and_tile() -> None:
    x = numbered(3, 1, 2)
    (y,) = check("Expand", [x], {"shape": (2, 1, 4, 2)})
    np.testing.assert_array_equal(y, onnx_run("Expand", [x, np.asarray((2, 1, 4, 2))])[0])
    (y,) = check("Tile", [x], {"repeats": (2, 3, 2)})
    np.testing.assert_array_equal(y, np.tile(x, (2, 3, 2)))


@pytest.mark.parametrize("shape", [(6, 4), (-1,), (0, -1), (2, 3, 4)])
def test_reshape(shape: tuple[int, ...]) -> None:
    x = numbered(2, 3, 4)
    (y,) = check("Reshape", [x], {"shape": shape})
    np.testing.assert_array_equal(y, onnx_run("Reshape", [x, np.asarray(shape)])[0])


def test_reshape_to_another_size_is_an_error() -> None:
    with pytest.raises(OpError, match=r"cannot reshape f32\[2,3\] to \[4\]"):
        graph_of("Reshape", [numbered(2, 3)], {"shape": (4,)})


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(0, 1, 2, 0, 1, 2), (1, 0, 0, 0, 0, 3), (0, -1, 1, 0, 2, -1)])
def test_pad(mode: str, pads: tuple[int, ...]) -> None:
    x = numbered(2, 3, 4)
    (y,) = check("Pad", [x], {"mode": mode, "pads": pads, "value": 1.5})
    cropped = x[:, max(0, -pads[1]) : x.shape[1] + min(0, pads[4]), : x.shape[2] + min(0, pads[5])]
    widths = [(max(0, pads[i]), max(0, pads[i + 3])) for i in range(3)]
    if min(pads) >= 0 or mode == "constant":
        more = {"constant_values": 1.5} if mode == "constant" else {}
        np.testing.assert_array_equal(y, np.pad(cropped, widths, mode=mode, **more))  # type: ignore[call-overload]


def test_pad_of_codes_takes_the_value_in_real_units() -> None:
    x, q = np.asarray([[1, 2]], np.int8), quant(0.5, -7)
    (y,) = check("Pad", [x], {"pads": (0, 1, 0, 0)}, quants=[q], out_quants=[q])
    assert y.tolist() == [[-7, 1, 2]]
    (y,) = check("Pad", [x], {"pads": (0, 0, 0, 1), "value": -4.0}, quants=[q], out_quants=[q])
    assert y.tolist() == [[1, 2, -15]]


def test_runs_are_arithmetic_progressions() -> None:
    assert runs_of([3, 2, 1, -1, -1, 0, 2]) == [Run(0, 3, 3, -1), Run(3, 2, -1, 0), Run(5, 2, 0, 2)]
    assert runs_of([5, 5, 5]) == [Run(0, 3, 5, 0)]


def test_axes_that_every_operand_walks_alike_are_merged() -> None:
    assert collapse((2, 3, 4), (12, 4, 1), (12, 4, 1)) == ((24,), ((1,), (1,)))
    assert collapse((2, 3, 4), (12, 4, 1), (0, 4, 1)) == ((2, 12), ((12, 1), (0, 1)))
    assert collapse((1, 1), (1, 1)) == ((1,), ((1,),))


def copy_case(x: np.ndarray, out: int, d: list[int], i: list[int], o: list[int], begin: int, to: int) -> Case:
    p = axis_params("d", d, 1) | axis_params("i", i, 0) | axis_params("o", o, 0)
    words = {"rank": len(d), "contiguous": int(i[-1] == 1 and o[-1] == 1), "in_offset": begin, "out_offset": to}
    kind = DType({"f": "f", "i": "s", "u": "u"}[x.dtype.kind] + str(8 * x.itemsize))
    return make_case(f"copy_b{x.itemsize}", {"in": x}, p | words, out={"out": ((out,), kind)})


def kernel_cases() -> Iterator[Case]:
    for dtype, kind in (("int8", DType.S8), ("int16", DType.S16), ("float32", DType.F32), ("float64", DType.F64)):
        x = RNG.integers(-100, 100, 64).astype(dtype)
        for n in (1, 2, 3, 15, 16, 17, 31, 64):
            yield copy_case(x, n, [n], [1], [1], 0, 0)
        yield copy_case(x, 24, [2, 3, 4], [1, 8, 2], [12, 4, 1], 1, 0)
        yield copy_case(x, 30, [2, 5], [5, 1], [15, 1], 3, 4)
        yield copy_case(x, 12, [3, 4], [-4, -1], [4, 1], 11, 0)
        yield copy_case(x, 12, [4, 3], [0, 1], [3, 1], 7, 0)
        yield copy_case(x, 64, [2, 2, 2, 2, 2, 2], [1, 2, 4, 8, 16, 32], [32, 16, 8, 4, 2, 1], 0, 0)
        few = ((4, 2), (3, 2), (3, 4), (8, 3), (7, 3), (16, 4), (15, 4), (21, 2), (2, 33), (16, 5), (1, 9), (9, 1))
        for rows, columns in ((7, 8), (8, 7), (8, 8), (8, 17), (9, 8), (15, 16), (16, 33), *few):  # turned matrices
            y = RNG.integers(-100, 100, 2 * rows * columns).astype(dtype)
            yield copy_case(y, rows * columns, [rows, columns], [1, rows], [columns, 1], 0, 0)
            dims, steps = [2, rows, columns], [rows * columns, columns, 1]
            yield copy_case(y, y.size, dims, [rows * columns, 1, rows], steps, 0, 0)
            yield copy_case(y, y.size + 3, [max(rows - 1, 1), columns], [1, rows], [2 * columns, 1], rows > 1, 3)
            yield copy_case(y, y.size, [columns, rows], [1, columns], [rows, 1], 0, 0)
        for n in (1, 5, 33):
            for value, high in ((0, 0), (-1, -1), (0x3FC00000, 0x12345678), (-128, 7)):
                params = {"n": n, "value": value, "value_hi": high}
                yield make_case(f"fill_b{x.itemsize}", {}, params, out={"out": ((n,), kind)})
