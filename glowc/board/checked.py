"""Options that come from Python: each value is what its field's annotation says, or one error names all that are not.

Values in the form of the command line are accepted too: "8K" for bytes, a string for a path, a list for a tuple.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from glowc.board.fields import suggestion
from glowc.board.sizes import parse_size
from glowc.errors import InputError


@dataclass(frozen=True, slots=True)
class OneOf:
    """The words that a string may be."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """The range of a number; `most` None: no end."""

    least: float
    most: float | None = None


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """1, 2, 4 and so on, up to `most`."""

    most: int


@dataclass(frozen=True, slots=True)
class Flag:
    """How the command line says a field: `help`, the option's `name` where that is not the field's, what follows it."""

    help: str
    name: str = ""
    metavar: str | None = None
    shared: bool = True  # by all commands that compile
    in_code: bool = False  # generated code says in its header what is given, as it is

    def option(self, field: str) -> str:
        """Return the option's name."""
        return self.name or f"--{field.replace('_', '-')}"


class NonZero:
    """A number that something is divided by."""


class Bytes:
    """A number of bytes, or a size as people write it: "8K"."""


Hint: TypeAlias = Any
Size = Annotated[int, Bytes()]
Count = Annotated[int, Within(1)]


class Checked:
    """Base of a frozen dataclass of options: checks its fields, and shows those that are not the default's."""

    __slots__ = ()

    def __post_init__(self) -> None:
        wrong, kind = [], cast(Any, type(self))
        for name, hint in _hints(kind).items():
            try:
                object.__setattr__(self, name, _converted(getattr(self, name), hint))
            except _UnfitError as unfit:
                wrong.append(f"{name}={_shown(getattr(self, name))}: {unfit}")
        if wrong:
            raise InputError(f"{type(self).__name__}: {_count(wrong)} not valid", details=wrong,
                             hint=f"help(glowc.{type(self).__name__}) lists them")  # fmt: skip

    def __repr__(self) -> str:
        plain = type(self)()
        given = (f.name for f in fields(self) if getattr(self, f.name) != getattr(plain, f.name))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in given)})"


def check_kind(value: object, kind: type, name: str) -> None:
    """Raise InputError unless `value` is None or of this class of options."""
    if value is not None and not isinstance(value, kind):
        raise InputError(f"{name} is a {type(value).__name__}, not a {kind.__name__}",
                         hint=f"{name}=glowc.{kind.__name__}(...)")  # fmt: skip


class _UnfitError(Exception):
    """Why a value is not what was wanted."""


@cache
def _hints(kind: Any) -> Mapping[str, Hint]:
    return get_type_hints(kind, include_extras=True)


def flags(kind: Any) -> Mapping[str, tuple[Hint, Flag]]:
    """Return what the fields of options that the command line has are, by name: the type, and how it says them."""
    found = {}
    for name, hint in _hints(kind).items():
        flag = next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Flag)), None)
        if flag is not None:
            found[name] = hint, flag
    return found


def _count(wrong: list[str]) -> str:
    return "an option is" if len(wrong) == 1 else f"{len(wrong)} options are"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _converted(value: object, hint: Any) -> object:
    """Return a value as its annotation wants it. Raises _UnfitError."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        marks = [mark for mark in args[1:] if not isinstance(mark, Flag)]
        return _marked(value, args[0], marks[0]) if marks else _converted(value, args[0])
    if origin in (Union, types.UnionType):
        return _any_of(value, args)
    if origin is tuple:
        return _tuple(value, args)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(value, *args)
    if issubclass(hint, Enum):
        return hint(_word(value, tuple(str(member.value) for member in hint)))
    for kind, (accepts, make, says) in _PLAIN.items():
        if hint is kind:
            if not accepts(value):
                raise _UnfitError(says)
            return make(value)
    if isinstance(hint, type) and is_dataclass(hint) and not isinstance(value, hint):
        raise _UnfitError(f"a {hint.__name__}")
    return value


_PLAIN: Mapping[type, tuple[Callable[[object], bool], Callable[[Any], object], str]] = {
    bool: (lambda v: isinstance(v, bool) or type(v).__name__ in ("bool_", "bool"), bool, "True or False"),
    int: (lambda v: isinstance(v, Integral) and not isinstance(v, bool), int, "a whole number"),
    float: (lambda v: isinstance(v, Real) and not isinstance(v, bool), float, "a number"),
    str: (lambda v: isinstance(v, str), str, "a string"),
    Path: (lambda v: isinstance(v, str | PathLike) and fspath(v) != "", Path, "a path"),
}
"""What a class of values is: whether one is of it, how it is made of it, and words for it."""


def _marked(value: object, kind: Any, mark: object) -> object:
    if isinstance(mark, OneOf):
        return _word(value, mark.words)
    if isinstance(mark, Bytes):
        return _bytes(value)
    if isinstance(mark, PowerOfTwo):
        size = _converted(value, kind)
        if size not in {1 << n for n in range(mark.most.bit_length())}:
            raise _UnfitError(f"a power of two up to {mark.most}")
        return size
    if isinstance(mark, NonZero):
        if (number := _converted(value, kind)) == 0:
            raise _UnfitError("not 0: values are divided by it")
        return number
    if isinstance(mark, Within):
        number = _converted(value, kind)
        most = float("inf") if mark.most is None else mark.most
        if not mark.least <= float(number) <= most:  # type: ignore[arg-type]
            raise _UnfitError(
                f"{mark.least:g} or more" if mark.most is None else f"from {mark.least:g} to {mark.most:g}"
            )
        return number
    return _converted(value, kind)


def _word(value: object, words: Iterable[str]) -> str:
    known = list(words)
    if not isinstance(value, str) or str(value) not in known:
        near = suggestion(value, known) if isinstance(value, str) else ""
        raise _UnfitError(f"one of {', '.join(known)}{near}")
    return str(value)


def _bytes(value: object) -> int:
    number = isinstance(value, Integral) and not isinstance(value, bool)
    try:
        return parse_size(str(value) if number else value if isinstance(value, str) else "")
    except InputError as error:
        raise _UnfitError(f"a size in bytes: {error.hint}") from None


def _any_of(value: object, hints: tuple[Any, ...]) -> object:
    if value is None and type(None) in hints:
        return None
    reasons = []
    for hint in (hint for hint in hints if hint is not type(None)):
        try:
            return _converted(value, hint)
        except _UnfitError as unfit:
            reasons.append(str(unfit))
    raise _UnfitError(" or ".join([*dict.fromkeys(reasons), *(["None"] if type(None) in hints else [])]))


def _tuple(value: object, hints: tuple[Any, ...]) -> tuple[object, ...]:
    """Return a tuple of a list, an array, or one value alone; of pairs also of a mapping."""
    many = hints[-1] is Ellipsis
    if hasattr(value, "ravel"):
        value = value.ravel().tolist()
    if many and isinstance(value, Mapping) and get_origin(hints[0]) is tuple:
        value = list(value.items())
    if many and (isinstance(value, str | PathLike) or (isinstance(value, Real) and not isinstance(value, bool))):
        value = [value]
    if not isinstance(value, tuple | list) or not (many or len(value) == len(hints)):
        raise _UnfitError("a list" if many else f"{len(hints)} values")
    wanted = [hints[0]] * len(value) if many else hints
    return tuple(_converted(item, hint) for item, hint in zip(value, wanted, strict=True))


def _mapping(value: object, key: Any, item: Any) -> dict[object, object]:
    if not isinstance(value, Mapping):
        raise _UnfitError("a dict")
    return {_converted(k, key): _converted(v, item) for k, v in value.items()}
