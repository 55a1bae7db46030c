"""Sequences, optionals, computed conditions of loops, operators made of simpler ones: as onnxruntime has them.

Those that onnxruntime lacks are compared with ONNX's reference evaluator.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from glowc.frontend import import_model
from glowc.ops.interp import run_graph
from tests.unit.test_frontend_control import HEAD, X, by_onnxruntime, check, error

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    "body",
    [
        "s = SequenceConstruct(x, one) y = ConcatFromSequence<axis=1>(s)",
        "s = SequenceConstruct(x, one) y = ConcatFromSequence<axis=0, new_axis=1>(s)",
        "e = SequenceEmpty() s = SequenceInsert(e, x) t = SequenceInsert(s, one, first) y = SequenceAt(t, last)",
        "s = SequenceConstruct(x, one, x) t = SequenceErase(s, first) y = SequenceAt(t, first)",
        "s = SplitToSequence<axis=1>(x, sizes) y = SequenceAt(s, last)",
        "s = SplitToSequence<axis=1>(x, two) y = SequenceAt(s, first)",
        "s = SplitToSequence<axis=1, keepdims=0>(x) y = SequenceAt(s, last)",
        "s = SequenceConstruct(x, x) n = SequenceLength(s) f = Cast<to=1>(n) y = Mul(x, f)",
        "o = Optional(x) h = OptionalHasElement(o) f = Cast<to=1>(h) v = OptionalGetElement(o) y = Add(v, f)",
    ],
)
def test_sequences_leave_nothing_in_the_graph(body: str) -> None:
    text = "<int64 first = {0}, int64 last = {-1}, int64[2] sizes = {1, 2}, int64 two = {2}>"
    consts = "one = Constant<value_floats=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]>() shape = Constant<value_ints=[2, 3]>()"
    body = body.replace("one", "ones")
    head = consts.replace("one =", "flat =") + " ones = Reshape(flat, shape)"
    check(f"g (float[2,3] x) => (float y) {text} {{ {head} {body} }}")


def test_a_sequence_as_output_is_its_elements() -> None:
    text = "g (float[2,3] x) => (seq(float) s) { s = SplitToSequence<axis=1, keepdims=0>(x) }"
    graph = import_model(onnx.parser.parse_model(HEAD + text))
    assert graph.outputs == ("s.0", "s.1", "s.2")
    got = run_graph(graph, {"x": X})
    assert all(np.array_equal(got[f"s.{i}"], X[:, i]) for i in range(3))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("s = SequenceConstruct(x) y = SequenceAt(s, three)", "position 3 of 1 elements"),
        ("s = SequenceConstruct(x) y = Neg(s)", "is a sequence, and the operator takes a tensor"),
        ("o = Optional<type = float[1]>() y = OptionalGetElement(o)", "the optional has no element"),
        ("y = SequenceAt(x, three)", '"x" is no sequence'),
        ("y = Optional<type = float[1]>()", 'output "y" is an optional without element'),
        ("y = Identity()", "input 0 (input) is missing"),
        ("y = Concat<axis = 0>()", "input 0 (inputs) is missing"),
    ],
)
def test_sequences_that_do_not_fit_are_told(body: str, says: str) -> None:
    assert says in error(f"g (float[2,3] x) => (float y) <int64 three = {{3}}> {{ {body} }}")


@pytest.mark.parametrize("limit", [-1.0, 0.5, 3.0, 100.0])
def test_a_loop_whose_condition_is_computed_keeps_its_states(limit: float) -> None:
    check(
        """g (float[2,3] x, float limit) => (float[2,3] y, float n) <int64 five = {5}, bool yes = {1},
      float zero = {0}, float one = {1}> {
      y, n = Loop (five, yes, x, zero) <body = b (int64 i, bool c, float[2,3] s, float k) =>
        (bool going, float[2,3] t, float m) { t = Mul(s, x)  m = Add(k, one)  going = Less(m, limit) }> }""",
        limit=np.asarray(limit, np.float32),
    )


def test_a_loop_of_an_unknown_number_of_trips_joins_nothing() -> None:
    text = """g (float[2,3] x, float limit) => (float y) <int64 five = {5}, float zero = {0}, float one = {1}> {
      n, y = Loop (five, , zero) <body = b (int64 i, bool c, float k) => (bool going, float m, float o)
        { m = Add(k, one)  going = Less(m, limit)  o = Neg(m) }> }"""
    assert "number of trips" not in error(text.replace("(five, ,", "(, ,"))
    text = text.replace("(five, ,", "(five, first,").replace(
        "> {\n      n, y", "> { first = Less(zero, limit)\n      n, y"
    )
    assert "the number of trips is computed at run time" in error(text)


def compare(text: str, inputs: dict[str, np.ndarray], **consts: np.ndarray) -> None:
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in consts.items())
    graph = import_model(model)
    got, want = run_graph(graph, {n: inputs[n] for n in graph.inputs}), by_onnxruntime(model, inputs)
    for name, array in zip(graph.outputs, want, strict=True):
        np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-5)


HEADS = {n: f'<ir_version: 8, opset_import: ["" : {n}]>\n' for n in (17, 19, 22)}


@pytest.mark.parametrize(
    ("attrs", "shape"),
    [("", (3, 4, 2, 3, 3)), ("<group=2, strides=[2,1,2], pads=[1,0,1,0,1,1]>", (6, 2, 3, 2, 3)),
     ("<group=4, dilations=[2,1,1]>", (4, 1, 2, 3, 3)), ('<auto_pad="SAME_UPPER">', (2, 4, 2, 3, 2))],
)  # fmt: skip
def test_a_convolution_of_three_axes(attrs: str, shape: tuple[int, ...]) -> None:
    text = f"{HEADS[17]} g (float[1,4,5,6,7] x) => (float[a,b,c,d,e] y) {{ y = Conv{attrs}(x, w, b) }}"
    arrays = [RNG.normal(size=s).astype(np.float32) for s in ((1, 4, 5, 6, 7), shape, shape[:1])]
    compare(text, {"x": arrays[0]}, w=arrays[1], b=arrays[2])


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skip", [0, 2])
def test_n_grams_are_counted(mode: str, skip: int) -> None:
    text = f"""{HEADS[17]} g (int64[2,9] x) => (float[a,b] y) {{
      y = TfIdfVectorizer<mode="{mode}", min_gram_length=1, max_gram_length=2, max_skip_count={skip},
        ngram_counts=[0, 3], ngram_indexes=[1, 0, 4, 3, 2], pool_int64s=[1, 2, 3, 1, 2, 3, 3],
        weights=[0.5, 2.0, 3.0, 1.0, 7.0]>(x) }}"""
    compare(text, {"x": RNG.integers(1, 4, (2, 9))})


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
def test_regions_are_aligned(mode: str) -> None:
    text = f"""{HEADS[17]} g (float[2,3,8,9] x, float[4,4] r, int64[4] n) => (float[a,b,c,d] y) {{
      y = RoiAlign<output_height=3, output_width=2, sampling_ratio=2, spatial_scale=0.5,
        coordinate_transformation_mode="{mode}">(x, r, n) }}"""
    x = RNG.normal(size=(2, 3, 8, 9)).astype(np.float32)
    rois = np.asarray([[0, 0, 9, 9], [2.5, 1, 7, 14], [-6, -4, 3, 3], [12, 10, 30, 30]], np.float32)
    compare(text, {"x": x, "r": rois, "n": np.asarray([0, 1, 1, 0])})


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_determinants(n: int) -> None:
    text = f"{HEADS[17]} g (float[5,{n},{n}] x) => (float[5] y) {{ y = Det(x) }}"
    compare(text, {"x": RNG.normal(size=(5, n, n)).astype(np.float32)})


@pytest.mark.parametrize("axis", ["", "<axis=1>", "<axis=-2>"])
def test_a_constant_condition_compresses(axis: str) -> None:
    text = f"{HEADS[17]} g (float[2,3] x) => (float y) <bool[2] c = {{0, 1}}> {{ y = Compress{axis}(x, c) }}"
    compare(text, {"x": X})


def test_an_input_without_elements_is_left_out() -> None:
    text = "g (float[2,3] x, float[2,0] e) => (float[2,3] y, float[2,0] z) { y = Concat<axis=1>(x, e) z = Neg(e) }"
    graph = import_model(onnx.parser.parse_model(HEAD + text))
    assert (graph.inputs, graph.outputs) == (("x",), ("y",))
    assert np.array_equal(run_graph(graph, {"x": X})["y"], X)
