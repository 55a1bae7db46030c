"""Float networks with states, drawn from a seed: LSTM and GRU layers that see a step, or a few, at each call.

    stream = draw_stream(seed)      # the same network and data each time

The data and their size wander slowly, so that a state is that of many steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GATES = {"LSTM": 4, "GRU": 3}
STATES = {"LSTM": ("h", "c"), "GRU": ("h",)}


@dataclass(frozen=True)
class Stream:
    """A network, its layers' operator, its states with what they are at the next call, the shape of its input x."""

    model: onnx.ModelProto
    op: str
    states: dict[str, str]
    shape: tuple[int, ...]

    def sequence(self, seed: int, count: int) -> list[dict[str, np.ndarray]]:
        """Return the inputs of so many calls in a row."""
        rng = np.random.default_rng(seed)
        steps, _, inputs = self.shape
        x, sizes = np.zeros((count * steps, inputs)), np.zeros(count * steps)
        for t in range(1, len(x)):
            x[t] = 0.8 * x[t - 1] + 0.6 * rng.normal(0, 1, inputs)
            sizes[t] = 0.95 * sizes[t - 1] + 0.12 * rng.normal()
        x *= np.exp(sizes)[:, None]
        return [{"x": part.astype(np.float32)} for part in x.reshape(count, steps, 1, inputs)]


def draw_stream(seed: int, *, packed: bool = False) -> Stream:
    """Return one or two layers of 16 to 48 cells, and a dense layer on their last result.

    States of two layers lie in one tensor, sliced and joined; with `packed` all states do.
    """
    rng = np.random.default_rng(seed)
    op, steps, inputs, hidden = (
        ("LSTM", "GRU")[seed % 2],
        (1, 1, 4)[seed % 3],
        *(int(n) for n in rng.integers(16, 48, 2)),
    )
    layers, reset, kinds = 1 + seed // 2 % 2, int(rng.integers(2)), STATES[op]
    consts: dict[str, np.ndarray] = {"axis": np.array([1]), "first": np.array([0])}
    consts |= {f"n{i}": np.array([i]) for i in range(layers * len(kinds) + 1)}
    nodes, x, width = list[onnx.NodeProto](), "x", inputs
    for layer in range(layers):
        sizes = {
            "W": (1, GATES[op] * hidden, width),
            "R": (1, GATES[op] * hidden, hidden),
            "B": (1, 2 * GATES[op] * hidden),
        }
        consts |= {f"{n}{layer}": (rng.standard_t(5, s) * (0.2 if n == "B" else 0.8 / s[2] ** 0.5)).astype(np.float32)
                   for n, s in sizes.items()}  # fmt: skip
        for index, name in enumerate(kinds):
            at = layer + (layers * index if packed else 0)
            given = ["s" if packed else name, f"n{at}", f"n{at + 1}", "first"]
            nodes.append(helper.make_node("Slice", given, [f"{name}{layer}"], name=f"cut_{name}{layer}"))
        attrs = {"linear_before_reset": reset} if op == "GRU" else {}
        given = [x, *(f"{n}{layer}" for n in sizes), "", *(f"{name}{layer}" for name in kinds)]
        results = [f"y{layer}", *(f"{name}{layer}_next" for name in kinds)]
        nodes.append(helper.make_node(op, given, results, name=f"layer{layer}", hidden_size=hidden, **attrs))
        nodes.append(helper.make_node("Squeeze", [f"y{layer}", "axis"], [f"x{layer + 1}"]))
        x, width = f"x{layer + 1}", hidden
    ends = {name: [f"{name}{layer}_next" for layer in range(layers)] for name in kinds}
    ends = {"s": [*chain(*ends.values())]} if packed else ends
    nodes += [helper.make_node("Concat", parts, [f"{name}_next"], name=f"join_{name}", axis=0)
              for name, parts in ends.items()]  # fmt: skip
    consts |= {"rows": np.array([-1, hidden]), "k": (rng.standard_t(5, (hidden, 8)) / hidden**0.5).astype(np.float32)}
    nodes += [
        helper.make_node("Reshape", [x, "rows"], ["flat"]),
        helper.make_node("MatMul", ["flat", "k"], ["y"], name="dense"),
    ]
    states = {name: f"{name}_next" for name in ends}
    shapes = {name: (len(parts), 1, hidden) for name, parts in ends.items()}
    return Stream(_model(nodes, consts, shapes, (steps, 1, inputs)), op, states, (steps, 1, inputs))


def _model(
    nodes: list[onnx.NodeProto], consts: dict[str, np.ndarray], states: dict[str, tuple[int, ...]], x: tuple[int, ...]
) -> onnx.ModelProto:
    inputs, outputs = {"x": x, **states}, {"y": (x[0], 8), **{f"{name}_next": s for name, s in states.items()}}
    sides = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in side.items()] for side in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "stream", *sides, [numpy_helper.from_array(a, n) for n, a in consts.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
