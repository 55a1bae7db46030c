"""The assembly of a tile of dwconv_s8 with windows of 3 x 3, in the order that a CPU issues two at a time.

Columns come from the right to the left; the next one is loaded and unpacked beside the products of the one before.
Their distance is printed, so that a register is left for that; rows outside of the input are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glowc.kernels.common.assembly import all_ins, ins
from glowc.kernels.dsp.depthwise_tile import Begun, Sums, Tile, WindowPlan, rotated

_WEIGHTS = ("r4", "r5", "r6")
_SUMS: Sums = (("r7", "r8"), ("r9", "r10"), ("r11", "lr"))
_TURNS = (("r4", "r5", "r6", "r7"), ("r8", "r9", "r10", "r11"))  # codes of two outputs
_SIDE = 3
_CBZ_REACH = 126  # bytes
_SIGN = ("eor {0}, {0}, #0x80808080",)
_FOUR = range(4)
_U8 = (
    *(f"usat {{{r}}}, #8, {{{r}}}" for r in _FOUR),
    "orr {0}, {0}, {2}, lsl #8", "orr {1}, {1}, {3}, lsl #8", "orr {0}, {0}, {1}, lsl #16", *_SIGN,
)  # fmt: skip
_SHORT = (
    "pkhbt {0}, {0}, {1}, lsl #16", "pkhbt {2}, {2}, {3}, lsl #16",
    "usat16 {0}, #8, {0}", "usat16 {2}, #8, {2}", "orr {0}, {0}, {2}, lsl #8", *_SIGN,
)  # fmt: skip
_S8 = (
    *(f"qadd {{{r}}}, {{{r}}}, r3" for r in _FOUR), *(f"ssat {{{r}}}, #8, {{{r}}}" for r in _FOUR),
    "bfi {0}, {2}, #8, #8", "bfi {1}, {3}, #8, #8", "pkhbt {0}, {0}, {1}, lsl #16",
)  # fmt: skip


class PairedTile(WindowPlan):
    """Tiles in the order of a CPU that issues two instructions at a time."""

    __slots__ = ()
    in_col: int

    @property
    def reordered(self) -> bool:
        """True: the first row of the window is one that exists."""
        return True

    def four_channels(self, t: Tile) -> Iterator[str]:
        """Compute four channels of a tile."""
        yield from self._sums(t, 0)
        yield from self._sums(t, 1)
        if self.fixed:
            yield from self.fixed_codes(_SUMS[: t.outputs])
            return
        yield from self.rounded(t.outputs)
        yield from self.to_out()
        for first in range(0, t.outputs, 2):
            yield from self._codes(range(first, min(first + 2, t.outputs)))

    def _sums(self, t: Tile, half: int) -> Iterator[str]:
        begun = Begun()
        yield from self.biases(_SUMS[0], half)
        for row in range(_SIDE):
            yield from all_ins("ldmia r1!, {r4-r6}", f"ldrd r0, r3, [sp, #{48 + 16 * row}]")
            yield from (ins(f"sxtb16 {r}, {r}{rotated(half)}") for r in _WEIGHTS)
            if row and 8 * (t.end - t.first) + 24 * t.outputs + 4 * half <= _CBZ_REACH:
                yield ins(f"cbz r3, {6 + row}f")
            elif row:
                yield from all_ins("cmp r3, #0", f"beq.w {6 + row}f")
            yield from self._columns(t, half, begun)
            if half:
                yield from all_ins("adds r0, r0, #4", f"str r0, [sp, #{48 + 16 * row}]")
            if row:
                yield ins(f"{6 + row}:")
        yield from self.half_ends(_SUMS[: t.outputs], half)

    def _columns(self, t: Tile, half: int, begun: Begun) -> Iterator[str]:
        def load(column: int, to: str) -> str:
            return ins(f"ldr {to}, [r0, #{(column - t.first) * self.in_col}]")

        def unpack(r: str) -> str:
            return ins(f"sxtab16 {r}, r12, {r}{rotated(half)}")

        yield load(t.end - 1, "r2")
        if t.end - t.first > 1:
            yield load(t.end - 2, "r3")
        yield unpack("r2")
        now, after = "r2", "r3"
        for column in reversed(range(t.first, t.end)):
            products = list(self._products(t, column, now, begun))
            if column > t.first:
                if column < t.end - 1:
                    yield load(column - 1, after)
                products.insert(0 if column == t.end - 1 else 2, unpack(after))
            yield from products
            now, after = after, now

    def _products(self, t: Tile, column: int, now: str, begun: Begun) -> Iterator[str]:
        for output in reversed(range(t.outputs)):
            for kx, w in enumerate(_WEIGHTS):
                if output * self.stride_w + kx == column:
                    (a, b), source = _SUMS[output], _SUMS[begun.begin(output)]
                    yield from all_ins(f"smlabb {a}, {now}, {w}, {source[0]}", f"smlatt {b}, {now}, {w}, {source[1]}")

    def _codes(self, outputs: Sequence[int]) -> Iterator[str]:
        """Write the rounded values of up to two outputs as codes, in turns."""
        turns = _TURNS[: len(outputs)]
        if not self.u8:
            yield ins("ldr r3, [sp, #24]")
        for four, t in zip(turns, outputs, strict=True):
            yield ins(f"vmov {four[0]}, {four[1]}, s{2 * t}, s{2 * t + 1}")
            yield ins(f"vmov {four[2]}, {four[3]}, s{6 + 2 * t}, s{7 + 2 * t}")
        for line in _S8 if not self.u8 else _SHORT if self.short else _U8:
            yield from (ins(line.format(*four)) for four in turns)
        if not self.u8:
            yield ins("ldrd r3, r5, [sp, #32]")
            for r, *_ in turns:
                yield from all_ins(f"ssub8 r6, {r}, r3", f"sel {r}, {r}, r3", f"ssub8 r6, r5, {r}", f"sel {r}, {r}, r5")
        for (r, *_), t in zip(turns, outputs, strict=True):
            if t:
                yield ins("add r0, r0, r2")
            yield ins(f"str {r}, [r0]")
