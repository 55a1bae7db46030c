"""What a graph pass is: a named rewrite of a graph, with its options as dataclass fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from glowc.errors import InternalError
from glowc.graph.graph import Graph, GraphEditor, Node
from glowc.ops.registry import all_ops, find_op

SWEEPS = 10_000


def _int8_ops() -> frozenset[str]:
    return frozenset(op.name for op in all_ops().values() if op.int8)


def _ignore(_: str) -> None:
    return None


@dataclass(frozen=True)
class PassCtx:
    """What passes may know besides the graph.

    `int8_ops` are the operators with integer kernels; `warn` takes one line that the user should see; `fastest`: time
    counts before flash.
    """

    int8_ops: frozenset[str] = field(default_factory=_int8_ops)
    warn: Callable[[str], None] = _ignore
    fastest: bool = False

    def has_attr(self, op: str, attr: str) -> bool:
        """Say whether operator `op` knows attribute `attr`; one that is not registered knows every one."""
        known = find_op(op)
        return known is None or attr in known.attrs


class GraphPass(ABC):
    """A rewrite of the whole graph. Options are dataclass fields of the subclass: `fold-pad{limit=2}`."""

    name: ClassVar[str]

    @abstractmethod
    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Return the rewritten graph; the same object means that nothing changed."""


class RewritePass(GraphPass):
    """A pass that offers each node of the kinds `ops` to `rewrite` until none accepts."""

    ops: ClassVar[tuple[str, ...]] = ()

    def run(self, graph: Graph, ctx: PassCtx) -> Graph:
        """Sweep over the nodes until a sweep changes nothing."""
        if self.ops and not any(node.op in self.ops for node in graph.nodes):
            return graph
        editor = GraphEditor(graph)
        for _ in range(SWEEPS):
            changed = [self.rewrite(node, editor, ctx) for node in editor.each(*self.ops)]
            if not any(changed):
                return editor.finish()
        raise InternalError(f"pass {self.name} does not settle in {SWEEPS} sweeps")

    @abstractmethod
    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Try to rewrite at `node`; return whether the graph changed."""
