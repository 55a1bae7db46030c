"""What an operator declares of each of its attributes: kind, default, words. The only place where a default stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from glowc.graph.graph import AttrValue

_WHOLE = frozenset((int, bool))


@dataclass(frozen=True, slots=True)
class Attr(ABC):
    """One attribute. A node that lacks it has the default; without a default it must be there, unless it is optional.

    An optional attribute is read only where the node has it.
    """

    default: AttrValue | None = None
    optional: bool = False
    kind: ClassVar[str] = ""

    @property
    def required(self) -> bool:
        """True when every node must have it."""
        return self.default is None and not self.optional

    @abstractmethod
    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is of this kind."""

    def wanted(self) -> str:
        """Return what a value must be, as messages have it."""
        return self.kind

    def default_of(self, count: int) -> AttrValue | None:
        """Return the default; `count` is how many numbers a list has."""
        return self.default


@dataclass(frozen=True, slots=True)
class Int(Attr):
    """A whole number."""

    kind = "an integer"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a whole number."""
        return isinstance(value, int)


@dataclass(frozen=True, slots=True)
class Float(Attr):
    """A number."""

    kind = "a number"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a number."""
        return isinstance(value, int | float)


@dataclass(frozen=True, slots=True)
class Str(Attr):
    """A text; one of `words` where there are some."""

    words: tuple[str, ...] = ()
    kind = "a string"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a text that is allowed."""
        return isinstance(value, str) and (not self.words or value in self.words or value == self.default)

    def wanted(self) -> str:
        """Return the words."""
        return f"one of {', '.join(self.words)}" if self.words else self.kind


@dataclass(frozen=True, slots=True)
class IntList(Attr):
    """A list of whole numbers; by default as many of `each` as the reader asks for, where that is given."""

    each: int | None = None
    kind = "a list of integers"

    @property
    def required(self) -> bool:
        """True when every node must have it."""
        return self.default is None and self.each is None and not self.optional

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a list of whole numbers."""
        return isinstance(value, tuple) and _WHOLE.issuperset(map(type, value))

    def default_of(self, count: int) -> AttrValue | None:
        """Return the default, or `count` times `each`."""
        return self.default if self.each is None else (self.each,) * count


@dataclass(frozen=True, slots=True)
class FloatList(Attr):
    """A list of numbers; by default as many of `each` as the reader asks for, where that is given."""

    each: float | None = None
    kind = "a list of numbers"

    @property
    def required(self) -> bool:
        """True when every node must have it."""
        return self.default is None and self.each is None and not self.optional

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a list of numbers."""
        return isinstance(value, tuple) and all(isinstance(v, int | float) for v in value)

    def default_of(self, count: int) -> AttrValue | None:
        """Return the default, or `count` times `each`."""
        return self.default if self.each is None else (self.each,) * count


@dataclass(frozen=True, slots=True)
class StrList(Attr):
    """A list of texts."""

    kind = "a list of strings"

    def accepts(self, value: AttrValue) -> bool:
        """Say whether a value is a list of texts."""
        return isinstance(value, tuple) and all(isinstance(v, str) for v in value)
