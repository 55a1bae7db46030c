"""What the plugin glow_trace records of a run, read into segments: one from each call of glow_mark to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from glowc.errors import ToolError


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions from `begin` up to `end` that ran `runs` times in a row, and left `taken` times by a taken branch.

    Of the lines fetched `misses` were in no cache, `sequential` others neither, but follow the one that missed before.
    """

    begin: int
    end: int
    runs: int
    taken: int
    misses: int
    sequential: int


@dataclass(frozen=True, slots=True)
class AreaCounts:
    """Accesses to an area of memory; `misses` are reads whose line was in no cache."""

    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    written_bytes: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """What ran from one call of glow_mark to the next."""

    blocks: tuple[Block, ...]
    areas: tuple[AreaCounts, ...]
    unaligned: int


def read_trace(text: str) -> list[Segment]:
    """Return the segments of a trace, the first from reset on. Raises ToolError when a line is no part of a trace."""
    try:
        return list(_segments(text.splitlines()))
    except (ValueError, TypeError, IndexError) as error:
        raise ToolError(f"the trace of the run cannot be read: {error}") from error


def _segments(lines: Sequence[str]) -> Iterator[Segment]:
    blocks: list[Block] = []
    areas: list[AreaCounts] = []
    unaligned = 0
    for line in lines:
        kind, *words = line.split()
        numbers = [int(word) for word in words]
        if kind == "B":
            begin, size, *counts = numbers
            blocks.append(Block(begin, begin + size, *counts))
        elif kind == "A":
            areas.append(AreaCounts(*numbers[1:]))
        elif kind == "U":
            unaligned = numbers[0]
        else:
            yield Segment(tuple(blocks), tuple(areas), unaligned)
            blocks, areas, unaligned = [], [], 0
