"""A list scheduler: straight runs of instructions in an order that waits little on a core, found at once.

Of the instructions whose operands are there, the one that begins first is next, of several the one on which most
cycles depend; but none that is far ahead of the first one left, and none that leaves no register for the others. A try
is a number: the distance, and how the cycles are changed at random. boards/_schedules/<core>.json has the best tries of
runs by their group; of others a few are made.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

from glowc.asm.allocate import free_places
from glowc.asm.cores import SingleIssue, latency
from glowc.asm.insn import CORE, VECTOR, Insn, Register
from glowc.asm.order import Orders, dependences, ordered_run

_WAYS = tuple(itertools.product((6, 11, 18, 32), (0, 1)))
"""Instructions past the first one left, and registers that are left to that one."""
_NOISE = (2.0, 4.0, 8.0)  # cycles
_FEW = range(len(_WAYS))
"""Tries without noise."""

_BETWEEN = Insn("mov_imm", (Register(CORE, -1),), (), (0,))
"""What a run is repeated with at least: a branch, or the load of addresses."""


def scheduled(run: Sequence[Insn], orders: Orders, kept: Sequence[Register] = ()) -> tuple[Insn, ...]:
    """Return a run in an order for a Cortex-M55: the one that was found for it, or that of its best try.

    `kept`: places that have values all the time.
    """
    if run[0].group in orders.runs:
        return tuple(ordered_run(run, orders))
    known = orders.tries.get(run[0].group)
    return tried(run, _FEW if known is None else (known,), kept)[1]


def tried(run: Sequence[Insn], tries: Iterable[int], kept: Sequence[Register] = ()) -> tuple[int, tuple[Insn, ...]]:
    """Return the best of some tries, and its order; -1 is the order that the run has."""
    before = dependences(run)
    heights, found, room = _heights(run, before), {-1: tuple(run)}, len(free_places(run, VECTOR, kept))
    for number in (number for number in tries if number >= 0):
        if (order := _order(run, before, _changed(heights, number), room, *_WAYS[number % len(_WAYS)])) is not None:
            found[number] = tuple(run[at] for at in order)
    best = min(found, key=lambda number: (cycles(found[number]), number))
    return best, found[best]


def _changed(heights: Sequence[int], number: int) -> Sequence[float]:
    seed = number // len(_WAYS)
    noise = random.Random(seed)
    return [height + (noise.random() * _NOISE[seed % len(_NOISE)] if seed else 0) for height in heights]


def cycles(insns: Sequence[Insn]) -> int:
    """Return the cycles of a run that is repeated, with an instruction between."""
    core, times = SingleIssue(), list[int]()
    for _ in range(2):
        for insn in (*insns, _BETWEEN):
            core.issue(insn)
        times.append(core.time)
    return times[1] - times[0]


def _heights(run: Sequence[Insn], before: Sequence[set[int]]) -> list[int]:
    """Return how many cycles go by from the begin of each instruction to the end of all that need it."""
    heights = [latency(insn) for insn in run]
    for at in reversed(range(len(run))):
        for needed in before[at]:
            heights[needed] = max(heights[needed], heights[at] + latency(run[needed]))
    return heights


def _order(
    run: Sequence[Insn], before: Sequence[set[int]], heights: Sequence[float], room: int, ahead: int, spare: int
) -> list[int] | None:
    """Return an order with no instruction so far ahead of the first one left, None where registers run out.

    There is `room` for so many values; so much of it is left to the first one.
    """
    core, order, left = SingleIssue(), list[int](), list(range(len(run)))
    uses = Counter(r for insn in run for r in insn.reads if _is_counted(r))
    alive, done = set[Register](), set[int]()
    while left:
        fits = []
        for number in left:
            if number > left[0] + ahead:
                break
            insn = run[number]
            if before[number] <= done:
                over = sum(uses[r] == insn.reads.count(r) for r in alive)
                new = sum(_is_counted(r) and r not in alive for r in insn.writes)
                if len(alive) - over + new <= room - (number != left[0] and new > over) * spare:
                    fits.append((core.begin(insn), -heights[number], number))
        if not fits:
            return None
        number = min(fits)[2]
        insn = run[number]
        core.issue(insn)
        for r in insn.reads:
            if _is_counted(r):
                uses[r] -= 1
        alive = {r for r in (*alive, *insn.writes) if _is_counted(r) and uses[r] > 0}
        left.remove(number)
        order.append(number)
        done.add(number)
    return order


def _is_counted(register: Register) -> bool:
    return register.virtual and register.bank == VECTOR
