"""Flash: which layers may spend it for speed, and which give some back where constants and code do not fit.

Those may spend that save most cycles for a byte, until the room is used up; those give back that it costs least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glowc.kernels.choice import variant_of
from glowc.program.ir import Instr
from glowc.select.candidates import Constants, Layer, Order
from glowc.select.constants_budget import Choice, Moves, Weigh


@dataclass(frozen=True, slots=True)
class Trade:
    """A layer that could have other constants: it saves `cycles` with `large` instead of `small` ones."""

    layer: str
    cycles: int
    small: Constants
    large: Constants

    @property
    def gain(self) -> float:
        """Cycles saved for each byte."""
        return self.cycles / max(sum(self.large.values()) - sum(self.small.values()), 1)


def within_flash(
    layers: Sequence[Layer], order: Order, cycles: Callable[[Instr], int | None], room_bytes: int
) -> Order:
    """Return the order with those `speed_only` variants last that the constants have no room for.

    `cycles` predicts a call; where it cannot, each multiply-accumulate counts as if it saved the same.
    """
    spends = {x.name: {f.variant for f in x.forms if variant_of(f).speed_only} for x in layers}
    without = {x.name: tuple(sorted(order[x.name], key=spends[x.name].__contains__)) for x in layers}
    trades, others = [], []
    for layer in layers:
        first, second = layer.form(order[layer.name][0]), layer.form(without[layer.name][0])
        small = layer.constants.get(second.variant, {})
        if first is second:
            others.append(small)
            continue
        after, before = cycles(first), cycles(second)
        saved = first.macs if before is None or after is None else before - after
        trades.append(Trade(layer.name, saved, small, layer.constants.get(first.variant, {})))
    denied = {t.layer for t in trades} - affordable(trades, others, room_bytes)
    return {name: without[name] if name in denied else names for name, names in order.items()}


def affordable(trades: Sequence[Trade], others: Sequence[Constants], room_bytes: int) -> set[str]:
    """Return the layers that have their large constants, so that these and `others` fit into `room_bytes`."""
    chosen = {t.layer: t.small for t in trades}
    now = _total([*others, *chosen.values()])
    for trade in sorted(trades, key=lambda t: -t.gain):
        tried = {**chosen, trade.layer: trade.large}
        need = _total([*others, *tried.values()])
        if need <= max(room_bytes, now):
            chosen, now = tried, need
    return {t.layer for t in trades if chosen[t.layer] is t.large}


def shrunk(choice: Choice, limit: int, moves: Moves, weigh: Weigh) -> Choice:
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


def _total(parts: Sequence[Constants]) -> int:
    return sum({name: size for part in parts for name, size in part.items()}.values())
