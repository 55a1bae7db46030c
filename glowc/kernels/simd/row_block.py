"""A block of outputs of fc_s8 on A64 and A32, and of pixels one by one: what _row.j2 prints, assembly by the macros of
glow_a64.h, glow_a32.h.

A block reads its stream at %[w] and sixteen inputs a step at %[at], counts steps down in %[n]; inputs after the last
whole step are at %[last]. Its codes go to %[to].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from glowc.kernels.common.assembly import Printed, all_ins, ins, joined, operands
from glowc.kernels.simd import a64_end
from glowc.kernels.simd.a64_step import begin_row, printed, row
from glowc.kernels.simd.ending import A32_ENDS, Ended

_SUMS, _SCALES = 16, 8  # the first registers of both
_BANKS = (*range(20, 32), 2, 3, 4, 5)  # registers of weights for SDOT: for each four inputs, those of the block


def _registers(numbers: Iterable[int], form: str) -> str:
    return "{" + ", ".join(f"v{n}.{form}" for n in numbers) + "}"


class RowBlock(Ended):
    """What assembly a plan of fc_s8 makes."""

    __slots__ = ()
    steps: bool
    rest: int
    shifted: bool
    few: bool
    narrow: int
    biases: str
    pixel: bool

    @property
    def row_at(self) -> str:
        """The variable that points to the row of inputs."""
        return "pixel" if self.pixel else "in"

    def count(self, p: Printed) -> str:
        """Return how many inputs a row has."""
        return p["in_c" if self.pixel else "in_k"]

    @property
    def starts(self) -> bool:
        """True when accumulators start from memory: the sum of a row times shifts, with the biases."""
        return self.shifted and self.core.paired

    def constants(self, p: Printed) -> str:
        """Return what all blocks share: zero point and limits, buffers of the last outputs and of inputs."""
        return joined(
            [
                *self.end_registers(p),
                *((f"int8_t kept[{self.narrow}];",) if self.few else ()),
                *(("int8_t rest[16] = {0};",) if self.rest else ()),
                *(
                    (f"const {self.word} rest_bytes = {self.count(p)} % 16;",)
                    if self.rest and self.isa != "dot"
                    else ()
                ),
            ]
        )

    def row(self, p: Printed) -> str:
        """Return what blocks read besides the inputs: their sum, and those after the last whole step."""
        at, count = self.row_at, self.count(p)
        sums = (f"const int32_t sum = glow_sum_s8({at}, {count});", f"const int16_t *w_shift = {self.biases};")
        rest = f"memcpy(rest, {at} + {count} / 16 * 16, (size_t)({count} % 16));"
        return joined([*(sums if self.shifted else ()), *((rest,) if self.rest else ())])

    def block(self, width: int, put: str, p: Printed) -> str:
        """Return the C of a block of `width` outputs that go to `put`: its variables and the assembly."""
        return joined(
            [
                f"int8_t *put = {put};",
                *(self._shifts(width) if self.shifted else ()),
                *(self._start(width) if self.starts else ()),
                *(
                    (f"const int8_t *at = {self.row_at};", f"{self.word} n = {self.count(p)} / 16;")
                    if self.steps
                    else ()
                ),
                *((*A32_ENDS, f"w += {8 * width};") if self.a32 else ()),
                "__asm__ volatile(",
                *(f"    {line}" for line in self._assembly(width)),
                f"    : {self.changed}",
                f"    : {self.read}",
                f"    : {self.clobbers});",
                *((f"w_shift += {width};",) if self.shifted else ()),
            ]
        )

    def _shifts(self, width: int) -> Iterator[str]:
        yield f"int32_t shifts[{width}];"
        yield f"for (int32_t s = 0; s < {width}; s++) {{"
        yield from ("  shifts[s] = w_shift[s];", "}")

    def _start(self, width: int) -> Iterator[str]:
        """What accumulators start with, in memory."""
        yield f"int32_t start[{width}];"
        yield "const int32_t *starts = start;"
        for o in range(0, width, 4):
            biases = "vdupq_n_s32(0)" if self.a32 else f"vld1q_s32((const int32_t *)(const void *)w + {o})"
            yield f"vst1q_s32(start + {o}, vmlaq_n_s32({biases}, vld1q_s32(shifts + {o}), sum));"

    def _assembly(self, width: int) -> Iterator[str]:
        return self._a32(width) if self.a32 else self._dot(width // 4) if self.isa == "dot" else self._a64(width)

    @property
    def changed(self) -> str:
        """The operands that the assembly changes."""
        return operands(
            {
                '[w] "+&r"(w)': True,
                '[at] "+&r"(at), [n] "+&r"(n)': self.steps,
                '[starts] "+&r"(starts)': self.starts,
                '[head] "+&r"(head), [k] "+&r"(k_at)': self.a32,
            }
        )

    @property
    def read(self) -> str:
        """The operands that it reads."""
        return operands(
            {
                '[to] "r"(put)': True,
                '[last] "r"(rest)': self.rest > 0,
                '[rest] "r"(rest_bytes)': self.rest > 0 and self.isa != "dot",
                '[sum] "r"(sum), [shift] "r"(shifts)': self.shifted and not self.starts,
                **({} if self.a32 else self.ending.inputs),
            }
        )

    def _loop(self, *step: str) -> Iterator[str]:
        """All whole steps."""
        if self.steps:
            yield from (*all_ins("1:", "subs %[n], %[n], #1"), *step, ins("bne 1b" if self.a32 else "b.ne 1b"))

    def _a32(self, width: int) -> Iterator[str]:
        macs = f"GLOW_A32_ROW_MACS_{width}({self.products_form}, GLOW_A32_GET"
        yield "GLOW_A32_BEGIN"
        yield from (ins(f"vld1.32 {{d{_SUMS + 2 * i}[0]}}, [%[starts]]!") for i in range(width if self.shifted else 0))
        yield from self._loop(ins("vld1.8 {d0-d1}, [%[at]]!"), f"{macs})")
        if self.rest:
            yield from (ins("vld1.8 {d0-d1}, [%[last]]"), f"{macs}_REST)")
        yield f"GLOW_A32_ROW_END_{width}({self.ending.a32})"

    def _a64(self, width: int) -> Iterator[str]:
        yield from printed(begin_row(width))
        if self.ending.fixed:
            yield from all_ins(f"ldr {'sd'[width // 8]}8, [%[w]], #{width}")
        for i in range(0, width if self.shifted else 0, 2):
            yield ins(f"ldp s{_SUMS + i}, s{_SUMS + i + 1}, [%[starts], #{4 * i}]")
        yield from self._loop(ins("ldr q0, [%[at]], #16"), *printed(row(width, pairs=self.pairs)))
        if self.rest:
            yield from (ins("ldr q0, [%[last]]"), *printed(row(width, pairs=self.pairs, rest=True)))
        yield from printed(a64_end.row(self.ending, width))

    def _dot(self, quads: int) -> Iterator[str]:
        """SDOT: four outputs to a register."""
        end, sums = self.ending, range(_SUMS, _SUMS + quads)
        for first in (_SUMS, _SCALES):
            yield ins(f"ld1 {_registers(range(first, first + quads), '4s')}, [%[w]], #{16 * quads}")
        if end.fixed:
            yield from all_ins(f"ldr {'sdqq'[quads - 1]}1, [%[w]]", f"add %[w], %[w], #{4 * quads}")
        if self.shifted:
            yield ins(f"ld1 {_registers(_BANKS[:quads], '4s')}, [%[shift]]")
            yield ins("dup v0.4s, %w[sum]")
            yield from (ins(f"mla v{s}.4s, v{shift}.4s, v0.4s") for s, shift in zip(sums, _BANKS, strict=False))
        yield from self._loop(*self._dot_step(quads, 4, "%[at]], #16"))
        if self.rest:
            yield from self._dot_step(quads, self.rest, "%[last]]")
        yield from printed(a64_end.row_of_dots(end, quads))
        yield ins(f"str {'sddq'[quads - 1]}2, [%[to]]")
        if quads == 3:
            yield from all_ins("mov s3, v2.s[2]", "str s3, [%[to], #8]")

    def _dot_step(self, quads: int, fours: int, source: str) -> Iterator[str]:
        banks = _BANKS[: quads * fours]
        yield ins(f"ldr q0, [{source}")
        for i in range(0, len(banks), 4):
            some = banks[i : i + 4]
            yield ins(f"ld1 {_registers(some, '16b')}, [%[w]], #{16 * len(some)}")
        for i, bank in enumerate(banks):
            yield ins(f"sdot v{_SUMS + i % quads}.4s, v{bank}.16b, v0.4b[{i // quads}]")
