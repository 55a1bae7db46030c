"""Dynamic quantisation of onnxruntime (DynamicQuantizeMatMul, MatMulIntegerToFloat) -> ONNX's own operators.

The roundings stay: float32(sum) * (a_scale * b_scale) + bias. Source: onnxruntime's ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode

MICROSOFT = "com.microsoft"


class _Chain:
    """Collects the nodes that replace one node."""

    def __init__(self, node: OnnxNode, b: Builder) -> None:
        self.node, self.b = node, b
        self.nodes: list[OnnxNode] = []

    def add(self, op: str, inputs: tuple[str, ...], outputs: int = 1, **attrs: int) -> tuple[str, ...]:
        outs = tuple(self.b.fresh(f"{self.node.outputs[0]}.{op.lower()}") for _ in range(outputs))
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        self.nodes.append(replace(self.node.new(op, inputs, outs, **attrs), version=13))
        return outs

    def to_float(self, a: str, b: str, points: tuple[str, str], scales: tuple[str, str], bias: str) -> list[OnnxNode]:
        """Return the nodes so far, the product, its scaling and the bias."""
        (product,) = self.add("MatMulInteger", (a, b, *points))
        (real,) = self.add("Cast", (product,), to=1)
        (scale,) = self.add("Mul", scales)
        (y,) = self.add("Mul", (real, scale))
        if bias:
            (y,) = self.add("Add", (y, bias))
        self.nodes[-1] = replace(self.nodes[-1], outputs=self.node.outputs)
        return self.nodes


def dynamic_quantize_matmul(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """DynamicQuantizeMatMul(A, B, b_scale, b_zero_point, bias)."""
    chain = _Chain(node, b)
    codes, scale, zero = chain.add("DynamicQuantizeLinear", (node.inputs[0],), 3)
    return chain.to_float(codes, node.inputs[1], (zero, node.input(3)), (scale, node.inputs[2]), node.input(4))


def matmul_integer_to_float(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """MatMulIntegerToFloat(A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias)."""
    scales = (node.inputs[2], node.inputs[3])
    return _Chain(node, b).to_float(
        node.inputs[0], node.inputs[1], (node.input(4), node.input(5)), scales, node.input(6)
    )


Rewrite = Callable[[OnnxNode, Builder], list[OnnxNode]]

REWRITES: Mapping[tuple[str, str], Rewrite] = {
    (MICROSOFT, "DynamicQuantizeMatMul"): dynamic_quantize_matmul,
    (MICROSOFT, "MatMulIntegerToFloat"): matmul_integer_to_float,
}
