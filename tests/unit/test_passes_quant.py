"""Passes on quantised graphs: propagate-quant, move-qdq, fold-qdq, fold-requantize, u8-to-s8."""

from __future__ import annotations

import numpy as np
import pytest
from passes_text import CTX, after, check, check_same, graph_of, ops

from glowc.ops.interp import run_graph
from glowc.passes.base import PassCtx
from glowc.passes.quant.fold_codes import FoldDqProduct, FoldRequantize
from glowc.passes.quant.fold_qdq import FoldQdq
from glowc.passes.quant.move_qdq import MoveQdq
from glowc.passes.quant.propagate_quant import PropagateQuant
from glowc.passes.quant.u8_to_s8 import U8ToS8


def test_propagate_quant_reaches_the_graph_input() -> None:
    check(
        PropagateQuant(),
        """
        input %x : s8[1,2,3]
        %t : s8[1,3,2] = Transpose(%x) {perm=[0, 2, 1]}
        %q : s8[1,3,2] q(0.5, 3) = AssignQuant(%t)
        %y : f32[1,3,2] = DequantizeLinear(%q)
        output %y
        """,
        """
        input %x : s8[1,2,3] q(0.5, 3)
        %t : s8[1,3,2] q(0.5, 3) = Transpose(%x) {perm=[0, 2, 1]}
        %y : f32[1,3,2] = DequantizeLinear(%t)
        output %y
        """,
    )


def test_propagate_quant_types_what_is_moved_and_turns_pad_codes_into_numbers() -> None:
    check(
        PropagateQuant(),
        """
        input %x : f32[1,2]
        %q : s8[1,2] q(0.5, 3) = QuantizeLinear(%x) {dtype="s8"}
        %p : s8[1,4] = Pad(%q) {mode="constant", pads=[0, 1, 0, 1], value=5.0}
        %a : s8[1,4] q(0.5, 3) = AssignQuant(%p)
        %y : f32[1,4] = DequantizeLinear(%a)
        output %y
        """,
        """
        input %x : f32[1,2]
        %q : s8[1,2] q(0.5, 3) = QuantizeLinear(%x) {dtype="s8"}
        %p : s8[1,4] q(0.5, 3) = Pad(%q) {mode="constant", pads=[0, 1, 0, 1], value=1.0}
        %y : f32[1,4] = DequantizeLinear(%p)
        output %y
        """,
    )


def test_propagate_quant_types_constants() -> None:
    check(
        PropagateQuant(),
        """
        const %c : s8[2] = [1, 2]
        %q : s8[2] q([0.5, 0.25], [0, 0], axis=0) = AssignQuant(%c)
        %y : f32[2] = DequantizeLinear(%q)
        output %y
        """,
        """
        const %q.1 : s8[2] q([0.5, 0.25], [0, 0], axis=0) = [1, 2]
        %y : f32[2] = DequantizeLinear(%q.1)
        output %y
        """,
    )


def test_propagate_quant_stops_at_two_meanings() -> None:
    check_same(
        PropagateQuant(),
        """
        input %x : s8[2]
        %a : s8[2] q(0.5, 0) = AssignQuant(%x)
        %b : s8[2] q(0.25, 0) = AssignQuant(%x)
        %c : f32[2] = DequantizeLinear(%a)
        %d : f32[2] = DequantizeLinear(%b)
        output %c
        output %d
        """,
    )


def test_move_qdq_sinks_dequantize_and_climbs_quantize() -> None:
    check(
        MoveQdq(),
        """
        input %x : s8[1,4] q(0.5, 3)
        input %z : f32[1,4]
        %f : f32[1,4] = DequantizeLinear(%x)
        %r : f32[2,2] = Reshape(%f) {shape=[2, 2]}
        %s : f32[2,2] = Reshape(%z) {shape=[2, 2]}
        %q : s8[2,2] q(0.25, 0) = QuantizeLinear(%s) {dtype="s8"}
        output %r
        output %q
        """,
        """
        input %x : s8[1,4] q(0.5, 3)
        input %z : f32[1,4]
        %r.q : s8[2,2] q(0.5, 3) = Reshape(%x) {shape=[2, 2]}
        %z.q : s8[1,4] q(0.25, 0) = QuantizeLinear(%z) {dtype="s8"}
        %q : s8[2,2] q(0.25, 0) = Reshape(%z.q) {shape=[2, 2]}
        %r : f32[2,2] = DequantizeLinear(%r.q)
        output %r
        output %q
        """,
    )


def test_move_qdq_gives_concat_a_conversion_per_input() -> None:
    check(
        MoveQdq(),
        """
        input %a : s8[1,2] q(0.5, 0)
        input %b : s8[1,2] q(0.25, 1)
        %fa : f32[1,2] = DequantizeLinear(%a)
        %fb : f32[1,2] = DequantizeLinear(%b)
        %c : f32[1,4] = Concat(%fa, %fb) {axis=1}
        %q : s8[1,4] q(0.5, 0) = QuantizeLinear(%c) {dtype="s8"}
        output %q
        """,
        """
        input %a : s8[1,2] q(0.5, 0)
        input %b : s8[1,2] q(0.25, 1)
        %fa : f32[1,2] = DequantizeLinear(%a)
        %fb : f32[1,2] = DequantizeLinear(%b)
        %fa.q : s8[1,2] q(0.5, 0) = QuantizeLinear(%fa) {dtype="s8"}
        %fb.q : s8[1,2] q(0.5, 0) = QuantizeLinear(%fb) {dtype="s8"}
        %q : s8[1,4] q(0.5, 0) = Concat(%fa.q, %fb.q) {axis=1}
        output %q
        """,
    )


def test_move_qdq_keeps_a_pad_whose_value_has_no_code() -> None:
    check_same(
        MoveQdq(),
        """
        input %x : s8[2] q(0.5, 0)
        %f : f32[2] = DequantizeLinear(%x)
        %y : f32[4] = Pad(%f) {mode="constant", pads=[1, 1], value=0.3}
        output %y
        """,
    )


def test_move_qdq_keeps_a_float_reader() -> None:
    check_same(
        MoveQdq(),
        """
        input %x : f32[4]
        %r : f32[2,2] = Reshape(%x) {shape=[2, 2]}
        %q : s8[2,2] q(0.25, 0) = QuantizeLinear(%r) {dtype="s8"}
        output %r
        output %q
        """,
    )


CONV = """
    input %x : s8[1,1,2,2] q(0.5, 3)
    const %w : s8[1,1,1,1] q([0.25], [0], axis=0) = [[[[7]]]]
    const %b : s32[1] q({scale}, 0) = [80]
    %fx : f32[1,1,2,2] = DequantizeLinear(%x)
    %fw : f32[1,1,1,1] = DequantizeLinear(%w)
    %fb : f32[1] = DequantizeLinear(%b)
    %c : f32[1,1,2,2] = Conv(%fx, %fw, %fb) {{act_min=0.0}}
    %q : s8[1,1,2,2] q(0.125, -128) = QuantizeLinear(%c) {{dtype="s8"}}
    output %q
    """
FOLDED_CONV = """
    input %x : s8[1,1,2,2] q(0.5, 3)
    const %w : s8[1,1,1,1] q([0.25], [0], axis=0) = [[[[7]]]]
    const %c.bias : s32[1] = [{codes}]
    %q : s8[1,1,2,2] q(0.125, -128) = Conv(%x, %w, %c.bias) {{act_min=0.0}}
    output %q
    """


def test_fold_qdq_conv_keeps_a_bias_in_accumulator_units() -> None:
    check(FoldQdq(), CONV.format(scale="0.12500001"), FOLDED_CONV.format(codes=80))


def test_fold_qdq_conv_rounds_a_bias_of_another_scale_and_warns() -> None:
    check(FoldQdq(), CONV.format(scale="0.1"), FOLDED_CONV.format(codes=64))
    warnings: list[str] = []
    FoldQdq().run(graph_of(CONV.format(scale="0.1")), PassCtx(CTX.int8_ops, warnings.append))
    assert len(warnings) == 1
    assert "bias" in warnings[0]


def test_fold_qdq_float_bias_is_rounded_half_to_even() -> None:
    float_bias = CONV.replace("s32[1] q({scale}, 0) = [80]", "f32[1] = [0.3125]").replace("%fb)", "%b)")
    float_bias = float_bias.replace("    %fb : f32[1] = DequantizeLinear(%b)\n", "")
    check(FoldQdq(), float_bias.format(), FOLDED_CONV.format(codes=2))


def test_fold_qdq_shared_dequantize_and_constant_operand() -> None:
    check(
        FoldQdq(),
        """
        input %x : s8[2] q(0.5, 3)
        const %c : s8[2] q(0.25, 0) = [7, 8]
        %fx : f32[2] = DequantizeLinear(%x)
        %fc : f32[2] = DequantizeLinear(%c)
        %a : f32[2] = Add(%fx, %fc)
        %q : s8[2] q(0.125, 0) = QuantizeLinear(%a) {dtype="s8"}
        %n : f32[2] = Unknown(%fx)
        output %q
        output %n
        """,
        """
        input %x : s8[2] q(0.5, 3)
        const %c : s8[2] q(0.25, 0) = [7, 8]
        %fx : f32[2] = DequantizeLinear(%x)
        %q : s8[2] q(0.125, 0) = Add(%x, %c)
        %n : f32[2] = Unknown(%fx)
        output %q
        output %n
        """,
    )


def test_fold_qdq_leaves_what_is_not_quantised_on_both_sides() -> None:
    check_same(
        FoldQdq(),
        """
        input %x : s8[2] q(0.5, 3)
        input %z : f32[2]
        %fx : f32[2] = DequantizeLinear(%x)
        %a : f32[2] = Add(%fx, %z)
        %q : s8[2] q(0.125, 0) = QuantizeLinear(%a) {dtype="s8"}
        %e : f32[2] = Unknown(%fx)
        %r : s8[2] q(0.125, 0) = QuantizeLinear(%e) {dtype="s8"}
        %s : f32[2] = Sigmoid(%fx)
        %t : s8[2] q(0.125, 0) = QuantizeLinear(%s) {dtype="s8"}
        output %q
        output %r
        output %s
        output %t
        """,
    )


def test_fold_requantize_pairs() -> None:
    check(
        FoldRequantize(),
        """
        input %x : s8[2] q(0.5, 3)
        %t : s8[2] q(0.5, 3) = Tanh(%x)
        %f : f32[2] = DequantizeLinear(%t)
        %same : s8[2] q(0.5, 3) = QuantizeLinear(%f) {dtype="s8"}
        %y : s8[2] q(0.5, 3) = Neg(%same)
        %other : s8[2] q(0.25, 3) = QuantizeLinear(%f) {dtype="s8"}
        %flip : u8[2] q(0.5, 131) = QuantizeLinear(%f) {dtype="u8"}
        output %y
        output %other
        output %flip
        """,
        """
        input %x : s8[2] q(0.5, 3)
        %t : s8[2] q(0.5, 3) = Tanh(%x)
        %y : s8[2] q(0.5, 3) = Neg(%t)
        %other : s8[2] q(0.25, 3) = Requantize(%t) {dtype="s8"}
        %flip : u8[2] q(0.5, 131) = FlipSign(%t)
        output %y
        output %other
        output %flip
        """,
    )


@pytest.mark.parametrize(("zero", "op"), [(131, "FlipSign"), (130, "Requantize"), (3, "Requantize")])
def test_fold_requantize_flips_only_between_zero_points_128_apart(zero: int, op: str) -> None:
    graph = after(
        FoldRequantize(),
        f"""
        input %x : s8[2] q(0.5, 3)
        %f : f32[2] = DequantizeLinear(%x)
        %y : u8[2] q(0.5, {zero}) = QuantizeLinear(%f) {{dtype="u8"}}
        output %y
        """,
    )
    assert op in ops(graph)


def test_fold_requantize_keeps_two_roundings() -> None:
    check_same(
        FoldRequantize(),
        """
        input %x : s8[2] q(0.5, 3)
        %a : s8[2] q(0.3, 3) = Requantize(%x) {dtype="s8"}
        %b : s8[2] q(0.2, 3) = Requantize(%a) {dtype="s8"}
        output %b
        """,
    )


def test_u8_to_s8_flips_at_the_edge_and_retypes_inside() -> None:
    check(
        U8ToS8(),
        """
        input %x : u8[2] q(0.5, 131)
        const %c : u8[2] q(0.25, 128) = [0, 255]
        %a : u8[2] q(0.5, 0) = Add(%x, %c)
        %b : u8[2] q(0.5, 0) = Neg(%a)
        output %b
        """,
        """
        input %x : u8[2] q(0.5, 131)
        const %c.s : s8[2] q(0.25, 0) = [-128, 127]
        %x.s : s8[2] q(0.5, 3) = FlipSign(%x)
        %a : s8[2] q(0.5, -128) = Add(%x.s, %c.s)
        %b.s : s8[2] q(0.5, -128) = Neg(%a)
        %b : u8[2] q(0.5, 0) = FlipSign(%b.s)
        output %b
        """,
    )


def test_u8_to_s8_changes_what_quantize_writes() -> None:
    check(
        U8ToS8(),
        """
        input %x : f32[2]
        %q : u8[2] q(0.5, 3) = QuantizeLinear(%x)
        %y : f32[2] = DequantizeLinear(%q)
        output %y
        """,
        """
        input %x : f32[2]
        %q : s8[2] q(0.5, -125) = QuantizeLinear(%x) {dtype="s8"}
        %y : f32[2] = DequantizeLinear(%q)
        output %y
        """,
    )


def test_u8_to_s8_leaves_plain_integers() -> None:
    check_same(U8ToS8(), "input %x : u8[2]\n%y : f32[2] = Cast(%x) {to=1}\noutput %y")


def test_product_of_codes_with_a_float_result_adds_up_integers() -> None:
    text = """
        input %x : s8[1,2] q(0.5, 3)
        const %w : s8[3,2] q([0.5, 0.25, 1.0], [0, 0, 0], axis=0) = [[1, 2], [3, 4], [5, 6]]
        const %b : f32[3] = [1.0, 2.0, 3.0]
        %dx : f32[1,2] = DequantizeLinear(%x)
        %dw : f32[3,2] = DequantizeLinear(%w)
        %y : f32[1,3] = FullyConnected(%dx, %dw, %b)
        output %y
        """
    graph = after(FoldDqProduct(), text)
    node = next(n for n in graph.nodes if n.op == "FullyConnectedDynamic")
    assert node.inputs[0] == "x"
    x = np.array([[7, -1]], np.int8)
    np.testing.assert_array_equal(run_graph(graph, {"x": x})["y"], run_graph(graph_of(text), {"x": x})["y"])


def test_product_with_a_computed_bias_stays_float() -> None:
    check_same(
        FoldDqProduct(),
        """
        input %x : s8[1,2] q(0.5, 3)
        input %b : f32[3]
        const %w : s8[3,2] q(0.5, 0) = [[1, 2], [3, 4], [5, 6]]
        %dx : f32[1,2] = DequantizeLinear(%x)
        %dw : f32[3,2] = DequantizeLinear(%w)
        %y : f32[1,3] = FullyConnected(%dx, %dw, %b)
        output %y
        """,
    )
