"""Winograd's F(2x2, 3x3) of two tiles in assembly (runtime_c/dsp/glow_dsp_winograd.h says where what lies).

turned      products of a channel's weights, of four input channels at a time: their place, the weights and their end
input_rows  products (i, j) of the inputs, of a row i: their place, two rows of codes and the distance of columns
blocks      sums of the products with four output channels, and their codes, of one block after another:
            glow_winograd_t
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import Listing, Register
from glowc.asm.isa import Kind
from glowc.asm.order import ordered, orders_of
from glowc.asm.write import short, statement
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.straight import Line
from glowc.kernels.dsp.quad_ends import fixed_code, limit_codes

_MOST_STEPS = 8  # of a round
_TILES = (0, 1)
_PLACES = {1: 0, 2: 1, 0: 2, 3: 3}
"""Where column j of the products stands."""
_WAYS = {0: ("ssub16", 0, 2), 1: ("sadd16", 1, 2), 2: ("ssub16", 2, 1), 3: ("ssub16", 1, 3)}
"""Of column j of a tile: how two columns of codes make it."""
_COLUMNS = 6  # of codes below two tiles
_FIELDS = (
    "inputs", "products", "sums", "ends", "upper", "lower", "out_c", "block", "end", "zero", "low", "high", "shifts",
    "span",
)  # fmt: skip
_KEPT = (*_FIELDS, "inputs' end", "round's end", "block's end", "back", "to")  # words of the frame
_FRAME_BYTES = 4 * len(_KEPT)
_INPUTS, _WEIGHTS = 256, 512  # bytes of all products of four input channels, of two tiles and of four output channels
_INPUT, _WEIGHT = 16, 32  # bytes of a product of those
_TAPS = 9
_SUM, _SUMS = 8, 128  # bytes of a product of two tiles, and of all products
_ONES = 0x00010001
LOW = (Kind.LOAD, Kind.LOAD_MANY)
"""The instructions whose registers are low ones, where none of the order is found."""
LINE = Line(
    shift=2, product=32, fraction=header_number("glow_dsp_winograd.h", "GLOW_WINOGRAD_LINE_FRACTION"), added=True
)
"""How codes are lines of four times the sums."""
Call = tuple[Listing, tuple[Register, ...]]
"""The instructions of a function, and its arguments."""
Halves = tuple[Register, Register]  # two channels each: 0 and 2 of four, 1 and 3


def steps_of(inputs: int) -> int:
    """Return the steps of two inputs of a round for so many inputs: those of whole groups that divide them."""
    return 2 * max(n for n in range(1, _MOST_STEPS // 2 + 1) if inputs // 4 % n == 0)


@cache
def turned_assembly(core: str) -> str:
    """Return the assembly of the function `turned`, in the order for a core."""
    return _assembled(turned(), core)


@cache
def inputs_assembly(core: str, *, sums: bool) -> str:
    """Return the assembly of the function `input_rows`, in the order for a core."""
    return _assembled(input_rows(sums=sums), core)


@cache
def blocks_assembly(core: str, steps: int, end: str, *, single: bool, fixed: bool, lines: bool) -> str:
    """Return the assembly of the function `blocks`, in the order for a core."""
    return _assembled(blocks(steps, end, single=single, fixed=fixed, lines=lines), core)


def _assembled(call: Call, core: str) -> str:
    listing, arguments = call
    fixed = {r: number for number, r in enumerate(arguments)}
    if core:
        return statement(allocate(ordered(listing, orders_of(core)), fixed), _FRAME_BYTES)
    return statement(short(allocate(listing, fixed, LOW)), _FRAME_BYTES)


def _slot(name: str) -> int:
    """Return the number of a word of the frame."""
    return _KEPT.index(name)


def turned() -> Call:
    """Return the function that makes products of weights: (2G) g (2G)'."""
    b = Block()
    b.group = "the call"
    to, weights, end = (b.core() for _ in range(3))
    b.keep(end, _slot("end"))
    with b.loop():
        for half in (0, 1):
            b.group = "two of four input channels"
            taps = [b.load(weights, 4 * tap, "weights") for tap in range(_TAPS)]
            for tap in taps:
                b.change("sxtb16", tap, imm=(8 * half,))
            down = [_four(b, taps[x::3], spare=x < 2) for x in range(3)]
            for i, row in enumerate(zip(*down, strict=True)):
                for j, value in _four_in_place(b, row) if i == 0 else enumerate(_four(b, row, spare=True)):
                    b.emit("str", (), (value, to), _WEIGHT * (4 * _PLACES[j] + i) + 16 * half, memory="products")
        b.group = "the next four"
        b.change("add", to, imm=(_WEIGHTS,))
        b.change("add", weights, imm=(4 * _TAPS,))
        b.repeat_until(weights, b.kept(_slot("end")))
    return b.listing(), (to, weights, end)


def _four(b: Block, values: Sequence[Register], *, spare: bool) -> list[Register]:
    """Return 2 a, a + b + c, a - b + c, 2 c of three values, in their places, and one more, where one is to `spare`."""
    first, middle, last = values
    outer = b.make("sadd16", first, last)
    b.change("sadd16", first, first)
    b.change("sadd16", last, last)
    if spare:
        less = b.make("ssub16", outer, middle)
        b.change("sadd16", outer, middle)
        return [first, outer, less, last]
    b.change("sadd16", outer, middle)
    b.change("sadd16", middle, middle)
    b.emit("ssub16", (middle,), (outer, middle))
    return [first, outer, middle, last]


def _four_in_place(b: Block, values: Sequence[Register]) -> Iterator[tuple[int, Register]]:
    """Yield those of `_four` with their numbers, one after the other in the places of the three values."""
    first, middle, last = values
    b.change("sadd16", first, last)
    b.change("sadd16", last, last)
    yield 3, last
    b.change("sadd16", middle, first)
    yield 1, middle
    b.change("sadd16", first, first)
    b.emit("ssub16", (middle,), (first, middle))
    yield 2, middle
    b.change("ssub16", first, last)
    yield 0, first


def input_rows(*, sums: bool) -> Call:
    """Return the function that makes row i of B' d B from the sum of two rows of codes or from their difference."""
    b = Block()
    b.group = "the call"
    to, one, other, step = (b.core() for _ in range(4))
    ones = None if sums else b.make("mov_imm", imm=(_ONES,))
    end = b.make("add_two", one, step)
    with b.loop():
        b.group = f"four channels of six columns, {'sums' if sums else 'differences'}"
        columns: list[Halves] = []
        for x in range(_COLUMNS):
            columns.append(_column(b, x, (one, other), step, ones))
            for tile in _TILES:
                for j, (op, p, q) in _WAYS.items():
                    if x == 2 * tile + max(p, q):
                        at = 64 * _PLACES[j] + 4 * tile
                        for half in (0, 1):
                            made = b.make(op, columns[2 * tile + p][half], columns[2 * tile + q][half])
                            b.emit("str", (), (made, to), at + 8 * half, memory="inputs")
        b.group = "the next four"
        b.change("add", other, imm=(4,))
        b.change("add", to, imm=(_INPUTS,))
        b.change("add", one, imm=(4,))
        b.repeat_until(one, end)
    return b.listing(), (to, one, other, step)


def _column(b: Block, x: int, rows: tuple[Register, Register], step: Register, ones: Register | None) -> Halves:
    """Return a column of the sum of two rows, or with `ones` of the first less the second: a + 1 + ~b."""
    words = []
    for name, row in zip(("one", "other"), rows, strict=True):
        base, far = (row, x) if x % 2 == 0 or x == 1 else (b.make("add_two", row, step), x - 1)
        if far == 0:
            words.append(b.load(base, 0, name))
        else:
            words.append(b.core())
            b.emit("ldr_by", (words[-1],), (base, step), far // 2, memory=name)
    one, other = words
    found = []
    for turn in (0, 8):
        part = b.make("sxtb16", one, imm=(turn,)) if ones is None else b.make("sxtab16", ones, one, imm=(turn,))
        if ones is not None and turn == 0:
            b.change("mvn", other)
        b.change("sxtab16", part, other, imm=(turn,))
        found.append(part)
    return found[0], found[1]


def blocks(steps: int, end: str, *, single: bool, fixed: bool, lines: bool) -> Call:
    """Return the function of all blocks, with rounds of so many steps, a `single` one or several.

    `end` is that of `stream.ending`, or where codes are `fixed` that of `ends.fixed_end`. With `lines` the sums of a
    product go on from those of the product before it, biases come in fours, and codes are lines of sums where they can.
    """
    b = Block()
    b.group = "the call"
    call = b.core()
    fields = {name: b.load(call, 4 * at, "call") for at, name in enumerate(_FIELDS)}
    for name in (name for name in _FIELDS if name not in ("upper", "lower", "out_c")):
        b.keep(fields[name], _slot(name))
    b.keep(b.make("add", fields["inputs"], imm=(_INPUTS,)), _slot("inputs' end"))
    if lines and not single:
        b.keep(b.make("sub_imm", fields["span"], imm=(_INPUT,)), _slot("back"))
    rows, out_c = b.to_fpu(fields["upper"], fields["lower"]), fields["out_c"]
    distances = b.to_fpu(out_c, b.make("add_lsl", out_c, out_c, imm=(1,)))
    with b.loop():
        _products(b, steps, single=single, running=lines)
        b.group = "the block"
        sums, ends = b.kept(_slot("sums")), b.kept(_slot("ends"))
        b.keep(b.make("add_two", ends, b.kept(_slot("block"))), _slot("block's end"))
        with b.loop():
            _codes(b, sums, ends, rows, distances, end, fixed=fixed, lines=lines)
            b.repeat_until(ends, b.kept(_slot("block's end")))
        b.keep(ends, _slot("ends"))
        b.repeat_until(ends, b.kept(_slot("end")))
    return b.listing(), (call,)


def _products(b: Block, steps: int, *, single: bool, running: bool) -> None:
    """Multiply and add: the sums of a block, of each product or `running` over all.

    Running over several rounds code is small: a cache of 1 KB keeps it and that of the codes.
    """
    b.group = "the products of a block"
    small = running and not single
    if small:
        b.keep(b.kept(_slot("sums")), _slot("to"))
    to = () if small else b.to_fpu(b.kept(_slot("sums")))
    x, weights = b.kept(_slot("inputs")), b.kept(_slot("products"))
    b.keep(b.make("add_lsl", weights, b.kept(_slot("span")), imm=(1,)), _slot("products"))
    begins = () if single or small else b.to_fpu(x, weights)
    sums = _zeros(b, moved=True) if running else []
    with b.loop():
        if single:
            sums = sums or _first(b, x, weights)
            for number in range(not running, steps):
                _step(b, number, x, weights, sums)
        else:
            sums = _rounds(b, steps, x, weights, sums)
        b.group = "sums of a product"
        if begins:
            b.emit("vmov_pair", (x, weights), begins)
        at = b.kept(_slot("to")) if small else b.from_fpu(*to)[0]
        if small:
            for channel in range(4):
                b.emit("strd", (), (*sums[2 * channel : 2 * channel + 2], at), _SUMS * channel, memory="sums")
        else:
            for number, total in enumerate(sums):
                b.emit("str", (), (total, at), _SUMS * (number // 2) + 4 * (number % 2), memory="sums")
        b.change("add", at, imm=(_SUM,))
        if small:
            b.keep(at, _slot("to"))
            back = b.kept(_slot("back"))
            b.change("sub", x, back)
            b.emit("sub_lsl", (weights,), (weights, back), 1)
        else:
            b.change("add", x, imm=(_INPUT,))
            b.change("add", weights, imm=(_WEIGHT,))
            b.emit("vmov", to, (at,))
        if begins:
            b.emit("vmov_pair", begins, (x, weights))
        b.repeat_until(x, b.kept(_slot("inputs' end")))


def _zeros(b: Block, *, moved: bool = False) -> list[Register]:
    """Return sums of nothing, with `moved` in short instructions."""
    first = b.make("mov_imm", imm=(0,))
    return [first, *(b.make("mov", first) if moved else b.make("mov_imm", imm=(0,)) for _ in range(7))]


def _rounds(b: Block, steps: int, x: Register, weights: Register, sums: list[Register]) -> list[Register]:
    b.group = "a product"
    b.keep(b.make("add_two", x, b.kept(_slot("span"))), _slot("round's end"))
    sums = sums or _zeros(b)
    with b.loop_of_steps(steps) as numbers:
        b.group = "inputs of two tiles, four channels"
        for number in numbers:
            _step(b, number, x, weights, sums)
        b.group = "the next round"
        b.change("add", weights, imm=(_WEIGHTS * steps // 2,))
        b.change("add", x, imm=(_INPUTS * steps // 2,))
        b.repeat_until(x, b.kept(_slot("round's end")))
    return sums


def _loaded(b: Block, number: int, x: Register, weights: Register) -> Iterator[tuple[int, Register, Register]]:
    """Yield the number of each sum with the words whose products it is; loads follow each other."""
    group, odd = divmod(number, 2)
    acts = [b.load(x, _INPUTS * group + 8 * odd + 4 * tile, "inputs") for tile in _TILES]
    for first in (0, 2):
        words = [b.load(weights, _WEIGHTS * group + 16 * odd + 4 * (first + k), "weights") for k in range(2)]
        for k, word in enumerate(words):
            for tile in _TILES:
                yield 2 * (first + k) + tile, acts[tile], word


def _first(b: Block, x: Register, weights: Register) -> list[Register]:
    b.group = "inputs of two tiles, four channels"
    return [b.make("smuad", act, word) for _, act, word in _loaded(b, 0, x, weights)]


def _step(b: Block, number: int, x: Register, weights: Register, sums: Sequence[Register]) -> None:
    for at, act, word in _loaded(b, number, x, weights):
        b.change_last("smlad", sums[at], act, word)


def _codes(
    b: Block, sums: Register, ends: Register, rows: Sequence[Register], distances: Sequence[Register], end: str,
    *, fixed: bool, lines: bool,
) -> None:  # fmt: skip
    """Make codes of four times the sums of a channel."""
    b.group = f"four times the sums of a channel, {'multiplier' if fixed else 'scale'}, end {end}"
    if lines:
        totals = _line_codes(b, _running_totals(b, sums, b.load(ends, 0, "ends")), ends, end)
    else:
        totals = _totals(b, sums)
        b.group = "bias"
        bias = b.load(ends, 0, "ends")
        for total in totals:
            b.emit("add_asr", (total,), (bias, total), 2)
        b.group = "code"
        totals = (_fixed_codes if fixed else _scaled_codes)(b, totals, ends, end)
    b.change("add", ends, imm=(8,))
    b.group = "pixels of two rows"
    one, three = b.from_fpu(*distances)
    places = b.from_fpu(*rows)
    for row, place in enumerate(places):
        name = ("upper", "lower")[row]
        pixels = totals[4 * row : 4 * row + 4]
        if not lines:
            b.emit("strb", (), (pixels[0], place), 0, memory=name)
        for pixel, (distance, shift) in zip(pixels[1:], ((one, 0), (one, 1), (three, 0)), strict=True):
            b.emit("strb_by", (), (pixel, place, distance), shift, memory=name)
        if lines:
            b.emit("strb_moving", (place,), (pixels[0], place), 1, memory=name)
        else:
            b.change("add", place, imm=(1,))
    b.emit("vmov_pair", rows, places)


def _totals(b: Block, sums: Register) -> list[Register]:
    """Return A' M A of a channel: the upper row of four pixels, then the lower one."""
    columns = []
    for _ in range(2):  # products (i, 1), (i, 2): the sum of the first three, and 1 less 2 less 3
        m = b.load_list(sums, 8, "sums")
        for tile in _TILES:
            b.change("add_two", m[tile], m[2 + tile])
            b.change("add_two", m[tile], m[4 + tile])
            b.change("sub", m[2 + tile], m[4 + tile])
            b.change("sub", m[2 + tile], m[6 + tile])
        columns.append(m[:4])  # upper of both tiles, lower of both
    first, second = columns
    for a, c in zip(first, second, strict=True):
        b.change("add_two", a, c)
        b.emit("sub_lsl", (c,), (a, c), 1)
    for of, left, ops in (0, first, ("add_two", "sub")), (3, second, ("sub", "add_two")):
        m = b.load_list(sums, 4, "sums")
        for tile in _TILES:
            b.change(ops[0], left[tile], m[tile])
            b.change(ops[0], left[tile], m[2 + tile])
            b.change("add_two" if of == 0 else "sub", left[2 + tile], m[2 + tile])
        m = b.load_list(sums, 4, "sums")
        for tile in _TILES:
            b.change(ops[0], left[tile], m[tile])
            b.change(ops[1], left[2 + tile], m[tile])
            b.change(ops[1], left[2 + tile], m[2 + tile])
    return [column[2 * row + tile] for row in (0, 1) for tile in _TILES for column in columns]


def _running_totals(b: Block, sums: Register, bias: Register) -> list[Register]:
    """Return those of `_totals` and a bias, from sums T that run on from product to product.

    Of rows 0 to 3 of a column T(2) less the one before T(0) is the upper sum, 2 T(1) - T(0) - T(3) the lower one.
    """
    t = b.load_list(sums, 4, "sums")  # both tiles of one row, then of the next
    odd_lower = [b.make("add_lsl", bias, t[2 + tile], imm=(1,)) for tile in _TILES]
    for tile in _TILES:
        b.change("sub", odd_lower[tile], t[tile])
    t = b.load_list(sums, 4, "sums")
    odd_upper, before = t[:2], t[2:]
    for tile in _TILES:
        b.change("sub", odd_lower[tile], before[tile])
        b.change("add_two", odd_upper[tile], bias)
    t = b.load_list(sums, 4, "sums")
    less = t[:2]
    for tile in _TILES:
        b.emit("sub_lsl", (less[tile],), (less[tile], t[2 + tile]), 1)
    t = b.load_list(sums, 4, "sums")
    even_upper, even_lower = [], []
    for tile in _TILES:
        b.change("sub", t[tile], before[tile])
        even_upper.append(b.make("add_two", odd_upper[tile], t[tile]))
        b.change("sub", odd_upper[tile], t[tile])
        b.change("sub", even_upper[tile], t[2 + tile])
        b.change("add_two", less[tile], t[2 + tile])
        even_lower.append(b.make("sub", odd_lower[tile], less[tile]))
        b.change("add_two", odd_lower[tile], less[tile])
    _add_column(b, sums, even_lower, even_upper, ("add_lsl", "sub", "add_two", "sub"), odd_upper)
    _add_column(b, sums, odd_lower, odd_upper, ("sub_lsl", "add_two", "sub", "add_two"), ())
    rows = (even_upper, odd_upper), (even_lower, odd_lower)
    return [column[tile] for row in rows for tile in _TILES for column in row]


def _add_column(
    b: Block, sums: Register, lower: Sequence[Register], upper: Sequence[Register], ops: Sequence[str],
    after: Sequence[Register],
) -> None:  # fmt: skip
    """Add or subtract the sums of a column, `ops` of rows 1, 0, 2 and 3; those `after` go on from the last row."""
    t = b.load_list(sums, 4, "sums")
    for tile in _TILES:
        b.emit(ops[0], (lower[tile],), (lower[tile], t[2 + tile]), 1)
        b.change(ops[1], lower[tile], t[tile])
    t = b.load_list(sums, 4, "sums")
    for tile in _TILES:
        b.change(ops[2], upper[tile], t[tile])
        b.change(ops[3], lower[tile], t[2 + tile])
        if after:
            b.change("add_two", after[tile], t[2 + tile])


def _line_codes(b: Block, totals: list[Register], ends: Register, end: str) -> list[Register]:
    """Return the codes as lines of four times the sums, or by a scale: less the multiplier, where that is negative."""
    b.group = "code"
    mul, start = b.load(ends, 4, "ends"), b.kept(_slot("zero"))

    def line() -> None:
        for total in totals:
            b.emit("smmla", (total,), (total, mul, start))

    def scaled() -> None:
        (scale,) = b.to_fpu(mul)
        reals = [real for k in range(0, 8, 2) for real in b.to_fpu(*totals[k : k + 2])]
        for real in reals:
            b.change("vcvt_fixed", real, imm=(2,))
        for real in reals:
            b.change("vnmul", real, scale)
        for real in reals:
            b.change("vcvtr", real)
        for k in range(0, 8, 2):
            b.emit("vmov_pair", totals[k : k + 2], reals[k : k + 2])
        for total in totals:
            b.emit("add_lsl", (total,), (start, total), LINE.fraction)

    b.either(mul, line, scaled)
    for total in totals:
        b.change("ssat8_asr", total, imm=(LINE.fraction,))
    limit_codes(b, totals, (_slot("low"), _slot("high")) if end == "s8" else None)
    return totals


def _scaled_codes(b: Block, totals: Sequence[Register], ends: Register, end: str) -> list[Register]:
    """Return the codes by a float32 scale: the product rounded half to even, the zero point, limits."""
    scale = b.fpu()
    b.emit("vldr", (scale,), (ends,), 4, memory="ends")
    reals = [real for k in range(0, 8, 2) for real in b.to_fpu(*totals[k : k + 2])]
    for op in ("vcvt", "vmul", "vcvtr"):
        for real in reals:
            b.change(op, real, *((scale,) if op == "vmul" else ()))
    found = [code for k in range(0, 8, 2) for code in b.from_fpu(*reals[k : k + 2])]
    zero = b.kept(_slot("zero"))
    for code in found:
        b.change("qadd", code, zero)
        b.change("ssat8", code)
    limit_codes(b, found, (_slot("low"), _slot("high")) if end == "s8" else None)
    return found


def _fixed_codes(b: Block, totals: Sequence[Register], ends: Register, end: str) -> list[Register]:
    """Return the codes by a multiplier and a shift (runtime_c/dsp/glow_dsp_q31.h)."""
    multiplier, zero, shifts = b.load(ends, 4, "ends"), b.kept(_slot("zero")), b.kept(_slot("shifts"))
    places = b.core()
    b.emit("ldrb", (places,), (shifts,), 0, memory="shifts")
    b.change("add", shifts, imm=(1,))
    b.keep(shifts, _slot("shifts"))
    for total in totals:
        fixed_code(b, total, multiplier, places, zero, end)
    limit_codes(b, totals, (_slot("low"), _slot("high")) if end in ("v8", "s8") else None)
    return list(totals)
