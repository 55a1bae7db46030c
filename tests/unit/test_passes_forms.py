"""integers-in-float, fuse-dynamic, weight-only: text in, text out."""

from __future__ import annotations

from glowc.passes.base import GraphPass
from glowc.passes.fuse.fuse_dynamic import FuseDynamic
from glowc.passes.quant.integers_in_float import IntegersInFloat
from glowc.passes.quant.weights import WeightOnly
from tests.unit.passes_text import CTX, check, check_same, graph_of

SHIFT = "div=256.0, n_levels_out=256.0, signed=1.0"


def names(one: GraphPass, body: str) -> list[str]:
    """Return the operators after a pass, in order."""
    return [node.op for node in one.run(graph_of(body), CTX).nodes]


def test_result_of_a_requant_shift_becomes_codes() -> None:
    check(
        IntegersInFloat(),
        f"""
        input %x : f32[4]
        const %m : f32[] = 3.0
        const %a : f32[] = 0.0
        %y : f32[4] = RequantShift(%x, %m, %a) {{{SHIFT}}}
        output %y
        """,
        """
        input %x : f32[4]
        const %m : f32[] = 3.0
        const %a : f32[] = 0.0
        %y.q : s8[4] q(1.0, 0) = RequantShift(%x, %m, %a) {div=256.0, dtype="s8", n_levels_out=256.0, signed=1.0}
        %y : f32[4] = DequantizeLinear(%y.q)
        output %y
        """,
    )


def test_layer_with_integer_weights_ends_in_the_shift() -> None:
    body = f"""
        input %x : f32[1,2]
        const %w : f32[2,2] = [1.0, -2.0, 3.0, 4.0]
        const %b : f32[2] = [5.0, 6.0]
        const %m : f32[] = 3.0
        const %a : f32[] = 0.0
        %c : f32[1,2] = FullyConnected(%x, %w, %b)
        %y : f32[1,2] = RequantShift(%c, %m, %a) {{{SHIFT}}}
        output %y
        """
    assert names(IntegersInFloat(), body) == ["QuantizeLinear", "FullyConnected", "DequantizeLinear"]


def test_layer_with_fractions_in_its_weights_stays_float() -> None:
    body = f"""
        input %x : f32[1,2]
        const %w : f32[2,2] = [1.0, -2.5, 3.0, 4.0]
        const %b : f32[2] = [5.0, 6.0]
        const %m : f32[] = 3.0
        const %a : f32[] = 0.0
        %c : f32[1,2] = FullyConnected(%x, %w, %b)
        %y : f32[1,2] = RequantShift(%c, %m, %a) {{{SHIFT}}}
        output %y
        """
    assert names(IntegersInFloat(), body) == ["FullyConnected", "RequantShift", "DequantizeLinear"]


def test_divisor_that_is_no_power_of_two_stays_float() -> None:
    check_same(
        IntegersInFloat(),
        """
        input %x : f32[4]
        const %m : f32[] = 3.0
        const %a : f32[] = 0.0
        %y : f32[4] = RequantShift(%x, %m, %a) {div=10.0, n_levels_out=256.0, signed=1.0}
        output %y
        """,
    )


DYNAMIC = """
        input %x : u8[1,2]
        input %s : f32[]
        input %z : u8[]
        const %w : s8[2,2] = [1, 2, 3, 4]
        const %k : f32[2] = [0.5, 0.25]
        const %b : f32[2] = [1.0, 2.0]
        %i : s32[1,2] = MatMulInteger(%x, %w, %z)
        %c : f32[1,2] = Cast(%i) {to=1}
        %f : f32[2] = Mul(%s, %k)
        %m : f32[1,2] = Mul(%c, %f)
        %y : f32[1,2] = Add(%b, %m)
        output %y
        """


def test_dynamic_chain_becomes_one_layer() -> None:
    assert names(FuseDynamic(), DYNAMIC) == ["FullyConnectedDynamic"]


def test_dynamic_chain_whose_sum_is_read_twice_stays() -> None:
    assert "MatMulInteger" in names(FuseDynamic(), DYNAMIC + "output %i\n")


def test_float_layer_reads_its_codes() -> None:
    check(
        WeightOnly(),
        """
        input %x : f32[1,2]
        const %w : s8[2,2] q([0.5, 0.25], [0, 0], axis=0) = [[1, 2], [3, 4]]
        const %b : f32[2] = [1.0, 2.0]
        %r : f32[2,2] = DequantizeLinear(%w)
        %y : f32[1,2] = FullyConnected(%x, %r, %b)
        output %y
        """,
        """
        input %x : f32[1,2]
        const %w : s8[2,2] q([0.5, 0.25], [0, 0], axis=0) = [[1, 2], [3, 4]]
        const %b : f32[2] = [1.0, 2.0]
        %y : f32[1,2] = FullyConnected(%x, %w, %b)
        output %y
        """,
    )


def test_weights_with_a_zero_point_per_output_become_floats() -> None:
    check_same(
        WeightOnly(),
        """
        input %x : f32[1,2]
        const %w : s8[2,2] q([0.5, 0.25], [0, 1], axis=0) = [[1, 2], [3, 4]]
        const %b : f32[2] = [1.0, 2.0]
        %r : f32[2,2] = DequantizeLinear(%w)
        %y : f32[1,2] = FullyConnected(%x, %r, %b)
        output %y
        """,
    )
