"""Draws numbers, quantisations and constants for random networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tests.fuzz.build import RANGE
from tests.fuzz.recipe import Const, Layer, Value

T = TypeVar("T")
Span = tuple[float, float]
# Beyond these onnxruntime drops a Clip, or converts a float above 2^31 to an integer: see docs/ARITHMETIC.md.
SMALLEST_SCALE, LARGEST_SCALE = 1e-7, 1e4
MOST_ELEMENTS = 4096


class Dice:
    """Draws numbers, and keeps them; the first choice of everything is the plainest one.

    `roll(low, high)` gives an integer of [low, high]: from a seed, or from hypothesis where a network is shrunk.
    With `round_scales` scales have one decimal digit: results then lie halfway between two codes now and then.
    """

    def __init__(self, roll: Callable[[int, int], int]) -> None:
        self._roll = roll
        self.rolled: list[int] = []
        self.round_scales = False

    def whole(self, low: int, high: int) -> int:
        """An integer of [low, high]."""
        if low == high:
            return low
        self.rolled.append(self._roll(low, high))
        return self.rolled[-1]

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.whole(0, len(options) - 1)]

    def chance(self, one_in: int) -> bool:
        """True once in `one_in` draws."""
        return self.whole(0, one_in - 1) == one_in - 1

    def seed(self) -> int:
        """A seed of random data."""
        return self.whole(0, 127)


@dataclass
class Net:
    """What has been drawn so far."""

    dice: Dice
    inputs: list[Value]
    layers: list[Layer]
    spans: list[Span]  # where most of the real numbers of every tensor lie
    unused: set[int] = field(default_factory=set)  # outputs that no layer may read

    @property
    def values(self) -> list[Value]:
        return [*self.inputs, *(v for layer in self.layers for v in layer.outputs)]

    def add(self, layer: Layer, span: Span) -> None:
        """Append a layer whose outputs have numbers in `span`; codes of 16 bits have no QLinear operators."""
        if layer.form == "qop" and any(v.dtype == "s16" for v in layer.outputs):
            attrs = {k: v for k, v in layer.attrs.items() if k not in ("channels_last", "opset")}
            layer = replace(layer, form="qdq", attrs=attrs)
        self.layers.append(layer)
        self.spans += [clipped(span, value) for value in layer.outputs]


def clipped(span: Span, value: Value) -> Span:
    """Return the part of a span that the codes of a tensor can express."""
    low, high = ((code - value.zero_point) * value.scale for code in RANGE[value.dtype])
    first, last = min(max(span[0], low), high), max(min(span[1], high), low)
    return (first, last) if last - first > value.scale else (first - value.scale, first + value.scale)


def moments(span: Span) -> tuple[float, float]:
    """Return about the mean and the standard deviation of numbers in a span."""
    return (span[0] + span[1]) / 2, (span[1] - span[0]) / 4


def scale_for(dice: Dice, dtype: str, span: Span) -> tuple[float, int]:
    """Return (scale, zero point) that fit a span as a calibrated quantiser would; now and then quite others."""
    low, high = RANGE[dtype]
    stretch = dice.pick([1.0, 0.5, 2.0, 0.7, 1.5, 0.25, 4.0]) if dice.chance(4) else 1.0
    if dice.chance(40):
        stretch = dice.pick([1 / 64, 64.0, 1e-5, 1e5])
    if dtype == "s16":  # a sum in float32 is good for one step of 65,536, not of a part of that
        stretch = max(stretch, 0.25)
    width = max(span[1] - span[0], 1e-20)
    scale = width / (high - low) * stretch * (1 + dice.whole(0, 100) / 531.7)
    if dice.chance(12):
        scale = 2.0 ** round(math.log2(max(scale, 1e-30)))
    scale = min(max(scale, 1e-5 if dtype == "s16" else SMALLEST_SCALE), LARGEST_SCALE)
    scale = rounded(dice, scale)
    kind = dice.whole(0, 15)
    middle = 0 if dtype[0] == "s" else 128
    fitting = round(min(max(low - span[0] / scale, low), high))
    others = {12: middle, 13: low, 14: high, 15: low + dice.whole(0, 127) * (high - low) // 127}
    return scale, others.get(kind, fitting)


def rounded(dice: Dice, scale: float) -> float:
    """Return a scale with one digit, where the network has such."""
    return float(f"{scale:.0e}") if dice.round_scales else scale


def value_like(dice: Dice, shape: Sequence[int], dtype: str, span: Span, *, mixed: bool = True) -> Value:
    """Return a tensor of the same element kind (mostly, where `mixed`) with a fitting quantisation."""
    if mixed and dtype in ("s8", "u8") and dice.chance(10):
        dtype = "u8" if dtype == "s8" else "s8"
    scale, zero = scale_for(dice, dtype, span)
    return Value(tuple(shape), dtype, scale, zero)


def const_of(dice: Dice, x: Value, shape: Sequence[int], axis: int) -> Const:
    """Return weights for x: int8 (zero point mostly 0), or uint8 where x is; per tensor or per channel of `axis`."""
    kind = dice.pick(["s8", "s8", "s8", "u8" if x.dtype == "u8" else "s8"])
    zero = 0 if kind == "s8" else dice.pick([128, 0, 255, 97])
    if kind == "s8" and dice.chance(16):
        zero = dice.pick([-128, 127, 5])
    scale = 2.0 ** -dice.whole(4, 9) * (1 + dice.whole(0, 100) / 117.3)
    scale = rounded(dice, scale)
    per_channel = kind == "s8" and zero == 0 and dice.chance(2)
    scales: tuple[float, ...] = ()
    if per_channel:
        step = 1 + dice.whole(0, 7) / 9
        scales = tuple(scale * step ** (c % 5) for c in range(shape[axis]))
    fill = dice.pick(["random", "random", "large", "extreme", "sparse", "small"])
    value = Value(tuple(shape), kind, scale, zero)
    return Const(value, dice.seed(), fill, scales, axis if per_channel else None)


def bias_of(dice: Dice, x: Value, weights: Const, channels: int) -> Const:
    """Return an int32 bias of the scale x * w."""
    scales = tuple(x.scale * s for s in weights.scales)
    value = Value((channels,), "s32", x.scale * weights.value.scale, 0)
    return Const(value, dice.seed(), dice.pick(["random", "small", "large"]), scales, 0 if scales else None)


def activation(dice: Dice, reach: float) -> tuple[float, ...] | None:
    """Return what follows a layer in float: nothing, Relu or Clip."""
    kind = dice.whole(0, 5)
    return () if kind == 4 else (0.0, reach * dice.pick([0.25, 0.5, 1.0])) if kind == 5 else None


def products(x: Span, weights: Const, taps: int) -> Span:
    """Return the span of sums of `taps` products of numbers in a span by random weights."""
    codes = {"random": 74, "large": 90, "extreme": 128, "sparse": 33, "small": 2}[weights.fill]
    scale = max([weights.value.scale, *weights.scales])
    mean, deviation = moments(x)
    reach = 2.5 * scale * codes * math.sqrt(taps) * math.hypot(mean, deviation)
    return -reach, reach


def bounded(span: Span, act: tuple[float, ...] | None) -> Span:
    """Return what an activation leaves of a span."""
    if act is None:
        return span
    return max(span[0], 0.0), min(span[1], act[1]) if act else span[1]
