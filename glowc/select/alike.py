"""Choices among the variants of many layers: those that are alike are weighed once, however many there are.

A choice is a list of parts: layers that are alike and have one variant. What it takes does not depend on which layers
of a part another variant is for; a move of one layer therefore is weighed once for each part.
"""

from __future__ import annotations

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
        own, shared = 0, dict[str, int]()
        for part in parts:
            own += len(part.members) * part.kind.own_bytes.get(part.variant, 0)
            shared |= part.kind.shared.get(part.variant, {})
        code = self._pricing.code_of((p.facts.code for p in parts), len(self._layers))
        return Price(cycles_of(parts, guessed=guessed), code, own + sum(shared.values()))

    def code_of_both(self, one: Parts, other: Parts) -> float:
        """Return the bytes of code of what two choices have in common."""
        both = {(p.kind, p.variant) for p in one} & {(p.kind, p.variant) for p in other}
        return self._pricing.code_of((p.facts.code for p in one if (p.kind, p.variant) in both), len(self._layers))

    def single_moves(self, parts: Parts, may: May) -> list[Parts]:
        """Return the choices in which one layer has another variant, the first of those that are alike."""
        return [
            _moved(parts, {part: variant}, 1)
            for part in parts
            for variant in part.kind.moves
            if variant != part.variant and may(part.kind, part.variant, variant)
        ]

    def group_moves(self, parts: Parts, *, shapes: bool = False) -> list[Parts]:
        """Return the choices in which one group of layers that share a function, a path or a variant has another.

        `shapes`: or one group of layers of one shape.
        """
        groups: dict[object, list[Part]] = {}
        for part in parts:
            if len(part.kind.moves) > 1:
                code, family = part.facts.code, part.facts.code.family
                keys = (code.shared, (family, "family"), (family[:2], "variant"), (family[0], "kernel"))
                for key in (*keys, code.literal) if shapes else keys:
                    groups.setdefault(key, []).append(part)
        found: dict[tuple[tuple[Part, str], ...], dict[Part, str]] = {}
        for members in groups.values():
            for variant in sorted({v for part in members for v in part.kind.moves}):
                move = {p: variant for p in members if variant in p.kind.moves and variant != p.variant}
                if move:
                    found[tuple(move.items())] = move
        return [_moved(parts, move) for move in found.values()]


def cycles_of(parts: Parts, *, guessed: bool = False) -> int:
    """Return the cycles of a choice; `guessed`: also those of kernels that were not measured."""
    return sum(len(p.members) * (p.facts.guess if guessed else p.facts.cycles) for p in parts)


def _moved(parts: Parts, move: Mapping[Part, str], count: int | None = None) -> Parts:
    """Return the choice in which parts have another variant, or so many first layers of each."""
    found = {(p.kind, p.variant): p.members for p in parts}
    for part, variant in move.items():
        moved = part.members[:count]
        found[part.kind, part.variant] = part.members[len(moved) :]
        found[part.kind, variant] = tuple(sorted(found.get((part.kind, variant), ()) + moved))
    left = [Part(*of, members) for of, members in found.items() if members]
    return tuple(sorted(left, key=lambda part: part.members[0]))


def alike_of(layers: Sequence[Layer], pricing: Pricing) -> Alike:
    """Return layers by kinds, each of which may get any variant that it has."""
    return Alike(layers, {x.name: {f.variant for f in x.forms} for x in layers}, pricing)
