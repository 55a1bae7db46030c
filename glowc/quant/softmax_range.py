"""The lower end of the range of what goes into a Softmax: what lies far below the largest value of its row is nothing.

An input that is k below the largest gives at most exp(-k) of the result. `_STEPS` times the length of a row of such
values add at most one step of 1/256 to its sum, so codes for anything lower are wasted; those left are finer.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from glowc.quant.net import int_of
from glowc.quant.plan import SAME
from glowc.quant.scheme import QMAX, QMIN, Params
from glowc.quant.simulate import Simulator

_STEPS = 256
_HEADROOM = 6.0  # above the largest result of a Softmax that was seen, as a part of it, times the number of samples
_LEAST_TOP = 2.0  # times the mean of a row: onnxruntime's kernel overflows where 1 / scale is over 148 for each of it


def softmax_result(sim: Simulator, names: tuple[str, ...]) -> Params | None:
    """Return the quantisation of the results of a Softmax inside the network, where they are far below 1.

    1 / scale is rounded down by kernels, so it is just above a whole number.
    """
    makers = [n for n in sim.net.nodes if n.op_type == "Softmax" and n.output[0] in names]
    if len(makers) != 1 or sim.net.output_names() & {*names}:
        return None
    node = makers[0]
    values = sim.exact[node.output[0]]
    axis = int_of(node, "axis", -1)
    row = values.shape[axis if axis < 0 else axis + 1]
    top = max(float(values.max()) * (1 + _HEADROOM / len(values)), _LEAST_TOP / row)
    steps = int((QMAX - QMIN) / top)
    if steps <= _STEPS:
        return None
    return Params(float(np.nextafter(np.float32(1 / steps), np.float32(0))), QMIN)


def softmax_floor(sim: Simulator, names: tuple[str, ...]) -> float | None:
    """Return the lowest value that the tensors of a group need; None where someone else than a Softmax reads them."""
    users, outputs, floors = sim.net.users(), sim.net.output_names(), []
    for name in names:
        readers = users.get(name, [])
        if name in outputs or not readers:
            return None
        for node in readers:
            if node.op_type == "Softmax" and name in sim.exact:
                floors.append(_floor_of(node, sim.exact[name]))
            elif node.op_type not in SAME or not {*node.output} <= {*names}:
                return None
    return min(floors, default=None)


def _floor_of(node: NodeProto, values: np.ndarray) -> float:
    """Return the floor for values [sample][...] of one Softmax."""
    axis = int_of(node, "axis", -1)
    axis = axis if axis < 0 else axis + 1  # samples come first
    return float(values.max(axis=axis).min() - np.log(_STEPS * values.shape[axis]))
