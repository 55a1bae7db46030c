"""Operators that move elements; their codes stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import NHWC, Net
from glowc.frontend.tflite.operators.options import option, positive, same_count
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue
from glowc.graph.types import TensorType

Ints = tuple[int, ...]
Part = tuple[int, int, int]


def ints(net: Net, index: int, what: str) -> Ints:
    """Return a constant list of whole numbers."""
    return tuple(int(v) for v in net.need(index, what).reshape(-1))


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise NodeError(f"axis {axis} of {rank} axes")
    return axis % max(rank, 1)


def reshape(operator: Operator, net: Net) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the shape is that of the result, or follows from the inputs."""
    out, x = operator.outputs[0], net.type(operator.inputs[0])
    found = _RESHAPES[operator.code](operator, net, x) if net.is_open(out) else net.type(out).shape
    net.emit("Reshape", (net.value(operator.inputs[0]),), {"shape": found}, out=out)


def _new_shape(operator: Operator, net: Net, x: TensorType) -> Ints:
    """Return what RESHAPE asks for, by its second input or an option; -1 is the rest."""
    given = operator.options.get("NewShape")
    wanted = [int(v) for v in given] if isinstance(given, tuple) else []
    if len(operator.inputs) > 1 and operator.inputs[1] >= 0:
        wanted = list(ints(net, operator.inputs[1], "the shape"))
    if -1 in wanted:
        known = math.prod(d for d in wanted if d != -1)
        wanted[wanted.index(-1)] = x.elements // known if known else 0
    if math.prod(wanted) != x.elements or min(wanted, default=1) < 0:
        raise NodeError(f"{x} in the shape {wanted}", "convert the model with the input shape that you need")
    return tuple(wanted)


def _squeezed(operator: Operator, _: Net, x: TensorType) -> Ints:
    given = operator.options.get("SqueezeDims")
    axes = {axis_of(int(a), x.rank) for a in given} if isinstance(given, tuple) else set()
    return tuple(d for a, d in enumerate(x.shape) if d != 1 or (axes and a not in axes))


def _expanded(operator: Operator, net: Net, x: TensorType) -> Ints:
    axis = axis_of(ints(net, operator.inputs[1], "the axis")[0], x.rank + 1)
    return (*x.shape[:axis], 1, *x.shape[axis:])


_RESHAPES: Mapping[str, Callable[[Operator, Net, TensorType], Ints]] = {
    "RESHAPE": _new_shape, "SQUEEZE": _squeezed, "EXPAND_DIMS": _expanded,
}  # fmt: skip


def same_codes(operator: Operator, net: Net, inputs: Sequence[int]) -> None:
    """NodeError where operands of a move are quantised otherwise than its result."""
    out = net.type(operator.outputs[0])
    for index in inputs:
        if net.type(index).quant != out.quant:
            raise NodeError(f'"{net.tensor(index).name}" is quantized otherwise than the result')


def concatenation(operator: Operator, net: Net) -> None:
    """CONCATENATION: operands of other scales are rescaled first."""
    out = net.type(operator.outputs[0])
    values = [_as(net, net.value(i), out) for i in operator.inputs if 0 not in net.type(i).shape or 0 in out.shape]
    if option(operator, "FusedActivationFunction"):
        raise NodeError("a fused activation")
    net.emit("Concat", values, {"axis": axis_of(option(operator, "Axis"), out.rank)}, out=operator.outputs[0])


def _as(net: Net, value: str, out: TensorType) -> str:
    """Return codes in the quantisation of `out`."""
    type_ = net.types[value]
    if type_.quant is None or (type_.quant, type_.dtype) == (out.quant, out.dtype):
        return value
    target = TensorType(type_.shape, out.dtype, out.quant)
    return net.emit("FixedRescale", (value,), {"dtype": out.dtype.value}, type_=target)


def pack(operator: Operator, net: Net) -> None:
    """PACK: the tensors along a new axis."""
    out = net.type(operator.outputs[0])
    if any(net.type(i).rank != out.rank - 1 for i in operator.inputs):
        raise NodeError(f"the result {out} needs one axis more than the inputs have")
    same_count(operator, "ValuesCount", len(operator.inputs))
    axis = axis_of(option(operator, "Axis"), out.rank)
    parts = []
    for i in operator.inputs:
        shape = net.type(i).shape
        parts.append(net.reshaped(net.value(i), (*shape[:axis], 1, *shape[axis:])))
    net.emit("Concat", parts, {"axis": axis}, out=operator.outputs[0])


def unpack(operator: Operator, net: Net) -> None:
    """UNPACK: the slices of an axis, without it."""
    x = net.type(operator.inputs[0])
    axis = axis_of(option(operator, "Axis"), x.rank)
    same_count(operator, "Num", x.shape[axis])
    same_count(operator, "Num", len(operator.outputs))
    for i, out in enumerate(operator.outputs):
        part = _sliced(net, operator.inputs[0], {axis: (i, i + 1, 1)})
        net.emit("Reshape", (part,), {"shape": (*x.shape[:axis], *x.shape[axis + 1 :])}, out=out)


def _sliced(net: Net, index: int, parts: dict[int, Part], out: int | None = None) -> str:
    """Return the elements from begin to before end of some axes."""
    x = net.type(index)
    axes = tuple(sorted(parts))
    attrs: dict[str, AttrValue] = {
        "starts": tuple(parts[a][0] for a in axes), "axes": axes, "steps": tuple(parts[a][2] for a in axes),
        "ends": tuple(parts[a][1] if parts[a][1] >= 0 else -x.shape[a] - 1 for a in axes),  # before the first one
    }  # fmt: skip
    shape = list(x.shape)
    for axis, (begin, end, step) in parts.items():
        shape[axis] = len(range(begin, end, step))
    type_ = None if out is not None else x.with_shape(shape)
    return net.emit("Slice", (net.value(index),), attrs, out=out, type_=type_)


def split(operator: Operator, net: Net) -> None:
    """SPLIT and SPLIT_V: pieces along an axis."""
    data, axis = (1, 0) if operator.code == "SPLIT" else (0, 2)
    x = net.type(operator.inputs[data])
    same_count(operator, "NumSplits", len(operator.outputs))
    along = axis_of(ints(net, operator.inputs[axis], "the axis")[0], x.rank)
    begin = 0
    for out, length in zip(operator.outputs, _lengths(operator, net, along, x.shape[along]), strict=True):
        _sliced(net, operator.inputs[data], {along: (begin, begin + length, 1)}, out)
        begin += length
    if begin != x.shape[along]:
        raise NodeError(f"pieces of together {begin} along axis {along} of {x}")


def _lengths(operator: Operator, net: Net, along: int, whole: int) -> list[int]:
    """Return how long the pieces of SPLIT and SPLIT_V are."""
    outs = operator.outputs
    if not any(net.is_open(out) for out in outs):
        return [net.type(out).shape[along] for out in outs]
    if operator.code == "SPLIT":
        return [whole // len(outs)] * len(outs)
    wanted = ints(net, operator.inputs[1], "the lengths")
    return [whole - sum(w for w in wanted if w >= 0) if w < 0 else w for w in wanted]


def slice_(operator: Operator, net: Net) -> None:
    """SLICE: begin and size of every axis, size -1 for the rest."""
    x = net.type(operator.inputs[0])
    begin, size = ints(net, operator.inputs[1], "the begin"), ints(net, operator.inputs[2], "the size")
    ends = [b + s if s >= 0 else n for b, s, n in zip(begin, size, x.shape, strict=True)]
    if any(not 0 <= b <= e <= n for b, e, n in zip(begin, ends, x.shape, strict=True)):
        raise NodeError(f"begin {list(begin)} and size {list(size)} of {x}")
    _sliced(net, operator.inputs[0], {i: (b, e, 1) for i, (b, e) in enumerate(zip(begin, ends, strict=True))},
            operator.outputs[0])  # fmt: skip


def strided_slice(operator: Operator, net: Net) -> None:
    """STRIDED_SLICE with masks of begin, end, axes that vanish and new ones; an ellipsis stands for whole axes."""
    x, out = net.type(operator.inputs[0]), operator.outputs[0]
    parts, shape = _strided(operator, net, x)
    if any(not len(range(*part)) for part in parts.values()) and 0 not in net.type(out).shape and not net.is_open(out):
        raise NodeError(f"{x}: the slice takes nothing of it")
    array = net.const(operator.inputs[0])
    if array is not None:
        found = array[tuple(_slice(parts[a]) for a in sorted(parts))].reshape(shape)
        net.define(out, net.add_const(net.tensor(out).name, found, net.type(out).with_shape(shape)))
    elif tuple(len(range(*parts[a])) if a in parts else n for a, n in enumerate(x.shape)) == shape:
        _sliced(net, operator.inputs[0], parts, out)
    else:
        net.emit("Reshape", (_sliced(net, operator.inputs[0], parts),), {"shape": shape}, out=out)


def _strided(operator: Operator, net: Net, x: TensorType) -> tuple[dict[int, Part], Ints]:
    """Return begin, end and step of the axes, and the shape of the result."""
    lists = [ints(net, operator.inputs[i], what) for i, what in ((1, "begin"), (2, "end"), (3, "strides"))]
    masks = {key: option(operator, f"{key}Mask") for key in ("Ellipsis", "NewAxis", "ShrinkAxis")}
    count = len(lists[0])
    plain = sum(1 for i in range(count) if not (masks["Ellipsis"] | masks["NewAxis"]) >> i & 1)
    parts: dict[int, Part] = {}
    shape: list[int] = []
    axis = 0
    for at, wanted in enumerate(zip(*lists, strict=True)):
        if masks["Ellipsis"] >> at & 1:
            shape += x.shape[axis : axis + x.rank - plain]
            axis += x.rank - plain
        elif masks["NewAxis"] >> at & 1:
            shape.append(1)
        elif axis >= x.rank:
            raise NodeError(f"begin, end and strides of {count} axes for {x}")
        else:
            parts[axis] = _range(operator, at, x.shape[axis], wanted)
            shape += [] if masks["ShrinkAxis"] >> at & 1 else [len(range(*parts[axis]))]
            axis += 1
    return parts, (*shape, *x.shape[axis:])


def _slice(part: Part) -> slice:
    begin, end, step = part
    return slice(begin, end if end >= 0 else None, step)


def _range(operator: Operator, at: int, length: int, wanted: Part) -> Part:
    """Return begin, end and step along an axis, where masks (bit `at`) and negative numbers mean what they do."""
    begin, end, step = wanted
    if step == 0:
        raise NodeError("a stride of 0")
    bit, backwards = 1 << at, step < 0
    first, last = (length - 1, -1) if backwards else (0, length)
    low, high = (-1, length - 1) if backwards else (0, length)
    begin = first if option(operator, "BeginMask") & bit else min(max(begin + (length if begin < 0 else 0), low), high)
    if option(operator, "ShrinkAxisMask") & bit:
        return begin, begin + 1, 1
    offset = operator.options.get("Offset", False)
    end = begin + end if offset else end + (length if end < 0 else 0)
    end = last if option(operator, "EndMask") & bit else min(max(end, low), high)
    return begin, end, step


def transpose(operator: Operator, net: Net) -> None:
    """TRANSPOSE."""
    attrs = {"perm": ints(net, operator.inputs[1], "the permutation")}
    net.emit("Transpose", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


def pad(operator: Operator, net: Net) -> None:
    """PAD and PADV2 with real zero or a constant."""
    x = net.type(operator.inputs[0])
    amounts = net.need(operator.inputs[1], "the padding").reshape(-1, 2)
    attrs: dict[str, AttrValue] = {"pads": tuple(int(v) for v in amounts.T.reshape(-1))}
    if operator.code == "PADV2":
        code = net.need(operator.inputs[2], "the value").reshape(-1)[0]
        quant = x.quant
        attrs["value"] = float(code) if quant is None else (int(code) - quant.zero_point[0]) * quant.scale[0]
    net.emit("Pad", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


def shape(operator: Operator, net: Net) -> None:
    """SHAPE: a constant."""
    out = net.type(operator.outputs[0])
    found = np.asarray(net.type(operator.inputs[0]).shape, out.dtype.numpy)
    net.define(operator.outputs[0], net.add_const(net.tensor(operator.outputs[0]).name, found))


def fill(operator: Operator, net: Net) -> None:
    """FILL, BROADCAST_TO: an element or a tensor repeated."""
    source, shape = operator.inputs[:2] if operator.code != "FILL" else operator.inputs[1::-1]
    out = operator.outputs[0]
    wanted = ints(net, shape, "the shape") if net.is_open(out) else net.type(out).shape
    net.emit("Expand", (net.value(source),), {"shape": wanted}, out=out)


def tile(operator: Operator, net: Net) -> None:
    """TILE."""
    attrs = {"repeats": ints(net, operator.inputs[1], "the repeats")}
    net.emit("Tile", (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


def gather(operator: Operator, net: Net) -> None:
    """GATHER along an axis, the first ones of both may go together; GATHER_ND; EMBEDDING_LOOKUP."""
    data, index = (1, 0) if operator.code == "EMBEDDING_LOOKUP" else (0, 1)
    values = net.value(operator.inputs[data]), net.value(operator.inputs[index])
    if operator.code == "GATHER_ND":
        net.emit("GatherND", values, out=operator.outputs[0])
        return
    axis = axis_of(option(operator, "Axis"), net.type(operator.inputs[data]).rank)
    if option(operator, "BatchDims"):
        _gather_by_batch(operator, net, axis)
    else:
        net.emit("Gather", values, {"axis": axis}, out=operator.outputs[0])


def _gather_by_batch(operator: Operator, net: Net, axis: int) -> None:
    """GATHER whose first axes are those of the indices as well: rows of one line, their numbers moved by batch."""
    x, where = (net.type(i) for i in operator.inputs[:2])
    batch = option(operator, "BatchDims") % max(where.rank, 1)
    if axis != batch or x.shape[:batch] != where.shape[:batch]:
        raise NodeError(f"batch_dims {batch} of {x} and {where} along axis {axis}")
    lead, rows = math.prod(x.shape[:batch]), x.shape[axis]
    line = net.reshaped(net.value(operator.inputs[0]), (lead * rows, *x.shape[axis + 1 :]))
    index = net.reshaped(net.value(operator.inputs[1]), (lead, where.elements // lead))
    begins = net.add_const("begins", (np.arange(lead) * rows).astype(where.dtype.numpy).reshape(lead, 1))
    moved = net.reshaped(net.emit("Add", (index, begins)), (where.elements,))
    found = net.emit("Gather", (line, moved), {"axis": 0})
    attrs = {"shape": (*where.shape, *x.shape[axis + 1 :])}
    net.emit("Reshape", (found,), attrs, out=operator.outputs[0])


def depth_space(operator: Operator, net: Net) -> None:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH."""
    op = "DepthToSpace" if operator.code == "DEPTH_TO_SPACE" else "SpaceToDepth"
    attrs = {"blocksize": positive(operator, "BlockSize")[0], **NHWC}
    net.emit(op, (net.value(operator.inputs[0]),), attrs, out=operator.outputs[0])


def reverse(operator: Operator, net: Net) -> None:
    """REVERSE_V2 along constant axes."""
    x = net.type(operator.inputs[0])
    axes = sorted({axis_of(a, x.rank) for a in ints(net, operator.inputs[1], "the axes")})
    _sliced(net, operator.inputs[0], {a: (x.shape[a] - 1, -1, -1) for a in axes}, operator.outputs[0])


def space_to_batch(operator: Operator, net: Net) -> None:
    """SPACE_TO_BATCH_ND: real zeros around, then blocks of positions become images.

    The runtime pads with bytes that its memory happens to hold: two runs of one model differ.
    """
    x = net.type(operator.inputs[0])
    block = ints(net, operator.inputs[1], "the block")
    around = net.need(operator.inputs[2], "the padding").reshape(-1, 2)
    spatial = len(block)
    amounts = np.zeros((x.rank, 2), np.int64)
    amounts[1 : 1 + spatial] = around
    padded = [n + int(a.sum()) for n, a in zip(x.shape, amounts, strict=True)]
    value = net.value(operator.inputs[0])
    if amounts.any():
        pads = {"pads": tuple(int(v) for v in amounts.T.reshape(-1))}
        value = net.emit("Pad", (value,), pads, type_=x.with_shape(padded))
    if any(n % b for n, b in zip(padded[1 : 1 + spatial], block, strict=True)):
        raise NodeError(f"{x} with padding {around.tolist()} is no whole number of blocks {list(block)}")
    pairs = [d for n, b in zip(padded[1 : 1 + spatial], block, strict=True) for d in (n // b, b)]
    value = net.reshaped(value, (x.shape[0], *pairs, *padded[1 + spatial :]))
    inner = range(1 + 2 * spatial, 1 + 2 * spatial + x.rank - 1 - spatial)
    perm = (*range(2, 2 + 2 * spatial, 2), 0, *range(1, 1 + 2 * spatial, 2), *inner)
    value = net.emit("Transpose", (value,), {"perm": perm}, type_=_permuted(net.types[value], perm))
    blocks = [n // b for n, b in zip(padded[1 : 1 + spatial], block, strict=True)]
    shape = (x.shape[0] * math.prod(block), *blocks, *padded[1 + spatial :])
    net.emit("Reshape", (value,), {"shape": shape}, out=operator.outputs[0])


def batch_to_space(operator: Operator, net: Net) -> None:
    """BATCH_TO_SPACE_ND: the way back, with a crop."""
    x = net.type(operator.inputs[0])
    block = ints(net, operator.inputs[1], "the block")
    crops = net.need(operator.inputs[2], "the crops").reshape(-1, 2)
    spatial, batch = len(block), x.shape[0] // max(math.prod(block), 1)
    if batch * math.prod(block) != x.shape[0] or not batch:
        raise NodeError(f"{x} is no whole number of blocks {list(block)}")
    value = net.reshaped(net.value(operator.inputs[0]), (*block, batch, *x.shape[1:]))
    order = [spatial]
    for i in range(spatial):
        order += [spatial + 1 + i, i]
    perm = (*order, *range(2 * spatial + 1, spatial + x.rank))
    value = net.emit("Transpose", (value,), {"perm": perm}, type_=_permuted(net.types[value], perm))
    whole = (batch, *(n * b for n, b in zip(x.shape[1:], block, strict=False)), *x.shape[1 + spatial :])
    if not crops.any():
        net.emit("Reshape", (value,), {"shape": whole}, out=operator.outputs[0])
        return
    value = net.reshaped(value, whole)
    attrs: dict[str, AttrValue] = {
        "starts": tuple(int(c[0]) for c in crops), "axes": tuple(range(1, 1 + spatial)), "steps": (1,) * spatial,
        "ends": tuple(whole[1 + i] - int(c[1]) for i, c in enumerate(crops)),
    }  # fmt: skip
    net.emit("Slice", (value,), attrs, out=operator.outputs[0])


def _permuted(type_: TensorType, perm: Sequence[int]) -> TensorType:
    return type_.with_shape([type_.shape[i] for i in perm])


def densify(operator: Operator, net: Net) -> None:
    """DENSIFY: a sparse constant, which is dense since it was read."""
    net.need(operator.inputs[0], "the sparse tensor")
    net.define(operator.outputs[0], net.value(operator.inputs[0]))


def zeros_like(operator: Operator, net: Net) -> None:
    """ZEROS_LIKE: a constant."""
    out = net.type(operator.outputs[0]).with_shape(net.type(operator.inputs[0]).shape)
    net.define(operator.outputs[0], net.add_const("zeros", np.zeros(out.shape, out.dtype.numpy), out))


HANDLERS = {
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), reshape),
    **dict.fromkeys(("SPLIT", "SPLIT_V"), split),
    **dict.fromkeys(("PAD", "PADV2"), pad),
    **dict.fromkeys(("FILL", "BROADCAST_TO"), fill),
    **dict.fromkeys(("GATHER", "GATHER_ND", "EMBEDDING_LOOKUP"), gather),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), depth_space),
    "CONCATENATION": concatenation, "PACK": pack, "UNPACK": unpack, "SLICE": slice_, "STRIDED_SLICE": strided_slice,
    "TRANSPOSE": transpose, "SHAPE": shape, "TILE": tile, "REVERSE_V2": reverse, "ZEROS_LIKE": zeros_like,
    "SPACE_TO_BATCH_ND": space_to_batch, "BATCH_TO_SPACE_ND": batch_to_space, "DENSIFY": densify,
}  # fmt: skip
