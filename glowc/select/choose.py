"""Which kernel variant each layer gets: the costs of the CPU, the wish for speed or size, and measured choices.

The candidates of every layer (candidates.py) are ordered, the wanted one first, by `select`:

speed     fewest predicted cycles, also by variants that spend RAM for it (`speed_only`, or more than is modest). A
          layer keeps its variant of `balanced` where reports would not say that another one takes fewer
balanced  the same, as long as scratch does not make the arena grow by more than 15 % or 8 KB, and the code stays below
          24 KB (CPUs with Advanced SIMD: 64 KB, 96 KB); else code is saved where it costs the fewest cycles. Constants
          over their bound give way too (glowc/select/budgets.py)
size      a kilobyte of code must save 3 % of the cycles, and the code should stay below 12 KB
tiny RAM  (`Selection.limited`) variants with little scratch first: used when the arena would not fit

A variant that was never measured keeps its place in the order of `rank`. Where `glowc tune` measured all variants of a
layer itself, what it measured replaces the predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from glowc.board import Cpu
from glowc.graph.graph import Graph
from glowc.kernels.base import UNFIT, KernelVariant, Prepared, prepare, prepared_instr, row_waste, sparing
from glowc.kernels.choice import variant_of
from glowc.lower.lowering import Choose, Finish, Prepare, by_rank, lower_graph
from glowc.program.ir import Instr, Program, scratch_bytes
from glowc.program.kernel import Arrays
from glowc.select.alike import Parts, alike_of, any_other
from glowc.select.budgets import Choice, constants_bytes, shrunk
from glowc.select.candidates import Candidates, Layer, Order, Tuned
from glowc.select.cost import Cost, Costs, load_costs
from glowc.select.order import ARENA_BYTES, CODE_LIMITS, KB, cheaper, lean, select
from glowc.select.pricing import Pricing, cost_of, likely_modes, modes_of

_LARGE_LIMIT, _LARGE_GROWTH = 96 * KB, 64 * KB  # balanced, for CPUs that run from caches and megabytes of memory
CODE_OF_ANY = 128 * KB  # no model's code takes more
_NO_LIMIT = 1 << 62


def _spared(form: Instr, limit: int) -> Instr:
    """Return a form that takes at most so many bytes of scratch, or as few as it can."""
    return sparing(form, variant_of(form), limit)


def _spared_plan(found: Prepared, instr: Instr, variant: KernelVariant, limit: int) -> Prepared:
    """Return what a variant made of an instruction with such a plan."""
    if found == UNFIT or variant.spends is None:
        return found
    form = prepared_instr(replace(instr, variant=variant.name), found)
    return replace(found, plan=sparing(form, variant, limit).plan)


def chooser(order: Order) -> Choose:
    """Return the choice for a lowering: of the variants that may be had, the first in the order."""

    def choose(instr: Instr, variants: Sequence[KernelVariant], finish: Finish) -> KernelVariant:
        by_name = {v.name: v for v in variants}
        wanted = next((variant for variant in order.get(instr.name, ()) if variant in by_name), None)
        return by_rank(instr, variants, finish) if wanted is None else by_name[wanted]

    return choose


@dataclass(frozen=True, slots=True)
class Selection:
    """The variants chosen for a graph on a CPU."""

    graph: Graph
    cpu: Cpu
    opt: str
    layers: tuple[Layer, ...]
    costs: Costs
    order: Order
    tuned: Tuned
    scratch_limits: Mapping[str, int] = field(default_factory=dict)  # by layer, where there are any
    preparing: Prepare = prepare

    @property
    def chosen(self) -> Choice:
        """The variant of each layer that streams no rows."""
        return {name: names[0] for name, names in self.order.items()}

    def lower(self, streaming: Callable[[str], bool]) -> Program:
        """Return the program with the chosen variants; those named by `streaming` stream rows."""
        whole = chooser(self.order)
        forms = {x.name: {f.variant: f for f in x.forms} for x in self.layers}

        def choose(instr: Instr, variants: Sequence[KernelVariant], finish: Finish) -> KernelVariant:
            if not streaming(instr.name) or instr.macs == 0:
                return whole(instr, variants, finish)
            variants = [v for v in variants if v.name in forms[instr.name]]
            rows = [_spared(forms[instr.name][v.name], 0) for v in variants]
            least = max(self.scratch_limits.get(instr.name, _NO_LIMIT), min(map(scratch_bytes, rows)))
            known = [self._trusted(form) for form in rows]
            cycles = [(cost if cost and None not in known else self.costs.stated(form)).cycles
                      for form, cost in zip(rows, known, strict=True)]  # fmt: skip
            keys = [
                (scratch_bytes(form) > least, n * row_waste(v, instr), -v.rank)
                for form, n, v in zip(rows, cycles, variants, strict=True)
            ]
            return variants[keys.index(min(keys))]

        def preparing(variant: KernelVariant, constants: Arrays, instr: Instr) -> Prepared:
            found = self.preparing(variant, constants, instr)
            return _spared_plan(found, instr, variant, 0) if streaming(instr.name) else found

        return lower_graph(self.graph, self.cpu, streaming, choose, preparing)

    def predict(self, instr: Instr) -> int | None:
        """Return the predicted instructions of a call, None where too little was measured."""
        cost = self._trusted(instr)
        return None if cost is None else cost.insns

    def _trusted(self, instr: Instr) -> Cost | None:
        mode = "size" if self.opt == "size" else "shared"
        fit = self.costs.fit(instr, mode)
        return cost_of(self.costs if fit is not None and fit.trusted else Costs(), self.tuned, instr, mode)

    def scratch_sizes(self) -> list[int]:
        """Return the bytes of scratch that a limit may be set to, ascending; the largest limits nothing."""
        return sorted({scratch_bytes(g) for x in self.layers for f in x.forms for g in (f, _spared(f, 0))})

    def limited(self, limit: int) -> Selection:
        """Return the selection in which layers take no more than `limit` bytes of scratch where they can."""
        return self.limited_each({x.name: limit for x in self.layers})

    def limited_each(self, limits: Mapping[str, int]) -> Selection:
        """Return the selection in which a layer takes no more than its limit of scratch where it can."""
        layers = tuple(
            replace(x, forms=tuple(_spared(f, limits.get(x.name, _NO_LIMIT)) for f in x.forms)) for x in self.layers
        )

        def preparing(variant: KernelVariant, constants: Arrays, instr: Instr) -> Prepared:
            found = self.preparing(variant, constants, instr)
            return _spared_plan(found, instr, variant, limits.get(instr.name, _NO_LIMIT))

        order = lean(layers, self.order, limits)
        return replace(self, layers=layers, order=order, scratch_limits=limits, preparing=preparing)

    def ordered(self, order: Order) -> Selection:
        """Return the selection with another order; variants that a layer does not have are left out."""
        has = {x.name: [f.variant for f in x.forms] for x in self.layers}
        known = {name: tuple(v for v in dict.fromkeys((*order.get(name, ()), *forms)) if v in forms)
                 for name, forms in has.items()}  # fmt: skip
        return replace(self, order=known)

    def dividing(self, names: Collection[str]) -> Selection:
        """Return the selection in which these layers have variants that count units of work by themselves, if any."""
        order = dict(self.order)
        for layer in self.layers:
            own = [f.variant for f in layer.forms if variant_of(f).units(f) > 0]
            if layer.name in names and own:
                known = order.get(layer.name) or [f.variant for f in layer.forms]
                order[layer.name] = tuple(sorted(known, key=lambda v: v not in own))
        return self.ordered(order)

    def code_bytes(self, program: Program) -> int:
        """Return the predicted bytes of code of a program, the runtime's functions included."""
        return math.ceil(self._pricing().code([i for i in program.instrs if not i.is_marker]))

    def within(self, limit: int) -> Selection:
        """Return the selection with smaller kernels, those first that cost least, until the flash is at most `limit`.

        The flash are the constants and the predicted code. If nothing is that small, it is as small as was found.
        """
        pricing, chosen = self._pricing(), self.chosen
        if constants_bytes(self.layers, chosen) + CODE_OF_ANY <= limit:
            return self

        alike = alike_of(self.layers, pricing)
        weigh = partial(alike.price, guessed=True)

        def moves(parts: Parts) -> Sequence[Parts]:
            return [*alike.single_moves(parts, any_other), *alike.group_moves(parts)]

        least = {x.name: min(x.forms, key=partial(_constants_of, x)).variant for x in self.layers}
        tried = [shrunk(alike.parts(start), limit, moves, weigh) for start in (chosen, least)]
        best = alike.choice(min(tried, key=lambda c: (max(weigh(c).flash - limit, 0), weigh(c).cycles)))
        return replace(self, order={name: tuple(dict.fromkeys((best[name], *i))) for name, i in self.order.items()})

    def _pricing(self) -> Pricing:
        fastest = {x.name: x.form(self.order[x.name][0]) for x in self.layers}
        return Pricing(self.costs, self.tuned, self.opt, likely_modes(self.layers, self.opt), fastest)

    def estimates(self, program: Program) -> list[Cost]:
        """Return what each call of a program is predicted to take."""
        return [self._taken(instr, mode) for instr, mode in modes_of(program, self.opt)]

    def _taken(self, instr: Instr, mode: str) -> Cost:
        """Return what a call is predicted to take, where nothing was measured as its variant states."""
        return cost_of(self.costs, self.tuned, instr, mode) or self.costs.stated(instr)

    def no_slower_than(self, order: Order) -> Selection:
        """Return the selection in which a layer has the first variant of an order where its own is not faster."""
        mode_of = likely_modes(self.layers, self.opt)
        return self.ordered(
            cheaper(self.layers, self.order, order, lambda form: self._taken(form, mode_of(form)).cycles)
        )


def select_variants(
    candidates: Candidates,
    opt: str,
    measured: Callable[[Layer], Mapping[str, Cost]] | None = None,
    spare: Mapping[str, int] | None = None,
) -> Selection:
    """Return the selection for a graph; `measured` tells what a layer takes by variant, if known.

    `spare` are the bytes of the arena that a plan leaves free beside layers, by name.
    """
    cpu = candidates.cpu
    layers, costs = candidates.layers(spare, roomy=opt == "speed"), load_costs(cpu)
    tuned: dict[str, Mapping[str, Cost]] = {}
    for layer in layers:
        taken = measured(layer) if measured is not None else {}
        if {f.variant for f in layer.forms} <= taken.keys():
            tuned[layer.name] = taken
    growth = _LARGE_GROWTH if "neon" in cpu.features else ARENA_BYTES

    def order(opt: str) -> Order:
        return select(layers, costs, _aim(cpu, opt), tuned, _code_limit(cpu, opt), growth)

    own = order(opt)
    selection = Selection(candidates.graph, cpu, opt, layers, costs, own, tuned, preparing=candidates.prepare)
    selection = selection.ordered(own)
    return selection.no_slower_than(order("balanced")) if opt == "speed" else selection


def _aim(cpu: Cpu, opt: str) -> str:
    """Return what `opt` aims at on a CPU: neither RAM nor code is scarce on one with wide registers."""
    return "speed" if opt == "balanced" and {"wide", "sve2"} & cpu.features else opt


def _code_limit(cpu: Cpu, opt: str) -> int:
    """Return the bytes of code that `opt` aims at on a CPU, 0 for no limit."""
    return _LARGE_LIMIT if opt == "balanced" and "neon" in cpu.features else CODE_LIMITS.get(opt, 0)


def _constants_of(layer: Layer, form: Instr) -> int:
    return sum(layer.constants.get(form.variant, {}).values())
