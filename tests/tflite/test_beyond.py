"""Operators and forms that TensorFlow Lite has and its runtime for microcontrollers lacks, against numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.frontend.tflite.reader import read_tflite
from glowc.graph.fixed_point import multiplier, scaled_wide
from tests.conftest import require_tflite
from tests.tflite.cases import make_case
from tests.tflite.compare import lowered
from tests.tflite.writer import Build, Quant, Tensor, quant

require_tflite()
RNG = np.random.default_rng(11)
Arrays = Sequence[np.ndarray]
X, POSITIVE = RNG.normal(0, 2, (2, 6)).astype(np.float32), RNG.uniform(0.1, 3, (2, 6)).astype(np.float32)
TRUTH, WHOLE = RNG.integers(0, 2, (3, 4)).astype(bool), RNG.integers(-3, 4, (2, 6)).astype(np.int32)
SIGNS = np.asarray([[1, 1, -1, -1, 0, 0], [0, -0.0, 0, 2, 1, -1]], np.float32)


def _gelu(x: np.ndarray) -> np.ndarray:
    return np.asarray([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.reshape(-1)]).reshape(x.shape)


def _log(x: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(x, 1e-30))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _scattered(where: np.ndarray, rows: np.ndarray) -> np.ndarray:
    y = np.zeros((4, 2), np.float32)
    np.add.at(y, where[:, 0], rows)
    return y


Case = tuple[str, Arrays, Arrays, Mapping[str, object], Callable[..., np.ndarray]]
CASES: Sequence[Case] = (
    ("GELU", [X], [], {"approximate": False}, _gelu),
    ("GELU", [X], [], {"approximate": True}, _gelu_tanh),
    ("SIGN", [X], [], {}, np.sign),
    ("RELU_0_TO_1", [X], [], {}, lambda x: np.clip(x, 0, 1)),
    ("POW", [POSITIVE, X], [], {}, np.power),
    ("ATAN2", [X, X[::-1]], [], {}, np.arctan2),
    ("ATAN2", [SIGNS, SIGNS[::-1]], [], {}, np.arctan2),
    ("REDUCE_PROD", [X], [np.asarray([1], np.int32)], {"keepDims": True}, lambda x: x.prod(1, keepdims=True)),
    ("REDUCE_ANY", [TRUTH], [np.asarray([1], np.int32)], {"keepDims": False}, lambda x: x.any(1)),
    ("REDUCE_ALL", [TRUTH], [np.asarray([0], np.int32)], {"keepDims": False}, lambda x: x.all(0)),
    ("SCATTER_ND", [np.asarray([[1], [3], [1]], np.int32), X[0].reshape(3, 2)], [np.asarray([4, 2], np.int32)], {},
     _scattered),
    ("ONE_HOT", [WHOLE], [np.asarray(3, np.int32), np.asarray(2.5, np.float32), np.asarray(-1, np.float32)],
     {"axis": -1}, lambda x: np.where(x[..., None] == np.arange(3), 2.5, -1)),
    ("SELECT", [np.asarray([True, False]), X, X + 1], [], {}, lambda c, a, b: np.where(c[:, None], a, b)),
    ("TILE", [X], [np.asarray([2, 1], np.int32)], {}, lambda x: np.tile(x, (2, 1))),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1][0].dtype}")
def test_an_operator_of_tensorflow_lite_answers_as_numpy(case: Case) -> None:
    code, inputs, consts, options, function = case
    build = Build()
    given = [build.input(x.shape, x.dtype.name) for x in inputs]
    want = np.asarray(function(*inputs))
    want = want if want.dtype == bool else want.astype(np.float32)
    build.op(code, [*given, *map(build.const, consts)], Tensor(want.shape, want.dtype.name), **options)
    got = lowered(build.bytes(), [tuple(inputs)])[0][0]
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-6, atol=2e-6)


def test_the_largest_come_with_their_places_as_int32() -> None:
    build = Build()
    results = [Tensor((2, 3), "float32"), Tensor((2, 3), "int32")]
    build.op("TOPK_V2", [build.input((2, 6), "float32"), build.const(np.asarray(3, np.int32))], results)
    values, places = lowered(build.bytes(), [(X,)])[0]
    order = np.argsort(-X, axis=1, kind="stable")[:, :3]
    assert np.array_equal(places, order)
    assert np.array_equal(values, np.take_along_axis(X, order, 1))


@pytest.mark.parametrize(("code", "function"), [("GELU", _gelu), ("EXP", np.exp), ("LOG", _log), ("RELU_0_TO_1", None)])
def test_functions_of_int8_codes_round_reals(code: str, function: Callable[[np.ndarray], np.ndarray] | None) -> None:
    build, q = Build(), quant(1 / 32, -5)
    out = q if function is None else quant(1 / 16, -100)
    build.op(code, [build.input((16, 16), "int8", q)], Tensor((16, 16), "int8", out))
    codes = np.arange(-128, 128).astype(np.int8).reshape(16, 16)
    real = (codes.astype(np.float64) + 5) / 32
    y = np.clip(real, 0, 1) if function is None else function(real)
    want = np.clip(np.floor(y / out.scale[0] + 0.5) + out.zero[0], -128, 127)
    assert np.array_equal(lowered(build.bytes(), [(codes,)])[0][0], want.astype(np.int8))


@pytest.mark.parametrize(("kind", "q"), [("float32", None), ("int8", quant(0.5, -7))])
def test_blocks_of_space_are_padded_with_real_zeros(kind: str, q: Quant | None) -> None:
    x, build = RNG.integers(-90, 90, (2, 3, 3, 2)).astype(kind), Build()
    lists = [build.const(np.asarray(v, np.int32)) for v in ([2, 3], [[1, 0], [2, 1]])]
    build.op("SPACE_TO_BATCH_ND", [build.input(x.shape, kind, q), *lists], Tensor((12, 2, 2, 2), kind, q))
    padded = np.pad(x, ((0, 0), (1, 0), (2, 1), (0, 0)), constant_values=q.zero[0] if q else 0)
    want = padded.reshape(2, 2, 2, 2, 3, 2).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 2, 2)
    assert np.array_equal(lowered(build.bytes(), [(x,)])[0][0], want)


def test_float16_weights_are_a_cast_of_a_constant() -> None:
    build, w = Build(), RNG.normal(size=(4, 6)).astype(np.float16)
    wide = build.op("DEQUANTIZE", [build.const(w)], Tensor((4, 6), "float32"))
    build.op("FULLY_CONNECTED", [build.input((2, 6), "float32"), wide, -1], Tensor((2, 4), "float32"))
    np.testing.assert_allclose(lowered(build.bytes(), [(X,)])[0][0], X @ w.astype(np.float32).T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["int4", "int8"])
def test_weights_with_a_scale_per_block_are_read(kind: str) -> None:
    build, codes = Build(), RNG.integers(-8, 8, (3, 64)).astype(np.int8)
    scale = RNG.uniform(0.01, 0.1, (3, 2)).astype(np.float16)
    scales = build.const(scale)
    weights = build.add(Tensor((3, 64), kind, None, codes, blocks=(scales, -1, 32)))
    x = RNG.normal(size=(1, 64)).astype(np.float32)
    build.op("FULLY_CONNECTED", [build.input(x.shape, "float32"), weights, -1], Tensor((1, 3), "float32"))
    want = x @ (codes.astype(np.float32) * scale.astype(np.float32).repeat(32, 1)).T
    np.testing.assert_allclose(lowered(build.bytes(), [(x,)])[0][0], want, rtol=1e-5, atol=1e-5)


def test_a_composite_is_what_its_subgraph_says() -> None:
    build, inner = Build(), Build()
    inner.op("ABS", [inner.input((2, 6), "float32")], Tensor((2, 6), "float32"))
    build.called = [inner]
    build.op("STABLEHLO_COMPOSITE", [build.input((2, 6), "float32")], Tensor((2, 6), "float32"), name=b"odml.abs",
             decompositionSubgraphIndex=1)  # fmt: skip
    assert np.array_equal(lowered(build.bytes(), [(X,)])[0][0], np.abs(X))


def test_a_slice_with_an_ellipsis_and_a_new_axis() -> None:
    x, build = RNG.normal(size=(2, 3, 4)).astype(np.float32), Build()
    lists = [build.const(np.asarray(v, np.int32)) for v in ([0, 0, 1], [0, 0, 3], [1, 1, 1])]
    build.op("STRIDED_SLICE", [build.input(x.shape, "float32"), *lists], Tensor((1, 2, 3, 2), "float32"),
             newAxisMask=1, ellipsisMask=2)  # fmt: skip
    assert np.array_equal(lowered(build.bytes(), [(x,)])[0][0], x[None, ..., 1:3])


def test_a_transposed_convolution_with_a_bias_and_relu_behind_it() -> None:
    x, build = RNG.normal(size=(1, 2, 2, 1)).astype(np.float32), Build()
    size, weights = build.const(np.asarray([1, 4, 4, 1], np.int32)), build.const(np.ones((1, 2, 2, 1), np.float32))
    y = build.op("TRANSPOSE_CONV", [size, weights, build.input(x.shape, "float32")], Tensor((1, 4, 4, 1), "float32"),
                 strideH=2, strideW=2, padding=1)  # fmt: skip
    build.op("ADD", [y, build.const(np.asarray([0.25], np.float32))], Tensor((1, 4, 4, 1), "float32"),
             fusedActivationFunction=1)  # fmt: skip
    want = np.maximum(x.repeat(2, 1).repeat(2, 2) + np.float32(0.25), 0)
    np.testing.assert_allclose(lowered(build.bytes(), [(x,)])[0][0], want, rtol=1e-6)


@pytest.mark.parametrize("kind", ["string", "complex64"])
def test_an_element_type_that_is_not_known_is_told_at_the_operator_that_has_it(kind: str) -> None:
    build = Build()
    odd = build.op("Spectrum", [build.input((2, 2), "float32")], Tensor((2, 2), kind))
    build.op("Magnitude", [odd], Tensor((2, 2), "float32"))
    with pytest.raises(ModelError, match=r"2 problems|unsupported operator Spectrum") as problem:
        import_model(build.bytes())
    assert "download" not in str(problem.value.hint)


def test_a_tensor_that_cannot_be_read_harms_nobody_who_does_not_read_it() -> None:
    build = Build()
    build.add(Tensor((1,), "string"))
    build.add(Tensor((2, 3), "int8", Quant((1.0, 2.0), (0, 0), 7)))
    build.op("ABS", [build.input((2, 6), "float32")], Tensor((2, 6), "float32"))
    assert np.array_equal(lowered(build.bytes(), [(X,)])[0][0], np.abs(X))


def _lists(build: Build, *values: Sequence[int]) -> list[int]:
    return [build.const(np.asarray(v, np.int32)) for v in values]


def test_a_slice_to_nothing_joins_and_sums_as_nothing() -> None:
    build = Build()
    x = build.input((2, 6), "float32")
    nothing = build.op("SLICE", [x, *_lists(build, [0, 3], [2, 0])], Tensor((2, 0), "float32"))
    total = build.op("SUM", [nothing, *_lists(build, [1])], Tensor((2, 1), "float32"), keepDims=True)
    joined = build.op("CONCATENATION", [nothing, x, build.op("ABS", [nothing], Tensor((2, 0), "float32"))],
                      Tensor((2, 6), "float32"), axis=1)  # fmt: skip
    build.op("ADD", [joined, total], Tensor((2, 6), "float32"))
    assert np.array_equal(lowered(build.bytes(), [(X,)])[0][0], X)


def test_an_output_without_elements_is_refused_by_name() -> None:
    build = Build()
    x = build.input((2, 6), "float32")
    build.op("SLICE", [x, *_lists(build, [0, 3], [2, 0])], Tensor((2, 0), "float32", name="rest"))
    with pytest.raises(ModelError, match=r'the output "rest" is f32\[2,0\]: it has no elements'):
        import_model(build.bytes())


def test_mediapipes_transposed_convolution_has_a_bias_and_options_of_its_own() -> None:
    x, w = RNG.normal(size=(1, 2, 2, 2)).astype(np.float32), RNG.normal(size=(3, 3, 3, 2)).astype(np.float32)
    bias, build = np.asarray([0.5, -1, 2], np.float32), Build()
    inputs = [build.input(x.shape, "float32"), build.const(w), build.const(bias)]
    build.op("Convolution2DTransposeBias", inputs, Tensor((1, 4, 4, 3), "float32"),
             custom=np.asarray([1, 2, 2], np.int32).tobytes())  # fmt: skip
    want = np.zeros((5, 5, 3), np.float32)
    for i, j in np.ndindex(2, 2):
        want[2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += np.einsum("okli,i->klo", w, x[0, i, j])
    np.testing.assert_allclose(lowered(build.bytes(), [(x,)])[0][0][0], want[:4, :4] + bias, rtol=1e-5, atol=1e-5)


def test_a_layer_whose_weights_are_computed_is_a_product() -> None:
    build, w = Build(), RNG.normal(size=(4, 6)).astype(np.float32)
    bias = build.const(np.asarray([[1, 2, 3, 4]], np.float32).reshape(4))
    inputs = [build.input((2, 6), "float32"), build.input((4, 6), "float32"), bias]
    build.op("FULLY_CONNECTED", inputs, Tensor((1, 2, 4), "float32"), fusedActivationFunction=1)
    want = np.maximum(X @ w.T + np.asarray([1, 2, 3, 4], np.float32), 0)[None]
    np.testing.assert_allclose(lowered(build.bytes(), [(X, w)])[0][0], want, rtol=1e-5, atol=1e-5)


def test_scales_of_floats_are_a_remark() -> None:
    build = Build()
    x = build.add(Tensor((2, 6), "float32", Quant((0.5, 0.5, 0.5), (0,), 7)))
    build.inputs = [x]
    build.op("ABS", [x], Tensor((2, 6), "float32"))
    assert np.array_equal(lowered(build.bytes(), [(X,)])[0][0], np.abs(X))


def _without_shapes_of_results(model: bytes) -> bytes:
    import flatbuffers  # type: ignore[import-untyped]
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

    made = schema.ModelT.InitFromPackedBuf(model, 0)
    for index in made.subgraphs[0].outputs:
        made.subgraphs[0].tensors[index].shape = []
    builder = flatbuffers.Builder(1024)
    builder.Finish(made.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize("seed", range(3))
def test_a_detector_without_stored_shapes_has_room_for_what_its_options_say(seed: int) -> None:
    case = make_case("TFLite_Detection_PostProcess", seed)
    want, got = lowered(case.model, case.calls)[0], lowered(_without_shapes_of_results(case.model), case.calls)[0]
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        assert np.array_equal(a, b)


def test_a_gather_by_batch_takes_rows_of_each_sample() -> None:
    x, build = RNG.normal(size=(2, 4, 3)).astype(np.float32), Build()
    where = np.asarray([[3, 0], [1, 1]], np.int32)
    build.op("GATHER", [build.input(x.shape, "float32"), build.input(where.shape, "int32")],
             Tensor((2, 2, 3), "float32"), axis=1, batchDims=1)  # fmt: skip
    want = np.stack([x[0][where[0]], x[1][where[1]]])
    assert np.array_equal(lowered(build.bytes(), [(x, where)])[0][0], want)


@pytest.mark.parametrize("seed", range(4))
def test_an_int16_product_by_int8_rounds_as_litert(seed: int) -> None:
    case = make_case("BATCH_MATMUL int16 int8", seed)
    a, b, y = read_tflite(case.model, "net").subgraphs[0].tensors[:3]
    left, right = case.calls[0][0], b.data if b.data is not None else case.calls[0][1]
    words = case.label.split()
    flip = [word == "True" for word in words[words.index("adj") + 1 :][:2]]
    left, right = (x.swapaxes(-1, -2) if f else x for x, f in zip((left, right), flip, strict=True))
    sums = left.astype(np.int64) @ right.astype(np.int64)
    mul, shift = multiplier(a.quant.scale[0] * b.quant.scale[0] / y.quant.scale[0])
    want = np.clip(scaled_wide(sums, mul, shift), -32768, 32767)
    np.testing.assert_array_equal(lowered(case.model, case.calls)[0][0], want)


@pytest.mark.parametrize(
    ("right", "says"),
    [(quant(0.1, 4), "has a zero point"), (Quant((0.1, 0.2, 0.3), (0, 0, 0), 1), "scales of its own")],
)
def test_an_int16_product_by_int8_with_other_codes_is_told(right: Quant, says: str) -> None:
    build = Build()
    inputs = [build.input((2, 8), "int16", quant(1e-3, 0)), build.input((8, 3), "int8", right)]
    build.op("BATCH_MATMUL", inputs, Tensor((2, 3), "int16", quant(1e-2, 0)), adjX=False, adjY=False)
    with pytest.raises(ModelError, match=says):
        import_model(build.bytes())


def test_a_loop_without_a_maximum_is_told() -> None:
    build, condition, body = Build(), Build(), Build()
    condition.op("LESS", [condition.input((1,), "float32"), condition.const(np.float32([1]))], Tensor((1,), "bool"))
    body.op("ADD", [body.input((1,), "float32"), body.const(np.float32([1]))], Tensor((1,), "float32"))
    build.called = [condition, body]
    x = build.input((1,), "float32")
    build.op("WHILE", [x], Tensor((1,), "float32"), condSubgraphIndex=1, bodySubgraphIndex=2)
    with pytest.raises(ModelError, match="may hold for more than") as told:
        import_model(build.bytes())
    assert "maximum_iterations" in str(told.value.hint)
