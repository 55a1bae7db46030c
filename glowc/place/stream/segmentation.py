"""Which instructions to stream: cuts of the program into segments and single instructions, by dynamic programming.

A cut is a pair of the peak (estimated: the most live bytes of a piece, with what lives through it) and the price in
extra instructions. `frontier` returns the cuts that no other beats in both, the cheapest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from glowc.kernels.base import row_waste
from glowc.kernels.choice import guessed_insns, variant_of
from glowc.place.rewrite.row_overlap import operand_distances
from glowc.place.stream.rings import Streamed, Streamer
from glowc.program.ir import BufferKind, Instr, Program

# Executed instructions that a step costs besides its kernel's work: table, counter, dispatch, call, prologue.
INSNS_PER_STEP = 60
# Segments worked out for one model: more would take seconds, and the promising ones come first.
_MOST_SEGMENTS = 400


@dataclass(frozen=True, slots=True)
class Cut:
    """Segments in order; whatever lies between them runs instruction by instruction."""

    peak_bytes: int
    extra_insns: int
    segments: tuple[Streamed, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    begin: int
    end: int
    peak_bytes: int
    extra_insns: int
    segment: Streamed | None = field(default=None)


def frontier(streamer: Streamer, insns: Callable[[Instr], int | None] = lambda _: None) -> list[Cut]:
    """Return the cuts with ever lower peaks and ever higher prices; empty when a fed input cannot be streamed.

    `insns` predicts the instructions of a call, None where nothing is known of the kernel.
    """
    pieces = _pieces(streamer, insns)
    cuts: list[Cut] = []
    limit = 1 << 60
    while True:
        cut = _cheapest(streamer, pieces, limit)
        if cut is None:
            break
        cuts.append(cut)
        limit = cut.peak_bytes
    return [c for i, c in enumerate(cuts) if all(c.extra_insns < d.extra_insns for d in cuts[i + 1 :])]


def _cheapest(streamer: Streamer, pieces: Sequence[Sequence[_Piece]], limit: int) -> Cut | None:
    """Return the cut with every piece below `limit` bytes that costs least, of these the one with the lowest peak."""
    count = len(streamer.program.instrs)
    best: list[tuple[int, int, tuple[Streamed, ...]] | None] = [None] * (count + 1)
    best[0] = (0, 0, ())
    for begin in range(count):
        here = best[begin]
        if here is None:
            continue
        for piece in pieces[begin]:
            if piece.peak_bytes >= limit:
                continue
            segments = (*here[2], piece.segment) if piece.segment is not None else here[2]
            found = (here[0] + piece.extra_insns, max(here[1], piece.peak_bytes), segments)
            there = best[piece.end]
            if there is None or found[:2] < there[:2]:
                best[piece.end] = found
    end = best[count]
    return Cut(end[1], end[0], end[2]) if end is not None else None


def _pieces(streamer: Streamer, insns: Callable[[Instr], int | None]) -> list[list[_Piece]]:
    """Return, for each instruction, the pieces that may begin there."""
    count = len(streamer.program.instrs)
    pieces: list[list[_Piece]] = [[] for _ in range(count)]
    for i in range(count):
        if i > streamer.last_reader:
            pieces[i].append(_Piece(i, i + 1, _single_peak(streamer, i), 0))
    left = _MOST_SEGMENTS
    for begin, end in _promising(streamer):
        if left and (begin > streamer.last_reader or (begin == 0 and end > streamer.last_reader)):
            segment = streamer.segment(begin, end)
            left -= 1
            if segment is not None:
                price = INSNS_PER_STEP * len(segment.steps) + _slower(streamer, begin, end, insns)
                pieces[begin].append(_Piece(begin, end, segment.peak_bytes, price, segment))
    return pieces


def _slower(streamer: Streamer, begin: int, end: int, insns: Callable[[Instr], int | None]) -> int:
    """Return what it costs that rows are computed one by one, by variants that can; less than 0 where it saves."""
    more = 0
    for instr in streamer.program.instrs[begin:end]:
        if instr.macs:
            more += round(_guess(instr, insns) * row_waste(variant_of(instr), instr))
            more -= _guess(streamer.whole.get(instr.name, instr), insns)
    return more


def _guess(instr: Instr, insns: Callable[[Instr], int | None]) -> int:
    found = insns(instr)
    return guessed_insns(instr) if found is None else found


def _promising(streamer: Streamer) -> list[tuple[int, int]]:
    """Return the ranges between places where few bytes are alive; a segment holds these tensors whole."""
    program = streamer.program
    count = len(program.instrs)
    live = [0] * (count + 1)
    for root, (first, last) in streamer.spans.items():
        for at in range(first + 1 if first or not _is_input(program, root) else 0, last):
            live[at] += program.buffers[root].size_bytes
    places = [
        i
        for i in range(count + 1)
        if i in (0, count)
        or (live[i] <= live[i - 1] and live[i] <= live[i + 1] and not live[i - 1] == live[i] == live[i + 1])
        or not (streamer.parts[i - 1] and streamer.parts[i])
    ]
    places = [i for i in places if i in (0, count) or streamer.parts[i - 1] or streamer.parts[i]]
    return [(begin, end) for begin in places for end in places if end - begin > 1 and all(streamer.parts[begin:end])]


def _is_input(program: Program, root: str) -> bool:
    return any(program.root(o.buffer)[0] == root for o in program.inputs)


def _single_peak(streamer: Streamer, index: int) -> int:
    """Return the bytes that one instruction needs when it runs as a whole, its output over its input if it may."""
    program, spans = streamer.program, streamer.spans
    alive = [r for r, (first, last) in spans.items() if first <= index < last and not program.is_callers(r)]
    total = sum(program.buffers[r].size_bytes for r in alive if program.buffers[r].kind is not BufferKind.SCRATCH)
    instr = program.instrs[index]
    operands = streamer.whole.get(instr.name, instr).operands
    total += sum(o.type.size_bytes for o in operands if o.role == "scratch")
    saved = 0
    for overlap in operand_distances(program, index, spans):
        source, out = program.buffers[overlap.source].size_bytes, program.buffers[overlap.out].size_bytes
        for distance in (overlap.low, overlap.high):
            together = max(distance + out, source) - min(distance, 0)
            saved = max(saved, source + out - together)
    return total - saved
