"""The order of the variants of every layer: by predicted cycles, within scratch, code and constants.

What `speed`, `balanced` and `size` mean is told in choose.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from glowc.kernels.base import PLAIN, KernelVariant
from glowc.kernels.choice import variant_of
from glowc.kernels.features import features
from glowc.program.ir import Instr, scratch_bytes
from glowc.select.alike import Alike, Parts, alike_of, cycles_of, differs_in_constants, saves_constants
from glowc.select.budgets import (
    SPARE_WORDS,
    Choice,
    Price,
    bound_bytes,
    constants_bytes,
    forced_within_bound,
    within_bound,
)
from glowc.select.candidates import Layer, Order, Tuned
from glowc.select.cost import Cost, Costs
from glowc.select.pricing import MOST_INSNS, Modes, Pricing, likely_modes

KB = 1024
CODE_LIMITS = {"size": 12 * KB, "balanced": 24 * KB}
_KB_WORTH = 0.03  # share of the cycles that a kilobyte of code must save at `size`
_KB_WORTH_FORCED = 0.003  # the same at `balanced`, where constants give way to their bound
_KB_MOST_FORCED = 0.1  # of the cycles, that a kilobyte less of them may cost there
_KB_WORTH_BALANCED = 0.0005  # the same at `balanced`, whatever the limit
_SURE = {"size": 0.8, "balanced": 0.9}  # of a limit is aimed at: predictions are off, and places part functions
_ARENA_SHARE = 0.15
ARENA_BYTES = 8 * KB
_MOST_FOR_ANY = 32 * KB  # that the arena may grow by for the only variant that is not portable C
_MAX_STEPS = 200
# of the price of code, until it fits: at most a quarter of the cycles for a kilobyte
_DOUBLINGS, _HALVINGS = 7, 4


def lean(layers: Sequence[Layer], order: Order, limits: Mapping[str, int]) -> Order:
    """Return the order with the variants first that need no more scratch than a layer's limit, or the least of all."""
    found = {}
    for layer in layers:
        least = max(limits.get(layer.name, 1 << 62), min(map(scratch_bytes, layer.forms)))
        names = order.get(layer.name, tuple(f.variant for f in layer.forms))
        found[layer.name] = tuple(sorted(names, key=partial(_exceeds, layer, least)))
    return found


def _exceeds(layer: Layer, limit: int, variant: str) -> bool:
    return scratch_bytes(layer.form(variant)) > limit


def select(
    layers: Sequence[Layer], costs: Costs, opt: str, tuned: Tuned | None = None, code_limit: int = 0,
    growth: int = ARENA_BYTES,
) -> Order:  # fmt: skip
    """Return the order of variants for every instruction; code aims at `code_limit` bytes, 0: at those of `opt`.

    Scratch may make the arena grow by 15 %, or by `growth` bytes.
    """
    mode_of = likely_modes(layers, opt)
    tuned = tuned or {}
    known = [_without(x, lambda v: v.like != "" or (opt != "speed" and v.speed_only)) for x in layers]
    orders: Order = {x.name: _by_speed(x, costs, mode_of, tuned.get(x.name)) for x in known}
    if opt == "speed":
        return orders
    allowed = _affordable(layers, growth)
    kept = {name: tuple(variant for variant in names if variant in allowed[name]) for name, names in orders.items()}
    small = [replace(x, forms=tuple(f for f in x.forms if f.variant in allowed[x.name])) for x in layers]
    pricing = Pricing(costs, tuned, opt, mode_of, {x.name: x.form(orders[x.name][0]) for x in layers})
    usual = [_without(x, lambda v: v.like != "") for x in small]
    code = _fit_code(usual, kept, pricing, round(_SURE[opt] * (code_limit or CODE_LIMITS[opt])))
    cheap = _save_code(usual, _fit_constants(usual, code, pricing), pricing)
    fitted = _force_constants(small, cheap, pricing)
    return {name: tuple(dict.fromkeys((*fitted[name], *names))) for name, names in orders.items()}


def cheaper(layers: Sequence[Layer], orders: Order, others: Order, price: Callable[[Instr], int]) -> Order:
    """Return the orders, with the first variant of another order first where its price is no more."""

    def first(layer: Layer) -> str:
        one, other = orders[layer.name][0], others[layer.name][0]
        return one if one == other or price(layer.form(one)) < price(layer.form(other)) else other

    return _first({x.name: first(x) for x in layers}, orders)


def _without(layer: Layer, left_out: Callable[[KernelVariant], bool]) -> Layer:
    return replace(layer, forms=tuple(f for f in layer.forms if not left_out(variant_of(f))))


def _by_speed(layer: Layer, costs: Costs, mode_of: Modes, measured: Mapping[str, Cost] | None) -> tuple[str, ...]:
    """Return the variants by cycles; predicted ones must be fewer beyond the error to beat the rank.

    A variant that runs many more instructions than another does not replace it: its cycles are fewer on one chip only.
    One whose cycles are not known well neither replaces another nor is replaced.
    """
    names = [f.variant for f in layer.forms]
    if measured is not None:
        return tuple(sorted(names, key=lambda variant: measured[variant].cycles))
    fits = {f.variant: fit for f in layer.forms if (fit := costs.fit(f, mode_of(f))) is not None and fit.trusted}
    if len(fits) < 2:
        return tuple(names)
    taken = {f.variant: fits[f.variant].predict(features(f)) for f in layer.forms if f.variant in fits}
    errors = {variant: fit.error for variant, fit in fits.items()}

    def beats(one: str, other: str) -> bool:
        if one not in fits or other not in fits:
            return False
        fewer = taken[one].cycles * (1 + errors[one]) < taken[other].cycles * (1 - errors[other])
        return fewer and taken[one].insns <= MOST_INSNS * taken[other].insns

    left, order = list(names), []
    while left:
        best = left[0]
        for variant in left[1:]:
            if beats(variant, best):
                best = variant
        order.append(best)
        left.remove(best)
    return tuple(order)


def _affordable(layers: Sequence[Layer], growth: int) -> dict[str, set[str]]:
    """Return the variants of each layer that are not for speed only and let the arena grow no more than is allowed.

    Where that is portable C alone, another one with little scratch is there, too.
    """
    least = {x.name: min(map(scratch_bytes, x.forms)) for x in layers}
    peak = max((x.live_bytes + least[x.name] for x in layers), default=0)
    growth = max(int(peak * _ARENA_SHARE), growth)

    def affordable(layer: Layer) -> set[str]:
        most = max(least[layer.name], peak - layer.live_bytes, 0) + growth
        forms = [form for form in layer.forms if not variant_of(form).speed_only]
        found = {form.variant for form in forms if scratch_bytes(form) <= most}
        others = {scratch_bytes(form): form.variant for form in reversed(forms) if form.variant != PLAIN.name}
        if found == {PLAIN.name} and others and min(others) <= _MOST_FOR_ANY:
            found.add(others[min(others)])
        return found

    return {x.name: affordable(x) for x in layers}


def _fit_code(layers: Sequence[Layer], orders: Order, pricing: Pricing, limit: int) -> Order:
    """Return the order in which code is saved where it costs the fewest cycles, until it is small enough."""
    if not pricing.costs.kernels or not layers:
        return orders
    alike = Alike(layers, orders, pricing)
    chosen = alike.parts({x.name: orders[x.name][0] for x in layers})
    now = alike.price(chosen)
    price = now.cycles * _KB_WORTH / KB if pricing.opt == "size" else 0.0
    if price == 0.0 and now.code <= limit:
        return orders

    def priced(value: float) -> tuple[bool, Parts]:
        found = _cheapest(alike, chosen, value)
        return alike.price(found).code <= limit, found

    low, step = price, max(now.cycles * _KB_WORTH / 16 / KB, 1e-3)
    fits, best = priced(price)
    for _ in range(_DOUBLINGS):
        if fits:
            break
        low, price, step = price, price + step, 2 * step
        fits, best = priced(price)
    for _ in range(_HALVINGS if price > low else 0):
        middle = (low + price) / 2
        fits, found = priced(middle)
        low, price, best = (low, middle, found) if fits else (middle, price, best)
    return _first(alike.choice(best), orders)


def _first(choice: Choice, orders: Order) -> Order:
    """Return the orders with the chosen variants first."""
    return {name: tuple(dict.fromkeys((choice[name], *names))) for name, names in orders.items()}


def _fit_constants(layers: Sequence[Layer], orders: Order, pricing: Pricing) -> Order:
    """Return the order in which the constants are cut to what the weights need, as far as that costs little."""
    alike = Alike(layers, _trusted(layers, orders, pricing), pricing)

    def moves(parts: Parts) -> Sequence[Parts]:
        return [*alike.single_moves(parts, saves_constants), *alike.group_moves(parts)]

    chosen = alike.parts({name: names[0] for name, names in orders.items()})
    best = within_bound(chosen, bound_bytes(layers), moves, alike.price)
    return _first(alike.choice(best), orders)


def _save_code(layers: Sequence[Layer], orders: Order, pricing: Pricing) -> Order:
    """Return the order in which variants with less code stand for others that hardly take fewer cycles."""
    alike = Alike(layers, _trusted(layers, orders, pricing), pricing)
    chosen = alike.parts({name: names[0] for name, names in orders.items()})
    now = alike.price(chosen)
    worth = now.cycles * _KB_WORTH_BALANCED / KB

    def gain(price: Price) -> float:
        saves = price.code < now.code and price.constants <= now.constants
        return worth * (now.code - price.code) - (price.cycles - now.cycles) if saves else -math.inf

    def may_gain(move: Parts) -> bool:
        more = cycles_of(move) - now.cycles
        return more < worth * now.code and more < worth * (now.code - alike.code_of_both(chosen, move))

    for _ in range(_MAX_STEPS):
        found = filter(may_gain, alike.group_moves(chosen, shapes=True))
        moves = [(alike.price(move), move) for move in found]
        best = max(moves, key=lambda move: gain(move[0]), default=(now, chosen))
        if gain(best[0]) <= 0:
            break
        now, chosen = best
    return _first(alike.choice(chosen), orders)


def _trusted(layers: Sequence[Layer], orders: Order, pricing: Pricing) -> dict[str, set[str]]:
    """Return the variants of each layer with known costs, none of those of which the first variant has no such."""
    trusted = {x.name: {f.variant for f in x.forms if pricing.trusts(f)} for x in layers}
    return {name: variants if orders[name][0] in variants else set() for name, variants in trusted.items()}


def _force_constants(layers: Sequence[Layer], orders: Order, pricing: Pricing) -> Order:
    """Return the order in which the constants are no more than what the weights need, as far as that is worth it."""
    chosen, bound = {name: names[0] for name, names in orders.items()}, bound_bytes(layers)
    if constants_bytes(layers, chosen) <= bound + SPARE_WORDS:
        return orders
    worth = (_KB_WORTH, None) if pricing.opt == "size" else (_KB_WORTH_FORCED, _KB_MOST_FORCED)
    alike = alike_of(layers, pricing)

    def moves(parts: Parts) -> Sequence[Parts]:
        return alike.single_moves(parts, differs_in_constants)

    weigh = partial(alike.price, guessed=True)
    best = forced_within_bound(alike.parts(chosen), bound, moves, weigh, *worth)
    return _first(alike.choice(best), orders)


def _cheapest(alike: Alike, start: Parts, price: float) -> Parts:
    """Return the choice after the moves that lower cycles + price x code most, one after another."""
    chosen = start

    def cost(parts: Parts) -> float:
        taken = alike.price(parts)
        return taken.cycles + price * taken.code

    best = cost(chosen)
    for _ in range(_MAX_STEPS):
        moves = [(cost(move), n, move) for n, move in enumerate(alike.group_moves(chosen))]
        least = min(moves, key=lambda m: m[:2], default=(math.inf, 0, chosen))
        if least[0] >= best:
            break
        best, chosen = least[0], least[2]
    return chosen
