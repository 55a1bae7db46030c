"""Caches that grow: nothing that a model computes from their length may be a constant, but masks and shapes.

The model is read for the longest past. What it makes of that length, as the angles of rotary embeddings, would be right
for a full cache only. Read for one row less it has the same constants, except for those that have a row less too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from glowc.compiler.options import CompileOptions
from glowc.errors import GroupError
from glowc.graph.graph import Graph, Node

_SHOWN = 4


def check_positions(
    imported: Graph, graph: Graph, options: CompileOptions, read: Callable[[CompileOptions], tuple[Graph, Graph]]
) -> None:
    """Raise GroupError with the nodes whose constants follow from the length of a cache.

    `graph` is `imported` after the passes, and `read` returns both for other options.
    """
    caches = [node.inputs[0] for node in imported.nodes if node.op == "Append"]
    if not caches:
        return
    plain = replace(options, dump_dir=None, dump_onnx=None)
    for symbol, size in options.symbols.items():
        if size < 2:
            continue
        less, shorter = read(replace(plain, symbols={**options.symbols, symbol: size - 1}))
        if all(less.types.get(cache) == imported.types[cache] for cache in caches):
            continue
        wrong = [f"{node.name} ({node.op})" for node in _differing(graph, shorter)]
        if wrong:
            more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
            raise GroupError(
                f"what these nodes read follows from the length of the caches, {symbol}: it would be that of full ones",
                details=[*wrong[:_SHOWN], *more],
                hint="export the model with its positions as an input (position_ids)",
            )


def _differing(graph: Graph, shorter: Graph) -> Iterator[Node]:
    """Yield the nodes that read other real numbers in constants of the same shape."""
    for node in graph.nodes:
        for name in node.inputs:
            one, other = graph.consts.get(name), shorter.consts.get(name)
            if one is None or other is None or one.shape != other.shape or one.dtype.kind != "f":
                continue
            if not np.array_equal(one, other, equal_nan=True):
                yield node
                break
