"""BatchNormalization at inference: y = x * f + g per channel, f = scale / sqrt(var + epsilon), g = bias - mean * f.

Float only; the factors are computed in float32 at compile time. Passes fold most of them into convolutions; what
is left lowers to a product and a sum. Tolerance 1e-5 against ONNX's own order of operations.
Source: ONNX BatchNormalization-15, training_mode 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowc.graph.attrs import Float, Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LAYOUT, LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.binary import BinaryParams
from glowc.ops.binary_table import expression
from glowc.ops.derived import derived
from glowc.ops.params import Clamp
from glowc.ops.strided import access, present


def channel_axis(node: Node, x: TensorType) -> int:
    """Return the axis of the channels."""
    return x.rank - 1 if node.is_nhwc else 1


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The input's type; four parameters of one value per channel."""
    x, *rest = present(in_types[:5])
    if x.rank < 2 or len(rest) != 4 or any(t.shape != (x.shape[channel_axis(node, x)],) for t in rest):
        raise OpError("parameters do not fit the channels: " + ", ".join(map(str, (x, *rest))))
    if not x.dtype.is_float:
        raise OpError(f"normalizes floats, not {x}")
    return (x,)


def factors(parameters: Sequence[np.ndarray], epsilon: float, kind: DType) -> tuple[np.ndarray, np.ndarray]:
    """Return factor and summand per channel from scale, bias, mean, var."""
    scale, bias, mean, var = (p.astype(kind.numpy) for p in parameters)
    f = (scale / np.sqrt(var + np.asarray(epsilon, kind.numpy))).astype(kind.numpy)
    return f, (bias - mean * f).astype(kind.numpy)


def _shaped(node: Node, x: TensorType, values: np.ndarray) -> np.ndarray:
    shape = [1] * x.rank
    shape[channel_axis(node, x)] = values.size
    return values.reshape(shape)


def lower(node: Node, ctx: LowerCtx) -> None:
    """A product and a sum with constants."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    given = [ctx.const_value(name) for name in node.inputs[1:5]]
    known = [v for v in given if v is not None]
    if len(known) != 4:
        raise OpError("parameters that are computed at run time")
    f, g = factors(known, node.float_("epsilon"), x.type.dtype)
    product = ctx.temp(x.type, f"{node.name}_product")
    for op, left, right, to in (("mul", x, f, product), ("add", product, g, y)):
        other = ctx.const(_shaped(node, x.type, right), f"{node.name}_{op}")
        words = BinaryParams(access(left, other, to), op, expression(op, x.type.dtype), 0, Clamp(0.0, 0.0))
        ctx.emit("binary", {"a": left, "b": other, "out": to}, words)


OP = OpDef(
    "BatchNormalization", infer, derived, lower, max_version=15,
    attrs={"epsilon": Float(1e-5), "momentum": Float(0.9), "training_mode": Int(0), "layout": LAYOUT},
    doc="normalization by stored statistics",
)  # fmt: skip
