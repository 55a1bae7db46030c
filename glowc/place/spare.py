"""What a plan leaves free beside each instruction: bytes of the arena that its scratch may have for nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from glowc.memory.types import MemoryPlan
from glowc.program.ir import Instr, Program
from glowc.program.lifetimes import root_lifetimes, strip_markers


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes of the arena that nothing lives in while an instruction runs, its own scratch not counted."""

    begin: int
    end: int

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.begin


def widest_gaps(program: Program, plan: MemoryPlan, align_bytes: int = 8) -> dict[str, Gap]:
    """Return the widest gap beside each instruction by name, from an aligned offset on.

    Instructions of streamed segments have none, and nothing has in an arena that is split into regions.
    """
    if plan.regions:
        return {}
    plain = strip_markers(program)
    spans = {root: span for root, span in root_lifetimes(plain).items() if root in plan.offsets_bytes}
    begins, live, streamed = defaultdict[int, list[str]](list), set[str](), plain.streamed
    for root, (begin, _) in spans.items():
        begins[begin].append(root)
    found = {}
    for index, instr in enumerate(plain.instrs):
        live = {root for root in live if index < spans[root][1]}.union(begins[index])
        if index not in streamed:
            beside = live - _scratch(plain, instr)
            taken = ((plan.offsets_bytes[r], plain.buffers[r].size_bytes) for r in beside)
            found[instr.name] = max(_gaps(taken, plan.arena_bytes, align_bytes), key=lambda gap: gap.size_bytes)
    return found


def _scratch(program: Program, instr: Instr) -> set[str]:
    return {program.root(o.buffer)[0] for o in instr.operands if o.role == "scratch"}


def _gaps(taken: Iterable[tuple[int, int]], arena_bytes: int, align_bytes: int) -> Iterator[Gap]:
    """Yield what (offset, size) leave free, an empty gap for none."""
    at = 0
    for offset, size in (*sorted(taken), (arena_bytes, 0)):
        yield Gap(at, max(at, offset))
        at = max(at, -(-(offset + size) // align_bytes) * align_bytes)
