"""fuse-gelu: the chains of Erf or Tanh that stand for Gelu become one operator."""

from __future__ import annotations

import math
from typing import ClassVar

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.fuse.chains import close, factors, inner, is_clamped, number, with_number

_TANH_SCALE, _CUBE = math.sqrt(2 / math.pi), 0.044715


class FuseGelu(RewritePass):
    """x * 0.5 * (1 + Erf(x / sqrt 2)), and x * 0.5 * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), with the factors
    in any order. The result differs by the roundings in between, which the operator does not have.
    """

    name: ClassVar[str] = "fuse-gelu"
    ops: ClassVar[tuple[str, ...]] = ("Mul", "Div")

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite the chain that ends in `node`."""
        out = node.outputs[0]
        if not editor.types[out].dtype.is_float or is_clamped(node):
            return False
        if node.op == "Div" and number(editor, node.inputs[1]) is None:
            return False
        variables, product = factors(editor, node)
        if len(variables) != 2 or not close(product, 0.5):
            return False
        for x, bracket in (variables, variables[::-1]):
            kind = _kind(editor, bracket, x)
            if kind is not None and editor.types[x].shape == editor.types[out].shape:
                editor.update(node, op="Gelu", inputs=(x,), attrs={"approximate": kind})
                return True
        return False


def _kind(editor: GraphEditor, bracket: str, x: str) -> str | None:
    """Return which Gelu 1 + Erf(..) or 1 + Tanh(..) belongs to; None when it is something else."""
    add = inner(editor, bracket, "Add")
    found = with_number(editor, add) if add is not None else None
    if found is None or not close(found[1], 1.0):
        return None
    erf = inner(editor, found[0], "Erf")
    if erf is not None and _scaled(editor, erf.inputs[0], x, math.sqrt(0.5)):
        return "none"
    tanh = inner(editor, found[0], "Tanh")
    return "tanh" if tanh is not None and _tanh_argument(editor, tanh.inputs[0], x) else None


def _scaled(editor: GraphEditor, value: str, x: str, factor: float) -> bool:
    node = inner(editor, value, "Mul", "Div")
    if node is None:
        return False
    variables, product = factors(editor, node)
    return variables == [x] and close(product, factor)


def _tanh_argument(editor: GraphEditor, value: str, x: str) -> bool:
    """Match sqrt(2 / pi) * (x + 0.044715 * x^3), or sqrt(2 / pi) * x * (1 + 0.044715 * x^2)."""
    node = inner(editor, value, "Mul", "Div")
    variables, product = factors(editor, node) if node is not None else ([], 0.0)
    if not close(product, _TANH_SCALE):
        return False
    if len(variables) == 1:
        add = inner(editor, variables[0], "Add")
        return add is not None and any(add.inputs[i] == x and _power(editor, add.inputs[1 - i], x, 3) for i in (0, 1))
    for plain, bracket in (variables, variables[::-1]) if len(variables) == 2 else ():
        add = inner(editor, bracket, "Add")
        found = with_number(editor, add) if add is not None and plain == x else None
        if found is not None and close(found[1], 1.0) and _power(editor, found[0], x, 2):
            return True
    return False


def _power(editor: GraphEditor, value: str, x: str, exponent: int) -> bool:
    """Match 0.044715 * x^exponent."""
    node = inner(editor, value, "Mul", "Div")
    if node is None:
        return False
    variables, product = factors(editor, node)
    if not close(product, _CUBE):
        return False
    degree = 0
    for name in variables:
        power = inner(editor, name, "Pow")
        if name == x:
            degree += 1
        elif power is not None and power.inputs[0] == x and number(editor, power.inputs[1]) in (2.0, 3.0):
            degree += int(number(editor, power.inputs[1]) or 0)
        else:
            return False
    return degree == exponent
