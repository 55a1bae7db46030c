"""A row of inputs times four outputs whose weights have few bits, with SMLAD (runtime_c/dsp/glow_dsp_narrow.h)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import FLAGS, SP, Listing, Register
from glowc.asm.isa import Kind
from glowc.asm.write import short, statement

_FRAME_BYTES = 4
_PAIRS = _FRAME_BYTES + 36  # from the stack to the argument beyond those in registers
_MASK = 0x000F000F  # of two weights of 4 bits
_OUTPUTS = 4
_LOW_ONES = (Kind.PLAIN, Kind.STORE)  # have registers that short instructions name


@cache
def assembly(bits: int, *, paired: bool) -> str:
    """Return the assembly of the function for weights of 4 bits, or places of so many bits, looked up by pairs."""
    listing, arguments = tile(bits, paired=paired)
    return statement(short(allocate(listing, {r: n for n, r in enumerate(arguments)}, _LOW_ONES)), _FRAME_BYTES)


def tile(bits: int, *, paired: bool) -> tuple[Listing, Sequence[Register]]:
    """Return the function's instructions, and its arguments in registers."""
    b = Block()
    b.group = "the call"
    x, stream, units, to = arguments = [b.core() for _ in range(4)]
    b.keep(to, 0)
    known = b.load(SP, _PAIRS, "call") if paired else b.make("mov_imm", imm=(_MASK,))
    sums = [b.make("mov_imm", imm=(0,)) for _ in range(_OUTPUTS)]
    with b.loop():
        b.group = "eight inputs, four outputs"
        acts = b.load_list(x, 4, "acts")
        for at in range(4 * _OUTPUTS):  # two weights
            shift = 2 * bits * at % 32 if paired else bits * (at % 4)
            if at % (16 // bits if paired else 4) == 0:
                word = b.core()
                b.emit("ldr_moving", (word, stream), (stream,), 4, memory="stream")
            simple = {0: ("and_imm", (1 << 2 * bits) - 1), 32 - 2 * bits: ("lsr", shift)}
            op, *imm = simple.get(shift, ("ubfx", shift, 2 * bits))
            two = b.make(op, word, imm=imm) if paired else b.make("and_lsr", known, word, imm=(shift,))
            if paired:
                b.emit("ldr_by", (two,), (known, two), 2, memory="pairs")
            b.change_last("smlad", sums[at // 4], two, acts[at % 4])
        b.emit("count", (units, FLAGS), (units,), -1)
        b.emit("bne", (), (FLAGS,))
    b.group = "sums"
    place = b.kept(0)
    for number, total in enumerate(sums):
        b.emit("str", (), (total, place), 4 * number, memory="sums")
    return b.listing(), arguments
