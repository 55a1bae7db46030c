"""What rewrites have in common: they turn one node into simpler ones, which a `Chain` collects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode

MICROSOFT = "com.microsoft"
OPSET = 13  # axes of Reduce operators are attributes, those of Squeeze inputs

Rewrite = Callable[[OnnxNode, Builder], list[OnnxNode]]
Rewrites = Mapping[tuple[str, str], Rewrite]
"""By domain and operator."""


class Chain:
    """Collects the nodes that replace one node; they are ONNX's operators of `opset` where nothing else is said."""

    def __init__(self, node: OnnxNode, b: Builder, opset: int = OPSET) -> None:
        self.node, self.b, self.opset = node, b, opset
        self.nodes: list[OnnxNode] = []

    def add(self, op: str, *inputs: str, out: str = "", version: int = 0, **attrs: Any) -> str:
        """Add a node and return its output, `out` or a new value."""
        name = out or self._fresh(op)
        self._append(op, inputs, (name,), version, attrs)
        return name

    def several(self, op: str, count: int, *inputs: str) -> tuple[str, ...]:
        """Add a node with `count` outputs and return them."""
        names = tuple(self._fresh(op) for _ in range(count))
        self._append(op, inputs, names, 0, {})
        return names

    def _fresh(self, op: str) -> str:
        return self.b.fresh(f"{self.out}.{op.lower()}")

    def _append(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str], version: int, attrs: Mapping[str, Any]
    ) -> None:
        names = list(inputs)
        while names and not names[-1]:
            names.pop()
        self.nodes.append(replace(self.node.new(op, names, outputs, **attrs), version=version or self.opset))

    def const(self, array: np.ndarray) -> str:
        """Add a constant."""
        return self.b.add_const(f"{self.out}.const", array)

    def floats(self, values: Any) -> str:
        """Add a constant of float32."""
        return self.const(np.asarray(values, np.float32))

    def ints(self, *values: int) -> str:
        """Add a list of integers."""
        return self.const(np.asarray(values, np.int64))

    def shaped(self, value: str, shape: Sequence[int], out: str = "") -> str:
        """Add a Reshape."""
        return self.add("Reshape", value, self.ints(*shape), out=out)

    @property
    def out(self) -> str:
        """The first output of the replaced node."""
        return self.node.outputs[0]
