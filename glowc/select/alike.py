"""Choices among the variants of many layers: those that are alike are weighed once, however many there are.

A choice is a list of parts: layers that are alike and have one variant. What it takes does not depend on which layers
of a part another variant is for, but for the order in which functions are first and last called; a move of one layer
therefore is weighed once between the places where parts begin and end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from glowc.kernels.base import PLAIN
from glowc.select.budgets import Price
from glowc.select.candidates import Constants, Layer
from glowc.select.pricing import Facts, Pricing


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What layers that are alike have in common, by variant: what is known of their instructions, and constants.

    `own_bytes` are those of constants that no other layer has, `shared` the others, by name. `moves` are the variants
    that each may get.
    """

    facts: Mapping[str, Facts]
    own_bytes: Mapping[str, int]
    shared: Mapping[str, Constants]
    moves: tuple[str, ...]

    def constants_bytes(self, variant: str) -> int:
        """Return the bytes of constants of a layer."""
        return self.own_bytes.get(variant, 0) + sum(self.shared.get(variant, {}).values())


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Layers of one kind that have one variant, by their numbers in ascending order."""

    kind: Kind
    variant: str
    members: tuple[int, ...]

    @property
    def ends(self) -> set[int]:
        """The first and the last layer."""
        return {self.members[0], self.members[-1]}

    @property
    def facts(self) -> Facts:
        """What is known of each of its instructions."""
        return self.kind.facts[self.variant]


Parts = tuple[Part, ...]
"""A choice: the parts in the order of their first layers."""

May = Callable[[Kind, str, str], bool]
"""Says whether layers of a kind that have one variant may get another."""


def saves_constants(kind: Kind, now: str, then: str) -> bool:
    """Say whether the other variant has fewer bytes of constants."""
    return kind.constants_bytes(then) < kind.constants_bytes(now)


def differs_in_constants(kind: Kind, _: str, then: str) -> bool:
    """Say whether the variants do not all have as many bytes of constants; portable C saves none at such a cost."""
    return then != PLAIN.name and len({kind.constants_bytes(variant) for variant in kind.facts}) > 1


def any_other(_: Kind, __: str, ___: str) -> bool:
    """Say yes."""
    return True


class Alike:
    """The layers of a program by kinds; `may_get` are the variants that each may get."""

    def __init__(self, layers: Sequence[Layer], may_get: Mapping[str, Collection[str]], pricing: Pricing) -> None:
        """Find the layers that are alike."""
        self._layers, self._pricing = layers, pricing
        users: dict[str, set[str]] = {}
        for x in layers:
            for name in {name for constants in x.constants.values() for name in constants}:
                users.setdefault(name, set()).add(x.name)
        kinds: dict[object, Kind] = {}
        self._kinds = []
        for x in layers:
            facts = {f.variant: pricing.facts(f) for f in x.forms}
            own = {v: sum(n for name, n in c.items() if len(users[name]) == 1) for v, c in x.constants.items()}
            shared = {v: {name: n for name, n in c.items() if len(users[name]) > 1} for v, c in x.constants.items()}
            moves = tuple(f.variant for f in x.forms if f.variant in may_get[x.name])
            known = tuple(facts.items())
            key = known, tuple((v, n, *shared[v].items()) for v, n in own.items()), moves
            self._kinds.append(kinds.setdefault(key, Kind(facts, own, shared, moves)))

    def parts(self, choice: Mapping[str, str]) -> Parts:
        """Return a choice by parts."""
        found: dict[tuple[Kind, str], list[int]] = {}
        for n, (x, kind) in enumerate(zip(self._layers, self._kinds, strict=True)):
            found.setdefault((kind, choice[x.name]), []).append(n)
        return tuple(Part(*of, tuple(members)) for of, members in found.items())

    def choice(self, parts: Parts) -> dict[str, str]:
        """Return a choice by the names of layers."""
        found = {n: part.variant for part in parts for n in part.members}
        return {x.name: found[n] for n, x in enumerate(self._layers)}

    def price(self, parts: Parts, *, guessed: bool = False) -> Price:
        """Return what a choice takes; `guessed`: also the cycles of kernels that were not measured."""
        cycles = own = 0
        shared: dict[str, int] = {}
        for part in parts:
            facts, count = part.facts, len(part.members)
            cycles += count * (facts.guess if guessed else facts.cycles)
            own += count * part.kind.own_bytes.get(part.variant, 0)
            shared |= part.kind.shared.get(part.variant, {})
        last = sorted(parts, key=lambda part: part.members[-1])
        code = self._pricing.code_of((p.facts.code for p in parts), [p.facts.code for p in last], len(self._layers))
        return Price(cycles, code, own + sum(shared.values()))

    def single_moves(self, parts: Parts, may: May) -> list[Parts]:
        """Return the choices in which one layer has another variant, the first of those that take the same."""
        ends = sorted(n for part in parts for n in part.ends)
        found = [
            (n, at, part, variant)
            for part in parts
            for at, variant in enumerate(part.kind.moves)
            if variant != part.variant and may(part.kind, part.variant, variant)
            for n in _told_apart(part.members, ends)
        ]
        return [_moved(parts, {part: variant}, n) for n, _, part, variant in sorted(found, key=lambda m: m[:2])]

    def group_moves(self, parts: Parts) -> list[Parts]:
        """Return the choices in which one group of layers that share a function, a path or a variant has another."""
        groups: dict[object, list[Part]] = {}
        for part in parts:
            if len(part.kind.moves) > 1:
                code, family = part.facts.code, part.facts.code.family
                for key in (code.shared, (family, "family"), (family[:2], "variant"), (family[0], "kernel")):
                    groups.setdefault(key, []).append(part)
        found: dict[tuple[tuple[Part, str], ...], dict[Part, str]] = {}
        for members in groups.values():
            for variant in sorted({v for part in members for v in part.kind.moves}):
                move = {p: variant for p in members if variant in p.kind.moves and variant != p.variant}
                if move:
                    found[tuple(move.items())] = move
        return [_moved(parts, move) for move in found.values()]


def _told_apart(members: Sequence[int], ends: Sequence[int]) -> set[int]:
    """Return the first of the members between the ends of parts, and those that are the ends of their own."""
    after = (bisect_right(members, end) for end in ends)
    return {members[0], members[-1], *(members[at] for at in after if at < len(members))}


def _moved(parts: Parts, move: Mapping[Part, str], only: int | None = None) -> Parts:
    """Return the choice in which parts have another variant, of one part the layer `only`."""
    found = {(p.kind, p.variant): p.members for p in parts}
    for part, variant in move.items():
        at = 0 if only is None else bisect_left(part.members, only)
        end = len(part.members) if only is None else at + 1
        found[part.kind, part.variant] = part.members[:at] + part.members[end:]
        found[part.kind, variant] = tuple(sorted(found.get((part.kind, variant), ()) + part.members[at:end]))
    left = [Part(*of, members) for of, members in found.items() if members]
    return tuple(sorted(left, key=lambda part: part.members[0]))


def alike_of(layers: Sequence[Layer], pricing: Pricing) -> Alike:
    """Return layers by kinds, each of which may get any variant that it has."""
    return Alike(layers, {x.name: {f.variant for f in x.forms} for x in layers}, pricing)
