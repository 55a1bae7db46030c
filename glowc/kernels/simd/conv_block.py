"""The assembly of a block of conv_s8 on A64 and A32 by the macros of glow_a64.h, glow_a32.h: conv_s8.c.j2 prints it.

A block of `width` outputs of all its pixels reads its stream at %[w] and its inputs at %[at] (or, by rows, at the runs
that lie there), counts steps down in %[n], and leaves its codes at %[to].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from glowc.kernels.common.assembly import all_ins, ins, joined, operands
from glowc.kernels.simd import a64_end, a64_step
from glowc.kernels.simd.a64_step import operand, printed
from glowc.kernels.simd.ending import Ended
from glowc.kernels.simd.stream import CHUNK


class ConvBlock(Ended):
    """What assembly a plan of conv_s8 makes."""

    __slots__ = ()
    path: str
    grain: int
    outputs: int
    shifted: bool
    rest: bool
    twice: bool
    stride: int
    k_w: int
    apart: int
    single: bool

    @property
    def half(self) -> bool:
        """True when pixels have half a step of inputs."""
        return self.path == "direct" and self.grain == CHUNK // 2 and self.core.paired

    @property
    def headed(self) -> bool:
        """True when the end of a block reads the begin of its stream."""
        return self.isa != "i8mm" or self.ending.fixed

    @property
    def starts(self) -> bool:
        """True when accumulators start from memory: sums of windows times shifts, with the biases."""
        return self.shifted and self.core.paired

    @property
    def phases(self) -> tuple[tuple[int, ...], ...]:
        """The columns of a run by phase of the stride: those of one are adjacent in a plane."""
        if self.single:
            return ((0,),)
        return tuple(tuple(range(phase, self.k_w, self.stride)) for phase in range(min(self.stride, self.k_w)))

    @property
    def walks(self) -> bool:
        """True when a row of a window needs a cursor besides its start."""
        return self.path == "rows" and (self.a32 or len(self.phases) > 1)

    @property
    def cursors(self) -> tuple[str, ...]:
        """The pointers that walk through rows of windows."""
        there = {"run": self.path == "rows", "run_at": self.path == "rows" and self.twice, "walk": self.walks}
        return tuple(name for name, is_there in there.items() if is_there)

    def block(self, width: int) -> str:
        """Return the assembly of a block of `width` outputs."""
        return joined(self._lines(width))

    def _begin(self, width: int) -> Sequence[str]:
        if self.a32:
            return ("GLOW_A32_BEGIN",)
        if self.isa == "a64":
            return printed(a64_step.begin_four_by_four())
        return printed(a64_step.begin_eight_pixels(width) if self.isa == "dot" else a64_step.begin_matrices(width))

    def _lines(self, width: int) -> Iterator[str]:
        yield from self._begin(width)
        if self.ending.fixed and self.isa in ("a64", "i8mm"):
            yield ins(f"add %[w], %[w], #{width}") + " /* the shifts */"
        if self.shifted:
            yield from self._starts(width)
        if self.half:
            yield from ("GLOW_A32_HALF_STEP",) if self.a32 else printed(a64_step.half_step())
        elif self.path == "rows":
            yield ins("1:")
            yield from self._rows_of_windows(width)
            yield self._again()
        else:
            yield from self._gathered(width)
        yield from self._end(width)

    def _end(self, width: int) -> Sequence[str]:
        end = self.ending
        if self.a32:
            return (f"GLOW_A32_END({end.a32})",)
        if self.isa == "a64":
            return printed(a64_end.four_by_four(end))
        return printed(a64_end.eight_pixels(end, width) if self.isa == "dot" else a64_end.matrices(end, width))

    def _again(self) -> str:
        return ins("bne 1b" if self.a32 else "b.ne 1b")

    def _step(self, width: int, move: str = "", cursor: str = "at", *, rest: bool = False) -> Iterable[str]:
        """The products of the step whose inputs lie at a cursor, by the weights that are next in the stream.

        `move`: "NEXT" or "STAY", a cursor through rows of windows moves or not; "": `at` does.
        """
        if self.a32:
            form = self.products_form
            load = f"[%[{cursor}]], %[grain]" if move else f"[%[{cursor}]]!"
            return (f'"vld1.8 {{d0-d3}}, {load}\\n" GLOW_A32_MACS({form}, GLOW_A32_GET{"_REST" if rest else ""})',)
        base, by = operand(cursor), None if move == "STAY" else operand("grain") if move else a64_step.STEP_BYTES
        if self.isa == "a64":
            return printed(a64_step.four_by_four(base, by, pairs=self.pairs, rest=rest))
        products = a64_step.dots(width) if self.isa == "dot" else a64_step.matrices(width)
        return printed((*a64_step.vectors_step(base, by, width, rest=rest), *products))

    def _rows_of_windows(self, width: int) -> Iterator[str]:
        """Rows of windows, two at a time where `twice`: the columns of one phase of the stride are adjacent."""
        runs = ("run", "run_at") if self.twice else ("run",)
        if self.twice:
            yield ins("ldp %[run], %[run_at], [%[at]], #16")
        else:
            yield ins(f"ldr %[run], [%[at]], #{4 if self.a32 else 8}")
        yield ins(f"subs %[n], %[n], #{len(runs)}")
        yield from (ins(f"add %[{run}], %[{run}], %[column]") for run in runs)
        for run in runs:
            for phase, columns in enumerate(self.phases):
                if phase:
                    yield ins(f"add %[{run}], %[{run}], %[phase]")
                last = phase + 1 == len(self.phases)
                cursor = run if not self.a32 and (last or len(columns) == 1) else "walk"
                if cursor == "walk":
                    yield ins(f"mov %[walk], %[{run}]")
                for kx in columns:
                    move = "STAY" if kx == columns[-1] else "NEXT"
                    yield from self._step(width, move, cursor)

    def _gathered(self, width: int) -> Iterator[str]:
        """Steps of inputs that lie in their order, then those after the last whole step."""
        if self.rest and self.core.paired:
            yield '"cmp %[n], #0\\nbeq 2f\\n"' if self.a32 else ins("cbz %[n], 2f")
        yield from all_ins("1:", f"subs %[n], %[n], #{1 + self.twice}")
        yield from [*self._step(width)] * (1 + self.twice)
        yield self._again()
        if self.rest and self.isa == "i8mm":
            yield from (ins("cbz %[rest], 2f"), *self._step(width, rest=True), ins("2:"))
        elif self.rest and self.isa != "dot":
            yield from (ins("2:"), *self._step(width, rest=True))

    def _starts(self, width: int) -> Iterator[str]:
        """Add shift x sum of the window to the accumulators (a64, a32: they take it from memory, the bias included)."""
        if self.a32:
            yield from (ins(f"vld1.32 {{d{16 + 2 * i}[0]}}, [%[starts]]!") for i in range(8))
        elif self.isa == "a64":
            yield from (ins(f"ldp s{16 + i}, s{17 + i}, [%[starts], #{4 * i}]") for i in range(0, 16, 2))
        elif self.isa == "i8mm":
            yield ins("ldp q4, q5, [%[sums]]")
            for i in range(4):
                yield ins(f"zip{1 + i % 2} v{i}.4s, v{4 + i // 2}.4s, v{4 + i // 2}.4s")
            for quad in range(width // 4):
                low, high = 4 + 2 * quad, 5 + 2 * quad
                yield ins(f"ldr q{low}, [%[shift], #{16 * quad}]")
                yield from all_ins(f"dup v{high}.2d, v{low}.d[1]", f"dup v{low}.2d, v{low}.d[0]")
            for i in range(2 * width):
                yield ins(f"mla v{16 + i}.4s, v{i // (width // 2)}.4s, v{4 + i % (width // 2)}.4s")
        else:
            form, quads = "2s" if width == 2 else "4s", (width + 3) // 4
            shifts = {8: "ldp q2, q3", 4: "ldr q2", 2: "ldr d2"}[width]
            yield from all_ins("ldp q0, q1, [%[sums]]", f"{shifts}, [%[shift]]")
            for i in range(8 * quads):
                pixel = i // quads
                yield ins(f"mla v{16 + i}.{form}, v{2 + i % quads}.{form}, v{pixel // 4}.s[{pixel % 4}]")

    @property
    def changed(self) -> str:
        """The operands that the assembly changes."""
        return operands(
            {
                '[at] "+&r"(at), [w] "+&r"(w), [n] "+&r"(n), [to] "+&r"(put)': True,
                '[starts] "+&r"(starts)': self.starts,
                '[k] "+&r"(k_at)': self.a32,
                **{f'[{cursor}] "=&r"({cursor})': True for cursor in self.cursors},
            }
        )

    def read(self, step: str) -> str:
        """Return the operands that it reads; `step` is from an output of a pixel to that of the next pixel."""
        rows = self.path == "rows"
        return operands(
            {
                '[sums] "r"(sums), [shift] "r"(shifts)': self.shifted and not self.starts,
                f'[next] "r"({step})': True,
                '[head] "r"(head)': self.headed,
                '[rest] "r"(rest)': self.rest and self.isa != "dot",
                f'[column] "r"(column), [grain] "r"(({self.word}){self.apart})': rows,
                '[phase] "r"(phase)': rows and len(self.phases) > 1,
                **({} if self.a32 else self.ending.inputs),
            }
        )
