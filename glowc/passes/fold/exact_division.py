"""exact-division: a float division by powers of two becomes a multiplication: the same bits for less time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import DType
from glowc.passes.base import PassCtx, RewritePass


@dataclass(frozen=True)
class ExactDivision(RewritePass):
    """Only where the reciprocal of every divisor is exact and a normal number, or `inexact` and a number."""

    inexact: bool = False

    name: ClassVar[str] = "exact-division"
    ops: ClassVar[tuple[str, ...]] = ("Div",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one Div by a constant."""
        divisor = editor.consts.get(node.inputs[1])
        if divisor is None or editor.types[node.inputs[1]].dtype not in (DType.F32, DType.F64):
            return False
        mantissa, exponent = np.frexp(divisor)
        exact = np.all(np.abs(mantissa) == 0.5) or (self.inexact and np.all(mantissa))
        if not exact or np.any(np.abs(exponent) > 100):
            return False
        name = editor.add_const(f"{node.inputs[1]}.inverse", (1 / divisor).astype(divisor.dtype))
        editor.update(node, op="Mul", inputs=(node.inputs[0], name))
        return True
