"""Layers with a memory of their own: SVDF."""

from __future__ import annotations

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.layers import bias_of
from glowc.frontend.tflite.operators.options import clamp, option
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue


def svdf(operator: Operator, net: Net) -> None:
    """SVDF: input, feature weights, time weights, bias, state. Of codes TFLM saturates and applies no activation."""
    x, feature, time, state = (net.type(operator.inputs[i]) for i in (0, 1, 2, 4))
    rank = option(operator, "Rank")
    if rank < 1 or feature.rank != 2 or feature.shape[0] % rank:
        raise NodeError(f"rank {rank} and feature weights {feature} do not fit")
    attrs: dict[str, AttrValue] = {"svdf_rank": rank}
    bias = bias_of(operator, net, feature.shape[0] // rank, at=3)
    values = [*(net.value(i) for i in operator.inputs[:3]), bias]
    if x.quant is None:
        net.emit("Svdf", values, {**attrs, **clamp(operator)}, out=operator.outputs[0])
        return
    if state.quant is None or state.dtype != time.dtype:
        raise NodeError(f"the state {state} needs the kind of the time weights {time} and a scale")
    attrs |= {"state_scale": state.quant.scale[0], "state_zp": state.quant.zero_point[0]}
    net.emit("FixedSvdf", values, attrs, out=operator.outputs[0])


HANDLERS = {"SVDF": svdf}
