"""What templates print of a bundle, `m`: of one model, or of several that are one bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glowc.codegen.blob import Blob, c_bytes, model_bytes
from glowc.codegen.export import LINKED
from glowc.codegen.kernels import ArgsStruct
from glowc.codegen.names import in_comment
from glowc.codegen.places import ArenaPart, ArenaTexts, Places, Zone
from glowc.codegen.segments import FeedView, PieceView, PrintedLayer, SlicesView
from glowc.codegen.view import ConstView, Guard, StateView, TensorView
from glowc.paths import full_version

COLLECTED = "samples.collected"
"""The state that says how many samples wait for a run: int32; a run leaves 0."""


@dataclass(frozen=True, slots=True)
class PrintedTensor:
    """An input or output as the templates know it."""

    name: str
    ident: str
    macro: str
    ctype: str
    shape: tuple[int, ...]
    elements: int
    size_bytes: int
    offset_bytes: int
    scale: float | None
    zero_point: int | None
    fn: str
    title: str
    meaning: str
    layout_text: str
    region: str
    base: str
    own: str


def printed_tensor(t: TensorView, prefix: str, places: Places) -> PrintedTensor:
    """Return an input or output as the templates know it."""
    shape = " x ".join(map(str, t.type.shape)) or "scalar"
    meaning = "as in the model"
    if t.scale is not None and t.zero_point is not None:
        sign = "-" if t.zero_point >= 0 else "+"
        meaning = f"real = {t.scale:.9g} * (q {sign} {abs(t.zero_point)})"
    title = in_comment(f'"{t.name}": {t.ctype} {shape}, {meaning}')
    return PrintedTensor(
        name=t.name, ident=t.ident, macro=t.macro, ctype=t.ctype, shape=t.type.shape,
        elements=t.type.elements, size_bytes=t.type.size_bytes, offset_bytes=t.offset_bytes,
        scale=t.scale, zero_point=t.zero_point, fn=f"{prefix}_{t.ident}", title=title,
        meaning=meaning, layout_text=t.layout or "as exported",
        region=t.region, base=places.base(t.region), own=places.own(prefix, t.region),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedBundle:
    """What both have; `tested` names the models with test vectors."""

    name: str
    prefix: str
    cpu: str
    cpu_flags: str
    features: frozenset[str]
    opt: str
    options: str
    model_hash: str
    loop_bytes: int | None
    code_section: str | None
    guard: Guard
    structs: tuple[ArgsStruct, ...]
    functions: Sequence[str]
    consts: Sequence[ConstView]
    states: Sequence[StateView]
    needs_math: bool
    arena_bytes: int
    arena_align: int
    line_bytes: int
    share_arena: bool
    kernel_headers: Sequence[str]
    runtime_files: Sequence[str]
    extern_sources: Sequence[str]
    tested: Sequence[str]
    parts: tuple[ArenaPart, ...] = ()
    blob: Blob | None = None
    weights: str = "c"  # one of export.WEIGHTS

    @property
    def P(self) -> str:  # noqa: N802
        """What names of macros begin with."""
        return self.prefix.upper()

    @property
    def version(self) -> str:
        """The version of glowc."""
        return full_version()

    @property
    def weights_bytes(self) -> int:
        """The bytes of all constants."""
        return sum(c.size_bytes for c in self.consts)

    @property
    def consts_need_math(self) -> bool:
        """Whether a constant is printed by a macro of math.h."""
        return any(c.needs_math for c in self.consts)

    @property
    def linked(self) -> bool:
        """Whether the file of the constants becomes a part of the image."""
        return self.weights in LINKED

    @property
    def weights_source(self) -> str:
        """The file that is compiled or linked for the constants."""
        return f"{self.name}_weights{LINKED.get(self.weights, '.c')}"

    @property
    def model_bytes(self) -> str:
        """What the file of the constants says of the model, as elements of a C array."""
        return c_bytes(model_bytes(self.model_hash))

    @property
    def model_names(self) -> Sequence[str]:
        """The names of the models."""
        return (self.name,)

    @property
    def own_headers(self) -> list[str]:
        """The headers besides those of the runtime."""
        names = dict.fromkeys((self.name, *self.model_names))
        return [*(f"{n}.h" for n in names), f"{self.name}_weights.h", *(f"{n}_golden.h" for n in self.tested)]

    @property
    def golden_sources(self) -> list[str]:
        """The files with test vectors."""
        return [f"{name}_golden.c" for name in self.tested]

    @property
    def extern_paths(self) -> str:
        """The sources of plugins as a list in its model.mk continues."""
        return "".join(f" $({self.P}_DIR){file}" for file in self.extern_sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedModel(PrintedBundle):
    """One model; `arena` has texts by which arenas are handed on, `lacking` the check of a split one.

    `in_arena` are the inputs and outputs that lie whole in the arena, `unused` the pointers that the inference function
    ignores, `bases` the starts of regions in a function that takes the caller's arena.
    """

    entry: str
    macs: int
    inputs: Sequence[PrintedTensor]
    outputs: Sequence[PrintedTensor]
    in_arena: Sequence[PrintedTensor]
    layers: Sequence[PrintedLayer]
    pieces: Sequence[PieceView]
    arena: ArenaTexts
    lacking: str
    bases: Mapping[str, str]
    shared_arena: str
    unused: Sequence[str]
    caller_io: bool
    macros: Sequence[tuple[str, int, str]]
    texts: Mapping[str, Sequence[str]]
    zones: Sequence[Zone]
    guard_bytes: int
    slices: SlicesView | None = None
    package: Mapping[str, str] = field(default_factory=dict)

    @property
    def steps(self) -> SlicesView | None:
        """The steps of an inference, None where it is one."""
        return self.slices if self.slices is not None and self.slices.progress_offset_bytes is not None else None

    @property
    def golden(self) -> bool:
        """Whether it has test vectors."""
        return bool(self.tested)

    @property
    def feed(self) -> FeedView | None:
        """How the first segment takes its rows, where it is fed by the caller."""
        return next((p.feed for p in self.pieces if p.feed is not None), None)

    @property
    def feed_index(self) -> int:
        """The number of layers of that segment."""
        return next((len(p.layers) for p in self.pieces if p.feed is not None), 0)

    @property
    def collected(self) -> StateView | None:
        """The state with the number of samples that wait, where the caller pushes samples."""
        return next((s for s in self.states if s.name == COLLECTED), None)

    @property
    def zero_copy(self) -> bool:
        """Whether inputs and outputs lie in the arena."""
        return not self.caller_io and self.feed is None

    @property
    def passed_through(self) -> list[tuple[PrintedTensor, PrintedTensor]]:
        """Outputs of the caller that are inputs, too, with these."""
        own = {t.name: t for t in self.inputs if self.caller_io}
        return [(t, own[t.name]) for t in self.outputs if t.name in own]

    @property
    def state_bytes(self) -> int:
        """The bytes of all states."""
        return sum(s.size_bytes for s in self.states)

    @property
    def _io(self) -> list[str]:
        return [*(f"const {t.ctype} *{t.ident}" for t in self.inputs), *(f"{t.ctype} *{t.ident}" for t in self.outputs)]

    @property
    def _idents(self) -> list[str]:
        return [t.ident for t in (*self.inputs, *self.outputs)]

    @property
    def io_args(self) -> str:
        """Inputs and outputs as parameters."""
        return ", ".join(self._io)

    @property
    def io_names(self) -> str:
        """The same as arguments."""
        return ", ".join(self._idents)

    @property
    def null_checks(self) -> str:
        """The condition that one of them is NULL."""
        return " || ".join(f"{ident} == NULL" for ident in self._idents)

    @property
    def input_args(self) -> str:
        """Inputs as parameters."""
        return ", ".join(self._io[: len(self.inputs)])

    @property
    def input_names(self) -> str:
        """The same as arguments."""
        return ", ".join(self._idents[: len(self.inputs)])

    @property
    def infer_params(self) -> str:
        """More parameters of the inference function."""
        return "".join(f", {param}" for param in self._io) if self.caller_io else ""

    @property
    def infer_args(self) -> str:
        """The same as arguments."""
        return "".join(f", {ident}" for ident in self._idents) if self.caller_io else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedGroup(PrintedBundle):
    """Several models."""

    models: Sequence[PrintedModel]
    share_weights: bool

    @property
    def model_names(self) -> Sequence[str]:
        """The names of the models."""
        return [m.name for m in self.models]
