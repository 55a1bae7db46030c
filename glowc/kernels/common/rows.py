"""Rows of two operands that are added or multiplied."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.common.assembly import Printed, joined
from glowc.program.ir import Instr, Plan

_LEAST = 8  # elements for which a loop over words pays


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan(Plan):
    """Of loops over the rows of int8 operands that are broadcast: their steps along a row, 0 where one code repeats.

    Templates print what is here around the loop over a row, whose elements have the index i.
    """

    a_step: int
    b_step: int

    def open(self, p: Printed) -> str:
        """Return the beginning: pointers x, y and to of a row; an operand that repeats is read once."""
        last = int(p["rank"]) - 1
        loops = [f"for (int32_t x{k} = 0; x{k} < {p[f'd{k}']}; x{k}++) {{" for k in range(last)]
        places = {s: "".join(f" + x{k} * {p[f'{s}{k}']}" for k in range(last)) for s in "ab"}
        rows = [f"const int8_t *const x = a{places['a']};", f"const int8_t *const y = b{places['b']};"]
        once = "const int32_t left = x[0];" if not self.a_step else "const int32_t right = y[0];"
        return joined(
            [
                *(["int8_t *to = out;", *loops, *rows] if last else [*rows, "int8_t *const to = out;"]),
                *([once] if self.repeats else []),
                "int32_t i = 0;",
            ]
        )

    def close(self, p: Printed) -> str:
        """Return the end."""
        last = int(p["rank"]) - 1
        return joined([f"to += {self.n(p)};", *["}"] * last] if last else ())

    @property
    def repeats(self) -> bool:
        """True when one of the operands repeats a code."""
        return not (self.a_step and self.b_step)

    def n(self, p: Printed) -> str:
        """Return the elements of a row."""
        return p[f"d{int(p['rank']) - 1}"]

    def left(self, k: int = 0) -> str:
        """Return the code of the first operand k after i."""
        return f"x[i + {k}]" if self.a_step else "left"

    def right(self, k: int = 0) -> str:
        """Return that of the second."""
        return f"y[i + {k}]" if self.b_step else "right"


def steps(instr: Instr) -> tuple[int, int]:
    """Return the steps of both operands along the last axis."""
    last = int(instr.params["rank"]) - 1
    return int(instr.params[f"a{last}"]), int(instr.params[f"b{last}"])


def accepts_rows(instr: Instr) -> bool:
    """Accept rows of adjacent codes; those of one operand may be one code each."""
    return steps(instr) in ((1, 1), (1, 0), (0, 1))


def accepts_dense_rows(instr: Instr) -> bool:
    """Accept adjacent elements, and rows of at least eight of them that may be repeated."""
    rank = instr.int_("rank")
    return steps(instr) == (1, 1) and (rank == 1 or (rank == 2 and instr.int_("d1") >= _LEAST))


def are_centred(instr: Instr) -> bool:
    """Say whether the zero points of two operands and of the result are 0."""
    return not any(instr.int_(name) for name in ("a_zp", "b_zp", "out_zp"))
