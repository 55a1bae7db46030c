"""What instructions cost on Cortex-M0+, M3, M4 and M33 without wait states: one table for each core.

A cost is in cycles beyond the one that every instruction takes. Sources, by table:

- M0+: Arm DDI 0484C, Cortex-M0+ Technical Reference Manual, table 3-1 (section 3.3, page 3-4).
- M3: Arm DDI 0337I, Cortex-M3 Technical Reference Manual, table 3-1 (section 3.3.1, page 3-4), load pairs in 3.3.2.
- M4: Arm DDI 0439B, Cortex-M4 Technical Reference Manual, table 3-1 (section 3.3.1, page 3-4), load pairs in 3.3.3,
  floating point in table 7-1 (section 7.2.3, page 7-4).
- M33: Arm gives no table. Load to use and branches as measured on silicon; the rest as on the M4 with a memory
  interface that takes a load in one cycle.

`P`, the refill of the pipeline at a taken branch, is 1 to 3 cycles on M3 and M4: 2 is taken. A division takes 2 to 12
cycles there: 6 are taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum

from glowc.machine.listing import CONDITIONS, Insn


class Kind(Enum):
    """What the manuals' tables tell apart."""

    PLAIN = "plain"
    LOAD = "load"
    LOAD_MANY = "load many"
    STORE = "store"
    STORE_MANY = "store many"
    MULTIPLY = "multiply"
    MULTIPLY_ADD = "multiply-accumulate"
    MULTIPLY_LONG = "long multiply"
    DIVIDE = "divide"
    FLOAT = "float"
    FLOAT_ADD = "float multiply-accumulate"
    FLOAT_DIVIDE = "float divide and root"
    FLOAT_PAIR = "two float registers moved"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Cycles:
    """Cycles by cause: one for each instruction, and what it waits for besides."""

    issue: float = 0
    load: float = 0
    multiply: float = 0
    fpu: float = 0
    branch: float = 0

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def times(self, count: float) -> Cycles:
        """Return `count` times these cycles."""
        return Cycles(*(count * getattr(self, f.name) for f in fields(self)))

    @property
    def total(self) -> float:
        """All cycles."""
        return self.issue + self.load + self.multiply + self.fpu + self.branch


@dataclass(frozen=True, slots=True)
class Core:
    """The table of one core. `extra` are cycles beyond one, `each` those for each register of several."""

    extra: dict[Kind, float]
    each: dict[Kind, float] = field(default_factory=dict)
    taken: float = 2  # a branch that is taken
    load_after_load: bool = False  # a load whose address does not wait for the load before it takes one cycle
    load_use: float = 0  # an instruction that uses what the load before it brings
    float_use: float = 0  # a float operation that uses the result of the one before it
    unaligned: float = 1  # an access across words


_ARMV7M = {
    Kind.LOAD: 1.0, Kind.MULTIPLY: 0.0, Kind.DIVIDE: 5.0, Kind.FLOAT_PAIR: 1.0, Kind.FLOAT_ADD: 2.0,
    Kind.FLOAT_DIVIDE: 13.0,
}  # fmt: skip
_EACH = {Kind.LOAD_MANY: 1.0, Kind.STORE_MANY: 1.0}

CORES = {
    "cortex-m0plus": Core({Kind.LOAD: 1.0, Kind.STORE: 1.0, Kind.CALL: 1.0}, _EACH, taken=1),
    "cortex-m0": Core({Kind.LOAD: 1.0, Kind.STORE: 1.0, Kind.CALL: 1.0}, _EACH, taken=2),
    "cortex-m3": Core(
        {**_ARMV7M, Kind.MULTIPLY_ADD: 1.0, Kind.MULTIPLY_LONG: 3.0}, _EACH, load_after_load=True
    ),
    "cortex-m4": Core(_ARMV7M, _EACH, load_after_load=True, float_use=1),
    "cortex-m33": Core(
        {**_ARMV7M, Kind.LOAD: 0.0, Kind.LOAD_MANY: -1.0, Kind.STORE_MANY: -1.0}, _EACH, taken=1, load_use=1,
        float_use=1,
    ),
}  # fmt: skip

_MNEMONICS: tuple[tuple[str, Kind], ...] = (
    (r"ldrd|ldm\w*|pop|vldm\w*|vpop", Kind.LOAD_MANY),
    (r"strd|stm\w*|push|vstm\w*|vpush", Kind.STORE_MANY),
    (r"ldr(?:s?[bh])?t?|vldr|ldrex\w*", Kind.LOAD),
    (r"str[bh]?t?|vstr|strex\w*", Kind.STORE),
    (r"[su]mu(?:ll|lal)s?|smlal\w*|smlsl\w*|[su]mlal|umaal|smull|umull", Kind.MULTIPLY_LONG),
    (r"ml[as]|smla\w+|smls\w+|smmla\w*|smmls\w*|usada8", Kind.MULTIPLY_ADD),
    (r"muls?|smul\w+|smuad\w*|smusd\w*|smmul\w*|usad8", Kind.MULTIPLY),
    (r"[su]div", Kind.DIVIDE),
    (r"v(?:n?ml[as]|fn?m[as])", Kind.FLOAT_ADD),
    (r"vdiv|vsqrt", Kind.FLOAT_DIVIDE),
    (r"v\w+", Kind.FLOAT),
    (r"blx?", Kind.CALL),
)
_CONDITIONAL = rf"(?:{CONDITIONS})?(?:\.\w+)*"
_KINDS = tuple((re.compile(rf"(?:{names}){_CONDITIONAL}"), kind) for names, kind in _MNEMONICS)
_REGISTER = re.compile(r"\b(?:[rsd]\d+|sl|fp|ip|sp|lr|pc)\b")
_RANGE = re.compile(r"\b([rsd])(\d+)-[rsd](\d+)\b")
_CORE_PAIR = re.compile(r"^(?:r\d+|sl|fp|ip|lr), (?:r\d+|sl|fp|ip|lr), ")
_WRITES_NO_FIRST = re.compile(r"cmp|cmn|tst|teq|str|stm|push|vstr|vstm|vpush|vcmp|b|cb|it|nop|vmsr")


def kind_of(insn: Insn) -> Kind:
    """Return which row of the tables an instruction belongs to."""
    for pattern, kind in _KINDS:
        if pattern.fullmatch(insn.name):
            return _float_kind(insn) if kind is Kind.FLOAT else kind
    return Kind.PLAIN


def _float_kind(insn: Insn) -> Kind:
    pair = insn.name.startswith("vmov") and (
        _CORE_PAIR.match(insn.operands) or len(_REGISTER.findall(insn.operands)) >= 3
    )
    return Kind.FLOAT_PAIR if pair else Kind.FLOAT


def registers(text: str) -> tuple[str, ...]:
    """Return the registers that a text of operands names, ranges spelt out."""
    spelt = _RANGE.sub(lambda m: ", ".join(f"{m[1]}{n}" for n in range(int(m[2]), int(m[3]) + 1)), text)
    return tuple(_REGISTER.findall(spelt))


def _listed(insn: Insn) -> int:
    """Return how many registers a load or store of several moves; a doubleword register is two words."""
    if insn.name.startswith(("ldrd", "strd")):
        return 2
    names = registers(insn.operands[insn.operands.find("{") :])
    return sum(2 if name.startswith("d") else 1 for name in names)


def _words(insn: Insn) -> int:
    """Return the words of a single load or store."""
    return 2 if insn.operands.startswith("d") else 1


def written(insn: Insn) -> frozenset[str]:
    """Return the registers of the result: the first operand; both of a long multiply, all of a list."""
    if _WRITES_NO_FIRST.match(insn.name):
        return frozenset()
    if "{" in insn.operands:
        return frozenset(registers(insn.operands[insn.operands.find("{") :]))
    names = registers(insn.operands)
    two = kind_of(insn) is Kind.MULTIPLY_LONG or insn.name.startswith("ldrd") or kind_of(insn) is Kind.FLOAT_PAIR
    return frozenset(names[: 2 if two else 1])


def read(insn: Insn) -> frozenset[str]:
    """Return the registers that an instruction reads: all but the result, and that too where it accumulates."""
    names = registers(insn.operands)
    kind = kind_of(insn)
    if "{" in insn.operands and kind is Kind.LOAD_MANY:
        return frozenset(registers(insn.operands[: insn.operands.find("{")]))
    if _WRITES_NO_FIRST.match(insn.name) or kind is Kind.FLOAT_ADD:
        return frozenset(names)
    if kind is Kind.MULTIPLY_LONG and "al" in insn.name:
        return frozenset(names)
    return frozenset(names[len(written(insn)) :] or names[:1])


def _address(insn: Insn) -> frozenset[str]:
    return frozenset(registers(insn.operands[insn.operands.find("[") :]))


def cycles_of(insns: Sequence[Insn], core: Core) -> Cycles:
    """Return the cycles of instructions that run one after the other, without what a taken branch adds."""
    total = Cycles()
    before: Insn | None = None
    for insn in insns:
        total += _cycles(insn, before, core)
        before = insn
    return total


def _cycles(insn: Insn, before: Insn | None, core: Core) -> Cycles:
    kind = kind_of(insn)
    if kind in (Kind.LOAD_MANY, Kind.STORE_MANY):
        return Cycles(1, load=core.extra.get(kind, 0.0) + core.each[kind] * _listed(insn))
    if kind in (Kind.LOAD, Kind.STORE):
        waits = _load_use(insn, before, core)
        return Cycles(1, load=_load_extra(insn, kind, before, core) + (_words(insn) - 1) + waits)
    extra, waits = core.extra.get(kind, 0.0), _load_use(insn, before, core)
    if kind in (Kind.FLOAT, Kind.FLOAT_ADD, Kind.FLOAT_DIVIDE, Kind.FLOAT_PAIR):
        return Cycles(1, load=waits, fpu=extra + _float_use(insn, before, core))
    if kind is Kind.CALL:
        return Cycles(1, load=waits, branch=extra)
    return Cycles(1, load=waits, multiply=extra)


def _load_extra(insn: Insn, kind: Kind, before: Insn | None, core: Core) -> float:
    extra = core.extra.get(kind, 0.0)
    follows = before is not None and kind_of(before) is Kind.LOAD
    if kind is Kind.LOAD and core.load_after_load and follows and before is not None:
        return extra if _address(insn) & written(before) else 0.0
    return extra


def _load_use(insn: Insn, before: Insn | None, core: Core) -> float:
    if not core.load_use or before is None or kind_of(before) not in (Kind.LOAD, Kind.LOAD_MANY):
        return 0.0
    return core.load_use if written(before) & read(insn) else 0.0


def _float_use(insn: Insn, before: Insn | None, core: Core) -> float:
    floats = (Kind.FLOAT, Kind.FLOAT_ADD, Kind.FLOAT_DIVIDE)
    if not core.float_use or before is None or kind_of(before) not in floats:
        return 0.0
    return core.float_use if written(before) & read(insn) else 0.0
