"""Two pixels times blocks of four output channels with SMLAD: conv_s8 for cores that issue two instructions at a time.

The function has the arguments, the stream and the scratch of glow_dsp_gemm_dual (runtime_c/dsp/glow_dsp_gemm.h): a
word of weights is 256 * those of an even channel + those of the odd one after it. A round of its loop is as many steps
of two inputs as divide those of the layer, so that no loop is entered in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import Listing, Register
from glowc.asm.isa import GE
from glowc.asm.order import ordered, orders_of
from glowc.asm.write import statement

CORTEX_M7 = "cortex-m7"
_USUAL_STEPS = 8  # that most layers can have: they share a function
_MOST_STEPS = 12
_FIELDS = {
    "acts": 0, "stream": 4, "out0": 8, "out1": 12, "blocks": 16, "groups": 20, "out_zp": 24, "low": 36, "high": 40,
}  # fmt: skip
_OUT_END, _ZERO, _ACTS_END, _LOW, _HIGH = range(5)  # words of the frame
_FRAME_BYTES = 20
_FLIP = 0x80808080  # codes from 0 to 255 to int8
_EVEN_BITS = 8  # the sum of an even channel is so much further left
_PAIRS = (0, 1)  # of channels, and of pixels
Sums = Sequence[Sequence[Register]]  # of each pixel: channels 0, 2, 1, 3


def steps_of(groups: int) -> int:
    """Return the steps of a round for so many groups of four inputs."""
    steps = 2 * groups
    if steps % _USUAL_STEPS == 0:
        return _USUAL_STEPS
    return max(n for n in range(1, _MOST_STEPS + 1) if steps % n == 0)


@cache
def assembly(steps: int, end: str, *, fixed: bool) -> str:
    """Return the assembly of the function: `end` as `stream.ending`, where codes are `fixed` as `ends.fixed_end`."""
    listing, argument = tile(steps, end, fixed=fixed)
    return statement(allocate(ordered(listing, orders_of(CORTEX_M7)), {argument: 0}), _FRAME_BYTES)


def tile(steps: int, end: str, *, fixed: bool) -> tuple[Listing, Register]:
    """Return the function's instructions, before they are ordered, and its argument."""
    b = Block()
    b.group = "the call"
    call = b.core()
    acts, stream, out0, out1, blocks, groups, *rest = (b.load(call, at, "call") for at in _FIELDS.values())
    for word, slot in zip(rest, (_ZERO, _LOW, _HIGH), strict=True):
        b.keep(word, slot)
    b.keep(b.make("add_lsl", out0, blocks, imm=(2,)), _OUT_END)
    b.keep(b.make("add_lsl", acts, groups, imm=(4,)), _ACTS_END)
    outs, (first,) = b.to_fpu(out0, out1), b.to_fpu(acts)
    with b.loop():
        b.group = "biases of four channels"
        biases = b.load_list(stream, 4, "stream")
        (x,) = b.from_fpu(first)
        sums = [biases, [b.make("mov", bias) for bias in biases]]
        _products(b, steps, x, stream, sums)
        b.group = f"{'multipliers' if fixed else 'scales'}, end {end}"
        codes = (_fixed_codes if fixed else _scaled_codes)(b, sums, stream, end)
        places = b.from_fpu(*outs)
        for pixel, (word, place) in enumerate(zip(codes, places, strict=True)):
            b.emit("str_moving", (place,), (word, place), 4, memory=f"out{pixel}")
        b.emit("vmov_pair", outs, places)
        b.repeat_until(places[0], b.kept(_OUT_END))
    return b.listing(), call


def _products(b: Block, steps: int, x: Register, stream: Register, sums: Sums) -> None:
    """Add the products of all inputs."""
    with b.loop_of_steps(steps) as numbers:
        b.group = "two inputs of two pixels, four channels"
        for number in numbers:
            words = [b.load(stream, 8 * number + 4 * pair, "stream") for pair in _PAIRS]
            acts = [b.load(x, 8 * number + 4 * pixel, "acts") for pixel in _PAIRS]
            for pair, word in zip(_PAIRS, words, strict=True):
                for pixel in _PAIRS:
                    b.change_last("smlad", sums[pixel][pair], acts[pixel], word)
                odd = b.make("sxtb16", word, imm=(0,))
                for pixel in _PAIRS:
                    b.change_last("smlad", sums[pixel][2 + pair], acts[pixel], odd)
        b.group = "the next round"
        b.change("add", x, imm=(8 * steps,))
        b.change("add", stream, imm=(8 * steps,))
        b.repeat_until(x, b.kept(_ACTS_END))


def _scaled_codes(b: Block, sums: Sums, stream: Register, end: str) -> list[Register]:
    """Return the codes of both pixels by float32 scales: the product rounded half to even, the zero point, limits."""
    scales = b.load_list(stream, 4, "stream", fpu=True)
    zero = b.kept(_ZERO) if end in ("n8", "s8") else None
    words = []
    for pixel in _PAIRS:
        codes: list[Register] = []
        for pair in _PAIRS:
            even, odd = sums[pixel][pair], sums[pixel][2 + pair]
            b.change("sub", even, odd)
            reals = b.to_fpu(even, odd)
            b.change("vcvt_fixed", reals[0], imm=(_EVEN_BITS,))
            b.change("vcvt", reals[1])
            for real, scale in zip(reals, scales[2 * pair :], strict=False):
                b.change("vmul", real, scale)
                b.change("vcvtr", real)
            codes += b.from_fpu(*reals)
        for code in codes:
            if zero is None:
                b.change("usat8", code)
            else:
                b.change("qadd", code, zero)
                b.change("ssat8", code)
        words.append(_joined_unsigned(b, codes) if zero is None else joined_codes(b, codes))
    _limit(b, words, {"v8": (_HIGH,), "s8": (_LOW, _HIGH)}.get(end, ()))
    return words


def _fixed_codes(b: Block, sums: Sums, stream: Register, end: str) -> list[Register]:
    """Return the codes of both pixels by multipliers and shifts (runtime_c/dsp/glow_dsp_q31.h)."""
    zero, places = b.kept(_ZERO), b.load(stream, 0, "stream")
    for channel in range(4):
        pair, odd = divmod(channel, 2)
        multiplier = b.load(stream, 4 + 4 * channel, "stream")
        for pixel in _PAIRS:
            total = sums[pixel][2 * odd + pair]
            if not odd:
                b.change("sub", total, sums[pixel][2 + pair])
                b.change("asr", total, imm=(_EVEN_BITS,))
            fixed_code(b, total, multiplier, places, zero, end)
        if channel < 3:
            b.change("lsr", places, imm=(8,))
    b.change("add", stream, imm=(20,))
    words = [joined_codes(b, [sums[pixel][i] for i in (0, 2, 1, 3)]) for pixel in _PAIRS]
    _limit(b, words, (_LOW, _HIGH) if end in ("v8", "s8") else ())
    return words


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


def _joined_unsigned(b: Block, codes: Sequence[Register]) -> Register:
    """Return the word of four codes from 0 to 255, whose zero point is -128."""
    for into, other, bits in ((0, 1, 8), (2, 3, 8), (0, 2, 16)):
        b.change("orr_lsl", codes[into], codes[other], imm=(bits,))
    b.change("eor", codes[0], imm=(_FLIP,))
    return codes[0]


def _limit(b: Block, words: Sequence[Register], slots: Sequence[int]) -> None:
    """Limit all bytes to those of words of the frame."""
    for slot in slots:
        limit = b.kept(slot)
        for word in words:
            b.emit("ssub8", (b.core(), GE), (word, limit) if slot == _LOW else (limit, word))
            b.emit("sel", (word,), (word, limit, GE))
