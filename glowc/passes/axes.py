"""Permutations of axes, applied to types, constants and per-axis quantisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import QuantParams, TensorType

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)

Perm = tuple[int, ...]


def inverse(perm: Sequence[int]) -> Perm:
    """Return the permutation that undoes `perm`."""
    result = [0] * len(perm)
    for new, old in enumerate(perm):
        result[old] = new
    return tuple(result)


def compose(first: Sequence[int], then: Sequence[int]) -> Perm:
    """Return the permutation that does `first` and then `then`."""
    return tuple(first[axis] for axis in then)


def is_identity(perm: Sequence[int]) -> bool:
    """Say whether `perm` moves nothing."""
    return tuple(perm) == tuple(range(len(perm)))


def moves_only_units(shape: Sequence[int], perm: Sequence[int]) -> bool:
    """Say whether transposing `shape` by `perm` keeps the elements in their order."""
    kept = [axis for axis in perm if shape[axis] != 1]
    return kept == sorted(kept)


def permuted(type_: TensorType, perm: Sequence[int]) -> TensorType:
    """Return the type of a transposed tensor."""
    shape = tuple(type_.shape[axis] for axis in perm)
    layout = "nhwc" if tuple(perm) == TO_NHWC else ""
    return replace(type_, shape=shape, quant=permuted_quant(type_.quant, perm), layout=layout)


def permuted_quant(quant: QuantParams | None, perm: Sequence[int]) -> QuantParams | None:
    """Return per-axis parameters with their axis where `perm` puts it."""
    if quant is None or quant.axis is None:
        return quant
    return replace(quant, axis=tuple(perm).index(quant.axis))


def perm_of(node: Node, rank: int) -> Perm:
    """Return the permutation of a Transpose; ONNX reverses the axes when it has none."""
    return node.ints("perm") or tuple(reversed(range(rank)))


def add_transpose(editor: GraphEditor, value: str, perm: Sequence[int], origin: tuple[str, ...] = ()) -> str:
    """Return `value` transposed: a new constant, or the output of a new Transpose."""
    type_ = permuted(editor.types[value], perm)
    if value in editor.consts:
        return editor.add_const(f"{value}.t", editor.consts[value].transpose(perm), type_)
    out = editor.add_value(f"{value}.t", type_)
    editor.add_node("Transpose", (value,), (out,), {"perm": tuple(perm)}, origin=origin)
    return out
