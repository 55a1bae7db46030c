"""Blocks on A64 as listings: sums begin in v16 to v31, a step is loaded, its products are added.

Orders are those in which a Cortex-A53 waits least: what needs a product waits for five other instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from glowc.asm.insn import VECTOR, Insn, Register
from glowc.asm.isa_a64 import A64
from glowc.asm.write import rows_of

Insns = Iterator[Insn]
SUMS, _WEIGHTS = 16, 4
STEP_BYTES = 64

_FIRST, _MORE, _SECOND, _ADD, _LOAD, _MOVE = "smull", "smlal2", "smull2", "sadalp", "load", "move"
_Order = Sequence[tuple[str, int, int]]
_PAIRED: _Order = (
    (_FIRST, 0, 6), (_MORE, 0, 6), (_ADD, 0, 2), (_LOAD, 2, 3), (_ADD, 2, 4), (_FIRST, 6, 8), (_ADD, 4, 5),
    (_FIRST, 8, 10), (_ADD, 5, 6), (_FIRST, 10, 12), (_MORE, 6, 12), (_ADD, 6, 7), (_LOAD, 3, 4), (_ADD, 7, 11),
    (_FIRST, 12, 15), (_ADD, 11, 12), (_FIRST, 15, 16), (_MORE, 12, 16), (_MOVE, 0, 1), (_ADD, 12, 16),
)  # fmt: skip
_APART: _Order = (
    (_FIRST, 0, 6), (_ADD, 0, 6), (_SECOND, 0, 6), (_ADD, 0, 2), (_LOAD, 2, 3), (_ADD, 2, 6),
    (_FIRST, 6, 12), (_ADD, 6, 12), (_SECOND, 6, 12), (_ADD, 6, 8), (_LOAD, 3, 4), (_ADD, 8, 12),
    (_FIRST, 12, 16), (_ADD, 12, 16), (_SECOND, 12, 16), (_ADD, 12, 16), (_MOVE, 0, 1),
)  # fmt: skip
_PRODUCTS = (3, 2, 8, 9, 10, 11, 3, 0, 8, 9, 10, 11, 8, 9, 10, 11)
"""Where products of four pixels and four outputs are: in vectors of inputs until these are loaded."""
_ROW_PRODUCTS, _ROW_WEIGHTS = (28, 29, 30, 31, 1, 2, 3, 9), (4, 5, 6, 7, 24, 25, 26, 27)


def printed(insns: Iterable[Insn]) -> Sequence[str]:
    """Return the lines of a statement in C."""
    return rows_of(insns, A64)


def vector(number: int) -> Register:
    """Return a vector register."""
    return Register(VECTOR, number, virtual=False)


def operand(name: str) -> Register:
    """Return an operand of the statement."""
    return Register(f"%[{name}]", 0, virtual=False)


W, REST, _HEAD = operand("w"), operand("rest"), operand("head")


def _some(first: int, count: int) -> tuple[Register, ...]:
    return tuple(map(vector, range(first, first + count)))


def made(op: str, to: int, *reads: int | Register, imm: Sequence[int] = ()) -> Insn:
    """Return an instruction whose result is a vector."""
    return Insn(op, (vector(to),), tuple(vector(r) if isinstance(r, int) else r for r in reads), tuple(imm))


def added(op: str, total: int, a: int, *more: int) -> Insn:
    """Return an instruction that adds to a vector; `more`: another vector, a lane of it."""
    return Insn(op, (vector(total),), (vector(total), vector(a), *map(vector, more[:1])), more[1:])


def _moved(base: Register, by: int | Register | None) -> Insns:
    """Yield the instruction that moves a base by bytes, or by an operand."""
    if isinstance(by, int):
        yield Insn("add", (base,), (base,), (by,))
    elif by is not None:
        yield Insn("add_two", (base,), (base, by))


def _load(op: str, to: Sequence[int], base: Register, at: int) -> Insn:
    return Insn(op, tuple(map(vector, to)), (base,), (at,), "weights" if base == W else "inputs")


def begin_four_by_four() -> Insns:
    """Sums of four pixels and four outputs in four parts; the biases begin the first ones."""
    for pixel in range(4):
        yield from (_load("ldp_s", (SUMS + 4 * pixel + k, SUMS + 4 * pixel + k + 1), W, 4 * k) for k in (0, 2))
    yield from _moved(W, 32)


def begin_row(width: int) -> Insns:
    """The same of one row, and scales from v10 on."""
    yield from (_load("ldp_s", (SUMS + k, SUMS + k + 1), W, 4 * k) for k in range(0, width, 2))
    yield _load("ldp_q", (10, 11), W, 32) if width == 8 else _load("ldr_q", (10,), W, 16)
    yield from _moved(W, 8 * width)


def begin_eight_pixels(width: int) -> Insns:
    """Sums of eight pixels, two vectors of each for eight outputs, else one."""
    if width == 8:
        return (_load("ldp_q", (k, k + 1), _HEAD, 0) for k in range(SUMS, SUMS + 16, 2))
    return (_load("ldr_q" if width == 4 else "ldr_d", (k,), _HEAD, 0) for k in range(SUMS, SUMS + 8))


def begin_matrices(width: int) -> Insns:
    """Sums of two pixels and two outputs each, and scales from v8 on."""
    count = width // 2
    for to in (*range(SUMS, SUMS + count), *range(8, 8 + count)):
        yield Insn("ld1r_moving", (vector(to), W), (W,), (8,), "weights")
    yield from (Insn("mov", (vector(SUMS + k),), (vector(SUMS + k % count),)) for k in range(count, 4 * count))


def _weight_pairs(to: Sequence[int]) -> Insns:
    """The weights of a step by loads of pairs, which an in-order core takes sooner than one that moves."""
    return (_load("ldp_q", to[k : k + 2], W, 16 * k) for k in range(0, len(to), 2))


def _weights_rest(to: Sequence[int]) -> Insns:
    """The weights of a step of less than 16 inputs: what a vector holds after them meets inputs of 0."""
    for one, two in zip(to[::2], to[1::2], strict=True):
        yield _load("ldr_q", (one,), W, 0)
        yield Insn("ldr_q_by", (vector(two),), (W, REST), (), "weights")
        yield Insn("add_lsl", (W,), (W, REST), (1,))


def _product(kind: str, to: int, x: int, w: int, total: int) -> Insn:
    if kind == _ADD:
        return added(kind, total, to)
    reads = (vector(to), vector(x), vector(w)) if kind == _MORE else (vector(x), vector(w))
    return Insn(kind, (vector(to),), reads)


def four_by_four(base: Register, by: int | Register | None, *, pairs: bool, rest: bool = False) -> Insns:
    """A step of four pixels, whose inputs are at a base that moves, times four outputs.

    `pairs`: no weight is -128, so that two products fit 16 bits. `rest`: the weights of the last inputs.
    """
    weights = range(_WEIGHTS, _WEIGHTS + 4)
    yield _load("ldr_q", (0,), base, 0)
    yield from _weights_rest(weights) if rest else _weight_pairs(weights)
    yield _load("ldr_q", (1,), base, 16)
    for kind, begin, end in _PAIRED if pairs else _APART:
        for k in range(begin, end):
            if kind == _LOAD:
                yield _load("ldr_q", (k,), base, 16 * k)
            elif kind == _MOVE:
                yield from () if rest else (*_moved(W, STEP_BYTES), *_moved(base, by))
            else:
                yield _product(kind, _PRODUCTS[k], k // 4, _WEIGHTS + k % 4, SUMS + k)


def row(width: int, *, pairs: bool, rest: bool = False) -> Insns:
    """A step of one row, whose inputs are in v0, times so many outputs."""
    weights = _ROW_WEIGHTS[:width]
    yield from _weights_rest(weights) if rest else (*_weight_pairs(weights), *_moved(W, 16 * width))
    for kind in (_FIRST, _MORE, _ADD) if pairs else (_FIRST, _ADD, _SECOND, _ADD):
        for k in range(width):
            yield _product(kind, _ROW_PRODUCTS[k], 0, weights[k], SUMS + k)


def half_step() -> Insns:
    """Eight inputs of four pixels, two of them in a vector (low half, high half), as are the weights of two outputs."""
    yield _load("ldp_q", (0, 1), operand("at"), 0)
    yield Insn("ldp_q_moving", (vector(4), vector(5), W), (W,), (32,), "weights")
    yield from (Insn("ext", (vector(to),), (vector(to - 2),) * 2) for to in (6, 7))
    for half in range(4):
        weights = (6, 4, 7, 5) if half % 2 else (4, 6, 5, 7)
        for kind in (_SECOND if half % 2 else _FIRST, _ADD):
            yield from (_product(kind, 8 + k, half // 2, w, SUMS + 4 * half + k) for k, w in enumerate(weights))


def vectors_step(base: Register, by: int | Register | None, width: int, *, rest: bool = False) -> Insns:
    """Load a step of inputs, 64 bytes, to v0 to v3 and weights of so many outputs from v4 on (SDOT, SMMLA).

    `rest`: the weights of less than eight inputs, of two outputs in a vector; others meet inputs of 0.
    """
    some, weights = _some(0, 4), _some(_WEIGHTS, 4 if width > 4 else 2)
    if isinstance(by, int):
        yield Insn("ld1_four_moving", (*some, base), (base,), (by,), "inputs")
    else:
        at = () if by is None else (by,)
        yield Insn("ld1_four_by" if at else "ld1_four", (*some, *(base for _ in at)), (base, *at), (), "inputs")
    if rest:
        halves = ("ld1_low_by", "ld1_high_by")
        yield from (Insn(op, (to, W), (to, W, REST), (), "weights") for to in weights for op in halves)
    else:
        op = {8: "ld1_four_moving", 4: "ld1_two_moving", 2: "ld1_halves_moving"}[width]
        yield Insn(op, (*weights, W), (W,), (8 * width,), "weights")


def dots(width: int) -> Insns:
    """Eight inputs of each of eight pixels times so many outputs, by SDOT."""
    if width == 8:
        for pixel in range(8):
            for w in range(4):
                yield added("sdot", SUMS + 2 * pixel + w % 2, 4 + w, pixel // 2, 2 * (pixel % 2) + w // 2)
    else:
        for w in range(2):
            yield from (added("sdot", SUMS + pixel, 4 + w, pixel // 2, 2 * (pixel % 2) + w) for pixel in range(8))


def matrices(width: int) -> Insns:
    """The same by SMMLA, of two pixels and two outputs."""
    count = width // 2
    return (added("smmla", SUMS + count * x + w, x, 4 + w) for x in range(4) for w in range(count))
