"""Where the weights lie in the constants that a variant packed: what is stored as 4-bit codes, and what as it is."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.graph.few_codes import NARROW_BITS
from glowc.program.ir import Instr

FEWEST = 512
"""Of weights: fewer are not worth a call that unpacks them."""


@dataclass(frozen=True, slots=True)
class Records:
    """`lead` words, then `count` records of `head` words, `body` words of weights and `tail` words, then any others.

    A weight is a byte; with `joined` two of them are a halfword, 256 * even + odd.
    """

    body: int
    count: int = 1
    lead: int = 0
    head: int = 0
    tail: int = 0
    joined: bool = False

    @property
    def words(self) -> int:
        """The words until the end of the last record."""
        return self.lead + self.count * (self.head + self.body + self.tail)


def has_narrow_weights(instr: Instr) -> bool:
    """Say whether the weights of an instruction, not packed yet, are codes of few bits, and enough to store them so."""
    types = (o.type for o in instr.operands if o.role == "weights" and o.type.elements >= FEWEST)
    return any(t.quant is not None and t.quant.bits in NARROW_BITS for t in types)


def plain_records(instr: Instr) -> Records:
    """Return those of weights that lie as bytes, one after the other."""
    return Records(instr.operand("weights").type.size_bytes // 4)


def equal_records(instr: Instr, count: int, *, head: int = 0, tail: int = 0, lead: int = 0) -> Records | None:
    """Return those of as many records as fill the constant of the weights; None where they do not divide it."""
    words, rest = divmod(instr.operand("weights").type.size_bytes, 4)
    body, over = divmod(words - lead, count)
    return Records(body - head - tail, count, lead, head, tail) if rest == over == 0 else None
