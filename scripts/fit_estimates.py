#!/usr/bin/env python3
"""Fit what reports say of cycles to measured layers: boards/_estimates/<cpu>.json. Runs as part of `make costs`.

    scripts/fit_estimates.py
    scripts/fit_estimates.py --targets stm32l4r5 rpi5 --jobs 2

The layers of scripts/cost_layers.py are counted on a chip as scripts/fit_costs.py counts them, with the variants that
would be chosen first and second. Per kernel, variant, path and way of printing a sum of few terms is fitted by
non-negative least squares of the relative error, then a Gaussian process through what is left of it, where layers that
are left out of it are nearer for it (glowc/select/estimate.py tells both). Counts are kept in build/costs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from cost_layers import Sample
from cost_models import RECTIFIED
from count_costs import Target, compiled_layers, count, mode_of, second_choices, target_of
from fit_costs import TARGETS, each_target, left_out, parser_of, samples_for

from glowc.board import chip_names, find_tool
from glowc.compiler.pipeline import Compiled
from glowc.errors import ToolError
from glowc.kernels.features import FEATURES, WORK, features
from glowc.program.ir import Instr
from glowc.program.lifetimes import strip_markers
from glowc.select.cost import key_of
from glowc.select.estimate import NOT, EstimateTable, KernelTable, NearTable, bits_of, estimates_file
from glowc.select.traits import SIGNED, Extent, place, traits

MOST_TERMS = 7  # of a fit
TRIED = 10  # terms that are tried next
WORTH = 0.95  # of the error is left after a term that is taken
SMALL = 1000  # cycles: errors of smaller layers are relative to this
GOOD = 0.002  # an error that needs no further term
LAYERS_PER_TERM = 4
SHARED = 5  # layers that must have a trait, and not have it, for a term
BY_TRAIT = ("call", "outputs", "macs", "products")  # features that are also counted for layers with a trait
ALSO_WORK = frozenset({"weights", "patch", "inside", "middle"})  # features that grow with all of a layer's sizes
FEW = 8  # layers: too few for a process
POOLED = 16  # layers: a way of printing that has fewer is fitted together with the other one
REACHES, APART, NOISES = (0.5, 1.0, 2.0, 4.0), (0.1, 0.5, 2.0), (0.01, 0.1, 0.5)
LEFT = (-0.8, 2.0)  # bounds of relative errors
LIGHT = 0.01  # of an error: a weight that is left out
USELESS = 0.60  # of an error: another way of printing says as much


@dataclass(frozen=True)
class Layer:
    """One layer as counted."""

    instr: Instr
    insns: float
    cycles: float
    given: frozenset[str] = frozenset()

    @property
    def traits(self) -> frozenset[str]:
        """What tells its code and its numbers apart."""
        return traits(self.instr) | self.given


Spot = tuple[int, ...]  # sizes, and bits of traits
Layers = dict[tuple[str, str], list[Layer]]  # by key and way of printing


def measured_by(name: str, samples: Sequence[Sample]) -> list[tuple[str, str, Layer]]:
    """Return what one model's layers take on a target, with the variants chosen first and second.

    Dense layers and those with wide weights are measured as they are chosen for less flash as well: in bytes.
    """
    target, found = target_of(name), list[tuple[str, str, Layer]]()
    with tempfile.TemporaryDirectory(prefix="glowc-estimates-") as folder:
        left = list(samples)
        for number, opts in ((0, ("balanced", "speed")), (1, ("balanced",)), (None, ("balanced",))):
            if number is None:
                left = [sample for sample in samples if sample.wide or sample.kind == "fc"]
            for opt in opts if left else ():
                place_of = Path(folder) / f"{number}{opt}"
                compiled = compiled_layers(left, target, place_of, opt, number)
                try:
                    found += counted_layers(compiled, target, place_of)
                except ToolError as error:  # a large layer that a board has no room for
                    print(f"{name}: {len(left)} layers are left out: {error}", file=sys.stderr)
                    return found
            left = second_choices(compiled, left)
    return found


def counted_layers(compiled: Compiled, target: Target, folder: Path) -> list[tuple[str, str, Layer]]:
    """Return what the layers of a compiled model take, by key and way of printing."""
    counts, instrs = count(compiled, target, folder), strip_markers(compiled.program).instrs
    return [
        (key_of(instr), mode_of(compiled, instr), Layer(instr, insns, cycles, given(instr)))
        for instr, insns, cycles in zip(instrs, counts.insns, counts.cycles, strict=True)
    ]


def given(instr: Instr) -> frozenset[str]:
    """Return the traits that a measured layer has by its numbers."""
    first = instr.operands[0]
    return SIGNED if first.type.dtype.is_float and not first.buffer.startswith(RECTIFIED) else frozenset()


def merged(parts: Sequence[Sequence[tuple[str, str, Layer]]]) -> Layers:
    """Return the layers by key and way of printing, of those that are alike only the first."""
    found: Layers = defaultdict(list)
    seen: set[tuple[object, ...]] = set()
    for key, mode, layer in (entry for part in parts for entry in part):
        same = key, mode, tuple(features(layer.instr).items()), layer.traits
        if same not in seen:
            seen.add(same)
            found[key, mode].append(layer)
    return dict(found)


def columns(layers: Sequence[Layer], modes: Sequence[str], cache_bytes: int) -> dict[str, np.ndarray]:
    """Return the values of all terms that layers may differ by on a chip with a cache of constants."""
    values = [features(x.instr) for x in layers]
    owned = [x.traits | {mode} for x, mode in zip(layers, modes, strict=True)]
    other = tuple(f"_{kb}k" for kb in (8, 16, 32) if kb << 10 != cache_bytes)
    found = {name: np.array([v.get(name, 0.0) for v in values]) for name in FEATURES if not name.endswith(other)}
    known: set[bytes] = set()
    for trait in sorted(set().union(*owned)):
        has = np.array([trait in names for names in owned])
        if has.tobytes() not in known and SHARED <= has.sum() <= len(layers) - SHARED:
            known |= {has.tobytes(), (~has).tobytes()}
            found |= {f"{name}@{trait}": found[name] * has for name in BY_TRAIT}
            found |= {f"{name}@{NOT}{trait}": found[name] * ~has for name in BY_TRAIT}
    return {name: column for name, column in found.items() if column.any()}


def rms(errors: np.ndarray) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def picked(unit: np.ndarray, target: np.ndarray, works: Sequence[bool]) -> tuple[list[int], float]:
    """Return few columns that sum up to `target`, one of them of `works`, and the error of a row that is left out.

    One is picked after another: of those that lie most along what is left, the one with which the error is least.
    """
    most = min(MOST_TERMS, max(len(target) // LAYERS_PER_TERM, 1)) if len(target) >= FEW else min(2, len(target) - 1)
    chosen, best, left = list[int](), np.inf, target

    def error_with(new: int) -> float:
        names = [*chosen, new]
        x, errors = left_out(unit[:, names], target)
        return rms(errors) if any(c > 0 and works[j] for c, j in zip(x, names, strict=True)) else np.inf

    while len(chosen) < most and best > GOOD:
        basis = np.linalg.qr(unit[:, chosen])[0] if chosen else np.zeros((len(target), 0))
        beside = unit - basis @ (basis.T @ unit)
        along, size = beside.T @ left, (beside**2).sum(axis=0)
        gain = np.where((size > 1e-6) & (along > 0), along**2 / np.maximum(size, 1e-12), 0.0)
        gain[chosen] = 0.0
        if not chosen:
            gain = np.where(works, gain, 0.0)
        error, new = min(((error_with(j), j) for j in np.argsort(-gain)[:TRIED] if gain[j] > 0), default=(np.inf, -1))
        if error > WORTH * best:
            break
        x = left_out(unit[:, [*chosen, new]], target)[0]
        best, chosen = error, [j for j, c in zip([*chosen, new], x, strict=True) if c > 0]
        left = target - unit[:, chosen] @ left_out(unit[:, chosen], target)[0]
    return chosen, best


def fit_terms(table: Mapping[str, np.ndarray], counts: np.ndarray) -> tuple[dict[str, float], float]:
    """Return the coefficients of few terms, and the error of a layer that is left out of the fit.

    Where there are any multiply-accumulates one of the terms counts them.
    """
    weight = 1 / np.maximum(counts, SMALL)
    names, target = list(table), counts * weight
    rows = np.stack([table[name] * weight for name in names], axis=1)
    scale = np.linalg.norm(rows, axis=0)
    works = [name in WORK for name in names]
    chosen, error = picked(rows / scale, target, [True] * len(names))
    if any(works) and not any(works[j] or names[j] in ALSO_WORK for j in chosen):
        chosen, error = picked(rows / scale, target, works)
    x = left_out((rows / scale)[:, chosen], target)[0] / scale[chosen]
    return {names[j]: float(f"{c:.5g}") for j, c in zip(chosen, x, strict=True) if c > 0}, error


def sums(table: Mapping[str, np.ndarray], terms: Mapping[str, float]) -> np.ndarray:
    """Return the sum of terms of each layer."""
    return np.asarray(sum(c * table[name] for name, c in terms.items()))


def names_of(layers: Sequence[Layer]) -> list[str]:
    """Return traits that tell the layers apart, of those that always come together one."""
    owned, found = [x.traits for x in layers], dict[bytes, str]()
    for trait in sorted(set().union(*owned)):
        has = np.array([trait in names for names in owned])
        if not has.all():
            found.setdefault(has.tobytes(), trait)
    return list(found.values())


def fit_near(
    spots: Sequence[Spot], known: Sequence[Spot], counts: np.ndarray, predicted: np.ndarray
) -> tuple[NearTable, np.ndarray]:
    """Return the process through the relative errors of fits, and each layer's error when it is left out of it.

    `spots` are those of the layers; the process has a weight for each of those `known`. The error of a layer that is
    left out follows from the fit of all: weight / diagonal of the inverse (Rasmussen and Williams, equation 5.12).
    """
    places, bits = np.array([place(sizes) for *sizes, _ in spots]), [spot[-1] for spot in spots]
    squares = ((places[:, None] - places[None]) ** 2).sum(axis=-1)
    differ = np.array([[(a ^ b).bit_count() for b in bits] for a in bits], float)
    off = np.clip(counts / np.maximum(predicted, 1) - 1, *LEFT)
    share = predicted / np.maximum(counts, SMALL)
    best: tuple[float, float, float, np.ndarray, np.ndarray] | None = None
    for reach in REACHES:
        for apart in APART:
            alike = np.exp(-0.5 * (squares / reach**2 + apart * differ))
            for noise in NOISES:
                inverse = np.linalg.inv(alike + noise * np.eye(len(spots)))
                weights = inverse @ off
                errors = weights / np.diag(inverse) * share
                if best is None or rms(errors) < best[0]:
                    best = rms(errors), reach, apart, weights, errors
    assert best is not None
    _, reach, apart, weights, errors = best
    found = dict.fromkeys(known, 0.0)
    for spot, weight in zip(spots, weights, strict=True):
        found[spot] += weight
    return {"reach": reach, "apart": apart, "weights": [round(float(w), 3) for w in found.values()]}, errors


def without_light(known: Sequence[Spot], near: NearTable) -> tuple[list[Spot], NearTable]:
    """Return the places, and the process, without those that move no estimate by more than LIGHT."""
    kept = [(spot, weight) for spot, weight in zip(known, near["weights"], strict=True) if abs(weight) >= LIGHT]
    return [spot for spot, _ in kept], {**near, "weights": [weight for _, weight in kept]}


def fit_layers(layers: Sequence[Layer], modes: Sequence[str], cache_bytes: int) -> tuple[EstimateTable, np.ndarray]:
    """Return the sums of terms of layers of one kernel that are printed so, and the cycles that these say."""
    table = columns(layers, modes, cache_bytes)
    insns, cycles = (np.array([getattr(x, what) for x in layers], float) for what in ("insns", "cycles"))
    terms, error = fit_terms(table, cycles)
    found: EstimateTable = {
        "insns": fit_terms(table, insns)[0], "cycles": terms, "error": round(error, 4), "samples": len(layers),
        "near": False,
    }  # fmt: skip
    return found, sums(table, terms)


def fits_of(by_mode: Mapping[str, Sequence[Layer]], cache_bytes: int) -> dict[str, tuple[EstimateTable, np.ndarray]]:
    """Return the sums of terms of each way of printing; one that has few layers takes the sums of all."""
    every = [(mode, layer) for mode, layers in by_mode.items() for layer in layers]
    few = [mode for mode, layers in by_mode.items() if len(layers) < POOLED]
    found = {
        mode: fit_layers(layers, [mode] * len(layers), cache_bytes)
        for mode, layers in by_mode.items()
        if mode not in few or len(by_mode) == 1
    }
    if len(by_mode) > 1 and few:
        table, said = fit_layers([x for _, x in every], [mode for mode, _ in every], cache_bytes)
        for mode in few:
            own = np.array([other == mode for other, _ in every])
            found[mode] = {**table, "samples": int(own.sum())}, said[own]
    return {mode: found[mode] for mode in by_mode}


def spot_of(layer: Layer, names: Sequence[str], mode: str) -> Spot:
    """Return the sizes of a layer and the bits of its traits and of the way it is printed."""
    return (*Extent.of(layer.instr).sizes, bits_of(names, {*layer.traits, mode}))


def kernel_of(by_mode: Mapping[str, Sequence[Layer]], cache_bytes: int) -> KernelTable | None:
    """Return the estimates of one kernel as the file has them, None where they say too little."""
    if sum(map(len, by_mode.values())) < 2:
        return None
    fits = fits_of(by_mode, cache_bytes)
    every = [(mode, layer) for mode, layers in by_mode.items() for layer in layers]
    near, names, known = None, list[str](), list[Spot]()
    if len(every) >= FEW:
        names = [*names_of([x for _, x in every]), *sorted(by_mode)[1:]]
        spots = [spot_of(x, names, mode) for mode, x in every]
        known = sorted(set(spots))
        counts = np.array([x.cycles for _, x in every])
        near, errors = fit_near(spots, known, counts, np.concatenate([said for _, said in fits.values()]))
        for mode, (table, _) in fits.items():
            nearer = rms(errors[[other == mode for other, _ in every]])
            if nearer < table["error"]:
                table |= {"error": round(nearer, 4), "near": True}
    good = {mode: table for mode, (table, _) in fits.items() if table["error"] <= USELESS}
    if not good:
        return None
    if near is None or not any(table["near"] for table in good.values()):
        near, names, known = None, [], []
    else:
        known, near = without_light(known, near)
    return {"traits": names, "places": [list(spot) for spot in known], "near": near, "modes": good}


def kernels_of(measured: Layers, cache_bytes: int) -> dict[str, KernelTable]:
    """Return the estimates of all kernels."""
    found: dict[str, KernelTable] = {}
    for key in sorted({key for key, _ in measured}):
        by_mode = {mode: layers for (other, mode), layers in sorted(measured.items()) if other == key}
        entry = kernel_of(by_mode, cache_bytes)
        if entry is not None:
            found[key] = entry
    return found


def write(target: Target, kernels: Mapping[str, KernelTable]) -> None:
    """Write the file of a target's CPU, a line for each kernel."""
    assert target.chip is not None
    compiler = subprocess.run(
        [str(find_tool(target.board.cpu.cc)), "--version"], capture_output=True, text=True, check=True
    )
    head = {"cpu": target.board.cpu.name, "chip": target.chip.name, "compiler": compiler.stdout.splitlines()[0]}
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    entries = [f"  {json.dumps(key)}: {json.dumps(entry, separators=(',', ':'))}" for key, entry in kernels.items()]
    path = estimates_file(target.board.cpu.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["{", *lines, ' "kernels": {', ",\n".join(entries), " }", "}"]) + "\n", encoding="utf-8")


def cache_of(target: Target) -> int:
    """Return the bytes of the cache that constants come through, 0 for none."""
    cache = None if target.chip is None else target.chip.flash.data_cache
    return 0 if cache is None else cache.size_bytes


def fit_target(text: str, jobs: int) -> None:
    """Measure and fit one target."""
    begin, target = time.perf_counter(), target_of(text)
    with ProcessPoolExecutor(jobs) as pool:
        measured = merged(list(pool.map(partial(measured_by, text), samples_for(target.board, None))))
    seconds = time.perf_counter() - begin
    write(target, kernels_of(measured, cache_of(target)))
    print(f"{text}: {seconds:.0f} s of measuring, {time.perf_counter() - begin - seconds:.0f} s of fitting", flush=True)


def main() -> int:
    """Measure, fit and write."""
    chips = [target for target in TARGETS if target in chip_names()]
    args = parser_of((__doc__ or "").splitlines()[0], chips, "CHIP").parse_args()
    return each_target(args.targets, partial(fit_target, jobs=args.jobs))


if __name__ == "__main__":
    sys.exit(main())
