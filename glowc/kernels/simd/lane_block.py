"""A block of conv_s8 for windows of few inputs, assembly by glow_a64_lane.h and glow_a32_lane.h: conv_s8_lane.c.j2.

A block of `pixels` x 8 outputs reads its stream at %[w]; an input is a lane of a vector, a column of it for SDOT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glowc.kernels.common.assembly import all_ins, ins, joined, operands
from glowc.kernels.simd import a64_end, a64_lane
from glowc.kernels.simd.a64_step import begin_eight_pixels, printed
from glowc.kernels.simd.ending import A32_ENDS, Ended

_LANES = 8  # inputs that a step has in registers


class LaneBlock(Ended):
    """What assembly a plan of such a kernel makes."""

    __slots__ = ()
    path: str
    rest: int
    adjacent: bool
    short: bool
    k_w: int
    stride: int
    run: int

    @property
    def point(self) -> bool:
        """True when pixels are read from the tensor itself."""
        return self.path == "lane-point"

    @property
    def registers(self) -> int:
        """Registers of four columns that a row of the windows of a block fills (dot)."""
        return -(-(7 * self.stride + self.k_w) // 4)

    def block(self, at: str, steps: str, put: str) -> str:
        """Return the C of a block: its variables and the assembly."""
        return joined(
            [
                f"const int8_t *at = {at};",
                *(() if self.isa == "dot" else ("const int8_t *from;",)),
                *(() if self.point else ("const int8_t *run;",)),
                *(("const int8_t *half;",) if self.steps else ()),
                *(() if self.adjacent else (f"{self.word} n = {steps};",)),
                *(A32_ENDS if self.a32 else A32_ENDS[:1]),
                f"int8_t *put = {put};",
                f"w += {8 * self.ending.head_bytes};",
                "__asm__ volatile(",
                *(f"    {line}" for line in self._lines()),
                f"    : {self._changed()}",
                f"    : {self._read()}",
                f"    : {self.clobbers});",
            ]
        )

    @property
    def steps(self) -> bool:
        """True when the pixels of a block are a step apart, of which there are multiples (a64)."""
        return self.isa == "a64" and not self.adjacent

    @property
    def _again(self) -> str:
        return ins("bne 1b" if self.a32 else "b.ne 1b")

    def _lines(self) -> Iterator[str]:
        yield from ["GLOW_A32_LANE_BEGIN"] if self.a32 else printed(begin_eight_pixels(8))
        yield from self._points() if self.point else self._dots() if self.isa == "dot" else self._windows()
        yield from (
            [f"GLOW_A32_LANE_END({self.ending.a32})"] if self.a32 else printed(a64_end.eight_pixels(self.ending, 8))
        )

    def _changed(self) -> str:
        head = {'[head] "+&r"(head), [k] "+&r"(k_at)': self.a32}
        return operands(
            {
                '[w] "+&r"(w), [to] "+&r"(put)': True,
                **head,
                '[at] "+&r"(at)': True,
                '[from] "=&r"(from)': self.isa != "dot",
                '[n] "+&r"(n)': not self.adjacent,
                '[run] "=&r"(run)': not self.point,
                '[half] "=&r"(half)': self.steps,
            }
        )

    def _read(self) -> str:
        return operands(
            {
                '[head] "r"(head)': not self.a32,
                '[next] "r"(next)': True,
                '[step] "r"(step)': self.isa != "dot" and not self.adjacent,
                '[step2] "r"(2 * step), [step3] "r"(3 * step), [step4] "r"(4 * step)': self.steps,
                '[column] "r"(column)': not self.point,
                **({} if self.a32 else self.ending.inputs),
            }
        )

    def _macs(self, lanes: Sequence[int], *, bits: int = 8, adjacent: bool = False) -> Iterator[str]:
        """The products of some of the inputs, which have 8 or 16 bits."""
        if self.a32:
            yield f"GLOW_A32_LANE_LOAD_{'ADJACENT' if adjacent else f'S{bits}'}"
            yield from self._a32_macs(lanes)
        else:
            loads = a64_lane.inputs(short=bits == 8, adjacent=adjacent)
            yield from printed(a64_lane.products(lanes, loads, short=self.short, adjacent=self.adjacent))

    def _a32_macs(self, lanes: Sequence[int]) -> Iterator[str]:
        """Weights of four inputs, two or one at a time."""
        fours = [lanes[i : i + 4] for i in range(0, len(lanes), 4)]
        for some in (some for four in fours for some in ([four] if len(four) != 3 else [four[:2], four[2:]])):
            yield f"GLOW_A32_LANE_W{len(some)}{'_S8' if self.short else ''}"
            for i, lane in enumerate(some):
                half = "LOW" if lane < 4 else "HIGH"
                yield f"GLOW_A32_LANE_MAC_{half}({8 + 2 * i}, {9 + 2 * i}, {lane % 4})"

    def _points(self) -> Iterator[str]:
        yield from all_ins("1:", "mov %[from], %[at]")
        if not self.adjacent:
            yield ins(f"add %[at], %[at], #{_LANES}")
        yield from self._macs(range(_LANES), adjacent=self.adjacent)
        if not self.adjacent:
            yield from (ins("subs %[n], %[n], #1"), self._again)
        if self.rest:
            yield ins(f"sub %[from], %[at], #{_LANES - self.rest}")
            yield from self._macs(range(_LANES - self.rest, _LANES))

    def _row(self) -> Iterator[str]:
        word = 4 if self.a32 else 8
        return all_ins("1:", f"ldr %[run], [%[at]], #{word}", "subs %[n], %[n], #1", "add %[run], %[run], %[column]")

    def _windows(self) -> Iterator[str]:
        yield from self._row()
        for begin in range(0, self.run, _LANES):
            yield ins(f"add %[from], %[run], #{2 * begin}" if begin else "mov %[from], %[run]")
            yield from self._macs(range(min(_LANES, self.run - begin)), bits=16)
        yield self._again

    def _dots(self) -> Iterator[str]:
        """Columns of four bytes, four to each of v0, v1 ..; pixel i and tap kx meet in column i * stride + kx."""
        yield from self._row()
        first = ", ".join(f"v{r}.16b" for r in range(min(self.registers, 4)))
        yield ins(f"ld1 {{{first}}}, [%[run]]" + (", #64" if self.registers > 4 else ""))
        yield from (ins(f"ldr q{r}, [%[run]], #16") for r in range(4, self.registers))
        for kx in range(self.k_w):
            if kx % 2 == 0 and kx + 1 < self.k_w:
                yield ins("ld1 {v6.16b, v7.16b, v8.16b, v9.16b}, [%[w]], #64")
            elif kx % 2 == 0:
                yield ins("ldp q6, q7, [%[w]], #32")
            w = 6 + 2 * (kx % 2)
            for i in range(8):
                column = i * self.stride + kx
                sums, lane = 16 + 2 * i, f"v{column // 4}.4b[{column % 4}]"
                yield from all_ins(f"sdot v{sums}.4s, v{w}.16b, {lane}", f"sdot v{sums + 1}.4s, v{w + 1}.16b, {lane}")
        yield self._again
