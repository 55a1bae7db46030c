"""Moves of the code and constants search: layers change together, each to a form that it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from glowc.select.candidates import Layer
from glowc.select.order import group_moves


def layer(name: str, *variants: str) -> Layer:
    return Layer(name, tuple(cast("Any", SimpleNamespace(kernel="fc_s8", variant=v)) for v in variants))


def test_a_layer_moves_only_to_a_form_that_it_has() -> None:
    pricing: Any = SimpleNamespace(facts=lambda _: SimpleNamespace(shared="shared", family="family"))
    layers = [layer("a", "x", "y"), layer("b", "x", "z")]  # the others of b are not weighed
    orders = dict.fromkeys("ab", ("x", "y", "z"))
    found = group_moves(layers, orders, dict.fromkeys("ab", "x"), pricing)
    assert found == [{"a": "y", "b": "x"}, {"a": "x", "b": "z"}]
