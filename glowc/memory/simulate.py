"""A memory plan executed with tagged bytes: every read must find the bytes that its producer wrote.

It shares no code with the planner, the checker or the derivation of overlaps. What a program touches comes as
steps; every byte that is written gets a tag of its own, and every byte that is read names the tag it expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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


def simulate(actions: Iterable[Action], offsets_bytes: Mapping[str, int], arena_bytes: int) -> list[str]:
    """Return what goes wrong when the actions run with blocks at these offsets, at most one line per action."""
    arena = np.full(arena_bytes, -1, np.int64)
    problems = []
    for action in actions:
        problem = _outside(action, offsets_bytes, arena_bytes) or _wrong_read(action, offsets_bytes, arena)
        problem = problem or _overwritten_inputs(action, offsets_bytes)
        for touch in action.writes:
            at = offsets_bytes.get(touch.block, 0) + touch.begin
            if touch.block in offsets_bytes and at >= 0 and at + touch.size <= arena_bytes:
                arena[at : at + touch.size] = np.arange(touch.tag, touch.tag + touch.size)
        if problem:
            problems.append(f"{action.name}: {problem}")
    return problems


def _outside(action: Action, offsets: Mapping[str, int], arena_bytes: int) -> str:
    for touch in (*action.reads, *action.writes):
        if touch.block not in offsets:
            return f"{touch.block!r} has no place"
        at = offsets[touch.block] + touch.begin
        if at < 0 or at + touch.size > arena_bytes:
            return f"{touch.block!r} [{at}, {at + touch.size}) lies outside of the arena of {arena_bytes} bytes"
    return ""


def _wrong_read(action: Action, offsets: Mapping[str, int], arena: np.ndarray) -> str:
    for touch in action.reads:
        at = offsets[touch.block] + touch.begin
        found = arena[at : at + touch.size]
        wrong = found != np.arange(touch.tag, touch.tag + touch.size)
        if wrong.any():
            return (
                f"{wrong.sum()} of {touch.size} bytes of {touch.block!r} read at {at} are not what was written, "
                f"the first at {at + int(wrong.argmax())}"
            )
    return ""


def _overwritten_inputs(action: Action, offsets: Mapping[str, int]) -> str:
    for written in action.writes:
        for block, begin, size in action.inputs:
            w, r = offsets[written.block] + written.begin, offsets[block] + begin
            if w + written.size <= r or r + size <= w:
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
