"""Names of the parameters that several kernels have: what the rooms of operators and of instruction sets agree on."""

from __future__ import annotations

MAX_RANK = 6


def axis_keys(letter: str) -> tuple[str, ...]:
    """Names of the per-axis parameters, e.g. d0 .. d5."""
    return tuple(f"{letter}{i}" for i in range(MAX_RANK))


AXES = (*axis_keys("d"), *axis_keys("a"), *axis_keys("b"))
"""Parameters of a loop nest over two broadcast operands."""
