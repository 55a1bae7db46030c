"""dead-code: nodes, constants and types that no output needs disappear."""

from __future__ import annotations

from typing import ClassVar

from glowc.graph.graph import Graph, GraphEditor
from glowc.passes.base import GraphPass, PassCtx


class DeadCode(GraphPass):
    """Every pass that changes the graph prunes as well; this one does only that."""

    name: ClassVar[str] = "dead-code"

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Prune, and return the same graph when there was nothing to prune."""
        editor = GraphEditor(graph)
        editor.changed = True
        pruned = editor.finish()
        same = all(
            len(a) == len(b)
            for a, b in (
                (pruned.nodes, graph.nodes),
                (pruned.types, graph.types),
                (pruned.consts, graph.consts),
            )
        )
        return graph if same else pruned
