"""Two pixels times four output channels on Helium, and their codes: of few inputs one group of channels after the other
(`Run`, runtime_c/mve/glow_mve_run.h), of segments of inputs one pair of pixels after the other (`Unrolled`,
glow_mve_point.h).

The codes of a group are made in the pauses of the products of the next one. VMLADAV wants even registers: r0, r4, r8,
r12 have the sums of the first pixel, r2, r6, r10, lr those of the second. The others:

        Run                                   Unrolled
r1      inputs of both pixels, moves on       inputs of the first pixel
r3      zero point, or the line's -2^10       inputs of the second pixel
r5      constants of the group                the same, moves on
r7      distance of the outputs of pairs      the line's -2^10
r9      output, moves on
r11     pairs left, counts                    output, moves on
q4-q7   weights of one piece, or in q6 places q5: places of codes
sp      places of codes, lowest, highest      zero points, lowest, highest codes, inputs of segments
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import CORE, FLAGS, SP, VECTOR, Insn, Register, instructions
from glowc.asm.isa import P0
from glowc.asm.order import orders_of
from glowc.asm.schedule import scheduled
from glowc.asm.write import quoted, text
from glowc.kernels.mve.shared import GROUP
from glowc.kernels.mve.stream import VECTOR as BYTES
from glowc.kernels.mve.stream import end_bytes, in_vectors
from glowc.program.ir import Plan

CORTEX_M55 = "cortex-m55"
LINE_FRACTION = 16
_REACH = 400  # bytes of weights, in reach with those of one more piece and of the end of a group
_BYTE_REACH = 128  # of loads that widen bytes
_PLACES = 28  # in glow_mve_point_t
_FRAME, _LIMITS, _SEGMENTS = 0, (16, 32), 48  # on the stack
SUMS = tuple(tuple(Register(CORE, number + pixel, virtual=False) for pixel in (0, 2)) for number in (0, 4, 8, 12))
_FREE = SUMS[1][0]  # between the sums before and the products after
R1, R3, R5, R7, R9, R11 = (Register(CORE, number, virtual=False) for number in range(1, 12, 2))
_HELD = tuple(Register(VECTOR, number, virtual=False) for number in range(4, 8))
Inputs = Callable[["Piece"], Sequence[Register]]
Weight = Callable[["Piece", int], Register]


@dataclass(frozen=True, slots=True)
class Piece:
    """Up to 16 inputs (`lanes`) of a pixel, `at` bytes after the begin of a segment.

    `turns`: the piece before is of another segment. Their weights are `weights_at` bytes after the stream's pointer,
    which `moves` there.
    """

    segment: int
    at: int
    lanes: int
    turns: bool
    weights_at: int
    moves: bool


@dataclass(frozen=True, slots=True)
class Ending:
    """How sums become codes.

    `by`: a scale, a line, or a multiplier and a shift, "fixed" or "rectified" (glow_mve_dot.h). `limits`: vectors of
    the lowest and the highest code, None: those on the stack, (): none but those of a byte. Biases are at `numbers`
    bytes from the stream's pointer, and after them what is multiplied by, unless they are loaded already. `zero`: the
    zero point, None: it is on the stack; `number`: of the line; `free`: what all that is loaded goes to, where no other
    register is left.
    """

    by: str
    limits: Sequence[Register] | None
    numbers: int
    zero: Register | None
    number: Register | None = None
    biases: Register | None = None
    factors: Register | None = None
    free: Register | None = None

    def codes(self, b: Block, sums: Sequence[Register]) -> Register:
        """Return the codes of one or two sums in 16 bits, and append what makes them."""
        codes = self._by_line(b, sums) if self.number is not None and self.by == "line" else self._by_factors(b, sums)
        if self.limits == ():
            b.emit("vqmovnb_s16", (codes,), (codes, codes))
            return codes
        for op, at in zip(("vmax_s16", "vmin_s16"), range(2), strict=True):
            limit = loaded(b, "vldrw", SP, _LIMITS[at]) if self.limits is None else self.limits[at]
            b.emit(op, (codes,), (codes, limit))
        return codes

    def _by_line(self, b: Block, sums: Sequence[Register]) -> Register:
        assert self.number is not None
        lines = [loaded(b, "vldrw", R5, self.numbers) for _ in sums]
        for line, total in zip(lines, sums, strict=True):
            b.emit("vmla", (line,), (line, total, self.number))
        factors = loaded(b, "vldrw", R5, self.numbers + BYTES)
        even, odd = (made(b, "vqdmulh", line, factors) for line in lines)
        b.emit("vshrnb", (odd,), (odd, even), LINE_FRACTION)
        return odd

    def _by_factors(self, b: Block, sums: Sequence[Register]) -> Register:
        biases = self.biases or loaded(b, "vldrw", R5, self.numbers)
        factors = self.factors if self.factors or self.free else loaded(b, "vldrw", R5, self.numbers + BYTES)
        for total in sums:
            b.emit("vadd_i32", (total,), (total, biases))
        factors = factors or loaded(b, "vldrw", R5, self.numbers + BYTES, to=self.free)
        for op in ("vcvt_vector", "vmul_vector", "vcvtn_vector") if self.by == "scaled" else ("vqrdmulh",):
            for total in sums:
                b.emit(op, (total,), (total, factors) if op in ("vmul_vector", "vqrdmulh") else (total,))
        if self.by != "scaled":
            self._shift(b, sums)
        codes, odd = sums[0], sums[1:]
        b.emit("vqmovnb_s32", (codes,), (codes, codes))
        for total in odd:
            b.emit("vqmovnt_s32", (codes,), (codes, total))
        if self.zero is not None:
            b.emit("vqadd_s16", (codes,), (codes, self.zero))
        else:
            b.emit("vqadd_vectors", (codes,), (codes, loaded(b, "vldrw", SP, _FRAME)))
        return codes

    def _shift(self, b: Block, sums: Sequence[Register]) -> None:
        """VRSHL rounds half up: away from zero of a negative product less one."""
        places = self._places(b) if self.free is None else None
        for total in sums if self.by == "fixed" else ():
            sign = self.free or b.vector()
            b.emit("vshr", (sign,), (total,), 31)
            b.emit("vadd_i32", (total,), (total, sign))
        places = places or self._places(b)
        for total in sums:
            b.emit("vrshl", (total,), (total, places))

    def _places(self, b: Block) -> Register:
        at = self.numbers + 2 * BYTES
        if at < _BYTE_REACH:
            return loaded(b, "vldrb_s32", R5, at, to=self.free)
        b.emit("add", (_FREE,), (R5,), at)
        return loaded(b, "vldrb_s32", _FREE, 0, memory=str(R5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Plan):
    """All pixels of a group of channels before the next group: so many inputs, 48 at most, one after the other.

    `end`: `stream.end_of`. The weights of one piece stay in registers, or the places of codes.
    """

    inputs: int
    end: str
    clamped: bool

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"glow_mve_run{self.inputs}{'' if self.end == 'scaled' else f'_{self.end}'}{'_clamped' * self.clamped}"

    @property
    def _ends(self) -> tuple[str, ...]:
        return ("scaled", "line") if self.end == "scaled" else (self.end,)

    @property
    def runs(self) -> list[tuple[Insn, ...]]:
        """What registers keep and the products of the first pair; by each end codes and products, codes of the last."""
        ways = [self._step(by, products=products) for by in self._ends for products in (True, False)]
        return [self._step(""), *ways]

    @property
    def function(self) -> str:
        """The function's text."""
        frame = f'GLOW_MVE_RUN{"_EITHER" * (len(self._ends) > 1)}("{end_bytes(self.end)}"'
        body = ",\n      ".join((frame, *map(written, self.runs)))
        return f"GLOW_MVE_FUNCTION void {self.name}(GLOW_MVE_UNUSED glow_mve_run_t *d) {{\n  __asm__({body}));\n}}\n"

    @property
    def _loads(self) -> str:
        return "vldrb_s16" if self.inputs < BYTES else "vldrb"

    def _step(self, by: str, *, products: bool = True) -> tuple[Insn, ...]:
        """Return the codes of a pair of pixels (not by ""), and the products of the next one."""
        b = Block()
        b.group = _group(f"run of {-(-self.inputs // BYTES)}" * products, by, self.clamped)
        some = self.inputs > BYTES
        if by:
            places = _HELD[2] if some else None
            ending = Ending(by, None if self.clamped else (), GROUP * self.inputs, R3, R3)
            _store(b, ending, R9, places)
        elif some:
            b.emit("vldrw", _HELD[2:3], (SP,), _FRAME, memory=str(SP))
        else:
            for channel, register in enumerate(_HELD):
                b.emit(self._loads, (register,), (R5,), self.inputs * channel, memory=str(R5))
        if products:
            pieces = pieces_of(in_vectors(1, self.inputs), self.inputs)
            pitch = BYTES * len(pieces) if some else self.inputs

            def inputs(piece: Piece) -> Sequence[Register]:
                if piece.at:
                    return [loaded(b, "vldrb", R1, piece.at + pitch * (pixel - 2)) for pixel in (0, 1)]
                return loaded(b, f"{self._loads}_moving", R1, 2 * pitch, moves=True), loaded(b, self._loads, R1, -pitch)

            def weight(piece: Piece, channel: int) -> Register:
                return loaded(b, "vldrw", R5, piece.weights_at + piece.lanes * channel) if some else _HELD[channel]

            _multiply(b, pieces, inputs, weight, "s8" if self._loads == "vldrb" else "s16")
        if by and products:
            b.emit("add_two", (R9,), (R9, R7))
            b.emit("count", (R11, FLAGS), (R11,), -1)
        return straight(b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrolled(Plan):
    """Code that is printed for `segments` of `run` inputs of a pixel: pieces of 16, the last of fewer."""

    BY: ClassVar[tuple[str, ...]] = ("line", "scaled")
    segments: int = 1
    run: int
    clamped: bool

    @property
    def tail(self) -> int:
        """Inputs of the last piece of a segment, if it has fewer than 16; 0: none."""
        return self.run % BYTES

    @property
    def cuts(self) -> list[tuple[int, int]]:
        """Where the pieces begin among the inputs, and how many inputs they have; the second one has 16."""
        cuts = in_vectors(self.segments, self.run)
        return cuts if cuts[1][1] == BYTES else [cuts[0], *cuts[2:], cuts[1]]

    @property
    def left(self) -> int:
        """Bytes from the stream's pointer, after the last piece, to the next group."""
        last = pieces_of(self.cuts, self.run)[-1]
        return (0 if last.moves else last.weights_at) + GROUP * last.lanes + end_bytes("scaled")

    @property
    def group_bytes(self) -> int:
        """Bytes of four output channels in the stream."""
        return GROUP * self.segments * self.run + end_bytes("scaled")

    @property
    def runs(self) -> list[tuple[Insn, ...]]:
        """The products of the first group, then codes and products of the next one, and codes of the last, `BY`."""
        return [self._step(by, products=more) for more in (True, False) for by in (*[""] * more, *self.BY)]

    @property
    def texts(self) -> list[str]:
        """The same as strings of C."""
        return [written(run) for run in self.runs]

    def _step(self, by: str, *, products: bool) -> tuple[Insn, ...]:
        b = Block()
        shape = f"{len(self.cuts)} in {self.segments}{', tail' * (self.tail > 0)}"
        b.group = _group(shape * products, by, self.clamped)
        weights = [loaded(b, "vldrw_to", R5, self.left, moves=True)] if products else []
        if not by:
            b.emit("vldrw", _HELD[1:2], (SUMS[0][0],), _PLACES, memory="call")
        else:
            numbers = (0 if products else self.left) - end_bytes("scaled")
            _store(b, Ending(by, None if self.clamped else (), numbers, None, R7), R11, _HELD[1])
        if products:
            pieces = pieces_of(self.cuts, self.run)

            def inputs(piece: Piece) -> Sequence[Register]:
                if piece.turns:
                    b.emit("ldrd", (R1, R3), (SP,), _SEGMENTS + 8 * piece.segment, memory="segments")
                if piece.lanes < BYTES:
                    found = b.vector(), b.vector()
                    b.emit("vldrb_some", found, (R1, R3, P0), piece.at, memory="x")
                    return found
                return [loaded(b, "vldrb", base, piece.at, memory="x") for base in (R1, R3)]

            def weight(piece: Piece, channel: int) -> Register:
                if weights:
                    return weights.pop()
                if piece.moves and not channel:
                    return loaded(b, "vldrw_to", R5, piece.weights_at, moves=True)
                return loaded(b, "vldrw", R5, piece.lanes * channel + (0 if piece.moves else piece.weights_at))

            _multiply(b, pieces, inputs, weight, "s8")
            if pieces[-1].segment:
                b.emit("ldrd", (R1, R3), (SP,), _SEGMENTS, memory="segments")
        if by and products:
            b.emit("add", (R11,), (R11,), GROUP)
        return straight(b)


def pieces_of(cuts: Sequence[tuple[int, int]], run: int) -> list[Piece]:
    """Return the pieces in the order of the weights, of segments of `run` inputs."""
    pieces: list[Piece] = []
    weights_at = segment = 0
    for cut, lanes in cuts:
        before, (segment, at) = segment, divmod(cut, run)
        moves = weights_at > _REACH
        pieces.append(Piece(segment, at, lanes, segment != before, weights_at, moves))
        weights_at = GROUP * lanes + (0 if moves else weights_at)
    return pieces


def _multiply(b: Block, pieces: Sequence[Piece], inputs: Inputs, weight: Weight, kind: str) -> None:
    """Append the products of pieces, of which the first ones begin the sums."""
    for number, piece in enumerate(pieces):
        acts = inputs(piece)
        for channel, sums in enumerate(SUMS):
            factor = weight(piece, channel)
            for total, act in zip(sums, acts, strict=True):
                op, more = ("vmladava", (total,)) if number else ("vmladav", ())
                b.emit(f"{op}_{kind}", (total,), (*more, act, factor))


def _store(b: Block, ending: Ending, out: Register, places: Register | None) -> None:
    """Append what stores the codes of both pixels' sums; places of None are on the stack."""
    codes = ending.codes(b, [made(b, "vmov_four", *(channel[pixel] for channel in SUMS)) for pixel in (0, 1)])
    b.emit("vstrb_places", (), (codes, out, places or loaded(b, "vldrw", SP, _FRAME)), memory="out")


def loaded(
    b: Block, op: str, base: Register, at: int, *, moves: bool = False, memory: str = "", to: Register | None = None
) -> Register:
    """Return a vector, a new one or `to`, and append its load; `moves`: the base, too."""
    to = to or b.vector()
    b.emit(op, (to, base) if moves else (to,), (base,), at, memory=memory or str(base))
    return to


def made(b: Block, op: str, *reads: Register) -> Register:
    """Return a new vector, and append what makes it."""
    to = b.vector()
    b.emit(op, (to,), reads)
    return to


def straight(b: Block) -> tuple[Insn, ...]:
    """Return the instructions of a block that has no loop."""
    return tuple(insn for insn in b.listing() if isinstance(insn, Insn))


@cache
def written(run: tuple[Insn, ...], kept: tuple[Register, ...] = ()) -> str:
    """Return the strings of a run, in its order for a Cortex-M55; some places are kept."""
    placed = instructions(allocate(scheduled(run, orders_of(CORTEX_M55), kept), {}, kept=kept))
    return quoted(line for insn in placed for line in text(insn).splitlines())


def _group(shape: str, by: str, clamped: bool) -> str:
    return ", ".join(filter(None, (shape or "last", by, "clamped" * (clamped and by != ""))))
