"""Constant operands, whether stored as numbers or as quantised integers after a DequantizeLinear."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.graph import numerics
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import QuantParams, TensorType, type_of


@dataclass(frozen=True)
class ConstOperand:
    """A constant as it is stored; `dequantized` says that the reader sees its real values."""

    array: np.ndarray
    type: TensorType
    dequantized: bool

    def real(self) -> np.ndarray:
        """Return the real values in float32."""
        if self.type.quant is None:
            return self.array.astype(np.float32)
        return numerics.dequantize(self.array, self.type.quant)

    def transposed(self) -> ConstOperand:
        """Return it with two axes swapped."""
        q = self.type.quant
        if q is not None and q.axis is not None:
            q = replace(q, axis=1 - q.axis)
        array = np.ascontiguousarray(self.array.T)
        return replace(self, array=array, type=replace(self.type, shape=array.shape, quant=q))

    def scaled(self, factor: float) -> ConstOperand:
        """Return it with every real value multiplied by `factor`; integers keep their codes."""
        if factor == 1.0:
            return self
        q = self.type.quant
        if q is None:
            return replace(self, array=(self.array * np.float32(factor)).astype(self.array.dtype))
        scale = tuple(float(np.float32(s) * np.float32(factor)) for s in q.scale)
        return replace(self, type=replace(self.type, quant=replace(q, scale=scale)))

    def vector(self, length: int) -> ConstOperand | None:
        """Return it as `length` elements, repeating a single one; None when it has another number."""
        if self.array.size not in (1, length):
            return None
        array = np.ascontiguousarray(np.broadcast_to(self.array.reshape(-1), (length,)))
        q = self.type.quant
        if q is not None and q.axis is not None:
            q = replace(q, axis=0) if len(q.scale) == length else QuantParams(q.scale[:1], q.zero_point[:1])
        return replace(self, array=array, type=replace(self.type, shape=(length,), quant=q, layout=""))


def find_const(editor: GraphEditor, value: str) -> ConstOperand | None:
    """Return the constant that `value` is, directly or through a DequantizeLinear."""
    if value in editor.consts:
        return ConstOperand(editor.consts[value], editor.types[value], False)
    node = editor.producer(value)
    if node is not None and node.op == "DequantizeLinear" and node.inputs[0] in editor.consts:
        source = node.inputs[0]
        return ConstOperand(editor.consts[source], editor.types[source], True)
    return None


def add_operand(editor: GraphEditor, base: str, operand: ConstOperand) -> str:
    """Add a constant operand and return the value that reads it."""
    const = editor.add_const(base, operand.array, operand.type)
    if not operand.dequantized:
        return const
    real = type_of(operand.real())
    out = editor.add_value(f"{base}.real", real)
    editor.add_node("DequantizeLinear", (const,), (out,))
    return out


def clamp_bounds(node: Node) -> tuple[float, float] | None:
    """Return the bounds of a Relu or Clip; None when they are computed."""
    if node.op == "Relu":
        return 0.0, np.inf
    if any(node.inputs[1:]):
        return None
    return node.float_("min"), node.float_("max")


def dequantized_from(editor: GraphEditor, value: str) -> str | None:
    """Return the quantised value that a DequantizeLinear turns into `value`."""
    node = editor.producer(value) if value else None
    return node.inputs[0] if node is not None and node.op == "DequantizeLinear" else None
