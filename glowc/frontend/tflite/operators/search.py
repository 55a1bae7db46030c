"""What looks elements up or puts them somewhere: the largest ones, one-hot codes, scattered rows, ranges."""

from __future__ import annotations

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.movement import axis_of, ints, same_codes
from glowc.frontend.tflite.operators.options import operands, option
from glowc.frontend.tflite.reader import Operator

_INT32 = 6


def top_k(operator: Operator, net: Net) -> None:
    """TOPK_V2 along the last axis: the first of equal elements is the one before."""
    x, values = net.type(operator.inputs[0]), operator.outputs[0]
    count = ints(net, operator.inputs[1], "k")[0]
    if not 1 <= count <= (x.shape[-1] if x.rank else 0):
        raise NodeError(f"the {count} largest of {x}")
    same_codes(operator, net, operator.inputs[:1])
    attrs = {"axis": x.rank - 1, "k": count, "largest": 1, "sorted": 1}
    found = net.emit_new("TopK", (net.value(operator.inputs[0]),), attrs, 2)
    net.emit("Identity", (found[0],), out=values)
    net.emit("Cast", (found[1],), {"to": _INT32}, out=operator.outputs[1])


def one_hot(operator: Operator, net: Net) -> None:
    """ONE_HOT: indices, depth, what stands at the index and elsewhere; an index outside has no place."""
    index, depth, on, off = operands(operator, 4)
    x, count = net.type(index), ints(net, depth, "the depth")[0]
    axis = axis_of(option(operator, "Axis", -1), x.rank + 1)
    apart = net.reshaped(net.value(index), (*x.shape[:axis], 1, *x.shape[axis:]))
    places = np.arange(count, dtype=x.dtype.numpy).reshape(-1, *(1,) * (x.rank - axis))
    hit = net.emit("Equal", (apart, net.add_const("places", places)))
    net.emit("Where", (hit, net.value(on), net.value(off)), out=operator.outputs[0])


def scatter_nd(operator: Operator, net: Net) -> None:
    """SCATTER_ND: rows at coordinates of zeros; those of one place are added up."""
    where, rows, shape = operands(operator, 3)
    out = net.type(operator.outputs[0]).with_shape(ints(net, shape, "the shape"))
    zeros = net.add_const("zeros", np.zeros(out.shape, out.dtype.numpy), out)
    net.emit("ScatterND", (zeros, net.value(where), net.value(rows)), {"reduction": "add"}, out=operator.outputs[0])


def range_(operator: Operator, net: Net) -> None:
    """RANGE of constants."""
    start, limit, step = (net.need(i, "a bound").reshape(-1)[0] for i in operands(operator, 3))
    if step == 0:
        raise NodeError("a step of 0")
    out = operator.outputs[0]
    found = np.arange(start, limit, step).astype(net.type(out).dtype.numpy)
    net.define(out, net.add_const(net.tensor(out).name, found))


def rank(operator: Operator, net: Net) -> None:
    """RANK: a constant."""
    found = np.asarray(net.type(operator.inputs[0]).rank, np.int32)
    net.define(operator.outputs[0], net.add_const("rank", found))


HANDLERS = {
    "TOPK_V2": top_k, "ONE_HOT": one_hot, "SCATTER_ND": scatter_nd, "RANGE": range_, "RANK": rank,
}  # fmt: skip
