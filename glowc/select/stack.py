"""The stack that an inference is predicted to take: that of the layer which takes the most.

Measured programs say what each kernel takes (scripts/fit_stack.py): its own frame, those of what it calls, and those
above it. The C compiler puts a function that is called once into its caller, so frames alone would not add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from glowc.program.ir import Program
from glowc.select.cost import MODES, Costs, key_of, keys_like
from glowc.select.pricing import modes_of

Stacks = Mapping[str, Mapping[str, int]]
"""Bytes by `key_of` and way of printing."""


def stack_bytes(costs: Costs, program: Program, opt: str) -> int | None:
    """Return the predicted bytes of stack of an inference; None for a CPU whose programs were not measured."""
    if not costs.stack:
        return None
    return max((typical(costs.stack, key_of(i), mode) for i, mode in modes_of(program, opt)), default=0)


def typical(stacks: Stacks, key: str, mode: str) -> int:
    """Return what a kernel takes; one that was not measured what those take that are most like it."""
    for near in keys_like(key):
        if near in stacks:
            return next(stacks[near][m] for m in (mode, *MODES) if m in stacks[near])
    parts = key.split(".")
    for alike in (slice(0, 2), slice(1, 2), slice(0, 0)):  # of the same kernel and variant, variant, CPU
        found = [max(modes.values()) for other, modes in stacks.items() if other.split(".")[alike] == parts[alike]]
        if found:
            return round(median(found))
    return 0
