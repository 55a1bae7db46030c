"""The candidates of every layer: what a lowering could make of it with each variant that the CPU has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glowc.board import Cpu
from glowc.graph.graph import Graph
from glowc.kernels.base import KernelVariant, Prepared, block_waste, prepare, spending, stated_insns
from glowc.kernels.choice import variant_of
from glowc.lower.lowering import Finish, lower_graph
from glowc.program.ir import BufferKind, Instr, scratch_bytes
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


def is_modest(variant: KernelVariant, form: Instr, spare: int) -> bool:
    """Say whether a form's scratch is modest, or no more than the `spare` bytes beside it."""
    return variant.modest_bytes is None or scratch_bytes(form) <= max(variant.modest_bytes(form), spare)


class Candidates:
    """Every instruction of a lowered graph with all variants that the CPU has and that accept it.

    They are prepared once, however often the graph is lowered, and layers are chosen among.
    """

    def __init__(self, graph: Graph, cpu: Cpu) -> None:
        """Lower the graph with each of the variants."""
        self.graph, self.cpu = graph, cpu
        self._prepared: dict[tuple[str, str], tuple[Instr, Prepared]] = {}
        self._forms: dict[str, dict[KernelVariant, Instr]] = {}
        program = lower_graph(graph, cpu, choose=self._record, preparing=self.prepare)
        live = zip(program.instrs, live_bytes(program), strict=True)
        self._beside = {instr.name: size - scratch_bytes(instr) for instr, size in live}
        self._narrow = program.narrow
        self._written = {name for name, b in program.buffers.items() if b.kind is not BufferKind.CONST}
        self._constants = {
            name: {v.name: self._constants_of(form) for v, form in forms.items()} for name, forms in self._forms.items()
        }

    def prepare(self, variant: KernelVariant, constants: Arrays, instr: Instr) -> Prepared:
        """Return what `variant` makes of an instruction of the graph; it is remembered."""
        key = instr.name, variant.name
        known, prepared = self._prepared.get(key, (None, Prepared()))
        if known != instr:
            prepared = prepare(variant, constants, instr)
            self._prepared[key] = instr, prepared
        return prepared

    def layers(self, spare: Mapping[str, int] | None = None, *, roomy: bool = False) -> tuple[Layer, ...]:
        """Return the instructions with the variants that may be chosen.

        `spare` are the bytes by name that a plan leaves free beside an instruction: for variants with much scratch,
        which all may have where the arena is `roomy`.
        """
        modest, withheld = dict[str, dict[KernelVariant, Instr]](), dict[str, int]()
        for name, forms in self._forms.items():
            room = (spare or {}).get(name, 0)
            modest[name] = {v: form for v, form in forms.items() if roomy or is_modest(v, form, room)}
            withheld[name] = min((scratch_bytes(form) for v, form in forms.items() if v not in modest[name]), default=0)
        least = {name: min(map(scratch_bytes, forms.values())) for name, forms in modest.items()}
        peak = max((self._beside[name] + size for name, size in least.items()), default=0)
        layers = []
        for name, forms in modest.items():
            beside = self._beside[name]
            wide = {v: spending(form, v, peak - beside) for v, form in forms.items()}
            tried, constants = tuple(worth_trying(wide).values()), self._constants[name]
            layers.append(Layer(name, tried, beside, {f.variant: constants[f.variant] for f in tried}, withheld[name]))
        return tuple(layers)

    def _record(self, instr: Instr, variants: Sequence[KernelVariant], finish: Finish) -> KernelVariant:
        tried = {v: finish(v) for v in sorted(variants, key=lambda v: -v.rank)}
        self._forms[instr.name] = tried
        return next(iter(tried))

    def _constants_of(self, form: Instr) -> Constants:
        """Return the bytes of constants; weights of few bits that are unpacked beside the layer are half of them."""
        few = form.name in self._narrow and not variant_of(form).unpacks
        return {
            o.buffer: o.type.size_bytes // (2 if few and o.role == "weights" else 1)
            for o in form.operands
            if o.role != "scratch" and o.buffer not in self._written
        }
