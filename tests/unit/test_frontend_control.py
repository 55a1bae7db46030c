"""Loops and branches, computed bounds and values without elements: what onnxruntime gives for the same model."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.ops.interp import run_graph

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
X = np.random.default_rng(9).normal(size=(2, 3)).astype(np.float32)


def check(text: str, *, by_onnx: bool = False, **more: np.ndarray) -> None:
    """Compare the imported graph with onnxruntime, or with ONNX's evaluator of what onnxruntime refuses."""
    model = onnx.parser.parse_model(HEAD + text)
    graph = import_model(model)
    feed = {name: {"x": X, **more}[name] for name in graph.inputs}
    got = run_graph(graph, feed)
    want = ReferenceEvaluator(model).run(None, feed) if by_onnx else by_onnxruntime(model, feed)
    for name, array in zip(graph.outputs, want, strict=True):
        np.testing.assert_allclose(got[name], array, rtol=1e-6, atol=1e-6)
        assert got[name].shape == array.shape


def by_onnxruntime(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(array) for array in session.run(None, feed)]


def error(text: str) -> str:
    with pytest.raises(ModelError) as caught:
        import_model(onnx.parser.parse_model(HEAD + text))
    return str(caught.value)


LESS = "going = Less(i, last)"
SAME = "going = Identity(c)"


def loop(trips: str, condition: str, step: str, head: str = "") -> str:
    return f"""g (float[2,3] x) => (float[2,3] y) <int64 three = {{3}}, int64[1] vector = {{3}}, int64 none = {{0}},
      int64 all = {{9223372036854775807}}, int64 last = {{2}}, bool yes = {{1}}, bool no = {{0}}> {{ {head}
      y, parts = Loop ({trips}, {condition}, x) <body = b (int64 i, bool c, float[2,3] s) =>
        (bool going, float[2,3] t, float[2,3] o) {{ {step}  f = Cast<to = 1>(i)  t = Add(s, f)  o = Mul(s, f) }}>
    }}"""


@pytest.mark.parametrize(
    ("trips", "condition", "step"),
    [
        ("three", "yes", SAME), ("three", "", LESS), ("three", "", SAME), ("vector", "", LESS), ("", "yes", LESS),
        ("all", "yes", LESS), ("none", "yes", SAME), ("none", "", LESS), ("three", "no", SAME), ("", "no", LESS),
    ],
)  # fmt: skip
def test_loop_without_trip_count_or_condition_or_rounds(trips: str, condition: str, step: str) -> None:
    check(loop(trips, condition, step))


def test_what_a_loop_of_no_round_collects_is_empty_and_joins_others() -> None:
    body = """<body = b (int64 i, bool c, float[2,3] s) => (bool going, float[2,3] t, float[3] o)
      { going = Identity(c)  t = Identity(s)  o = ReduceSum<keepdims = 0>(s, axis) }>"""
    check(f"""g (float[2,3] x) => (float[2,3] y) <int64 none = {{0}}, int64[1] axis = {{0}}> {{
      s, parts = Loop (none, , x) {body}  y = Concat<axis = 0>(parts, x) }}""")


def test_scan_of_no_step_returns_its_state() -> None:
    check("""g (float[2,3] x) => (float[2,3] y) <float[0,3] none = {}> {
      y = Scan<num_scan_inputs = 1, body = b (float[2,3] s, float[3] r) => (float[2,3] t) { t = Add(s, r) }>(x, none)
    }""", by_onnx=True)  # fmt: skip


@pytest.mark.parametrize(
    ("trips", "condition", "what"),
    [("", "", "never ends"), ("", "yes", "cannot be unrolled"), ("all", "", "cannot be unrolled")],
)
def test_loop_without_end_is_an_error_that_says_so(trips: str, condition: str, what: str) -> None:
    text = error(loop(trips, condition, SAME))
    assert 'Loop "' in text
    assert what in text


BRANCHES = """<then_branch = t () => (float[2,3] a) { a = Mul(x, w) },
  else_branch = e () => (float[2,3] a) { k = Sub(x, w)  a = Abs(k) }>"""


@pytest.mark.parametrize("size", ["", "[1]", "[1,1]"])
@pytest.mark.parametrize("c", [True, False])
def test_if_on_an_input_computes_both_branches(size: str, c: bool) -> None:
    text = f"g (bool{size} c, float[2,3] x) => (float[2,3] y) <float w = {{2}}> {{ y = If(c) {BRANCHES} }}"
    check(text, c=np.full([1] * size.count("1"), c))


@pytest.mark.parametrize("shift", [-9, 9])
def test_if_on_a_computed_value_in_a_branch_that_returns_outer_values(shift: int) -> None:
    check("""g (float[2,3] x) => (float[2,3] y, float[2,3] z) <float w = {2}> {
      m = ReduceMax<keepdims = 0>(x)  c = Greater(m, w)
      y, z = If(c) <then_branch = t () => (float[2,3] a, float[2,3] x) { a = Neg(x) },
        else_branch = e () => (float[2,3] a, float[2,3] b) { a = Exp(x)
          b = If(c) <then_branch = t2 () => (float[2,3] q) { q = Add(a, w) },
                     else_branch = e2 () => (float[2,3] q) { q = Sub(a, x) }> }>
    }""", by_onnx=True, x=X + np.float32(shift))  # fmt: skip


def test_branch_that_returns_one_value_twice() -> None:
    check("""g (bool c, float[2,3] x) => (float[2,3] y, float[2,3] z) {
      y, z = If(c) <then_branch = t () => (float[2,3] a, float[2,3] a) { a = Neg(x) },
        else_branch = e () => (float[2,3] x, float[2,3] x) { unread = Exp(x) }>
    }""", by_onnx=True, c=np.asarray(True))  # fmt: skip


def test_branches_of_other_shapes_under_a_computed_condition_are_named() -> None:
    text = error("""g (bool c, float[2,3] x) => (float y) {
      y = If(c) <then_branch = t () => (float[2,3] a) { a = Neg(x) },
      else_branch = e () => (float a) { a = ReduceSum<keepdims = 0>(x) }> }""")
    assert 'the branches give "y" the types f32[2,3] and f32[]' in text


CLIPS = [
    "lo = ReduceMin<keepdims = 0>(x)  y = Clip(x, lo, one)", "lo = ReduceMin<keepdims = 0>(x)  y = Clip(x, lo)",
    "hi = ReduceMean<keepdims = 0>(x)  y = Clip(x, , hi)",
    "hi = ReduceMean<keepdims = 0>(x)  lo = Neg(hi)  y = Clip(x, lo, hi)",
]  # fmt: skip


@pytest.mark.parametrize("nodes", CLIPS)
def test_clip_with_computed_bounds(nodes: str) -> None:
    check(f"g (float[2,3] x) => (float[2,3] y) <float one = {{1}}> {{ {nodes} }}", x=X + np.float32(0.5))


def test_clip_without_bounds_before_opset_11_ends_at_the_largest_float() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 5, opset_import: ["" : 9]> g (float[2] x) => (float[2] y) { y = Clip(x) }'
    )
    got = run_graph(import_model(model), {"x": np.array([np.inf, -np.inf], np.float32)})["y"]
    assert got.tolist() == [float(np.finfo(np.float32).max), float(np.finfo(np.float32).min)]


EMPTY = [
    "e = Slice(x, two, two, one)  y = Concat<axis = 1>(e, x)",
    "e = Slice(x, two, one, zero, one)  y = Concat<axis = 0>(x, e)",
    "e = Slice(x, zero, two, one, minus)  y = Concat<axis = 1>(e, x)",
    "e = Slice(x, three, two, one)  t = Relu(e)  u = Add(t, e)  y = Concat<axis = 1>(u, x)",
    "e, y = Split<axis = 1>(x, all)", "y, e = Split<axis = 1>(x, all_first)",
    "a, e, c = Split<axis = 1>(x, gap)  y = Concat<axis = 1>(c, e, a)",
    "e = Slice(x, two, two, one)  r = ReduceSum(e, one)  y = Add(x, r)",
    "e = Slice(x, two, two, one)  t = Transpose<perm = [1, 0]>(e)  m = MatMul(e, t)  s = ReduceSum(m)  y = Add(x, s)",
    "e = Gather<axis = 1>(x, nothing)  y = Concat<axis = 1>(e, x)",
    "e = Slice(x, two, two, one)  p = Shape(e)  q = ReduceProd<keepdims = 0>(p)  f = Cast<to = 1>(q)  y = Add(x, f)",
    "y = ScatterND(x, nowhere, updates)",
    "v, i = TopK(x, zero)  y = Concat<axis = 1>(v, x)",
    "e = Slice(x, two, two, one)  t = Expand(e, shape)  u = Flatten(t)  y = Concat<axis = 1>(u, x)",
]  # fmt: skip


@pytest.mark.parametrize("nodes", EMPTY)
def test_values_without_elements_inside_a_graph(nodes: str) -> None:
    check(f"""g (float[2,3] x) => (float[2,3] y) <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}},
      int64[1] three = {{3}}, int64[1] minus = {{-1}}, int64[2] all = {{0, 3}}, int64[2] all_first = {{3, 0}},
      int64[3] gap = {{1, 0, 2}}, int64[0] nothing = {{}}, int64[0, 1] nowhere = {{}}, float[0, 3] updates = {{}},
      int64[2] shape = {{2, 0}}> {{ {nodes} }}""")
