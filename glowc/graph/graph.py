"""The high-level IR: a strongly typed dataflow graph of operators, and an editor that passes use on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from glowc.errors import InternalError
from glowc.graph.attrs import AttrValue, declared_attr
from glowc.graph.types import TensorType, type_of


@dataclass(frozen=True, slots=True)
class Node:
    """One operator. `inputs` may hold "" for an optional input left out; `origin` are ONNX node names."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)
    origin: tuple[str, ...] = ()

    def ints(self, key: str, count: int = 0) -> tuple[int, ...]:
        """Return an attribute that is a list of integers; `count` is how many a default has."""
        value = self._value(key, count)
        if isinstance(value, tuple):
            return tuple(int(v) for v in value)
        raise InternalError(f"{self.op} {self.name!r}: attribute {key} is not a list: {value!r}")

    def floats(self, key: str, count: int = 0) -> tuple[float, ...]:
        """Return an attribute that is a list of numbers; `count` is how many a default has."""
        value = self._value(key, count)
        if isinstance(value, tuple):
            return tuple(float(v) for v in value)
        raise InternalError(f"{self.op} {self.name!r}: attribute {key} is not a list: {value!r}")

    def strs(self, key: str) -> tuple[str, ...]:
        """Return an attribute that is a list of strings."""
        value = self._value(key)
        if isinstance(value, tuple):
            return tuple(str(v) for v in value)
        raise InternalError(f"{self.op} {self.name!r}: attribute {key} is not a list: {value!r}")

    def int_(self, key: str) -> int:
        """Return an integer attribute."""
        value = self._value(key)
        if isinstance(value, int):
            return value
        raise InternalError(f"{self.op} {self.name!r}: attribute {key} is not an integer: {value!r}")

    def float_(self, key: str) -> float:
        """Return a float attribute."""
        value = self._value(key)
        if isinstance(value, int | float):
            return float(value)
        raise InternalError(f"{self.op} {self.name!r}: attribute {key} is not a number: {value!r}")

    def str_(self, key: str) -> str:
        """Return a string attribute."""
        value = self._value(key)
        if isinstance(value, str):
            return value
        raise InternalError(f"{self.op} {self.name!r}: attribute {key} is not a string: {value!r}")

    def _value(self, key: str, count: int = 0) -> AttrValue | None:
        """Return an attribute; where the node lacks it, the default that its operator declares."""
        value = self.attrs.get(key)
        if value is not None:
            return value
        return declared_attr(self.op, key, self.label).default_of(count)

    @property
    def is_nhwc(self) -> bool:
        """True for an operator on images whose channels come last."""
        return self.attrs.get("layout") == "nhwc"

    @property
    def label(self) -> str:
        """How messages name this node: operator and the user's own name."""
        return f'{self.op} "{self.origin[0] if self.origin else self.name}"'


@dataclass(frozen=True, slots=True)
class State:
    """A value that is there before the first node, as `next` of the inference before left it; `initial` at first."""

    value: str
    next: str
    initial: np.ndarray


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in a topological order; values are names, each with a type; constants hold their arrays.

    `inputs` and `outputs` are those of the caller; `states` are values that the model keeps between inferences.
    `aliases` of an imported graph are what its inputs and outputs are called in the file besides, `texts` what the
    numbers from 0 on of an output mean, where the file has texts for them.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    types: Mapping[str, TensorType]
    consts: Mapping[str, np.ndarray]
    states: tuple[State, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """Values that no node computes: inputs and states."""
        return (*self.inputs, *(state.value for state in self.states))

    @property
    def results(self) -> tuple[str, ...]:
        """Values that must be computed: outputs, and what states become."""
        return (*self.outputs, *(state.next for state in self.states))

    def producers(self) -> dict[str, Node]:
        """Map each computed value to its node."""
        return {out: node for node in self.nodes for out in node.outputs if out}

    def users(self) -> dict[str, list[Node]]:
        """Map each value to the nodes that read it (a node that reads it twice stands twice)."""
        result: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                result.setdefault(name, []).append(node)
        return result

    def in_types(self, node: Node) -> tuple[TensorType | None, ...]:
        """Types of a node's inputs; None for an optional input left out."""
        return tuple(self.types[name] if name else None for name in node.inputs)


class GraphEditor:
    """A mutable working copy of a graph; `finish()` sorts, prunes what is unused and freezes.

    Every mutation keeps `producer` and `users` answers current; nodes are identified by name. States are among
    `inputs` and `outputs` here: they keep their names and types.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.nodes: dict[str, Node] = {node.name: node for node in graph.nodes}
        self.types: dict[str, TensorType] = dict(graph.types)
        self.consts: dict[str, np.ndarray] = dict(graph.consts)
        self.inputs = list(graph.sources)
        self.outputs = list(graph.results)
        self.changed = False
        self._producer: dict[str, str] = {}
        self._users: dict[str, dict[str, int]] = {}
        self._linked = False

    def _index(self) -> None:
        """Note who computes and who reads what; most passes change nothing of most graphs and never ask."""
        if not self._linked:
            self._linked = True
            for node in self._graph.nodes:
                self._link(node)

    def _link(self, node: Node) -> None:
        for out in node.outputs:
            if out:
                self._producer[out] = node.name
        for name in node.inputs:
            if name:
                counts = self._users.setdefault(name, {})
                counts[node.name] = counts.get(node.name, 0) + 1

    def _unlink(self, node: Node) -> None:
        self._index()
        for out in node.outputs:
            if self._producer.get(out) == node.name:
                del self._producer[out]
        for name in node.inputs:
            self._users.get(name, {}).pop(node.name, None)

    def each(self, *ops: str) -> Iterator[Node]:
        """Yield the nodes (of kind `ops`, when given) that still exist at their turn, as they are then."""
        for name in list(self.nodes):
            node = self.nodes.get(name)
            if node is not None and (not ops or node.op in ops):
                yield node

    def producer(self, value: str) -> Node | None:
        """The node that computes `value`; None for inputs and constants."""
        self._index()
        name = self._producer.get(value)
        return self.nodes[name] if name is not None else None

    def users(self, value: str) -> list[Node]:
        """The nodes that read `value`, in insertion order."""
        self._index()
        return [self.nodes[name] for name in self._users.get(value, {})]

    def sole_user(self, value: str) -> Node | None:
        """The only reader of `value`, or None when there are several or it is a graph output."""
        users = self.users(value)
        return users[0] if len(users) == 1 and value not in self.outputs else None

    def fresh(self, base: str) -> str:
        """Return a value or node name not in use, made from `base`."""
        if base not in self.types and base not in self.nodes:
            return base
        index = 1
        while f"{base}.{index}" in self.types or f"{base}.{index}" in self.nodes:
            index += 1
        return f"{base}.{index}"

    def add_const(self, base: str, array: np.ndarray, type_: TensorType | None = None) -> str:
        """Add a constant and return its name; the type is the array's own unless given."""
        name = self.fresh(base)
        self.consts[name] = array
        self.types[name] = type_ or type_of(array)
        self.changed = True
        return name

    def add_value(self, base: str, type_: TensorType) -> str:
        """Declare a value to be computed by a node added next, and return its name."""
        name = self.fresh(base)
        self.types[name] = type_
        return name

    def add_node(
        self,
        op: str,
        inputs: Iterable[str],
        outputs: Iterable[str],
        attrs: Mapping[str, AttrValue] | None = None,
        *,
        name: str | None = None,
        origin: tuple[str, ...] = (),
    ) -> Node:
        """Add a node; outputs must have been declared."""
        self._index()
        outs = tuple(outputs)
        node = Node(self.fresh(name or f"{op.lower()}_{outs[0]}"), op, tuple(inputs), outs, dict(attrs or {}), origin)
        self.nodes[node.name] = node
        self._link(node)
        self.changed = True
        return node

    def replace_node(self, node: Node, new: Node) -> Node:
        """Put `new` (same name) in the place of `node`."""
        if node == new:
            return node
        self._unlink(node)
        if new.name != node.name:
            del self.nodes[node.name]
        self.nodes[new.name] = new  # the same name keeps its place in the order
        self._link(new)
        self.changed = True
        return new

    def update(self, node: Node, **fields: object) -> Node:
        """Replace fields of a node (op, inputs, outputs, attrs, origin)."""
        return self.replace_node(node, replace(node, **fields))  # type: ignore[arg-type]

    def remove(self, node: Node) -> None:
        """Remove a node; its outputs must be unused or get another producer."""
        self._unlink(node)
        del self.nodes[node.name]
        self.changed = True

    def replace_uses(self, old: str, new: str) -> None:
        """Let every reader of `old`, but not the graph outputs, read `new`."""
        for user in self.users(old):
            self.update(user, inputs=tuple(new if name == old else name for name in user.inputs))

    def bypass(self, node: Node, value: str) -> bool:
        """Remove `node` and let readers of its first output read `value`; keeps graph output names.

        Returns False, and does nothing, when that output is a graph output that cannot be renamed:
        `value` is then a graph input, a constant or another graph output.
        """
        out = node.outputs[0]
        if out in self.outputs:
            source = self.producer(value)
            if source is None or value in self.outputs:
                return False
            self.remove(node)
            self.replace_uses(value, out)
            renamed = tuple(out if name == value else name for name in source.outputs)
            self.update(self.nodes[source.name], outputs=renamed)
            self.types[out] = self.types.pop(value)
            return True
        self.replace_uses(out, value)
        self.remove(node)
        return True

    def finish(self) -> Graph:
        """Return the graph: nodes sorted stably, dead ones and unused values dropped.

        Raises InternalError for a cycle or a value without producer.
        """
        if not self.changed:
            return self._graph
        needed = self._needed()
        ordered = self._sorted(needed)
        used = set(self.inputs) | set(self.outputs)
        for node in ordered:
            used.update(name for name in (*node.inputs, *node.outputs) if name)
        return Graph(
            self._graph.name,
            tuple(self.inputs[: len(self._graph.inputs)]),
            tuple(self.outputs[: len(self._graph.outputs)]),
            tuple(ordered),
            {name: t for name, t in self.types.items() if name in used},
            {name: a for name, a in self.consts.items() if name in used},
            self._graph.states,
        )

    def _needed(self) -> set[str]:
        needed: set[str] = set()
        stack = list(self.outputs)
        while stack:
            node = self.producer(stack.pop())
            if node is not None and node.name not in needed:
                needed.add(node.name)
                stack.extend(name for name in node.inputs if name)
        return needed

    def _sorted(self, needed: set[str]) -> list[Node]:
        """Nodes in the old order; a new node comes right in front of the first one that needs it."""
        available = set(self.inputs) | set(self.consts)
        result: list[Node] = []
        state: dict[str, bool] = {}  # False: its inputs are being placed, True: placed
        for first in [name for name in self.nodes if name in needed]:
            stack = [first]
            while stack:
                name = stack[-1]
                if state.get(name):
                    stack.pop()
                    continue
                waiting = self._waiting(self.nodes[name], available)
                if not waiting:
                    state[name] = True
                    result.append(self.nodes[stack.pop()])
                    available.update(self.nodes[name].outputs)
                    continue
                if state.get(name) is False or any(state.get(other) is False for other in waiting):
                    labels = [self.nodes[other].label for other in stack[-8:]]
                    raise InternalError("cycle in the graph", details=labels)
                state[name] = False
                stack.extend(reversed(waiting))
        return result

    def _waiting(self, node: Node, available: set[str]) -> list[str]:
        """Nodes that must stand before `node` and do not yet."""
        missing = [name for name in node.inputs if name and name not in available]
        self._index()
        lost = [name for name in missing if name not in self._producer]
        if lost:
            raise InternalError(f"{node.label}: nothing computes {', '.join(lost)}")
        return list(dict.fromkeys(self._producer[name] for name in missing))
