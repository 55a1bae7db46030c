"""The candidates of every layer: what a lowering could make of it with each variant that the CPU has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glowc.board import Cpu
from glowc.graph.graph import Graph
from glowc.kernels.base import KernelVariant, Prepared, block_waste, prepare, spending, stated_insns
from glowc.kernels.choice import variant_of
from glowc.lower.lowering import Finish, Prepare, lower_graph
from glowc.program.ir import BufferKind, Instr, Operand, scratch_bytes
from glowc.program.kernel import Arrays
from glowc.program.lifetimes import live_bytes
from glowc.select.cost import Cost

Constants = Mapping[str, int]
"""Bytes of constants by name; one that several layers read is stored once."""

Order = Mapping[str, tuple[str, ...]]
"""Variants by name of the instruction, the wanted one first."""

Tuned = Mapping[str, Mapping[str, Cost]]
"""What was measured, by name of the instruction and variant."""


@dataclass(frozen=True, slots=True)
class Layer:
    """An instruction as it would be with each variant, the highest rank first; `live_bytes` is the arena beside it.

    `constants` are those of each variant. `withheld` is the least scratch of a variant that the arena was said to have
    no room for, 0: of none.
    """

    name: str
    forms: tuple[Instr, ...]
    live_bytes: int = 0
    constants: Mapping[str, Constants] = field(default_factory=dict)
    withheld: int = 0

    def form(self, variant: str) -> Instr:
        """Return the instruction with that variant."""
        return next(f for f in self.forms if f.variant == variant)


def worth_trying(forms: Mapping[KernelVariant, Instr]) -> dict[KernelVariant, Instr]:
    """Return the forms without those of variants that state to take no less than one of lower rank states."""
    stated = {v: stated_insns(v, form) * block_waste(v, form) for v, form in forms.items() if v.stated is not None}

    def pays(variant: KernelVariant) -> bool:
        return all(stated[variant] < insns for other, insns in stated.items() if other.rank < variant.rank)

    return {v: form for v, form in forms.items() if v not in stated or pays(v)}


class Preparer:
    """Prepares every candidate once, however often a graph is lowered."""

    def __init__(self) -> None:
        self._done: dict[tuple[str, str], tuple[Instr, Prepared]] = {}

    def __call__(self, variant: KernelVariant, constants: Arrays, instr: Instr) -> Prepared:
        """Return what `variant` makes of an instruction of the graph."""
        key = instr.name, variant.name
        known, prepared = self._done.get(key, (None, Prepared()))
        if known != instr:
            prepared = prepare(variant, constants, instr)
            self._done[key] = instr, prepared
        return prepared


def is_modest(variant: KernelVariant, form: Instr, spare: int) -> bool:
    """Say whether a form's scratch is modest, or no more than the `spare` bytes beside it."""
    return variant.modest_bytes is None or scratch_bytes(form) <= max(variant.modest_bytes(form), spare)


def collect(
    graph: Graph, cpu: Cpu, preparing: Prepare = prepare, spare: Mapping[str, int] | None = None
) -> tuple[Layer, ...]:  # fmt: skip
    """Return every instruction of the lowered graph with all variants that the CPU has and that accept it.

    `spare` are the bytes by name that a plan leaves free beside an instruction: for variants with much scratch.
    """
    forms: dict[str, dict[KernelVariant, Instr]] = {}
    withheld: dict[str, int] = {}

    def record(instr: Instr, variants: Sequence[KernelVariant], finish: Finish) -> KernelVariant:
        tried = {v: finish(v) for v in sorted(variants, key=lambda v: -v.rank)}
        room = (spare or {}).get(instr.name, 0)
        left = [scratch_bytes(form) for v, form in tried.items() if not is_modest(v, form, room)]
        withheld[instr.name] = min(left, default=0)
        forms[instr.name] = {v: form for v, form in tried.items() if is_modest(v, form, room)}
        return next(iter(worth_trying(forms[instr.name])))

    program = lower_graph(graph, cpu, choose=record, preparing=preparing)
    live = live_bytes(program)
    written = {name for name, b in program.buffers.items() if b.kind is not BufferKind.CONST}

    def size(form: Instr, operand: Operand) -> int:
        """Return the bytes of a constant; weights of few bits that are unpacked beside the layer are half of them."""
        halved = operand.role == "weights" and form.name in program.narrow and not variant_of(form).unpacks
        return operand.type.size_bytes // (2 if halved else 1)

    def constants(form: Instr) -> Constants:
        return {o.buffer: size(form, o) for o in form.operands if o.role != "scratch" and o.buffer not in written}

    beside = [live[n] - scratch_bytes(i) for n, i in enumerate(program.instrs)]
    least = (min(map(scratch_bytes, forms[i.name].values())) for i in program.instrs)
    peak = max((a + b for a, b in zip(beside, least, strict=True)), default=0)
    layers = []
    for instr, other in zip(program.instrs, beside, strict=True):
        wide = {v: spending(form, v, peak - other) for v, form in forms[instr.name].items()}
        tried = tuple(worth_trying(wide).values())
        layers.append(Layer(instr.name, tried, other, {f.variant: constants(f) for f in tried}, withheld[instr.name]))
    return tuple(layers)
