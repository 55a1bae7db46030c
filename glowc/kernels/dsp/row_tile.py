"""A row of inputs times blocks of four outputs with crossed sums: fc_s8 for cores that issue two at a time.

The function has the arguments and the stream of glow_dsp_fc_units_common (runtime_c/dsp/glow_dsp_fc.h), where crossed
sums and the four words in front of the blocks are told; but its inputs are int8, expanded on the fly, with their zero
point in the biases. A round of its loop is as many steps of eight inputs as divide those of the layer.
"""

from __future__ import annotations

from functools import cache

from glowc.asm.allocate import allocate
from glowc.asm.block import Block
from glowc.asm.insn import Listing, Register
from glowc.asm.order import ordered, orders_of
from glowc.asm.write import statement
from glowc.kernels.dsp.forms import GROUP
from glowc.kernels.dsp.pixel_tile import CORTEX_M7, joined_codes

INPUTS = 2 * GROUP
"""Inputs of a step."""
_MOST_STEPS = 8
_FIELDS = {"acts": 0, "stream": 4, "out0": 8, "blocks": 16, "groups": 20, "row": 28}
_MUL, _END, _MORE, _PLACES, _PRODUCTS, _ACTS, _ACTS_END, _OUT, _OUT_END = range(9)  # words of the frame
_FRAME_BYTES = 36
_PAIRS = (0, 1)  # of outputs


def steps_of(inputs: int) -> int:
    """Return the steps of a round for so many inputs, a multiple of INPUTS."""
    return max(n for n in range(1, _MOST_STEPS + 1) if inputs // INPUTS % n == 0)


@cache
def assembly(steps: int, *, exact: bool) -> str:
    """Return the assembly of the function for the short or the exact form of a factor (common_factor.py)."""
    listing, argument = tile(steps, exact=exact)
    return statement(allocate(ordered(listing, orders_of(CORTEX_M7)), {argument: 0}), _FRAME_BYTES)


def tile(steps: int, *, exact: bool) -> tuple[Listing, Register]:
    """Return the function's instructions, before they are ordered, and its argument."""
    b = Block()
    b.group = "the call"
    call = b.core()
    acts, stream, out, blocks, groups, products = (b.load(call, at, "call") for at in _FIELDS.values())
    for word, slot in ((products, _PRODUCTS), (acts, _ACTS), (out, _OUT)):
        b.keep(word, slot)
    b.keep(b.make("add_lsl", acts, groups, imm=(2,)), _ACTS_END)
    b.keep(b.make("add_lsl", out, blocks, imm=(2,)), _OUT_END)
    for word, slot in zip(b.load_list(stream, 4, "stream"), (_MUL, _END, _MORE, _PLACES), strict=True):
        b.keep(word, slot)
    with b.loop():
        b.group = "biases of four outputs"
        sums = b.load_list(stream, 4, "stream")
        _products(b, steps, b.kept(_ACTS), stream, sums)
        b.group = f"codes by one factor, {'exact' if exact else 'short'}"
        (_scale_exactly if exact else _scale)(b, sums)
        _store_codes(b, sums)
    return b.listing(), call


def _products(b: Block, steps: int, x: Register, stream: Register, sums: list[Register]) -> None:
    """Add the products of all inputs to the sums of outputs 0, 2, 1, 3."""
    with b.loop_of_steps(steps) as numbers:
        b.group = "eight inputs, four outputs, crossed"
        for number in numbers:
            for group in (2 * number, 2 * number + 1):
                _group(b, group, x, stream, sums)
        b.group = "the next round"
        b.change("add", x, imm=(INPUTS * steps,))
        b.change("add", stream, imm=(GROUP * INPUTS * steps,))
        b.repeat_until(x, b.kept(_ACTS_END))


def _group(b: Block, group: int, x: Register, stream: Register, sums: list[Register]) -> None:
    word = b.load(x, GROUP * group, "acts")
    outer, inner = (b.make("sxtb16", word, imm=(turned,)) for turned in (0, 8))  # inputs 0 and 2, 1 and 3
    for pair in _PAIRS:
        u, v = (b.load(stream, 4 * (GROUP * group + 2 * half + pair), "stream") for half in (0, 1))
        b.change_last("smlad", sums[pair], inner, v)
        b.change_last("smlad", sums[pair], outer, u)
        odds = b.make("sxtab16", inner, u, imm=(0,)), b.make("sxtab16", outer, v, imm=(0,))
        b.change_last("smlad", sums[2 + pair], *odds)


def _split(b: Block, sums: list[Register]) -> None:
    """Take products of inputs off the sums of odd outputs, and these off those of even ones, 256 sums and `more`."""
    products = b.kept(_PRODUCTS)
    for even, odd in zip(sums[:2], sums[2:], strict=True):
        b.change("sub", odd, products)
        b.change("sub", even, odd)


def _scale(b: Block, sums: list[Register]) -> None:
    """Multiply 256 times each sum and `more`."""
    _split(b, sums)
    more, mul, end = map(b.kept, (_MORE, _MUL, _END))
    for odd in sums[2:]:
        b.emit("add_lsl", (odd,), (more, odd), 8)
    for total in sums:
        b.emit("smmla", (total,), (total, mul, end))


def _scale_exactly(b: Block, sums: list[Register]) -> None:
    """Multiply twice each sum, rounded as TensorFlow Lite does."""
    _split(b, sums)
    mul, end = map(b.kept, (_MUL, _END))
    for even, odd in zip(sums[:2], sums[2:], strict=True):
        b.change("asr", even, imm=(7,))
        b.change("add_two", odd, odd)
    for number, total in enumerate(sums):
        sums[number] = b.make("smmlar", total, mul, end)
        b.change("add_sign", sums[number], total)


def _store_codes(b: Block, sums: list[Register]) -> None:
    """Shift and store the codes of outputs 0, 2, 1, 3."""
    places = b.kept(_PLACES)
    for total in sums:
        b.change("asr_by", total, places)
        b.change("ssat8", total)
    place = b.kept(_OUT)
    word = joined_codes(b, [sums[i] for i in (0, 2, 1, 3)])
    b.emit("str_moving", (place,), (word, place), 4, memory="out0")
    b.keep(place, _OUT)
    b.repeat_until(place, b.kept(_OUT_END))
