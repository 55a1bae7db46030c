"""Streamed segments as the templates print them: a table of steps, and the layers that they call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glowc.codegen.names import c_string
from glowc.codegen.places import Places, unused_pointers
from glowc.codegen.view import LayerView
from glowc.program.ir import Program, Segment


@dataclass(frozen=True, slots=True)
class FeedView:
    """The input that a segment takes row by row, and where its progress is kept between calls."""

    rows: int
    row_bytes: int
    ring: int
    offset_bytes: int
    progress_offset_bytes: int
    pointer: str
    progress_pointer: str
    progress_region: str


@dataclass(frozen=True, slots=True)
class PrintedLayer:
    """A layer as the templates know it."""

    index: int
    comment: str
    call: str
    args: tuple[str, str, str] | None
    c_name: str


@dataclass(frozen=True, slots=True)
class PieceView:
    """Layers that follow each other in the inference: one that runs as a whole, or those of a segment.

    `pointers` to arenas are arguments of the layers; `unused` are those that a segment ignores.
    """

    index: int
    layers: tuple[PrintedLayer, ...]
    streamed: bool
    steps_text: str = ""
    steps_ctype: str = ""
    step_count: int = 0
    first: int = 0
    last: int = 0
    feed: FeedView | None = None
    unused: tuple[str, ...] = ()
    pointers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SlicesView:
    """The parts of an inference as the templates print them: a table, `fields` of its lines, and who computes them.

    `begins`: a layer is computed in several parts. `progress_offset_bytes` is where the number of the part stands that
    comes next, None: there is one step. Several `cores` compute a stage, each with a share of the scratch where
    `by_share` says so.
    """

    fields: tuple[str, ...]
    lines: tuple[str, ...]
    part_count: int
    step_count: int
    progress_offset_bytes: int | None
    begins: bool
    ctype: str
    cores: int
    by_share: bool


def slices_view(program: Program, places: Places) -> SlicesView | None:
    """Return the parts of an inference, None where it is one."""
    slices = program.slices
    if slices is None:
        return None
    steps, cores = bool(slices.progress), slices.cores
    fields = ["layer", *(["more"] if steps else []), *(["parts"] if cores > 1 else []), "begin", "end"]
    lines = []
    for step in slices.steps:
        for stage in step:
            for part in stage:
                known = {
                    "layer": part.index, "more": int(stage is not step[-1]), "parts": len(stage), "begin": part.begin,
                    "end": part.end,
                }  # fmt: skip
                lines.append("{" + ", ".join(str(known[name]) for name in fields) + "},")
    largest = max(max(part.index, part.end) for part in slices.parts)
    ctype = "uint16_t" if largest < 1 << 16 else "uint32_t"
    shared = [instr for instr in program.instrs if instr.shares > 1]
    begins = bool(slices.walks) or any(instr.cut for instr in program.instrs)
    return SlicesView(
        tuple(fields), tuple(lines), len(lines), len(slices.steps), places.offsets[slices.progress] if steps else None,
        begins, ctype, cores, any(o.role == "scratch" for instr in shared for o in instr.operands),
    )  # fmt: skip


def piece_views(program: Program, layers: Sequence[LayerView], places: Places) -> tuple[PieceView, ...]:
    """Return all pieces in order; layers are numbered as in `layers`."""
    pieces: list[PieceView] = []
    at = 0
    for number, segment in enumerate(program.segments):
        pieces += map(_whole, layers[at : segment.begin])
        pieces.append(_segment(program, number, segment, layers, places))
        at = segment.end
    pieces += map(_whole, layers[at:])
    return tuple(pieces)


def _whole(layer: LayerView) -> PieceView:
    return PieceView(0, (printed_layer(layer),), False, pointers=layer.pointers)


def profile_order(program: Program, count: int) -> list[int] | None:
    """Return the layers in the order in which the profile hooks see them, None when each is seen once."""
    if program.slices is not None:
        return [part.index for part in program.slices.parts]
    if not program.segments:
        return None
    order: list[int] = []
    at = 0
    for segment in program.segments:
        order += range(at, segment.begin)
        order += [segment.begin + s for s in segment.steps if s < segment.end - segment.begin]
        at = segment.end
    return [*order, *range(at, count)]


def printed_layer(layer: LayerView) -> PrintedLayer:
    """Return a layer as the templates know it."""
    return PrintedLayer(layer.index, layer.comment, layer.call, layer.args, c_string(layer.name))


def _segment(program: Program, number: int, segment: Segment, layers: Sequence[LayerView], places: Places) -> PieceView:
    inner = tuple(printed_layer(layer) for layer in layers[segment.begin : segment.end])
    lines = [
        "  " + ", ".join(map(str, segment.steps[i : i + 32])) + ","
        for i in range(0, len(segment.steps), 32)
    ]  # fmt: skip
    feed = _feed(program, segment, places)
    named = {feed.pointer, feed.progress_pointer} if feed is not None else set()
    pointers = frozenset[str]().union(*(layer.pointers for layer in layers[segment.begin : segment.end]))
    return PieceView(
        number, inner, True, "\n".join(lines), "uint8_t" if len(inner) < 256 else "uint16_t", len(segment.steps),
        segment.begin, segment.end - 1, feed, tuple(unused_pointers(places, pointers | named)), pointers,
    )  # fmt: skip


def _feed(program: Program, segment: Segment, places: Places) -> FeedView | None:
    if segment.feed is None:
        return None
    rows = segment.steps.count(segment.end - segment.begin)
    root, at = program.root(segment.feed.role)
    return FeedView(
        rows, segment.feed.row_bytes, segment.feed.ring, places.offsets[root] + at, places.offsets[segment.progress],
        places.pointer(root), places.pointer(segment.progress), places.region(segment.progress),
    )  # fmt: skip
