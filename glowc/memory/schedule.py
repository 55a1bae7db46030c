"""The order of operators with the lowest peak of live bytes.

Exact where the number of reachable sets of executed tasks allows it, otherwise a beam search that is
never worse than the given order. An order that is already optimal comes back unchanged.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from glowc.memory.task import Task, TaskGraph

__all__ = ["Schedule", "Task", "schedule"]

# Steps that a beam may try in all: a narrow one before the exact search, a wide one after it.
_NARROW_STEPS, _WIDE_STEPS = 30_000, 300_000
_WIDEST_BEAM = 256
# Steps that the exact search may try for each set of executed tasks that it may keep.
_STEPS_PER_STATE = 8

# The tasks executed, last first: (earlier steps, task), or None at the start.
_Path = tuple["_Path", int] | None


@dataclass(frozen=True, slots=True)
class _State:
    """Everything that matters after the set `done` ran; `peak` is the lowest known way to get there.

    `ready_before` are the tasks that could run before the last one did: most states are never
    continued, so what became ready is found out only when it is needed.
    """

    peak: int
    live: int
    done: int
    ready_before: tuple[int, ...]
    path: _Path

    def ready(self, graph: TaskGraph) -> tuple[int, ...]:
        """The tasks that may run now, in the given order."""
        if self.path is None:
            return self.ready_before
        return graph.ready_after(self.ready_before, self.done, self.path[1])


@dataclass(frozen=True, slots=True)
class Schedule:
    """Indices into the given tasks; `exact` when no order has a lower peak."""

    order: tuple[int, ...]
    peak_bytes: int
    exact: bool


def schedule(
    tasks: Sequence[Task],
    sizes: Mapping[str, int],
    *,
    alias_of: Mapping[str, str],
    in_place: Iterable[tuple[str, str]],
    graph_inputs: Collection[str],
    graph_outputs: Collection[str],
    state_cap: int = 30_000,
) -> Schedule:
    """Order `tasks`, given in one legal order, for the lowest peak in bytes.

    `sizes` holds every value that occupies arena bytes; an input without a size is a constant.
    `alias_of[view] = root`: the storage of the root lives as long as any of its aliases.
    `in_place` holds (output, input) pairs: when the input dies there, the output takes its bytes.
    Graph inputs are alive from the start, graph outputs to the end. `state_cap` bounds the sets of
    executed tasks that the exact search may keep. InternalError when the given order is illegal.
    """
    graph = TaskGraph(tasks, sizes, alias_of, in_place, graph_inputs, graph_outputs)
    order = tuple(range(graph.count))
    peak = graph.peak(order)
    if peak == graph.least_bytes or _only_one_order(graph):
        return Schedule(order, peak, exact=True)
    order, peak = _better_beam(graph, order, peak, _NARROW_STEPS)
    if peak == graph.least_bytes:
        return Schedule(order, peak, exact=True)
    found, complete = _below(graph, peak, state_cap)
    if found is not None:
        return Schedule(found, graph.peak(found), exact=True)
    if not complete:
        order, peak = _better_beam(graph, order, peak, _WIDE_STEPS)
    return Schedule(order, peak, exact=complete or peak == graph.least_bytes)


def _only_one_order(graph: TaskGraph) -> bool:
    return all(graph.needs[t] >> (t - 1) & 1 for t in range(1, graph.count))


def _better_beam(graph: TaskGraph, order: tuple[int, ...], peak: int, steps: int) -> tuple[tuple[int, ...], int]:
    """The beam's order when it is really better than the given one: equal peaks keep the given order."""
    found = _beam(graph, steps // max(1, graph.count))
    found_peak = graph.peak(found)
    return (found, found_peak) if found_peak < peak else (order, peak)


def _start(graph: TaskGraph) -> _State:
    ready = tuple(t for t in range(graph.count) if not graph.needs[t])
    return _State(graph.least_bytes, graph.start_live, 0, ready, None)


def _next_states(graph: TaskGraph, state: _State) -> list[_State]:
    """The states worth trying one step later.

    A step that fits below the peak already reached and leaves no more bytes alive than before is
    taken at once: executed later it would free no less and cost no less, so any completion stays
    as good with it in front. This contracts chains and keeps the sets few.
    """
    states = []
    ready = state.ready(graph)
    for task in ready:
        during, left = graph.step(state.done, state.live, task)
        done = state.done | 1 << task
        states.append(_State(max(state.peak, during), left, done, ready, (state.path, task)))
        if during <= state.peak and left <= state.live:
            return states[-1:]
    return states


def _beam(graph: TaskGraph, steps_per_level: int) -> tuple[int, ...]:
    """List scheduling that keeps the best few sets of executed tasks after every step."""
    states = [_start(graph)]
    for _ in range(graph.count):
        best: dict[int, _State] = {}
        for state in states:
            for following in _next_states(graph, state):
                known = best.get(following.done)
                if known is None or following.peak < known.peak:
                    best[following.done] = following
        width = steps_per_level // max(1, len(states[0].ready(graph)))
        width = min(_WIDEST_BEAM, max(1, width))
        states = heapq.nsmallest(width, best.values(), key=lambda state: (state.peak, state.live))
    return _unwind(states[0].path)


def _below(graph: TaskGraph, limit: int, state_cap: int) -> tuple[tuple[int, ...] | None, bool]:
    """The best order with a peak below `limit` bytes; (None, True) when there is none.

    Best-first search over sets of executed tasks, the lowest peak first and then the longest prefix:
    the live bytes depend on the set alone (Ahn et al., "Ordering Chaos: Memory-Aware Scheduling of
    Irregularly Wired Neural Networks for Edge Devices", MLSys 2020), so the first complete set taken
    from the queue is optimal. (None, False) when more than `state_cap` sets would be kept, or many
    more than that are looked at, as in graphs that are very wide.
    """
    heap = [(graph.least_bytes, 0, 0, _start(graph))]
    reached = {0: graph.least_bytes}
    serial = count(1)
    steps_left = _STEPS_PER_STATE * state_cap
    while heap:
        peak, minus_steps, _, state = heapq.heappop(heap)
        if -minus_steps == graph.count:
            return _unwind(state.path), True
        if reached[state.done] < peak:
            continue
        states = _next_states(graph, state)
        steps_left -= len(states)
        for following in states:
            if following.peak >= limit or reached.get(following.done, limit) <= following.peak:
                continue
            if len(reached) >= state_cap or steps_left < 0:
                return None, False
            reached[following.done] = following.peak
            # The serial number keeps equals in the order of discovery.
            heapq.heappush(heap, (following.peak, minus_steps - 1, next(serial), following))
    return None, True


def _unwind(path: _Path) -> tuple[int, ...]:
    order = []
    while path is not None:
        path, task = path
        order.append(task)
    return tuple(reversed(order))
