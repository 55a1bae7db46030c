"""How the sums of four pixels and a pair of channels become two codes of each pixel (quad_tile.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glowc.asm.block import Block
from glowc.asm.insn import SP, Register
from glowc.asm.isa import GE
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.dsp.ends import line

EVEN_BITS = 8
"""The sum of an even channel of a dual pair is so much further left."""
FLIP = 0x80808080
"""What makes int8 of codes from 0 to 255."""
_PIXELS = range(4)
_SIDES = (0, 1)  # even and odd channels
_ZERO, _LOW, _HIGH = 5, 6, 7  # words of the frame
Sums = tuple[list[Register], list[Register]]
"""Of even and odd channels, of each pixel."""
Codes = Iterator[Register]
"""Of each pixel: two bytes."""


def limit_words(end: str) -> int:
    """Return how many of zero point, lowest and highest code are loaded."""
    return {"u8": 0, "n8": 1, "r8": 1}.get(end, 3)


def keep_limits(b: Block, words: Sequence[Register], by: str, end: str) -> None:
    """Keep zero point, lowest and highest code, as far as the end needs them."""
    for word, slot in zip(words, (_ZERO, _LOW, _HIGH), strict=False):
        if slot == _HIGH or (by, end) != ("scale", "v8"):
            b.emit("str", (), (word, SP), 4 * slot, memory="limits")


def codes_of(b: Block, sums: Sums, ends: Sequence[Register], by: str, end: str, *, dual: bool) -> Codes:
    """Yield the codes of both channels of each pixel; the last instruction for one when it is asked for."""
    b.group = f"codes by {by}, end {end}"
    if dual:
        split(b, sums)
    if by == "line":
        return _line_codes(b, sums, ends, end)
    return (_scaled_codes if by == "scale" else _fixed_codes)(b, sums, ends, end, dual=dual)


def split(b: Block, sums: Sums) -> None:
    """Take the sums of odd channels from those of even ones."""
    for even, odd in zip(*sums, strict=True):
        b.change("sub", even, odd)


def _scaled_codes(b: Block, sums: Sums, scales: Sequence[Register], end: str, *, dual: bool) -> Codes:
    """By float32 scales: the product rounded half to even, the zero point, limits."""
    unsigned = end in ("u8", "v8")
    zero = None if unsigned else b.load(SP, 4 * _ZERO, "limits")
    codes = [b.core() for _ in _PIXELS], [b.core() for _ in _PIXELS]
    rounded_products(b, sums, scales, codes, dual=dual)
    if zero is None:
        for total in (*codes[0], *codes[1]):
            b.change("usat8", total)
    else:
        for both in zip(*codes, strict=True):
            for total in both:
                b.change("qadd", total, zero)
            for total in both:
                b.change("ssat8", total)
    if end in ("v8", "s8"):
        return _limited(b, codes, (_HIGH,) if unsigned else (_LOW, _HIGH), flip=unsigned)
    return _flipped(b, codes) if end == "u8" else _joined(b, codes)


def rounded_products(b: Block, sums: Sums, scales: Sequence[Register], codes: Sums, *, dual: bool) -> None:
    """Multiply the sums by scales, two for all pairs of sums or two for each, and round the products."""
    pairs = [b.to_fpu(*both) for both in zip(*sums, strict=True)]
    for even, odd in pairs:
        b.change("vcvt_fixed" if dual else "vcvt", even, imm=(EVEN_BITS,) if dual else ())
        b.change("vcvt", odd)
    for number, both in enumerate(pairs):
        for real, scale in zip(both, scales[2 * number % len(scales) :], strict=False):
            b.change("vmul", real, scale)
    for real in (real for both in pairs for real in both):
        b.change("vcvtr", real)
    for both, reals in zip(zip(*codes, strict=True), pairs, strict=True):
        b.emit("vmov_pair", both, reals)


def _fixed_codes(b: Block, sums: Sums, ends: Sequence[Register], end: str, *, dual: bool) -> Codes:
    """By multipliers and shifts (runtime_c/dsp/glow_dsp_q31.h)."""
    for total in sums[0] if dual else ():
        b.change("asr", total, imm=(EVEN_BITS,))
    (places,), multipliers = b.from_fpu(ends[0]), b.from_fpu(*ends[1:])
    zero = b.load(SP, 4 * _ZERO, "limits")
    for side in _SIDES:
        for total in sums[side]:
            fixed_code(b, total, multipliers[side], places, zero, end)
        if side == 0:
            b.change("lsr", places, imm=(8,))
    return _limited(b, sums, (_LOW, _HIGH)) if end in ("v8", "s8") else _joined(b, sums)


def _line_codes(b: Block, sums: Sums, ends: Sequence[Register], end: str) -> Codes:
    """By lines, or by scales where a pair has none (runtime_c/dsp/glow_dsp_quads_line.h)."""
    multipliers, start, (begin,) = b.from_fpu(*ends[1:]), b.load(SP, 4 * _ZERO, "limits"), b.from_fpu(ends[0])
    both = (*sums[0], *sums[1])

    def by_line() -> None:
        for total in sums[1]:
            b.emit("add_lsl", (total,), (begin, total), line().shift)
        for side in _SIDES:
            for total in sums[side]:
                b.emit("smmla", (total,), (total, multipliers[side], start))

    def by_scale() -> None:
        for total in sums[1]:
            b.change("add_two", total, begin)
        rounded_products(b, sums, ends[1:], sums, dual=True)
        for total in both:
            b.emit("add_lsl", (total,), (start, total), line().fraction)

    least = 1 << header_number("glow_dsp_quads_line.h", "GLOW_DSP_LINE_MUL_BITS")
    b.either(multipliers[0], by_line, by_scale, least)
    for total in both:
        b.change("ssat8_asr", total, imm=(line().fraction,))
    return _limited(b, sums, (_LOW, _HIGH)) if end == "s8" else _joined(b, sums)


def _joined(b: Block, sums: Sums) -> Codes:
    """Yield both codes of each pixel."""
    for even, odd in zip(*sums, strict=True):
        b.change("bfi", even, odd, imm=(8, 8))
        yield even


def _flipped(b: Block, sums: Sums) -> Codes:
    """Yield both codes of each pixel, from 0 to 255 less 128."""
    for even, odd in zip(*sums, strict=True):
        b.change("orr_lsl", even, odd, imm=(8,))
    for even in sums[0]:
        b.change("eor", even, imm=(FLIP,))
        yield even


def _limited(b: Block, sums: Sums, slots: Sequence[int], *, flip: bool = False) -> Codes:
    """Yield both codes of each pixel, limited to the bytes of words of the frame; `flip`: from 0 to 255 less 128."""
    limits, words = [b.core() for _ in slots], sums[0][0::2]
    b.emit("ldrd" if len(slots) > 1 else "ldr", limits, (SP,), 4 * slots[0], memory="limits")
    for even, odd in zip(*sums, strict=True):
        if flip:
            b.change("orr_lsl", even, odd, imm=(8,))
        else:
            b.change("bfi", even, odd, imm=(8, 8))
    for word, other in zip(words, sums[0][1::2], strict=True):
        b.change("pkhbt", word, other)
        if flip:
            b.change("eor", word, imm=(FLIP,))
    for slot, limit in zip(slots, limits, strict=True):
        for word in words:
            b.emit("ssub8", (b.core(), GE), (word, limit) if slot == _LOW else (limit, word))
            b.emit("sel", (word,), (word, limit, GE))
    for word in words:
        yield word
        yield b.make("lsr", word, imm=(16,))


def fixed_code(b: Block, total: Register, multiplier: Register, places: Register, zero: Register, end: str) -> None:
    """Make a code of a sum in its place; `zero` is 1 + twice the zero point."""
    b.emit("smmlar", (total,), (total, multiplier, total))
    if end in ("n8", "s8"):
        b.emit("add_sign", (total,), (total, total))
    b.change("asr_by", total, places)
    b.change("add_two", total, zero)
    b.change("ssat8_asr", total, imm=(1,))


def limit_codes(b: Block, codes: Sequence[Register], slots: tuple[int, int] | None) -> None:
    """Limit codes to the bytes of the low and the high word of the frame, four at a time; None: they have no limits."""
    for first in range(0, len(codes) if slots else 0, 4):
        word, *others = codes[first : first + 4]
        for number, code in enumerate(others):
            b.change("bfi", word, code, imm=(8 * number + 8, 8))
        for side, slot in enumerate(slots or ()):
            limit = b.kept(slot)
            b.emit("ssub8", (b.core(), GE), (limit, word) if side else (word, limit))
            b.emit("sel", (word,), (word, limit, GE))
        for number, code in enumerate(others):
            b.emit("lsr", (code,), (word,), 8 * number + 8)


def joined_codes(b: Block, codes: Sequence[Register]) -> Register:
    """Return the word of four codes, int8 in the low bytes."""
    b.change("bfi", codes[0], codes[1], imm=(8, 8))
    b.change("bfi", codes[2], codes[3], imm=(8, 8))
    b.change("pkhbt", codes[0], codes[2])
    return codes[0]
