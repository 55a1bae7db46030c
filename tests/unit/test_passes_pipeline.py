"""The pipeline: it changes no answer, leaves no Transpose inside a CNN, and its options do what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from passes_text import graph_of

from glowc.errors import GlowcError, InternalError
from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.graph.text import parse
from glowc.ops.interp import run_graph
from glowc.passes import pipeline
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.pipeline import PIPELINE, Repeat, apply_spec, flatten, pass_names, run_pipeline

QUANTISED = """
    input %x : s8[1,3,8,8]
    const %w : s8[4,3,3,3] q([0.1, 0.2, 0.3, 0.4], [0, 0, 0, 0], axis=0) = #0
    const %w2 : s8[4,4,3,3] q(0.01, 3) = #0
    const %fw : s8[64,5] q(0.01, 0) = #0
    const %b : s32[4] q([0.01, 0.02, 0.03, 0.04], [0, 0, 0, 0], axis=0) = [100, -200, 300, -400]
    const %fb : s32[5] q(0.001, 0) = [1, 2, 3, 4, 5]
    %xq : s8[1,3,8,8] q(0.1, -128) = AssignQuant(%x)
    %xf : f32[1,3,8,8] = DequantizeLinear(%xq)
    %wf : f32[4,3,3,3] = DequantizeLinear(%w)
    %w2f : f32[4,4,3,3] = DequantizeLinear(%w2)
    %bf : f32[4] = DequantizeLinear(%b)
    %c : f32[1,4,8,8] = Conv(%xf, %wf, %bf) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}
    %r : f32[1,4,8,8] = Relu(%c)
    %q : u8[1,4,8,8] q(20.0, 0) = QuantizeLinear(%r) {dtype="u8"}
    %d : f32[1,4,8,8] = DequantizeLinear(%q)
    %c2 : f32[1,4,8,8] = Conv(%d, %w2f) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}
    %q2 : s8[1,4,8,8] q(70.0, -12) = QuantizeLinear(%c2) {dtype="s8"}
    %d2 : f32[1,4,8,8] = DequantizeLinear(%q2)
    %a : f32[1,4,8,8] = Add(%d, %d2)
    %q3 : s8[1,4,8,8] q(70.0, 1) = QuantizeLinear(%a) {dtype="s8"}
    %d3 : f32[1,4,8,8] = DequantizeLinear(%q3)
    %m : f32[1,4,4,4] = MaxPool(%d3) {kernel_shape=[2, 2], strides=[2, 2]}
    %s : f32[1,64] = Reshape(%m) {shape=[1, 64]}
    %fwf : f32[64,5] = DequantizeLinear(%fw)
    %fbf : f32[5] = DequantizeLinear(%fb)
    %mm : f32[1,5] = MatMul(%s, %fwf)
    %y : f32[1,5] = Add(%mm, %fbf)
    %yq : s8[1,5] q(500.0, 3) = QuantizeLinear(%y) {dtype="s8"}
    %o : f32[1,5] = DequantizeLinear(%yq)
    output %o
    """

FLOAT = """
    input %x : f32[1,3,8,8]
    const %w : f32[4,3,3,3] = #0
    const %w2 : f32[4,1,3,3] = #0
    const %k : f32[4] = [1.0, 2.0, 3.0, 4.0]
    const %p : f32[4,1,1] = [[[1.0]], [[0.5]], [[2.0]], [[1.5]]]
    const %fw : f32[8,5] = #0
    %x1 : f32[1,3,10,10] = Pad(%x) {pads=[0, 0, 1, 1, 0, 0, 1, 1]}
    %c : f32[1,4,8,8] = Conv(%x1, %w) {kernel_shape=[3, 3]}
    %a : f32[1,4,8,8] = Add(%c, %p)
    %r : f32[1,4,8,8] = Relu(%a)
    %d : f32[1,4,8,8] = Conv(%r, %w2) {group=4, kernel_shape=[3, 3], pads=[1, 1, 1, 1]}
    %s : f32[1,4,8,8] = Add(%d, %r)
    %t : f32[1,4,8,8] = Mul(%s, %p)
    %u : f32[1,8,8,8] = Concat(%t, %r) {axis=1}
    %v : f32[1,8,4,4] = AveragePool(%u) {kernel_shape=[2, 2], strides=[2, 2]}
    %g : f32[1,8,1,1] = ReduceMean(%v) {axes=[2, 3], keepdims=1}
    %h : f32[1,8] = Reshape(%g) {shape=[1, 8]}
    %y : f32[1,5] = Gemm(%h, %fw) {alpha=0.5}
    %z : f32[1,5] = Softmax(%y) {axis=1}
    output %z
    output %u
    """


def random_graph(body: str) -> Graph:
    """Return the graph with random numbers in its large constants."""
    graph = graph_of(body)
    rng = np.random.default_rng(1)
    consts = dict(graph.consts)
    for name, array in consts.items():
        if array.size > 8:
            integer = array.dtype.kind == "i"
            values = rng.integers(-100, 100, array.shape) if integer else rng.normal(size=array.shape)
            consts[name] = values.astype(array.dtype)
    return replace(graph, consts=consts)


def random_inputs(graph: Graph) -> dict[str, np.ndarray]:
    """Return random arrays for the inputs of `graph`."""
    rng = np.random.default_rng(2)
    return {
        name: (rng.normal(size=t.shape) * (50 if t.dtype.is_integer else 1)).astype(t.dtype.numpy)
        for name, t in ((name, graph.types[name]) for name in graph.inputs)
    }


@pytest.mark.parametrize("body", [QUANTISED, FLOAT], ids=["quantised", "float"])
def test_every_pass_keeps_the_answer(body: str) -> None:
    graph = random_graph(body)
    inputs = random_inputs(graph)
    wanted = run_graph(graph, inputs)
    before = [graph]

    def compare(name: str, now: Graph) -> None:
        if now is before[0]:
            return
        before[0] = now
        for key, array in run_graph(now, inputs).items():
            step = 500.0 if body is QUANTISED else 0.0  # a sum in another order may round to the next code
            np.testing.assert_allclose(array, wanted[key], rtol=1e-4, atol=1e-5 + step, err_msg=name)

    run_pipeline(graph, on_pass=compare)


def test_quantised_network_has_only_integer_operators() -> None:
    graph = run_pipeline(random_graph(QUANTISED))
    assert [node.op for node in graph.nodes] == [
        "Conv", "Conv", "Add", "MaxPool", "Reshape", "FullyConnected", "DequantizeLinear",
    ]  # fmt: skip
    assert graph.nodes[0].attrs["planar"] == 1
    assert graph.nodes[0].attrs["act_min"] == 0.0
    assert all(graph.types[name].dtype.value != "u8" for name in graph.types)


def test_float_network_has_one_transpose_at_the_edge() -> None:
    graph = run_pipeline(random_graph(FLOAT))
    transposes = [node for node in graph.nodes if node.op == "Transpose"]
    assert [node.outputs for node in transposes] == [("u",)]


def test_dump_dir_and_stop_after(tmp_path: Path) -> None:
    graph = random_graph(QUANTISED)
    result = run_pipeline(graph, dump_dir=tmp_path, stop_after="move-qdq")
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files[:2] == ["00-import.txt", "01-propagate-quant.txt"]
    assert files[-1].endswith("-move-qdq.txt")
    assert any(node.op == "DequantizeLinear" for node in result.nodes)
    again = parse((tmp_path / files[-1]).read_text(), result.consts)
    assert len(again.nodes) == len(result.nodes)


@pytest.mark.parametrize("option", [{"stop_after": "fold-qqd"}, {"passes": "-fold-qqd"}])
def test_unknown_pass_names_a_near_one(option: dict[str, str]) -> None:
    with pytest.raises(GlowcError, match="no pass named 'fold-qqd'") as caught:
        run_pipeline(random_graph(FLOAT), **option)  # type: ignore[arg-type]
    assert "fold-qdq" in str(caught.value)


def test_pass_list_leaves_out_and_sets_options() -> None:
    steps = apply_spec(PIPELINE, "-cse, fold-pad{limit=2},+dead-code")
    assert "cse" not in pass_names(steps)
    assert {getattr(p, "limit", 2) for p in flatten(steps) if p.name == "fold-pad"} == {2}
    assert apply_spec(PIPELINE, "") == PIPELINE


@pytest.mark.parametrize("spec", ["fold-pad{limit}", "fold-pad{colour=1}", "cse{a=1}", "cse cse", "{a=1}"])
def test_bad_pass_list_is_a_user_error(spec: str) -> None:
    with pytest.raises(GlowcError):
        apply_spec(PIPELINE, spec)


def test_a_pass_that_breaks_the_graph_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaks(RewritePass):
        name = "breaks"

        def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
            changed = node.op == "Neg"
            if changed:
                editor.update(node, op="Reshape", attrs={"shape": (7,)})
            return changed

    monkeypatch.setattr(pipeline, "PIPELINE", (Breaks(),))
    with pytest.raises(InternalError, match="after pass breaks"):
        run_pipeline(graph_of("input %x : f32[2]\n%y : f32[2] = Neg(%x)\noutput %y"))


def test_passes_that_undo_each_other_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Swap(RewritePass):
        def __init__(self, name: str, old: str, new: str) -> None:
            self.name, self.old, self.new = name, old, new  # type: ignore[misc]

        def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
            if node.op == self.old:
                editor.update(node, op=self.new)
            return node.op == self.old

    monkeypatch.setattr(pipeline, "PIPELINE", (Repeat((Swap("a", "Neg", "Abs"), Swap("b", "Abs", "Neg"))),))
    with pytest.raises(InternalError, match="without end"):
        run_pipeline(graph_of("input %x : f32[2]\n%y : f32[2] = Neg(%x)\noutput %y"))
