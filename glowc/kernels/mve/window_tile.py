"""The products of taps side by side of a depthwise window, 16 channels at a time (GLOW_MVE_DW_WINDOW).

Two taps are summed in 16 bits. The sums of bottom halves, q0 and q2, grow by their wide form, those of top halves, q1
and q3, by VQDMLAH with 2^15 in r12. Inputs are read at r7, weights at r9; both move on.
"""

from __future__ import annotations

from functools import cache

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import CORE, VECTOR, Insn, Register
from glowc.asm.order import ordered, orders_of
from glowc.asm.write import text

CORTEX_M55 = "cortex-m55"
MOST = 17  # taps that are printed one after the other
_INPUTS, _WEIGHTS, _HALF = (Register(CORE, number, virtual=False) for number in (7, 9, 12))
_SUMS = tuple(Register(VECTOR, number, virtual=False) for number in range(4))
_BYTES = 16  # of a vector


@cache
def lines(taps: int, step: int) -> tuple[str, ...]:
    """Return the assembly for so many taps, which are `step` bytes apart, in the order for a Cortex-M55."""
    run = ordered(row(taps, step), orders_of(CORTEX_M55))
    return tuple(text(insn) for insn in allocate(run, {}) if isinstance(insn, Insn))


def row(taps: int, step: int) -> tuple[Insn, ...]:
    """Return the instructions, two taps after two, which leaves registers for all."""
    b = Block()
    b.group = f"{taps} taps"
    for _ in range(taps // 2):
        x, w = _load(b, "vldrw_moving", _INPUTS, step), _load(b, "vldrb_moving", _WEIGHTS, _BYTES)
        bottom, top = _made(b, "vmullb", x, w), _made(b, "vmullt", x, w)
        x, w = _load(b, "vldrw_moving", _INPUTS, step), _load(b, "vldrb", _WEIGHTS)
        bottom = _made(b, "vadd_i16", bottom, _made(b, "vmullb", x, w))
        w = _load(b, "vldrb_moving", _WEIGHTS, _BYTES)  # again, as no register is left for it
        _add(b, bottom, _made(b, "vadd_i16", top, _made(b, "vmullt", x, w)))
    if taps % 2:
        x, w = _load(b, "vldrw_moving", _INPUTS, step), _load(b, "vldrb_moving", _WEIGHTS, _BYTES)
        _add(b, _made(b, "vmullb", x, w), _made(b, "vmullt", x, w))
    return tuple(insn for insn in b.listing() if isinstance(insn, Insn))


def _load(b: Block, op: str, base: Register, *step: int) -> Register:
    to = b.vector()
    b.emit(op, (to, base) if step else (to,), (base,), *step, memory=str(base))
    return to


def _made(b: Block, op: str, *reads: Register) -> Register:
    to = b.vector()
    b.emit(op, (to,), reads)
    return to


def _add(b: Block, bottom: Register, top: Register) -> None:
    """Add products to the sums."""
    for product, wide, narrow in ((bottom, _SUMS[0], _SUMS[1]), (top, _SUMS[2], _SUMS[3])):
        b.emit("vqdmlah", (narrow,), (narrow, product, _HALF))
        b.emit("vadd_i32", (wide,), (wide, _made(b, "vmovlb", product)))
