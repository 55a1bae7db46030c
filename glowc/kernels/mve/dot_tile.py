"""Matrix products of one or two pixels and four output channels on Helium by a list of steps (`Dot`,
runtime_c/mve/glow_mve_dot.h), or with weights that have a zero point (`Zero`, glow_mve_zero.h).

The code of a step finds the 16 bytes of the stream at r5 in q2 and leaves the next ones there. Inputs are at r1, those
of the second pixel at r3. Of one pixel the sums are in r0, r2, r8, r10; of two where pair_tile.py has them. q5 are the
places of codes, or the scale of all channels, q6 and q7 the lowest and the highest code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from glowc.asm.block import Block
from glowc.asm.insn import CORE, VECTOR, Insn, Register
from glowc.asm.isa import P0
from glowc.kernels.mve.pair_tile import R1, R3, R5, R7, R11, SUMS, Ending, loaded, straight, written
from glowc.kernels.mve.shared import GROUP
from glowc.kernels.mve.stream import VECTOR as BYTES
from glowc.kernels.mve.stream import end_bytes

_ONE_SUMS = tuple((Register(CORE, number, virtual=False),) for number in (0, 2, 8, 10))
_R4, _R9 = (Register(CORE, number, virtual=False) for number in (4, 9))
_X = tuple(Register(VECTOR, number, virtual=False) for number in (0, 1))
_NEXT, _CODES, _OTHER, _PLACES, _LOW, _HIGH = (Register(VECTOR, number, virtual=False) for number in range(2, 8))
KEPT = (_NEXT, _PLACES, _LOW, _HIGH)
Weight = Callable[[Register], Register]
"""Loads the next weights to a register."""


@dataclass(frozen=True, slots=True)
class _Tile(ABC):
    """So many `pixels`, whose codes end as `stream.end_of` tells, or "shared": by one scale."""

    family: ClassVar[str]
    pixels: int
    end: str

    @property
    def suffix(self) -> str:
        """The end of the name of the function."""
        return f"{self.pixels}{'' if self.end == 'scaled' else f'_{self.end}'}"

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"glow_mve_{self.family}{self.suffix}"

    @property
    def sums(self) -> Sequence[Sequence[Register]]:
        """Of each channel: of the pixels."""
        return SUMS if self.pixels > 1 else _ONE_SUMS

    @property
    def _bases(self) -> Sequence[Register]:
        return (R1, R3)[: self.pixels]

    def _products(self, b: Block, acts: Sequence[Register], weight: Weight, *, first: bool) -> None:
        """Append the products of inputs with the weights in q2 and the next ones; those after them go to q2."""
        factor = _NEXT
        for channel, sums in enumerate(self.sums):
            for total, act in zip(sums, acts, strict=True):
                op, more = ("vmladav_s8", ()) if first else ("vmladava_s8", (total,))
                b.emit(op, (total,), (*more, act, factor))
            factor = weight(_NEXT if channel == GROUP - 1 else b.vector())

    def block(self, *, first: bool) -> tuple[Insn, ...]:
        """Return 16 inputs times four channels."""
        b = Block()
        b.group = f"block of {self.pixels}"
        acts = [loaded(b, "vldrb_moving", base, BYTES, moves=True, memory="x") for base in self._bases]
        self._products(b, acts, _moving(b, BYTES), first=first)
        return straight(b)

    def tail(self, *, first: bool) -> tuple[Insn, ...]:
        """Return fewer inputs, as many as r7 tells, times four channels."""
        b = Block()
        b.group = f"tail of {self.pixels}"

        def weight(to: Register) -> Register:
            b.emit("add_two", (R5,), (R5, R7))
            return loaded(b, "vldrb", R5, 0, to=to)

        b.emit("vctp", (P0,), (R7,))
        acts = [b.vector() for _ in self._bases]
        for act, base in zip(acts, self._bases, strict=True):
            b.emit("vldrb_some_moving", (act, base), (base, P0), BYTES, memory="x")
        self._products(b, acts, weight, first=first)
        return straight(b)

    def codes(self, b: Block, to: Register, free: Register | None = None) -> Register:
        """Append what makes the codes of the sums, and return them."""
        sums = [to, _OTHER if free else b.vector()][: self.pixels]
        for total, row in zip(sums, zip(*self.sums, strict=True), strict=True):
            b.emit("vmov_four", (total,), row)
        by, factors = ("scaled", _PLACES) if self.end == "shared" else (self.end, None)
        return Ending(by, (_LOW, _HIGH), 0, R7, biases=_NEXT, factors=factors, free=free).codes(b, sums)

    @property
    @abstractmethod
    def runs(self) -> list[tuple[Insn, ...]]:
        """The parts of the function."""

    def _function(self, kind: str, argument: str, *more: str) -> str:
        """Return a function that a macro of the header makes of its parts."""
        macro = f"GLOW_MVE_{self.family.upper()}_{'PAIR' if self.pixels > 1 else 'ONE'}"
        parts = (f'"{end_bytes(self.end)}"', *more, *(written(run, KEPT) for run in self.runs))
        body = ",\n      ".join(parts)
        head = f"GLOW_MVE_FUNCTION {kind}{self.name}(GLOW_MVE_UNUSED {argument} *d) {{"
        return f"{head}\n  __asm__({macro}({body}));\n}}\n"

    def last(self) -> tuple[Insn, ...]:
        """Return the codes of a group, in q3, which leaves q0 and q1 to inputs that are kept."""
        b = Block()
        b.group = f"codes of {self.pixels} by {self.end}"
        self.codes(b, _CODES, _NEXT)
        return straight(b)


@dataclass(frozen=True, slots=True)
class Dot(_Tile):
    """A function that follows a list of steps."""

    family: ClassVar[str] = "dot"

    def _kept(self, inputs: int) -> tuple[Insn, ...]:
        """Return so many inputs that all groups use, times four channels."""
        b = Block()
        b.group = "inputs that are kept"
        self._products(b, _X, _moving(b, inputs), first=True)
        return straight(b)

    def _next(self) -> tuple[Insn, ...]:
        """Return the codes of a group, and the first step of the next one."""
        b = Block()
        b.group = f"next {self.pixels} by {self.end}"
        codes = self.codes(b, b.vector())
        b.emit("ldr", (_R9,), (R1,), 4, memory="d")
        b.emit("ldrd_moving", (R1, R3, _R9), (_R9,), 16, memory="steps")
        if self.pixels > 1:
            b.emit("vstrb_places", (), (codes, R11, _PLACES), memory="out")
            b.emit("add", (R11,), (R11,), GROUP)
        else:
            b.emit("vstrb_words_moving", (_R4,), (codes, _R4), GROUP, memory="out")
        acts = [loaded(b, "vldrb_moving", base, BYTES, moves=True, memory="x") for base in self._bases]
        b.emit("vldrb_to", (_NEXT, R5), (R5,), end_bytes(self.end), memory=str(R5))
        self._products(b, acts, _moving(b, BYTES), first=True)
        return straight(b)

    @property
    def runs(self) -> list[tuple[Insn, ...]]:
        """The code of steps: blocks and tails, inputs that are kept, the end of a group."""
        blocks = [part(first=first) for part in (self.block, self.tail) for first in (True, False)]
        kept = [self._kept(inputs) for inputs in (BYTES, BYTES // 2)] if self.pixels > 1 else []
        return [*blocks, *kept, self._next(), self.last()]

    @property
    def function(self) -> str:
        """The function's text."""
        return self._function("const uint32_t *", "glow_mve_dot_t", f'"{self.suffix}"')


@dataclass(frozen=True, slots=True)
class Zero(_Tile):
    """A function whose sums begin with what the zero point of the weights adds."""

    family: ClassVar[str] = "zero"

    @property
    def runs(self) -> list[tuple[Insn, ...]]:
        """A block, a tail, codes."""
        return [self.block(first=False), self.tail(first=False), self.last()]

    @property
    def function(self) -> str:
        """The function's text."""
        return self._function("void ", "const glow_mve_zero_t")


def _moving(b: Block, step: int) -> Weight:
    """Return what loads weights past which the stream's pointer moves first."""
    return lambda to: loaded(b, "vldrb_to", R5, step, moves=True, to=to)
