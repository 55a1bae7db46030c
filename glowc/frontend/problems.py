"""Collects everything that is wrong with a model, so that one run of the compiler shows all of it.

What to do about an operator that glowc lacks: names that are near to it, and what to export instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches

from glowc.errors import ModelError, UnsupportedError
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

    @property
    def found(self) -> bool:
        """True when anything is wrong."""
        return bool(self._texts or self._unsupported)

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
            hints.append("if onnxruntime saved this file after its optimizer, give the model as it was exported")
        raise problem_error(self.source, [*missing, *self._texts], hints)


def problem_error(source: str, texts: list[str], hints: list[str]) -> ModelError:
    """Return the error that shows `texts`: one in the message itself, several as details."""
    hint = "; ".join(hints) or None
    if len(texts) == 1:
        return UnsupportedError(f"{source}: {texts[0]}", hint=hint)
    return UnsupportedError(f"{source}: {len(texts)} problems", details=texts, hint=hint)


def _unsupported_text(op: str, nodes: list[str]) -> str:
    names = ", ".join(f'"{name}"' for name in nodes[:SHOWN_NODES])
    more = f" and {len(nodes) - SHOWN_NODES} more" if len(nodes) > SHOWN_NODES else ""
    count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    return f"unsupported operator {op} ({count}): {names}{more}"


_INSTEAD = {
    "NonMaxSuppression": "end the model before NonMaxSuppression: give boxes and scores as outputs",
    "Loop": "export loops with a largest number of turns, or unrolled",
    "If": "export the branch that the device needs: conditions must be constants",
    "NonZero": "the number of NonZero's results is not known when compiling; use a mask (Where) instead",
    "Unique": "the number of Unique's results is not known when compiling",
    "RandomNormalLike": "export in inference mode: model.eval()",
    "StringNormalizer": "give the model numbers: text is for the firmware",
    "NON_MAX_SUPPRESSION_V4": "end the model before the suppression: give boxes and scores as outputs",
    "NON_MAX_SUPPRESSION_V5": "end the model before the suppression: give boxes and scores as outputs",
    "WHERE": "the number of WHERE's results is not known when compiling; use a mask (SELECT_V2) instead",
    "UNIQUE": "the number of UNIQUE's results is not known when compiling",
    "ethos-u": "the file was compiled for an Ethos-U: give the one that Vela was given",
    "edgetpu-custom-op": "the file was compiled for an Edge TPU: give the one that its compiler was given",
    "AudioSpectrogram": "compute the features in the firmware, or with the Signal operators of TensorFlow Lite Micro",
    "Mfcc": "compute the features in the firmware, or with the Signal operators of TensorFlow Lite Micro",
}
_BEGINNINGS = {
    "Flex": "convert without tf.lite.OpsSet.SELECT_TF_OPS: operators that begin with Flex need all of TensorFlow",
    "XC_": "the file was compiled for an XMOS chip: give the one that its compiler was given",
    "HASHTABLE": "give the model numbers: text is for the firmware",
    "TFLite_Detection": "only TFLite_Detection_PostProcess is known of these",
}
_NEAR, _MOST = 0.72, 3


def advice(ops: Sequence[str], known: Collection[str]) -> list[str]:
    """Return hints for operators, by their names with domains, that are not among the known ones."""
    names = [op.rpartition("::")[2] for op in ops]
    begun = (hint for name in names for begin, hint in _BEGINNINGS.items() if name.startswith(begin))
    hints = list(dict.fromkeys([*(_INSTEAD[name] for name in names if name in _INSTEAD), *begun]))
    for name in dict.fromkeys(names):
        near = get_close_matches(name, [k for k in known if k != name], _MOST, _NEAR)
        if near and name not in _INSTEAD and not name.startswith(tuple(_BEGINNINGS)):
            hints.append(f"near to {name}: {', '.join(near)}")
    return hints
