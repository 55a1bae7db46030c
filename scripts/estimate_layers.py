"""Layers as they are counted for estimates of cycles (scripts/fit_estimates.py): in programs as they are shipped."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as count_from
from pathlib import Path

from cost_models import RECTIFIED, SPARSE
from cost_sample import Sample
from count_costs import (
    ALL_MACS,
    SECOND_MACS,
    Target,
    chosen_otherwise,
    compiled_layers,
    count,
    mode_of,
    next_choices,
    target_of,
)  # fmt: skip

from glowc.compiler.pipeline import Compiled
from glowc.errors import ToolError
from glowc.kernels.features import features, nonzeros
from glowc.program.ir import Instr
from glowc.program.lifetimes import strip_markers
from glowc.select.cost import key_of
from glowc.select.traits import SIGNED, few_forms, traits

MOST_CHOICES = 4  # variants of a layer that are counted
RECTIFIED_SHARE, SPARSE_SHARE = 0.5, 0.106  # of a normal distribution: above 0, above FEW_ABOVE


@dataclass(frozen=True)
class Layer:
    """One layer as counted."""

    instr: Instr
    insns: float
    cycles: float
    given: frozenset[str] = frozenset()
    nonzero: float | None = None  # share of what it reads, where that matters

    @property
    def features(self) -> dict[str, float]:
        """What its cycles may grow with."""
        found = features(self.instr)
        return found if self.nonzero is None else {**found, "nonzeros": nonzeros(found, self.nonzero)}

    @property
    def traits(self) -> frozenset[str]:
        """What tells its code and its numbers apart."""
        return traits(self.instr) | self.given


Layers = dict[tuple[str, str], list[Layer]]  # by key and way of printing


def measured_by(name: str, samples: Sequence[Sample]) -> list[tuple[str, str, Layer]]:
    """Return what layers take on a target, with those variants that are chosen before others.

    Layers for which a board has no room in one program are counted in two.
    """
    try:
        return measured_in_one(target_of(name), samples)
    except ToolError as error:
        if len(samples) == 1:
            print(f"{name}: {samples[0]} is left out: {error}", file=sys.stderr)
            return []
    half = len(samples) // 2
    return [*measured_by(name, samples[:half]), *measured_by(name, samples[half:])]


def measured_in_one(target: Target, samples: Sequence[Sample]) -> list[tuple[str, str, Layer]]:
    """Return what the layers of one model take; ToolError where a board has no room for it."""
    found, places = list[tuple[str, str, Layer]](), count_from(0)
    with tempfile.TemporaryDirectory(prefix="glowc-estimates-") as name:
        folder = Path(name)

        def measure(left: Sequence[Sample], opt: str, number: int | None) -> Compiled:
            place_of = folder / str(next(places))
            compiled = compiled_layers(left, target, place_of, opt, number)
            found.extend(counted_layers(compiled, target, place_of))
            return compiled

        measure(samples, "balanced", 0)
        fast = measure(samples, "speed", 0)
        if second := next_choices(fast, samples, 0, SECOND_MACS):
            measure(second, "balanced", 1)
        usual = compiled_layers(samples, target, folder / "usual", "balanced", None)
        if others := chosen_otherwise(usual, fast, samples):
            measure(others, "balanced", None)
            measure(others, "speed", None)
        few = next_choices(fast, samples, 0, ALL_MACS)
        for number in range(1, MOST_CHOICES):
            if few:
                measure(few, "balanced", number)
                few = next_choices(measure(few, "speed", number), few, number, ALL_MACS)
    return found


def counted_layers(compiled: Compiled, target: Target, folder: Path) -> list[tuple[str, str, Layer]]:
    """Return the layers of one program, by key and way of printing."""
    counts, instrs = count(compiled, target, folder, ()), strip_markers(compiled.program).instrs
    calls = [(i, mode_of(compiled, i)) for i in instrs]
    soft = "softfloat" in target.board.cpu.features
    more = few_forms(calls) if soft else [frozenset[str]()] * len(calls)
    return [
        (key_of(i), mode, Layer(i, insns, cycles, given(i) | few, nonzero(i) if soft else None))
        for (i, mode), insns, cycles, few in zip(calls, counts.insns, counts.cycles, more, strict=True)
    ]


def given(instr: Instr) -> frozenset[str]:
    """Return the traits that a measured layer has by its numbers."""
    first = instr.operands[0]
    is_signed = first.type.dtype.is_float and not first.buffer.startswith((RECTIFIED, SPARSE))
    return SIGNED if is_signed else frozenset()


def nonzero(instr: Instr) -> float:
    """Return the share of the numbers that a measured layer reads which is not 0."""
    first = instr.operands[0].buffer
    return SPARSE_SHARE if first.startswith(SPARSE) else RECTIFIED_SHARE if first.startswith(RECTIFIED) else 1.0


def merged(parts: Sequence[Sequence[tuple[str, str, Layer]]]) -> Layers:
    """Return the layers by key and way of printing, of those that are alike only the first."""
    found: Layers = defaultdict(list)
    seen: set[tuple[object, ...]] = set()
    for key, mode, layer in (entry for part in parts for entry in part):
        same = key, mode, tuple(layer.features.items()), layer.traits
        if same not in seen:
            seen.add(same)
            found[key, mode].append(layer)
    return dict(found)
