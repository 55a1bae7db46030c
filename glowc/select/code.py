"""What code takes on a CPU: bytes of printed functions by the lines of their C, and of the runtime's functions by name.

scripts/fit_code.py measures them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WAYS = ("literal", "shared", "literal_size", "shared_size")
"""Functions for a shape and those that layers share, compiled by -O2, and the same by -Os."""

Line = tuple[float, float]
"""(a, b) of bytes a + b x, at least 0 each."""
ANY = ""
_UNKNOWN: Line = (0.0, 12.0)


def way_of(opt: str, *, literal: bool) -> int:
    """Return the number of the way in which a function is printed and compiled."""
    return 2 * (opt == "size") + (not literal)


@dataclass(frozen=True, slots=True)
class CodeSizes:
    """The bytes of code of one CPU.

    `texts` by kernel, variant and path (`glowc.select.cost.key_of`; ANY: of all kernels): lines of C to bytes, for each
    of WAYS. `functions` of the runtime, for each of WAYS, times the share of the functions that call it of those whose
    text leads to it. `merged` is the share that is left of one where it becomes a part of its only caller. `base` is
    what a program has besides: fixed, and per layer, by -O2 and by -Os.
    """

    texts: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    functions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    merged: Mapping[str, float] = field(default_factory=dict)
    base: tuple[Line, Line] = ((0.0, 0.0), (0.0, 0.0))

    def text(self, keys: Iterable[str], way: int, lines: int) -> float:
        """Return the bytes of a function of so many lines, of the first kernel that was measured."""
        a, b = next((self.texts[key][way] for key in (*keys, ANY) if key in self.texts), _UNKNOWN)
        return a + b * lines

    def called(self, names: Iterable[str], way: int) -> dict[str, float]:
        """Return the bytes of those functions of the runtime that stand for themselves, by name."""
        return {name: float(self.functions[name][way]) for name in names if name in self.functions}

    def besides(self, layers: int, opt: str) -> float:
        """Return the bytes of what a program has besides its kernels."""
        fixed, per_layer = self.base[opt == "size"]
        return fixed + per_layer * layers


def parse_code(data: Mapping[str, Any]) -> CodeSizes:
    """Return the bytes of code that a file holds: the same ones in all ways are written once, b alone where a is 0."""
    functions = {n: (v,) * len(WAYS) if isinstance(v, int) else tuple(v) for n, v in data["functions"].items()}
    texts = {k: tuple((v[0], v[1]) if isinstance(v, list) else (0.0, v) for v in x) for k, x in data["texts"].items()}
    by_o2, by_os = ((a, b) for a, b in data["base"])
    return CodeSizes(texts, functions, data.get("merged", {}), (by_o2, by_os))
