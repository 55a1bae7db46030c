"""Windows and reductions."""

from __future__ import annotations

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import NHWC, Net
from glowc.frontend.tflite.operators.options import clamp, fixed, option, padding, positive
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue


def pool(operator: Operator, net: Net) -> None:
    """AVERAGE_POOL_2D and MAX_POOL_2D."""
    x = net.type(operator.inputs[0])
    kernel = positive(operator, "FilterHeight", "FilterWidth")
    stride = positive(operator, "StrideH", "StrideW")
    attrs: dict[str, AttrValue] = {
        "kernel_shape": kernel, "strides": stride,
        "pads": padding(operator, x.shape[1:3], kernel, stride, (1, 1)), **NHWC,
    }  # fmt: skip
    value, bounds, out = net.value(operator.inputs[0]), clamp(operator), operator.outputs[0]
    if operator.code == "AVERAGE_POOL_2D":
        unsigned = int(net.tensor(operator.inputs[0]).kind == "uint8")
        net.emit("AveragePool", (value,), {**attrs, **bounds, "unsigned": unsigned, **fixed(x)}, out=out)
        return
    if bounds and x.quant is None and not x.dtype.is_float:
        raise NodeError(f"a fused activation of {x} without a scale")
    if not bounds:
        net.emit("MaxPool", (value,), attrs, out=out)
        return
    largest = net.emit("MaxPool", (value,), attrs, like=out)
    net.emit("Clip", (largest,), {k.removeprefix("act_"): v for k, v in bounds.items()}, out=out)


def mean(operator: Operator, net: Net) -> None:
    """MEAN over constant axes."""
    axes = net.need(operator.inputs[1], "the axes").reshape(-1)
    x = net.type(operator.inputs[0])
    attrs: dict[str, AttrValue] = {
        "axes": tuple(sorted({int(a) % x.rank for a in axes})),
        "keepdims": option(operator, "KeepDims"), **fixed(x),
    }  # fmt: skip
    net.emit("ReduceMean", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


HANDLERS = {"AVERAGE_POOL_2D": pool, "MAX_POOL_2D": pool, "MEAN": mean}
