"""Matching of chains of float operators: constants that are one number, operands of commutative operators, factors."""

from __future__ import annotations

import math

from glowc.graph.graph import GraphEditor, Node
from glowc.passes.operands import find_const


def number(editor: GraphEditor, value: str) -> float | None:
    """Return the real number that a constant of one element is."""
    const = find_const(editor, value) if value else None
    return float(const.real().reshape(-1)[0]) if const is not None and const.array.size == 1 else None


def close(a: float | None, b: float) -> bool:
    """Say whether a constant is `b` but for rounding to float32."""
    return a is not None and math.isclose(a, b, rel_tol=1e-6)


def inner(editor: GraphEditor, value: str, *ops: str) -> Node | None:
    """Return the node of kind `ops` that computes float `value` for one reader only, unclamped."""
    node = editor.producer(value) if value else None
    if node is None or node.op not in ops or not editor.types[value].dtype.is_float:
        return None
    return node if _readers(editor, value) == 1 and not is_clamped(node) else None


def shared(editor: GraphEditor, value: str, *ops: str) -> Node | None:
    """Return the node of kind `ops` that computes float `value`, however many read it."""
    node = editor.producer(value) if value else None
    if node is None or node.op not in ops or not editor.types[value].dtype.is_float:
        return None
    return None if is_clamped(node) or value in editor.outputs else node


def is_clamped(node: Node) -> bool:
    """Say whether an activation was fused into the node."""
    return any(key.startswith("act_") for key in node.attrs)


def _readers(editor: GraphEditor, value: str) -> int:
    return len(editor.users(value)) + (value in editor.outputs)


def with_number(editor: GraphEditor, node: Node) -> tuple[str, float] | None:
    """Return the variable operand of a commutative operator, and the number that is the other one."""
    for index in (0, 1):
        found = number(editor, node.inputs[1 - index])
        if found is not None and node.inputs[index] not in editor.consts:
            return node.inputs[index], found
    return None


def factors(editor: GraphEditor, node: Node) -> tuple[list[str], float]:
    """Return the variable factors of a tree of Mul (and Div by numbers), and the product of its numbers."""
    variables, product, stack = [], 1.0, [node]
    while stack:
        current = stack.pop()
        for index, value in enumerate(current.inputs):
            divides = current.op == "Div" and index == 1
            found = number(editor, value)
            deeper = inner(editor, value, "Mul", "Div")
            if found is not None and not (divides and found == 0.0):
                product = product / found if divides else product * found
            elif deeper is not None and not divides and _is_factor(editor, deeper):
                stack.append(deeper)
            else:
                variables.append(value)
    return variables, product


def _is_factor(editor: GraphEditor, node: Node) -> bool:
    return node.op == "Mul" or number(editor, node.inputs[1]) is not None
