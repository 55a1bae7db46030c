"""Two pixels times blocks of four output channels with SMLAD: conv_s8 and conv_s8q31 (runtime_c/dsp/glow_dsp_gemm.h).

Weights are dual, bytes or wide; a step is two inputs. The loop over steps is entered at one of them. Where `steps` are
given, for dual weights and cores that issue two instructions at a time, a round is as many as divide those of a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import Insn, Listing, Register
from glowc.asm.isa import GE
from glowc.asm.order import ordered, orders_of
from glowc.asm.write import short, statement
from glowc.kernels.dsp.quad_ends import EVEN_BITS, FLIP, fixed_code, joined_codes, rounded_products

CORTEX_M7 = "cortex-m7"
_USUAL_STEPS = 8  # that most layers can have: they share a function
_MOST_STEPS = 12
_FIELDS = 11  # words of the call
_OUT_END, _ZERO, _ACTS_END, _LOW, _HIGH = range(5)  # words of the frame
_FRAME_BYTES = 20
_PAIRS = (0, 1)  # of channels, and of pixels
Sums = Sequence[Sequence[Register]]  # of each pixel: channels 0, 2, 1, 3


@dataclass(frozen=True, slots=True)
class PixelTile:
    """A function: weights of a form, `end` of codes as `stream.ending`; where `fixed`, as `ends.fixed_end`."""

    form: str
    end: str = "s8"
    fixed: bool = False
    steps: int = 0

    @property
    def name(self) -> str:
        """The name of the function."""
        end = "" if self.fixed and self.form != "dual" else f"_{self.end}"
        return f"glow_dsp_gemm_{'q31_' if self.fixed else ''}{self.form}{end}"

    @property
    def twin(self) -> str:
        """The arguments of the C function that does the same, after the call."""
        return f"GLOW_DSP_{self.form.upper()}, glow_dsp_{'q31' if self.fixed else 'scaled'}_codes"

    def assembly(self, steps: int = 0) -> str:
        """Return the assembly of the function; a loop that is entered at a step has so many."""
        return _assembly(self, steps)


def steps_of(groups: int) -> int:
    """Return the steps of a round for so many groups of four inputs."""
    steps = 2 * groups
    if steps % _USUAL_STEPS == 0:
        return _USUAL_STEPS
    return max(n for n in range(1, _MOST_STEPS + 1) if steps % n == 0)


@cache
def _assembly(pixels: PixelTile, steps: int) -> str:
    listing, argument = tile(pixels, steps)
    if pixels.steps:
        return statement(allocate(ordered(listing, orders_of(CORTEX_M7)), {argument: 0}), _FRAME_BYTES)
    return statement(short(allocate(listing, {argument: 0})), _FRAME_BYTES)


def tile(pixels: PixelTile, steps: int = 0) -> tuple[Listing, Register]:
    """Return the function's instructions, before they are ordered, and its argument."""
    b = Block()
    b.group = "the call"
    call = b.core()
    acts, stream, out0, out1, blocks, groups, zero, _, skip, *limits = b.load_list(call, _FIELDS, "call")
    for word, slot in zip((zero, *limits), (_ZERO, _LOW, _HIGH), strict=True):
        b.keep(word, slot)
    b.keep(b.make("add_lsl", out0, blocks, imm=(2,)), _OUT_END)
    acts_end = b.make("add_lsl", acts, groups, imm=(4,))
    entry, ends = [], tuple[Register, ...]()
    if pixels.steps:
        b.keep(acts_end, _ACTS_END)
    else:
        ends = b.to_fpu(acts_end)
        entry = [b.step_place(skip, _step(pixels.form))]
    outs, first = b.to_fpu(out0, out1), b.to_fpu(acts, *entry)
    with b.loop():
        b.group = "biases of four channels"
        biases = b.load_list(stream, 4, "stream")
        at = b.from_fpu(*first)
        sums = [biases, [b.make("mov", bias) for bias in biases]]
        _products(b, pixels, steps, at, stream, sums, ends)
        b.group = f"{'multipliers' if pixels.fixed else 'scales'}, end {pixels.end}"
        codes = (_fixed_codes if pixels.fixed else _scaled_codes)(b, pixels, sums, stream)
        places = b.from_fpu(*outs)
        for pixel, (word, place) in enumerate(zip(codes, places, strict=True)):
            b.emit("str_moving", (place,), (word, place), 4, memory=f"out{pixel}")
        b.emit("vmov_pair", outs, places)
        b.repeat_until(places[0], b.kept(_OUT_END))
    return b.listing(), call


def _products(
    b: Block, pixels: PixelTile, steps: int, at: Sequence[Register], stream: Register, sums: Sums,
    ends: Sequence[Register],
) -> None:  # fmt: skip
    """Add the products of all inputs, which begin at the first register; the loop at the second."""
    x, *entry = at
    if entry:
        b.go_to_step(*entry)
    with b.loop_of_steps(pixels.steps or steps, *entry) as numbers:
        b.group = "two inputs of two pixels, four channels"
        for number in numbers:
            if entry:
                _add_step(b, pixels.form, x, stream, sums)
                continue
            words = [b.load(stream, 8 * number + 4 * pair, "stream") for pair in _PAIRS]
            acts = [b.load(x, 8 * number + 4 * pixel, "acts") for pixel in _PAIRS]
            for pair, word in zip(_PAIRS, words, strict=True):
                _add(b, sums, pair, acts, word)
                _add(b, sums, 2 + pair, acts, b.make("sxtb16", word, imm=(0,)))
        b.group = "the next round"
        if pixels.steps:
            b.change("add", x, imm=(8 * pixels.steps,))
            b.change("add", stream, imm=(8 * pixels.steps,))
        b.repeat_until(x, *(b.from_fpu(*ends) if ends else [b.kept(_ACTS_END)]))


def _step(form: str) -> Sequence[Insn]:
    b = Block()
    _add_step(b, form, b.core(), b.core(), [[b.core() for _ in range(4)] for _ in _PAIRS])
    return [item for item in b.listing() if isinstance(item, Insn)]


def _add_step(b: Block, form: str, x: Register, stream: Register, sums: Sums) -> None:
    """Add the products of two inputs, past which activations and weights move."""
    acts = _moving(b, x, 2, "acts")
    for pair in _PAIRS if form == "bytes" else ():
        (word,) = _moving(b, stream, 1, "stream")
        _add(b, sums, pair, acts, b.make("sxtb16", word, imm=(8,)))
        b.change("sxtb16", word, imm=(0,))
        _add(b, sums, 2 + pair, acts, word)
    for pair in _PAIRS if form == "wide" else ():
        for odd, word in zip((0, 2), _moving(b, stream, 2, "stream"), strict=True):
            _add(b, sums, odd + pair, acts, word)
    words = _moving(b, stream, 2, "stream") if form == "dual" else []
    for pair, word in enumerate(words):
        _add(b, sums, pair, acts, word)
    for word in words:
        b.change("sxtb16", word, imm=(0,))
    for pair, word in enumerate(words):
        _add(b, sums, 2 + pair, acts, word)


def _add(b: Block, sums: Sums, number: int, acts: Sequence[Register], word: Register) -> None:
    """Add the products of a word of weights to a sum of each pixel."""
    for pixel in _PAIRS:
        b.change_last("smlad", sums[pixel][number], acts[pixel], word)


def _moving(b: Block, base: Register, words: int, memory: str) -> list[Register]:
    """Return one word or two, past which the base moves."""
    to = [b.core() for _ in range(words)]
    b.emit("ldr_moving" if words == 1 else "ldrd_moving", (*to, base), (base,), 4 * words, memory=memory)
    return to


def _scaled_codes(b: Block, pixels: PixelTile, sums: Sums, stream: Register) -> list[Register]:
    """Return the codes of both pixels by float32 scales: the product rounded half to even, the zero point, limits."""
    end, dual, at_once = pixels.end, pixels.form == "dual", 1 if pixels.steps else 2
    scales = b.load_list(stream, 4, "stream", fpu=True)
    zero = b.kept(_ZERO) if end in ("n8", "s8") else None
    words = []
    for total in sums:
        for pair in range(0, 2, at_once):
            both = list(total[pair : pair + at_once]), list(total[2 + pair : 2 + pair + at_once])
            for even, odd in zip(*both, strict=True) if dual else ():
                b.change("sub", even, odd)
            rounded_products(b, both, scales[2 * pair :], both, dual=dual)
        codes = [total[number] for number in (0, 2, 1, 3)]
        for code in codes:
            if zero is None:
                b.change("usat8", code)
            else:
                b.change("qadd", code, zero)
                b.change("ssat8", code)
        words.append(_joined_unsigned(b, codes) if zero is None else joined_codes(b, codes))
    _limit(b, words, {"v8": (_HIGH,), "s8": (_LOW, _HIGH)}.get(end, ()))
    return words


def _fixed_codes(b: Block, pixels: PixelTile, sums: Sums, stream: Register) -> list[Register]:
    """Return the codes of both pixels by multipliers and shifts (runtime_c/dsp/glow_dsp_q31.h)."""
    zero, places = b.kept(_ZERO), b.load(stream, 0, "stream")
    for channel in range(4):
        pair, odd = divmod(channel, 2)
        multiplier = b.load(stream, 4 + 4 * channel, "stream")
        for pixel in _PAIRS:
            total = sums[pixel][2 * odd + pair]
            if not odd and pixels.form == "dual":
                b.change("sub", total, sums[pixel][2 + pair])
                b.change("asr", total, imm=(EVEN_BITS,))
            fixed_code(b, total, multiplier, places, zero, pixels.end)
        if channel < 3:
            b.change("lsr", places, imm=(8,))
    b.change("add", stream, imm=(20,))
    words = [joined_codes(b, [sums[pixel][i] for i in (0, 2, 1, 3)]) for pixel in _PAIRS]
    _limit(b, words, (_LOW, _HIGH) if pixels.end in ("v8", "s8") else ())
    return words


def _joined_unsigned(b: Block, codes: Sequence[Register]) -> Register:
    """Return the word of four codes from 0 to 255, whose zero point is -128."""
    for into, other, bits in ((0, 1, 8), (2, 3, 8), (0, 2, 16)):
        b.change("orr_lsl", codes[into], codes[other], imm=(bits,))
    b.change("eor", codes[0], imm=(FLIP,))
    return codes[0]


def _limit(b: Block, words: Sequence[Register], slots: Sequence[int]) -> None:
    """Limit all bytes to those of words of the frame."""
    for slot in slots:
        limit = b.kept(slot)
        for word in words:
            b.emit("ssub8", (b.core(), GE), (word, limit) if slot == _LOW else (limit, word))
            b.emit("sel", (word,), (word, limit, GE))
