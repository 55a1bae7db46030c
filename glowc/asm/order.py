"""Orders of the instructions of a listing: what must come after what, and orders that were found for a core.

boards/_schedules/<core>.json has, by the group of its instructions, the order of a straight run of them, or when those
of a step of a loop begin. An order that breaks a dependence is refused: what the file says can only be slow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import cast

from glowc.asm.allocate import PLACES
from glowc.asm.insn import CORE, Either, Insn, Listing, Loop, Register, read_first
from glowc.asm.isa import ISA, Kind
from glowc.errors import InternalError
from glowc.paths import data_dir

_STORES = (Kind.STORE, Kind.STORE_MOVING, Kind.VECTOR_STORE)


@dataclass(frozen=True, slots=True)
class Steps:
    """When instructions of a step begin: places, of which a cycle has `width`; the next step begins `every` so many."""

    width: int
    every: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """Of a core, by group: the numbers of the instructions of a run in their order, when those of steps begin, and
    which try of the list scheduler is the best one.
    """

    runs: Mapping[str, tuple[int, ...]]
    steps: Mapping[str, Steps]
    tries: Mapping[str, int] = field(default_factory=dict)


@cache
def orders_of(core: str) -> Orders:
    """Read the orders found for a core."""
    data = json.loads((data_dir("boards") / "_schedules" / f"{core}.json").read_text(encoding="utf-8"))
    steps = {group: Steps(row["width"], row["every"], tuple(row["places"])) for group, row in data["steps"].items()}
    return Orders({group: tuple(order) for group, order in data["runs"].items()}, steps, data["tries"])


def ordered(listing: Listing, orders: Orders) -> Listing:
    """Return a listing in the orders that were found for its runs and steps; the others stay as they are."""
    found: list[Insn | Loop | Either] = []
    run: list[Insn] = []
    for item in (*listing, None):
        if isinstance(item, Insn):
            run.append(item)
            continue
        found += ordered_run(run, orders)
        run = []
        if isinstance(item, Loop):
            steps = orders.steps.get(item.step[0].group) if item.step else None
            found.append(interleaved(item, steps) if steps else replace(item, body=ordered(item.body, orders)))
        elif item is not None:
            found.append(item)
    return tuple(found)


def ordered_run(run: Sequence[Insn], orders: Orders) -> Sequence[Insn]:
    """Return a run of instructions in the order that was found for it. InternalError for one that it cannot have."""
    order = orders.runs.get(run[0].group) if run else None
    if order is None:
        return run
    if not is_order(run, order):
        raise InternalError(f"no order of these instructions in boards/_schedules: {run[0].group}")
    return [run[number] for number in order]


def dependences(insns: Sequence[Insn]) -> list[set[int]]:
    """Return, for each instruction, the numbers of those that it must come after; a branch comes after all."""
    edges: list[set[int]] = [set() for _ in insns]
    writer: dict[object, int] = {}
    readers: dict[object, list[int]] = {}
    for at, insn in enumerate(insns):
        stored = {insn.memory} if ISA[insn.op].kind in _STORES else set()
        for thing in (*insn.reads, *({insn.memory} - stored - {""})):
            if thing in writer:
                edges[at].add(writer[thing])
            readers.setdefault(thing, []).append(at)
        for thing in (*insn.writes, *stored):
            edges[at] |= {*readers.pop(thing, []), *([writer[thing]] if thing in writer else [])} - {at}
            writer[thing] = at
        if ISA[insn.op].kind is Kind.BRANCH:
            edges[at] |= set(range(at))
    return edges


def is_order(insns: Sequence[Insn], order: Sequence[int]) -> bool:
    """True for an order of all instructions that keeps what each needs before it."""
    place = {number: at for at, number in enumerate(order)}
    whole = sorted(order) == list(range(len(insns)))
    return whole and all(place[b] < place[a] for a, before in enumerate(dependences(insns)) for b in before)


def interleaved(loop: Loop, steps: Steps) -> Loop:
    """Return a loop whose steps begin one after the other at regular times, each before the one before it has ended.

    What follows the steps goes to the first place that is left over and leaves a register for everything. Raises
    InternalError for times that the instructions cannot have.
    """
    body = cast(tuple[Insn, ...], loop.body)
    length, last = len(loop.step), len(body) - 1
    before = dependences(body)
    at = {n: n // length * steps.every + steps.places[n % length] for n in range(length * loop.steps)}
    ends = max(at.values())
    for number in range(len(at), last):
        begin = 1 + max((at[b] for b in before[number]), default=-1)
        free = [p for p in range(begin, ends + 1) if p not in at.values() and p % steps.width == 0]
        later = range(number + 1, last + 1)
        fits = (p for p in free if pressure(body, [*_sorted(at | {number: p}), *later]) <= len(PLACES[CORE]))
        at[number] = next(fits, max(ends, *at.values()) + 1)
    order = [*_sorted(at), last]
    if not is_order(body, order):
        raise InternalError(f"no times of these instructions in boards/_schedules: {body[0].group}")
    return replace(loop, body=tuple(body[number] for number in order))


def _sorted(at: Mapping[int, int]) -> list[int]:
    return sorted(at, key=lambda number: at[number])


def pressure(
    insns: Sequence[Insn], order: Sequence[int], needed: frozenset[Register] = frozenset(), bank: str = CORE
) -> int:
    """Return how many registers of a bank have a value at a time in a loop, or a run after which some are needed."""
    run = [insns[number] for number in order]
    always = {r for r in read_first(insns) if _is_of(r, bank)} if not needed else set(needed)
    last = {r: at for at, insn in enumerate(run) for r in (*insn.reads, *insn.writes) if _is_of(r, bank)}
    alive = always | {r for r in read_first(run) if _is_of(r, bank)}
    most = len(alive)
    for at, insn in enumerate(run):
        alive -= {r for r in insn.reads if r not in always and last.get(r) == at}
        alive |= {r for r in insn.writes if _is_of(r, bank)}
        most = max(most, len(alive))
        alive -= {r for r in insn.writes if r not in always and last.get(r) == at}
    return most


def _is_of(register: Register, bank: str) -> bool:
    return register.virtual and register.bank == bank
