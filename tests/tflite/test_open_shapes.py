"""Files whose shapes are placeholders (Keras without a batch size): shapes follow from inputs, as in TensorFlow Lite.

The runtime of TensorFlow Lite Micro trusts the file there, so the answers are those of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from glowc.errors import InputError, ModelError
from glowc.frontend import import_model
from tests.conftest import require_tflite
from tests.tflite.compare import lowered
from tests.tflite.writer import Build, Tensor

require_tflite()
RNG = np.random.default_rng(7)


def _open(shape: Sequence[int], kind: str = "float32", *, where: Sequence[int] = (0,)) -> Tensor:
    """Return a tensor some sizes of which are placeholders of 1."""
    placeholder = tuple(1 if i in where else d for i, d in enumerate(shape))
    return Tensor(placeholder, kind, signature=tuple(-1 if i in where else d for i, d in enumerate(shape)))


def _input(build: Build, shape: Sequence[int], *, where: Sequence[int] = (0,)) -> int:
    build.inputs.append(build.add(_open(shape, where=where)))
    return build.inputs[-1]


def _ints(build: Build, *values: int | Sequence[int]) -> int:
    return build.const(np.asarray(values, np.int32))


def _answer(build: Build, *arrays: np.ndarray) -> np.ndarray:
    return lowered(build.bytes(), [arrays])[0][0]


def dilated(x: np.ndarray, w: np.ndarray, rate: int) -> np.ndarray:
    """Return a causal convolution over time of x[1, t, c] with w[o, k, c]."""
    k, y = w.shape[1], np.zeros((1, x.shape[1], w.shape[0]), np.float32)
    padded = np.concatenate((np.zeros((1, (k - 1) * rate, x.shape[2]), np.float32), x), axis=1)
    for i in range(k):
        y += padded[:, i * rate : i * rate + x.shape[1]] @ w[:, i].T
    return y


def test_a_dilated_causal_convolution_of_a_file_without_a_batch_size_is_right() -> None:
    x, w, build = RNG.normal(size=(1, 8, 3)).astype(np.float32), RNG.normal(size=(4, 2, 3)).astype(np.float32), Build()
    given = _input(build, x.shape)
    padded = build.op("PAD", [given, _ints(build, [0, 0], [2, 0], [0, 0])], _open((1, 10, 3)))
    block, none = _ints(build, 2), _ints(build, [0, 0])
    blocks = build.op("SPACE_TO_BATCH_ND", [padded, block, none], _open((2, 5, 3)))
    rows = build.op("EXPAND_DIMS", [blocks, build.const(np.asarray(1, np.int32))], _open((2, 1, 5, 3)))
    kernel = build.const(w[:, None])
    y = build.op("CONV_2D", [rows, kernel, build.const(np.zeros(4, np.float32))], _open((2, 1, 4, 4)), strideH=1,
                 strideW=1, dilationHFactor=1, dilationWFactor=1, padding=1)  # fmt: skip
    flat = build.op("RESHAPE", [y, _ints(build, -1, 4, 4)], _open((2, 4, 4)))
    build.op("BATCH_TO_SPACE_ND", [flat, block, none], _open((1, 8, 4)))
    np.testing.assert_allclose(_answer(build, x), dilated(x, w, 2), rtol=1e-5, atol=1e-5)


def _shape_of(build: Build, x: int, rank: int) -> int:
    """Return the first size of a tensor and -1 as a list, computed in the graph."""
    shape = build.op("SHAPE", [x], Tensor((rank,), "int32"))
    first = build.op("STRIDED_SLICE", [shape, *(_ints(build, n) for n in (0, 1, 1))], Tensor((), "int32"),
                     shrinkAxisMask=1)  # fmt: skip
    return build.op("PACK", [first, build.const(np.asarray(-1, np.int32))], Tensor((2,), "int32"), valuesCount=2)


@pytest.mark.parametrize("batch", [None, 3])
def test_a_reshape_by_the_shape_of_its_input_follows_the_batch_size(batch: int | None) -> None:
    build = Build()
    x = _input(build, (1, 2, 5))
    build.op("RESHAPE", [x, _shape_of(build, x, 3)], _open((1, 10)))
    graph = import_model(build.bytes(), name="net", batch_size=batch)
    assert graph.types[graph.outputs[0]].shape == (batch or 1, 10)


def test_products_of_constant_sizes_shape_a_reshape() -> None:
    build, x = Build(), RNG.normal(size=(1, 6)).astype(np.float32)
    given = _input(build, x.shape)
    sizes = build.op("REDUCE_PROD", [_ints(build, 2, 3), _ints(build, 0)], Tensor((), "int32"))
    whole = build.op("PACK", [sizes], Tensor((1,), "int32"), valuesCount=1)
    build.op("RESHAPE", [given, whole], _open((6,)))
    assert np.array_equal(_answer(build, x), x.reshape(6))


def test_tiles_resizes_and_pieces_of_open_sizes() -> None:
    build, x = Build(), RNG.normal(size=(1, 2, 2, 3)).astype(np.float32)
    given = _input(build, x.shape)
    wide = build.op("TILE", [given, _ints(build, 1, 1, 2, 1)], _open((1, 2, 4, 3), where=(0, 2)))
    tall = build.op("RESIZE_NEAREST_NEIGHBOR", [wide, _ints(build, 4, 4)], _open((1, 4, 4, 3), where=(0, 1, 2)))
    half = build.op("SPLIT", [build.const(np.asarray(1, np.int32)), tall],
                    [_open((1, 2, 4, 3), where=(0, 1))] * 2, numSplits=2)  # fmt: skip
    build.op("SQUEEZE", [half], _open((2, 4, 3), where=(0, 1)), squeezeDims=[0])
    assert np.array_equal(_answer(build, x), np.tile(x, (1, 1, 2, 1))[0][[0, 0]])


def test_a_transposed_convolution_has_the_size_that_is_computed() -> None:
    build, x = Build(), RNG.normal(size=(1, 2, 2, 1)).astype(np.float32)
    given = _input(build, x.shape)
    size = build.op("ADD", [build.op("SHAPE", [given], Tensor((4,), "int32")), _ints(build, 0, 2, 2, 0)],
                    Tensor((4,), "int32"))  # fmt: skip
    build.op("TRANSPOSE_CONV", [size, build.const(np.ones((1, 2, 2, 1), np.float32)), given],
             _open((1, 4, 4, 1), where=(0, 1, 2)), strideH=2, strideW=2, padding=1)  # fmt: skip
    assert np.array_equal(_answer(build, x), x.repeat(2, 1).repeat(2, 2))


def test_a_layer_keeps_the_open_axes_of_its_input() -> None:
    build, w = Build(), RNG.normal(size=(4, 3)).astype(np.float32)
    given = _input(build, (1, 5, 3), where=(0, 1))
    build.op("FULLY_CONNECTED", [given, build.const(w), -1], _open((1, 5, 4), where=(0, 1)), keepNumDims=True)
    graph = import_model(build.bytes(), name="net", input_shapes={"t0": (2, 5, 3)})
    assert graph.types[graph.outputs[0]].shape == (2, 5, 4)


def test_an_input_shape_of_another_number_of_axes_and_a_fixed_batch_are_told() -> None:
    build = Build()
    build.op("ABS", [build.input((2, 3), "float32")], Tensor((2, 3), "float32"))
    with pytest.raises(InputError, match=r"batch size 4: the model's inputs have the fixed batch size 2"):
        import_model(build.bytes(), batch_size=4)
    with pytest.raises(InputError, match=r"--input-shape t0: 3 axes, the model's input has 2"):
        import_model(build.bytes(), input_shapes={"t0": (1, 2, 3)})
    with pytest.raises(InputError, match=r'--input-shape: no input "x"'):
        import_model(build.bytes(), input_shapes={"x": (1, 2)})
    assert import_model(build.bytes(), input_shapes={"t0": (4, 3)}).types["t0"].shape == (4, 3)


def test_a_reshape_that_does_not_fit_another_batch_size_is_told() -> None:
    build = Build()
    build.op("RESHAPE", [_input(build, (1, 6)), _ints(build, 1, 6)], _open((1, 6)))
    with pytest.raises(ModelError, match=r"operator 0 \(RESHAPE\)"):
        import_model(build.bytes(), batch_size=2)
