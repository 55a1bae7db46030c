"""Normal forms of operators about positions: running sums, one-hot codes, triangles, identity matrices, scatter."""

from __future__ import annotations

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.normalize_shape import axis_of, int_list
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.frontend.symbols import ELEMENT_TYPES


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
