"""Moves of the code and constants search: layers change together, each to a form that it has; alike, once for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from glowc.select.alike import Alike, Parts, any_other
from glowc.select.candidates import Layer
from glowc.select.pricing import Code, Facts


class Pricing:
    """Kernels of one shape: a variant has the same numbers in every layer, and code of its own."""

    def __init__(self) -> None:
        self.codes: dict[str, Code] = {}

    def facts(self, instr: Any) -> Facts:
        """Return what is known of an instruction."""
        name, cycles = instr.variant, len(instr.variant)
        family = "fc_s8", name, ""
        code = Code(instr, family, (name, "literal"), ("shared",))  # type: ignore[arg-type]
        return Facts(cycles, cycles, self.codes.setdefault(name, code))

    def code_of(self, codes: Sequence[Code], count: int) -> float:
        """Return the bytes of code."""
        return float(count)


def layer(name: str, *variants: str, sizes: Mapping[str, int] | None = None) -> Layer:
    forms = tuple(cast("Any", SimpleNamespace(kernel="fc_s8", variant=v)) for v in variants)
    return Layer(name, forms, constants={v: {f"{name}.{v}": n} for v, n in (sizes or {}).items()})


def alike(layers: Sequence[Layer], *may: str) -> Alike:
    return Alike(layers, {x.name: may for x in layers}, cast("Any", Pricing()))


def named(found: Alike, moves: Sequence[Parts]) -> list[dict[str, str]]:
    return [found.choice(move) for move in moves]


def test_a_layer_moves_only_to_a_form_that_it_has() -> None:
    layers = [layer("a", "x", "y"), layer("b", "x", "z")]  # the others of b are not weighed
    found = alike(layers, "x", "y", "z")
    moves = named(found, found.group_moves(found.parts(dict.fromkeys("ab", "x"))))
    assert moves == [{"a": "y", "b": "x"}, {"a": "x", "b": "z"}]


def test_layers_that_are_alike_move_together_and_the_first_one_alone() -> None:
    layers = [layer(name, "x", "y", sizes={"x": 8, "y": 4}) for name in "abcd"]
    found = alike(layers, "x", "y")
    parts = found.parts(dict.fromkeys("abcd", "x"))
    assert named(found, found.group_moves(parts)) == [dict.fromkeys("abcd", "y")]
    singles = named(found, found.single_moves(parts, any_other))
    assert singles == [{**dict.fromkeys("abcd", "x"), "a": "y"}]


def test_choices_are_weighed_once_however_many_layers_are_alike() -> None:
    def weighed(count: int) -> int:
        layers = [layer(f"n{n}", "x", "yy", sizes={"x": 8, "yy": 4}) for n in range(count)]
        found = alike(layers, "x", "yy")
        parts = found.parts({x.name: "x" for x in layers})
        moves = [*found.single_moves(parts, any_other), *found.group_moves(parts)]
        assert [found.price(move).cycles for move in moves] == [count + 1, 2 * count]
        assert [found.price(move).constants for move in moves] == [8 * count - 4, 4 * count]
        return len(moves)

    assert weighed(8) == weighed(64) == 2


def test_a_constant_of_several_layers_counts_once() -> None:
    layers = [Layer(n, layer(n, "x").forms, constants={"x": {"w": 40, n: 2}}) for n in "abc"]
    found = alike(layers, "x")
    assert found.price(found.parts(dict.fromkeys("abc", "x"))).constants == 46
