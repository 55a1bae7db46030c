"""Normal forms of operators that move data: what ONNX passes as a constant input becomes an attribute.

Normal forms of operators about positions: running sums, one-hot codes, triangles, identity matrices, scatter.
"""

from __future__ import annotations

import math

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.frontend.symbols import ELEMENT_TYPES
from glowc.graph.attrs import AttrValue


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front; NodeError when there is none such."""
    if not -rank <= axis < rank:
        raise NodeError(f"axis {axis} of a tensor with {rank} axes")
    return axis + rank if axis < 0 else axis


def int_list(node: OnnxNode, b: Builder, index: int, key: str) -> tuple[int, ...] | None:
    """Return a list of integers given as input `index` (new opsets) or as attribute (old ones)."""
    if node.input(index):
        return tuple(int(v) for v in b.need_value(node.inputs[index], key).reshape(-1))
    return node.ints(key)


def reshape(node: OnnxNode, b: Builder) -> None:
    """Reshape with static `shape`: 0 and -1 resolved."""
    x = b.type(node.inputs[0])
    wanted = int_list(node, b, 1, "shape")
    if wanted is None:
        raise NodeError("no shape is given")
    keep = node.int_("allowzero", 0) == 0
    dims = [x.shape[i] if d == 0 and keep and i < x.rank else d for i, d in enumerate(wanted)]
    if dims.count(-1) == 1:
        rest = math.prod(d for d in dims if d != -1)
        dims[dims.index(-1)] = x.elements // rest if rest > 0 and x.elements % rest == 0 else -1
    if any(d < 0 for d in dims) or math.prod(dims) != x.elements:
        raise NodeError(
            f"cannot reshape {x} ({x.elements} elements) to {list(wanted)}",
            "a shape with a fixed batch size needs --batch-size of that size",
        )
    emit_reshape(b, node.inputs[0], dims, node.outputs[0])


def emit_reshape(b: Builder, source: str, shape: list[int] | tuple[int, ...], out: str | None = None) -> str:
    """Append a Reshape to `shape`."""
    return b.emit("Reshape", (source,), {"shape": tuple(shape)}, (out,) if out else None)


def flatten(node: OnnxNode, b: Builder) -> None:
    """Flatten -> Reshape to two axes."""
    x, axis = b.type(node.inputs[0]), node.int_("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    if not 0 <= axis <= x.rank:
        raise NodeError(f"axis {axis} of {x}")
    emit_reshape(b, node.inputs[0], (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])), node.outputs[0])


def squeeze(node: OnnxNode, b: Builder) -> None:
    """Squeeze -> Reshape."""
    x, axes = b.type(node.inputs[0]), int_list(node, b, 1, "axes")
    gone = {axis_of(a, x.rank) for a in axes} if axes is not None else {i for i, d in enumerate(x.shape) if d == 1}
    if any(x.shape[a] != 1 for a in gone):
        raise NodeError(f"cannot squeeze axes {sorted(gone)} of {x}")
    emit_reshape(b, node.inputs[0], [d for i, d in enumerate(x.shape) if i not in gone], node.outputs[0])


def unsqueeze(node: OnnxNode, b: Builder) -> None:
    """Unsqueeze -> Reshape."""
    x, axes = b.type(node.inputs[0]), int_list(node, b, 1, "axes") or ()
    rank = x.rank + len(axes)
    added = {axis_of(a, rank) for a in axes}
    if len(added) != len(axes):
        raise NodeError(f"axes {list(axes)} name an axis twice")
    rest = iter(x.shape)
    emit_reshape(b, node.inputs[0], [1 if i in added else next(rest) for i in range(rank)], node.outputs[0])


def expand(node: OnnxNode, b: Builder) -> None:
    """Expand to the whole, static output shape."""
    x, wanted = b.type(node.inputs[0]), int_list(node, b, 1, "shape") or ()
    try:
        shape = np.broadcast_shapes(x.shape, wanted)
    except ValueError:
        raise NodeError(f"cannot expand {x} to {list(wanted)}") from None
    same = shape == x.shape
    b.emit("Identity" if same else "Expand", node.inputs[:1], {} if same else {"shape": shape}, node.outputs)


def tile(node: OnnxNode, b: Builder) -> None:
    """Tile with attribute `repeats`."""
    repeats = int_list(node, b, 1, "repeats") or ()
    one = all(r == 1 for r in repeats)
    b.emit("Identity" if one else "Tile", node.inputs[:1], {} if one else {"repeats": repeats}, node.outputs)


def slice_(node: OnnxNode, b: Builder) -> None:
    """Slice with sorted axes and clamped bounds; axes that stay whole are left out.

    A negative step that runs past index 0 has the end -(dim + 1), which every reading clamps to "before 0".
    """
    x = b.type(node.inputs[0])
    starts, ends = int_list(node, b, 1, "starts"), int_list(node, b, 2, "ends")
    if starts is None or ends is None:
        raise NodeError("starts or ends are missing")
    axes = int_list(node, b, 3, "axes") or tuple(range(len(starts)))
    steps = int_list(node, b, 4, "steps") or (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise NodeError(f"starts {list(starts)}, ends {list(ends)}, axes {list(axes)} and steps {list(steps)}")
    parts: dict[int, tuple[int, int, int]] = {}
    kept = list(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index = axis_of(axis, x.rank)
        bounds = slice_bounds(start, end, step, x.shape[index])
        kept[index] = len(range(*bounds))
        if bounds != (0, x.shape[index], 1):
            parts[index] = bounds
    if 0 in kept:
        b.set_empty(node.outputs[0], x.with_shape(kept))
        return
    parts = {
        index: (first, last if last >= 0 else -(x.shape[index] + 1), step)
        for index, (first, last, step) in parts.items()
    }
    if not parts:
        b.emit("Identity", node.inputs[:1], {}, node.outputs)
        return
    first, last, step_ = (tuple(parts[a][i] for a in sorted(parts)) for i in range(3))
    attrs = {"starts": first, "ends": last, "axes": tuple(sorted(parts)), "steps": step_}
    b.emit("Slice", node.inputs[:1], attrs, node.outputs)


def slice_bounds(start: int, end: int, step: int, dim: int) -> tuple[int, int, int]:
    """Return start, end and step as `range` takes them, clamped to an axis of `dim` elements."""
    low, high = (0, dim) if step > 0 else (-1, dim - 1)
    first, last = (min(max(v + dim if v < 0 else v, low), high) for v in (start, end))
    return first, last, step


def split(node: OnnxNode, b: Builder) -> None:
    """Split with the length of every part."""
    x = b.type(node.inputs[0])
    axis, count = axis_of(node.int_("axis", 0), x.rank), len(node.outputs)
    dim = x.shape[axis]
    chunk = -(-dim // node.int_("num_outputs", count))
    sizes = int_list(node, b, 1, "split") or tuple(min(chunk, max(0, dim - i * chunk)) for i in range(count))
    if sum(sizes) != dim or len(sizes) != count:
        raise NodeError(f"parts {list(sizes)} of axis {axis} of {x} for {count} outputs")
    filled = [(size, out) for size, out in zip(sizes, node.outputs, strict=True) if size]
    for size, out in zip(sizes, node.outputs, strict=True):
        if not size and out:
            b.set_empty(out, x.with_shape([0 if i == axis else d for i, d in enumerate(x.shape)]))
    if len(filled) == 1:
        b.emit("Identity", node.inputs[:1], {}, [out for _, out in filled])
    elif filled:
        attrs: dict[str, AttrValue] = {"axis": axis, "split": tuple(size for size, _ in filled)}
        b.emit("Split", node.inputs[:1], attrs, [out for _, out in filled])


def pad(node: OnnxNode, b: Builder) -> None:
    """Pad with pads of every axis (begins, then ends) and a value in real units."""
    x = b.type(node.inputs[0])
    given = int_list(node, b, 1, "pads") or node.ints("paddings") or ()
    axes = int_list(node, b, 3, "axes") or tuple(range(x.rank))
    if len(given) != 2 * len(axes):
        raise NodeError(f"pads {list(given)} for axes {list(axes)} of {x}")
    pads = [0] * (2 * x.rank)
    for i, axis in enumerate(axes):
        index = axis_of(axis, x.rank)
        pads[index], pads[index + x.rank] = given[i], given[i + len(axes)]
    if not any(pads):
        b.emit("Identity", node.inputs[:1], {}, node.outputs)
        return
    attrs: dict[str, AttrValue] = {
        "pads": tuple(pads),
        "mode": node.str_("mode", "constant"),
        "value": _pad_value(node, b),
    }
    b.emit("Pad", node.inputs[:1], attrs, node.outputs)


def _pad_value(node: OnnxNode, b: Builder) -> float:
    value = node.float_("value", 0.0)
    if node.input(2):
        value = float(b.need_value(node.inputs[2], "the pad value").reshape(-1)[0])
    quant = b.type(node.inputs[0]).quant
    if quant is not None and not quant.per_axis:  # a raw code stands for this real number
        return float((value - quant.zero_point[0]) * np.float32(quant.scale[0]))
    return value


def transpose(node: OnnxNode, b: Builder) -> None:
    """Transpose with explicit perm."""
    rank = b.type(node.inputs[0]).rank
    perm = node.ints("perm") or tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        raise NodeError(f"perm {list(perm)} of a tensor with {rank} axes")
    b.emit("Transpose", node.inputs, {"perm": perm}, node.outputs)


def concat(node: OnnxNode, b: Builder) -> None:
    """Concat with an axis counted from the front; of one input it is Identity."""
    axis = axis_of(node.int_("axis", 1), b.type(node.inputs[0]).rank)
    inputs = [name for name in node.inputs if b.type(name).elements] or list(node.inputs)
    one = len(inputs) == 1
    b.emit("Identity" if one else "Concat", inputs, {} if one else {"axis": axis}, node.outputs)


def identity(node: OnnxNode, b: Builder) -> None:
    """Identity and Dropout at inference."""
    if node.op == "Dropout" and node.input(2):
        training = b.need_value(node.inputs[2], "training_mode").any()
        if training and (not node.input(1) or b.need_value(node.inputs[1], "the ratio").any()):
            raise NodeError("training mode is not supported", "export the model in inference mode: model.eval()")
    if len(node.outputs) > 1 and node.outputs[1] in b.read:
        b.set_const(node.outputs[1], np.ones(b.type(node.inputs[0]).shape, np.bool_))
    b.emit("Identity", node.inputs[:1], {}, node.outputs[:1])


def along_axis(node: OnnxNode, b: Builder) -> None:
    """Operators with one axis (Gather, GatherElements): explicit and counted from the front."""
    axis = axis_of(node.int_("axis", 0), b.type(node.inputs[0]).rank)
    b.emit(node.op, node.inputs, {**node.attrs, "axis": axis}, node.outputs)


def cumulate(node: OnnxNode, b: Builder) -> None:
    """CumSum and CumProd with attribute axis."""
    axis = int_list(node, b, 1, "axis")
    if not axis or len(axis) != 1:
        raise NodeError("it needs one axis")
    attrs = {
        "axis": axis_of(axis[0], b.type(node.inputs[0]).rank), "exclusive": node.int_("exclusive", 0),
        "reverse": node.int_("reverse", 0),
    }  # fmt: skip
    b.emit(node.op, node.inputs[:1], attrs, node.outputs)


def one_hot(node: OnnxNode, b: Builder) -> None:
    """OneHot(indices, values) with attribute depth."""
    depth = b.need_value(node.inputs[1], "the depth").reshape(-1)
    rank = b.type(node.inputs[0]).rank
    attrs = {"axis": axis_of(node.int_("axis", -1), rank + 1), "depth": int(depth[0])}
    b.emit("OneHot", (node.inputs[0], node.inputs[2]), attrs, node.outputs)


def trilu(node: OnnxNode, b: Builder) -> None:
    """Trilu -> Where with a constant mask."""
    x = b.type(node.inputs[0])
    k = int_list(node, b, 1, "k") or (0,)
    if x.rank < 2:
        raise NodeError(f"{x} is no matrix")
    rows, cols = x.shape[-2:]
    distance = np.arange(cols)[None, :] - np.arange(rows)[:, None]
    keep = distance >= k[0] if node.int_("upper", 1) else distance <= k[0]
    mask = b.add_const(f"{node.outputs[0]}.mask", keep)
    zero = b.add_const(f"{node.outputs[0]}.zero", np.zeros((), x.dtype.numpy))
    b.emit("Where", (mask, node.inputs[0], zero), {}, node.outputs)


def eye_like(node: OnnxNode, b: Builder) -> None:
    """EyeLike -> a constant: only the shape and the kind of its input matter."""
    x = b.type(node.inputs[0])
    number = node.int_("dtype", 0)
    kind = ELEMENT_TYPES.get(number) if number else x.dtype
    if x.rank != 2 or kind is None:
        raise NodeError(f"identity matrix like {x}, element type {number}")
    b.set_const(node.outputs[0], np.eye(x.shape[0], x.shape[1], k=node.int_("k", 0)).astype(kind.numpy))


def scatter(node: OnnxNode, b: Builder) -> None:
    """Scatter and ScatterElements, ScatterND: defaults explicit."""
    attrs: dict[str, int | str] = {"reduction": node.str_("reduction", "none")}
    if node.op != "ScatterND":
        attrs["axis"] = axis_of(node.int_("axis", 0), b.type(node.inputs[0]).rank)
    b.emit("ScatterND" if node.op == "ScatterND" else "ScatterElements", node.inputs, attrs, node.outputs)
