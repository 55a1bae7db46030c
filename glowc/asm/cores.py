"""How cores issue instructions: what begins together, and when a result can be used.

Cortex-M7: two at a time, in order. Cortex-M55: one at a time; a vector takes its unit for two cycles. Latencies and
pairs are those of LLVM 19's models, read off llvm-mca for pairs and chains of instructions; silicon may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from glowc.asm.insn import Insn, Register
from glowc.asm.isa import ISA, Kind

_FIRST_OF_TWO = (Kind.PARALLEL, Kind.SATURATE, Kind.SELECT, Kind.PACK)
_ALONE = (Kind.LOAD_MANY, Kind.STORE_MOVING, Kind.MOVE_PAIR)
_SIMD, _SHIFTER = frozenset({"simd"}), frozenset({"shifter"})
_UNITS: Mapping[Kind, frozenset[str]] = {
    Kind.MULTIPLY: frozenset({"multiplier"}), Kind.BRANCH: frozenset({"branch"}),
    **dict.fromkeys((Kind.FLOAT, Kind.MOVE_PAIR), frozenset({"float"})),
    **dict.fromkeys((Kind.STORE, Kind.STORE_MOVING), frozenset({"store"})),
    **dict.fromkeys((Kind.SHIFTED, Kind.SHIFTED_BY), _SHIFTER), **dict.fromkeys((Kind.PARALLEL, Kind.SELECT), _SIMD),
    **dict.fromkeys((Kind.SATURATE, Kind.PACK), _SHIFTER | _SIMD),
}  # fmt: skip
_LATENCY: Mapping[Kind, int] = dict.fromkeys(Kind, 1) | {
    Kind.SATURATE: 2, Kind.MULTIPLY: 2, Kind.STORE: 2, Kind.STORE_MOVING: 2, Kind.BRANCH: 2,
    Kind.MOVE: 3, Kind.MOVE_PAIR: 3, Kind.FLOAT: 3,
}  # fmt: skip


@dataclass(slots=True)
class DualIssue:
    """A Cortex-M7 on its way through instructions; `time`: the last one began, `ends`: the last result is there."""

    time: int = 0
    begun: int = 0
    ends: int = 0
    units: frozenset[str] = frozenset()
    ready: dict[Register, int] = field(default_factory=dict)

    def copy(self) -> DualIssue:
        """Return one that goes on by itself."""
        return DualIssue(self.time, self.begun, self.ends, self.units, dict(self.ready))

    def issue(self, insn: Insn) -> int:
        """Begin the next instruction; return the cycle."""
        row = ISA[insn.op]
        kind, latency = row.kind, _LATENCY[row.kind]
        alone, units = kind in _ALONE, _UNITS.get(kind, frozenset())
        begin = max([self.time, self.ends - latency, *(self._ready(r, k, insn) for k, r in enumerate(insn.reads))])
        taken = self.begun >= 2 or bool(units & self.units) or (self.begun > 0 and (alone or kind in _FIRST_OF_TWO))
        if begin == self.time and taken:
            begin += 1
        if begin > self.time:
            self.time, self.begun, self.units = begin, 0, frozenset()
        words = len(insn.writes) - (insn.op != "ldrd") if kind is Kind.LOAD_MANY else 0
        self.time += max(0, (words + 1) // 2 - 1)
        self.begun = 2 if alone else self.begun + 1
        self.units |= units
        self.ends = max(self.ends, self.time + latency)
        for r in insn.writes:
            self.ready[r] = self.time + latency
        return begin

    def _ready(self, register: Register, number: int, insn: Insn) -> int:
        row = ISA[insn.op]
        return self.ready.get(register, 0) + (number in row.early) - (number in row.late)


_VECTOR_UNITS: Mapping[Kind, Kind] = {
    Kind.VECTOR_LOAD: Kind.VECTOR_LOAD, Kind.VECTOR_STORE: Kind.VECTOR_LOAD,
    Kind.VECTOR_MULTIPLY: Kind.VECTOR_MULTIPLY, Kind.VECTOR: Kind.VECTOR, Kind.VECTOR_NARROW: Kind.VECTOR,
}  # fmt: skip
_VECTOR_LATENCY: Mapping[Kind, int] = {Kind.VECTOR_MULTIPLY: 2, Kind.VECTOR_NARROW: 3}


@dataclass(slots=True)
class SingleIssue:
    """A Cortex-M55 on its way through instructions; `time`: the last one began, `ends`: the last result is there."""

    time: int = -1
    ends: int = 0
    free: dict[Kind, int] = field(default_factory=dict)
    ready: dict[Register, int] = field(default_factory=dict)

    def issue(self, insn: Insn) -> int:
        """Begin the next instruction; return the cycle."""
        row = ISA[insn.op]
        unit = _VECTOR_UNITS.get(row.kind, row.kind)
        self.time += row.text.count("\n")  # VPST
        self.time = max(self.time + 1, self.free.get(unit, 0), *(self.ready.get(r, 0) for r in insn.reads))
        if row.kind in _VECTOR_UNITS:
            self.free[unit] = self.time + 2
        for r in insn.writes:
            self.ready[r] = self.time + _VECTOR_LATENCY.get(row.kind, 1)
        self.ends = max([self.ends, *(self.ready[r] for r in insn.writes)])
        return self.time


CORES: Mapping[str, Callable[[], DualIssue | SingleIssue]] = {"cortex-m7": DualIssue, "cortex-m55": SingleIssue}
