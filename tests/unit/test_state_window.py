"""state-window: what is a window of time, what is none, and that no byte changes over several inferences."""

from __future__ import annotations

import numpy as np
import pytest
from passes_text import graph_of, ops

from glowc.board import load_cpu
from glowc.graph.graph import Graph
from glowc.lower.lowering import lower_graph
from glowc.ops.verify import verify
from glowc.passes.base import PassCtx
from glowc.passes.time.states import StateWindow
from glowc.program.interp import Memory, run_program

_NET = """
input %x : s8[1,{new},3] q(0.5, 1)
%w : s8[1,{length},3] q(0.5, 1) = Concat(%old, %x) {{axis=1}}
%next : s8[1,{kept},3] q(0.5, 1) = Slice(%w) {{axes=[1], ends=[{end}], starts=[{start}]}}
%y : s8[1,{length},3] q({scale}, -3) = Sigmoid(%w)
output %y
state %old : s8[1,{kept},3] q(0.5, 1) next %next = {initial}
"""


def net(new: int, kept: int, start: int, scale: float = 0.25) -> Graph:
    """A state of `kept` steps and `new` ones, of which those from `start` on stay."""
    initial = np.arange(3 * kept).reshape(1, kept, 3).tolist()
    end, length = start + kept, new + kept
    graph = graph_of(_NET.format(new=new, kept=kept, start=start, end=end, length=length, scale=scale, initial=initial))
    verify(graph)
    return graph


def answers(graph: Graph, calls: list[np.ndarray]) -> list[bytes]:
    """Run the program several times with one memory."""
    program = lower_graph(graph, load_cpu("cortex-m4"))
    memory = Memory(program, None, 0)
    return [run_program(program, {"x": x}, memory=memory)["y"].tobytes() for x in calls]


@pytest.mark.parametrize(("new", "kept"), [(1, 4), (2, 3), (3, 3), (4, 1)])
def test_a_window_of_time_answers_as_the_state_did(new: int, kept: int) -> None:
    graph = net(new, kept, new)
    window = StateWindow().run(graph, PassCtx())
    verify(window)
    assert ops(window) == ["TimeWindow", "Sigmoid"]
    assert not window.states
    rng = np.random.default_rng(new)
    calls = [rng.integers(-128, 128, (1, new, 3)).astype(np.int8) for _ in range(5)]
    assert answers(window, calls) == answers(graph, calls)


def test_first_steps_that_stay_are_no_window() -> None:
    graph = net(2, 3, 1)
    assert StateWindow().run(graph, PassCtx()) is graph


def test_a_state_that_something_else_reads_stays() -> None:
    text = _NET.format(new=1, kept=2, start=1, end=3, length=3, scale=0.25, initial=[[[0] * 3] * 2])
    text = text.replace("output %y", "%z : s8[1,2,3] q(0.25, -3) = Sigmoid(%old)\noutput %y\noutput %z")
    graph = graph_of(text)
    assert StateWindow().run(graph, PassCtx()) is graph
