"""Collects everything that is wrong with a model, so that one run of the compiler shows all of it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from glowc.errors import ModelError
from glowc.frontend.nearest import advice
from glowc.ops.base import OpError
from glowc.ops.registry import all_ops

SHOWN_NODES = 6
_PLUGIN = "--plugin FILE.py adds an operator of your own (docs/PLUGINS.md)"


class NodeError(OpError):
    """A node that cannot be imported; the text says what was seen, `hint` what to try."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.hint = hint


class UnsupportedOpError(OpError):
    """An operator that glowc does not have; `op` is the name to report."""

    def __init__(self, op: str) -> None:
        super().__init__(f"unsupported operator {op}")
        self.op = op


class Problems:
    """The problems found so far in one model; `source` is how messages call it.

    `listed` is the command that lists its operators, `known` their names, `plugins` whether --plugin may add more.
    """

    def __init__(
        self,
        source: str,
        listed: str = "glowc ops",
        known: Callable[[], Collection[str]] = lambda: all_ops().keys(),
        plugins: bool = True,
    ) -> None:
        self.source, self.listed, self.plugins, self._known = source, listed, plugins, known
        self._texts: list[str] = []
        self._hints: list[str] = []
        self._unsupported: dict[str, list[str]] = {}

    def add(self, text: str, hint: str | None = None) -> None:
        """Record one problem."""
        if text not in self._texts:
            self._texts.append(text)
        if hint:
            self.add_hint(hint)

    def add_hint(self, hint: str) -> None:
        """Record what else to try."""
        if hint not in self._hints:
            self._hints.append(hint)

    def add_unsupported(self, op: str, node: str) -> None:
        """Record that the node named `node` has an operator that glowc lacks."""
        self._unsupported.setdefault(op, []).append(node)

    def check(self) -> None:
        """Raise one ModelError with all problems, if there are any."""
        missing = [_unsupported_text(op, nodes) for op, nodes in self._unsupported.items()]
        if not missing and not self._texts:
            return
        hints = list(self._hints)
        if missing:
            hints += advice(list(self._unsupported), self._known())
            hints.append(f"`{self.listed}` lists the supported operators")
            hints += [_PLUGIN] if self.plugins else []
        if any(op.startswith("com.microsoft") for op in self._unsupported):
            hints.append("if onnxruntime saved this file after its optimiser, give the model as it was exported")
        raise problem_error(self.source, [*missing, *self._texts], hints)


def problem_error(source: str, texts: list[str], hints: list[str]) -> ModelError:
    """Return the error that shows `texts`: one in the message itself, several as details."""
    hint = "; ".join(hints) or None
    if len(texts) == 1:
        return ModelError(f"{source}: {texts[0]}", hint=hint)
    return ModelError(f"{source}: {len(texts)} problems", details=texts, hint=hint)


def _unsupported_text(op: str, nodes: list[str]) -> str:
    names = ", ".join(f'"{name}"' for name in nodes[:SHOWN_NODES])
    more = f" and {len(nodes) - SHOWN_NODES} more" if len(nodes) > SHOWN_NODES else ""
    count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    return f"unsupported operator {op} ({count}): {names}{more}"
