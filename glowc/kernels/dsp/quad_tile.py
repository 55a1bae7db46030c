"""Four pixels times pairs of output channels with SMLAD, of one quad of pixels or of several (glow_dsp_quad.h).

A step is two inputs of every pixel, four words, and of the weights
    dual   one word, 256 * weight of the even channel + weight of the odd one: SMLAD sums 256 * even + odd, then, after
           SXTB16, odd alone;
    bytes  one word, whose halfwords are the bytes of the odd and the even channel's weight;
    wide   two words, one per channel.
The first step of a pair begins its sums, the others are those of a loop that is entered at one of its steps. Weights
are loaded when they are needed, or `waiting` in the registers of the FPU, where a load costs two cycles by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import FLAGS, SP, Insn, Listing, Register
from glowc.asm.isa import Kind
from glowc.asm.write import short, statement
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.dsp.quad_ends import EVEN_BITS, Codes, Sums, codes_of, keep_limits, limit_words, split

WAITING_WORDS = header_number("glow_dsp_quad.h", "GLOW_DSP_QUAD_WAITING_WORDS")
STEPS, WIDE_STEPS = (header_number("glow_dsp_quad.h", f"GLOW_DSP_QUAD_{name}STEPS") for name in ("", "WIDE_"))
_FPU = 32  # registers
_LOW_ONES = (Kind.PLAIN, Kind.STORE)  # have registers that short instructions name
_PIXELS = range(4)
_SIDES = (0, 1)  # even and odd channels
_OUTS, _COUNT = 0, 4  # words of the frame, before those of the limits
_FRAME_BYTES = 32
_OUT = "out"  # memory of the places for codes or sums


@dataclass(frozen=True, slots=True)
class QuadTile:
    """A function of the family: weights of a form, sums that end `by` scale, multiplier or line, or stay "sums".

    `end` of codes as `stream.ending`, by multipliers as `ends.fixed_end`; `many` quads.
    """

    form: str
    by: str
    end: str = "s8"
    many: bool = False

    @property
    def name(self) -> str:
        """The name of the function."""
        by = {"scale": "", "multiplier": "q31_", "line": "", "sums": "sums_"}[self.by]
        form = "line" if self.by == "line" else self.form
        end = f"_{self.end}" if self.form == "dual" and self.by != "sums" else ""
        return f"glow_dsp_quad{'s' * self.many}_{by}{form}{end}"

    @property
    def call(self) -> str:
        """The type of its argument."""
        return f"glow_dsp_quad{'s' * self.many}_t"

    @property
    def twin(self) -> str:
        """The statement that does in C what it does with one quad."""
        by = {"scale": "", "multiplier": "q31_", "line": "line_", "sums": "sums_"}[self.by]
        form = "" if self.by == "line" else f", GLOW_DSP_QUAD_AS_{self.form.upper()}"
        return f"glow_dsp_quad_{by}twin({'&one' if self.many else 'q'}{form});"

    def assembly(self, *, waiting: bool) -> str:
        """Return the assembly of the function."""
        return _assembly(self, waiting)


@cache
def _assembly(quad: QuadTile, waiting: bool) -> str:
    listing, argument = tile(quad, waiting=waiting)
    return statement(short(allocate(listing, {argument: 0}, _LOW_ONES, _FPU)), _FRAME_BYTES)


def tile(quad: QuadTile, *, waiting: bool) -> tuple[Listing, Register]:
    """Return the function's instructions and its argument."""
    b = Block()
    b.group = "the call"
    call = b.core()
    (_quads if quad.many else _quad)(b, quad, _Waiting(b, quad.form) if waiting else _Ahead(b, quad.form), call)
    return b.listing(), call


class _Ahead:
    """Products whose weights are loaded when they are needed; no instruction uses what the one before it loaded."""

    def __init__(self, b: Block, form: str) -> None:
        self.b, self.form = b, form
        self.steps = WIDE_STEPS if form == "wide" else STEPS

    def prepare(self, acts: Register, acts_end: Register, skip: Register) -> None:
        """Keep where activations begin and end, and the step of so many to skip."""
        b = self.b
        self.end, self.first = b.to_fpu(acts_end, acts)
        (self.entry,) = b.to_fpu(b.step_place(skip, self._step()))

    def biases(self, stream: Register, *, line: bool) -> list[Register]:
        """Return the biases of a pair, which no first step's weights come with."""
        b = self.b
        if line:
            bias = b.core()
            b.emit("ldr_moving", (bias, stream), (stream,), 4, memory="stream")
            return [bias, b.make("mov_imm", imm=(0,))]
        biases = [b.core(), b.core()]
        b.emit("ldrd_moving", (*biases, stream), (stream,), 8, memory="stream")
        return biases

    def sums(self, stream: Register, biases: Sequence[Register], x: Register) -> Sums:
        """Return the sums of a pair from its biases on; the activations begin at x, which goes to their end."""
        b = self.b
        sums = _new_sums(b, biases)
        b.group = "the first step"
        self._add(b, x, stream, sums, biases)
        (entry,) = b.from_fpu(self.entry)
        b.go_to_step(entry)
        with b.loop_of_steps(self.steps, entry) as numbers:
            b.group = "two inputs of four pixels, two channels"
            for _ in numbers:
                self._add(b, x, stream, sums)
            b.group = "the next round"
            b.repeat_until(x, *b.from_fpu(self.end))
        return sums

    def _step(self) -> Sequence[Insn]:
        b = Block()
        self._add(b, b.core(), b.core(), _new_sums(b, (b.core(), b.core())))
        return [item for item in b.listing() if isinstance(item, Insn)]

    def _add(self, b: Block, x: Register, stream: Register, sums: Sums, biases: Sequence[Register] = ()) -> None:
        """Add the products of a step."""

        def act() -> Register:
            word = b.core()
            b.emit("ldr_moving", (word, x), (x,), 4, memory="acts")
            return word

        words = [b.core(), b.core()]
        if self.form == "wide":
            weights = [b.core(), b.core()]
            b.emit("ldrd_moving", (*weights, stream), (stream,), 8, memory="stream")
            words = [act(), act()]
        else:
            even = b.core()
            b.emit("ldr_moving", (even, stream), (stream,), 4, memory="stream")
            b.emit("ldrd_moving", (*words, x), (x,), 8, memory="acts")
            weights = [even, b.make("sxtb16", even, imm=(0,))]
            if self.form == "bytes":
                b.change("sxtb16", even, imm=(8,))
        for pixel in _PIXELS:
            for side in _SIDES:
                _add_to(b, sums, side, pixel, words[pixel], weights[side], biases)
            if pixel < 2:
                words.append(act())


class _Waiting:
    """Products whose weights wait in registers of the FPU, which are loaded once a round."""

    def __init__(self, b: Block, form: str) -> None:
        self.b, self.form = b, form
        self.each = 2 if form == "wide" else 1
        self.steps = WAITING_WORDS // self.each
        self.words = [b.fpu() for _ in range(WAITING_WORDS)]

    def prepare(self, acts: Register, acts_end: Register, skip: Register) -> None:
        """Keep where activations begin and end, the step of so many to skip, and how far its words reach back."""
        b = self.b
        self.next, self.end = b.to_fpu(acts, acts_end)
        self.first, self.entry = b.to_fpu(acts, b.step_place(skip, self._step()))
        (self.back,) = b.to_fpu(b.make("lsl", skip, imm=(1 + self.each,)))

    def biases(self, stream: Register, *, line: bool) -> list[Register]:
        """Return the biases of a pair, and the weights of its first step."""
        b = self.b
        words = b.load_list(stream, (1 if line else 2) + self.each, "stream")
        return [words[0], b.make("mov_imm", imm=(0,)), *words[1:]] if line else words

    def sums(self, stream: Register, biases: Sequence[Register], x: Register) -> Sums:
        """Return the sums of a pair from its biases on; the activations begin at x, which goes to their end."""
        b = self.b
        even, odd, first, *second = biases
        b.change("sub", stream, *b.from_fpu(self.back))
        self._load(stream)
        b.group = "the first step"
        kept = b.to_fpu(*(second or (first,)))[0] if self.form != "dual" else self.words[0]
        sums = _new_sums(b, (even, odd))
        self._add(b, x, sums, lambda: first, kept, (even, odd))
        (entry,) = b.from_fpu(self.entry)
        b.go_to_step(entry)
        with b.loop_of_steps(self.steps, entry) as numbers:
            b.group = "weights of a round"
            self._load(stream)
            b.group = "two inputs of four pixels, two channels"
            for number in numbers:
                words = self.words[self.each * number :]
                self._add(b, x, sums, lambda words=words: b.from_fpu(words[0])[0], words[self.each - 1])  # type: ignore[misc]
            b.group = "the next round"
            end = b.core()
            b.emit("vmov_pair", (stream, end), (self.next, self.end))
            b.repeat_until(x, end)
        return sums

    def _load(self, stream: Register) -> None:
        self.b.emit("vldm", (*self.words, stream), (stream,), WAITING_WORDS, memory="stream")
        self.b.emit("vmov", (self.next,), (stream,))

    def _step(self) -> Sequence[Insn]:
        b = Block()
        self._add(b, b.core(), _new_sums(b, (b.core(), b.core())), lambda: b.from_fpu(b.fpu())[0], b.fpu())
        return [item for item in b.listing() if isinstance(item, Insn)]

    def _add(
        self, b: Block, x: Register, sums: Sums, weight: Callable[[], Register], other: Register,
        biases: Sequence[Register] = (),
    ) -> None:  # fmt: skip
        """Add the products of a step: of even channels with a weight, then with the one in `other`."""
        acts = b.load_list(x, 4, "acts")
        word = weight()
        if self.form == "bytes":
            b.change("sxtb16", word, imm=(8,))
        for pixel in _PIXELS:
            _add_to(b, sums, 0, pixel, acts[pixel], word, biases)
        if self.form != "dual":
            (word,) = b.from_fpu(other)
        if self.form != "wide":
            b.change("sxtb16", word, imm=(0,))
        for pixel in _PIXELS:
            _add_to(b, sums, 1, pixel, acts[pixel], word, biases)


def _new_sums(b: Block, biases: Sequence[Register]) -> Sums:
    """Return registers for the sums of a pair; those of the last pixel are where its biases are."""
    even, odd = ([*(b.core() for _ in _PIXELS[:-1]), bias] for bias in biases[:2])
    return even, odd


def _add_to(
    b: Block, sums: Sums, side: int, pixel: int, act: Register, weight: Register, biases: Sequence[Register]
) -> None:  # fmt: skip
    """Add a product to a sum, or to its bias."""
    total = sums[side][pixel]
    b.emit("smlad", (total,), (act, weight, biases[side] if biases else total))


def _quad(b: Block, quad: QuadTile, product: _Ahead | _Waiting, call: Register) -> None:
    """Append the function of one quad."""
    acts, stream, *outs, blocks = b.load_list(call, 7, "call")
    acts_end, skip, *limits = b.load_list(call, 2 + (0 if quad.by == "sums" else limit_words(quad.end)), "call")
    if quad.by == "sums":
        b.emit("strd", (), (outs[1], b.make("neg", blocks), SP), 0, memory=_OUT)
    else:
        keep_limits(b, limits, quad.by, quad.end)
        for pixel, out in enumerate(outs):
            b.change("add_lsl", out, blocks, imm=(1,))
            b.emit("str", (), (out, SP), 4 * (_OUTS + pixel), memory="places")
        b.emit("str", (), (b.make("lsl", b.make("neg", blocks), imm=(1,)), SP), 4 * _COUNT, memory="places")
    product.prepare(acts, acts_end, skip)
    with b.loop():
        sums, ends = _sums(b, quad, product, stream, b.core())
        if quad.by == "sums":
            _store_sums(b, quad, sums)
        else:
            _store_codes(b, codes_of(b, sums, ends, quad.by, quad.end, dual=quad.form == "dual"))
        b.emit("bne", (), (FLAGS,))


def _sums(
    b: Block, quad: QuadTile, product: _Ahead | _Waiting, stream: Register, x: Register
) -> tuple[Sums, list[Register]]:  # fmt: skip
    """Return the sums of a pair of channels, and what its codes are made by, in the FPU; of one quad x begins here."""
    b.group = "biases of a pair of channels"
    ends: list[Register] = []
    if quad.by == "sums":
        b.change("add", stream, imm=(8,))
    else:
        ends = b.load_list(stream, 2 if quad.by == "scale" else 3, "stream", fpu=True)
    biases = product.biases(stream, line=quad.by == "line")
    if not quad.many:
        b.emit("vmov", (x,), (product.first,))
    return product.sums(stream, biases, x), ends


def _store_sums(b: Block, quad: QuadTile, sums: Sums) -> None:
    """Store the sums as they are, the even channel of four pixels, then the odd one; count."""
    b.group = "sums"
    if quad.form == "dual":
        split(b, sums)
    out, count = b.core(), b.core()
    b.emit("ldrd", (out, count), (SP,), 0, memory=_OUT)
    for total in sums[0] if quad.form == "dual" else ():
        b.change("asr", total, imm=(EVEN_BITS,))
    for number, total in enumerate((*sums[0], *sums[1])):
        b.emit("str", (), (total, out), 4 * number, memory="out1")
    b.change("add", out, imm=(32,))
    b.emit("count", (count, FLAGS), (count,), 1)
    b.emit("strd", (), (out, count, SP), 0, memory=_OUT)


def _store_codes(b: Block, codes: Codes) -> None:
    """Store two codes of each pixel, and count."""
    found = [next(codes) for _ in _PIXELS[:-1]]
    outs, count = [b.core() for _ in _PIXELS], b.core()
    b.emit("ldm_still", (*outs, count, SP), (SP,), len(outs) + 1, memory="places")
    for pixel, (code, out) in enumerate(zip((*found, *codes), outs, strict=True)):
        b.emit("strh_at", (), (code, out, count), memory=f"out{pixel}")
    b.emit("count", (count, FLAGS), (count,), 2)
    b.emit("str", (), (count, SP), 4 * _COUNT, memory="places")


def _quads(b: Block, quad: QuadTile, product: _Ahead | _Waiting, call: Register) -> None:
    """Append the function of several quads: all of a pair of channels, then the next pair."""
    acts, stream, out, stride, step, quads, blocks, quad_bytes = b.load_list(call, 8, "call")
    skip, *limits = b.load_list(call, 1 + limit_words(quad.end), "call")
    keep_limits(b, limits, quad.by, quad.end)
    acts_end = b.make("add_two", acts, quad_bytes)
    end, last = b.make("add_lsl", out, blocks, imm=(1,)), b.make("mla", quads, quad_bytes, acts)
    again = b.make("mla", quads, b.make("neg", step), b.make("mov_imm", imm=(2,)))
    product.prepare(acts, acts_end, skip)
    to, (each, last_end) = b.to_fpu(out, stride), b.to_fpu(quad_bytes, last)
    firsts, again_end, (words, move) = b.to_fpu(acts, acts_end), b.to_fpu(again, end), b.to_fpu(stream, step)
    with b.loop():
        with b.loop():
            b.group = "the next quad"
            b.emit("vmov", (to[0],), (out,))
            b.emit("vmov", (product.end,), (acts_end,))
            b.emit("vmov", (stream,), (words,))
            sums, codes_by = _sums(b, quad, product, stream, acts)
            _store_strided(b, out, to, codes_of(b, sums, codes_by, quad.by, quad.end, dual=quad.form == "dual"))
            b.change("add_two", out, *b.from_fpu(move))
            size, ends = b.from_fpu(each, last_end)
            b.emit("add_two", (acts_end,), (acts, size))
            b.repeat_until(acts, ends)
        b.group = "the next pair of channels"
        b.emit("vmov", (words,), (stream,))
        distance, ends = b.from_fpu(*again_end)
        b.change("add_two", out, distance)
        b.emit("vmov_pair", (acts, acts_end), firsts)
        b.repeat_until(out, ends)


def _store_strided(b: Block, place: Register, to: Sequence[Register], codes: Codes) -> None:
    """Store two codes of each pixel at a place and so far apart."""
    found, stride = list(codes), b.core()
    b.emit("vmov_pair", (place, stride), to)
    thrice = b.make("add_lsl", stride, stride, imm=(1,))
    b.emit("strh", (), (found[0], place), 0, memory="out0")
    b.emit("strh_at", (), (found[1], place, stride), memory="out0")
    b.emit("strh_by", (), (found[2], place, stride), 1, memory="out0")
    b.emit("strh_at", (), (found[3], place, thrice), memory="out0")
