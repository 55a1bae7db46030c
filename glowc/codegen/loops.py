"""What templates of kernels print by a call, where a statement of Jinja for every line would hide the C.

`each(4, "acc += x[{k}];")` is a line for each number; `loops`, `place` are nested loops over the axes of operands,
whose lengths and strides are parameters of the kernel: d0, d1 .. and, of operand a, a0, a1 ..
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

Item = int | str | tuple[object, ...]
_NUMBER = re.compile(r"\{(\d*)k\}")


def each(items: int | Iterable[Item], line: str) -> str:
    """Return a line for each of the items, or for each number from 0 on below one.

    {k} in the line stands for the item, {4k} for four times a number, {0} and so on for the parts of a tuple.
    """
    return "".join(_filled(line, item) + "\n" for item in (range(items) if isinstance(items, int) else items))


def _filled(line: str, item: Item) -> str:
    if isinstance(item, tuple):
        for i, part in enumerate(item):
            line = line.replace(f"{{{i}}}", str(part))
        return line
    return _NUMBER.sub(lambda found: str(int(item) * int(found[1])) if found[1] else str(item), line)


def loops(p: Mapping[str, str], rank: int) -> str:
    """Return the heads of nested loops over the indices x0, x1 .. of the lengths d0, d1 .."""
    return "".join(f"  for (int32_t x{k} = 0; x{k} < {p[f'd{k}']}; x{k}++) {{\n" for k in range(rank))


def place(p: Mapping[str, str], operand: str, rank: int) -> str:
    """Return where the element of such indices is in the operand of that letter."""
    return " + ".join(f"x{k} * {p[f'{operand}{k}']}" for k in range(rank))


def at_most(number: str, most: int | str) -> int | str:
    """Return the length of an array of so many elements: of a parameter that is no literal, the most that it can be."""
    return most if "->" in number else number


HELPERS = {"each": each, "loops": loops, "place": place, "at_most": at_most}
