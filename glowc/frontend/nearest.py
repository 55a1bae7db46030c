"""What to do about an operator that glowc lacks: names that are near to it, and what to export instead."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

_INSTEAD = {
    "NonMaxSuppression": "end the model before NonMaxSuppression: give boxes and scores as outputs",
    "Loop": "export loops with a fixed number of turns, or unrolled",
    "If": "export the branch that the device needs: conditions must be constants",
    "NonZero": "the number of NonZero's results is not known when compiling; use a mask (Where) instead",
    "Unique": "the number of Unique's results is not known when compiling",
    "RandomNormalLike": "export in inference mode: model.eval()",
    "StringNormalizer": "give the model numbers: text is for the firmware",
    "TfIdfVectorizer": "give the model numbers: text is for the firmware",
}
_NEAR, _MOST = 0.72, 3


def advice(ops: Sequence[str], known: Collection[str]) -> list[str]:
    """Return hints for operators, by their names with domains, that are not among the known ones."""
    names = [op.rpartition("::")[2] for op in ops]
    hints = [_INSTEAD[name] for name in dict.fromkeys(names) if name in _INSTEAD]
    for name in dict.fromkeys(names):
        near = get_close_matches(name, [k for k in known if k != name], _MOST, _NEAR)
        if near and name not in _INSTEAD:
            hints.append(f"near to {name}: {', '.join(near)}")
    return hints
