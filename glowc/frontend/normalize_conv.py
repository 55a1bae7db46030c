"""Normal forms of convolution and pooling: explicit 2-D geometry; one spatial axis becomes height 1.

Pads are [begin of each axis, end of each axis], so top, left, bottom, right in 2-D. auto_pad SAME_UPPER and SAME_LOWER
are explicit pads; where windows leave gaps, rows and columns cut off.

ceil(size / stride) windows reach over (that - 1) * stride + span elements. Where the stride is larger than the window
this may be less than the input has: ONNX's formula of the padding is negative, and onnxruntime reads from inside. Which
elements it leaves out at the begin was found by experiment (lengths 5..13, strides 1..7, windows 1..3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.normalize_shape import emit_reshape
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.graph.attrs import AttrValue
from glowc.graph.types import QuantParams, TensorType
from glowc.ops.integer import FLOAT_WEIGHTS

Ints = tuple[int, ...]
UPPER, LOWER = "SAME_UPPER", "SAME_LOWER"


def same_pads(mode: str, size: int, stride: int, span: int, *, conv: bool) -> tuple[int, int]:
    """Return padding at begin and end of an axis; negative: what is left out there."""
    total = (-(-size // stride) - 1) * stride + span - size
    if total >= 0:
        small = total // 2
        return (small, total - small) if mode == UPPER else (total - small, small)
    later = (mode == LOWER) + conv  # an odd element, and one more of a Conv, is left out at the end
    begin = -(max(0, -total - later) // 2)
    return begin, total - begin


def cut_negative(node: OnnxNode, b: Builder, geometry: Mapping[str, Ints]) -> tuple[OnnxNode, dict[str, Ints]]:
    """Return the node with its first input cut where `pads` are negative, and the geometry without those."""
    pads = geometry["pads"]
    if min(pads, default=0) >= 0:
        return node, dict(geometry)
    if any(out and out in b.read for out in node.outputs[1:]):
        raise NodeError(f'output 1 ("{node.outputs[1]}") is not supported with auto_pad that leaves elements out')
    sizes, rank = b.type(node.inputs[0]).shape[2:], len(pads) // 2
    starts = tuple(max(0, -p) for p in pads[:rank])
    ends = tuple(n - max(0, -p) for n, p in zip(sizes, pads[rank:], strict=True))
    axes = tuple(range(2, rank + 2))
    cut = b.emit("Slice", node.inputs[:1], {"starts": starts, "ends": ends, "axes": axes, "steps": (1,) * rank})
    kept = {**geometry, "pads": tuple(max(0, p) for p in pads)}
    return replace(node, inputs=(cut, *node.inputs[1:])), kept


def conv(node: OnnxNode, b: Builder) -> None:
    """Conv and ConvInteger: kernel_shape, strides, dilations, pads and group explicit."""
    weights = b.type(node.input(1)) if node.input(1) else None
    if weights is None:
        raise NodeError("no weights are given")
    x = b.type(node.inputs[0])
    kernel = _kernel(node, x, weights.shape[2:], most=3 if node.op == "Conv" else 2)
    attrs = _geometry(node, x.shape[2:], kernel)
    if len(kernel) == 3:
        _conv_volume(node, b, attrs)
        return
    attrs["group"] = (node.int_("group", 1),)
    rest = {"group": node.int_("group", 1), **{key: 1 for key in FLOAT_WEIGHTS if key in node.attrs}}
    _emit_spatial(node, b, node.op, attrs, rest, weights=True)


def _conv_volume(node: OnnxNode, b: Builder, geometry: Mapping[str, Ints]) -> None:
    """Three axes: the slices that a window covers lie in the channels of an image, one image for each result slice."""
    node, geometry = cut_negative(node, b, geometry)
    (n, channels, depth, *size), w = b.type(node.inputs[0]).shape, b.type(node.inputs[1]).shape
    if w[1] * node.int_("group", 1) != channels:
        raise NodeError(f"{channels} input channels, {node.int_('group', 1)} groups and weights {list(w)} do not fit")
    (k, *kernel), pads, stride, dilation = (geometry[key] for key in ("kernel_shape", "pads", "strides", "dilations"))
    value, front, back = node.inputs[0], pads[0], pads[3]
    if front or back:
        amounts = (0, 0, front, 0, 0, 0, 0, back, 0, 0)
        value = b.emit("Pad", (value,), {"pads": amounts, "mode": "constant", "value": 0.0})
    slices = (depth + front + back - (k - 1) * dilation[0] - 1) // stride[0] + 1
    at = np.arange(slices)[:, None] * stride[0] + np.arange(k) * dilation[0]
    value = b.emit("Gather", (value, b.add_const(f"{node.origin}.slices", at)), {"axis": 2})
    value = b.emit("Transpose", (value,), {"perm": (0, 2, 1, 3, 4, 5)})
    value = emit_reshape(b, value, (n * slices, channels * k, *size))
    weights = reshaped_weights(b, node.inputs[1], (w[0], w[1] * k, *kernel))
    attrs: dict[str, AttrValue] = {
        "kernel_shape": tuple(kernel), "strides": stride[1:], "dilations": dilation[1:],
        "pads": (*pads[1:3], *pads[4:]), "group": node.int_("group", 1),
    }  # fmt: skip
    y = b.emit("Conv", (value, weights, *node.inputs[2:]), attrs)
    y = emit_reshape(b, y, (n, slices, *b.type(y).shape[1:]))
    b.emit("Transpose", (y,), {"perm": (0, 2, 1, 3, 4)}, node.outputs)


def conv_transpose(node: OnnxNode, b: Builder) -> None:
    """ConvTranspose: as Conv, with output_padding; output_shape and auto_pad resolved to pads."""
    x, weights = b.type(node.inputs[0]), b.type(node.inputs[1])
    kernel = _kernel(node, x, weights.shape[2:], most=3)
    rank = len(kernel)
    attrs = _geometry(node, x.shape[2:], kernel, resolve_pads=False)
    attrs["output_padding"] = _per_axis(node, "output_padding", 0, rank)
    attrs["output_padding"] = _output_padding(node, x.shape[2:], attrs)
    attrs["pads"] = _transpose_pads(node, x.shape[2:], attrs)
    _emit_spatial(node, b, "ConvTranspose", attrs, {"group": node.int_("group", 1)}, weights=True)


def _output_padding(node: OnnxNode, sizes: Ints, attrs: Mapping[str, Ints]) -> Ints:
    """Return output_padding; an output_shape larger than all that the input covers adds to it."""
    wanted, given, rank = node.ints("output_shape"), attrs["output_padding"], len(sizes)
    if wanted is None:
        return given
    full = [
        attrs["strides"][i] * (sizes[i] - 1) + given[i] + (attrs["kernel_shape"][i] - 1) * attrs["dilations"][i] + 1
        for i in range(rank)
    ]
    return tuple(given[i] + max(0, wanted[-rank + i] - full[i]) for i in range(rank))


def _transpose_pads(node: OnnxNode, sizes: Ints, attrs: Mapping[str, Ints]) -> Ints:
    auto, wanted, rank = node.str_("auto_pad", "NOTSET"), node.ints("output_shape"), len(sizes)
    if wanted is None and auto == "NOTSET":
        return node.ints("pads") or (0,) * (2 * rank)
    if wanted is None and auto == "VALID":
        return (0,) * (2 * rank)
    begins, ends = [], []
    for i in range(rank):
        stride, dilation = attrs["strides"][i], attrs["dilations"][i]
        full = stride * (sizes[i] - 1) + attrs["output_padding"][i] + (attrs["kernel_shape"][i] - 1) * dilation + 1
        total = max(0, full - (wanted[-rank + i] if wanted is not None else sizes[i] * stride))
        small, large = total // 2, total - total // 2
        # ONNX: the odd pixel goes to the end for SAME_UPPER and to the begin otherwise.
        begins.append(small if auto == "SAME_UPPER" else large)
        ends.append(large if auto == "SAME_UPPER" else small)
    return (*begins, *ends)


def max_pool(node: OnnxNode, b: Builder) -> None:
    """MaxPool: geometry explicit."""
    x = b.type(node.inputs[0])
    geometry = _geometry(node, x.shape[2:], _kernel(node, x, (), most=3))
    extra = {"ceil_mode": node.int_("ceil_mode", 0)}
    if any(out and out in b.read for out in node.outputs[1:]):
        node, geometry = cut_negative(node, b, geometry)
        order = {"storage_order": node.int_("storage_order", 0)}
        b.emit("MaxPool", node.inputs, {**geometry, **extra, **order}, node.outputs)
        return
    _emit_spatial(node, b, "MaxPool", geometry, extra)


def average_pool(node: OnnxNode, b: Builder) -> None:
    """AveragePool: geometry, ceil_mode and count_include_pad explicit."""
    x = b.type(node.inputs[0])
    attrs = _geometry(node, x.shape[2:], _kernel(node, x, (), most=3))
    flags = {"ceil_mode": node.int_("ceil_mode", 0), "count_include_pad": node.int_("count_include_pad", 0)}
    if min(attrs["pads"]) < 0:
        flags["part"] = 1  # a window over all that is left is not one over the model's whole image
    _emit_spatial(node, b, "AveragePool", attrs, flags)


def lp_pool(node: OnnxNode, b: Builder) -> None:
    """LpPool: geometry and p explicit; it keeps its layout."""
    x = b.type(node.inputs[0])
    node, attrs = cut_negative(node, b, _geometry(node, x.shape[2:], _kernel(node, x, (), most=3)))
    flags = {"ceil_mode": node.int_("ceil_mode", 0), "p": node.int_("p", 2)}
    b.emit("LpPool", node.inputs, {**attrs, **flags}, node.outputs)


def max_unpool(node: OnnxNode, b: Builder) -> None:
    """MaxUnpool: zeros with the values put where the (flat) indices say."""
    x = b.type(node.inputs[0])
    kernel = _kernel(node, x, ())
    strides, rank = _per_axis(node, "strides", 1, len(kernel)), len(kernel)
    pads = node.ints("pads") or (0,) * (2 * rank)
    shape = tuple((x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[rank + i] + kernel[i] for i in range(rank))
    whole = (*x.shape[:2], *shape)
    if node.input(2):
        whole = tuple(int(v) for v in b.need_value(node.inputs[2], "the output shape"))
        if whole[:2] != x.shape[:2] or any(a < b for a, b in zip(whole[2:], shape, strict=True)):
            raise NodeError(f"output shape {list(whole)} for {x}")
    # The indices are those of the smallest image, which stands in the corner of a larger one.
    flat = b.add_const(f"{node.outputs[0]}.zeros", np.zeros(x.shape[0] * x.shape[1] * math.prod(shape), x.dtype.numpy))
    values = emit_reshape(b, node.inputs[0], (x.elements,))
    places = emit_reshape(b, node.inputs[1], (x.elements,))
    image = b.emit("ScatterElements", (flat, places, values), {"axis": 0, "reduction": "none"})
    if whole[2:] == shape:
        emit_reshape(b, image, whole, node.outputs[0])
        return
    image = emit_reshape(b, image, (*x.shape[:2], *shape))
    pads_at_end = (0,) * (x.rank + 2) + tuple(a - b for a, b in zip(whole[2:], shape, strict=True))
    b.emit("Pad", (image,), {"pads": pads_at_end, "mode": "constant", "value": 0.0}, node.outputs)


def global_pool(node: OnnxNode, b: Builder) -> None:
    """GlobalAveragePool and GlobalMaxPool -> ReduceMean and ReduceMax over the spatial axes."""
    x = b.type(node.inputs[0])
    if x.rank < 3:
        raise NodeError(f"{x} has no spatial axes")
    op = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}[node.op]
    b.emit(op, node.inputs, {"axes": tuple(range(2, x.rank)), "keepdims": 1}, node.outputs)


def _kernel(node: OnnxNode, x: TensorType, from_weights: Ints, most: int = 2) -> Ints:
    kernel = node.ints("kernel_shape") or from_weights
    if not kernel:
        raise NodeError("kernel_shape is missing")
    if x.rank != len(kernel) + 2:
        raise NodeError(f"input {x} does not fit the kernel {list(kernel)}")
    if len(kernel) > most:
        known = "1-D and 2-D" if most == 2 else f"1-D to {most}-D"
        raise NodeError(f"{len(kernel)} spatial axes ({x}): only {known} are supported")
    if any(k < 1 for k in kernel):
        raise NodeError(f"kernel_shape {list(kernel)}")
    return kernel


def _per_axis(node: OnnxNode, key: str, default: int, rank: int) -> Ints:
    values = node.ints(key) or (default,) * rank
    if len(values) != rank or any(v < default for v in values):
        raise NodeError(f"{key} {list(values)} for {rank} spatial axes")
    return values


def _geometry(node: OnnxNode, sizes: Ints, kernel: Ints, *, resolve_pads: bool = True) -> dict[str, Ints]:
    rank = len(kernel)
    attrs = {"kernel_shape": kernel}
    attrs["strides"] = _per_axis(node, "strides", 1, rank)
    attrs["dilations"] = _per_axis(node, "dilations", 1, rank)
    attrs["pads"] = _pads(node, sizes, attrs) if resolve_pads else (0,) * (2 * rank)
    return attrs


def _pads(node: OnnxNode, sizes: Ints, attrs: Mapping[str, Ints]) -> Ints:
    """Return explicit pads; auto_pad SAME pads so that the output has ceil(size / stride) elements."""
    auto, rank = node.str_("auto_pad", "NOTSET"), len(sizes)
    if auto == "NOTSET":
        pads = node.ints("pads") or (0,) * (2 * rank)
        if len(pads) != 2 * rank or any(p < 0 for p in pads):
            raise NodeError(f"pads {list(pads)} for {rank} spatial axes")
        return pads
    if auto == "VALID":
        return (0,) * (2 * rank)
    if auto not in (UPPER, LOWER):
        raise NodeError(f"auto_pad {auto} is not supported")
    begins, ends = [], []
    for size, stride, kernel, dilation in zip(
        sizes, attrs["strides"], attrs["kernel_shape"], attrs["dilations"], strict=True
    ):
        begin, end = same_pads(auto, size, stride, (kernel - 1) * dilation + 1, conv="Conv" in node.op)
        begins.append(begin)
        ends.append(end)
    return (*begins, *ends)


def _emit_spatial(
    node: OnnxNode,
    b: Builder,
    op: str,
    geometry: Mapping[str, Ints],
    extra: Mapping[str, AttrValue],
    *,
    weights: bool = False,
) -> None:
    """Append the operator; with one spatial axis in 2-D, between Reshapes."""
    node, geometry = cut_negative(node, b, geometry)
    attrs: dict[str, AttrValue] = {k: v for k, v in geometry.items() if k != "group"}
    attrs.update(extra)
    if len(geometry["kernel_shape"]) >= 2:
        b.emit(op, node.inputs, attrs, node.outputs)
        return
    fill = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 0}
    for key, values in geometry.items():
        if key == "pads":
            attrs[key] = (0, values[0], 0, values[1])
        elif key in fill:
            attrs[key] = (fill[key], values[0])
    x = b.type(node.inputs[0])
    inputs = [emit_reshape(b, node.inputs[0], (*x.shape[:2], 1, x.shape[2])), *node.inputs[1:]]
    if weights:
        inputs[1] = with_height(b, node.inputs[1])
    if any(out and out in b.read for out in node.outputs[1:]):
        raise NodeError(f'output 1 ("{node.outputs[1]}") is not supported')
    y = b.type(wide := b.emit(op, inputs, attrs))
    emit_reshape(b, wide, (*y.shape[:2], y.shape[3]), node.outputs[0])


def with_height(b: Builder, name: str) -> str:
    """Return 1-D weights [O, I, k] as [O, I, 1, k]."""
    return reshaped_weights(b, name, (*b.type(name).shape[:2], 1, *b.type(name).shape[2:]))


def reshaped_weights(b: Builder, name: str, shape: Ints) -> str:
    """Return weights in another shape of the same output channels; after a DequantizeLinear the codes are reshaped."""
    if name in b.consts:
        return b.add_const(f"{name}.2d", b.consts[name].reshape(shape))
    producer = b.producer(name)
    source = producer.inputs[0] if producer is not None and producer.op == "DequantizeLinear" else ""
    if source not in b.consts:
        return emit_reshape(b, name, shape)
    old = b.types[source]
    type_ = replace(old, shape=shape, quant=_shifted(old.quant))
    codes = np.ascontiguousarray(b.consts[source]).reshape(shape)
    wide = b.typed_const(f"{source.removesuffix('.q')}.2d", codes, type_)
    out: Sequence[str] = (b.fresh(f"{name}.2d"),)
    return b.emit("DequantizeLinear", (wide,), {}, out, (replace(b.type(name), shape=shape),))


def _shifted(quant: QuantParams | None) -> QuantParams | None:
    if quant is None or quant.axis is None or quant.axis < 2:
        return quant
    return replace(quant, axis=quant.axis + 1)
