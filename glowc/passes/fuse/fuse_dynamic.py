"""fuse-dynamic: MatMulInteger -> Cast -> Mul by scales -> Add of a bias becomes one layer without s32 tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.base import PassCtx, RewritePass

_F32 = 1  # TensorProto.FLOAT


class FuseDynamic(RewritePass):
    """Bit-exact: the layer rounds where the single operators do. Weights and their scales must be constants."""

    name: ClassVar[str] = "fuse-dynamic"
    ops: ClassVar[tuple[str, ...]] = ("MatMulInteger", "Add")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fuse one product, or the bias after one."""
        return _fuse(node, editor) if node.op == "MatMulInteger" else _add_bias(node, editor)


def _fuse(node: Node, editor: GraphEditor) -> bool:
    weights = editor.consts.get(node.inputs[1])
    if weights is None or weights.ndim != 2:
        return False
    cast = editor.sole_user(node.outputs[0])
    if cast is None or cast.op != "Cast" or cast.int_("to") != _F32:
        return False
    mul = editor.sole_user(cast.outputs[0])
    if mul is None or mul.op != "Mul" or mul.attrs:
        return False
    factor = next((name for name in mul.inputs if name != cast.outputs[0]), None)
    scales = _scales(editor, factor, weights.shape[1]) if factor is not None else None
    point = node.inputs[2] if len(node.inputs) > 2 else ""
    if scales is None or (point and editor.types[point].elements != 1):
        return False
    if editor.types[mul.outputs[0]].shape != editor.types[node.outputs[0]].shape:
        return False
    zeros = editor.consts.get(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] else np.zeros(1, weights.dtype)
    if zeros is None:
        return False
    _emit(editor, node, cast, mul, weights, zeros, scales, point)
    return True


def _scales(editor: GraphEditor, factor: str, count: int) -> tuple[str, np.ndarray] | None:
    """Return (run-time scale, constant scales) of a factor that is their product; None for any other."""
    node = editor.producer(factor)
    if node is not None and node.op == "Mul" and not node.attrs:
        for scalar, other in (node.inputs, node.inputs[::-1]):
            array = editor.consts.get(other)
            if array is not None and array.size in (1, count) and editor.types[scalar].elements == 1:
                if array.size > 1 and array.shape[-1] != count:
                    return None
                return scalar, np.ascontiguousarray(np.broadcast_to(array.reshape(-1), (count,)), np.float32)
    if editor.types[factor].elements == 1 and factor not in editor.consts:
        return factor, np.ones(count, np.float32)
    return None


def _emit(
    editor: GraphEditor,
    node: Node,
    cast: Node,
    mul: Node,
    weights: np.ndarray,
    zeros: np.ndarray,
    scales: tuple[str, np.ndarray],
    point: str,
) -> None:
    base, count = node.inputs[1], weights.shape[1]
    points = np.broadcast_to(zeros.reshape(-1).astype(np.int32), (count,))
    if weights.dtype == np.uint8:
        weights, points = (weights ^ np.uint8(128)).view(np.int8), points - 128
    x_kind = editor.types[node.inputs[0]].dtype
    inputs = (
        node.inputs[0],
        scales[0],
        point or editor.add_const(f"{base}.zero", np.zeros((), x_kind.numpy)),
        editor.add_const(f"{base}.ok", np.ascontiguousarray(weights.T)),
        editor.add_const(f"{base}.scales", scales[1]),
        editor.add_const(f"{base}.points", np.ascontiguousarray(points, np.int32)),
        editor.add_const(f"{base}.bias", np.zeros(count, np.float32)),
    )
    out = mul.outputs[0]
    origin = (*node.origin, *cast.origin, *mul.origin)
    editor.remove(mul)
    editor.remove(cast)
    editor.update(node, op="FullyConnectedDynamic", inputs=inputs, outputs=(out,), attrs={}, origin=origin)


def _add_bias(node: Node, editor: GraphEditor) -> bool:
    for index in (0, 1):
        layer, term = editor.producer(node.inputs[index]), editor.consts.get(node.inputs[1 - index])
        if layer is None or layer.op != "FullyConnectedDynamic" or layer.attrs or term is None:
            continue
        if editor.sole_user(node.inputs[index]) is None or np.any(editor.consts[layer.inputs[6]]):
            continue
        count = editor.types[layer.inputs[6]].elements
        shape = editor.types[node.outputs[0]].shape
        if term.size not in (1, count) or term.dtype != np.float32 or shape != editor.types[layer.outputs[0]].shape:
            continue
        if term.size > 1 and term.shape[-1] != count:
            continue
        bias = np.ascontiguousarray(np.broadcast_to(term.reshape(-1), (count,)))
        name = editor.add_const(f"{node.outputs[0]}.bias", bias)
        act = {key: value for key, value in node.attrs.items() if key.startswith("act_")}
        editor.remove(node)
        inputs, origin = (*layer.inputs[:6], name), (*layer.origin, *node.origin)
        editor.replace_node(layer, replace(layer, inputs=inputs, outputs=node.outputs, attrs=act, origin=origin))
        return True
    return False
