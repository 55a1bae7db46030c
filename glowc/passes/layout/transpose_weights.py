"""transpose-weights: a Transpose that a FullyConnected flattens goes into the order of its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.axes import Perm, inverse, perm_of
from glowc.passes.base import PassCtx, RewritePass

_WEIGHTS = {"FullyConnected": 1, "FullyConnectedDynamic": 3}
"""Where each layer has its weights [outputs, K] among its inputs."""


class TransposeWeights(RewritePass):
    """Transpose -> Reshape to [.., K] -> FullyConnected: the columns of W move instead of the activations."""

    name: ClassVar[str] = "transpose-weights"
    ops: ClassVar[tuple[str, ...]] = tuple(_WEIGHTS)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one FullyConnected."""
        reshape, at = editor.producer(node.inputs[0]), _WEIGHTS[node.op]
        weights = editor.consts.get(node.inputs[at])
        if reshape is None or reshape.op != "Reshape" or weights is None:
            return False
        transpose = editor.producer(reshape.inputs[0])
        if transpose is None or transpose.op != "Transpose":
            return False
        shape, flat = editor.types[transpose.outputs[0]].shape, editor.types[reshape.outputs[0]]
        perm = perm_of(transpose, len(shape))
        lead = _leading_axes(shape, flat.shape, perm)
        if lead is None:
            return False
        moved = np.ascontiguousarray(_moved_columns(weights, shape, perm, lead))
        w = editor.add_const(f"{node.inputs[at]}.t", moved, editor.types[node.inputs[at]])
        x = editor.add_value(f"{reshape.outputs[0]}.t", replace(flat, layout=""))
        editor.add_node("Reshape", (transpose.inputs[0],), (x,), {"shape": flat.shape}, origin=reshape.origin)
        editor.update(node, inputs=(x, *node.inputs[1:at], w, *node.inputs[at + 1 :]))
        return True


def _leading_axes(shape: Sequence[int], flat: Sequence[int], perm: Perm) -> int | None:
    """Return how many axes of `shape` are rows of the FullyConnected; None when the Transpose mixes them."""
    for lead in range(len(shape) + 1):
        fits = math.prod(shape[lead:]) == flat[-1] and math.prod(shape[:lead]) == math.prod(flat[:-1])
        if fits and perm[:lead] == tuple(range(lead)):
            return lead
    return None


def _moved_columns(weights: np.ndarray, shape: Sequence[int], perm: Perm, lead: int) -> np.ndarray:
    cube = weights.reshape(weights.shape[0], *shape[lead:])
    order = [axis - lead + 1 for axis in inverse(perm)[lead:]]
    return cube.transpose(0, *order).reshape(weights.shape)
