"""The products of a depthwise window, 16 channels at a time, and their codes (runtime_c/mve/glow_mve_dw.h,
glow_mve_dw_nine.h).

Two taps are summed in 16 bits. The sums of bottom halves grow by their wide form, those of top halves by VQDMLAH with
2^15 in r12. So the numbers of 16 channels are in the order 0, 4, 8, 12, 2, 6, .., 1, 5, .., 3, 7, ..

row         taps side by side, which are added to q0 .. q3: inputs at r7, weights at r9, both move on
nine        a whole window of 3 x 3, and its codes: inputs at r0 .. r8, which move on by 16 bytes; constants at r9,
            which moves on at once: weights, what sums begin with, words of the ends; the output at r10 moves on
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Protocol

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import CORE, SP, VECTOR, Insn, Listing, Register, instructions
from glowc.asm.isa import P0
from glowc.asm.order import ordered, orders_of
from glowc.asm.write import text
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.straight import Line

CORTEX_M55 = "cortex-m55"
MOST = 17  # taps that are printed one after the other
LINE = Line(11, 31, 16, added=False, halves=False)
ENDS = ("scale", "line")
"""How sums become codes: by a float32 scale, where r11 is the zero point; by LINE, where it is 2^11."""
_INPUTS, _WEIGHTS, _HALF = (Register(CORE, number, virtual=False) for number in (7, 9, 12))
_TAPS = tuple(Register(CORE, number, virtual=False) for number in range(9))
_OUT, _NUMBER = (Register(CORE, number, virtual=False) for number in (10, 11))
_SUMS = tuple(Register(VECTOR, number, virtual=False) for number in range(4))
_BYTES = 16  # of a vector
_BEGINS, _ENDS = 9, 13  # vectors before them in the constants of a window of 3 x 3
NINE_BYTES = header_number("glow_mve_dw_nine.h", "GLOW_MVE_DW9_BYTES")


class Weights(Protocol):
    """Loads the weights of a tap, which may be loaded `again` after that."""

    def __call__(self, tap: int, /, *, again: bool) -> Register: ...


@cache
def lines(taps: int, step: int) -> tuple[str, ...]:
    """Return the assembly for so many taps, which are `step` bytes apart, in the order for a Cortex-M55."""
    return _lines(ordered(row(taps, step), orders_of(CORTEX_M55)))


@cache
def nine_lines(end: str, *, clamped: bool, some: bool) -> tuple[str, ...]:
    """Return the assembly of a window of 3 x 3, in the order for a Cortex-M55."""
    window, stored = nine(end, clamped=clamped, some=some)
    return _lines((*ordered(window, orders_of(CORTEX_M55)), *stored))


def _lines(listing: Listing) -> tuple[str, ...]:
    return tuple(line for insn in instructions(allocate(listing, {})) for line in text(insn).splitlines())


def row(taps: int, step: int) -> tuple[Insn, ...]:
    """Return the instructions, two taps after two, which leaves registers for all."""
    b = Block()
    b.group = f"{taps} taps"

    def weights(_: int, *, again: bool) -> Register:
        return _load(b, "vldrb", _WEIGHTS, 0) if again else _load(b, "vldrb_moving", _WEIGHTS, _BYTES, moves=True)

    def inputs(_: int) -> Register:
        return _load(b, "vldrw_moving", _INPUTS, step, moves=True)

    for products in _products(b, taps, inputs, weights, 0):
        _add(b, _SUMS, products)
    return _insns(b)


def nine(end: str, *, clamped: bool, some: bool) -> tuple[tuple[Insn, ...], tuple[Insn, ...]]:
    """Return the instructions up to the codes, and those that store them.

    `clamped`: limits of the codes are at the stack pointer. `some`: P0 says which channels there are; r10 stays.
    """
    b = Block()
    b.group = f"3 x 3 taps, {end}"

    def weights(tap: int, *, again: bool) -> Register:
        if tap == 0:
            return _load(b, "vldrw_moving", _WEIGHTS, NINE_BYTES, moves=True)
        return _constant(b, tap)

    def inputs(tap: int) -> Register:
        if some:
            return _load(b, "vldrb_some_moving", _TAPS[tap], _BYTES, moves=True)
        return _load(b, "vldrb_moving", _TAPS[tap], _BYTES, moves=True)

    products = _products(b, len(_TAPS), inputs, weights, 2)
    first, second = next(products), next(products)
    if end == "scale":
        sums = [_constant(b, _BEGINS + k) for k in range(4)]
        _add(b, sums, first)
    else:
        sums = [_made(b, op, product) for product in first for op in ("vmovlb", "vmovlt")]
    for more in chain((second,), products):
        _add(b, sums, more)
    codes = _codes(b, sums, end)
    window = _insns(b)
    for op, at in (("vmax_s8", 0), ("vmin_s8", _BYTES)) if clamped else ():
        b.emit(op, (codes,), (codes, _load(b, "vldrw", SP, at)))
    if some:
        b.emit("vstrb_some", (), (codes, _OUT, P0), memory="out")
    else:
        b.emit("vstrb_moving", (_OUT,), (codes, _OUT), _BYTES, memory="out")
    return window, _insns(b)[len(window) :]


def _products(
    b: Block, taps: int, inputs: Callable[[int], Register], weights: Weights, held: int
) -> Iterator[tuple[Register, Register]]:
    """Yield products of bottom and top halves: of two taps their sums.

    But of so many sums that are `held`, no register is left for the second weights: they are loaded again.
    """
    for tap in range(0, taps - 1, 2):
        x, w = inputs(tap), weights(tap, again=False)
        bottom, top = _made(b, "vmullb", x, w), _made(b, "vmullt", x, w)
        again = tap >= 2 * held
        x, w = inputs(tap + 1), weights(tap + 1, again=again)
        bottom = _made(b, "vadd_i16", bottom, _made(b, "vmullb", x, w))
        w = weights(tap + 1, again=False) if again else w
        yield bottom, _made(b, "vadd_i16", top, _made(b, "vmullt", x, w))
    if taps % 2:
        x, w = inputs(taps - 1), weights(taps - 1, again=False)
        yield _made(b, "vmullb", x, w), _made(b, "vmullt", x, w)


def _add(b: Block, sums: Sequence[Register], products: tuple[Register, Register]) -> None:
    """Add products to the sums."""
    for product, wide, narrow in zip(products, sums[::2], sums[1::2], strict=True):
        b.emit("vqdmlah", (narrow,), (narrow, product, _HALF))
        b.emit("vadd_i32", (wide,), (wide, _made(b, "vmovlb", product)))


def _codes(b: Block, sums: Sequence[Register], end: str) -> Register:
    """Return the codes of sums; even channels come first, as their codes are narrowed twice."""
    codes, odd = (_halves(b, sums, k, end) for k in (0, 2))
    b.emit("vqmovnb_s16", (codes,), (codes, codes))
    b.emit("vqmovnt_s16", (codes,), (codes, odd))
    return codes


def _halves(b: Block, sums: Sequence[Register], first: int, end: str) -> Register:
    """Return the codes of two sums in 16 bits."""
    parts = []
    for k in (first + 1, first):
        if end == "line":
            total = _constant(b, _BEGINS + k)
            b.emit("vmla", (total,), (total, sums[k], _NUMBER))
            parts.append(_made(b, "vqdmulh", total, _constant(b, _ENDS + k)))
        else:
            real = _made(b, "vcvt_vector", sums[k])
            real = _made(b, "vmul_vector", real, _constant(b, _ENDS + k))
            parts.append(_made(b, "vcvtn_vector", real))
    high, low = parts
    if end == "line":
        b.emit("vshrnb", (high,), (high, low), LINE.fraction)
        return high
    b.emit("vqmovnb_s32", (low,), (low, low))
    b.emit("vqmovnt_s32", (low,), (low, high))
    return _made(b, "vqadd_s16", low, _NUMBER)


def _constant(b: Block, number: int) -> Register:
    """Return a vector of the constants that r9 has moved past."""
    return _load(b, "vldrw", _WEIGHTS, _BYTES * number - NINE_BYTES)


def _load(b: Block, op: str, base: Register, *numbers: int, moves: bool = False) -> Register:
    to = b.vector()
    reads = (base, P0) if op == "vldrb_some_moving" else (base,)
    b.emit(op, (to, base) if moves else (to,), reads, *numbers, memory=str(base))
    return to


def _made(b: Block, op: str, *reads: Register) -> Register:
    to = b.vector()
    b.emit(op, (to,), reads)
    return to


def _insns(b: Block) -> tuple[Insn, ...]:
    return tuple(insn for insn in b.listing() if isinstance(insn, Insn))
