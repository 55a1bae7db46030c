"""Normal forms of arithmetic: reductions, clipping, softmax, n-ary sums; defaults become explicit."""

from __future__ import annotations

import math

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.normalize_shape import axis_of, emit_reshape, int_list
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.graph.attrs import AttrValue
from glowc.graph.types import DType, TensorType
from glowc.ops.integer import FLOAT_WEIGHTS

# From these opsets on, Softmax and its kin work along one axis; before, on a matrix that ends with that axis.
SOFTMAX_ONE_AXIS = 13
CLIP_INPUTS = 11  # before, bounds are attributes and the default ones are the largest floats


def reduce(node: OnnxNode, b: Builder) -> None:
    """ReduceX with sorted axes and keepdims as attributes."""
    rank = b.type(node.inputs[0]).rank
    given = int_list(node, b, 1, "axes")
    if not given and node.int_("noop_with_empty_axes", 0):
        if node.op not in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"):
            raise NodeError("noop_with_empty_axes = 1 is not supported")
        b.emit("Identity", node.inputs[:1], {}, node.outputs)
        return
    axes = sorted({axis_of(a, rank) for a in given}) if given else list(range(rank))
    b.emit(node.op, node.inputs[:1], {"axes": tuple(axes), "keepdims": node.int_("keepdims", 1)}, node.outputs)


def arg_reduce(node: OnnxNode, b: Builder) -> None:
    """ArgMax and ArgMin with all attributes."""
    attrs = {
        "axis": axis_of(node.int_("axis", 0), b.type(node.inputs[0]).rank),
        "keepdims": node.int_("keepdims", 1),
        "select_last_index": node.int_("select_last_index", 0),
    }
    b.emit(node.op, node.inputs, attrs, node.outputs)


def top_k(node: OnnxNode, b: Builder) -> None:
    """TopK with attribute k."""
    k = int_list(node, b, 1, "k")
    if not k:
        raise NodeError("k is missing")
    x, axis = b.type(node.inputs[0]), axis_of(node.int_("axis", -1), b.type(node.inputs[0]).rank)
    if k[0] == 0:
        shape = [0 if i == axis else d for i, d in enumerate(x.shape)]
        for out, kind in zip(node.outputs, (x.dtype, DType.S64), strict=False):
            b.set_empty(out, TensorType(tuple(shape), kind))
        return
    attrs = {
        "axis": axis,
        "k": k[0], "largest": node.int_("largest", 1), "sorted": node.int_("sorted", 1),
    }  # fmt: skip
    b.emit("TopK", node.inputs[:1], attrs, node.outputs)


def clip(node: OnnxNode, b: Builder) -> None:
    """Clip with attributes min and max; bounds computed at run time stay inputs."""
    names = (node.input(1), node.input(2))
    values = [b.value(name) if name else None for name in names]
    if any(name and value is None for name, value in zip(names, values, strict=True)):
        _clip_computed(node, b, names)
        return
    attrs: dict[str, AttrValue] = {}
    most = math.inf if node.version >= CLIP_INPUTS else float(np.finfo(np.float32).max)
    for key, value, default in zip(("min", "max"), values, (-most, most), strict=True):
        attrs[key] = float(value.reshape(-1)[0]) if value is not None else node.float_(key, default)
    attrs["min"] = min(float(str(attrs["min"])), float(str(attrs["max"])))  # the upper bound wins
    b.emit("Clip", node.inputs[:1], attrs, node.outputs)


def _clip_computed(node: OnnxNode, b: Builder, names: tuple[str, str]) -> None:
    """Clip with bounds that are computed at run time: Max with the lower one, then Min with the upper one."""
    x, steps = node.inputs[0], [(op, name) for op, name in zip(("Max", "Min"), names, strict=True) if name]
    for index, (op, name) in enumerate(steps):
        if b.type(name).elements != 1:
            raise NodeError(f'bound "{name}" is {b.type(name)}; it must be one number')
        bound = emit_reshape(b, name, ()) if b.type(name).rank else name
        x = b.emit(op, (x, bound), {}, node.outputs if index == len(steps) - 1 else None)


def softmax(node: OnnxNode, b: Builder) -> None:
    """Softmax, LogSoftmax, Hardmax along one axis; before opset 13 all axes from `axis` on count as one."""
    x = b.type(node.inputs[0])
    old = node.version < SOFTMAX_ONE_AXIS
    axis = axis_of(node.int_("axis", 1 if old else -1), max(x.rank, 1))
    if not old or math.prod(x.shape[axis + 1 :]) == 1:
        b.emit(node.op, node.inputs, {"axis": axis}, node.outputs)
        return
    shape = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    flat = b.emit(node.op, (emit_reshape(b, node.inputs[0], shape),), {"axis": 1})
    emit_reshape(b, flat, x.shape, node.outputs[0])


def nary(node: OnnxNode, b: Builder) -> None:
    """Sum, Mean, Min, Max of any number of inputs -> a chain of binary operators."""
    op = {"Sum": "Add", "Mean": "Add"}.get(node.op, node.op)
    *rest, last = node.inputs
    if not rest:
        b.emit("Identity", node.inputs, {}, node.outputs)
        return
    total = rest[0]
    for name in rest[1:]:
        total = b.emit(op, (total, name))
    if node.op != "Mean":
        b.emit(op, (total, last), {}, node.outputs)
        return
    share = b.add_const(f"{node.outputs[0]}.share", np.asarray(1.0 / len(node.inputs), np.float32))
    b.emit("Mul", (b.emit(op, (total, last)), share), {}, node.outputs)


def gemm(node: OnnxNode, b: Builder) -> None:
    """Gemm with all attributes."""
    attrs: dict[str, AttrValue] = {
        "alpha": node.float_("alpha", 1.0), "beta": node.float_("beta", 1.0),
        "transA": int(node.int_("transA", 0) != 0), "transB": int(node.int_("transB", 0) != 0),
        **{key: 1 for key in FLOAT_WEIGHTS if key in node.attrs},
    }  # fmt: skip
    b.emit("Gemm", node.inputs, attrs, node.outputs)


def batch_normalization(node: OnnxNode, b: Builder) -> None:
    """BatchNormalization at inference, with epsilon."""
    if node.int_("training_mode", 0) or any(out in b.read for out in node.outputs[1:] if out):
        raise NodeError("training mode is not supported", "export the model in inference mode: model.eval()")
    if not node.int_("spatial", 1):
        raise NodeError("spatial = 0 is not supported")
    b.emit("BatchNormalization", node.inputs, {"epsilon": node.float_("epsilon", 1e-5)}, node.outputs[:1])
