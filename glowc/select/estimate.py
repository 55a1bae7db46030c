"""What the report of a program says that its calls take: sums of terms, and how far off those are for layers like it.

The choice of variants is made by the costs of glowc/select/cost.py, whose few terms hold for layers of any size.
Estimates only have to be near. A term is a feature (`glowc.kernels.features`), or `FEATURE@TRAIT`: that feature of
layers with a trait (`glowc.select.traits`), one of which is the way of printing, or `FEATURE@!TRAIT`: of those without
it. To the cycles comes the mean of a Gaussian process through the relative errors of the measured layers, by the
logarithms of their sizes and their traits (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006,
equation 2.23); far from all of them it is 0. scripts/fit_estimates.py fits both and writes
boards/_estimates/<cpu>.json. Where no chip stands for a CPU the file has instructions in place of cycles.

The stack that an inference is predicted to take is that of the layer which takes the most. Measured programs say what
each kernel takes (scripts/fit_stack.py): its own frame, those of what it calls, and those above it. The C compiler puts
a function that is called once into its caller, so frames alone would not add up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import TypedDict

from glowc.codegen.view import family, literal_kernels
from glowc.kernels.choice import variant_of
from glowc.kernels.features import features, nonzeros
from glowc.paths import data_dir
from glowc.program.ir import Instr, Program
from glowc.select.cost import MODES, SINGLE, Cost, Costs, key_of, keys_like
from glowc.select.traits import Extent, place, traits

_EXACT = "exact"  # of a sum: there is no code for which the fused form differs
_FIXED = "form=fixed"  # of a sum on Advanced SIMD: three integers, whatever they stand for
NOT = "!"  # before a trait of a term: of layers without it
_MOST, _LEAST = 3.0, 0.3  # times the sum of terms: no layer is that far off


class NearTable(TypedDict):
    """A Gaussian process as a file has it: what its kernel falls with, and the weights of the places of the kernel."""

    reach: float
    apart: float
    weights: list[float]


class EstimateTable(TypedDict):
    """One estimate as a file has it."""

    insns: dict[str, float]
    cycles: dict[str, float]
    error: float
    samples: int
    near: bool


class KernelTable(TypedDict):
    """The estimates of a kernel as a file has them; `places` are sizes and bits of `traits` of its measured layers.

    The process is one for all ways of printing, which are traits too; estimates that are `near` take it.
    """

    traits: list[str]
    places: list[list[int]]
    near: NearTable | None
    modes: dict[str, EstimateTable]


@dataclass(frozen=True, slots=True)
class Near:
    """How far off the sum of terms is for layers like those measured: `points` are places, bits of traits, weights.

    A layer counts less with its distance in octaves over `reach`, squared, and `apart` for each trait that differs.
    """

    reach: float
    apart: float
    points: tuple[tuple[tuple[float, ...], int, float], ...]

    def error(self, sizes: tuple[int, ...], bits: int) -> float:
        """Return the relative error of a layer of those sizes."""
        here, total = place(sizes), 0.0
        for there, other, weight in self.points:
            distance = sum((a - b) ** 2 for a, b in zip(here, there, strict=True)) / self.reach**2
            total += weight * math.exp(-0.5 * (distance + self.apart * (bits ^ other).bit_count()))
        return total


@dataclass(frozen=True, slots=True)
class Estimate:
    """Terms of the instructions and the cycles of one kernel, and the traits that tell its measured layers apart.

    `error` is the relative error of the cycles of a layer that was left out of the fit (root of the mean square).
    """

    insns: Mapping[str, float]
    cycles: Mapping[str, float]
    error: float
    samples: int
    traits: tuple[str, ...] = ()
    near: Near | None = None
    mode: str = ""

    def predict(self, instr: Instr, given: frozenset[str] = frozenset(), nonzero: float = 1.0) -> Cost:
        """Return what a call takes that has the traits `given` by the calls before it, and reads a share of zeros."""
        found, has = features(instr), traits(instr) | given | {self.mode}
        found = {**found, "nonzeros": nonzeros(found, nonzero)}
        insns, cycles = (total(terms, found, has) for terms in (self.insns, self.cycles))
        if self.near is not None:
            factor = 1 + self.near.error(Extent.of(instr).sizes, bits_of(self.traits, has))
            cycles *= min(max(factor, _LEAST), _MOST)
        return Cost(round(insns), round(cycles))


def total(terms: Mapping[str, float], found: Mapping[str, float], has: Collection[str]) -> float:
    """Return the sum of coefficient x feature of those terms whose trait a layer has, or lacks after NOT."""
    split = ((coefficient, *name.partition("@")) for name, coefficient in terms.items())
    return sum(c * found.get(feature, 0.0) for c, feature, _, trait in split if _counts(trait, has))


def _counts(trait: str, has: Collection[str]) -> bool:
    return not trait or (trait[1:] not in has if trait.startswith(NOT) else trait in has)


def bits_of(names: Sequence[str], has: Iterable[str]) -> int:
    """Return a number whose bits say which of the traits a layer has."""
    owned = frozenset(has)
    return sum(1 << at for at, name in enumerate(names) if name in owned)


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates of one CPU, by `key_of` and way of printing; empty where its layers were not measured.

    `are_insns` says that what they call cycles are instructions: no chip stands for the CPU.
    """

    kernels: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    are_insns: bool = False

    def find(self, instr: Instr, mode: str) -> Estimate | None:
        """Return the estimate of an instruction's kernel, of -O2 printed otherwise when that one was not measured."""
        return _of_mode(next((self.kernels[key] for key in _keys(instr) if key in self.kernels), {}), mode)

    def akin(self, instr: Instr, mode: str) -> Estimate | None:
        """Return the estimate of the same variant on another path or with other weights, that of most layers.

        A gather of single elements is like none of rows.
        """
        if key_of(instr).endswith(f".{SINGLE}"):
            return None
        keys = [tuple(key.split(".")) for key in like(key_of(instr))]
        found = [
            ((path == own[2], kind == own[3], estimate.samples), estimate)
            for own in keys
            for (kernel, variant, path, kind), modes in ((tuple(key.split(".")), m) for key, m in self.kernels.items())
            if (kernel, variant) == own[:2] and (estimate := _of_mode(modes, mode)) is not None
        ]
        return max(found, key=lambda entry: entry[0], default=(None, None))[1]

    def predict(
        self, instr: Instr, mode: str, costs: Costs, given: frozenset[str] = frozenset(), nonzero: float = 1.0
    ) -> Cost | None:
        """Return what a call is estimated to take, by the CPU's costs where it has no estimate; None without either.

        `given` are traits that the call has by those before it (`glowc.select.traits.given`), `nonzero` is the share of
        the numbers it reads that are not 0 (`glowc.select.zeros`).
        """
        found = self.find(instr, mode)
        if found is None:
            found = None if costs.fit(instr, mode) is not None else self.akin(instr, mode)
        if found is None:
            return costs.predict(instr, mode)
        cost, spared = found.predict(instr, given, nonzero), variant_of(instr).spared_bytes(instr)
        if self.are_insns:
            return costs.of_insns(cost.cycles)
        return cost if not spared else Cost(cost.insns, cost.cycles - round(costs.reread_cycles * spared))


def _keys(instr: Instr) -> tuple[str, ...]:
    """Return the keys of a call, the nearest first; sums in fixed point are alike in either form."""
    key = key_of(instr)
    fixed = instr.kernel == "add_s8f" and _FIXED in traits(instr)
    return (key.replace("add_s8f.", "add_s8.", 1), *like(key)) if fixed else like(key)


def _of_mode(modes: Mapping[str, Estimate], mode: str) -> Estimate | None:
    instead = {"shared": "literal", "literal": "shared"}.get(mode, mode)
    return modes.get(mode, modes.get(instead))


def like(key: str) -> tuple[str, ...]:
    """Return a key and those of kernels that run the same loops: exact sums are alike in either form."""
    kernel, _, rest = key.partition(".")
    alike = (f"{kernel.removesuffix('f')}.{rest}",) if kernel.startswith("add_") and rest.endswith(_EXACT) else ()
    return (key, *alike, *keys_like(key)[1:])


def estimates_file(cpu: str) -> Path:
    """Return where the estimates of a CPU are kept."""
    return data_dir("boards") / "_estimates" / f"{cpu}.json"


def parse_kernel(entry: KernelTable) -> dict[str, Estimate]:
    """Return the estimates of a kernel that a file has, by the way of printing."""
    table, names = entry["near"], tuple(entry["traits"])
    process = None
    if table is not None:
        places = [(place(tuple(sizes)), bits) for *sizes, bits in entry["places"]]
        points = tuple((*at, weight) for at, weight in zip(places, table["weights"], strict=True))
        process = Near(table["reach"], table["apart"], points)
    return {
        mode: Estimate(x["insns"], x["cycles"], x["error"], x["samples"], names, process if x["near"] else None, mode)
        for mode, x in entry["modes"].items()
    }


def estimates_for(cpu: str, like_cpu: str) -> Estimates:
    """Return the estimates of a CPU, those of the one whose costs it takes where it has none of its own."""
    return load_estimates(cpu if estimates_file(cpu).is_file() else like_cpu)


@cache
def load_estimates(cpu: str) -> Estimates:
    """Return the estimates of a CPU; none where it has no file."""
    path = estimates_file(cpu)
    if not path.is_file():
        return Estimates()
    data = json.loads(path.read_text(encoding="utf-8"))
    return Estimates(_Kernels(data["kernels"]), data["chip"] is None)


class _Kernels(Mapping[str, Mapping[str, Estimate]]):
    """The estimates of a file, each of which is parsed when it is asked for: a model has few of the kernels."""

    def __init__(self, tables: Mapping[str, KernelTable]) -> None:
        self._tables, self._parsed = tables, dict[str, Mapping[str, Estimate]]()

    def __getitem__(self, key: str) -> Mapping[str, Estimate]:
        if key not in self._parsed:
            self._parsed[key] = parse_kernel(self._tables[key])
        return self._parsed[key]

    def __contains__(self, key: object) -> bool:
        return key in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


Stacks = Mapping[str, Mapping[str, int]]
"""Bytes by `key_of` and way of printing."""


def modes_of(program: Program, opt: str) -> list[tuple[Instr, str]]:
    """Return the calls of a program, each with the way in which its kernel is printed."""
    literal = literal_kernels(program, opt)
    instrs = [i for i in program.instrs if not i.is_marker]
    return [(i, "size" if opt == "size" else "literal" if family(i) in literal else "shared") for i in instrs]


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
