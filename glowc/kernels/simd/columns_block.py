"""Blocks of channels of depthwise windows whose columns stay in registers: dwconv_s8.c.j2, dwconv_s8_dot.c.j2.

A block walks along a row; column j of the input is in the registers of column j % held, so pixels are printed for each
place where a window may begin. `wide`: 16 channels, else 8, of one pixel or of two together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from math import gcd

from glowc.kernels.common.assembly import Printed, all_ins, indented, ins, joined, operands
from glowc.kernels.simd import a64_end
from glowc.kernels.simd.a64_step import printed
from glowc.kernels.simd.ending import Ended


class ColumnsBlock(Ended):
    """What such blocks have in common."""

    __slots__ = ()
    k_h: int
    k_w: int
    stride: int
    shifted: bool
    biases: str
    scales: str

    @property
    def taps(self) -> int:
        """Taps of a window."""
        return self.k_h * self.k_w

    def sizes(self, p: Printed) -> str:
        """Return what a function of such blocks begins with."""
        return joined(
            [
                f"const int32_t in_w = {p['in_w']};",
                f"const int32_t in_c = {p['in_c']};",
                f"const int32_t out_c = {p['out_c']};",
                f"const int32_t out_w = {p['out_w']};",
                f"const int32_t pad = {p['pad_left']};",
                *self.end_registers(p),
                f"const int8x16_t padding = vdupq_n_s8((int8_t){p['in_zp']});",
            ]
        )

    def blocks(self) -> str:
        """Return the loop over the channels of a row, the last of which overlap those before."""
        return joined(["for (int32_t start = 0; start < out_c;) {", *indented(self.some_channels()), "}"])

    def some_channels(self) -> list[str]:
        """Return a block of 16 channels, or of 8 where there are no more."""
        return [
            "if (out_c >= 16 && out_c - start > 8) {", *indented(self.block_of(16)),
            "} else {", *indented(self.block_of(8)), "}",
        ]  # fmt: skip

    def block_of(self, channels: int) -> list[str]:
        """Return a block of so many channels."""
        return [
            f"const int32_t c = start + {channels} <= out_c ? start : out_c - {channels};",
            f"start = c + {channels};",
            *self.block(wide=channels == 16),
        ]

    @abstractmethod
    def block(self, *, wide: bool) -> Iterator[str]:
        """Yield the C of a block of 16 or 8 channels."""

    @abstractmethod
    def column(self, j: int, *, wide: bool) -> Iterator[str]:
        """Yield what loads column j."""

    @abstractmethod
    def pixel(self, px: int, *, wide: bool) -> Iterator[str]:
        """Yield what computes pixel px, or pixels that are computed together, of those that are printed."""

    def together(self, *, wide: bool) -> int:
        """The pixels that are computed together."""
        del wide
        return 1

    def held(self, *, wide: bool) -> int:
        """The columns of the windows of pixels that are computed together."""
        return self.k_w + (self.together(wide=wide) - 1) * self.stride

    def pixels(self, *, wide: bool) -> Iterator[str]:
        """Yield the loop along a row: columns that the first window has but no step brings, then pixels in turn."""
        first, together, held = self.k_w - self.stride, self.together(wide=wide), self.held(wide=wide)
        step = together * self.stride
        for j in range(first):
            yield from self.column(j, wide=wide)
        yield "for (int32_t x = 0;;) {"
        for n in range(held // gcd(held, step)):
            for j in range(first, held):
                yield from indented(self.column(n * step + j, wide=wide))
            yield f"  x += {together};"
            yield from ("  {", *indented(indented(self.pixel(n, wide=wide))), "  }")
            yield from ("  if (x >= out_w) {", "    break;", "  }")
        yield "}"

    def shifts(self, channels: int) -> Iterator[str]:
        """Yield the shifts of a block in 32 bits."""
        yield f"int32_t shifts[{channels}];"
        for at in range(0, channels, 8):
            more = f" + {at}" if at else ""
            yield f"glow_a64_shifts8(shifts{more}, shift + c{more});"

    def stored(self, *, wide: bool) -> Iterator[str]:
        """Yield what makes codes of the products in v0 to v3, or v0 and v1 if there are eight, limits and stores them.

        The second eight do not wait for the first ones.
        """
        two = self.together(wide=wide) == 2
        count = 2 if wide or two else 1
        codes = (*a64_end.halves(self.ending, range(2 * count)), *a64_end.narrowed(self.ending, count, 2))
        yield from printed(codes)
        if two:
            yield ins("str d3, [%[next]]")
        yield ins(f"{'stp d2, d3' if wide else 'str d2'}, [%[to]]")


_REGISTERS = 31  # one of A64 is left to the compiler
_FOUR = (4, 6, 8, 10)  # registers of four sums of 16 bits, or the first ones of two each
# How the last two of four sums are added to each other: the register of the result, the halves.
_LAST = ((6, "", "4h", 8, 10), (7, "2", "8h", 8, 10), (8, "", "4h", 9, 11), (10, "2", "8h", 9, 11))


class WindowBlock(ColumnsBlock):
    """Products of 16 bits, of which two may be added before they are widened."""

    __slots__ = ()
    narrow: bool

    def sizes(self, p: Printed) -> str:
        """Return what a function begins with; biases to which the part of rows outside is added."""
        return super().sizes(p) + joined(() if self.shifted else ("int32_t edge_bias[16];",))

    def some_channels(self) -> list[str]:
        """Return a block of 16 channels, or of 8 where a layer has fewer."""
        return self.block_of(8 if self.a32 or self.narrow else 16)

    @property
    def inside(self) -> str:
        """The condition that all rows of the window are inside of the input."""
        return " && ".join(f"inside{ky}" for ky in range(self.k_h))

    @property
    def paired(self) -> int:
        """Taps whose products are added in pairs before they are widened."""
        return self.taps // 2 * 2 if self.pairs else 0

    def together(self, *, wide: bool) -> int:
        """Two, where the registers hold both windows."""
        fits = 8 + self.k_h * (self.k_w + 1) + self.taps + self._end_registers <= _REGISTERS
        return 2 if fits and self.stride == 1 and not (wide or self.a32 or self.shifted) else 1

    @property
    def _end_registers(self) -> int:
        return sum(self.ending.inputs.values())

    def at_once(self, *, wide: bool) -> int:
        """Return how many sums of 16 bits have registers: four, or two where the window leaves no more."""
        window = self.k_h * self.held(wide=wide) + self.taps
        return 4 if 4 + 2 * 4 + window + self._end_registers <= _REGISTERS else 2

    def sums(self, *, ones_first: bool) -> list[tuple[int, ...]]:
        """Return the taps of each sum of 16 bits: one or two."""
        twos: list[tuple[int, ...]] = [(t, t + 1) for t in range(0, self.paired, 2)]
        ones: list[tuple[int, ...]] = [(t,) for t in range(self.paired, self.taps)]
        return ones + twos if ones_first else twos + ones

    def block(self, *, wide: bool) -> Iterator[str]:
        """Yield the C of a block: its biases and weights, those of rows outside apart, and the pixels."""
        vector, load, pad = self._vector(wide=wide)
        yield "int8_t *to = line + c;"
        yield f"const int32_t *start_bias = {self.biases} + c;"
        if self.ending.fixed:
            yield from self.shifts(16 if wide else 8)
        if self.shifted:
            yield f"const int8_t *w_shift = weights + {self.taps} * out_c + 2 * c;"
        else:
            yield "if (!whole) {"
            yield from (f"  memcpy(edge_bias, start_bias, {64 if wide else 32});", "  start_bias = edge_bias;", "}")
        for ky in range(self.k_h):
            row = range(ky * self.k_w, (ky + 1) * self.k_w)
            yield from (f"{vector} w{t} = {load}(weights + {t} * out_c + c);" for t in row)
            if not self.shifted:
                yield f"if (!inside{ky}) {{"
                yield from (f"  glow_add_products{16 if wide else 8}(edge_bias, {pad}, w{t});" for t in row)
                yield from (f"  w{t} = {'vdupq_n_s8(0)' if wide else 'vdup_n_s8(0)'};" for t in row)
                yield "}"
            yield f"const int8_t *from{ky} = row{ky} + c;"
        yield "int32_t ix = -pad;"
        if not self.a32:
            yield "int32_t at = -pad * in_c;"
        yield from (f"{vector} x{t} = {pad};" for t in range(self.k_h * self.held(wide=wide)))
        yield from self.pixels(wide=wide)

    @staticmethod
    def _vector(*, wide: bool) -> tuple[str, str, str]:
        """Return the type of a vector of codes, what loads it, and one of padding."""
        if wide:
            return "int8x16_t", "vld1q_s8", "padding"
        return "int8x8_t", "vld1_s8", "vget_low_s8(padding)"

    def column(self, j: int, *, wide: bool) -> Iterator[str]:
        """Yield what loads column j: padding where it or its row is outside."""
        _, load, pad = self._vector(wide=wide)
        held = self.held(wide=wide)
        registers = [f"x{ky * held + j % held}" for ky in range(self.k_h)]
        yield "if ((uint32_t)ix < (uint32_t)in_w) {"
        for ky, x in enumerate(registers):
            value = f"{load}(from{ky}{'' if self.a32 else ' + at'})"
            yield f"  {x} = " + (f"inside{ky} ? {value} : {pad};" if self.shifted else f"{value};")
            if self.a32:
                yield f"  from{ky} += in_c;"
        yield from ("} else {", *(f"  {x} = {pad};" for x in registers), "}", "ix++;")
        if not self.a32:
            yield "at += in_c;"

    def pixel(self, px: int, *, wide: bool) -> Iterator[str]:
        """Yield the assembly of a pixel."""
        together, held = self.together(wide=wide), self.held(wide=wide)
        ats = [
            [t // self.k_w * held + ((px * together + i) * self.stride + t % self.k_w) % held for t in range(self.taps)]
            for i in range(together)
        ]
        window = {f'[x{t}] "w"(x{t})': True for t in range(self.k_h * held)}
        window |= {f'[w{t}] "w"(w{t})': True for t in range(self.taps)}
        read = {
            '[to] "r"(to), [bias] "r"(start_bias)': True,
            '[next] "r"(next)': together == 2,
            '[shift] "r"(w_shift)': self.shifted,
            f'[scale] "r"({self.scales} + c)': True,
        }
        if together == 2:
            yield "int8_t *next = x <= out_w ? to + out_c : to;"
        if self.a32:
            yield "const glow_a32_limits_t *k_at = &limits;"
            yield "__asm__ volatile("
            yield from indented(self._pixel_a32(ats[0]), 4)
            yield '    : [k] "+&r"(k_at)'
            yield "    : " + operands({**read, '[limits] "r"(limits.high)': not self.ending.bounded, **window})
            yield '    : "memory", "q0", "q1", "q2", "q3");'
        else:
            yield "__asm__ volatile("
            yield from indented(self._pixel_a64(ats, wide=wide), 4)
            yield "    :"
            fixed = {'[shifts] "r"(shifts)': self.ending.fixed}
            yield "    : " + operands({**read, **fixed, **window, **self.ending.inputs}) + "\n"
            changed = ", ".join(f'"v{n}"' for n in range(4 + 2 * self.at_once(wide=wide)))
            yield f'    : "memory", {changed});'
        yield f"to += {'2 * ' if together == 2 else ''}out_c;"

    def _pixel_a32(self, at: list[int]) -> Iterator[str]:
        yield ins("vld1.32 {d0-d3}, [%[bias]]")
        for t, x in enumerate(at):
            s = 2 + (t // 2 if t < self.paired else t) % 2
            second = t < self.paired and t % 2 == 1
            yield ins(f"{'vmlal' if second else 'vmull'}.s8 q{s}, %P[x{x}], %P[w{t}]")
            if t >= self.paired or second:
                yield from all_ins(f"vaddw.s16 q0, q0, d{2 * s}", f"vaddw.s16 q1, q1, d{2 * s + 1}")
        if self.shifted:
            yield ins("vld1.8 {d6-d7}, [%[shift]]")
            yield from (
                ins(f"{'vaddl.s8 q2, %P[x0]' if t == 1 else 'vaddw.s8 q2, q2'}, %P[x{t}]") for t in range(1, self.taps)
            )
            if self.taps == 1:
                yield ins("vmovl.s8 q2, %P[x0]")
            yield from all_ins("vmlal.s16 q0, d4, d6", "vmlal.s16 q1, d5, d7")
        limits = "BOUND" if self.ending.low or self.ending.high else "FREE"
        yield f"GLOW_A32_CHANNELS_END({self.ending.kind}, {'ODD' if self.ending.odd else 'NONE'}, {limits})"

    def _pixel_a64(self, ats: list[list[int]], *, wide: bool) -> Iterator[str]:
        yield ins("ldp q0, q1, [%[bias]]")
        if wide or len(ats) == 2:
            yield ins(f"ldp q2, q3, [%[bias]{', #32' if wide else ''}]")
        yield from self._added(ats, wide=wide)
        if self.shifted:
            yield from self._shifted_sums(wide=wide)
        yield from self._codes(wide=wide)

    def _added(self, ats: list[list[int]], *, wide: bool) -> Iterator[str]:
        """Add the products of all taps: an in-order pipeline has others to do while it waits for one.

        Of four sums the first makes room for another one, the last two are added to each other.
        """
        at_once, halves = self.at_once(wide=wide), 2 if wide or len(ats) == 2 else 1
        left = self.sums(ones_first=at_once == len(_FOUR))
        while left:
            now, left = left[:at_once], left[at_once:]
            for turn in range(max(map(len, now))):
                for s, taps in zip(_FOUR, now, strict=False):
                    yield from self._product(ats, taps[turn : turn + 1], s, first=turn == 0, wide=wide)
            if len(now) < len(_FOUR):
                for s in _FOUR[: len(now)]:
                    yield from self._widened(s, halves)
            else:
                another, left = (left[0] if left else ()), left[1:]
                yield from self._four_added(ats, another, halves, wide=wide)

    def _four_added(
        self, ats: list[list[int]], another: tuple[int, ...], halves: int, *, wide: bool
    ) -> Iterator[str]:  # fmt: skip
        yield from self._widened(4, halves)
        yield from self._product(ats, another[:1], 4, first=True, wide=wide)
        yield from self._widened(6, halves)
        yield from self._product(ats, another[1:], 4, first=False, wide=wide)
        last = _LAST[: 2 * halves]
        yield from (ins(f"saddl{up} v{to}.4s, v{a}.{lanes}, v{b}.{lanes}") for to, up, lanes, a, b in last)
        if another:
            yield from self._widened(4, halves)
        yield from (ins(f"add v{n}.4s, v{n}.4s, v{to}.4s") for n, (to, *_) in enumerate(last))

    @staticmethod
    def _product(ats: list[list[int]], taps: tuple[int, ...], s: int, *, first: bool, wide: bool) -> Iterator[str]:
        op = "smull" if first else "smlal"
        for t in taps:
            for i, at in enumerate(ats):
                yield ins(f"{op} v{s + i}.8h, %[x{at[t]}].8b, %[w{t}].8b")
            if wide:
                yield ins(f"{op}2 v{s + 1}.8h, %[x{ats[0][t]}].16b, %[w{t}].16b")

    @staticmethod
    def _widened(s: int, halves: int) -> Iterator[str]:
        """Add sums of 16 bits to those of 32."""
        for half in range(halves):
            low, high, sums = 2 * half, 2 * half + 1, s + half
            yield ins(f"saddw v{low}.4s, v{low}.4s, v{sums}.4h")
            yield ins(f"saddw2 v{high}.4s, v{high}.4s, v{sums}.8h")

    def _shifted_sums(self, *, wide: bool) -> Iterator[str]:
        """Add shift x sum of the window."""
        yield ins(f"{'ldp q6, q7' if wide else 'ldr q6'}, [%[shift]]")
        for half in range(2 if wide else 1):
            high, lanes, s = ("2", "16b", 5) if half else ("", "8b", 4)
            for t in range(1, self.taps):
                begin = f"saddl{high} v{s}.8h, %[x0].{lanes}" if t == 1 else f"saddw{high} v{s}.8h, v{s}.8h"
                yield ins(f"{begin}, %[x{t}].{lanes}")
            if self.taps == 1:
                yield ins(f"sxtl{high} v{s}.8h, %[x0].{lanes}")
            yield ins(f"smlal v{2 * half}.4s, v{s}.4h, v{6 + half}.4h")
            yield ins(f"smlal2 v{2 * half + 1}.4s, v{s}.8h, v{6 + half}.8h")

    def _codes(self, *, wide: bool) -> Iterator[str]:
        end, two = self.ending, self.together(wide=wide) == 2
        sums = range(4 if wide or two else 2)
        scales = (4, 5, 6, 7) if wide else (4, 5, 4, 5)[: len(sums)]
        offsets = ("", ", #32")[: 2 if wide else 1]
        yield from (ins(f"ldp q{4 + 2 * k}, q{5 + 2 * k}, [%[scale]{at}]") for k, at in enumerate(offsets))
        if end.fixed:
            yield from printed(a64_end.upper(sums, scales))
            yield from (ins(f"ldp q{4 + 2 * k}, q{5 + 2 * k}, [%[shifts]{at}]") for k, at in enumerate(offsets))
            yield from printed(a64_end.shifted(end, sums, scales))
        else:
            yield from printed(a64_end.rounded(end, sums, scales))
        yield from self.stored(wide=wide)


class DotBlock(ColumnsBlock):
    """Products of SDOT: a column is transposed into four bytes a channel, its rows; a vector holds four channels."""

    __slots__ = ()

    def block(self, *, wide: bool) -> Iterator[str]:
        """Yield the C of a block: its weights, those of rows outside apart, and the pixels."""
        quads = range(4 if wide else 2)
        yield "int8_t *to = line + c;"
        yield f"const int32_t *start_bias = {self.biases} + c;"
        if self.ending.fixed:
            yield from self.shifts(4 * len(quads))
        for kx in range(self.k_w):
            for q in quads:
                yield from (f"int8x16_t w{kx}{q};", f"int8x16_t x{kx}{q} = padding;")
        yield f"const int8_t *from_w = weights + {self.k_h} * c;"
        yield from self._weights(quads)
        yield "if (kept != 0xFFFFFFFFu) {"
        yield "  const int8x16_t keep = vreinterpretq_s8_u32(vdupq_n_u32(kept));"
        for q in quads:
            yield f"  int32x4_t edge{q} = vld1q_s32(start_bias + {4 * q});"
            for kx in range(self.k_w):
                yield f"  edge{q} = vdotq_s32(edge{q}, vbicq_s8(w{kx}{q}, keep), padding);"
                yield f"  w{kx}{q} = vandq_s8(w{kx}{q}, keep);"
            yield f"  vst1q_s32(edge_bias + {4 * q}, edge{q});"
        yield "  start_bias = edge_bias;"
        yield '  __asm__ volatile("" ::: "memory"); /* edge_bias is read by assembly */'
        yield "}"
        yield from (f"const int8_t *from{ky} = row{ky} + c;" for ky in range(self.k_h))
        yield from ("int32_t ix = -pad;", "int64_t at = -pad * in_c;")
        yield from self.pixels(wide=wide)

    def _weights(self, quads: range) -> Iterator[str]:
        """Load the weights; bytes of columns of fewer than four rows are spread by TBL."""
        spread = self.k_h < 4
        yield "__asm__ volatile("
        if spread:
            yield "    " + ins(f"ld1 {{{', '.join(f'v{4 + q}.16b' for q in quads)}}}, [%[spread]]")
        for kx in range(self.k_w):
            yield from indented(self._spread(kx, quads) if spread else self._pairs(quads, f"w{kx}", "from"), 4)
            if kx + 1 < self.k_w:
                yield "    " + ins("add %[from], %[from], %[next]")
        weights = {f'[w{kx}{q}] "=&w"(w{kx}{q})': True for kx in range(self.k_w) for q in quads}
        yield "    : " + operands({'[from] "+&r"(from_w)': True, **weights})
        yield "    : " + operands({f'[next] "r"((int64_t){self.k_h} * out_c)': True, '[spread] "r"(spread)': spread})
        yield '    : "memory"' + (', "v0", "v1", "v2", "v4", "v5", "v6", "v7");' if spread else ");")

    def _spread(self, kx: int, quads: range) -> Iterator[str]:
        size = len(quads) * self.k_h
        table = "{" + ", ".join(f"v{n}.16b" for n in range((size + 3) // 4)) + "}"
        if size == 6:
            yield from all_ins("ldr q0, [%[from]]", "ldr d1, [%[from], #16]")
        else:
            yield ins(f"ld1 {table}, [%[from]]")
        yield from (ins(f"tbl %[w{kx}{q}].16b, {table}, v{4 + q}.16b") for q in quads)

    @staticmethod
    def _pairs(quads: range, to: str, source: str) -> Iterator[str]:
        """Load two vectors at a time."""
        for q in quads[::2]:
            yield ins(f"ldp %q[{to}{q}], %q[{to}{q + 1}], [%[{source}]{f', #{16 * q}' if q else ''}]")

    def column(self, j: int, *, wide: bool) -> Iterator[str]:
        """Yield what loads and transposes column j, padding where it is outside."""
        x, last = f"x{j % self.k_w}", self.k_h - 1
        load = "vld1q_s8(from{0} + at)" if wide else "vcombine_s8(vld1_s8(from{0} + at), vdup_n_s8(0))"
        yield "if ((uint32_t)ix < (uint32_t)in_w) {"
        yield from (f"  const int8x16_t r{ky} = {load.format(ky)};" for ky in range(self.k_h))
        for half in range(2 if wide else 1):
            rows = [f"r{min(row, last)}" for row in range(4)]
            for name, a, b in (("a", *rows[:2]), ("b", *rows[2:])):
                yield f"  const int16x8_t {name}{half} = vreinterpretq_s16_s8(vzip{half + 1}q_s8({a}, {b}));"
            for i in range(2):
                yield f"  {x}{2 * half + i} = vreinterpretq_s8_s16(vzip{i + 1}q_s16(a{half}, b{half}));"
        yield "} else {"
        yield from (f"  {x}{q} = padding;" for q in range(4 if wide else 2))
        yield from ("}", "ix++;", "at += in_c;")

    def pixel(self, px: int, *, wide: bool) -> Iterator[str]:
        """Yield the sums of a pixel and their end."""
        quads, fixed = range(4 if wide else 2), self.ending.fixed
        for q in quads:
            yield f'register int32x4_t acc{q} __asm__("v{q}");'
            yield f"{'int32x4_t' if fixed else 'float32x4_t'} scale{q};"
        for q in quads[::2]:
            at, to = f", #{16 * q}" if q else "", f'"=w"(acc{q}), "=w"(acc{q + 1})'
            yield f'__asm__ volatile("ldp %q0, %q1, [%2{at}]" : {to} : "r"(start_bias));'
        for kx in range(self.k_w):
            x = (px * self.stride + kx) % self.k_w
            yield from (f"acc{q} = vdotq_s32(acc{q}, x{x}{q}, w{kx}{q});" for q in quads)
        yield "__asm__ volatile("
        yield from indented(self._end(quads), 4)
        changed = {f'[scale{q}] "=&w"(scale{q}), "+w"(acc{q})': True for q in quads}
        read = {f'[to] "r"(to), [scale] "r"({self.scales} + c)': True, '[shifts] "r"(shifts)': fixed}
        yield f"    : {operands(changed)}"
        yield f"    : {operands({**read, **self.ending.inputs})}\n"
        yield '    : "memory");' if wide else '    : "memory", "v2");'
        yield "to += out_c;"

    def _end(self, quads: range) -> Iterator[str]:
        end = self.ending
        yield from self._pairs(quads, "scale", "scale")
        if end.fixed:
            yield from (ins(f"sqrdmulh v{q}.4s, v{q}.4s, %[scale{q}].4s") for q in quads)
            yield from self._pairs(quads, "scale", "shifts")
            yield from (ins(f"ssra v{q}.4s, v{q}.4s, #31") for q in quads if not end.rectified)
            yield from (ins(f"srshl v{q}.4s, v{q}.4s, %[scale{q}].4s") for q in quads)
        else:
            for q in quads:
                yield from all_ins(f"scvtf v{q}.4s, v{q}.4s", f"fmul v{q}.4s, v{q}.4s, %[scale{q}].4s")
                yield ins(f"fadd v{q}.4s, v{q}.4s, %[magic].4s" if end.bounded else f"fcvtns v{q}.4s, v{q}.4s")
        yield from self.stored(wide=len(quads) == 4)
