"""Blocks and overlaps to an indexed packing problem: who conflicts with whom, and the lower bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from glowc.errors import InternalError
from glowc.memory.types import Block, Overlap


@dataclass(frozen=True, slots=True)
class Problem:
    """Blocks by index. `plain[i]` are the blocks that may share no byte with block i; `special[i]` holds
    (j, low, high) with the forbidden open interval of offset[i] - offset[j]; `cliques` are the maximal
    sets of blocks alive together, in time order; `fixed` are offsets given from outside.
    """

    sizes: Sequence[int]
    aligns: Sequence[int]
    begins: Sequence[int]
    ends: Sequence[int]
    plain: Sequence[Sequence[int]]
    special: Sequence[Sequence[tuple[int, int, int]]]
    cliques: Sequence[Sequence[int]]
    fixed: Mapping[int, int]


def build(blocks: Sequence[Block], overlaps: Iterable[Overlap], fixed: Mapping[str, int]) -> Problem:
    """The packing problem of these blocks; InternalError when the description itself is wrong."""
    index = {block.name: i for i, block in enumerate(blocks)}
    declared = list(overlaps)
    problems = [
        *_wrong_blocks(blocks, index),
        *_wrong_overlaps(declared, index),
        *_wrong_fixed(blocks, fixed),
    ]
    if problems:
        raise InternalError("the blocks handed to the memory planner are wrong", details=problems)
    pairs = {(index[o.a], index[o.b]): (o.low, o.high) for o in declared}
    plain, special = _neighbours(blocks, pairs)
    problem = Problem(
        sizes=[block.size_bytes for block in blocks],
        aligns=[block.align_bytes for block in blocks],
        begins=[block.lifetime.begin for block in blocks],
        ends=[block.lifetime.end for block in blocks],
        plain=plain,
        special=special,
        cliques=_cliques(blocks),
        fixed={index[name]: offset for name, offset in fixed.items()},
    )
    _reject_clashing_fixed(problem, blocks)
    return problem


def _wrong_blocks(blocks: Sequence[Block], index: Mapping[str, int]) -> Iterable[str]:
    for i, block in enumerate(blocks):
        if index[block.name] != i:
            yield f"block {block.name!r} is given twice"
        if block.lifetime.begin >= block.lifetime.end:
            yield f"block {block.name!r} has an empty lifetime: {block.lifetime}"
        if block.size_bytes < 0 or block.align_bytes < 1:
            yield f"block {block.name!r} has size {block.size_bytes} and alignment {block.align_bytes}"


def _wrong_overlaps(overlaps: Iterable[Overlap], index: Mapping[str, int]) -> Iterable[str]:
    seen: set[frozenset[str]] = set()
    for overlap in overlaps:
        pair = frozenset((overlap.a, overlap.b))
        if len(pair) == 1 or pair in seen or not pair <= index.keys():
            yield f"overlap of {overlap.a!r} and {overlap.b!r}: repeated, one block, or an unknown block"
        seen.add(pair)


def _wrong_fixed(blocks: Sequence[Block], fixed: Mapping[str, int]) -> Iterable[str]:
    aligns = {block.name: block.align_bytes for block in blocks}
    for name, offset in fixed.items():
        if name not in aligns:
            yield f"fixed offset for the unknown block {name!r}"
        elif offset < 0 or offset % max(1, aligns[name]):
            yield f"fixed offset {offset} of {name!r} is negative or not a multiple of {aligns[name]}"


def _reject_clashing_fixed(problem: Problem, blocks: Sequence[Block]) -> None:
    offsets, sizes = problem.fixed, problem.sizes
    clashes = [
        f"{blocks[i].name!r} and {blocks[j].name!r}"
        for i in offsets
        for j, low, high in (*((j, -sizes[i], sizes[j]) for j in problem.plain[i]), *problem.special[i])
        if i < j and j in offsets and low < offsets[i] - offsets[j] < high
    ]
    if clashes:
        raise InternalError("fixed offsets overlap", details=clashes)


def _neighbours(
    blocks: Sequence[Block], pairs: Mapping[tuple[int, int], tuple[int, int]]
) -> tuple[list[list[int]], list[list[tuple[int, int, int]]]]:
    plain: list[list[int]] = [[] for _ in blocks]
    special: list[list[tuple[int, int, int]]] = [[] for _ in blocks]
    special_pairs = set(pairs) | {(b, a) for a, b in pairs}
    alive: list[int] = []
    for i in sorted(range(len(blocks)), key=lambda k: blocks[k].lifetime.begin):
        begin = blocks[i].lifetime.begin
        alive = [j for j in alive if blocks[j].lifetime.end > begin]
        # An empty block takes no byte from anybody: it conflicts only where an Overlap says so.
        others = alive if blocks[i].size_bytes else []
        plain[i] = [j for j in others if blocks[j].size_bytes and (i, j) not in special_pairs]
        for j in plain[i]:
            plain[j].append(i)
        alive.append(i)
    for (a, b), (low, high) in pairs.items():
        together = blocks[a].lifetime.begin < blocks[b].lifetime.end and (
            blocks[b].lifetime.begin < blocks[a].lifetime.end
        )
        if together and low < high:
            special[a].append((b, low, high))
            special[b].append((a, -high, -low))
    return plain, special


def live_sets(blocks: Sequence[Block]) -> Iterator[list[int]]:
    """The blocks alive at each instant at which one begins, in time order."""
    alive: list[int] = []
    in_time = sorted(range(len(blocks)), key=lambda k: blocks[k].lifetime.begin)
    for begin, born in groupby(in_time, key=lambda k: blocks[k].lifetime.begin):
        alive = [*(j for j in alive if blocks[j].lifetime.end > begin), *born]
        yield alive


def _cliques(blocks: Sequence[Block]) -> list[list[int]]:
    """The live sets that are not contained in the next one."""
    sets = list(live_sets(blocks))
    following = [blocks[alive[-1]].lifetime.begin for alive in sets[1:]]
    return [
        *(a for a, t in zip(sets, following, strict=False) if any(blocks[i].lifetime.end <= t for i in a)),
        *sets[-1:],
    ]


def lower_bound(blocks: Sequence[Block], overlaps: Iterable[Overlap]) -> int:
    """Bytes that no plan can go below; `MemoryPlan` gives the definition."""
    index = {block.name: i for i, block in enumerate(blocks)}
    declared = {(index[o.a], index[o.b]): (o.low, o.high) for o in overlaps}
    sizes = [block.size_bytes for block in blocks]
    best = max(sizes, default=0)
    for grid in sorted({block.align_bytes for block in blocks}):
        rounded = [-(-size // grid) * grid for size in sizes]
        shared = _shared_bytes(rounded, declared, grid)
        on_grid = [block.align_bytes % grid == 0 for block in blocks]
        for alive in live_sets(blocks):
            members = [i for i in alive if on_grid[i]]
            loss = max((rounded[i] - sizes[i] for i in members), default=0)
            best = max(best, sum(rounded[i] for i in members) - loss - _shared_within(members, shared))
    return best


def _shared_within(members: Sequence[int], shared: Mapping[int, Mapping[int, int]]) -> int:
    paired = [i for i in members if i in shared]
    return sum(shared[i].get(j, 0) for i, j in combinations(paired, 2))


def _shared_bytes(
    sizes: Sequence[int], declared: Mapping[tuple[int, int], tuple[int, int]], grid: int
) -> dict[int, dict[int, int]]:
    shared: dict[int, dict[int, int]] = {}
    for (a, b), (low, high) in declared.items():
        most = most_shared(sizes[a], sizes[b], low, high, grid)
        shared.setdefault(a, {})[b] = most
        shared.setdefault(b, {})[a] = most
    return shared


def most_shared(size_a: int, size_b: int, low: int, high: int, grid: int) -> int:
    """The most bytes two blocks can share when offset[a] - offset[b] is outside (low, high)."""
    if low >= high:
        return min(size_a, size_b)
    # Shared bytes over the distance d rise, stay at min(size_a, size_b) from d = nested_low to
    # nested_high, and fall: the best legal d is the one nearest to that plateau on either side.
    nested_low, nested_high = sorted((0, size_b - size_a))
    below = min(low // grid * grid, nested_low)
    above = max(-(-high // grid) * grid, nested_high)
    return max(0, *(min(d + size_a, size_b) - max(d, 0) for d in (below, above)))
