"""Quantised operators -> ONNX's own ones on floats and codes.

QOperator models (QLinearConv and its kin) become DequantizeLinear, float operator, QuantizeLinear. The passes fold that
form into integer operators like any QDQ model. Scale and zero point follow their tensor in the inputs; the sources are
ONNX QLinearConv-10, QLinearMatMul-21 and onnxruntime's ContribOperators.md.

Dynamic quantisation of onnxruntime (DynamicQuantizeMatMul, MatMulIntegerToFloat) keeps its roundings: float32(sum) *
(a_scale * b_scale) + bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import MICROSOFT, OPSET, Chain, Rewrites
from glowc.frontend.onnx_model import OnnxNode


def _to_float(
    chain: Chain, a: str, b: str, points: tuple[str, str], scales: tuple[str, str], bias: str
) -> list[OnnxNode]:
    """Return the nodes so far, the product, its scaling and the bias."""
    real = chain.add("Cast", chain.add("MatMulInteger", a, b, *points), to=1)
    y = chain.add("Mul", real, chain.add("Mul", *scales))
    if bias:
        chain.add("Add", y, bias)
    chain.nodes[-1] = replace(chain.nodes[-1], outputs=chain.node.outputs)
    return chain.nodes


def dynamic_quantize_matmul(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """DynamicQuantizeMatMul(A, B, b_scale, b_zero_point, bias)."""
    chain = Chain(node, b)
    codes, scale, zero = chain.several("DynamicQuantizeLinear", 3, node.inputs[0])
    return _to_float(chain, codes, node.inputs[1], (zero, node.input(3)), (scale, node.inputs[2]), node.input(4))


def matmul_integer_to_float(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """MatMulIntegerToFloat(A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias)."""
    scales = (node.inputs[2], node.inputs[3])
    return _to_float(
        Chain(node, b), node.inputs[0], node.inputs[1], (node.input(4), node.input(5)), scales, node.input(6)
    )


class _Island(Chain):
    """The float operator, between codes."""

    def __init__(self, node: OnnxNode, b: Builder) -> None:
        super().__init__(node, b, max(node.version, OPSET))

    def real(self, first: int, axis: int = 1) -> str:
        """Return the real value of the tensor at input `first`, whose scale and zero point follow it."""
        return self.add("DequantizeLinear", *(self.node.input(i) for i in range(first, first + 3)), axis=axis)

    def done(self, value: str, scale: str, zero: str) -> list[OnnxNode]:
        """Quantise `value` as the node's output; without a scale the output stays float."""
        if scale:
            self.add("QuantizeLinear", value, scale, zero, out=self.out, version=OPSET)
        else:
            self.add("Identity", value, out=self.out, version=OPSET)
        return self.nodes


def conv(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """QLinearConv(x, sx, zx, w, sw, zw, sy, zy, bias): the int32 bias has the scale sx * sw."""
    island = _Island(node, b)
    inputs = [island.real(0), island.real(3, axis=0)]
    if node.input(8):
        inputs.append(_bias(island, node.inputs[8], node.inputs[1], node.inputs[4]))
    y = island.add("Conv", *inputs, **node.attrs)
    return island.done(y, node.input(6), node.input(7))


def _bias(island: _Island, bias: str, *scales: str) -> str:
    b = island.b
    values = [b.need_value(name, "the scale").astype(np.float32).reshape(-1) for name in scales]
    scale = b.add_const(f"{bias}.scale", np.asarray(values[0] * values[1], np.float32))
    return island.add("DequantizeLinear", bias, scale, axis=0)


def matmul(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """QLinearMatMul(a, sa, za, b, sb, zb, sy, zy); sb may have one entry per column."""
    island = _Island(node, b)
    rank_a, rank_b = (b.type(node.inputs[i]).rank for i in (0, 3))
    y = island.add("MatMul", island.real(0, axis=rank_a - 2), island.real(3, axis=rank_b - 1))
    return island.done(y, node.input(6), node.input(7))


def gemm(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """QGemm(a, sa, za, b, sb, zb, c, sy, zy): c is int32 with the scale alpha * sa * sb; y may stay float."""
    island, alpha = _Island(node, b), node.float_("alpha", 1.0)
    scale = b.need_value(node.inputs[4], "the scale").astype(np.float32)
    scaled = b.add_const(f"{node.inputs[4]}.alpha", scale * np.float32(alpha)) if alpha != 1.0 else node.inputs[4]
    if not node.input(7):
        return _gemm_float(island, np.float32(alpha))
    weights = ("DequantizeLinear", node.inputs[3], scaled, node.input(5))
    inputs = [island.real(0), island.add(*weights, axis=0 if node.int_("transB", 0) else 1)]
    if node.input(6):
        inputs.append(_bias(island, node.inputs[6], node.inputs[1], scaled))
    y = island.add("Gemm", *inputs, **{**node.attrs, "alpha": 1.0})
    return island.done(y, node.input(7), node.input(8))


def _gemm_float(island: _Island, alpha: np.float32) -> list[OnnxNode]:
    """A QGemm with a float result: float32(sum + c) * (alpha * sa * sb), the sum in int32."""
    node, b = island.node, island.b
    left, right = (
        island.add("Transpose", node.inputs[i], perm=(1, 0)) if node.int_(key, 0) else node.inputs[i]
        for i, key in ((0, "transA"), (3, "transB"))
    )
    y = island.add("MatMulInteger", left, right, node.input(2), node.input(5))
    if node.input(6):
        y = island.add("Add", y, node.inputs[6])
    values = [b.need_value(name, "the scale").astype(np.float32) for name in (node.inputs[1], node.inputs[4])]
    factor = b.add_const(f"{node.outputs[0]}.scale", np.asarray(alpha * values[0] * values[1], np.float32))
    y = island.add("Mul", island.add("Cast", y, to=1), factor)
    return island.done(y, "", "")


def binary(op: str) -> Callable[[OnnxNode, Builder], list[OnnxNode]]:
    """QLinearAdd and QLinearMul: (a, sa, za, b, sb, zb, sy, zy)."""

    def rewrite(node: OnnxNode, b: Builder) -> list[OnnxNode]:
        island = _Island(node, b)
        y = island.add(op, island.real(0), island.real(3))
        return island.done(y, node.input(6), node.input(7))

    return rewrite


def unary(op: str, dropped: tuple[str, ...] = ()) -> Callable[[OnnxNode, Builder], list[OnnxNode]]:
    """QLinearSigmoid, QLinearLeakyRelu, ...: (x, sx, zx, sy, zy) with the float operator's attributes."""

    def rewrite(node: OnnxNode, b: Builder) -> list[OnnxNode]:
        attrs = {k: v for k, v in node.attrs.items() if k not in (*dropped, "channels_last")}
        island, rank = _Island(node, b), b.type(node.inputs[0]).rank
        last = node.int_("channels_last", 0) == 1
        x = island.real(0)
        x = island.add("Transpose", x, perm=(0, rank - 1, *range(1, rank - 1))) if last else x
        y = island.add(op, x, **attrs)
        y = island.add("Transpose", y, perm=(0, *range(2, rank), 1)) if last else y
        return island.done(y, node.input(3), node.input(4))

    return rewrite


def softmax(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """QLinearSoftmax: attribute `opset` tells which definition of Softmax holds."""
    island = _Island(node, b)
    opset = node.int_("opset", 13)
    attrs = {"axis": node.attrs["axis"]} if "axis" in node.attrs else {}
    y = island.add("Softmax", island.real(0), version=opset, **attrs)
    return island.done(y, node.input(3), node.input(4))


def concat(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """QLinearConcat(sy, zy, x0, s0, z0, x1, s1, z1, ...)."""
    island = _Island(node, b)
    y = island.add("Concat", *(island.real(i) for i in range(2, len(node.inputs), 3)), **node.attrs)
    return island.done(y, node.input(0), node.input(1))


def where(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """QLinearWhere(condition, x, sx, zx, y, sy, zy, sz, zz)."""
    island = _Island(node, b)
    z = island.add("Where", node.inputs[0], island.real(1), island.real(4))
    return island.done(z, node.input(7), node.input(8))


REWRITES: Rewrites = {
    (MICROSOFT, "DynamicQuantizeMatMul"): dynamic_quantize_matmul,
    (MICROSOFT, "MatMulIntegerToFloat"): matmul_integer_to_float,
    ("", "QLinearConv"): conv,
    ("", "QLinearMatMul"): matmul,
    (MICROSOFT, "QGemm"): gemm,
    (MICROSOFT, "QLinearAdd"): binary("Add"),
    (MICROSOFT, "QLinearMul"): binary("Mul"),
    (MICROSOFT, "QLinearAveragePool"): unary("AveragePool"),
    (MICROSOFT, "QLinearGlobalAveragePool"): unary("GlobalAveragePool"),
    (MICROSOFT, "QLinearReduceMean"): unary("ReduceMean"),
    (MICROSOFT, "QLinearSigmoid"): unary("Sigmoid"),
    (MICROSOFT, "QLinearLeakyRelu"): unary("LeakyRelu"),
    (MICROSOFT, "QLinearSoftmax"): softmax,
    (MICROSOFT, "QLinearConcat"): concat,
    (MICROSOFT, "QLinearWhere"): where,
}
