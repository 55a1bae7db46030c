"""A row of the window of a tile of dwconv_s8 for cores without SIMD: what dwconv_s8.c.j2 prints in the loop over rows.

A tile has `n` adjacent outputs s0 .. and the weights of a row of the window, or `held` columns of it at a time, v0 ..
in registers. Of the columns that it reads some may be missing at its left and right: they count as the zero point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from glowc.kernels.common.assembly import joined

_FARTHEST = 2  # columns from p that a load reaches
_REACHED = ("]", ", %[step]]", ", %[step], lsl #1]")


def _line(instruction: str) -> str:
    return f'"{instruction}\\n\\t"'


class ThumbTile:
    """What the plan of such a kernel prints of its tiles."""

    __slots__ = ()
    k_w: int
    stride_w: int
    dil_w: int
    n: int
    held: int
    offset: bool

    @property
    def columns(self) -> int:
        """Columns of the input that a tile reads."""
        return (self.n - 1) * self.stride_w + (self.k_w - 1) * self.dil_w + 1

    @property
    def outputs(self) -> str:
        """The operands of assembly that are the sums of the outputs."""
        return "".join(f'[s{i}] "+r"(s{i}), ' for i in range(self.n))

    @property
    def weights(self) -> str:
        """The operands of assembly that are the weights in registers."""
        return "".join(f'[v{k}] "=&r"(v{k}), ' for k in range(self.held))

    @property
    def places(self) -> str:
        """The arguments that are the places of the sums."""
        return "".join(f"&s{i}, " for i in range(self.n))

    def _parts(self) -> Iterator[range]:
        """Yield the columns of a row of the window whose weights are in registers at a time."""
        return (range(k, min(k + self.held, self.k_w)) for k in range(0, self.k_w, self.held))

    def _uses(self, part: range) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Yield each column of the tile that a part reads, with the (output, weight) of its products."""
        for column in range(self.columns):
            taps = [(i, column - i * self.stride_w) for i in range(self.n)]
            uses = [
                (i, at // self.dil_w - part[0]) for i, at in taps if at % self.dil_w == 0 and at // self.dil_w in part
            ]
            if uses:
                yield column, uses

    def row(self, left: int, right: int) -> str:
        """Return the assembly of a row of the window for Armv7-M, where so many columns are missing."""
        return joined(self._row(left, right))

    def insns(self, left: int, right: int) -> int:
        """Return the instructions of it."""
        return sum(1 for _ in self._row(left, right))

    def _row(self, left: int, right: int) -> Iterator[str]:
        base = 0
        for part in self._parts():
            weights = range(len(part))
            yield from (_line(f"ldrsb %[v{k}], [%[w]], #1") for k in weights)
            if self.offset:
                yield _line("ldr %[x], %[w_zp]")
                yield from (_line(f"sub %[v{k}], %[v{k}], %[x]") for k in weights)
            padding, first = False, part[0] > 0
            for column, uses in self._uses(part):
                if left <= column < self.columns - right:
                    yield from self._moved(base, column - left, back=first)
                    base, padding, first = self._base(base, column - left, back=first), False, False
                    yield _line(f"ldrsb %[x], [%[p]{_REACHED[column - left - base]}")
                elif not padding:
                    padding = True
                    yield _line("ldr %[x], %[zp]")
                yield from (_line(f"mla %[s{i}], %[x], %[v{k}], %[s{i}]") for i, k in uses)

    @staticmethod
    def _base(base: int, column: int, *, back: bool) -> int:
        """Return the column that p is moved to, from which a load reaches `column`."""
        return column if back else base + 2 * ((column - 1 - base) // 2 if column > base + _FARTHEST else 0)

    def _moved(self, base: int, column: int, *, back: bool) -> Iterator[str]:
        """Move p: by twos, or at once where weights of a row are taken anew."""
        if back:
            op = "sub" if column < base else "add"
            bits = (bit for bit in range(6) if abs(column - base) >> bit & 1)
            return (_line(f"{op} %[p], %[p], %[step], lsl #{bit}") for bit in bits)
        steps = (self._base(base, column, back=back) - base) // 2
        return (_line("add %[p], %[p], %[step], lsl #1") for _ in range(steps))

    def plain(self, left: int, right: int) -> str:
        """Return the same in C."""
        return joined(self._plain(left, right))

    def _plain(self, left: int, right: int) -> Iterable[str]:
        at, split = 0, self.held < self.k_w
        for part in self._parts():
            if split:
                yield "{"
            yield from (f"const int32_t v{k} = w[{k}]{' - w_zp' if self.offset else ''};" for k in range(len(part)))
            yield from (f"w += {len(part)};", "(void)zp;", "(void)step;")
            for column, uses in self._uses(part):
                value = "zp"
                if left <= column < self.columns - right:
                    behind, at, value = column - left - at, column - left, "*p"
                    if behind != 0:
                        yield f"p += {'' if behind == 1 else f'{behind} * '}step;"
                yield f"const int32_t x{column} = {value};"
                yield " ".join(f"s{i} += x{column} * v{k};" for i, k in uses)
            if split:
                yield "}"
