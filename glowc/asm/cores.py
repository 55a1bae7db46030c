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
    Kind.VECTOR_SHIFT: Kind.VECTOR, Kind.VECTOR_FILL: Kind.VECTOR_MULTIPLY,
}  # fmt: skip
_VECTOR_LATENCY: Mapping[Kind, int] = {
    Kind.LOAD: 2, Kind.LOAD_MANY: 2, Kind.VECTOR_MULTIPLY: 2, Kind.VECTOR_SHIFT: 2, Kind.VECTOR_FILL: 2,
    Kind.VECTOR_NARROW: 3,
}  # fmt: skip
_ADDRESS = 4  # cycles by which a vector of places is needed sooner


@dataclass(slots=True)
class SingleIssue:
    """A Cortex-M55 on its way through instructions; `time`: the last one began, `ends`: the last result is there."""

    time: int = -1
    ends: int = 0
    free: dict[Kind, int] = field(default_factory=dict)
    ready: dict[Register, int] = field(default_factory=dict)

    def begin(self, insn: Insn) -> int:
        """Return when an instruction would begin."""
        row, unit = ISA[insn.op], _VECTOR_UNITS.get(ISA[insn.op].kind)
        before = row.text.count("\n")  # instructions: VPST, the first one of two
        free = 0 if unit is None else self.free.get(unit, 0) + before * (row.kind is Kind.VECTOR_FILL)
        ready = (self.ready.get(r, 0) + _ADDRESS * (k in row.early) for k, r in enumerate(insn.reads))
        return max(self.time + 1 + before, free, self.ends - latency(insn), *ready)

    def issue(self, insn: Insn) -> int:
        """Begin the next instruction; return the cycle."""
        kind = ISA[insn.op].kind
        self.time = self.begin(insn)
        if kind in _VECTOR_UNITS:
            self.free[_VECTOR_UNITS[kind]] = self.time + 2 - (kind is Kind.VECTOR_FILL)
        for r in insn.writes:
            self.ready[r] = self.time + latency(insn)
        self.ends = max([self.ends, *(self.ready[r] for r in insn.writes)])
        return self.time


def latency(insn: Insn) -> int:
    """Return after how many cycles a Cortex-M55 can use what an instruction writes."""
    return _VECTOR_LATENCY.get(ISA[insn.op].kind, 1)


CORES: Mapping[str, Callable[[], DualIssue | SingleIssue]] = {"cortex-m7": DualIssue, "cortex-m55": SingleIssue}
