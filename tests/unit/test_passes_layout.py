"""Passes that move axes: layout-nhwc, sink-transpose, transpose-weights, hoist-transpose, planar-input."""

from __future__ import annotations

import pytest
from passes_text import after, check, check_same, ops

from glowc.passes.axes import compose, inverse, moves_only_units
from glowc.passes.layout.sink_transpose import SinkTranspose
from glowc.passes.layout.transposes import HoistTranspose, LayoutNhwc, PlanarInput, TransposeToReshape, TransposeWeights
from glowc.passes.layout.whole_window import WholeWindow


def test_permutations() -> None:
    assert inverse((0, 2, 3, 1)) == (0, 3, 1, 2)
    assert compose((0, 2, 3, 1), (0, 3, 1, 2)) == (0, 1, 2, 3)
    assert compose((1, 2, 0), (1, 2, 0)) == (2, 0, 1)
    assert moves_only_units((1, 5, 1, 7), (2, 1, 0, 3))
    assert not moves_only_units((1, 5, 1, 7), (0, 3, 2, 1))


def test_layout_nhwc_conv_with_per_axis_weights() -> None:
    check(
        LayoutNhwc(),
        """
        input %x : s8[1,2,3,3] q(0.5, 0)
        const %w : s8[1,2,1,1] q([0.5], [0], axis=0) = [[[[1]], [[2]]]]
        const %b : s32[1] = [0]
        %y : s8[1,1,3,3] q(0.5, 0) = Conv(%x, %w, %b) {kernel_shape=[1, 1]}
        output %y
        """,
        """
        input %x : s8[1,2,3,3] q(0.5, 0)
        const %b : s32[1] = [0]
        const %w.t : s8[1,1,1,2] q([0.5], [0], axis=0) = [[[[1, 2]]]]
        %x.t : s8[1,3,3,2]@nhwc q(0.5, 0) = Transpose(%x) {perm=[0, 2, 3, 1]}
        %y.nhwc : s8[1,3,3,1]@nhwc q(0.5, 0) = Conv(%x.t, %w.t, %b) {kernel_shape=[1, 1], layout="nhwc"}
        %y : s8[1,1,3,3] q(0.5, 0) = Transpose(%y.nhwc) {perm=[0, 3, 1, 2]}
        output %y
        """,
    )


def test_layout_nhwc_leaves_converted_and_other_operators() -> None:
    check_same(
        LayoutNhwc(),
        """
        input %x : f32[1,2,3,3]
        %a : f32[1,2,3,3]@nhwc = MaxPool(%x) {kernel_shape=[1, 1], layout="nhwc"}
        %y : f32[1,2,3,3] = Relu(%a)
        output %y
        """,
    )


def sunk(shape: str, out: str, node: str, inner: str, after: str, back: str = "[0, 3, 1, 2]") -> tuple[str, str]:
    """Return texts: a Transpose to `shape` in front of `node`, and `after` on the input with one after."""
    before = f"input %x : f32[1,4,5,3]\n%t : f32[{shape}] = Transpose(%x) {{perm=[0, 3, 1, 2]}}\n"
    before += f"%y : f32[{out}] = {node}\noutput %y"
    tag = "@nhwc" if back == "[0, 3, 1, 2]" else ""
    result = f"input %x : f32[1,4,5,3]\n%y.t : f32[{inner}]{tag} = {after}\n"
    result += f"%y : f32[{out}] = Transpose(%y.t) {{perm={back}}}\noutput %y"
    return before, result


@pytest.mark.parametrize(
    ("out", "node", "inner", "after"),
    [
        ("1,3,4,5", "Sigmoid(%t)", "1,4,5,3", "Sigmoid(%x)"),
        ("1,3,4,5", "Add(%t, %t)", "1,4,5,3", "Add(%x, %x)"),
        ("1,6,4,5", "Concat(%t, %t) {axis=1}", "1,4,5,6", "Concat(%x, %x) {axis=3}"),
        ("1,3,4,5", "Softmax(%t) {axis=1}", "1,4,5,3", "Softmax(%x) {axis=3}"),
        (
            "1,3,5,7",
            "Pad(%t) {pads=[0, 0, 0, 1, 0, 0, 1, 1]}",
            "1,5,7,3",
            "Pad(%x) {pads=[0, 0, 1, 0, 0, 1, 1, 0]}",
        ),
        (
            "1,2,4,5",
            "Slice(%t) {axes=[1], ends=[2], starts=[0], steps=[1]}",
            "1,4,5,2",
            "Slice(%x) {axes=[3], ends=[2], starts=[0], steps=[1]}",
        ),
        (
            "1,3,1,1",
            "ReduceMean(%t) {axes=[2, 3], keepdims=1}",
            "1,1,1,3",
            "ReduceMean(%x) {axes=[1, 2], keepdims=1}",
        ),
    ],
)
def test_sink_transpose_through(out: str, node: str, inner: str, after: str) -> None:
    check(SinkTranspose(), *sunk("1,3,4,5", out, node, inner, after))


def test_sink_transpose_reduction_without_kept_axes_ends_it() -> None:
    check(
        SinkTranspose(),
        """
        input %x : f32[1,4,5,3]
        %t : f32[1,3,4,5] = Transpose(%x) {perm=[0, 3, 1, 2]}
        %y : f32[1,3] = ReduceMean(%t) {axes=[2, 3], keepdims=0}
        output %y
        """,
        "input %x : f32[1,4,5,3]\n%y : f32[1,3] = ReduceMean(%x) {axes=[1, 2], keepdims=0}\noutput %y",
    )


def test_sink_transpose_moves_a_constant_operand() -> None:
    check(
        SinkTranspose(),
        """
        input %x : f32[1,2,2,3]
        const %c : f32[3,1,1] = [[[1.0]], [[2.0]], [[3.0]]]
        %t : f32[1,3,2,2] = Transpose(%x) {perm=[0, 3, 1, 2]}
        %y : f32[1,3,2,2] = Mul(%t, %c)
        output %y
        """,
        """
        input %x : f32[1,2,2,3]
        const %c.wide.t : f32[1,1,1,3]@nhwc = [[[[1.0, 2.0, 3.0]]]]
        %y.t : f32[1,2,2,3]@nhwc = Mul(%x, %c.wide.t)
        %y : f32[1,3,2,2] = Transpose(%y.t) {perm=[0, 3, 1, 2]}
        output %y
        """,
    )


def test_sink_transpose_cancels_a_pair() -> None:
    check(
        SinkTranspose(),
        """
        input %x : f32[1,2,3,4]
        %a : f32[1,4,2,3] = Transpose(%x) {perm=[0, 3, 1, 2]}
        %r : f32[1,4,2,3] = Relu(%a)
        %b : f32[1,2,3,4] = Transpose(%r) {perm=[0, 2, 3, 1]}
        %y : f32[1,2,3,4] = Neg(%b)
        output %y
        """,
        "input %x : f32[1,2,3,4]\n%r.t : f32[1,2,3,4]@nhwc = Relu(%x)\n%y : f32[1,2,3,4] = Neg(%r.t)\noutput %y",
    )


def test_sink_transpose_passes_a_reshape_of_unit_axes() -> None:
    check(
        SinkTranspose(),
        """
        input %x : f32[1,49,10]
        %a : f32[1,10,49] = Transpose(%x) {perm=[0, 2, 1]}
        %r : f32[1,10,1,49] = Reshape(%a) {shape=[1, 10, 1, 49]}
        %b : f32[1,1,49,10] = Transpose(%r) {perm=[0, 2, 3, 1]}
        %y : f32[1,1,49,10] = Neg(%b)
        output %y
        """,
        """
        input %x : f32[1,49,10]
        %r.t : f32[1,1,49,10]@nhwc = Reshape(%x) {shape=[1, 1, 49, 10]}
        %y : f32[1,1,49,10] = Neg(%r.t)
        output %y
        """,
    )


@pytest.mark.parametrize(
    "node",
    [
        "f32[1,3,4,5] = Add(%t, %z)",  # the other operand would need a Transpose that nothing undoes
        "f32[12,5] = Reshape(%t) {shape=[12, 5]}",  # merges channels and rows, which lie apart
        "f32[1,60] = Reshape(%t) {shape=[1, 60]}",
        "f32[1,3,4,5] = Softmax(%t) {axis=3}",  # would run over distant elements
        "f32[1,3,4,5] = Unknown(%t)",
    ],
)
def test_sink_transpose_stops(node: str) -> None:
    check_same(
        SinkTranspose(),
        "input %x : f32[1,4,5,3]\ninput %z : f32[1,3,4,5]\n"
        f"%t : f32[1,3,4,5] = Transpose(%x) {{perm=[0, 3, 1, 2]}}\n%y : {node}\noutput %y",
    )


def test_sink_transpose_passes_a_reshape_that_merges_neighbours() -> None:
    """Patches of an image become tokens: the Transpose after the Reshape meets the one in front of it."""
    check(
        SinkTranspose(),
        """
        input %x : f32[1,4,5,3]
        %t : f32[1,3,4,5] = Transpose(%x) {perm=[0, 3, 1, 2]}
        %r : f32[1,3,20] = Reshape(%t) {shape=[1, 3, 20]}
        %u : f32[1,20,3] = Transpose(%r) {perm=[0, 2, 1]}
        %y : f32[1,20,3] = Relu(%u)
        output %y
        """,
        """
        input %x : f32[1,4,5,3]
        %r.t : f32[1,20,3] = Reshape(%x) {shape=[1, 20, 3]}
        %y : f32[1,20,3] = Relu(%r.t)
        output %y
        """,
    )


def test_sink_transpose_leaves_a_channel_shuffle_on_interleaved_channels() -> None:
    check(
        SinkTranspose(),
        """
        input %x : f32[1,4,5,6]
        %t : f32[1,6,4,5] = Transpose(%x) {perm=[0, 3, 1, 2]}
        %r : f32[1,2,3,4,5] = Reshape(%t) {shape=[1, 2, 3, 4, 5]}
        %u : f32[1,3,2,4,5] = Transpose(%r) {perm=[0, 2, 1, 3, 4]}
        %v : f32[1,6,4,5] = Reshape(%u) {shape=[1, 6, 4, 5]}
        %w : f32[1,4,5,6] = Transpose(%v) {perm=[0, 2, 3, 1]}
        %y : f32[1,4,5,6] = Relu(%w)
        output %y
        """,
        """
        input %x : f32[1,4,5,6]
        %r.t : f32[1,4,5,2,3] = Reshape(%x) {shape=[1, 4, 5, 2, 3]}
        %r.t.t : f32[1,4,5,3,2] = Transpose(%r.t) {perm=[0, 1, 2, 4, 3]}
        %v.t : f32[1,4,5,6]@nhwc = Reshape(%r.t.t) {shape=[1, 4, 5, 6]}
        %y : f32[1,4,5,6] = Relu(%v.t)
        output %y
        """,
    )


def test_sink_transpose_passes_gather_and_dynamic_quantisation() -> None:
    check(
        SinkTranspose(),
        """
        input %x : f32[1,7,3]
        input %i : s64[]
        %t : f32[1,3,7] = Transpose(%x) {perm=[0, 2, 1]}
        %g : f32[1,3] = Gather(%t, %i) {axis=-1}
        %q : u8[1,3,7], %s : f32[], %z : u8[] = DynamicQuantizeLinear(%t)
        %u : u8[1,7,3] = Transpose(%q) {perm=[0, 2, 1]}
        output %g
        output %u
        output %s
        output %z
        """,
        """
        input %x : f32[1,7,3]
        input %i : s64[]
        %g : f32[1,3] = Gather(%x, %i) {axis=1}
        %u : u8[1,7,3], %s : f32[], %z : u8[] = DynamicQuantizeLinear(%x)
        output %g
        output %u
        output %s
        output %z
        """,
    )


def test_sink_transpose_settles_between_operands_that_move_only_units() -> None:
    """With a batch of one, a Transpose of batch and time moves nothing; it must not wander through an Add for ever."""
    check(
        SinkTranspose(),
        """
        input %x : f32[1,7,3]
        input %z : f32[7,1,3]
        %t : f32[7,1,3] = Transpose(%x) {perm=[1, 0, 2]}
        %y : f32[7,1,3] = Add(%t, %z)
        output %y
        """,
        """
        input %x : f32[1,7,3]
        input %z : f32[7,1,3]
        %z.t : f32[1,7,3] = Reshape(%z) {shape=[1, 7, 3]}
        %y.t : f32[1,7,3] = Add(%x, %z.t)
        %y : f32[7,1,3] = Transpose(%y.t) {perm=[1, 0, 2]}
        output %y
        """,
    )


def test_sink_transpose_takes_another_operand_along_when_the_readers_undo_it() -> None:
    check(
        SinkTranspose(),
        """
        input %x : f32[1,2,2,3]
        input %z : f32[1,3,2,2]
        %t : f32[1,3,2,2] = Transpose(%x) {perm=[0, 3, 1, 2]}
        %a : f32[1,3,2,2] = Add(%t, %z)
        %b : f32[1,2,2,3] = Transpose(%a) {perm=[0, 2, 3, 1]}
        %y : f32[1,2,2,3] = Neg(%b)
        output %y
        """,
        """
        input %x : f32[1,2,2,3]
        input %z : f32[1,3,2,2]
        %z.t : f32[1,2,2,3]@nhwc = Transpose(%z) {perm=[0, 2, 3, 1]}
        %a.t : f32[1,2,2,3]@nhwc = Add(%x, %z.t)
        %y : f32[1,2,2,3] = Neg(%a.t)
        output %y
        """,
    )


def test_transpose_weights_permutes_columns() -> None:
    check(
        TransposeWeights(),
        """
        input %x : f32[1,1,2,2]
        const %w : f32[1,4] = [[0.0, 1.0, 2.0, 3.0]]
        const %b : f32[1] = [0.0]
        %t : f32[1,2,1,2] = Transpose(%x) {perm=[0, 3, 1, 2]}
        %f : f32[1,4] = Reshape(%t) {shape=[1, 4]}
        %y : f32[1,1] = FullyConnected(%f, %w, %b)
        output %y
        """,
        """
        input %x : f32[1,1,2,2]
        const %b : f32[1] = [0.0]
        const %w.t : f32[1,4] = [[0.0, 2.0, 1.0, 3.0]]
        %f.t : f32[1,4] = Reshape(%x) {shape=[1, 4]}
        %y : f32[1,1] = FullyConnected(%f.t, %w.t, %b)
        output %y
        """,
    )


def test_transpose_weights_keeps_a_transpose_of_rows() -> None:
    check_same(
        TransposeWeights(),
        """
        input %x : f32[2,3,2]
        const %w : f32[1,4] = [[0.0, 1.0, 2.0, 3.0]]
        const %b : f32[1] = [0.0]
        %t : f32[3,2,2] = Transpose(%x) {perm=[1, 0, 2]}
        %f : f32[3,4] = Reshape(%t) {shape=[3, 4]}
        %y : f32[3,1] = FullyConnected(%f, %w, %b)
        output %y
        """,
    )


def test_hoist_transpose_in_front_of_dequantize() -> None:
    check(
        HoistTranspose(),
        """
        input %x : s8[2,3] q(0.5, 0)
        %f : f32[2,3] = DequantizeLinear(%x)
        %y : f32[3,2] = Transpose(%f) {perm=[1, 0]}
        output %y
        """,
        """
        input %x : s8[2,3] q(0.5, 0)
        %x.t : s8[3,2] q(0.5, 0) = Transpose(%x) {perm=[1, 0]}
        %y : f32[3,2] = DequantizeLinear(%x.t)
        output %y
        """,
    )
    check_same(
        HoistTranspose(),
        'input %x : f32[2,3]\n%q : s8[2,3] q(0.5, 0) = QuantizeLinear(%x) {dtype="s8"}\n'
        "%y : s8[3,2] q(0.5, 0) = Transpose(%q) {perm=[1, 0]}\noutput %y",
    )


def test_transpose_to_reshape() -> None:
    check(
        TransposeToReshape(),
        "input %x : f32[1,1,4,5]\n%y : f32[1,4,5,1] = Transpose(%x) {perm=[0, 2, 3, 1]}\noutput %y",
        "input %x : f32[1,1,4,5]\n%y : f32[1,4,5,1] = Reshape(%x) {shape=[1, 4, 5, 1]}\noutput %y",
    )
    check_same(
        TransposeToReshape(),
        "input %x : f32[1,2,4,5]\n%y : f32[1,4,5,2] = Transpose(%x) {perm=[0, 2, 3, 1]}\noutput %y",
    )


CONV = """
    input %x : f32[1,2,2,2]
    const %w : f32[1,1,1,2] = [[[[1.0, 2.0]]]]
    const %b : f32[1] = [0.0]
    {transpose}%y : f32[1,2,2,1]@nhwc = Conv(%{source}, %w, %b) {{layout="nhwc"{planar}}}
    {more}output %y
    """
TRANSPOSE = "%t : f32[1,2,2,2]@nhwc = Transpose(%x) {perm=[0, 2, 3, 1]}\n"


def test_planar_input() -> None:
    check(
        PlanarInput(),
        CONV.format(transpose=TRANSPOSE, source="t", planar="", more=""),
        CONV.format(transpose="", source="x", planar=", planar=1", more=""),
    )


def test_planar_input_keeps_a_copy_that_others_read() -> None:
    more = "%z : f32[1,2,2,2] = Neg(%t)\noutput %z\n"
    check_same(PlanarInput(), CONV.format(transpose=TRANSPOSE, source="t", planar="", more=more))


def test_whole_window_makes_a_dense_layer_of_a_convolution_over_the_whole_image() -> None:
    check(
        WholeWindow(),
        """
        input %x : s8[1,2,1,3]@nhwc q(0.5, 3)
        const %w : s8[2,2,1,3] q(0.25, 0) = [1,2,3,4,5,6,7,8,9,10,11,12]
        const %b : s32[2] = [7, 8]
        %y : s8[1,1,1,2]@nhwc q(0.5, 0) = Conv(%x, %w, %b) {act_min=0.0, group=1, layout="nhwc", rounding="tflite"}
        output %y
        """,
        """
        input %x : s8[1,2,1,3]@nhwc q(0.5, 3)
        const %b : s32[2] = [7, 8]
        const %w.whole : s8[2,6] q(0.25, 0) = [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]
        %x.whole : s8[1,1,1,6]@nhwc q(0.5, 3) = Reshape(%x) {shape=[1, 1, 1, 6]}
        %y : s8[1,1,1,2]@nhwc q(0.5, 0) = FullyConnected(%x.whole, %w.whole, %b) {act_min=0.0, rounding="tflite"}
        output %y
        """,
    )


def test_whole_window_makes_a_row_of_a_depthwise_image() -> None:
    attrs = 'group=2, kernel_shape=[{}], layout="nhwc", rounding="tflite"'
    check(
        WholeWindow(),
        f"""
        input %x : s8[1,3,1,2]@nhwc q(0.5, 3)
        const %w : s8[2,3,1,1] q(0.25, 0) = [1,2,3,4,5,6]
        const %b : s32[2] = [7, 8]
        %y : s8[1,1,1,2]@nhwc q(0.5, 0) = Conv(%x, %w, %b) {{{attrs.format("3, 1")}}}
        output %y
        """,
        f"""
        input %x : s8[1,3,1,2]@nhwc q(0.5, 3)
        const %b : s32[2] = [7, 8]
        const %w.whole : s8[2,1,3,1] q(0.25, 0) = [[[[1], [2], [3]]], [[[4], [5], [6]]]]
        %x.whole : s8[1,1,3,2]@nhwc q(0.5, 3) = Reshape(%x) {{shape=[1, 1, 3, 2]}}
        %y : s8[1,1,1,2]@nhwc q(0.5, 0) = Conv(%x.whole, %w.whole, %b) {{dilations=[1, 1], {
            attrs.format("1, 3")
        }, strides=[1, 1]}}
        output %y
        """,
    )


def test_whole_window_leaves_windows_with_gaps_or_padding_and_other_roundings() -> None:
    for attrs in ('dilations=[2, 1], rounding="tflite"', 'pads=[1, 0, 0, 0], rounding="tflite"', 'rounding="even"'):
        high = 3 if "dilations" in attrs else 1 if "pads" in attrs else 2
        graph = after(
            WholeWindow(),
            f"""
            input %x : s8[1,{high},1,3]@nhwc q(0.5, 3)
            const %w : s8[2,2,1,3] q(0.25, 0) = [1,2,3,4,5,6,7,8,9,10,11,12]
            const %b : s32[2] = [7, 8]
            %y : s8[1,1,1,2]@nhwc q(0.5, 0) = Conv(%x, %w, %b) {{{attrs}, group=1, layout="nhwc"}}
            output %y
            """,
        )
        assert ops(graph) == ["Conv"]
