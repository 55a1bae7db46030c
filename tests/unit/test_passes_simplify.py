"""Passes that simplify: identities, constants, batch normalisation, bias, activation, Pad, cse, dead code."""

from __future__ import annotations

import pytest
from passes_text import after, check, check_same, ops

from glowc.passes.clean.unneeded import Cse, DeadCode, DropIdentity, MergeReshape
from glowc.passes.fold.constants import FoldBias, FoldConstants
from glowc.passes.fold.fold_batchnorm import FoldBatchNorm
from glowc.passes.fold.fold_pad import FoldPad
from glowc.passes.fuse.fuse_activation import FuseActivation
from glowc.passes.layout.canonicalize_fc import CanonicalizeFc


@pytest.mark.parametrize(
    "node",
    [
        "Identity(%a)",
        "Dropout(%a)",
        "Reshape(%a) {shape=[2, 3]}",
        "Transpose(%a) {perm=[0, 1]}",
        "Concat(%a) {axis=0}",
        "Pad(%a) {pads=[0, 0, 0, 0]}",
        "Slice(%a) {axes=[1], ends=[3], starts=[0], steps=[1]}",
        "Expand(%a) {shape=[2, 3]}",
    ],
)
def test_drop_identity(node: str) -> None:
    check(
        DropIdentity(),
        f"input %x : f32[2,3]\n%a : f32[2,3] = Abs(%x)\n%b : f32[2,3] = {node}\n%y : f32[2,3] = Neg(%b)\noutput %y",
        "input %x : f32[2,3]\n%a : f32[2,3] = Abs(%x)\n%y : f32[2,3] = Neg(%a)\noutput %y",
    )


@pytest.mark.parametrize(
    "lines",
    [
        "input %x : f32[2,2]\n%y : f32[2,2] = Transpose(%x) {perm=[1, 0]}",
        "input %x : f32[2]\n%y : f32[2] = Slice(%x) {axes=[0], ends=[-9], starts=[1], steps=[-1]}",
        "input %x : f32[2]\n%y : f32[2] = Abs(%x)",
        "input %x : s8[2] q(0.5, 0)\n%y : s8[2] q(0.25, 0) = Requantize(%x)",
        "input %x : f32[1,1,2,2]\n%y : f32[1,1,2,2] = MaxPool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}",
        "input %x : f32[2]\n%y : f32[2] = Identity(%x)",
    ],
)
def test_drop_identity_keeps(lines: str) -> None:
    check_same(DropIdentity(), lines + "\noutput %y")


def test_fold_constants_evaluates_but_leaves_dequantize() -> None:
    before = """
        input %x : f32[2]
        const %c : s8[1,2] q(0.5, 0) = [[2, 4]]
        %r : s8[2] q(0.5, 0) = Reshape(%c) {shape=[2]}
        %f : f32[2] = DequantizeLinear(%r)
        %y : f32[2] = Add(%x, %f)
        output %y
        """
    check(
        FoldConstants(),
        before,
        """
        input %x : f32[2]
        const %r : s8[2] q(0.5, 0) = [2, 4]
        %f : f32[2] = DequantizeLinear(%r)
        %y : f32[2] = Add(%x, %f)
        output %y
        """,
    )
    check(
        FoldConstants(dequantize=True),
        before,
        "input %x : f32[2]\nconst %f : f32[2] = [1.0, 2.0]\n%y : f32[2] = Add(%x, %f)\noutput %y",
    )


def test_fold_constants_keeps_large_results_for_run_time() -> None:
    check_same(
        FoldConstants(limit_bytes=4),
        "input %x : f32[4]\nconst %c : f32[1] = [2.0]\n%e : f32[4] = Expand(%c) {shape=[4]}\n"
        "%y : f32[4] = Add(%x, %e)\noutput %y",
    )


def test_canonicalize_fc_gemm_with_alpha_and_beta() -> None:
    check(
        CanonicalizeFc(),
        """
        input %x : f32[1,2]
        const %w : f32[2,3] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        const %b : f32[1,3] = [[1.0, 2.0, 3.0]]
        %y : f32[1,3] = Gemm(%x, %w, %b) {alpha=2.0, beta=0.5}
        output %y
        """,
        """
        input %x : f32[1,2]
        const %w.ok : f32[3,2] = [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]
        const %b.o : f32[3] = [0.5, 1.0, 1.5]
        %y : f32[1,3] = FullyConnected(%x, %w.ok, %b.o)
        output %y
        """,
    )


def test_canonicalize_fc_matmul_keeps_quantised_weights_and_moves_their_axis() -> None:
    check(
        CanonicalizeFc(),
        """
        input %x : f32[1,2]
        const %w : s8[2,2] q([0.5, 0.25], [0, 0], axis=1) = [[1, 2], [3, 4]]
        %f : f32[2,2] = DequantizeLinear(%w)
        %y : f32[1,2] = MatMul(%x, %f)
        output %y
        """,
        """
        input %x : f32[1,2]
        const %f.ok : s8[2,2] q([0.5, 0.25], [0, 0], axis=0) = [[1, 3], [2, 4]]
        const %y.bias : f32[2] = [0.0, 0.0]
        %f.ok.real : f32[2,2] = DequantizeLinear(%f.ok)
        %y : f32[1,2] = FullyConnected(%x, %f.ok.real, %y.bias)
        output %y
        """,
    )


def test_canonicalize_fc_splits_a_gemm_of_two_activations() -> None:
    check(
        CanonicalizeFc(),
        """
        input %a : f32[2,3]
        input %b : f32[4,3]
        input %c : f32[4]
        %y : f32[2,4] = Gemm(%a, %b, %c) {transB=1}
        output %y
        """,
        """
        input %a : f32[2,3]
        input %b : f32[4,3]
        input %c : f32[4]
        %b.t : f32[3,4] = Transpose(%b) {perm=[1, 0]}
        %y.product : f32[2,4] = MatMul(%a, %b.t)
        %y : f32[2,4] = Add(%y.product, %c)
        output %y
        """,
    )


def test_canonicalize_fc_leaves_a_product_of_activations() -> None:
    check_same(
        CanonicalizeFc(),
        "input %a : f32[2,3]\ninput %b : f32[3,4]\n%y : f32[2,4] = MatMul(%a, %b)\noutput %y",
    )


FC = """
    input %x : f32[1,2]
    const %w : f32[2,2] = [[1.0, 2.0], [3.0, 4.0]]
    const %b : f32[2] = [{bias}]
    const %c : f32[{shape}] = {value}
    %p : f32[1,2] = FullyConnected(%x, %w, %b)
    %y : f32[{out}] = Add(%p, %c)
    output %y
    """


def test_fold_bias_adds() -> None:
    check(
        FoldBias(),
        FC.format(bias="1.0, 2.0", shape="1,2", value="[[0.5, 0.5]]", out="1,2"),
        """
        input %x : f32[1,2]
        const %w : f32[2,2] = [[1.0, 2.0], [3.0, 4.0]]
        const %y.bias : f32[2] = [1.5, 2.5]
        %y : f32[1,2] = FullyConnected(%x, %w, %y.bias) {float_weights=1}
        output %y
        """,
    )


def test_fold_bias_keeps_an_add_that_broadcasts_further() -> None:
    check_same(FoldBias(), FC.format(bias="1.0, 2.0", shape="2,1", value="[[0.5], [0.5]]", out="2,2"))


def test_fold_batchnorm_into_conv() -> None:
    check(
        FoldBatchNorm(),
        """
        input %x : f32[1,1,2,2]
        const %w : f32[2,1,1,1] = [[[[1.0]]], [[[2.0]]]]
        const %b : f32[2] = [1.0, 1.0]
        const %scale : f32[2] = [2.0, 4.0]
        const %shift : f32[2] = [0.5, 0.0]
        const %mean : f32[2] = [1.0, 0.0]
        const %var : f32[2] = [4.0, 1.0]
        %c : f32[1,2,2,2] = Conv(%x, %w, %b)
        %y : f32[1,2,2,2] = BatchNormalization(%c, %scale, %shift, %mean, %var) {epsilon=0.0}
        output %y
        """,
        """
        input %x : f32[1,1,2,2]
        const %w.bn : f32[2,1,1,1] = [[[[1.0]]], [[[8.0]]]]
        const %b.bn : f32[2] = [0.5, 4.0]
        %y : f32[1,2,2,2] = Conv(%x, %w.bn, %b.bn)
        output %y
        """,
    )


def test_fold_batchnorm_keeps_a_layer_that_others_read() -> None:
    graph = after(
        FoldBatchNorm(),
        """
        input %x : f32[1,1,2,2]
        const %w : f32[1,1,1,1] = [[[[1.0]]]]
        const %b : f32[1] = [1.0]
        const %var : f32[1] = [4.0]
        %c : f32[1,1,2,2] = Conv(%x, %w, %b)
        %y : f32[1,1,2,2] = BatchNormalization(%c, %b, %b, %b, %var) {epsilon=0.0}
        output %c
        output %y
        """,
    )
    assert ops(graph) == ["Conv", "Mul", "Add"]
    assert graph.consts["w"].item() == 1.0


def test_fold_batchnorm_alone_is_mul_and_add() -> None:
    check(
        FoldBatchNorm(),
        """
        input %x : f32[1,1,2]
        const %one : f32[1] = [2.0]
        const %zero : f32[1] = [0.0]
        const %var : f32[1] = [1.0]
        %y : f32[1,1,2] = BatchNormalization(%x, %one, %zero, %zero, %var) {epsilon=0.0}
        output %y
        """,
        """
        input %x : f32[1,1,2]
        const %y.scale : f32[1,1,1] = [[[2.0]]]
        const %y.shift : f32[1,1,1] = [[[0.0]]]
        %y.product : f32[1,1,2] = Mul(%x, %y.scale)
        %y : f32[1,1,2] = Add(%y.product, %y.shift)
        output %y
        """,
    )


def test_fuse_activation_float_chain() -> None:
    check(
        FuseActivation(),
        """
        input %x : f32[2]
        %a : f32[2] = Add(%x, %x)
        %r : f32[2] = Relu(%a)
        %y : f32[2] = Clip(%r) {max=6.0}
        output %y
        """,
        "input %x : f32[2]\n%y : f32[2] = Add(%x, %x) {act_max=6.0, act_min=0.0}\noutput %y",
    )


def test_fuse_activation_merges_clamps() -> None:
    check(
        FuseActivation(),
        "input %x : f32[2]\n%r : f32[2] = Relu(%x)\n%y : f32[2] = Clip(%r) {max=6.0, min=-1.0}\noutput %y",
        "input %x : f32[2]\n%y : f32[2] = Clip(%x) {max=6.0, min=0.0}\noutput %y",
    )


def test_fuse_activation_goes_in_front_of_a_max_pool() -> None:
    check(
        FuseActivation(),
        """
        input %x : f32[1,1,2,2]
        %a : f32[1,1,2,2] = Add(%x, %x)
        %m : f32[1,1,1,1] = MaxPool(%a) {kernel_shape=[2, 2]}
        %y : f32[1,1,1,1] = Relu(%m)
        output %y
        """,
        """
        input %x : f32[1,1,2,2]
        %a.clamped : f32[1,1,2,2] = Add(%x, %x) {act_min=0.0}
        %y : f32[1,1,1,1] = MaxPool(%a.clamped) {kernel_shape=[2, 2]}
        output %y
        """,
    )


def test_fuse_activation_needs_the_same_codes() -> None:
    quantised = """
        input %x : s8[2] q(0.5, 0)
        %a : s8[2] q(0.5, 3) = Add(%x, %x)
        %y : s8[2] q({scale}, 3) = Relu(%a)
        output %y
        """
    check_same(FuseActivation(), quantised.format(scale=0.25))
    check(
        FuseActivation(),
        quantised.format(scale=0.5),
        "input %x : s8[2] q(0.5, 0)\n%y : s8[2] q(0.5, 3) = Add(%x, %x) {act_min=0.0}\noutput %y",
    )


def test_fuse_activation_needs_a_single_reader() -> None:
    check_same(
        FuseActivation(),
        "input %x : f32[2]\n%a : f32[2] = Add(%x, %x)\n%y : f32[2] = Relu(%a)\noutput %y\noutput %a",
    )


PAD = """
    input %x : f32[1,1,2,2]
    const %w : f32[1,1,1,1] = [[[[1.0]]]]
    const %b : f32[1] = [0.0]
    %p : f32[1,{c},4,3] = Pad(%x) {{pads=[0, {pc}, 1, 0, 0, 0, 1, 1], value={value}}}
    %y : f32[1,{c},4,3] = {op}
    output %y
    """


@pytest.mark.parametrize(
    ("op", "value", "folded"),
    [
        ("MaxPool(%{x}) {{kernel_shape=[1, 1]{pads}}}", "-inf", ", pads=[1, 0, 1, 1]"),
        (
            "AveragePool(%{x}) {{{pads}kernel_shape=[1, 1]{more}}}",
            "0.0",
            "",
        ),
    ],
)
def test_fold_pad_into_pools(op: str, value: str, folded: str) -> None:
    pads = "count_include_pad=1, " if op.startswith("Average") else folded
    before = PAD.format(c=1, pc=0, value=value, op=op.format(x="p", pads="", more=""))
    after = op.format(x="x", pads=pads, more=", pads=[1, 0, 1, 1]")
    check(FoldPad(), before, f"input %x : f32[1,1,2,2]\n%y : f32[1,1,4,3] = {after}\noutput %y")


@pytest.mark.parametrize(("value", "folded"), [("-64.0", True), ("-63.5", False), ("0.0", False)])
def test_fold_pad_of_codes_into_max_pool_only_with_the_lowest_code(value: str, folded: bool) -> None:
    graph = after(
        FoldPad(),
        f"""
        input %x : s8[1,1,2,2] q(0.5, 0)
        %p : s8[1,1,4,3] q(0.5, 0) = Pad(%x) {{pads=[0, 0, 1, 0, 0, 0, 1, 1], value={value}}}
        %y : s8[1,1,4,3] q(0.5, 0) = MaxPool(%p) {{kernel_shape=[1, 1]}}
        output %y
        """,
    )
    assert ops(graph) == (["MaxPool"] if folded else ["Pad", "MaxPool"])


def test_fold_pad_into_conv_adds_to_its_pads() -> None:
    check(
        FoldPad(),
        """
        input %x : f32[1,1,2,2]
        const %w : f32[1,1,3,3] = [[[[1, 1, 1], [1, 1, 1], [1, 1, 1]]]]
        const %b : f32[1] = [0.0]
        %p : f32[1,1,4,3] = Pad(%x) {pads=[0, 0, 1, 0, 0, 0, 1, 1]}
        %y : f32[1,1,2,3] = Conv(%p, %w, %b) {pads=[0, 1, 0, 1]}
        output %y
        """,
        """
        input %x : f32[1,1,2,2]
        const %w : f32[1,1,3,3] = [[[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]]]
        const %b : f32[1] = [0.0]
        %y : f32[1,1,2,3] = Conv(%x, %w, %b) {pads=[1, 1, 1, 2]}
        output %y
        """,
    )


@pytest.mark.parametrize(
    "pad",
    ["pads=[0, 0, 1, 0, 0, 0, 1, 1], value=1.0", 'mode="edge", pads=[0, 0, 1, 0, 0, 0, 1, 1]'],
)
def test_fold_pad_keeps_other_values_and_modes(pad: str) -> None:
    check_same(
        FoldPad(),
        f"""
        input %x : f32[1,1,2,2]
        const %w : f32[1,1,1,1] = [[[[1.0]]]]
        const %b : f32[1] = [0.0]
        %p : f32[1,1,4,3] = Pad(%x) {{{pad}}}
        %c : f32[1,1,4,3] = Conv(%p, %w, %b)
        %y : f32[1,1,4,3] = MaxPool(%p) {{kernel_shape=[1, 1]}}
        output %c
        output %y
        """,
    )


def test_merge_reshape_chain_and_swap() -> None:
    check(
        MergeReshape(),
        """
        input %x : f32[2,3]
        %a : f32[6] = Reshape(%x) {shape=[6]}
        %r : f32[6] = Relu(%a)
        %y : f32[3,2] = Reshape(%r) {shape=[3, 2]}
        output %y
        """,
        """
        input %x : f32[2,3]
        %r.early : f32[2,3] = Relu(%x)
        %y : f32[3,2] = Reshape(%r.early) {shape=[3, 2]}
        output %y
        """,
    )


def test_merge_reshape_keeps_one_with_other_readers() -> None:
    check_same(
        MergeReshape(),
        "input %x : f32[2,3]\n%a : f32[6] = Reshape(%x) {shape=[6]}\n%y : f32[6] = Relu(%a)\noutput %a\noutput %y",
    )


def test_cse_nodes_and_constants() -> None:
    check(
        Cse(),
        """
        input %x : f32[2]
        const %c : f32[2] = [1.0, 2.0]
        const %d : f32[2] = [1.0, 2.0]
        %a : f32[2] = Add(%x, %c)
        %b : f32[2] = Add(%x, %d)
        %y : f32[2] = Mul(%a, %b)
        output %y
        """,
        """
        input %x : f32[2]
        const %c : f32[2] = [1.0, 2.0]
        %a : f32[2] = Add(%x, %c)
        %y : f32[2] = Mul(%a, %a)
        output %y
        """,
    )


def test_cse_keeps_other_attributes_types_and_outputs() -> None:
    check_same(
        Cse(),
        """
        input %x : f32[2]
        %a : s8[2] q(0.5, 0) = QuantizeLinear(%x) {dtype="s8"}
        %b : s8[2] q(0.25, 0) = QuantizeLinear(%x) {dtype="s8"}
        %c : f32[2] = LeakyRelu(%x) {alpha=0.1}
        %d : f32[2] = LeakyRelu(%x) {alpha=0.2}
        %e : f32[2] = LeakyRelu(%x) {alpha=0.2}
        output %a
        output %b
        output %c
        output %d
        output %e
        """,
    )


def test_dead_code() -> None:
    check(
        DeadCode(),
        "input %x : f32[2]\nconst %c : f32[1] = [1.0]\n%a : f32[2] = Abs(%x)\n%y : f32[2] = Neg(%x)\noutput %y",
        "input %x : f32[2]\n%y : f32[2] = Neg(%x)\noutput %y",
    )
    check_same(DeadCode(), "input %x : f32[2]\n%y : f32[2] = Neg(%x)\noutput %y")
