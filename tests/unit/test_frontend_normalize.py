"""Normal forms at import: ONNX in, graph text out."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.frontend.normalize_shape import slice_bounds
from glowc.graph.graph import Graph
from glowc.graph.text import dump
from tests.unit.onnx_builders import f32, model, node


def imported(*args: object, **kwargs: object) -> Graph:
    return import_model(model(*args, **kwargs), keep_unknown=True)  # type: ignore[arg-type]


def body(graph: Graph) -> list[str]:
    """The lines of computed values, without origins."""
    lines = [line.strip().split(" from ")[0] for line in dump(graph).splitlines()]
    return [line for line in lines if line.startswith("%")]


def one(
    op: str, x: str, consts: dict[str, object] | None = None, opset: int = 21, ins: str = "", **attrs: object
) -> str:
    """Import a model of one node and return the right side of its only line."""
    graph = imported([node(op, f"x {ins}", "y", **attrs)], {"x": x}, "y", consts, opset=opset)
    lines = body(graph)
    assert len(lines) == 1, lines
    return lines[0].removeprefix("%y : ")


@pytest.mark.parametrize(
    ("op", "ins", "consts", "attrs", "opset", "shape"),
    [
        ("Reshape", "s", {"s": [0, -1]}, {}, 13, "2,12"),
        ("Reshape", "s", {"s": [-1]}, {"allowzero": 1}, 21, "24"),
        ("Flatten", "", {}, {}, 13, "2,12"),
        ("Flatten", "", {}, {"axis": -1}, 13, "6,4"),
        ("Flatten", "", {}, {"axis": 0}, 13, "1,24"),
        ("Unsqueeze", "s", {"s": [0, -1]}, {}, 13, "1,2,3,4,1"),
        ("Unsqueeze", "", {}, {"axes": [1]}, 11, "2,1,3,4"),
    ],
)
def test_view_operators_become_reshape(op, ins, consts, attrs, opset, shape) -> None:  # type: ignore[no-untyped-def]
    listed = shape.replace(",", ", ")
    assert one(op, "f32[2,3,4]", consts, opset, ins, **attrs) == f"f32[{shape}] = Reshape(%x) {{shape=[{listed}]}}"


def test_squeeze_with_and_without_axes() -> None:
    assert one("Squeeze", "f32[1,3,1]") == "f32[3] = Reshape(%x) {shape=[3]}"
    assert one("Squeeze", "f32[1,3,1]", {"a": [-1]}, ins="a") == "f32[1,3] = Reshape(%x) {shape=[1, 3]}"
    with pytest.raises(ModelError, match=r"cannot squeeze axes \[1\]"):
        one("Squeeze", "f32[1,3,1]", {"a": [1]}, ins="a")


def test_slice_bounds_are_clamped_and_whole_axes_left_out() -> None:
    consts = {"s": [-3, 0], "e": [2**63 - 1, 99], "a": [2, 0], "t": [1, 1]}
    assert one("Slice", "f32[2,3,8]", consts, ins="s e a t") == (
        "f32[2,3,3] = Slice(%x) {axes=[2], ends=[8], starts=[5], steps=[1]}"
    )


def test_slice_with_negative_step_ends_before_zero() -> None:
    consts = {"s": [-1], "e": [-(2**63)], "a": [1], "t": [-1]}
    assert one("Slice", "f32[2,3]", consts, ins="s e a t") == (
        "f32[2,3] = Slice(%x) {axes=[1], ends=[-4], starts=[2], steps=[-1]}"
    )


def test_slice_before_opset_10_has_attributes() -> None:
    assert one("Slice", "f32[2,8]", opset=9, starts=[1], ends=[3], axes=[1]) == (
        "f32[2,2] = Slice(%x) {axes=[1], ends=[3], starts=[1], steps=[1]}"
    )


def test_slice_of_everything_is_identity() -> None:
    assert one("Slice", "f32[2,8]", {"s": [0], "e": [8], "a": [1]}, ins="s e a") == "f32[2,8] = Identity(%x)"


def test_pad_of_some_axes_counts_all_axes() -> None:
    consts = {"p": [1, 2], "v": f32(0.5), "a": [2]}
    assert one("Pad", "f32[2,3,4]", consts, ins="p v a") == (
        'f32[2,3,7] = Pad(%x) {mode="constant", pads=[0, 0, 1, 0, 0, 2], value=0.5}'
    )
    assert "value=0.0" in one("Pad", "f32[4]", opset=9, pads=[1, 1])


def test_pad_of_quantised_codes_has_its_value_in_real_units() -> None:
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("Pad", "q p v", "p1"),
        node("DequantizeLinear", "p1 s z", "y"),
    ]
    consts = {"s": f32(0.5), "z": np.int8(3), "p": [0, 1, 0, 1], "v": np.int8(7)}
    lines = body(imported(nodes, {"x": "f32[1,4]"}, "y", consts))
    assert lines[1] == '%p1 : s8[1,6] q(0.5, 3) = Pad(%q) {mode="constant", pads=[0, 1, 0, 1], value=2.0}'
    assert lines[2] == "%y : f32[1,6] = DequantizeLinear(%p1)"


@pytest.mark.parametrize(
    ("ins", "consts", "opset", "attrs", "bounds"),
    [
        ("lo hi", {"lo": f32(0), "hi": f32(6)}, 13, {}, "max=6.0, min=0.0"),
        ("_ hi", {"hi": f32(6)}, 13, {}, "max=6.0, min=-inf"),
        ("", {}, 13, {}, "max=inf, min=-inf"),
        ("", {}, 6, {"min": 0.0, "max": 6.0}, "max=6.0, min=0.0"),
    ],
)
def test_clip_bounds_become_attributes(ins, consts, opset, attrs, bounds) -> None:  # type: ignore[no-untyped-def]
    opset = max(opset, 7)
    assert one("Clip", "f32[4]", consts, opset, ins, **attrs) == f"f32[4] = Clip(%x) {{{bounds}}}"


def test_clip_bound_behind_dequantize_is_constant() -> None:
    nodes = [node("DequantizeLinear", "hi s", "h"), node("Clip", "x _ h", "y")]
    graph = imported(nodes, {"x": "f32[4]"}, "y", {"hi": np.int8(12), "s": f32(0.5)})
    assert body(graph) == ["%y : f32[4] = Clip(%x) {max=6.0, min=-inf}"]


def test_reduce_axes_from_input_and_attribute() -> None:
    expected = "f32[2,1,1] = ReduceMean(%x) {axes=[1, 2], keepdims=1}"
    assert one("ReduceMean", "f32[2,3,4]", {"a": [-1, 1]}, 18, "a") == expected
    assert one("ReduceMean", "f32[2,3,4]", opset=13, axes=[2, 1]) == expected
    assert one("ReduceMean", "f32[2,3]", opset=13, keepdims=0) == "f32[] = ReduceMean(%x) {axes=[0, 1], keepdims=0}"
    assert one("ReduceSum", "f32[2]", opset=13, noop_with_empty_axes=1) == "f32[2] = Identity(%x)"


def test_global_pools_become_reductions() -> None:
    """Quirk 13: global pooling comes in many forms; these two become reductions."""
    assert one("GlobalAveragePool", "f32[1,2,5,5]") == "f32[1,2,1,1] = ReduceMean(%x) {axes=[2, 3], keepdims=1}"
    assert one("GlobalMaxPool", "f32[1,2,5]").endswith("= ReduceMax(%x) {axes=[2], keepdims=1}")


def test_split_sizes_are_explicit() -> None:
    nodes = [node("Split", "x", "a b", axis=-1, num_outputs=2)]
    (line,) = body(imported(nodes, {"x": "f32[1,5]"}, "a b"))
    assert line == "%a : f32[1,3], %b : f32[1,2] = Split(%x) {axis=1, split=[3, 2]}"


def test_resize_sizes_and_scales() -> None:
    text = one("Resize", "f32[1,2,4,4]", {"k": f32(1, 1, 2, 2)}, 13, "_ k", mode="nearest")
    assert "sizes=[1, 2, 8, 8]" in text
    assert "scales=[1.0, 1.0, 2.0, 2.0]" in text
    assert 'coordinate_transformation_mode="half_pixel"' in text
    assert 'nearest_mode="round_prefer_floor"' in text
    text = one("Resize", "f32[1,2,4,4]", {"n": [6, 6]}, 18, "_ _ n", axes=[2, 3], mode="linear")
    assert "sizes=[1, 2, 6, 6]" in text
    assert "scales=[1.0, 1.0, 1.5, 1.5]" in text


def test_old_upsample_is_asymmetric_and_rounds_down() -> None:
    text = one("Upsample", "f32[1,2,4,4]", {"k": f32(1, 1, 2, 2)}, 9, "k")
    assert " = Resize(%x)" in text
    assert 'coordinate_transformation_mode="asymmetric"' in text
    assert 'nearest_mode="floor"' in text


def test_topk_expand_tile_take_attributes() -> None:
    graph = imported([node("TopK", "x k", "v i")], {"x": "f32[1,5]"}, {"v": "f32", "i": "s64"}, {"k": [2]})
    assert body(graph)[0].endswith("TopK(%x) {axis=1, k=2, largest=1, sorted=1}")
    assert one("Expand", "f32[3,1]", {"s": [2, 1, 4]}, ins="s") == "f32[2,3,4] = Expand(%x) {shape=[2, 3, 4]}"
    assert one("Expand", "f32[3,4]", {"s": [4]}, ins="s") == "f32[3,4] = Identity(%x)"
    assert one("Tile", "f32[3]", {"r": [2]}, ins="r") == "f32[6] = Tile(%x) {repeats=[2]}"


def test_conv_geometry_is_explicit() -> None:
    w = np.zeros((4, 3, 3, 3), np.float32)
    assert one("Conv", "f32[1,3,8,8]", {"w": w}, ins="w") == (
        "f32[1,4,6,6] = Conv(%x, %w) "
        "{dilations=[1, 1], group=1, kernel_shape=[3, 3], pads=[0, 0, 0, 0], strides=[1, 1]}"
    )


@pytest.mark.parametrize(
    ("auto", "pads"),
    [
        ("SAME_UPPER", "0, 0, 1, 1"),
        ("SAME_LOWER", "1, 1, 0, 0"),
        ("VALID", "0, 0, 0, 0"),
        ("NOTSET", "0, 0, 0, 0"),
    ],
)
def test_auto_pad_becomes_pads(auto: str, pads: str) -> None:
    """Quirk 15: SAME_UPPER puts the odd pixel at the end."""
    w = np.zeros((4, 3, 3, 3), np.float32)
    text = one("Conv", "f32[1,3,8,8]", {"w": w}, ins="w", strides=[2, 2], auto_pad=auto)
    assert f"pads=[{pads}]" in text
    assert "auto_pad" not in text


def test_asymmetric_pads_stay() -> None:
    """Quirk 15: pads [4, 1, 5, 1] of a 10x4 kernel (quirk 17)."""
    w = np.zeros((8, 1, 10, 4), np.float32)
    text = one("Conv", "f32[1,1,49,10]", {"w": w}, ins="w", pads=[4, 1, 5, 1], strides=[2, 2])
    assert text.startswith("f32[1,8,25,5]")
    assert "pads=[4, 1, 5, 1]" in text


def test_conv_1d_becomes_2d_with_height_1() -> None:
    w = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    graph = imported([node("Conv", "x w", "y", name="c", pads=[1, 2], strides=[2])], {"x": "f32[1,2,9]"}, "y", {"w": w})
    assert body(graph) == [
        "%y.reshape : f32[1,2,1,9] = Reshape(%x) {shape=[1, 2, 1, 9]}",
        "%y.conv : f32[1,4,1,5] = Conv(%y.reshape, %w.2d) {dilations=[1, 1], group=1, kernel_shape=[1, 3], "
        "pads=[0, 1, 0, 2], strides=[1, 2]}",
        "%y : f32[1,4,5] = Reshape(%y.conv) {shape=[1, 4, 5]}",
    ]
    assert np.array_equal(graph.consts["w.2d"][:, :, 0], w)


def test_conv_1d_reshapes_quantised_weights_before_dequantize() -> None:
    w = np.ones((4, 2, 3), np.int8)
    nodes = [node("DequantizeLinear", "w s", "wr", axis=0), node("Conv", "x wr", "y")]
    graph = imported(nodes, {"x": "f32[1,2,9]"}, "y", {"w": w, "s": f32(1, 2, 3, 4)})
    assert str(graph.types["w.2d"]) == "s8[4,2,1,3]"
    assert graph.types["w.2d"].quant is not None
    assert "%wr.2d : f32[4,2,1,3] = DequantizeLinear(%w.2d)" in body(graph)


def test_pool_1d_becomes_2d() -> None:
    lines = body(imported([node("MaxPool", "x", "y", kernel_shape=[2], strides=[2])], {"x": "f32[1,2,8]"}, "y"))
    assert "kernel_shape=[1, 2], pads=[0, 0, 0, 0], strides=[1, 2]" in lines[1]
    assert lines[2] == "%y : f32[1,2,4] = Reshape(%y.maxpool) {shape=[1, 2, 4]}"


def test_average_pool_flags_are_explicit() -> None:
    """Quirk 15: count_include_pad."""
    text = one("AveragePool", "f32[1,2,8,8]", kernel_shape=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1)
    assert "ceil_mode=0, count_include_pad=1" in text
    assert "strides=[1, 1]" in text


def test_conv_transpose_output_shape_gives_pads() -> None:
    w = np.zeros((3, 4, 3, 3), np.float32)
    text = one("ConvTranspose", "f32[1,3,5,5]", {"w": w}, ins="w", strides=[2, 2], output_shape=[10, 10])
    assert "output_padding=[0, 0], pads=[1, 1, 0, 0]" in text
    text = one("ConvTranspose", "f32[1,3,5,5]", {"w": w}, ins="w", strides=[2, 2], auto_pad="SAME_UPPER")
    assert "pads=[0, 0, 1, 1]" in text


def test_softmax_before_opset_13_flattens() -> None:
    lines = body(imported([node("Softmax", "x", "y")], {"x": "f32[2,3,4]"}, "y", opset=11))
    assert lines == [
        "%y.reshape : f32[2,12] = Reshape(%x) {shape=[2, 12]}",
        "%y.softmax : f32[2,12] = Softmax(%y.reshape) {axis=1}",
        "%y : f32[2,3,4] = Reshape(%y.softmax) {shape=[2, 3, 4]}",
    ]
    assert one("Softmax", "f32[2,3]", opset=11) == "f32[2,3] = Softmax(%x) {axis=1}"
    assert one("Softmax", "f32[2,3,4]", opset=13) == "f32[2,3,4] = Softmax(%x) {axis=2}"


def test_nary_operators_become_chains() -> None:
    inputs = {"a": "f32[2]", "b": "f32[2]", "c": "f32[2]"}
    assert body(imported([node("Sum", "a b c", "y")], inputs, "y")) == [
        "%y.add : f32[2] = Add(%a, %b)",
        "%y : f32[2] = Add(%y.add, %c)",
    ]
    assert body(imported([node("Mean", "a b", "y")], inputs, "y"))[-1] == "%y : f32[2] = Mul(%y.add, %y.share)"
    assert body(imported([node("Max", "a b c", "y")], inputs, "y"))[-1] == "%y : f32[2] = Max(%y.max, %c)"
    assert body(imported([node("Min", "a", "y")], inputs, "y")) == ["%y : f32[2] = Identity(%a)"]


def test_gemm_and_batch_normalization_attributes_are_explicit() -> None:
    w = np.zeros((4, 3), np.float32)
    assert one("Gemm", "f32[1,3]", {"w": w}, ins="w", transB=1) == (
        "f32[1,4] = Gemm(%x, %w) {alpha=1.0, beta=1.0, transA=0, transB=1}"
    )
    channel = {name: np.ones(3, np.float32) for name in "sbmv"}
    text = one("BatchNormalization", "f32[1,3,2,2]", channel, ins="s b m v", momentum=0.5)
    assert text.endswith("{epsilon=1e-05}")


def test_dropout_keeps_only_identity() -> None:
    assert one("Dropout", "f32[2]", opset=13) == "f32[2] = Identity(%x)"


def test_default_perm_and_axes_are_explicit() -> None:
    assert one("Transpose", "f32[2,3]") == "f32[3,2] = Transpose(%x) {perm=[1, 0]}"
    inputs = {"a": "f32[2,1]", "b": "f32[2,3]"}
    (line,) = body(imported([node("Concat", "a b", "y", axis=-1)], inputs, "y"))
    assert line == "%y : f32[2,4] = Concat(%a, %b) {axis=1}"


def test_clamped_slice_bounds_select_what_numpy_selects() -> None:
    x = np.arange(5)
    for start in range(-7, 8):
        for end in range(-7, 8):
            for step in (-3, -1, 1, 2):
                kept = range(*slice_bounds(start, end, step, 5))
                assert x[list(kept)].tolist() == x[start:end:step].tolist(), (start, end, step)


def test_constant_nodes_of_every_form_become_constants() -> None:
    tensor = onnx.numpy_helper.from_array(f32(1, 2))
    nodes = [
        node("Constant", "", "a", value=tensor),
        node("Constant", "", "b", value_float=2.0),
        node("Constant", "", "c", value_floats=[3.0, 4.0]),
        node("Constant", "", "s", value_ints=[2]),
        node("Constant", "", "d", value_int=1),
        node("Add", "x a", "x1"), node("Add", "x1 b", "x2"), node("Add", "x2 c", "x3"),
        node("Reshape", "x3 s", "x4"), node("Gather", "x4 d", "y"),
    ]  # fmt: skip
    graph = imported(nodes, {"x": "f32[2]"}, "y")
    assert {n: a.tolist() for n, a in graph.consts.items()} == {"a": [1, 2], "b": 2, "c": [3, 4], "d": 1}
