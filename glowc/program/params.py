"""The parameters of a kind of instruction: a frozen dataclass, whose fields are the only place that names them.

An instruction carries them as a mapping by name, the form of dumps and generic passes: `as_mapping` and `typed` are the
way there and back.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from glowc.errors import InternalError
from glowc.program.ir import ParamValue


class Kind(Enum):
    """What a parameter is in C: int32_t, float, or nothing but text that the template prints."""

    INT = "int"
    FLOAT = "float"
    PRINTED = "printed"


@dataclass(frozen=True, slots=True)
class Suffixes:
    """Of a field of several integers: one parameter for each, named after the field (less a last "_") and these."""

    ends: tuple[str, ...]


Printed: TypeAlias = Annotated[int, Kind.PRINTED]
"""A whole number that the template prints with, never an argument: it is part of the function's identity."""
PrintedNumber: TypeAlias = Annotated[float, Kind.PRINTED]
"""A number that the template prints with."""


@dataclass(frozen=True, slots=True)
class Params:
    """The parameters of a kind of instruction; its subclasses are frozen dataclasses too.

    A field is an `int` (int32_t in C), a `float` (float32), a `str` or `Printed` (only printed), integers with
    `Suffixes`, or `Params` of its own, whose fields stand in its place. The order is that of the C arguments. An
    instruction without parameters has this class itself.
    """


P = TypeVar("P", bound=Params)
NO_PARAMS = Params()


@dataclass(frozen=True, slots=True)
class Part:
    """One field: the names of its parameters in order; the class of its own fields, where it has them."""

    field: str
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    several: bool = False
    inner: type[Params] | None = None


_parts: dict[type[Params], tuple[Part, ...]] = {}


def parts(takes: type[Params]) -> tuple[Part, ...]:
    """Return the fields of a class of parameters."""
    found = _parts.get(takes)
    if found is None:
        found = _parts[takes] = _read(takes)
    return found


def _read(takes: type[Params]) -> tuple[Part, ...]:
    """Return the fields of a class of parameters; InternalError for what is none, other types and names twice."""
    if not (isinstance(takes, type) and issubclass(takes, Params) and "__dataclass_fields__" in vars(takes)):
        raise InternalError(f"parameters are {takes!r}, not a dataclass derived from Params")
    hints = get_type_hints(takes, include_extras=True)
    found = tuple(_part(takes, field.name, hints[field.name]) for field in dataclasses.fields(takes))
    twice = [name for name, n in Counter(name for part in found for name in part.names).items() if n > 1]
    if twice:
        raise InternalError(f"{takes.__name__} has parameters twice: {', '.join(twice)}")
    return found


def _part(takes: type[Params], name: str, hint: Any) -> Part:
    plain, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    suffixes = next((mark for mark in marks if isinstance(mark, Suffixes)), None)
    if suffixes is not None and get_origin(plain) is tuple:
        names = tuple(name.removesuffix("_") + end for end in suffixes.ends)
        return Part(name, names, (Kind.INT,) * len(names), several=True)
    if isinstance(plain, type) and issubclass(plain, Params):
        inner = parts(plain)
        return Part(name, _all(p.names for p in inner), _all(p.kinds for p in inner), inner=plain)
    if plain is str or (plain in (int, float) and Kind.PRINTED in marks):
        return Part(name, (name,), (Kind.PRINTED,))
    if plain not in (int, float):
        raise InternalError(f"parameter {name} of {takes.__name__} is {hint}: needs int, float, str, Printed or Params")
    return Part(name, (name,), (Kind.INT if plain is int else Kind.FLOAT,))


T = TypeVar("T")


def _all(groups: Iterator[tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(item for group in groups for item in group)


def names_of(takes: type[Params], kind: Kind) -> tuple[str, ...]:
    """Return the names of the parameters of that kind, in order."""
    named = (pair for part in parts(takes) for pair in zip(part.names, part.kinds, strict=True))
    return tuple(name for name, own in named if own is kind)


def as_mapping(params: Params) -> dict[str, ParamValue]:
    """Return parameters by name, in order."""
    found: dict[str, ParamValue] = {}
    for part in parts(type(params)):
        value = getattr(params, part.field)
        if part.inner is not None:
            found |= as_mapping(value)
        else:
            found |= zip(part.names, value if part.several else (value,), strict=True)
    return found


def typed(takes: type[P], params: Mapping[str, ParamValue]) -> P:
    """Return the parameters of that class from a mapping, which may hold more; InternalError names what it lacks."""
    missing = [name for part in parts(takes) for name in part.names if name not in params]
    if missing:
        raise InternalError(f"{takes.__name__} lacks parameters: {', '.join(missing)}")
    return takes(*(_value(part, params) for part in parts(takes)))


def _value(part: Part, params: Mapping[str, ParamValue]) -> object:
    if part.inner is not None:
        return typed(part.inner, params)
    return tuple(params[name] for name in part.names) if part.several else params[part.names[0]]
