"""Eight pixels and eight outputs on A64 as listings: inputs are lanes of v0 to v7, weights have 16 bits."""

from __future__ import annotations

from collections.abc import Sequence

from glowc.asm.insn import Insn
from glowc.kernels.simd.a64_step import SUMS, Insns, W, added, operand, vector

_FROM, _HALF = operand("from"), operand("half")
_STEPS = tuple(map(operand, ("step", "step2", "step3")))


def _widened(to: int, source: int, op: str = "sxtl") -> Insn:
    return Insn(op, (vector(to),), (vector(source),))


def inputs(*, short: bool, adjacent: bool) -> Insns:
    """Eight inputs of each pixel, of 8 (`short`) or 16 bits; `adjacent`: the pixels are, and pass through v8 to v11.

    No address waits for the one before: steps of two, three and four pixels are operands, half a cursor.
    """
    if adjacent:
        yield Insn("ld1_four", tuple(map(vector, range(8, 12))), (_FROM,), (), "inputs")
        yield from (_widened(k, 8 + k // 2, ("sxtl", "sxtl2")[k % 2]) for k in range(8))
        return
    form = "d" if short else "q"
    yield Insn("add_two", (_HALF,), (_FROM, operand("step4")))
    for first, base in ((0, _FROM), (4, _HALF)):
        yield Insn(f"ldr_{form}", (vector(first),), (base,), (0,), "inputs")
        for k, step in enumerate(_STEPS, first + 1):
            yield Insn(f"ldr_{form}_by", (vector(k),), (base, step), (), "inputs")
    yield from (_widened(k, k) for k in range(8) if short)


def products(lanes: Sequence[int], loads: Insns, *, short: bool, adjacent: bool) -> Insns:
    """Products of inputs, which `loads` loads, with weights of 16 bits, or 8.

    Weights of two inputs, or one, are loaded and widened between the products of those before.
    """
    groups = [lanes[k : k + 2] for k in range(0, len(lanes), 2)]
    firsts = [8 + 2 * (k % 2) for k in range(len(groups))]
    if adjacent:
        yield from loads
    yield from _weights(firsts[0], len(groups[0]), short=short)
    if not adjacent:
        yield from loads
    yield from _wide_weights(firsts[0], len(groups[0]), short=short)
    for at, group in enumerate(groups):
        after = [(first, len(g)) for first, g in zip(firsts[at + 1 : at + 2], groups[at + 1 : at + 2], strict=True)]
        yield from (insn for first, count in after for insn in _weights(first, count, short=short))
        for k, lane in enumerate(group):
            yield from _by_lane(firsts[at] + k, lane)
            if k == 0:
                yield from (insn for first, count in after for insn in _wide_weights(first, count, short=short))


def _weights(first: int, count: int, *, short: bool) -> Insns:
    to = tuple(map(vector, range(first, first + count)))
    op = "ldp_q" if count == 2 and not short else "ldr_d" if count == 1 and short else "ldr_q"
    yield Insn(op, to[-1:] if short else to, (W,), (0,), "weights")
    yield Insn("add", (W,), (W,), (8 * count if short else 16 * count,))


def _wide_weights(first: int, count: int, *, short: bool) -> Insns:
    if short:
        source = first + count - 1
        yield _widened(first, source)
        yield from (_widened(source, source, "sxtl2") for _ in range(count - 1))


def _by_lane(weights: int, lane: int) -> Insns:
    """One input of each pixel times the weights of a vector."""
    for pixel in range(8):
        for k, op in enumerate(("smlal_lane", "smlal2_lane")):
            yield added(op, SUMS + 2 * pixel + k, weights, pixel, lane)
