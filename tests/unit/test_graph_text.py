"""The text form of a graph: what is dumped can be read back, and DOT output is well formed."""

from __future__ import annotations

import numpy as np
import pytest
from passes_text import body_of, graph_of

from glowc.errors import GlowcError, InternalError
from glowc.graph.graph import GraphEditor
from glowc.graph.text import dump, parse

BODIES = {
    "quantised": """
        input %x : s8[1,4] q(0.5, -3)
        const %w : s8[2,4] q([0.1, 0.2], [0, 0], axis=0) = [[1, 2, 3, 4], [5, 6, 7, 8]]
        const %b : s32[2] = [-1, 2]
        %y : s8[1,2] q(0.25, 0) = FullyConnected(%x, %w, %b) {act_max=6.0} from "dense/MatMul", "relu;1"
        output %y
        """,
    "odd names": """
        input %"in:0" : f32[2,2]
        const %_c : f32[] = 0.1
        %"a b, c" : f32[2,2] = Add(%"in:0", %_c) from "x} from \\"y\\""
        %z.1 : f32[2,2] = Clip(%"a b, c", _, %_c)
        output %z.1
        """,
    "attributes": """
        input %x : f32[1,2,3,4]@nhwc
        %y : f32[1,2] = Thing(%x) {axes=[], mode="a, b}", neg=-inf, pads=[0, -1], r=1e-05, words=["p", "q"]}
        output %y
        """,
    "several outputs": """
        input %x : f32[4]
        %a : f32[2], _, %b : f32[2] = Split(%x) {axis=0}
        output %a
        output %b
        """,
    "constants": """
        const %e : f32[0] = []
        const %i : s64[2] = [9223372036854775807, -1]
        const %n : f32[3] = [nan, inf, -inf]
        const %t : bool[2] = [True, False]
        %y : f32[3] = Thing(%e, %i, %n, %t)
        output %y
        """,
}


@pytest.mark.parametrize("name", BODIES)
def test_dump_parse_round_trip(name: str) -> None:
    graph = graph_of(BODIES[name])
    text = dump(graph)
    again = parse(text)
    assert dump(again) == text
    assert again.types == graph.types
    assert [(n.op, n.inputs, n.outputs, n.attrs, n.origin) for n in again.nodes] == [
        (n.op, n.inputs, n.outputs, n.attrs, n.origin) for n in graph.nodes
    ]
    for key, array in graph.consts.items():
        np.testing.assert_array_equal(again.consts[key], array)


def test_parse_gives_the_written_graph() -> None:
    lines = [line.strip() for line in BODIES["quantised"].strip().splitlines()]
    assert body_of(graph_of(BODIES["quantised"])).splitlines() == lines


def test_large_constants_are_digests_and_can_be_given() -> None:
    array = np.arange(100, dtype=np.float32)
    graph = graph_of("const %c : f32[100] = #0\n%y : f32[100] = Relu(%c)\noutput %y")
    given = parse(dump(graph), {"c": array})
    np.testing.assert_array_equal(given.consts["c"], array)
    assert dump(given) != dump(graph)


@pytest.mark.parametrize("line", ["nonsense", "%y : f32[1] = Relu(x)", "input %x : f99[1]", "input %x : f32[1"])
def test_parse_names_the_bad_line(line: str) -> None:
    with pytest.raises(GlowcError, match="line 2"):
        graph_of(line)


def test_editor_places_new_nodes_in_front_of_their_readers() -> None:
    graph = graph_of("""
        input %x : f32[2]
        %a : f32[2] = Relu(%x)
        %b : f32[2] = Tanh(%a)
        %c : f32[2] = Relu(%x)
        %d : f32[2] = Add(%b, %c)
        output %d
        """)
    editor = GraphEditor(graph)
    late = editor.add_value("late", editor.types["a"])
    editor.add_node("Neg", ("a",), (late,))
    tanh = next(editor.each("Tanh"))
    editor.update(tanh, inputs=(late,))
    assert [node.op for node in editor.finish().nodes] == ["Relu", "Neg", "Tanh", "Relu", "Add"]


def test_editor_reports_cycles_and_lost_values() -> None:
    graph = graph_of("input %x : f32[2]\n%a : f32[2] = Relu(%x)\n%b : f32[2] = Tanh(%a)\noutput %b")
    editor = GraphEditor(graph)
    editor.update(next(editor.each("Relu")), inputs=("b",))
    with pytest.raises(InternalError, match="cycle"):
        editor.finish()
    editor = GraphEditor(graph)
    editor.remove(next(editor.each("Relu")))
    with pytest.raises(InternalError, match="nothing computes a"):
        editor.finish()


def test_editor_bypass_keeps_the_name_of_an_output() -> None:
    graph = graph_of("input %x : f32[2]\n%a : f32[2] = Relu(%x)\n%b : f32[2] = Identity(%a)\noutput %b")
    editor = GraphEditor(graph)
    assert editor.bypass(next(editor.each("Identity")), "a")
    assert body_of(editor.finish()) == "input %x : f32[2]\n%b : f32[2] = Relu(%x)\noutput %b"
