"""What an operator declares of each of its attributes: kind, default, words. The only place where a default stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from glowc.errors import InternalError
from glowc.graph.scope import Table

AttrValue = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]

_WHOLE = frozenset((int, bool))


@dataclass(frozen=True, slots=True)
class Attr(ABC):
    """One attribute. A node that lacks it has the default; without a default it must be there, unless it is optional.

    An optional attribute is read only where the node has it. The default of a list may be as many of `each` as the
    reader asks for. A string is one of `words`, where there are some.
    """

    default: AttrValue | None = None
    optional: bool = False
    each: int | float | None = None
    words: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """True when every node must have it."""
        return self.default is None and self.each is None and not self.optional

    @property
    @abstractmethod
    def wanted(self) -> str:
        """What a value must be, as messages have it."""

    @abstractmethod
    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is of this kind."""

    def default_of(self, count: int) -> AttrValue | None:
        """Return the default; a list of `each` has `count` of them."""
        return self.default if self.each is None else (self.each,) * count


class Int(Attr):
    """A whole number."""

    wanted = "an integer"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a whole number."""
        return isinstance(value, int)


class Float(Attr):
    """A number."""

    wanted = "a number"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a number."""
        return isinstance(value, int | float)


class Str(Attr):
    """A text; one of `words` where there are some."""

    @property
    def wanted(self) -> str:
        """The words."""
        return f"one of {', '.join(self.words)}" if self.words else "a string"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a text that is allowed."""
        return isinstance(value, str) and (not self.words or value in self.words or value == self.default)


class IntList(Attr):
    """A list of whole numbers."""

    wanted = "a list of integers"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a list of whole numbers."""
        return isinstance(value, tuple) and _WHOLE.issuperset(map(type, value))


class FloatList(Attr):
    """A list of numbers."""

    wanted = "a list of numbers"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a list of numbers."""
        return isinstance(value, tuple) and all(isinstance(v, int | float) for v in value)


class StrList(Attr):
    """A list of texts."""

    wanted = "a list of strings"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a list of texts."""
        return isinstance(value, tuple) and all(isinstance(v, str) for v in value)


DECLARED: Table[Mapping[str, Attr]] = Table()
"""The attributes that are declared, by operator: the operators fill this table."""


def declared_attr(op: str, key: str, label: str) -> Attr:
    """Return what an operator declares of an attribute; InternalError, about node `label`, when it knows none."""
    attr = DECLARED.all().get(op, {}).get(key)
    if attr is None:
        raise InternalError(f"{label}: operator {op} declares no attribute {key}")
    return attr
