"""The assembly of a tile of dwconv_s8: what templates/kernels/dsp/dwconv_s8.c.j2 prints in the loop of its tiles.

A tile has glow_dsp_dw_t on its stack (runtime_c/dsp/glow_dsp_dw.h), r1 in the stream of the weights, and -in_zp twice
in r12. Of a word of four channels the first half are 0 and 2, the second 1 and 3 (`half`): SXTB16 unpacks them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from glowc.kernels.common.assembly import all_ins, ins, joined
from glowc.program.ir import Plan

Sums = Sequence[tuple[str, str]]  # registers of each output's two channels of a half
_POOL = ("r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "lr")
_REACHED = {0: "", 1: ", r2", 2: ", r2, lsl #1", 4: ", r2, lsl #2", 8: ", r2, lsl #3"}  # columns after r0, r2 apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile(Plan):
    """`outputs` side by side, and the columns [first, end) that exist below them.

    `late`: in a row of the window the first output's sums change after those of all others.
    """

    outputs: int
    first: int
    end: int
    late: bool


@dataclass(slots=True)
class Begun:
    """The outputs whose sums have begun; the others still are the biases, in the registers of output 0."""

    outputs: set[int] = field(default_factory=set)

    def begin(self, output: int) -> int:
        """Return whose registers hold what the next product of an output is added to."""
        source = output if output in self.outputs else 0
        self.outputs.add(output)
        return source


def rotated(half: int) -> str:
    """Return what makes SXTB16 take the channels of a half."""
    return ", ror #8" if half else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan(Plan, ABC):
    """What the plans of tiles have in common: where sums begin, how they become codes, where codes go.

    The window, and the `tiles` of a row, of which number `middle` is repeated, -1: none.

    `left`, `right`: outputs before and after it. `u8`: the output's zero point is -128, and it has no limits. `offset`:
    1 where the weights have a zero point. `mult`: output channels of an input channel. `held`: columns of the window
    whose weights are taken at a time. `short`: no rounded value leaves 16 bits, before the zero point.
    `loops`: the second and third row of a window of three are one text, which may be a loop, for a tile is long.
    `fixed`: codes end in a multiplier and a shift; then `signed`: the sign of a sum counts, `limited`: not all codes
    are allowed, `short`: no code and one place more of it leave 16 bits.
    """

    k_h: int
    k_w: int
    stride_w: int
    dil_w: int
    tiles: tuple[Tile, ...]
    middle: int
    left: int
    right: int
    u8: bool
    offset: int
    mult: int
    held: int
    short: bool
    loops: bool
    fixed: bool = False
    signed: bool = False
    limited: bool = False

    @property
    def taps(self) -> int:
        """Columns of all rows of the window."""
        return self.k_h * self.k_w

    @property
    def reordered(self) -> bool:
        """True when the plan says in which order the rows of the window come."""
        return False

    def tile(self, t: Tile) -> str:
        """Return the assembly of a tile: a loop over as many as there are (label 1), in it one over channels (2)."""
        words = 12 + 4 * self.k_h
        moved = [*["r1-r8"] * (words // 8), *["r1-r4"] * (words % 8 != 0)]
        return joined(
            [
                *all_ins(".syntax unified", "push {r4-r11, lr}", f"sub sp, sp, #{4 * words}", "mov r9, sp"),
                *(ins(f"{op} {{{some}}}") for some in moved for op in ("ldmia r0!,", "stmia r9!,")),
                *all_ins("1:", "ldr r1, [sp]", "ldr r12, [sp, #20]", "2:"),
                *self.four_channels(t),
                *all_ins("ldr r0, [sp, #4]", "cmp r1, r0", "bne.w 2b"),
                *all_ins("ldr r0, [sp, #28]", "subs r0, r0, #1", "beq.w 3f", "str r0, [sp, #28]"),
                *_added("#8", "#16"),
                *(line for ky in range(self.k_h) for line in _added(f"#{48 + 16 * ky}", f"#{60 + 16 * ky}")),
                *all_ins("b.w 1b", "3:", f"add sp, sp, #{4 * words}", "pop {r4-r11, pc}"),
            ]
        )

    @abstractmethod
    def four_channels(self, t: Tile) -> Iterator[str]:
        """Compute four channels of a tile."""

    def biases(self, pair: tuple[str, str], half: int) -> Iterator[str]:
        """Load the biases of a half; back to the weights for the second one."""
        if half:
            back = 4 * self.taps + (12 if self.fixed else 0)
            yield ins(f"ldrd {pair[0]}, {pair[1]}, [r1, #-{8 + back}]")
            yield ins(f"sub r1, r1, #{back}")
        else:
            yield ins(f"ldrd {pair[0]}, {pair[1]}, [r1], #16")

    def half_ends(self, sums: Sums, half: int) -> Iterator[str]:
        """Put the sums of a half by: as they are, or as codes of 16 bits."""
        if self.fixed:
            yield from self._fixed_half(sums, half)
        else:
            for i, (a, b) in enumerate(sums):
                s = 6 * half + 2 * i
                yield ins(f"vmov s{s}, s{s + 1}, {a}, {b}")

    def _fixed_half(self, sums: Sums, half: int) -> Iterator[str]:
        """Multiply and shift sums (glow_dsp_dw_q31.h); after half 0 the codes of an output, less -128, are in s0 .. s2.

        r0, r2, r3 and r4 are free.
        """
        if half:
            yield from all_ins("ldr r3, [r1, #8]", "ldrd r0, r2, [r1, #12]", "add r1, r1, #20")
            yield from all_ins("lsr r4, r3, #24", "lsr r3, r3, #16")
        else:
            yield from all_ins("ldmia.w r1!, {r0, r2, r3}", "lsr r4, r3, #8")
        for pair in sums:
            for r, mul in zip(pair, ("r0", "r2"), strict=True):
                yield ins(f"smmlar {r}, {r}, {mul}, {r}")
        for r in (r for pair in sums for r in pair if self.signed):
            yield ins(f"add {r}, {r}, {r}, asr #31")
        for pair in sums:
            for r, shift in zip(pair, ("r3", "r4"), strict=True):
                yield ins(f"asr {r}, {r}, {shift}")
                if not self.short:
                    yield ins(f"ssat {r}, #16, {r}")
        yield ins("ldr r0, [sp, #24]")
        for a, b in sums:
            yield from all_ins(f"pkhbt {a}, {a}, {b}, lsl #16", f"shadd16 {a}, {a}, r0", f"usat16 {a}, #8, {a}")
        if not half:
            yield from _moved([a for a, _ in sums], to_fpu=True)

    def fixed_codes(self, sums: Sums) -> Iterator[str]:
        """Write codes after both halves of fixed sums: an output's bytes come together in its second register."""
        yield from _moved([b for _, b in sums], to_fpu=False)
        if self.limited:
            yield ins("ldrd r3, r4, [sp, #32]")
        for a, b in sums:
            yield from all_ins(f"orr {b}, {b}, {a}, lsl #8", f"eor {b}, {b}, #0x80808080")
            if self.limited:
                yield from all_ins(
                    f"ssub8 {a}, {b}, r3", f"sel {b}, {b}, r3", f"ssub8 {a}, r4, {b}", f"sel {b}, {b}, r4"
                )
        yield from self.to_out()
        for i, (_, b) in enumerate(sums):
            yield from self.store(b)
            if i + 1 < len(sums):
                yield ins("add r0, r0, r2")

    def rounded(self, outputs: int) -> Iterator[str]:
        """Scale and round the sums of both halves, in s0 .. s11."""
        yield ins("vldmia r1!, {s12-s15}")
        places = [(6 * half + i, 12 + 2 * half + i % 2) for half in (0, 1) for i in range(2 * outputs)]
        yield from (ins(f"vcvt.f32.s32 s{s}, s{s}") for s, _ in places)
        yield from (ins(f"vmul.f32 s{s}, s{s}, s{scale}") for s, scale in places)
        yield from (ins(f"vcvtr.s32.f32 s{s}, s{s}") for s, _ in places)

    def to_out(self) -> Iterator[str]:
        """Set r0 to where the codes go, r2 to the step from one output to the next."""
        return all_ins("ldrd r0, r2, [sp, #8]", f"add r3, r0, #{4 * self.mult}", "str r3, [sp, #8]")

    def store(self, r: str) -> Iterator[str]:
        """Store the four codes of an output."""
        if self.mult == 1:
            yield ins(f"str {r}, [r0]")
        else:
            yield ins(f"strb {r}, [r0]")
            for at in range(1, 4):
                yield from all_ins(f"lsr {r}, {r}, #8", f"strb {r}, [r0, #{at * self.mult}]")


def _added(to: str, step: str) -> Iterator[str]:
    """Add one word of the stack to another."""
    return all_ins(f"ldr r0, [sp, {to}]", f"ldr r2, [sp, {step}]", "add r0, r0, r2", f"str r0, [sp, {to}]")


def _moved(registers: Sequence[str], *, to_fpu: bool) -> Iterator[str]:
    """Move registers to s0 .. or back, two at a time."""
    for i in range(0, len(registers), 2):
        core, fpu = ", ".join(registers[i : i + 2]), ", ".join(f"s{k}" for k in range(i, min(i + 2, len(registers))))
        yield ins(f"vmov {fpu}, {core}" if to_fpu else f"vmov {core}, {fpu}")


class PlainTile(WindowPlan):
    """Tiles of any window: a word of weights serves all outputs before the next one is loaded."""

    __slots__ = ()

    def four_channels(self, t: Tile) -> Iterator[str]:
        """Compute four channels of a tile."""
        yield from self._sums(t, 0)
        yield from self._sums(t, 1)
        if self.fixed:
            yield from self.fixed_codes(self._registers(t.outputs))
        else:
            yield from self.rounded(t.outputs)
            yield from self.to_out()
            yield from self._codes(t.outputs)

    def _registers(self, outputs: int) -> Sums:
        free = _POOL[self.held :]
        return [(free[2 * t], free[2 * t + 1]) for t in range(outputs)]

    def _sums(self, t: Tile, half: int) -> Iterator[str]:
        """The sums of a half; unless output 0 begins late, all begin as copies of its biases."""
        sums = self._registers(t.outputs)
        begun = Begun(set() if t.late else set(range(t.outputs)))
        yield from self.biases(sums[0], half)
        for pair in sums[1:] if not t.late else ():
            yield from all_ins(f"mov {pair[0]}, {sums[0][0]}", f"mov {pair[1]}, {sums[0][1]}")
        parts = [range(k, min(k + self.held, self.k_w)) for k in range(0, self.k_w, self.held)]
        for ky in range(1 if self.loops else self.k_h):
            for part in parts:
                yield ins(f"ldrd r0, r2, [sp, #{48 + 16 * ky}]")
                if half and part is parts[-1]:
                    yield from all_ins(f"ldr r3, [sp, #{56 + 16 * ky}]", "add r3, r3, r0")
                    yield ins(f"str r3, [sp, #{48 + 16 * ky}]")
                yield from self._row(t, half, begun, part)
        if self.loops:
            row = "\n  ".join(self._row(t, half, begun, range(self.k_w)))
            yield f"GLOW_DSP_DW_TWO_ROWS({half},\n{row})"
        yield from self.half_ends(sums, half)

    def _row(self, t: Tile, half: int, begun: Begun, part: range) -> Iterator[str]:
        """A row of the window, or `part` of its columns: r0 and r2 are where it begins and its step."""
        weights = _POOL[: len(part)]
        yield ins("ldr.w r4, [r1], #4" if len(part) == 1 else f"ldmia r1!, {{{', '.join(weights)}}}")
        if self.offset:
            yield ins("ldr r3, [sp, #40]")
        for r in weights:
            yield ins(f"sxtab16 {r}, r3, {r}{rotated(half)}" if self.offset else f"sxtb16 {r}, {r}{rotated(half)}")
        yield from self._columns(t, half, begun, part)

    def _columns(self, t: Tile, half: int, begun: Begun, part: range) -> Iterator[str]:
        """The columns that `part` reads: of those that loads reach from r0 the last one first, then r0 moves by one."""
        left = [column for column in range(t.first, t.end) if any(self._uses(t, column, part))]
        base = t.first
        if part[0] > 0 and left:
            for bit in range(5):
                if (left[0] - base) >> bit & 1:
                    yield ins(f"add r0, r0, r2, lsl #{bit}")
            base = left[0]
        while left:
            for column in (c for c in reversed(left) if c - base in _REACHED):
                yield from all_ins(f"ldr r3, [r0{_REACHED[column - base]}]", f"sxtab16 r3, r12, r3{rotated(half)}")
                yield from self._products(t, column, part, begun)
            left = [column for column in left if column - base not in _REACHED]
            if left:
                base += 1
                yield ins("add r0, r0, r2")

    def _uses(self, t: Tile, column: int, part: range) -> Iterator[tuple[int, int]]:
        """Yield (output, tap) of the products of a column, the last output first."""
        for output in reversed(range(t.outputs)):
            yield from ((output, kx) for kx in part if output * self.stride_w + kx * self.dil_w == column)

    def _products(self, t: Tile, column: int, part: range, begun: Begun) -> Iterator[str]:
        sums = self._registers(t.outputs)
        for output, kx in self._uses(t, column, part):
            source, w = sums[begun.begin(output)], _POOL[kx - part[0]]
            yield ins(f"smlabb {sums[output][0]}, r3, {w}, {source[0]}")
            yield ins(f"smlatt {sums[output][1]}, r3, {w}, {source[1]}")

    def _codes(self, outputs: int) -> Iterator[str]:
        """Write the rounded values of both halves, in s0 .. s11, as codes."""
        if not self.u8:
            yield from all_ins("ldr r3, [sp, #24]", "ldrd r8, r9, [sp, #32]")
        for t in range(outputs):
            yield from all_ins(f"vmov r4, r5, s{2 * t}, s{2 * t + 1}", f"vmov r6, r7, s{6 + 2 * t}, s{7 + 2 * t}")
            if not self.u8:
                yield from (ins(f"qadd r{r}, r{r}, r3") for r in range(4, 8))
                yield from (ins(f"ssat r{r}, #8, r{r}") for r in range(4, 8))
                yield from all_ins("bfi r4, r6, #8, #8", "bfi r4, r5, #16, #8", "bfi r4, r7, #24, #8")
                yield from all_ins("ssub8 r10, r4, r8", "sel r4, r4, r8", "ssub8 r10, r9, r4", "sel r4, r4, r9")
            elif self.short:
                yield from all_ins("pkhbt r4, r4, r5, lsl #16", "pkhbt r6, r6, r7, lsl #16")
                yield from all_ins("usat16 r4, #8, r4", "usat16 r6, #8, r6", "orr r4, r4, r6, lsl #8")
                yield ins("eor r4, r4, #0x80808080")
            else:
                yield from (ins(f"usat r{r}, #8, r{r}") for r in range(4, 8))
                yield from all_ins("orr r4, r4, r6, lsl #8", "orr r4, r4, r5, lsl #16", "orr r4, r4, r7, lsl #24")
                yield ins("eor r4, r4, #0x80808080")
            yield from self.store("r4")
            if t + 1 < outputs:
                yield ins("add r0, r0, r2")
