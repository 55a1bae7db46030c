"""The stack that an inference is predicted to take: that of the layer which takes the most, and what a program has.

Printed functions say what each kernel takes, with all that it calls (scripts/fit_stack.py). The C compiler puts a
function of the runtime that is called once into its caller, which then takes less.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from glowc.codegen.kernels import Identity, identity
from glowc.codegen.view import family, literal_kernels
from glowc.program.ir import Program
from glowc.select.code import WAYS, way_of
from glowc.select.cost import Costs, key_of, keys_like

Call = tuple[str, int, bool]
"""Of a layer: `key_of`, the number of its way of printing, whether no other function of the program is like its own."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """The stack of one CPU, in bytes.

    `kernels` by `glowc.select.cost.key_of`: for each of WAYS that of functions which call others, then the same where
    these became parts of them. `base` is what programs of one layer and of several have besides, by -O2 and by -Os.
    """

    kernels: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    base: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))

    def typical(self, call: Call) -> int:
        """Return what a kernel takes; one that was not measured what those take that are most like it."""
        key, way, alone = call
        at = way + len(WAYS) * alone
        for near in keys_like(key):
            if near in self.kernels:
                return self.kernels[near][at]
        parts = key.split(".")
        for alike in (slice(0, 2), slice(1, 2), slice(0, 0)):  # of the same kernel and variant, variant, CPU
            found = [taken[at] for other, taken in self.kernels.items() if other.split(".")[alike] == parts[alike]]
            if found:
                return round(median(found))
        return 0

    def layers(self, program: Program, opt: str) -> int:
        """Return the most that a layer of a program takes."""
        return max(map(self.typical, calls_of(program, opt)), default=0)

    def besides(self, opt: str, *, several: bool) -> int:
        """Return what a program of one layer, or of several, has besides."""
        return self.base[opt == "size"][several]


def parse_stacks(data: Mapping[str, Any]) -> Stacks:
    """Return the stack that a file holds: the same bytes in all ways are written once."""
    ways = {1: 2 * len(WAYS), len(WAYS): 2, 2 * len(WAYS): 1}
    kernels = {key: tuple(taken) * ways[len(taken)] for key, taken in data["kernels"].items()}
    by_o2, by_os = ((one, several) for one, several in data["base"])
    return Stacks(kernels, (by_o2, by_os))


def stack_bytes(costs: Costs, program: Program, opt: str) -> int | None:
    """Return the predicted bytes of stack of an inference; None for a CPU whose kernels were not measured."""
    if not costs.stack:
        return None
    stacks = parse_stacks(costs.stack)
    several = sum(not i.is_marker for i in program.instrs) > 1
    return stacks.layers(program, opt) + stacks.besides(opt, several=several)


def calls_of(program: Program, opt: str) -> Iterator[Call]:
    """Yield the calls of a program. Numbers of a function that is called once are constant to the compiler."""
    literal = literal_kernels(program, opt)
    layers = [(i, family(i) in literal) for i in program.instrs if not i.is_marker]
    functions = [(key_of(i), identity(i, literal=printed), printed) for i, printed in layers]
    count = Counter(function for _, function, _ in functions)
    alike: dict[tuple[str, ...], set[Identity]] = defaultdict(set)
    for key, function, _ in functions:
        alike[_variant(key)].add(function)
    for key, function, printed in functions:
        yield key, way_of(opt, literal=printed or count[function] == 1), len(alike[_variant(key)]) == 1


def _variant(key: str) -> tuple[str, ...]:
    return tuple(key.split(".")[:2])
