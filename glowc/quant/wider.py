"""Activations of 8 bits, and of 16 in as many layers as limits allow: those first that gain most for their work."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx

from glowc.quant.calibrate import Calibration
from glowc.quant.finer import finest, unions
from glowc.quant.frontier import Choice, Found, Search
from glowc.quant.limits import Limits
from glowc.quant.quantizer import quantize_net
from glowc.quant.scheme import Activations

_MORE = 6  # sets that are tried one by one behind the first that does not fit


def with_finer(search: Search, best: Found, limits: Limits) -> Found:
    """Return the best choice with the layers around some tensors on int16 besides, where that is better.

    It is measured with as many as limits allow, of those that gain most, and with half of them; `search` is on int8.
    """
    if best.point.activations is not Activations.INT8 or not limits.hold(best.point.size):
        return best
    choice = best.point.weights
    order = finest(search.net, search.engine, search.profile, search.kept, search.options)
    taken = within(order, lambda wide: limits.hold(search.size_of(_quickly(search, choice, wide))))
    for count in sorted({len(taken), (len(taken) + 1) // 2} - {0}):
        found = search.found(choice, unions(taken)[count - 1])
        best = best.better(replace(found, points=(found.point,)), limits)
    return best


def within(order: Sequence[tuple[str, ...]], fits: Callable[[tuple[str, ...]], bool]) -> list[tuple[str, ...]]:
    """Return the first sets of an order that fit together, and of the next ones those that fit besides."""
    first = largest(unions(order), fits)
    taken = list(order[:first])
    for layers in order[first + 1 : first + 1 + _MORE]:
        if fits(unions([*taken, layers])[-1]):
            taken.append(layers)
    return taken


def _quickly(search: Search, choice: Choice, wide: tuple[str, ...]) -> onnx.ModelProto:
    """Return a model of the same size, whose ranges and weights are not fitted."""
    options = replace(
        search.options, precision=search.precision(choice, wide), calibration=Calibration.MINMAX, equalise=False,
        bias_correction=False, rounding=False,
    )  # fmt: skip
    return quantize_net(search.net, search.engine, search.profile, search.kept, options, lambda _: None).model


def largest(sets: Sequence[tuple[str, ...]], fits: Callable[[tuple[str, ...]], bool]) -> int:
    """Return how many of the growing sets fit, by halving: 0 where the first does not."""
    return bisect_left(sets, True, key=lambda wide: not fits(wide))
