"""Passes for transformers: fold-qdq-norm, fold-transpose, fuse-gelu, fuse-layer-norm, fuse-lut; float layers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from passes_text import after, check, check_same, graph_of, ops

from glowc.errors import ModelError
from glowc.graph.numerics import quantize
from glowc.graph.types import DType, quant
from glowc.ops.interp import run_graph
from glowc.passes.fold.constants import ExactDivision
from glowc.passes.fuse.fuse_gelu import FuseGelu
from glowc.passes.fuse.fuse_layer_norm import FuseLayerNorm
from glowc.passes.fuse.fuse_lut import FuseLut
from glowc.passes.layout.splits import SplitHeads
from glowc.passes.layout.transposes import FoldTranspose
from glowc.passes.quant.float_layers import float_layers, require_int8
from glowc.passes.quant.fold_codes import FoldQdqNorm


def test_norm_between_q_and_dq_works_on_codes_with_real_scale_and_bias() -> None:
    graph = after(
        FoldQdqNorm(),
        """
        input %x : s8[2,3] q(0.5, 3)
        const %w : s8[3] q(0.25, 1) = [1, 3, 5]
        const %b : s32[3] q(0.125, 0) = [1, 2, 3]
        %r : f32[2,3] = DequantizeLinear(%x)
        %wr : f32[3] = DequantizeLinear(%w)
        %br : f32[3] = DequantizeLinear(%b)
        %n : f32[2,3] = LayerNormalization(%r, %wr, %br) {axis=-1, epsilon=0.5}
        %y : s8[2,3] q(0.25, -3) = QuantizeLinear(%n) {dtype="s8"}
        output %y
        """,
    )
    assert ops(graph) == ["LayerNormalization"]
    node = graph.nodes[0]
    np.testing.assert_array_equal(graph.consts[node.inputs[1]], np.float32([0, 0.5, 1]))
    np.testing.assert_array_equal(graph.consts[node.inputs[2]], np.float32([0.125, 0.25, 0.375]))


def test_norm_whose_result_is_also_read_as_float_stays() -> None:
    check_same(
        FoldQdqNorm(),
        """
        input %x : s8[2,3] q(0.5, 3)
        const %w : f32[3] = [1.0, 3.0, 5.0]
        %r : f32[2,3] = DequantizeLinear(%x)
        %n : f32[2,3] = RMSNormalization(%r, %w) {axis=-1, epsilon=0.5}
        %y : s8[2,3] q(0.25, -3) = QuantizeLinear(%n) {dtype="s8"}
        output %y
        output %n
        """,
    )


def test_transposes_of_heads_become_strides() -> None:
    check(
        FoldTranspose(),
        """
        input %a : f32[1,6,2,4]
        input %b : f32[1,5,2,4]
        %at : f32[1,2,6,4] = Transpose(%a) {perm=[0, 2, 1, 3]}
        %bt : f32[1,2,4,5] = Transpose(%b) {perm=[0, 2, 3, 1]}
        %c : f32[1,2,6,5] = MatMul(%at, %bt)
        %y : f32[1,6,2,5] = Transpose(%c) {perm=[0, 2, 1, 3]}
        output %y
        """,
        """
        input %a : f32[1,6,2,4]
        input %b : f32[1,5,2,4]
        %y : f32[1,6,2,5] = MatMul(%a, %b) {perm_a=[0, 2, 1, 3], perm_b=[0, 2, 3, 1], perm_y=[0, 2, 1, 3]}
        output %y
        """,
    )


def test_transpose_with_another_reader_stays() -> None:
    check_same(
        FoldTranspose(),
        """
        input %a : f32[6,4]
        input %b : f32[6,5]
        %at : f32[4,6] = Transpose(%a) {perm=[1, 0]}
        %c : f32[4,5] = MatMul(%at, %b)
        output %c
        output %at
        """,
    )


def test_transpose_that_needs_a_third_batch_axis_stays() -> None:
    check_same(
        FoldTranspose(),
        """
        input %a : f32[2,3,4,5,6]
        input %b : f32[4,3,2,6,7]
        %bt : f32[2,3,4,6,7] = Transpose(%b) {perm=[2, 1, 0, 3, 4]}
        %y : f32[2,3,4,5,7] = MatMul(%a, %bt)
        output %y
        """,
    )


HALF_ROOT = math.sqrt(0.5)
ERF_CHAINS = {
    "torch": f"""
        const %c : f32[] = {1 / HALF_ROOT}
        %u : f32[8] = Div(%x, %c)
        %e : f32[8] = Erf(%u)
        %p : f32[8] = Add(%e, %one)
        %m : f32[8] = Mul(%x, %p)
        %y : f32[8] = Mul(%m, %half)
        """,
    "half first": f"""
        const %c : f32[] = {HALF_ROOT}
        %h : f32[8] = Mul(%half, %x)
        %u : f32[8] = Mul(%x, %c)
        %e : f32[8] = Erf(%u)
        %p : f32[8] = Add(%one, %e)
        %y : f32[8] = Mul(%p, %h)
        """,
    "divided by two": f"""
        const %c : f32[] = {HALF_ROOT}
        const %two : f32[] = 2.0
        %u : f32[8] = Mul(%c, %x)
        %e : f32[8] = Erf(%u)
        %p : f32[8] = Add(%one, %e)
        %m : f32[8] = Mul(%p, %x)
        %y : f32[8] = Div(%m, %two)
        """,
}
TANH_CHAINS = {
    "pow": f"""
        const %three : f32[] = 3.0
        const %k : f32[] = 0.044715
        const %c : f32[] = {math.sqrt(2 / math.pi)}
        %x3 : f32[8] = Pow(%x, %three)
        %kx : f32[8] = Mul(%x3, %k)
        %s : f32[8] = Add(%x, %kx)
        %u : f32[8] = Mul(%s, %c)
        %e : f32[8] = Tanh(%u)
        %p : f32[8] = Add(%e, %one)
        %h : f32[8] = Mul(%x, %half)
        %y : f32[8] = Mul(%h, %p)
        """,
    "products": f"""
        const %k : f32[] = 0.044715
        const %c : f32[] = {math.sqrt(2 / math.pi)}
        %x2 : f32[8] = Mul(%x, %x)
        %kx : f32[8] = Mul(%x2, %k)
        %s : f32[8] = Add(%kx, %one)
        %v : f32[8] = Mul(%x, %s)
        %u : f32[8] = Mul(%v, %c)
        %e : f32[8] = Tanh(%u)
        %p : f32[8] = Add(%e, %one)
        %h : f32[8] = Mul(%x, %half)
        %y : f32[8] = Mul(%h, %p)
        """,
}
START = """
        input %x : f32[8]
        const %one : f32[] = 1.0
        const %half : f32[] = 0.5
        """


@pytest.mark.parametrize(
    ("chain", "kind"), [*((c, "none") for c in ERF_CHAINS.values()), *((c, "tanh") for c in TANH_CHAINS.values())]
)
def test_chains_become_gelu(chain: str, kind: str) -> None:
    body = START + chain + "output %y"
    graph = after(FuseGelu(), body)
    assert ops(graph) == ["Gelu"]
    assert graph.nodes[0].str_("approximate") == kind
    x = np.linspace(-3, 3, 8).astype(np.float32)
    np.testing.assert_allclose(run_graph(graph, {"x": x})["y"], run_graph(graph_of(body), {"x": x})["y"], atol=1e-6)


@pytest.mark.parametrize("change", [("= 0.5", "= 0.4"), ("= 1.0", "= 2.0")])
def test_other_chains_are_no_gelu(change: tuple[str, str]) -> None:
    check_same(FuseGelu(), (START + ERF_CHAINS["torch"] + "output %y").replace(*change))


NORM = """
        input %x : f32[2,3,8]
        const %eps : f32[] = 0.001
        const %two : f32[] = 2.0
        const %g : f32[8] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
        const %b : f32[8] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
        """
CENTRE = """
        %m : f32[2,3,1] = ReduceMean(%x) {axes=[-1], keepdims=1}
        %d : f32[2,3,8] = Sub(%x, %m)
        %q : f32[2,3,8] = Pow(%d, %two)
        %v : f32[2,3,1] = ReduceMean(%q) {axes=[2], keepdims=1}
        %e : f32[2,3,1] = Add(%v, %eps)
        %s : f32[2,3,1] = Sqrt(%e)
        %n : f32[2,3,8] = Div(%d, %s)
        """


def norm_agrees(body: str, wanted: list[str]) -> None:
    graph = after(FuseLayerNorm(), body)
    assert ops(graph) == wanted
    x = np.random.default_rng(0).normal(2, 3, (2, 3, 8)).astype(np.float32)
    y, wanted_y = run_graph(graph, {"x": x})["y"], run_graph(graph_of(body), {"x": x})["y"]
    np.testing.assert_allclose(y, wanted_y, rtol=1e-5, atol=1e-5)


def test_chain_of_the_mean_becomes_layer_normalization() -> None:
    tail = "%t : f32[2,3,8] = Mul(%n, %g)\n%y : f32[2,3,8] = Add(%b, %t)\noutput %y"
    norm_agrees(NORM + CENTRE + tail, ["LayerNormalization"])


def test_chain_without_scale_and_bias_becomes_layer_normalization() -> None:
    norm_agrees(NORM + CENTRE.replace("%n :", "%y :") + "output %y", ["LayerNormalization"])


def test_chain_without_the_mean_becomes_rms_normalization() -> None:
    norm_agrees(
        NORM + """
        %q : f32[2,3,8] = Mul(%x, %x)
        %v : f32[2,3,1] = ReduceMean(%q) {axes=[-1], keepdims=1}
        %e : f32[2,3,1] = Add(%v, %eps)
        %s : f32[2,3,1] = Sqrt(%e)
        %i : f32[2,3,1] = Reciprocal(%s)
        %n : f32[2,3,8] = Mul(%x, %i)
        %y : f32[2,3,8] = Mul(%n, %g)
        output %y
        """,
        ["RMSNormalization"],
    )  # fmt: skip


def test_mean_over_another_axis_is_no_normalization() -> None:
    other = CENTRE.replace("f32[2,3,1]", "f32[2,1,8]").replace("axes=[-1]", "axes=[1]").replace("axes=[2]", "axes=[1]")
    check_same(FuseLayerNorm(), NORM + other.replace("%n :", "%y :") + "output %y")


def lut_of(body: str) -> np.ndarray:
    """Return the results of the 256 codes, having compared the table with the operators one by one."""
    graph = after(FuseLut(), body)
    assert ops(graph) == ["Lut"]
    x = np.arange(-128, 128, dtype=np.int8).reshape(2, 128)
    y = run_graph(graph, {"x": x})["y"]
    np.testing.assert_array_equal(y, run_graph(graph_of(body), {"x": x})["y"])
    return y.reshape(-1)


def test_division_between_codes_becomes_a_table() -> None:
    y = lut_of("""
        input %x : s8[2,128] q(0.13, -30)
        const %c : f32[] = 4.0
        %r : f32[2,128] = DequantizeLinear(%x)
        %d : f32[2,128] = Div(%r, %c)
        %y : s8[2,128] q(0.033, -30) = QuantizeLinear(%d) {dtype="s8"}
        output %y
        """)
    real = (np.arange(-128, 128) + 30).astype(np.float32) * np.float32(0.13) / np.float32(4)
    np.testing.assert_array_equal(y, quantize(real, quant(0.033, -30), DType.S8))


def test_rounding_in_the_middle_is_kept() -> None:
    lut_of("""
        input %x : s8[2,128] q(0.05, 3)
        const %c : f32[1,1] = [[1.702]]
        %a : s8[2,128] q(0.3, 0) = Requantize(%x) {dtype="s8"}
        %r : f32[2,128] = DequantizeLinear(%a)
        %m : f32[2,128] = Mul(%r, %c)
        %b : s8[2,128] q(0.1, 5) = QuantizeLinear(%m) {dtype="s8"}
        %y : s8[2,128] q(0.0078125, 0) = Tanh(%b)
        output %y
        """)


def test_branches_that_meet_again_become_a_table() -> None:
    lut_of("""
        input %x : s8[2,128] q(0.05, 3)
        %h : s8[2,128] q(0.00390625, -128) = HardSigmoid(%x) {alpha=0.16666667163372, beta=0.5}
        %y : s8[2,128] q(0.025, -110) = Mul(%x, %h)
        output %y
        """)


def test_two_variables_or_one_operator_are_no_table() -> None:
    check_same(
        FuseLut(),
        """
        input %x : s8[2,3] q(0.05, 3)
        input %z : s8[2,3] q(0.05, 3)
        %t : s8[2,3] q(0.01, 3) = Tanh(%x)
        %y : s8[2,3] q(0.025, -110) = Mul(%t, %z)
        output %y
        """,
    )


def test_number_per_channel_is_no_part_of_a_table() -> None:
    """Even when there are as many channels as codes."""
    check_same(
        FuseLut(),
        f"""
        input %x : s8[2,256] q(0.05, 3)
        const %c : f32[256] = {[float(i) for i in range(256)]}
        %r : f32[2,256] = DequantizeLinear(%x)
        %d : f32[2,256] = Add(%r, %c)
        %y : s8[2,256] q(2.0, -30) = QuantizeLinear(%d) {{dtype="s8"}}
        output %y
        """,
    )


def test_tables_in_a_row_become_one() -> None:
    table = list(range(-128, 128))
    lut_of(f"""
        input %x : s8[2,128] q(0.05, 3)
        const %c : s8[256] = {table[::-1]}
        %a : s8[2,128] q(0.3, 0) = Lut(%x, %c)
        %y : s8[2,128] q(0.0078125, 0) = Tanh(%a)
        output %y
        """)


def test_value_read_elsewhere_is_no_part_of_a_table() -> None:
    graph = after(
        FuseLut(),
        """
        input %x : s8[2,3] q(0.05, 3)
        %t : s8[2,3] q(0.01, 3) = Tanh(%x)
        %s : s8[2,3] q(0.01, 3) = Sigmoid(%t)
        %y : s8[2,3] q(0.01, 5) = Requantize(%s)
        output %y
        output %t
        """,
    )
    assert ops(graph) == ["Tanh", "Lut"]


FLOAT_ISLAND = """
        input %x : s8[2,3] q(0.05, 3)
        input %f : f32[2,3]
        %r : f32[2,3] = DequantizeLinear(%x)
        %c : f32[2,3] = CumSum(%r, %k) from "island"
        %q : s8[2,3] q(0.05, 3) = QuantizeLinear(%c)
        %d : f32[2,3] = DequantizeLinear(%q)
        %y : f32[2,3] = Add(%d, %f) from "tail"
        output %y
        """


def test_float_islands_have_a_name_and_a_reason() -> None:
    graph = graph_of("const %k : s64[] = 0\n" + FLOAT_ISLAND)
    assert [(layer.name, layer.island) for layer in float_layers(graph)] == [("island", True), ("tail", False)]
    with pytest.raises(ModelError, match="1 layer of model 't' would compute in float") as error:
        require_int8(graph)
    assert 'CumSum "island": CumSum has no integer form' in str(error.value)


def test_float_tail_is_allowed_and_a_float_model_is_not() -> None:
    require_int8(
        graph_of("""
        input %x : s8[2,3] q(0.05, 3)
        %r : f32[2,3] = DequantizeLinear(%x)
        %y : f32[2,3] = Softmax(%r) {axis=-1}
        output %y
        """)
    )
    with pytest.raises(ModelError, match="no quantized activations"):
        require_int8(graph_of("input %x : f32[2,3]\n%y : f32[2,3] = Relu(%x)\noutput %y"))


def test_division_by_powers_of_two_becomes_a_multiplication() -> None:
    graph = after(
        ExactDivision(), "input %x : f32[2]\nconst %c : f32[2] = [4.0, -0.5]\n%y : f32[2] = Div(%x, %c)\noutput %y"
    )
    assert ops(graph) == ["Mul"]
    np.testing.assert_array_equal(graph.consts[graph.nodes[0].inputs[1]], np.float32([0.25, -2]))


@pytest.mark.parametrize("divisor", ["3.0", "0.0", "inf", "nan", "1.7014118346046923e+38"])
def test_other_divisions_stay(divisor: str) -> None:
    check_same(
        ExactDivision(), f"input %x : f32[2]\nconst %c : f32[] = {divisor}\n%y : f32[2] = Div(%x, %c)\noutput %y"
    )


PACKED = """
        input %x : s8[1,4,6] q(0.05, 3)
        const %w : s8[12,6] q(SCALES, ZEROS, axis=0) = WEIGHTS
        const %b : s32[12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
        const %t : s8[12] q(0.1, 1) = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
        const %zero : s64[] = 0
        const %last : s64[] = -1
        %f : s8[1,4,12] q(0.2, 0) = FullyConnected(%x, %w, %b)
        %a : s8[1,4,12] q(0.2, 0) = Add(%t, %f)
        %r : s8[1,4,2,3,2] q(0.2, 0) = Reshape(%a) {shape=[1, 4, 2, 3, 2]}
        %p : s8[2,1,3,4,2] q(0.2, 0) = Transpose(%r) {perm=[2, 0, 3, 1, 4]}
        %q : s8[1,3,4,2] q(0.2, 0) = Gather(%p, %zero) {axis=0}
        %k : s8[1,3,4,2] q(0.2, 0) = Gather(%p, %last) {axis=0}
        %y : s8[1,3,4,2] q(0.4, 0) = Add(%q, %k)
        output %y
        """


def packed(weights: list[list[int]]) -> str:
    scales = [0.1 + i / 20 for i in range(12)]
    return PACKED.replace("SCALES", str(scales)).replace("ZEROS", str([0] * 12)).replace("WEIGHTS", str(weights))


def test_packed_projection_becomes_one_for_each_part() -> None:
    body = packed([[(7 * i + 11 * j) % 90 - 40 for j in range(6)] for i in range(12)])
    graph = after(SplitHeads(), body)
    assert sorted(ops(graph)) == sorted(["FullyConnected", "Add", "Reshape", "Transpose"] * 2 + ["Add"])
    x = np.random.default_rng(0).integers(-128, 128, (1, 4, 6)).astype(np.int8)
    np.testing.assert_array_equal(run_graph(graph, {"x": x})["y"], run_graph(graph_of(body), {"x": x})["y"])


def test_packed_projection_with_another_reader_stays() -> None:
    body = packed([[1] * 6] * 12)
    check_same(SplitHeads(), body.replace("output %y", "output %y\n        output %p"))
