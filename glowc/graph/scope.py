"""What is known while a model is compiled: glowc's own operators, kernels and so on, and what its plugins add to them.

Each kind is a `Table`. What plugins add is one immutable mapping in a context variable, since hundreds of functions ask
for a kernel by its name: every compile, in whatever thread, begins with none of it and leaves none behind. So it is
with what is computed `once` for all layers that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast

A = TypeVar("A")
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Table(Generic[T]):
    """Definitions of one kind by name: `own` are glowc's, `all()` those that are known here."""

    def __init__(self) -> None:
        self.own: Mapping[str, T] = {}

    def all(self) -> Mapping[str, T]:
        """Return every definition that is known here."""
        return cast("Mapping[str, T]", _known.get().get(self, self.own))

    def add(self, more: Mapping[str, T]) -> None:
        """Let these be known, too, as long as this scope lasts; of those of one name the last one counts."""
        _known.set(MappingProxyType({**_known.get(), self: MappingProxyType({**self.all(), **more})}))


Known: TypeAlias = Mapping[Table[Any], Mapping[str, object]]
NOTHING: Known = MappingProxyType({})
"""Glowc's own alone."""
_known: ContextVar[Known] = ContextVar("known", default=NOTHING)
_found: ContextVar[dict[Hashable, Any] | None] = ContextVar("found", default=None)


def known() -> Known:
    """Return what is known here besides glowc's own."""
    return _known.get()


def know_only(what: Known) -> None:
    """Let this be what is known from here on, as long as this scope lasts."""
    _known.set(what)


@contextmanager
def scope(what: Known = NOTHING) -> Iterator[None]:
    """Let `what` be known inside, besides glowc's own; what is added inside is not known afterwards."""
    token, found = _known.set(what), _found.set({})
    try:
        yield
    finally:
        _known.reset(token)
        _found.reset(found)


def scoped(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function each call of which is a scope of its own, which begins with glowc's own definitions."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with scope():
            return function(*args, **kwargs)

    return call


def once(key: Callable[[A], Hashable]) -> Callable[[Callable[[A], T]], Callable[[A], T]]:
    """Let a function be computed once in a scope for arguments of equal keys; outside of any, each time.

    What it returns must not be changed, and must follow from the key alone.
    """

    def decorate(function: Callable[[A], T]) -> Callable[[A], T]:
        @wraps(function)
        def call(argument: A) -> T:
            found = _found.get()
            if found is None:
                return function(argument)
            of = function, key(argument)
            if of not in found:
                found[of] = function(argument)
            return cast("T", found[of])

        return call

    return decorate
