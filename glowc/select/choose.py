"""Which kernel variant each layer gets: the costs of the CPU, the wish for speed or size, and measured choices.

The candidates of every layer (`layers.collect`) are ordered, the wanted one first, by `select`:

speed     fewest predicted cycles; variants that spend flash for it (`speed_only`) while there is room, those that
          save most for a byte first
balanced  the same, as long as scratch does not make the arena grow by more than 15 % or 8 KB, and the code stays below
          24 KB (CPUs with Advanced SIMD: 96 KB); else code is saved where it costs the fewest cycles. Constants
          over their bound give way too (glowc/select/constants_budget.py)
size      a kilobyte of code must save 3 % of the cycles, and the code should stay below 12 KB
tiny RAM  (`Selection.limited`) variants with little scratch first: used when the arena would not fit

A layer with a variant that was never measured keeps the order of `rank`. Where `glowc tune` measured all variants of a
layer itself, what it measured replaces the predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from glowc.board import Cpu
from glowc.codegen.kernels import Identity, args_struct, identity, render_kernel
from glowc.codegen.view import Family, family, literal_families
from glowc.graph.graph import Graph
from glowc.kernels.base import KernelVariant, prepare, row_waste
from glowc.kernels.choice import variant_of
from glowc.kernels.features import features
from glowc.lower.lowering import Choose, Finish, Prepare, by_rank, lower_graph
from glowc.program.ir import Instr, Program
from glowc.select.candidates import Layer, Order, Preparer, Tuned, collect, scratch_bytes
from glowc.select.constants_budget import (
    SPARE_WORDS,
    Choice,
    Price,
    all_moves,
    bound_bytes,
    constants_bytes,
    forced_within_bound,
    single_moves,
    within_bound,
)
from glowc.select.cost import Cost, Costs, load_costs
from glowc.select.flash_budget import shrunk, within_flash
from glowc.select.stack import modes_of

KB = 1024
CODE_LIMITS = {"size": 12 * KB, "balanced": 24 * KB}
_LARGE_LIMIT = 96 * KB  # balanced, for CPUs that run from caches and megabytes of memory
_KB_WORTH = 0.03  # share of the cycles that a kilobyte of code must save at `size`
_KB_WORTH_FORCED = 0.003  # the same at `balanced`, where constants give way to their bound
_DOUBT = 3  # times what is guessed of a kernel that was never measured, where it would replace another one
_MOST_INSNS = (
    1.25  # times those of another variant: chips with a CPU differ in what they wait for, not in what they run
)
_INLINED = 0.92  # of code measured function by function is left when functions called once become parts of their caller
_SURE = 0.9  # of a limit of code is aimed at: predictions are off by as much as a tenth
CODE_OF_ANY = 128 * KB  # no model's code takes more
_ARENA_SHARE, _ARENA_BYTES = 0.15, 8 * KB
_MAX_STEPS = 200
# of the price of code, until it fits: at most a quarter of the cycles for a kilobyte
_DOUBLINGS, _HALVINGS = 7, 4


def chooser(order: Order) -> Choose:
    """Return the choice for a lowering: of the variants that may be had, the first in the order."""

    def choose(instr: Instr, variants: Sequence[KernelVariant], finish: Finish) -> KernelVariant:
        by_name = {v.name: v for v in variants}
        wanted = next((variant for variant in order.get(instr.name, ()) if variant in by_name), None)
        return by_rank(instr, variants, finish) if wanted is None else by_name[wanted]

    return choose


@dataclass(frozen=True, slots=True)
class Selection:
    """The variants chosen for a graph on a CPU; all constants together should need at most `flash_bytes`."""

    graph: Graph
    cpu: Cpu
    opt: str
    layers: tuple[Layer, ...]
    costs: Costs
    order: Order
    tuned: Tuned
    flash_bytes: int | None = None
    scratch_limit: int = 1 << 62
    preparing: Prepare = prepare

    def lower(self, streaming: Callable[[str], bool]) -> Program:
        """Return the program with the chosen variants; those named by `streaming` stream rows."""
        whole = chooser(self.order)
        forms = {x.name: {f.variant: f for f in x.forms} for x in self.layers}

        def choose(instr: Instr, variants: Sequence[KernelVariant], finish: Finish) -> KernelVariant:
            if not streaming(instr.name) or instr.macs == 0:
                return whole(instr, variants, finish)
            variants = [v for v in variants if v.name in forms[instr.name]]
            rows = [forms[instr.name][v.name] for v in variants]
            least = max(self.scratch_limit, min(map(scratch_bytes, rows)))
            known = [self._trusted(form) for form in rows]
            cycles = [(cost if cost and None not in known else self.costs.stated(form)).cycles
                      for form, cost in zip(rows, known, strict=True)]  # fmt: skip
            keys = [
                (scratch_bytes(form) > least, n * row_waste(v, instr), -v.rank)
                for form, n, v in zip(rows, cycles, variants, strict=True)
            ]
            return variants[keys.index(min(keys))]

        return lower_graph(self.graph, self.cpu, streaming, choose, self.preparing)

    def predict(self, instr: Instr) -> int | None:
        """Return the predicted instructions of a call, None where too little was measured."""
        cost = self._trusted(instr)
        return None if cost is None else cost.insns

    def _trusted(self, instr: Instr) -> Cost | None:
        mode = "size" if self.opt == "size" else "shared"
        fit = self.costs.fit(instr, mode)
        return _cost(self.costs if fit is not None and fit.trusted else Costs(), self.tuned, instr, mode)

    def scratch_sizes(self) -> list[int]:
        """Return the bytes of scratch that a limit may be set to, ascending; the largest limits nothing."""
        return sorted({scratch_bytes(f) for x in self.layers for f in x.forms})

    def limited(self, limit: int) -> Selection:
        """Return the selection in which layers take no more than `limit` bytes of scratch where they can."""
        return replace(self, order=lean(self.layers, self.order, limit), scratch_limit=limit)

    def ordered(self, order: Order) -> Selection:
        """Return the selection with another order, in which variants that the flash has no room for stand last.

        Those that a layer does not have are left out.
        """
        has = {x.name: {f.variant: f for f in x.forms} for x in self.layers}
        known: Order = {
            name: tuple(v for v in dict.fromkeys((*order.get(name, ()), *forms)) if v in forms)
            for name, forms in has.items()
        }
        if self.flash_bytes is not None:
            known = within_flash(self.layers, known, self._literal_cycles, self.flash_bytes)
        return replace(self, order=known)

    def _literal_cycles(self, instr: Instr) -> int | None:
        cost = _cost(self.costs, self.tuned, instr, "literal")
        return None if cost is None else cost.cycles

    def code_bytes(self, program: Program) -> int:
        """Return the predicted bytes of code of a program, the runtime's functions included."""
        return math.ceil(self._pricing().code([i for i in program.instrs if not i.is_marker]))

    def within(self, limit: int) -> Selection:
        """Return the selection with smaller kernels, those first that cost least, until the flash is at most `limit`.

        The flash are the constants and the predicted code. If nothing is that small, it is as small as was found.
        """
        pricing, chosen = self._pricing(), {name: names[0] for name, names in self.order.items()}
        if constants_bytes(self.layers, chosen) + CODE_OF_ANY <= limit:
            return self

        def weigh(choice: Choice) -> Price:
            return _price(self.layers, choice, pricing, lambda instrs: sum(map(pricing.guess, instrs)))

        def moves(choice: Choice) -> Sequence[Choice]:
            single = [
                {**choice, x.name: form.variant}
                for x in self.layers
                for form in x.forms
                if form.variant != choice[x.name]
            ]
            return [*single, *_moves(self.layers, self.order, choice, pricing)]

        least = {x.name: min(x.forms, key=partial(_constants_of, x)).variant for x in self.layers}
        tried = [shrunk(start, limit, moves, weigh) for start in (chosen, least)]
        best = min(tried, key=lambda c: (max(weigh(c).flash - limit, 0), weigh(c).cycles))
        return replace(self, order={name: tuple(dict.fromkeys((best[name], *i))) for name, i in self.order.items()})

    def _pricing(self) -> Pricing:
        fastest = {x.name: x.form(self.order[x.name][0]) for x in self.layers}
        return Pricing(self.costs, self.tuned, self.opt, likely_modes(self.layers, self.opt), fastest)

    def estimates(self, program: Program) -> list[Cost]:
        """Return what each call of a program is predicted to take, where nothing was measured as its variant states."""
        known = [(i, _cost(self.costs, self.tuned, i, mode)) for i, mode in modes_of(program, self.opt)]
        return [self.costs.stated(i) if cost is None else cost for i, cost in known]


def select_variants(
    graph: Graph,
    cpu: Cpu,
    opt: str,
    measured: Callable[[Layer], Mapping[str, Cost]] | None = None,
    flash_bytes: int | None = None,
    spare: Mapping[str, int] | None = None,
    preparing: Prepare | None = None,
) -> Selection:
    """Return the selection for a graph; `measured` tells what a layer takes by variant, if known.

    `spare` are the bytes of the arena that a plan leaves free beside layers, by name; `preparing` prepares candidates,
    and remembers them from one selection to the next.
    """
    preparing = preparing or Preparer()
    layers, costs = collect(graph, cpu, preparing, spare), load_costs(cpu)
    tuned: dict[str, Mapping[str, Cost]] = {}
    for layer in layers:
        taken = measured(layer) if measured is not None else {}
        if {f.variant for f in layer.forms} <= taken.keys():
            tuned[layer.name] = taken
    order = select(layers, costs, opt, tuned, _code_limit(cpu, opt))
    selection = Selection(graph, cpu, opt, layers, costs, order, tuned, flash_bytes, preparing=preparing)
    return selection.ordered(order)


def _code_limit(cpu: Cpu, opt: str) -> int:
    """Return the bytes of code that `opt` aims at on a CPU, 0 for no limit."""
    return _LARGE_LIMIT if opt == "balanced" and "neon" in cpu.features else CODE_LIMITS.get(opt, 0)


def _cost(costs: Costs, tuned: Tuned, instr: Instr, mode: str) -> Cost | None:
    """Return what a call takes as measured, else as predicted."""
    found = tuned.get(instr.name, {}).get(instr.variant)
    return costs.predict(instr, mode) if found is None else found


def lean(layers: Sequence[Layer], order: Order, limit: int) -> Order:
    """Return the order with the variants first that need at most `limit` bytes of scratch, or the fewest of all."""
    found = {}
    for layer in layers:
        least = max(limit, min(map(scratch_bytes, layer.forms)))
        names = order.get(layer.name, tuple(f.variant for f in layer.forms))
        found[layer.name] = tuple(sorted(names, key=partial(_exceeds, layer, least)))
    return found


def _constants_of(layer: Layer, form: Instr) -> int:
    return sum(layer.constants.get(form.variant, {}).values())


def _exceeds(layer: Layer, limit: int, variant: str) -> bool:
    return scratch_bytes(layer.form(variant)) > limit


def select(
    layers: Sequence[Layer], costs: Costs, opt: str, tuned: Tuned | None = None, code_limit: int = 0
) -> Order:  # fmt: skip
    """Return the order of variants for every instruction; code aims at `code_limit` bytes, 0: at those of `opt`."""
    mode_of = likely_modes(layers, opt)
    tuned = tuned or {}
    known = [_without(x, lambda v: v.like != "" or (opt != "speed" and v.speed_only)) for x in layers]
    orders: Order = {x.name: _by_speed(x, costs, mode_of, tuned.get(x.name)) for x in known}
    if opt == "speed":
        return orders
    allowed = _affordable(layers)
    kept = {name: tuple(variant for variant in names if variant in allowed[name]) for name, names in orders.items()}
    small = [replace(x, forms=tuple(f for f in x.forms if f.variant in allowed[x.name])) for x in layers]
    pricing = Pricing(costs, tuned, opt, mode_of, {x.name: x.form(orders[x.name][0]) for x in layers})
    usual = [_without(x, lambda v: v.like != "") for x in small]
    code = _fit_code(usual, kept, pricing, round(_SURE * (code_limit or CODE_LIMITS[opt])))
    cheap = _fit_constants(usual, code, pricing)
    fitted = _force_constants(small, cheap, pricing)
    return {name: tuple(dict.fromkeys((*fitted[name], *names))) for name, names in orders.items()}


Modes = Callable[[Instr], str]
"""How a call is printed: one of MODES."""


def likely_modes(layers: Sequence[Layer], opt: str) -> Modes:
    """Return how calls are printed if all layers that could have a variant have it."""
    shapes: dict[Family, set[Identity]] = {}
    for form in (form for layer in layers for form in layer.forms):
        shapes.setdefault(family(form), set()).add(identity(form, literal=True))
    literal = literal_families(shapes, opt)
    return lambda instr: "size" if opt == "size" else "literal" if family(instr) in literal else "shared"


def _without(layer: Layer, left_out: Callable[[KernelVariant], bool]) -> Layer:
    return replace(layer, forms=tuple(f for f in layer.forms if not left_out(variant_of(f))))


def _by_speed(layer: Layer, costs: Costs, mode_of: Modes, measured: Mapping[str, Cost] | None) -> tuple[str, ...]:
    """Return the variants by cycles; predicted ones must be fewer beyond the error to beat the rank.

    A variant that runs many more instructions than another does not replace it: its cycles are fewer on one chip only.
    """
    names = [f.variant for f in layer.forms]
    if measured is not None:
        return tuple(sorted(names, key=lambda variant: measured[variant].cycles))
    fits = {f.variant: fit for f in layer.forms if (fit := costs.fit(f, mode_of(f))) is not None and fit.trusted}
    if len(names) < 2 or len(fits) < len(names):
        return tuple(names)
    taken = {f.variant: fits[f.variant].predict(features(f)) for f in layer.forms}
    errors = {variant: fit.error for variant, fit in fits.items()}

    def beats(one: str, other: str) -> bool:
        fewer = taken[one].cycles * (1 + errors[one]) < taken[other].cycles * (1 - errors[other])
        return fewer and taken[one].insns <= _MOST_INSNS * taken[other].insns

    left, order = list(names), []
    while left:
        best = left[0]
        for variant in left[1:]:
            if beats(variant, best):
                best = variant
        order.append(best)
        left.remove(best)
    return tuple(order)


def _affordable(layers: Sequence[Layer]) -> dict[str, set[str]]:
    """Return the variants of each layer that are not for speed only and let the arena grow no more than is allowed."""
    least = {x.name: min(map(scratch_bytes, x.forms)) for x in layers}
    peak = max((x.live_bytes + least[x.name] for x in layers), default=0)
    growth = max(int(peak * _ARENA_SHARE), _ARENA_BYTES)
    return {
        x.name: {
            f.variant
            for f in x.forms
            if scratch_bytes(f) <= max(least[x.name], peak - x.live_bytes, 0) + growth and not variant_of(f).speed_only
        }
        for x in layers
    }


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one instruction with one variant: predicted cycles, and what it shares code by."""

    cycles: int
    family: Family
    literal: Identity
    shared: Identity
    callees: frozenset[str]


class Pricing:
    """Predicts cycles and code of a choice of variants; what was found out once is remembered."""

    def __init__(
        self, costs: Costs, tuned: Tuned, opt: str, mode_of: Modes, fastest: Mapping[str, Instr] | None = None
    ) -> None:  # fmt: skip
        self.costs, self.tuned, self.opt, self.mode_of = costs, tuned, opt, mode_of
        self._fastest = fastest or {}
        self._facts: dict[int, tuple[Instr, Facts]] = {}
        self._texts: dict[Identity, tuple[str, float]] = {}

    def facts(self, instr: Instr) -> Facts:
        """Return what is known of an instruction."""
        if id(instr) not in self._facts:
            keys = identity(instr, literal=True), identity(instr, literal=False)
            self._facts[id(instr)] = instr, Facts(self._cycles(instr), family(instr), *keys, self.costs.callees(instr))
        return self._facts[id(instr)][1]

    def _cycles(self, instr: Instr) -> int:
        """Return the cycles of a call, 0 where nothing is known; many more instructions than the fastest count too."""
        cost, best = (
            None if i is None else _cost(self.costs, self.tuned, i, self.mode_of(i))
            for i in (instr, self._fastest.get(instr.name))
        )
        if cost is None or best is None or best.insns == 0:
            return 0 if cost is None else cost.cycles
        return max(cost.cycles, round(best.cycles * cost.insns / (_MOST_INSNS * best.insns)))

    def trusts(self, instr: Instr) -> bool:
        """Say whether the cycles of a call are known well enough to weigh bytes against them."""
        fit = self.costs.fit(instr, self.mode_of(instr))
        return instr.variant in self.tuned.get(instr.name, {}) or (fit is not None and fit.trusted)

    def guess(self, instr: Instr) -> int:
        """Return the cycles of a call, predicted or, of a kernel that was not measured, guessed."""
        return self.facts(instr).cycles or _DOUBT * self.costs.stated(instr).cycles

    def cycles(self, instrs: Sequence[Instr]) -> int:
        """Return the predicted cycles of those calls whose kernels were measured."""
        return sum(self.facts(i).cycles for i in instrs)

    def code(self, instrs: Sequence[Instr]) -> float:
        """Return the predicted bytes of code of a program of these instructions."""
        facts = [self.facts(i) for i in instrs]
        shapes: dict[Family, set[Identity]] = {}
        for f in facts:
            shapes.setdefault(f.family, set()).add(f.literal)
        literal = literal_families(shapes, self.opt)
        texts = dict(self._text(i, f, f.family in literal) for i, f in zip(instrs, facts, strict=True))
        called = sum(self.costs.functions.get(n, 0) for n in {n for f in facts for n in f.callees})
        fixed, per_layer = self.costs.base
        return _INLINED * (sum(texts.values()) + called + fixed + per_layer * len(instrs))

    def _text(self, instr: Instr, facts: Facts, literal: bool) -> tuple[str, float]:
        key = facts.literal if literal else facts.shared
        if key not in self._texts:
            code = render_kernel(instr, "fn", None if literal else args_struct(instr, "args_t"))
            mode = "size" if self.opt == "size" else "literal" if literal else "shared"
            self._texts[key] = code, self.costs.text(instr, mode, count_lines(code))
        return self._texts[key]


def count_lines(code: str) -> int:
    """Return the lines of C that are not empty."""
    return sum(bool(line.strip()) for line in code.splitlines())


def _fit_code(layers: Sequence[Layer], orders: Order, pricing: Pricing, limit: int) -> Order:
    """Return the order in which code is saved where it costs the fewest cycles, until it is small enough."""
    if not pricing.costs.kernels or not layers:
        return orders
    chosen = {x.name: orders[x.name][0] for x in layers}
    instrs = [x.form(chosen[x.name]) for x in layers]
    price = pricing.cycles(instrs) * _KB_WORTH / KB if pricing.opt == "size" else 0.0
    if price == 0.0 and pricing.code(instrs) <= limit:
        return orders

    def priced(value: float) -> tuple[bool, dict[str, str]]:
        found = _cheapest(layers, orders, chosen, pricing, value)
        return pricing.code([x.form(found[x.name]) for x in layers]) <= limit, found

    low, step = price, max(pricing.cycles(instrs) * _KB_WORTH / 16 / KB, 1e-3)
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
    return {name: tuple(dict.fromkeys((best[name], *names))) for name, names in orders.items()}


def _fit_constants(layers: Sequence[Layer], orders: Order, pricing: Pricing) -> Order:
    """Return the order in which the constants are cut to what the weights need, as far as that costs little."""
    trusted = [replace(x, forms=tuple(f for f in x.forms if pricing.trusts(f))) for x in layers]
    known = [x for x in trusted if any(f.variant == orders[x.name][0] for f in x.forms)]

    def moves(choice: Choice) -> Sequence[Choice]:
        return [*single_moves(known, choice), *_moves(known, orders, choice, pricing)]

    def weigh(choice: Choice) -> Price:
        return _price(layers, choice, pricing, pricing.cycles)

    best = within_bound({name: names[0] for name, names in orders.items()}, bound_bytes(layers), moves, weigh)
    return {name: tuple(dict.fromkeys((best[name], *names))) for name, names in orders.items()}


def _force_constants(layers: Sequence[Layer], orders: Order, pricing: Pricing) -> Order:
    """Return the order in which the constants are no more than what the weights need, if any variants have so few."""
    chosen, bound = {name: names[0] for name, names in orders.items()}, bound_bytes(layers)
    if constants_bytes(layers, chosen) <= bound + SPARE_WORDS:
        return orders
    worth = _KB_WORTH if pricing.opt == "size" else _KB_WORTH_FORCED

    def weigh(choice: Choice) -> Price:
        return _price(layers, choice, pricing, lambda instrs: sum(map(pricing.guess, instrs)))

    best = forced_within_bound(chosen, bound, lambda choice: all_moves(layers, choice), weigh, worth)
    return {name: tuple(dict.fromkeys((best[name], *names))) for name, names in orders.items()}


def _price(
    layers: Sequence[Layer], choice: Choice, pricing: Pricing, cycles: Callable[[Sequence[Instr]], int]
) -> Price:  # fmt: skip
    instrs = [x.form(choice[x.name]) for x in layers]
    return Price(cycles(instrs), pricing.code(instrs), constants_bytes(layers, choice))


def _cheapest(
    layers: Sequence[Layer], orders: Order, start: Mapping[str, str], pricing: Pricing, price: float
) -> dict[str, str]:
    """Return the choice after the moves that lower cycles + price x code most, one after another."""
    chosen = dict(start)

    def cost(choice: Mapping[str, str]) -> float:
        instrs = [x.form(choice[x.name]) for x in layers]
        return pricing.cycles(instrs) + price * pricing.code(instrs)

    best = cost(chosen)
    for _ in range(_MAX_STEPS):
        moves = [(cost(move), n, move) for n, move in enumerate(_moves(layers, orders, chosen, pricing))]
        least = min(moves, key=lambda m: m[:2], default=(math.inf, 0, chosen))
        if least[0] >= best:
            break
        best, chosen = least[0], least[2]
    return chosen


def _moves(layers: Sequence[Layer], orders: Order, chosen: Mapping[str, str], pricing: Pricing) -> list[dict[str, str]]:
    """Return the choices in which one group of layers that share a function, a path or a variant has another one."""
    groups: dict[object, list[Layer]] = {}
    for layer in layers:
        if len(layer.forms) < 2:
            continue
        instr = layer.form(chosen[layer.name])
        facts = pricing.facts(instr)
        keys = (
            facts.shared,
            (facts.family, "family"),
            (instr.kernel, instr.variant, "variant"),
            (instr.kernel, "kernel"),
        )
        for key in keys:
            groups.setdefault(key, []).append(layer)
    found: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for members in groups.values():
        forms = {x.name: {f.variant for f in x.forms} & set(orders[x.name]) for x in members}
        for variant in sorted(set().union(*forms.values())):
            move = {x.name: variant for x in members if variant in forms[x.name] and chosen[x.name] != variant}
            if move:
                found[tuple(sorted(move.items()))] = {**chosen, **move}
    return list(found.values())
