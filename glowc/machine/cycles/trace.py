"""What the plugin glow_trace records of a run, read into segments: one from each call of glow_mark to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
    """Accesses to an area of memory; `misses` are reads whose line the data cache did not have.

    Of these the second cache had `ahead`, and did not have `far` and `far_ahead`: ahead are lines that follow others.
    """

    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    written_bytes: int = 0
    misses: int = 0
    ahead: int = 0
    far: int = 0
    far_ahead: int = 0


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


def joined(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks, those that always run on into the next one as one with it.

    QEMU ends a block where a page ends and where it becomes too long; where that is says nothing about the core.
    """
    seen = Counter(block.begin for block in blocks)
    at = {block.begin: block for block in blocks if seen[block.begin] == 1}
    for block in sorted(at.values(), key=lambda block: -block.begin):
        after = at.get(block.end)
        if after is None or block.taken or after.runs < block.runs:
            continue
        at[block.begin], rest = _join(block, after)
        if rest.runs:
            at[after.begin] = rest
        else:
            del at[after.begin]
    return (*at.values(), *(block for block in blocks if seen[block.begin] > 1))


def _join(block: Block, after: Block) -> tuple[Block, Block]:
    """Return a block with the one that it runs on into, and what else that one ran."""
    taken = min(block.runs, after.taken)
    whole = replace(
        block, end=after.end, taken=taken, misses=block.misses + after.misses,
        sequential=block.sequential + after.sequential,
    )  # fmt: skip
    rest = replace(after, runs=after.runs - block.runs, taken=after.taken - taken, misses=0, sequential=0)
    return whole, rest
