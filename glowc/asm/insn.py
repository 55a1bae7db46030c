"""Instructions as values, and the listings that they make: straight runs, loops, one in another, and two ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

CORE, FPU, VECTOR, FLAG, STACK = "r", "s", "q", "f", "sp"
_LR = 14
WIDE_BYTES = 4
"""Of an instruction that is no short one."""


@dataclass(frozen=True, slots=True, order=True)
class Register:
    """A register of a bank; a virtual one has no place yet."""

    bank: str
    number: int
    virtual: bool = True

    def __str__(self) -> str:
        """Return the name; a virtual one is that of its bank in upper case, of an operand in C the bank."""
        if self.bank == STACK:
            return "sp"
        if self.bank.startswith("%"):
            return self.bank
        if self.virtual:
            return f"{self.bank.upper()}{self.number}"
        return "lr" if (self.bank, self.number) == (CORE, _LR) else f"{self.bank}{self.number}"

    def __format__(self, form: str) -> str:
        """Return the name, or that of the "low" or "high" half of a vector; on A64 that of a width."""
        if len(form) == 1 and not self.bank.startswith("%"):
            return f"{form}{self.number}"
        return f"d{2 * self.number + (form == 'high')}" if len(form) > 1 else str(self)


FLAGS = Register(FLAG, 0, virtual=False)
SP = Register(STACK, 13, virtual=False)


@dataclass(frozen=True, slots=True)
class Insn:
    """An instruction: its row in the table, the registers that it changes and reads, what it reads or writes in memory.

    A register that is changed in place is among `writes` and among `reads`. `memory` names an array that no other name
    overlaps; `group` says what the instruction is for.
    """

    op: str
    writes: tuple[Register, ...] = ()
    reads: tuple[Register, ...] = ()
    immediates: tuple[int, ...] = ()
    memory: str = ""
    group: str = ""

    def placed(self, places: Mapping[Register, Register]) -> Insn:
        """Return the instruction with its registers replaced."""
        return replace(
            self, writes=tuple(places.get(r, r) for r in self.writes), reads=tuple(places.get(r, r) for r in self.reads)
        )


@dataclass(frozen=True, slots=True)
class Loop:
    """A listing that is repeated; its last instruction is the branch to its begin. It may have equal steps.

    `step`: the instructions of one, () where there are none; `steps`: how many there are, with so many instructions
    `before` the first one. `entry`: the loop is entered at one of them, by the branch before it that goes to where this
    register says (`Block.step_place`).
    """

    body: Listing
    step: tuple[Insn, ...] = ()
    steps: int = 0
    entry: Register | None = None
    before: int = 0

    @property
    def begins(self) -> range:
        """The numbers of the instructions with which steps begin."""
        return range(self.before, self.before + self.steps * len(self.step), len(self.step))


@dataclass(frozen=True, slots=True)
class Either:
    """Two ways on from a branch, which goes to the one `apart`; both change the same registers, and store nothing.

    A listing has one at most: its ways meet at the label 8.
    """

    body: tuple[Insn, ...]
    apart: tuple[Insn, ...]


Listing = tuple["Insn | Loop | Either", ...]


def instructions(listing: Listing) -> Iterator[Insn]:
    """Yield all instructions in the order in which they are written."""
    for item in listing:
        if isinstance(item, Loop):
            yield from instructions(item.body)
        elif isinstance(item, Either):
            yield from (*item.body, *item.apart)
        else:
            yield item


def read_first(insns: Sequence[Insn]) -> frozenset[Register]:
    """Return the registers whose value from before is read."""
    found: set[Register] = set()
    written: set[Register] = set()
    for insn in insns:
        found |= set(insn.reads) - written
        written |= set(insn.writes)
    return frozenset(found)
