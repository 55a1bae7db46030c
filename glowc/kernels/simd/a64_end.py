"""Ends of blocks on A64 as listings: sums become codes, which are stored at %[to], pixels %[next] bytes apart.

Scales, or multipliers of TensorFlow Lite, are in v8 to v11; shifts that belong to these are in v4 to v7. Each step
is one of all vectors: an in-order core need not wait.

Where |float32(sum) * scale| <= 32000 is proved, the product is rounded half to even by adding 1.5 * 2^23, plus the zero
point where that is even (an odd one would move the ties); the low 16 bits of the sum then are the result. Otherwise
FCVTNS rounds and saturates.

SQRDMULH gives the upper half of twice the product, rounded half up. SRSHL shifts it by a negative number of places,
rounded half up again, which is half away from zero after one was taken from what is negative; where no code is below
the zero point, negative halves do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glowc.asm.insn import Insn, Register
from glowc.kernels.simd.a64_step import SUMS, Insns, made, operand, vector
from glowc.kernels.simd.ending import Ending

_TO, _NEXT, _HEAD = operand("to"), operand("next"), operand("head")
_SHIFTS = 4  # by so much numbers of shifts are lower than those of multipliers


def _in_place(op: str, some: Iterable[int], *more: Register) -> Insns:
    return (made(op, v, v, *more) for v in some)


def upper(sums: Sequence[int], factors: Sequence[int]) -> Insns:
    """The upper halves of twice the products of sums and multipliers."""
    return (made("sqrdmulh", v, v, factor) for v, factor in zip(sums, factors, strict=True))


def shifted(end: Ending, sums: Sequence[int], shifts: Sequence[int]) -> Insns:
    """The same shifted."""
    yield from () if end.rectified else (made("ssra", v, v, v, imm=(31,)) for v in sums)
    yield from (made("srshl", v, v, by) for v, by in zip(sums, shifts, strict=True))


def rounded(end: Ending, sums: Sequence[int], scales: Sequence[int]) -> Insns:
    """Sums times scales, rounded."""
    if end.fixed:
        yield from upper(sums, scales)
        yield from shifted(end, sums, [scale - _SHIFTS for scale in scales])
        return
    yield from _in_place("scvtf", sums)
    yield from (made("fmul", v, v, scale) for v, scale in zip(sums, scales, strict=True))
    yield from _in_place("fadd", sums, operand("magic")) if end.bounded else _in_place("fcvtns", sums)


def halves(end: Ending, sums: Sequence[int]) -> Insns:
    """Codes of 16 bits of two vectors each, from v0 on, with the zero point."""
    count = (len(sums) + 1) // 2
    for to in range(count):
        a, c = sums[2 * to], sums[2 * to : 2 * to + 2][-1]
        if end.bounded:
            yield made("uzp1", to, a, c)
        else:
            yield from (made("sqxtn_s32", to, a), made("sqxtn2_s32", to, to, c))
    if end.point != "NONE":
        yield from _in_place("add_s16" if end.point == "SMALL" else "sqadd_s16", range(count), operand("zp"))


def limited(end: Ending, some: Sequence[int]) -> Insns:
    """The limits of codes."""
    for op, name, is_there in (("smax", "lo", end.low), ("smin", "hi", end.high)):
        yield from _in_place(op, some, operand(name)) if is_there else ()


def narrowed(end: Ending, count: int, to: int) -> Insns:
    """Codes of 8 bits of so many vectors of 16, in vectors from that number on."""
    yield from (made("sqxtn_s16", to + k, k) for k in range(count))
    yield from limited(end, range(to, to + count))


def bytes_of_two(end: Ending, to: int) -> Insns:
    """Codes of 8 bits of v0 and v1 in one vector."""
    yield from (made("sqxtn_s16", to, 0), made("sqxtn2_s16", to, to, 1), *limited(end, (to,)))


def _put(op: str, codes: int, lane: int) -> Insns:
    yield Insn(op, (), (vector(codes), _TO), (lane,), "outputs")
    yield Insn("add_two", (_TO,), (_TO, _NEXT))


def _put_two(op: str, *codes: int) -> Insns:
    """Store codes of pixels, two pixels before the next two."""
    for one, two in zip(codes[::2], codes[1::2], strict=True):
        yield Insn(op, (), (vector(one), _TO), (), "outputs")
        yield Insn(f"{op}_by", (), (vector(two), _TO, _NEXT), (), "outputs")
        yield Insn("add_lsl", (_TO,), (_TO, _NEXT), (1,))


def _four_pixels(end: Ending, sums: Sequence[int], scale: int, width: int) -> Insns:
    """Codes of pixels, a vector each: two pixels in v2, and two in v3, which need not wait for v2."""
    yield from (*rounded(end, sums, [scale] * 4), *halves(end, sums), *narrowed(end, 2, 2))
    if width == 4:
        yield from (made("mov_lane", v - 2, v, imm=(1,)) for v in (2, 3))
        yield from _put_two("str_s", 2, 0, 3, 1)
    else:
        for v, lane in ((2, 0), (2, 2), (3, 0), (3, 2)):
            yield from _put("st1_h", v, lane)


def _pairs(sums: Sequence[int]) -> Insns:
    """Pairs of lanes of pairs of vectors: twice, and four vectors are summed."""
    return (made("addp", a, a, c) for a, c in zip(sums[::2], sums[1::2], strict=True))


def _widened(to: int, source: int) -> Insns:
    yield from (made("sxtl", to, source), made("sxtl_s16", to, to))


def _widened_two(to: int, source: int) -> Insns:
    yield from (made("sxtl", to, source), made("sxtl2_s16", to + 1, to), made("sxtl_s16", to, to))


def _shifts(end: Ending, count: int, to: int) -> Insns:
    """The shifts of so many outputs, after biases and multipliers of a stream."""
    if end.fixed:
        yield Insn(f"ldr_{'sd'[count // 8] if count > 2 else 'h'}", (vector(to),), (_HEAD,), (8 * count,), "weights")
        yield from _widened_two(to, to) if count == 8 else _widened(to, to)


def _head(op: str, to: Sequence[int], at: int) -> Insn:
    return Insn(op, tuple(map(vector, to)), (_HEAD,), (at,), "weights")


def four_by_four(end: Ending) -> Insns:
    """The end of four pixels and four outputs, whose sums have four parts."""
    every = range(SUMS, SUMS + 16)
    yield from (_head("ldr_q", (10,), 16), *_shifts(end, 4, 6), *_pairs(every), *_pairs(every[::2]))
    yield from _four_pixels(end, every[::4], 10, 4)


def eight_pixels(end: Ending, width: int) -> Insns:
    """The end of eight pixels and eight outputs, or four, two."""
    yield _head({8: "ldp_q", 4: "ldr_q", 2: "ldr_d"}[width], (8, 9)[: 1 + width // 8], 4 * width)
    yield from _shifts(end, width, 4)
    for half in range(2):
        if width == 8:
            sums = range(SUMS + 8 * half, SUMS + 8 * half + 8)
            yield from (*rounded(end, sums, [8, 9] * 4), *halves(end, sums), *narrowed(end, 4, 0))
            yield from _put_two("str_d", *range(4))
        else:
            yield from _four_pixels(end, range(SUMS + 4 * half, SUMS + 4 * half + 4), 8, width)


def matrices(end: Ending, width: int) -> Insns:
    """The end of eight pixels and eight outputs, or four, whose vectors have two outputs of two pixels."""
    yield from _shifts(end, width, 6 if width == 8 else 4)
    zips = ((1, 4, 6), (2, 5, 6), (1, 6, 7), (2, 7, 7)) if width == 8 else ((2, 5, 4), (1, 4, 4))
    yield from (made(f"zip{n}", to, v, v) for n, to, v in zips if end.fixed)
    scales = (8, 9, 10, 11) if width == 8 else (8, 9, 8, 9)
    for first in range(SUMS, SUMS + 2 * width, width):
        last = 2 + width // 8
        for to in range(2, last + 1):
            sums = range(first + 4 * to - 8, first + 4 * to - 4)
            yield from (*rounded(end, sums, scales), *halves(end, sums), *bytes_of_two(end, to))
        yield from (made("uzp1", 0, 2, last), made("uzp2", 1, 2, last))
        for lane in range(2):
            yield from (code for v in range(2) for code in _put("st1_d" if width == 8 else "st1_s", v, lane))


def row(end: Ending, width: int) -> Insns:
    """The end of one row, eight outputs or four; bytes of the shifts are in v8."""
    every = range(SUMS, SUMS + width)
    yield from (*_pairs(every), *_pairs(every[::2]))
    if end.fixed:
        yield from _widened_two(6, 8) if width == 8 else _widened(6, 8)
    yield from rounded(end, every[::4], (10, 11)[: width // 4])
    yield from (*halves(end, every[::4]), *narrowed(end, 1, 2))
    yield Insn("str_d" if width == 8 else "str_s", (), (vector(2), _TO), (), "outputs")


def row_of_dots(end: Ending, quads: int) -> Insns:
    """What makes codes of one row's sums, of which each vector has four, in v2; bytes of the shifts are in v1."""
    sums = range(SUMS, SUMS + quads)
    if end.fixed:
        yield from (made("sxtl2", 7, 1), *_widened_two(4, 1), made("sxtl_s16", 6, 7), made("sxtl2_s16", 7, 7))
    yield from (*rounded(end, sums, range(8, 8 + quads)), *halves(end, sums))
    yield from bytes_of_two(end, 2) if quads > 2 else narrowed(end, 1, 2)
