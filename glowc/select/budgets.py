"""Constants held to what the weights need: packings that pad or widen them give way to others.

The bound is weights + biases + five bytes per output channel, what the other layers have (tables, operands), what the
parameters of a layer take beyond that in its plain form (scales of blocks, multipliers and offsets of 64 bits), what
fills pairs of inputs, states and cells of recurrent layers of codes, sums of inputs where weights have a zero point,
and six in a thousand. First gives way what costs
little: what is over the bound may cost one percent of the cycles, a part of it that part, and the other kernels' code
is no more than the constants they save. The rest gives way as long as all of it costs at most half of the cycles more,
at `balanced` a kilobyte no more than it is worth, and code does not take more bytes than the constants give.

Where constants and code do not fit into the flash, layers give some back that it costs least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from glowc.kernels.common.recurrent import FOUR, PAIR, resets_first
from glowc.kernels.dsp.forms import GROUP, SUMMED
from glowc.program.ir import Instr, Operand
from glowc.select.candidates import Layer

SPARE_WORDS = 8
"""Bytes over the bound for which no layer is forced to another kernel: a number or two that a kernel has itself."""

_PER_CHANNEL = 9  # bias and five bytes
_PER_GATE = 16  # biases and scales of the inputs and of the state
_PLACES = 2  # bytes more where the factor has a shift of its own: that of a pair of channels takes a word
_SPARE = 0.006  # so that whole models stay within one percent of their weights and channels
_MAX_LOSS = 0.01
_MAX_FORCED = 0.5  # of the cycles, for all that gives way
_MAX_MOVES = 200

Choice = Mapping[str, str]
"""The variant of every layer by name."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a choice takes: predicted cycles of a whole inference, bytes of code and of constants."""

    cycles: float
    code: float
    constants: int

    @property
    def flash(self) -> float:
        """Bytes of code and constants."""
        return self.code + self.constants


def bound_bytes(layers: Sequence[Layer]) -> int:
    """Return what the constants of layers may need; one that several layers read counts once."""
    found: dict[str, int] = {}
    for layer in layers:
        found |= _needed(layer)
    return int(sum(found.values()) * (1 + _SPARE))


def _needed(layer: Layer) -> dict[str, int]:
    """Return what a layer needs by name: its weights and so much a channel, or what its plain form has."""
    plain = layer.forms[-1]
    constants = dict(layer.constants.get(plain.variant, {}))
    channels = plain.params.get("out_c", plain.params.get("out_n"))
    weights = next((o for o in plain.operands if o.role == "weights"), None)
    if weights is not None and any(o.role == "recurrent" for o in plain.operands):
        return {**constants, layer.name: _filling_pairs(plain, weights)}
    if channels is None or weights is None:
        return constants
    size = weights.type.size_bytes
    each = _PER_CHANNEL + (_PLACES if any(o.role == "shift" for o in plain.operands) else 0)
    if plain.params.get("w_zp", 0):
        each += GROUP * -(-size // (SUMMED * GROUP * int(channels)))
    return {weights.buffer: size, layer.name: max(each * int(channels), sum(constants.values()) - size)}


def _filling_pairs(plain: Instr, weights: Operand) -> int:
    """Return the bytes that make inputs, states and cells of a recurrent layer even; four cells of a GRU that resets
    first.
    """
    inputs, cells = plain.int_("in_k"), plain.int_("hidden")
    group = FOUR if resets_first(plain) else PAIR
    states, filled = cells + cells % PAIR, -(-cells // group) * group
    more = filled * (inputs + inputs % 2 + states + _PER_GATE) - cells * (inputs + cells + _PER_GATE)
    return more * weights.type.elements // (inputs * cells)


def constants_bytes(layers: Sequence[Layer], choice: Choice) -> int:
    """Return the bytes of constants; one that several layers read is stored once."""
    found: dict[str, int] = {}
    for layer in layers:
        found |= layer.constants.get(choice[layer.name], {})
    return sum(found.values())


C = TypeVar("C")
"""A choice in any form."""
Moves = Callable[[C], Sequence[C]]
Weigh = Callable[[C], Price]


def within_bound(choice: C, bound: int, moves: Moves[C], weigh: Weigh[C]) -> C:
    """Return the choice after the moves that cost the fewest cycles a byte, until the constants are in bound."""
    now = weigh(choice)
    price = now.cycles * _MAX_LOSS / max(now.constants - bound, 1)
    while now.constants > bound:
        better = []
        for n, move in enumerate(moves(choice)):
            then = weigh(move)
            saved, extra = now.constants - then.constants, then.cycles - now.cycles
            if saved > 0 and then.flash <= now.flash and extra <= price * min(saved, now.constants - bound):
                better.append((extra / saved, n, then, move))
        if not better:
            break
        _, _, now, choice = min(better, key=lambda b: b[:2])
    return choice


def forced_within_bound(
    choice: C, bound: int, moves: Moves[C], weigh: Weigh[C], kb_worth: float, kb_most: float | None = None
) -> C:
    """Return the choice after the moves that cost least for each byte over the bound.

    The cost is the share of the cycles, and what the flash grows by, a kilobyte of which counts as the share
    `kb_worth`. Once in bound, moves that lower the cost within it are made. With `kb_most` a kilobyte may cost no more,
    and all of them may not make the flash larger and the cycles more.
    """
    given, first = choice, weigh(choice)
    now, whole = first, max(first.cycles, 1)
    most = whole * (1 + _MAX_FORCED)

    def cost(then: Price) -> float:
        return (then.cycles - now.cycles) / whole + kb_worth * max(then.flash - now.flash, 0) / 1024

    for _ in range(_MAX_MOVES):
        over = now.constants - bound
        tried = [(move, then) for move in moves(choice) if (then := weigh(move)).cycles <= most]
        if over > 0:
            saved = [min(now.constants - then.constants, over) for _, then in tried]
            rates = [(max(cost(t[1]), 0.0) / s, n) for n, (t, s) in enumerate(zip(tried, saved, strict=True)) if s > 0]
            better = [(rate, n) for rate, n in rates if kb_most is None or rate <= kb_most / 1024]
        else:
            better = [(cost(t), n) for n, (_, t) in enumerate(tried) if t.constants <= bound and cost(t) < 0]
        if not better:
            break
        choice, now = tried[min(better)[1]]
    gives = now.flash < first.flash or now.cycles < first.cycles
    return choice if gives or kb_most is None else given


def shrunk(choice: C, limit: int, moves: Moves[C], weigh: Weigh[C]) -> C:
    """Return the choice after the moves that cost the fewest cycles for a byte of flash, until it fits `limit`.

    Where none makes it smaller, that is the smallest which was found.
    """
    now = weigh(choice)
    while now.flash > limit:
        better = []
        for n, move in enumerate(moves(choice)):
            then = weigh(move)
            saved = min(now.flash - then.flash, now.flash - limit)
            if saved > 0:
                better.append((max(then.cycles - now.cycles, 0) / saved, n, then, move))
        if not better:
            break
        *_, now, choice = min(better, key=lambda b: b[:2])
    return choice
