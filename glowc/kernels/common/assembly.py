"""Lines of inline assembly that Python puts together for a template: what is unrolled, scheduled or given registers.

A family of kernels whose tiles are more than a few loops yields the lines of an assembly statement here, in Python, by
methods of its plan; its template prints the C around them: `{{ v.tile(t) -}}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

Printed = Mapping[str, str]
"""The parameters of a kernel as its template prints them: `p`."""


def ins(instruction: str) -> str:
    """Return an instruction as a line of an assembly statement in C; macros of several are lines as they are."""
    return f'"{instruction}\\n"'


def all_ins(*instructions: str) -> Iterator[str]:
    """Yield the lines of some instructions."""
    return map(ins, instructions)


def operands(there: Mapping[str, bool]) -> str:
    """Return those operands of an assembly statement that are there."""
    return ", ".join(text for text, is_there in there.items() if is_there)


def indented(lines: Iterable[str], columns: int = 2) -> Iterator[str]:
    """Yield lines further to the right."""
    return (" " * columns + line for line in lines)


def joined(lines: Iterable[str]) -> str:
    """Return lines as the text that a template prints."""
    return "".join(f"{line}\n" for line in lines)
