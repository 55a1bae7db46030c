"""What templates of kernels print by a call, where a statement of Jinja for every line would hide the C.

`each(4, "acc += x[{k}];")` is a line for each number; `loops`, `place` are nested loops over the axes of operands,
whose lengths and strides are parameters of the kernel: d0, d1 .. and, of operand a, a0, a1 ..
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def each(numbers: int | Iterable[int], line: str) -> str:
    """Return a line for each of the numbers, or of the first so many from 0 on, which stands where it has {k}."""
    chosen = range(numbers) if isinstance(numbers, int) else numbers
    return "".join(line.replace("{k}", str(k)) + "\n" for k in chosen)


def loops(p: Mapping[str, str], rank: int) -> str:
    """Return the heads of nested loops over the indices x0, x1 .. of the lengths d0, d1 .."""
    return "".join(f"  for (int32_t x{k} = 0; x{k} < {p[f'd{k}']}; x{k}++) {{\n" for k in range(rank))


def place(p: Mapping[str, str], operand: str, rank: int) -> str:
    """Return where the element of such indices is in the operand of that letter."""
    return " + ".join(f"x{k} * {p[f'{operand}{k}']}" for k in range(rank))


HELPERS = {"each": each, "loops": loops, "place": place}
