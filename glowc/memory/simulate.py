"""A memory plan executed with tagged bytes: every read must find the bytes that its producer wrote.

It shares no code with the planner, the checker or the derivation of overlaps. What a program touches comes as
steps; every byte that is written gets a tag of its own, and every byte that is read names the tag it expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from types import MappingProxyType

import numpy as np


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes [begin, begin + size) of a block; byte i of them carries the tag `tag` + i."""

    block: str
    begin: int
    size: int
    tag: int


@dataclass(frozen=True, slots=True)
class Action:
    """One step: all its reads and writes, in an order that nobody knows, unless `elements` says how many there are.

    Then element i of every input is read before element i is written, and that before element i + 1 is read.
    `in_place`: an output may lie exactly over an input of the same size. `inputs` are the (block, begin, size) of the
    operands whose bytes `reads` lists by tag.
    """

    name: str
    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]
    inputs: tuple[tuple[str, int, int], ...] = ()
    elements: int = 0
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class _Machine:
    """The memory: where each block lies, and the tag of the first byte of every unit of every region.

    Nothing begins or ends within a unit, so its first byte speaks for all.
    """

    offsets: Mapping[str, int]
    region_of: Mapping[str, str]
    sizes: Mapping[str, int]
    unit: int
    tags: Mapping[str, np.ndarray]

    def region_bytes(self, block: str) -> int:
        return self.sizes[self.region_of.get(block, "")]

    def found(self, touch: Touch) -> np.ndarray:
        at = (self.offsets[touch.block] + touch.begin) // self.unit
        return self.tags[self.region_of.get(touch.block, "")][at : at + touch.size // self.unit]

    def wanted(self, touch: Touch) -> np.ndarray:
        return np.arange(touch.tag, touch.tag + touch.size, self.unit)


def simulate(
    actions: Iterable[Action],
    offsets_bytes: Mapping[str, int],
    arena_bytes: int | Mapping[str, int],
    region_of: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return what goes wrong when the actions run with blocks at these offsets, at most one line per action.

    An arena in several regions: `arena_bytes` by region, `region_of` every block, offsets from its region's start.
    """
    sizes = {"": arena_bytes} if isinstance(arena_bytes, int) else arena_bytes
    actions = list(actions)
    unit = _unit(actions, offsets_bytes)
    tags = {name: np.full(-(-size // unit), -1, np.int64) for name, size in sizes.items()}
    machine = _Machine(offsets_bytes, region_of, sizes, unit, tags)
    problems = []
    for action in actions:
        problem = _outside(action, machine)
        problem = problem or _wrong_read(action, machine) or _overwritten_inputs(action, machine)
        for touch in action.writes:
            if not _unplaced(touch, machine):
                machine.found(touch)[:] = machine.wanted(touch)
        if problem:
            problems.append(f"{action.name}: {problem}")
    return problems


def _unit(actions: Sequence[Action], offsets: Mapping[str, int]) -> int:
    """Return the bytes that all offsets and sizes are multiples of."""
    touches = (t for a in actions for t in (*a.reads, *a.writes))
    return gcd(*offsets.values(), *(n for t in touches for n in (t.begin, t.size))) or 1


def _outside(action: Action, machine: _Machine) -> str:
    return next((p for touch in (*action.reads, *action.writes) if (p := _unplaced(touch, machine))), "")


def _unplaced(touch: Touch, machine: _Machine) -> str:
    if touch.block not in machine.offsets or machine.region_of.get(touch.block, "") not in machine.sizes:
        return f"{touch.block!r} has no place"
    at, room = machine.offsets[touch.block] + touch.begin, machine.region_bytes(touch.block)
    if at < 0 or at + touch.size > room:
        return f"{touch.block!r} [{at}, {at + touch.size}) lies outside of the arena of {room} bytes"
    return ""


def _wrong_read(action: Action, machine: _Machine) -> str:
    for touch in action.reads:
        wrong = machine.found(touch) != machine.wanted(touch)
        if wrong.any():
            at, unit = machine.offsets[touch.block] + touch.begin, machine.unit
            return (
                f"{wrong.sum() * unit} of {touch.size} bytes of {touch.block!r} read at {at} are not what was written, "
                f"the first at {at + int(wrong.argmax()) * unit}"
            )
    return ""


def _overwritten_inputs(action: Action, machine: _Machine) -> str:
    offsets, region_of = machine.offsets, machine.region_of
    for written in action.writes:
        for block, begin, size in action.inputs:
            w, r = offsets[written.block] + written.begin, offsets[block] + begin
            if w + written.size <= r or r + size <= w or region_of.get(written.block) != region_of.get(block):
                continue
            if action.in_place and (w, written.size) == (r, size):
                continue
            if not action.elements or _too_early(w, written.size, r, size, action.elements):
                return f"{written.block!r} at {w} overwrites {block!r} at {r} before it is read"
    return ""


def _too_early(write: int, write_size: int, read: int, read_size: int, elements: int) -> bool:
    """True when writing an element hits one that is read later."""
    out, source = write_size // elements, read_size // elements
    i = np.arange(elements - 1)
    return bool(np.any((write + i * out < read + read_size) & (write + (i + 1) * out > read + (i + 1) * source)))
