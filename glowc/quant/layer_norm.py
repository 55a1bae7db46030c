"""Mean, variance and division as exporters write them before opset 17 -> LayerNormalization, which has an int8 form.

d = x - mean(x); d / sqrt(mean(d^2) + epsilon), or its product with the reciprocal, over the last axes; then a Mul and
an Add of constants, which are its scale and bias. Codes between the parts would lose far more than those around them.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from glowc.errors import ModelError
from glowc.quant.edit import Edit, Shapes, const_and_value, edited, made, only_producer, with_inputs
from glowc.quant.net import Net, int_of, ints_of
from glowc.quant.opset import raised

FIRST_OPSET = 17
_OP = "LayerNormalization"


def with_layer_norms(net: Net, shapes: Shapes) -> Net:
    """Return the network with its normalisations as one node each.

    It stays as it is where it has none, or where the converter of ONNX does not bring it to an opset that knows them.
    """
    found = edited(net, lambda n, node: _whole(n, node, shapes))
    if found is net:
        return net
    try:
        later = raised(net, max(net.opset, FIRST_OPSET))
    except ModelError:
        return net
    whole = edited(later, lambda n, node: _whole(n, node, shapes))
    return edited(whole, lambda n, node: _with_row(n, node, shapes))


def _whole(net: Net, node: NodeProto, shapes: Shapes) -> Edit | None:
    """Return LayerNormalization with scale 1 for the division that ends one."""
    parts = _apart_and_root(net, node)
    add = _maker(net, parts[1], "Add") if parts else None
    epsilon = const_and_value(net, add) if add is not None else None
    mean = _maker(net, epsilon[1], "ReduceMean") if epsilon else None
    if parts is None or epsilon is None or mean is None or not _is_square(net, mean.input[0], parts[0]):
        return None
    number = _number(net, epsilon[0])
    x, shape = _centred(net, parts[0], shapes), shapes.get(parts[0], ())
    axis = _first_axis(net, mean, len(shape))
    if x is None or number is None or axis is None or axis != x[1] or shapes.get(node.output[0]) != shape:
        return None
    name = f"{node.output[0]}_scale"
    whole = made(_OP, [x[0], name], node.output[0], node, axis=axis, epsilon=number)
    return [whole], {name: np.ones(shape[axis:], np.float32)}


def _maker(net: Net, name: str, *ops: str) -> NodeProto | None:
    """Return the node that makes a value, where it is one of these."""
    node = net.producers().get(name)
    return node if node is not None and node.op_type in ops else None


def _number(net: Net, name: str) -> float | None:
    """Return a constant that is one number."""
    array = net.consts.get(name)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def _apart_and_root(net: Net, node: NodeProto) -> tuple[str, str] | None:
    """Return d and the value under the root of d / sqrt(..) or d * (1 / sqrt(..))."""
    if node.op_type == "Div":
        sqrt = _maker(net, node.input[1], "Sqrt")
        return (node.input[0], sqrt.input[0]) if sqrt is not None else None
    for index in (0, 1) if node.op_type == "Mul" else ():
        inverse = _maker(net, node.input[1 - index], "Reciprocal", "Div")
        whole = inverse is not None and (inverse.op_type == "Reciprocal" or _number(net, inverse.input[0]) == 1)
        sqrt = _maker(net, inverse.input[-1], "Sqrt") if inverse is not None and whole else None
        if sqrt is not None:
            return node.input[index], sqrt.input[0]
    return None


def _is_square(net: Net, name: str, of: str) -> bool:
    node = _maker(net, name, "Pow", "Mul")
    if node is not None and node.op_type == "Mul":
        return list(node.input) == [of, of]
    return node is not None and node.input[0] == of and _number(net, node.input[1]) == 2


def _centred(net: Net, apart: str, shapes: Shapes) -> tuple[str, int] | None:
    """Return x and the first axis of its mean where `apart` is x less that mean."""
    sub = _maker(net, apart, "Sub")
    mean = _maker(net, sub.input[1], "ReduceMean") if sub is not None else None
    if sub is None or mean is None or mean.input[0] != sub.input[0]:
        return None
    axis = _first_axis(net, mean, len(shapes.get(apart, ())))
    return None if axis is None else (sub.input[0], axis)


def _first_axis(net: Net, mean: NodeProto, rank: int) -> int | None:
    """Return the first of the axes of a mean, below 0, where they are the last ones and stay."""
    given = net.consts.get(mean.input[1]) if len(mean.input) > 1 else np.asarray(ints_of(mean, "axes"))
    if given is None or not given.size or not rank or not int_of(mean, "keepdims", 1):
        return None
    axes = sorted(int(axis) % rank - rank for axis in given.reshape(-1))
    return axes[0] if axes == list(range(axes[0], 0)) else None


def _with_row(net: Net, node: NodeProto, shapes: Shapes) -> Edit | None:
    """Return the normalisation before a Mul or an Add of a constant with that as its scale, or bias."""
    pair = const_and_value(net, node) if node.op_type in ("Mul", "Add") else None
    norm = only_producer(net, pair[1]) if pair else None
    if pair is None or norm is None or norm.op_type != _OP or any(norm.output[1:]) or len(norm.input) != 2:
        return None
    shape, array = shapes.get(node.output[0], ()), net.consts[pair[0]]
    row = shape[int_of(norm, "axis", -1) :]
    fits = array.size == 1 or (array.shape[-len(row) :] == row and array.size == np.prod(row))
    is_one = norm.input[1] in net.consts and bool(np.all(net.consts[norm.input[1]] == 1))
    if not fits or shape != shapes.get(pair[1]) or (node.op_type == "Mul" and not is_one):
        return None
    name = f"{node.output[0]}_row"
    inputs = [norm.input[0], name] if node.op_type == "Mul" else [*norm.input, name]
    values = array.reshape(-1) if array.size == 1 else array.reshape(row)
    return [with_inputs(norm, inputs, node.output[0])], {name: np.broadcast_to(values, row).astype(np.float32)}
