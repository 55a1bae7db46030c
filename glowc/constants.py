"""Constants held to what the weights need: packings that pad or widen them give way where that costs few instructions.

The bound is weights + biases + five bytes per output channel, and one percent. What is over it may cost one percent of
the instructions, a part of it that part; what the other kernels need of code is no more than the constants they save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glowc.layers import Layer

_PER_CHANNEL = 9  # bias and five bytes
_SPARE = 0.01
_MAX_LOSS = 0.01

Choice = Mapping[str, str]
"""The variant of every layer by name."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a choice takes: predicted instructions of a whole inference, bytes of code and of constants."""

    insns: float
    code: float
    constants: int

    @property
    def flash(self) -> float:
        """Bytes of code and constants."""
        return self.code + self.constants


def bound_bytes(layers: Sequence[Layer]) -> int:
    """Return what the constants of layers may need; those without weights may need none."""
    total = 0
    for layer in layers:
        plain = layer.forms[-1]
        channels = plain.params.get("out_c", plain.params.get("out_n"))
        if channels is not None and any(o.role == "weights" for o in plain.operands):
            total += plain.operand("weights").type.size_bytes + _PER_CHANNEL * int(channels)
    return int(total * (1 + _SPARE))


def constants_bytes(layers: Sequence[Layer], choice: Choice) -> int:
    """Return the bytes of constants; one that several layers read is stored once."""
    found: dict[str, int] = {}
    for layer in layers:
        found |= layer.constants.get(choice[layer.name], {})
    return sum(found.values())


def single_moves(layers: Sequence[Layer], choice: Choice) -> list[dict[str, str]]:
    """Return the choices in which one layer has another variant with fewer bytes of constants."""
    return [
        {**choice, x.name: form.isa}
        for x in layers
        for form in x.forms
        if _layer_bytes(x, form.isa) < _layer_bytes(x, choice[x.name])
    ]


def within_bound(
    choice: Choice, bound: int, moves: Callable[[Choice], Sequence[Choice]], weigh: Callable[[Choice], Price]
) -> Choice:
    """Return the choice behind the moves that cost the fewest instructions a byte, until the constants are in bound."""
    now = weigh(choice)
    price = now.insns * _MAX_LOSS / max(now.constants - bound, 1)
    while now.constants > bound:
        better = []
        for n, move in enumerate(moves(choice)):
            then = weigh(move)
            saved, extra = now.constants - then.constants, then.insns - now.insns
            if saved > 0 and then.flash <= now.flash and extra <= price * min(saved, now.constants - bound):
                better.append((extra / saved, n, then, move))
        if not better:
            break
        _, _, now, choice = min(better, key=lambda b: b[:2])
    return choice


def _layer_bytes(layer: Layer, isa: str) -> int:
    return sum(layer.constants.get(isa, {}).values())
