"""The zones of `--guard`: bytes before and after every tensor in the arena that hold a pattern while it is alive."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.codegen.places import Places
from glowc.program.ir import Program
from glowc.program.lifetimes import root_lifetimes, strip_markers


@dataclass(frozen=True, slots=True)
class Zone:
    """Where the pattern lies, in bytes from the start of the arena, and the layers first <= n <= last of the tensor."""

    before: int
    behind: int
    first: int
    last: int


def guard_zones(program: Program, places: Places, guard_bytes: int) -> tuple[Zone, ...]:
    """Return the zones of all tensors, in the order of their addresses; none without a guard."""
    if not guard_bytes:
        return ()
    plain = strip_markers(program)
    zones = []
    for root, (begin, end) in root_lifetimes(plain).items():
        if root in places.offsets and plain.buffers[root].size_bytes:
            at = places.offsets[root]
            zones.append(Zone(at - guard_bytes, at + plain.buffers[root].size_bytes, begin, end - 1))
    return tuple(sorted(zones, key=lambda z: (z.before, z.first)))
