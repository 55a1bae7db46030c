"""Depthwise windows over planes of one channel in assembly (runtime_c/dsp/glow_dsp_planar.h says where what lies).

pairs   words of two columns of four channels, of words of four channels: glow_planar_expand_t
singles words of one column and 0
rows    rows of outputs of some channels: glow_planar_rows_t

A word of weights has two taps of a row that follow each other. An output that begins in the low half of a word takes
taps 0 and 1 with it, 2 and 3 with the next one ...; one that begins in the high half takes tap 0, then 1 and 2, and so
on: each product of two taps is one SMLAD, a tap that is left over SMLATB or SMLABT.

Codes are made of sums by a float32 "scale", by a "multiplier" and a shift (glow_dsp_q31.h), or by a "line", two
instructions (kernels/common/straight.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from glowc.asm.allocate import PLACES, allocate
from glowc.asm.block import Block
from glowc.asm.insn import CORE, Listing, Register
from glowc.asm.order import ordered, orders_of
from glowc.asm.write import statement
from glowc.kernels.dsp.ends import line
from glowc.kernels.dsp.quad_ends import limit_codes
from glowc.program.ir import Plan

_MOST_HELD = 6  # words of weights in registers
_MOST_HELD_ROWS = 3  # that loads reach by one distance
_MOST_PRINTED = 25  # taps of a window whose rows are printed one after the other
_EXPAND = ("to", "from", "step", "next", "plane", "zero", "pitch", "jump", "width", "rows")
_ROWS = (
    "planes", "plane", "pitch", "jump", "width", "weights", "ends", "last", "shifts", "out", "next", "step", "row",
    "rows", "zero", "low", "high",
)  # fmt: skip
_LIMITS = ("low", "high")  # words of the frame of `rows`
Call = tuple[Listing, tuple[Register, ...]]
"""The instructions of a function, and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Plan):
    """A window of `k_h` x `k_w`, `stride` columns apart, of so many `outputs` at a time (2 or 4)."""

    k_h: int
    k_w: int
    stride: int
    outputs: int

    @property
    def words(self) -> int:
        """The words of a row below the outputs."""
        return ((self.outputs - 1) * self.stride + self.k_w - 1) // 2 + 1

    @property
    def advance(self) -> int:
        """The words from outputs to the next ones."""
        return self.outputs * self.stride // 2

    @property
    def held(self) -> bool:
        """True where registers hold the weights along a row."""
        few = self.k_h * (self.k_w - 1) <= _MOST_HELD and self.k_h <= _MOST_HELD_ROWS
        return few and (self.k_h == 1 or self.words <= self.advance + 1)

    @property
    def fits(self) -> bool:
        """True where there are registers for it."""
        return self.outputs == 2 or self.stride <= 2

    @property
    def printed_rows(self) -> int:
        """Rows of the window that are printed one after the other, 0: they are a loop."""
        return self.k_h if self.held or self.k_h == 1 or self.k_h * self.k_w <= _MOST_PRINTED else 0

    def products(self, word: int) -> Iterator[tuple[int, str, int]]:
        """Yield what a word of inputs is multiplied with: the output, the instruction and the word of weights."""
        for output in range(self.outputs):
            tap = 2 * word - output * self.stride
            if 0 <= tap < self.k_w - 1:
                yield output, "smlad", tap
            elif tap == -1:
                yield output, "smlatb", 0
            elif tap == self.k_w - 1:
                yield output, "smlabt", tap - 1


@cache
def pairs_assembly(core: str) -> str:
    """Return the assembly of the function `pairs`, in the order for a core."""
    return _assembled(pairs(), core, 0)


@cache
def singles_assembly(core: str) -> str:
    """Return the assembly of the function `singles`, in the order for a core."""
    return _assembled(singles(), core, 0)


@cache
def rows_assembly(core: str, window: Window, by: str, *, limited: bool) -> str:
    """Return the assembly of the function `rows`, in the order for a core."""
    return _assembled(rows(window, by, limited=limited), core, 4 * len(_LIMITS) * limited)


def _assembled(call: Call, core: str, frame_bytes: int) -> str:
    listing, arguments = call
    listing = ordered(listing, orders_of(core)) if core else listing
    return statement(allocate(listing, {r: number for number, r in enumerate(arguments)}), frame_bytes)


def pairs() -> Call:
    """Return the function that makes words of two columns."""
    b = Block()
    b.group = "the call"
    call = b.core()
    fields = {name: b.load(call, 4 * at, "call") for at, name in enumerate(_EXPAND)}
    to, at, step, plane, zero = (fields[name] for name in ("to", "from", "step", "plane", "zero"))
    third = b.make("add_lsl", plane, plane, imm=(1,))
    begins = b.to_fpu(to, at)
    further = b.to_fpu(fields["pitch"], fields["jump"])
    (width,), (end,) = b.to_fpu(fields["width"]), b.to_fpu(b.make("add_two", to, fields["rows"]))
    with b.loop():
        b.group = "a row"
        row_end = b.make("add_two", to, b.from_fpu(width)[0])
        with b.loop():
            b.group = "two columns"
            first, second = b.load(at, 0, "from"), b.core()
            b.emit("ldr_by", (second,), (at, step), 0, memory="from")
            b.change("add_two", at, fields["next"])
            halves = [b.make("sxtab16", zero, word, imm=(turn,)) for turn in (0, 8) for word in (first, second)]
            for channel in range(4):
                a, c = halves[2 * (channel % 2) : 2 * (channel % 2) + 2]
                word = b.make("pkhbt", a, c) if channel < 2 else b.make("pkhtb", c, a)
                _put(b, word, channel, to, plane, third)
            b.change("add", to, imm=(4,))
            b.repeat_until(to, row_end)
        b.group = "the next row"
        starts = b.from_fpu(*begins)
        b.emit("mov", (to,), (starts[0],))
        b.emit("mov", (at,), (starts[1],))
        for moved, distance in zip((to, at), b.from_fpu(*further), strict=True):
            b.change("add_two", moved, distance)
        b.emit("vmov_pair", begins, (to, at))
        b.repeat_until(to, b.from_fpu(end)[0])
    return b.listing(), (call,)


def singles() -> Call:
    """Return the function that makes a word of one column in each row.

    `step` is how far its high half is moved down at last, 16 or 0, and `next` 16 less that.
    """
    b = Block()
    b.group = "the call"
    call = b.core()
    fields = {name: b.load(call, 4 * at, "call") for at, name in enumerate(_EXPAND) if name != "width"}
    to, at, plane, zero = (fields[name] for name in ("to", "from", "plane", "zero"))
    third = b.make("add_lsl", plane, plane, imm=(1,))
    end = b.make("add_two", to, fields["rows"])
    with b.loop():
        b.group = "a column"
        word = b.load(at, 0, "from")
        for turn in (0, 8):
            low = b.make("sxtab16", zero, word, imm=(turn,))
            high = b.make("lsr", low, imm=(16,))
            b.change("lsl_by", high, fields["next"])
            b.change("lsl", low, imm=(16,))
            b.change("lsr_by", low, fields["step"])
            _put(b, low, turn // 8, to, plane, third)
            _put(b, high, turn // 8 + 2, to, plane, third)
        b.change("add_two", at, fields["jump"])
        b.change("add_two", to, fields["pitch"])
        b.repeat_until(to, end)
    return b.listing(), (call,)


def _put(b: Block, word: Register, channel: int, to: Register, plane: Register, third: Register) -> None:
    """Store a word of a channel; `third` is three times the distance of planes."""
    if channel == 0:
        b.emit("str", (), (word, to), 0, memory="planes 0")
    else:
        by, shift = (third, 0) if channel == 3 else (plane, channel - 1)
        b.emit("str_by", (), (word, to, by), shift, memory=f"planes {channel}")


def rows(window: Window, by: str, *, limited: bool) -> Call:
    """Return the function of rows of outputs, whose codes are made `by` one of three ways and may be limited.

    What moves from channel to channel moves in the argument.
    """
    b = Block()
    b.group = "the call"
    first = call = b.core()
    pitch, zero = (b.to_fpu(_field(b, call, name))[0] for name in ("pitch", "zero"))
    for slot, name in enumerate(_LIMITS if limited else ()):
        b.keep(_field(b, call, name), slot)
    (argument,) = b.to_fpu(call)
    with b.loop():
        b.group = f"a channel, {window.k_h} x {window.k_w}"
        (call,) = b.from_fpu(argument)
        ends = _field(b, call, "ends")
        bias, factor = b.load_list(ends, 2, "ends", fpu=True)
        _set_field(b, call, "ends", ends)
        factors = [factor]
        if by == "multiplier":
            shifts, place = _field(b, call, "shifts"), b.core()
            b.emit("ldrb", (place,), (shifts,), 0, memory="shifts")
            _set_field(b, call, "shifts", b.make("add", shifts, imm=(1,)))
            factors += b.to_fpu(place)
        line, x = _field(b, call, "out"), _field(b, call, "planes")
        (lines_end,) = b.to_fpu(b.make("add_two", line, _field(b, call, "rows")))
        out = b.to_fpu(line, _field(b, call, "step"))
        weights = _field(b, call, "weights")
        count = window.k_h * (window.k_w - 1)
        after = b.make("add", weights, imm=(4 * count,))
        _set_field(b, call, "weights", after)
        if window.held:
            held = b.load_list(weights, count, "weights")
        else:
            begin, end = b.to_fpu(weights, after)
        with b.loop():
            b.group = "a row"
            (call,) = b.from_fpu(argument)
            (row_end,) = b.to_fpu(b.make("add_two", x, _field(b, call, "width")))
            with b.loop():
                name = f"{window.k_h} x {window.k_w}, stride {window.stride}, {window.outputs} outputs"
                b.group = f"{name}, {by}{', limited' if limited else ''}"
                if window.held:
                    sums = _held(b, window, x, pitch, bias, held)
                else:
                    sums = _loaded(b, window, x, pitch, bias, begin, end)
                _codes(b, sums, factors, zero, by)
                limit_codes(b, sums, (0, 1) if limited else None)
                _stored(b, sums, out)
                b.repeat_until(x, b.from_fpu(row_end)[0])
            b.group = "the next row"
            (call,) = b.from_fpu(argument)
            b.change("add_two", x, _field(b, call, "jump"))
            (line,) = b.from_fpu(out[0])
            b.change("add_two", line, _field(b, call, "row"))
            b.emit("vmov", (out[0],), (line,))
            b.repeat_until(line, b.from_fpu(lines_end)[0])
        b.group = "the next channel"
        (call,) = b.from_fpu(argument)
        for name, distance in (("planes", "plane"), ("out", "next")):
            _set_field(b, call, name, b.make("add_two", _field(b, call, name), _field(b, call, distance)))
        b.repeat_until(_field(b, call, "ends"), _field(b, call, "last"))
    return b.listing(), (first,)


def _field(b: Block, call: Register, name: str) -> Register:
    """Return a word of the argument."""
    return b.load(call, 4 * _ROWS.index(name), "call")


def _set_field(b: Block, call: Register, name: str, word: Register) -> None:
    """Change a word of the argument."""
    b.emit("str", (), (word, call), 4 * _ROWS.index(name), memory="call")


def _held(
    b: Block, window: Window, x: Register, pitch: Register, bias: Register, weights: Sequence[Register]
) -> list[Register]:  # fmt: skip
    """Return the sums of a block, with weights in registers; two or more loads follow each other."""
    by = b.from_fpu(pitch)[0] if window.k_h > 1 else x
    (first,) = b.from_fpu(bias)
    sums: dict[int, Register] = {}
    free = len(PLACES[CORE]) - len(weights) - window.outputs - 1 - (window.k_h > 1)
    loads = [(word, row) for word in range(window.words) for row in range(window.k_h)]
    moved = 0
    for k in range(0, len(loads), free):
        inputs = []
        for word, row in loads[k : k + free]:
            if row and word > moved:
                b.change("add", x, imm=(4 * (word - moved),))
                moved = word
            inputs.append(b.load(x, 4 * (word - moved), "x") if row == 0 else _reached(b, x, by, row))
        for (word, row), value in zip(loads[k : k + free], inputs, strict=True):
            for output, op, tap in window.products(word):
                w = weights[row * (window.k_w - 1) + tap]
                if output in sums:
                    b.change_last(op, sums[output], value, w)
                else:
                    sums[output] = b.make(op, value, w, first)
    if moved < window.advance:
        b.change("add", x, imm=(4 * (window.advance - moved),))
    return [sums[output] for output in range(window.outputs)]


def _reached(b: Block, x: Register, by: Register, row: int) -> Register:
    """Return the word of the second or third row."""
    to = b.core()
    b.emit("ldr_by", (to,), (x, by), row - 1, memory="x")
    return to


def _loaded(
    b: Block, window: Window, x: Register, pitch: Register, bias: Register, begin: Register, end: Register
) -> list[Register]:  # fmt: skip
    """Return the sums of a block, with weights loaded for each row of the window."""
    (start,) = b.to_fpu(x)
    (weights,) = b.from_fpu(begin)
    sums = [b.from_fpu(bias)[0] for _ in range(window.outputs)]
    taps = window.k_w - 1
    if window.printed_rows:
        for row in range(window.k_h):
            _row(b, window, x, weights, sums, 4 * taps * row)
            if row + 1 < window.k_h:
                b.change("add_two", x, b.from_fpu(pitch)[0])
    else:
        b.group = f"a row of {window.k_w} columns, stride {window.stride}, {window.outputs} outputs"
        with b.loop():
            _row(b, window, x, weights, sums, 0)
            b.change("add_two", x, b.from_fpu(pitch)[0])
            b.change("add", weights, imm=(4 * taps,))
            b.repeat_until(weights, b.from_fpu(end)[0])
    b.emit("vmov", (x,), (start,))
    b.change("add", x, imm=(4 * window.advance,))
    return sums


def _row(b: Block, window: Window, x: Register, weights: Register, sums: Sequence[Register], at: int) -> None:
    """Add the products of a row of the window: each word of inputs and of weights is loaded once."""
    words: dict[int, Register] = {}
    for number in range(window.words):
        products = list(window.products(number))
        value = b.load(x, 4 * number, "x")
        for tap in sorted({tap for _, _, tap in products} - words.keys()):
            words[tap] = b.load(weights, at + 4 * tap, "weights")
        for output, op, tap in products:
            b.change_last(op, sums[output], value, words[tap])


def _codes(b: Block, sums: Sequence[Register], factors: Sequence[Register], zero: Register, by: str) -> None:
    """Make codes of sums in their places."""
    if by == "line":
        mul, start = b.from_fpu(factors[0])[0], b.from_fpu(zero)[0]
        for total in sums:
            b.emit("smmla", (total,), (total, mul, start))
        for total in sums:
            b.change("ssat8_asr", total, imm=(line().fraction,))
    elif by == "multiplier":
        (multiplier,) = b.from_fpu(factors[0])
        for total in sums:
            b.emit("smmlar", (total,), (total, multiplier, total))
        for total in sums:
            b.emit("add_sign", (total,), (total, total))
        (place,) = b.from_fpu(factors[1])
        for total in sums:
            b.change("asr_by", total, place)
        (point,) = b.from_fpu(zero)
        for total in sums:
            b.change("add_two", total, point)
        for total in sums:
            b.change("ssat8_asr", total, imm=(1,))
    else:
        reals = [real for k in range(0, len(sums), 2) for real in b.to_fpu(*sums[k : k + 2])]
        for op in ("vcvt", "vmul", "vcvtr"):
            for real in reals:
                b.change(op, real, *(factors if op == "vmul" else ()))
        (point,) = b.from_fpu(zero)
        for k in range(0, len(sums), 2):
            b.emit("vmov_pair", sums[k : k + 2], reals[k : k + 2])
        for code in sums:
            b.change("qadd", code, point)
        for code in sums:
            b.change("ssat8", code)


def _stored(b: Block, codes: Sequence[Register], out: Sequence[Register]) -> None:
    """Store codes of outputs beside each other."""
    place, step = b.from_fpu(*out)
    b.emit("strb", (), (codes[0], place), 0, memory="out")
    for number, code in enumerate(codes[1:3]):
        b.emit("strb_by", (), (code, place, step), number, memory="out")
    if len(codes) > 3:
        three = b.make("add_lsl", step, step, imm=(1,))
        b.emit("strb_by", (), (codes[3], place, three), 0, memory="out")
    b.change("add_lsl", place, step, imm=(2 if len(codes) > 3 else 1,))
    b.emit("vmov", (out[0],), (place,))
