"""A row of inputs times blocks of four or eight outputs with SMLAD: fc_s8 and fc_s8q31 (runtime_c/dsp/glow_dsp_fc.h).

A group is four inputs: 0 and 2, 1 and 3, which SXTB16 takes out of a word. Their zero point is in the biases. Blocks:
    dual   of four or eight outputs, two in a word of weights; sums of the odd ones are crossed (glow_dsp_fc.h);
    bytes  the same words, whose halfwords are the bytes of both weights, of four outputs;
    wide   of four outputs, a word each.
The loop over groups is entered at one of its steps. Where `steps` are given, for cores that issue two instructions at a
time, a step is two groups, and a round is as many as divide those of the layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import FLAGS, Insn, Listing, Register
from glowc.asm.order import ordered, orders_of
from glowc.asm.write import short, statement
from glowc.kernels.dsp.common_factor import EXACT, LEAD, LONG, SHORT
from glowc.kernels.dsp.forms import GROUP
from glowc.kernels.dsp.pixel_tile import CORTEX_M7
from glowc.kernels.dsp.quad_ends import EVEN_BITS, fixed_code, joined_codes, rounded_products

INPUTS = 2 * GROUP
"""Inputs of a step of those that divide a layer's."""
_MOST_STEPS = 8
_ROUND = {4: 4, 8: 5}
"""Groups of a round that is entered at one, by outputs: loop and ending fit the 1 KB of flash that chips keep."""
_FIELDS = 9  # words of the call
_PAIRS_OF_EIGHT = range(4)
_TIMES = ((0, 1, 2, 4, 7), (3, 5, 6, 8, 9))  # of the instructions of pairs of outputs
_CHANNELS = (0, 2, 1, 3)  # of the sums of a block of four: even ones first


@dataclass(frozen=True, slots=True)
class RowTile:
    """A function: weights of a form, codes `by` scale or multiplier, or one factor in "short" or "exact" form.

    `end` of multipliers as `ends.fixed_end`, without limits. `rest`: groups after the others, as halfwords at a place
    of their own.
    """

    form: str
    by: str
    end: str = "n8"
    outputs: int = 4
    rest: int = 0
    steps: int = 0

    @property
    def name(self) -> str:
        """The name of the function."""
        end = f"_{self.end}" if self.by == "multiplier" else ""
        more = f"{f'_rest{self.rest}' if self.rest else ''}{f'_steps{self.steps}' if self.steps else ''}"
        return f"glow_dsp_row{self.outputs}_{self.form}_{self.by}{end}{more}"

    @property
    def twin(self) -> str:
        """The arguments of the C function that does the same, after the call."""
        end = {"scale": "scaled", "multiplier": "q31"}.get(self.by, "common")
        return f"GLOW_DSP_{self.form.upper()}, {self.outputs}, {self.rest}, glow_dsp_{end}_codes"

    @property
    def round(self) -> int:
        """The groups of a round."""
        return 2 * self.steps or _ROUND[self.outputs]

    def assembly(self, *, single: bool = False) -> str:
        """Return the assembly of the function; `single`: by loads of one word where others would take two."""
        return _assembly(self, single)


def steps_of(inputs: int) -> int:
    """Return the steps of a round for so many inputs, a multiple of INPUTS."""
    return max(n for n in range(1, _MOST_STEPS + 1) if inputs // INPUTS % n == 0)


@cache
def _assembly(row: RowTile, single: bool) -> str:
    listing, argument = tile(row, single=single)
    listing = ordered(listing, orders_of(CORTEX_M7)) if row.steps else listing
    return statement(short(allocate(listing, {argument: 0})), 8 if row.steps else 0)


def tile(row: RowTile, *, single: bool = False) -> tuple[Listing, Register]:
    """Return the function's instructions, before they are ordered, and its argument."""
    b = Block()
    b.group = "the call"
    call = b.core()
    acts, stream, out, _, blocks, groups, zero, rest, skip = b.load_list(call, _FIELDS, "call")
    out_end = b.make("add_lsl", out, blocks, imm=(row.outputs.bit_length() - 1,))
    acts_end = b.make("add_lsl", acts, groups, imm=(2,))
    ends = b.to_fpu(acts_end, out_end)
    if row.steps:
        b.keep(acts_end, 0)
    (place,) = b.to_fpu(out)
    entry = [] if row.steps else [b.step_place(skip, _step(row, single))]
    first = b.to_fpu(acts, *entry)
    others = b.to_fpu(rest) if row.rest else ()
    products = _of_inputs(b, acts, acts_end, rest, row.rest, 2 if row.steps else 1) if row.form == "dual" else zero
    if row.by in ("short", "exact"):
        mul, end, more, places = b.load_list(stream, LEAD, "stream")
        b.emit("rsb_lsl", (more,), (more, products), EVEN_BITS)
        kept = (*b.to_fpu(mul, end), *b.to_fpu(more, places), *b.to_fpu(products))
    else:
        kept = b.to_fpu(zero, products)
    with b.loop():
        b.group = f"biases of {row.outputs} outputs"
        sums = b.load_list(stream, row.outputs, "stream")
        x, *at = b.from_fpu(*first)
        _products(b, row, single, (x, *at), stream, sums, ends[0])
        if row.rest:
            b.group = "groups after the others"
            (x,) = b.from_fpu(*others)
            for _ in range(row.rest):
                _add(b, row, [_moving(b, x, "rest"), _moving(b, x, "rest")], stream, sums, single=single)
        b.group = f"codes of {row.outputs} {row.form} outputs by {row.by}, end {row.end}"
        words = _ENDS[row.by](b, row, kept, stream, sums)
        (to,) = b.from_fpu(place)
        for word in words:
            b.emit("str_moving", (to,), (word, to), 4, memory="out0")
        b.emit("vmov", (place,), (to,))
        b.repeat_until(to, *b.from_fpu(ends[1]))
    return b.listing(), call


def _of_inputs(
    b: Block, acts: Register, acts_end: Register, rest: Register, groups: int, each: int
) -> Register:  # fmt: skip
    """Return the products of inputs 0 and 1, and 2 and 3, of all groups, so many of which `each` time, summed up."""
    b.group = "products of inputs"
    total, at = b.make("mov_imm", imm=(0,)), b.make("mov", acts)
    with b.loop():
        words = [_moving(b, at, "acts") for _ in range(each)]
        b.emit("cmp", (FLAGS,), (at, acts_end))
        for word in words:
            b.change_last("smlad", total, *_halves(b, word))
        b.emit("bne", (), (FLAGS,))
    at = b.make("mov", rest) if groups else rest
    for _ in range(groups):
        b.change_last("smlad", total, _moving(b, at, "rest"), _moving(b, at, "rest"))
    return total


def _step(row: RowTile, single: bool) -> Sequence[Insn]:
    b = Block()
    _group(b, row, b.core(), b.core(), [b.core() for _ in range(row.outputs)], single=single)
    return [item for item in b.listing() if isinstance(item, Insn)]


def _products(
    b: Block, row: RowTile, single: bool, at: Sequence[Register], stream: Register, sums: Sequence[Register],
    end: Register,
) -> None:  # fmt: skip
    """Add the products of all inputs that are bytes, which begin at the first register; the loop at the second."""
    x, *entry = at
    if entry:
        b.go_to_step(*entry)
    with b.loop_of_steps(row.steps or row.round, *entry) as numbers:
        b.group = "eight inputs, four outputs, crossed" if row.steps else f"four inputs, {row.outputs} outputs"
        for number in numbers:
            if not row.steps:
                _group(b, row, x, stream, sums, single=single)
                continue
            for group in (2 * number, 2 * number + 1):
                words = [b.load(stream, 4 * (GROUP * group + k), "stream") for k in range(GROUP)]
                _cross(b, _halves(b, b.load(x, GROUP * group, "acts")), words, sums)
        b.group = "the next round"
        if row.steps:
            b.change("add", x, imm=(GROUP * row.round,))
            b.change("add", stream, imm=(GROUP * GROUP * row.round,))
        b.repeat_until(x, *([b.kept(0)] if row.steps else b.from_fpu(end)))


def _group(b: Block, row: RowTile, x: Register, stream: Register, sums: Sequence[Register], *, single: bool) -> None:
    """Add the products of a group of bytes."""
    _add(b, row, [_moving(b, x, "acts")], stream, sums, single=single)


def _moving(b: Block, base: Register, memory: str) -> Register:
    word = b.core()
    b.emit("ldr_moving", (word, base), (base,), 4, memory=memory)
    return word


def _halves(b: Block, word: Register) -> list[Register]:
    """Return inputs 0 and 2, then 1 and 3."""
    return [b.make("sxtb16", word, imm=(turned,)) for turned in (0, 8)]


def _add(
    b: Block, row: RowTile, acts: list[Register], stream: Register, sums: Sequence[Register], *, single: bool
) -> None:  # fmt: skip
    """Add the products of a group, which is one word of bytes or two of halfwords.

    Words that are loaded one after the other take a cycle each.
    """
    eight = row.outputs > GROUP
    words = _two_words(b, stream, single=True) if eight else b.load_list(stream, GROUP, "stream")
    acts = acts if len(acts) > 1 else _halves(b, *acts)
    if row.form == "dual":
        for pair in _PAIRS_OF_EIGHT if eight else ():
            _cross(b, acts, words if pair == 0 else _two_words(b, stream, single=single), _of_pair(sums, pair))
        if not eight:
            _cross(b, acts, words, sums)
        return
    for half, act in enumerate(acts):
        if row.form == "wide":
            words = words if half == 0 else b.load_list(stream, GROUP, "stream")
            for number, word in zip(_CHANNELS, words, strict=True):
                b.change_last("smlad", sums[number], act, word)
            continue
        for even, odd, word in zip(sums[:2], sums[2:], words[2 * half :], strict=False):
            b.change_last("smlad", even, act, b.make("sxtb16", word, imm=(8,)))
            b.change("sxtb16", word, imm=(0,))
            b.change_last("smlad", odd, act, word)


def _two_words(b: Block, stream: Register, *, single: bool) -> list[Register]:
    """Return the words of a pair of outputs of eight."""
    words = [b.core(), b.core()]
    if single:
        b.emit("ldr_wide", (words[1],), (stream,), 4, memory="stream")
        b.emit("ldr_moving", (words[0], stream), (stream,), 8, memory="stream")
    else:
        b.emit("ldrd_moving", (*words, stream), (stream,), 8, memory="stream")
    return words


def _of_pair(sums: Sequence[Register], pair: int) -> Sequence[Register]:
    """Return the sums of a pair of eight outputs."""
    at = 4 * (pair // 2) + pair % 2
    return sums[at], sums[at + 2]


def _cross(b: Block, acts: Sequence[Register], words: Sequence[Register], sums: Sequence[Register]) -> None:
    """Add the products of a group to the sums of one pair of outputs or two, even ones first; sums of odd ones crossed.

    What begins with the words of another pair comes between, for cores that issue two at a time.
    """
    (outer, inner), half = acts, len(sums) // 2
    found: list[tuple[int, tuple[str, Register, tuple[Register, ...], tuple[int, ...]]]] = []
    for u, v, even, odd, times in zip(words, words[half:], sums, sums[half:], _TIMES, strict=False):
        one, other = b.core(), b.core()
        insns = (
            ("smlad", even, (inner, v, even), ()), ("smlad", even, (outer, u, even), ()),
            ("sxtab16", one, (inner, u), (0,)), ("sxtab16", other, (outer, v), (0,)),
            ("smlad", odd, (one, other, odd), ()),
        )  # fmt: skip
        found += zip(times, insns, strict=True)
    for _, (op, to, reads, imm) in sorted(found):
        b.emit(op, (to,), reads, *imm)


def _fours(sums: Sequence[Register]) -> list[Sequence[Register]]:
    """Return the sums of blocks of four."""
    return [sums[at : at + 4] for at in range(0, len(sums), 4)]


def _pairs(sums: Sequence[Register]) -> list[tuple[Register, Register]]:
    """Return the sums of each even output and of the odd one after it."""
    return [pair for four in _fours(sums) for pair in zip(four[:2], four[2:], strict=True)]


def _joined(b: Block, sums: Sequence[Register]) -> list[Register]:
    """Return the words of the codes of blocks of four."""
    return [joined_codes(b, [four[number] for number in _CHANNELS]) for four in _fours(sums)]


def _split(b: Block, row: RowTile, kept: Sequence[Register], sums: Sequence[Register]) -> Register:
    """Take products of inputs off the sums of odd outputs, and these off those of even ones; return the zero point."""
    zero, products = b.from_fpu(*kept)
    for even, odd in _pairs(sums) if row.form == "dual" else ():
        b.change("sub", odd, products)
        b.change("sub", even, odd)
    return zero


def _by_scale(
    b: Block, row: RowTile, kept: Sequence[Register], stream: Register, sums: Sequence[Register]
) -> list[Register]:  # fmt: skip
    """Codes by float32 scales: the product rounded half to even, the zero point."""
    zero = _split(b, row, kept, sums)
    for four in _fours(sums):
        pairs = list(four[:2]), list(four[2:])
        scales = b.load_list(stream, GROUP, "stream", fpu=True)
        rounded_products(b, pairs, scales, pairs, dual=row.form == "dual")
    for total in sums:
        b.change("qadd", total, zero)
    for total in sums:
        b.change("ssat8", total)
    return _joined(b, sums)


def _by_multiplier(
    b: Block, row: RowTile, kept: Sequence[Register], stream: Register, sums: Sequence[Register]
) -> list[Register]:  # fmt: skip
    """Codes by multipliers and shifts (runtime_c/dsp/glow_dsp_q31.h)."""
    zero = _split(b, row, kept, sums)
    for four in _fours(sums):
        for even in four[:2] if row.form == "dual" else ():
            b.change("asr", even, imm=(EVEN_BITS,))
        places, *multipliers = b.load_list(stream, 3, "stream")
        for channel, number in enumerate(_CHANNELS):
            multipliers += b.load_list(stream, 2, "stream") if channel == 2 else []
            fixed_code(b, four[number], multipliers[channel], places, zero, row.end)
            if channel < 3:
                b.change("lsr", places, imm=(8,))
    return _joined(b, sums)


def _by_one_factor(
    b: Block, row: RowTile, kept: Sequence[Register], stream: Register, sums: Sequence[Register]
) -> list[Register]:  # fmt: skip
    """Codes by the words in front of the stream (common_factor.py); of a loop that is entered by one of two forms."""
    (mul, end), (less, places) = b.from_fpu(*kept[:2]), b.from_fpu(*kept[2:4])

    def scale() -> None:
        """Make 256 times the sums and more, of which 256 times the products of inputs are taken already."""
        for even, odd in _pairs(sums):
            b.emit("rsb_lsl", (odd,), (less, odd), EVEN_BITS)
            b.emit("sub_asr", (even,), (even, odd), EVEN_BITS)
        for total in sums:
            b.emit("smmla", (total,), (total, mul, end))

    def shift(bits: int) -> None:
        for total in sums:
            b.change("ssat8_asr", total, imm=(bits,))

    def by_short() -> None:
        scale()
        shift(SHORT)

    def by_exact() -> None:
        """Multiply twice each sum, rounded as TensorFlow Lite does."""
        (products,) = b.from_fpu(kept[4])
        for even, odd in _pairs(sums):
            b.change("sub", odd, products)
            b.change("sub", even, odd)
            b.change("asr", even, imm=(EVEN_BITS - 1,))
            b.change("add_two", odd, odd)
        for total in sums:
            code = b.make("smmlar", total, mul, end)
            b.change("add_sign", code, total)
            b.change("asr_by", code, places)
            b.emit("ssat8", (total,), (code,))

    if row.by == "exact" and row.steps:
        by_exact()
    elif row.by == "exact":
        b.either(places, by_short, by_exact, EXACT)
    elif row.steps:
        scale()
        for total in sums:
            b.change("asr_by", total, places)
            b.change("ssat8", total)
    else:
        scale()
        b.either(places, lambda: shift(SHORT), lambda: shift(LONG), LONG)
    return _joined(b, sums)


_ENDS = {"scale": _by_scale, "multiplier": _by_multiplier, "short": _by_one_factor, "exact": _by_one_factor}
