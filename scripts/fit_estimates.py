#!/usr/bin/env python3
"""Fit what reports say of cycles to measured layers: boards/_estimates/<cpu>.json. Runs as part of `make costs`.

    scripts/fit_estimates.py
    scripts/fit_estimates.py --targets stm32l4r5 linux-armhf/cortex-a7 --jobs 2
    scripts/fit_estimates.py --targets stm32l4r5 --kinds fc --keys "fc_s8.dsp.eight.*"

The layers of scripts/cost_layers.py are counted on a chip, or in instructions where no chip has the CPU, in programs as
they are shipped: scripts/fit_costs.py keeps functions apart that the compiler would make parts of others. They have the
variants that would be chosen first and second for speed, and that of `--opt balanced`; small ones also others. Per
kernel, variant, path and way of printing a sum of terms is fitted by non-negative least squares of the relative error,
then a Gaussian process through what is left of it, where layers that are left out of it are nearer for it
(glowc/select/estimate.py tells both). Counts are kept in build/costs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from functools import partial

import numpy as np
from count_costs import Target, target_of
from estimate_layers import Layer, Layers, measured_by, merged
from fit_costs import ESTIMATED, each_target, left_out, parser_of, samples_alone, samples_for

from glowc.board import find_tool
from glowc.kernels.features import FEATURES, WORK
from glowc.select.cost import keys_like
from glowc.select.estimate import (
    NOT,
    Estimate,
    EstimateTable,
    KernelTable,
    NearTable,
    bits_of,
    estimates_file,
    parse_kernel,
    total,
)  # fmt: skip
from glowc.select.traits import Extent, place

MOST_TERMS = 7  # of a fit
TRIED = 10  # terms that are tried next
WORTH = 0.95  # of the error is left after a term that is taken
SMALL = 100  # cycles: errors of smaller layers are relative to this
GOOD = 0.002  # an error that needs no further term
LAYERS_PER_TERM, LAYERS_PER_TERM_OF_ALL = 4, 1.5
NEAR_ENOUGH = 0.10  # an error of terms that were fitted to other layers
BROAD = 2.0  # of the error of few terms: those of all features hold for layers of other sizes
SHARED = 5  # layers that must have a trait, and not have it, for a term
BY_TRAIT = ("call", "outputs", "macs", "products")  # features that are also counted for layers with a trait
ALSO_WORK = frozenset({"weights", "patch", "inside", "middle", "nonzeros"})  # features that grow with all sizes
FEW = 8  # layers: too few for a process
REACHES, APART, NOISES = (0.5, 1.0, 2.0, 4.0), (0.1, 0.5, 2.0), (0.01, 0.1, 0.5)
LEFT = (-0.8, 2.0)  # bounds of relative errors
TOLD = 0.02  # of an error: another kernel says enough
LIGHT = 0.01  # of an error: a weight that is left out
USELESS = 0.60  # of an error: another way of printing says as much


Spot = tuple[int, ...]  # sizes, and bits of traits
Kernels = dict[str, KernelTable]
Fitted = tuple[EstimateTable, np.ndarray]  # sums of terms, and the cycles that these say


def columns(layers: Sequence[Layer], cache_bytes: int) -> dict[str, np.ndarray]:
    """Return the values of all terms that layers may differ by on a chip with a cache of constants."""
    values, owned = [x.features for x in layers], [x.traits for x in layers]
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
    """Return the coefficients of terms, and the error of a layer that is left out of the fit.

    They are those of all features together, of which non-negative least squares leave some, or few that are picked one
    after another where these say more. Where there are multiply-accumulates one of the terms counts them.
    """
    weight = 1 / np.maximum(counts, SMALL)
    names, target = list(table), counts * weight
    rows = np.stack([table[name] * weight for name in names], axis=1)
    scale = np.linalg.norm(rows, axis=0)
    unit, works = rows / scale, [name in WORK for name in names]

    def count_work(chosen: Sequence[int]) -> bool:
        return not any(works) or any(works[j] or names[j] in ALSO_WORK for j in chosen)

    chosen, error = picked(unit, target, [True] * len(names))
    if not count_work(chosen):
        chosen, error = picked(unit, target, works)
    wide, wide_error = of_all(unit, target, [j for j, name in enumerate(names) if "@" not in name])
    if count_work(wide) and wide_error <= BROAD * error:
        chosen, error = wide, wide_error
    x = left_out(unit[:, chosen], target)[0] / scale[chosen]
    return {names[j]: float(f"{c:.5g}") for j, c in zip(chosen, x, strict=True) if c > 0}, error


def of_all(unit: np.ndarray, target: np.ndarray, plain: Sequence[int]) -> tuple[list[int], float]:
    """Return those of the columns `plain` that all together leave, and the error of a row that is left out.

    The error is infinite where there are too few rows for so many.
    """
    x, errors = left_out(unit[:, plain], target)
    chosen = [j for j, c in zip(plain, x, strict=True) if c > 0]
    return chosen, rms(errors) if LAYERS_PER_TERM_OF_ALL * len(chosen) <= len(target) else np.inf


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

    `spots` are those of the layers; the process has a weight for each of those `known`. Layers of the same sizes are
    left out together, or each would be told by the others. Their errors follow from the fit of all: their weights,
    times the inverse of their part of the inverse (Rasmussen and Williams, equation 5.12, for more than one).
    """
    alike_sizes = same_sizes(spots)
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
                errors = left_out_together(inverse, weights, alike_sizes) * share
                if best is None or rms(errors) < best[0]:
                    best = rms(errors), reach, apart, weights, errors
    assert best is not None
    _, reach, apart, weights, errors = best
    found = dict.fromkeys(known, 0.0)
    for spot, weight in zip(spots, weights, strict=True):
        found[spot] += weight
    return {"reach": reach, "apart": apart, "weights": [round(float(w), 3) for w in found.values()]}, errors


def same_sizes(spots: Sequence[Spot]) -> list[np.ndarray]:
    """Return the indices of the layers of each size."""
    found: dict[Spot, list[int]] = defaultdict(list)
    for at, (*sizes, _) in enumerate(spots):
        found[tuple(sizes)].append(at)
    return [np.array(places) for places in found.values()]


def left_out_together(inverse: np.ndarray, weights: np.ndarray, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return by how much each layer differs from what a process without its part says, as `fit_near` tells."""
    errors = np.empty_like(weights)
    for part in parts:
        errors[part] = np.linalg.solve(inverse[np.ix_(part, part)], weights[part])
    return errors


def without_light(known: Sequence[Spot], near: NearTable) -> tuple[list[Spot], NearTable]:
    """Return the places, and the process, without those that move no estimate by more than LIGHT."""
    kept = [(spot, weight) for spot, weight in zip(known, near["weights"], strict=True) if abs(weight) >= LIGHT]
    return [spot for spot, _ in kept], {**near, "weights": [weight for _, weight in kept]}


def fit_layers(layers: Sequence[Layer], cache_bytes: int) -> Fitted:
    """Return the sums of terms of one kernel and way of printing, and the cycles that these say."""
    table = columns(layers, cache_bytes)
    insns, cycles = (np.array([getattr(x, what) for x in layers], float) for what in ("insns", "cycles"))
    terms, error = fit_terms(table, cycles)
    found: EstimateTable = {
        "insns": fit_terms(table, insns)[0], "cycles": terms, "error": round(error, 4), "samples": len(layers),
        "near": False,
    }  # fmt: skip
    return found, sums(table, terms)


def times(
    terms: Mapping[str, float], layers: Sequence[Layer], counts: np.ndarray
) -> tuple[dict[str, float], np.ndarray]:
    """Return the terms of other layers times a factor, so that they say what these take, and what they say."""
    said = np.array([total(terms, x.features, x.traits) for x in layers])
    factor = float(np.median(counts / np.maximum(said, 1)))
    return {name: float(f"{factor * c:.5g}") for name, c in terms.items()}, factor * said


def borrowed(layers: Sequence[Layer], own: Fitted, other: EstimateTable) -> Fitted:
    """Return the terms of a way of printing that many more layers were measured with, if they are near; else its own.

    Few layers may all be of like sizes, and say little of others. Instructions hardly differ: more layers are enough.
    """
    table, _ = own
    insns, cycles = (np.array([getattr(x, what) for x in layers], float) for what in ("insns", "cycles"))
    counted, told = times(other["insns"], layers, insns)
    if other["samples"] > len(layers) and rms((told - insns) / np.maximum(insns, SMALL)) <= NEAR_ENOUGH:
        own = {**table, "insns": counted}, own[1]
    terms, said = times(other["cycles"], layers, cycles)
    error = rms((said - cycles) / np.maximum(cycles, SMALL))
    if other["samples"] < 2 * len(layers) or error > max(BROAD * table["error"], NEAR_ENOUGH):
        return own
    found: EstimateTable = {
        **table, "insns": times(other["insns"], layers, insns)[0], "cycles": terms, "error": round(error, 4)
    }  # fmt: skip
    return found, said


def spot_of(layer: Layer, names: Sequence[str], mode: str) -> Spot:
    """Return the sizes of a layer and the bits of its traits and of the way it is printed."""
    return (*Extent.of(layer.instr).sizes, bits_of(names, {*layer.traits, mode}))


def with_guests(by_mode: Mapping[str, Sequence[Layer]]) -> dict[str, list[Layer]]:
    """Return the layers of each way of printing, and those of the others with a trait that none of its own has."""
    owned = {mode: frozenset().union(*(x.traits for x in layers)) for mode, layers in by_mode.items()}
    every = [layer for layers in by_mode.values() for layer in layers]
    return {mode: [*layers, *(x for x in every if not x.traits <= owned[mode])] for mode, layers in by_mode.items()}


def kernel_of(by_mode: Mapping[str, Sequence[Layer]], cache_bytes: int) -> KernelTable | None:
    """Return the estimates of one kernel as the file has them, None where they say too little."""
    by_mode = with_guests({mode: layers for mode, layers in by_mode.items() if len(layers) > 1})
    fits = {mode: fit_layers(layers, cache_bytes) for mode, layers in by_mode.items()}
    most = max(fits.values(), key=lambda fitted: fitted[0]["samples"], default=None)
    if most is not None:
        fits = {mode: borrowed(by_mode[mode], fitted, most[0]) for mode, fitted in fits.items()}
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


def kernels_of(measured: Layers, cache_bytes: int) -> Kernels:
    """Return the estimates of all kernels."""
    found: Kernels = {}
    for key in sorted({key for key, _ in measured}):
        by_mode = {mode: layers for (other, mode), layers in sorted(measured.items()) if other == key}
        entry = kernel_of(by_mode, cache_bytes)
        if entry is not None:
            found[key] = entry
    return {key: entry for key, entry in found.items() if not is_told(key, entry, found, measured)}


def is_told(key: str, entry: KernelTable, found: Mapping[str, KernelTable], measured: Layers) -> bool:
    """Say whether another kernel that may run the same loops says as much of a kernel's layers as its own estimates do.

    It was measured with more layers, and stands in where a file has no estimates of the kernel.
    """
    other = next((found[instead] for instead in keys_like(key)[1:] if instead != key and instead in found), None)
    if other is None or not entry["modes"].keys() <= other["modes"].keys():
        return False
    estimates = parse_kernel(other)
    return all(
        rms(relative_errors(estimates[mode], measured[key, mode])) <= max(table["error"], TOLD)
        for mode, table in entry["modes"].items()
    )


def relative_errors(estimate: Estimate, layers: Sequence[Layer]) -> np.ndarray:
    """Return by how much an estimate is off for layers."""
    said = np.array(
        [estimate.predict(x.instr, x.given, 1.0 if x.nonzero is None else x.nonzero).cycles for x in layers], float
    )
    counts = np.array([x.cycles for x in layers])
    return np.asarray((said - counts) / np.maximum(counts, SMALL))


def write(target: Target, kernels: Mapping[str, KernelTable]) -> None:
    """Write the file of a target's CPU, a line for each kernel."""
    compiler = subprocess.run(
        [str(find_tool(target.board.cpu.cc)), "--version"], capture_output=True, text=True, check=True
    )
    chip = None if target.chip is None else target.chip.name
    head = {"cpu": target.board.cpu.name, "chip": chip, "compiler": compiler.stdout.splitlines()[0]}
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    entries = [f"  {json.dumps(key)}: {json.dumps(entry, separators=(',', ':'))}" for key, entry in kernels.items()]
    path = estimates_file(target.board.cpu.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["{", *lines, ' "kernels": {', ",\n".join(entries), " }", "}"]) + "\n", encoding="utf-8")


def cache_of(target: Target) -> int:
    """Return the bytes of the cache that constants come through, 0 for none."""
    cache = None if target.chip is None else target.chip.flash.data_cache
    return 0 if cache is None else cache.size_bytes


def with_some(known: Mapping[str, KernelTable], new: Mapping[str, KernelTable], keys: Sequence[str]) -> Kernels:
    """Return the kernels of a file, those that a pattern of `keys` names as they were fitted anew."""
    return {**known, **{key: entry for key, entry in new.items() if any(fnmatchcase(key, k) for k in keys)}}


def fit_target(text: str, jobs: int, kinds: Sequence[str] | None, keys: Sequence[str] | None) -> None:
    """Measure and fit one target: layers of `kinds`, and of what the file has only the kernels of `keys`."""
    begin, target = time.perf_counter(), target_of(text)
    with ProcessPoolExecutor(jobs) as pool:
        parts = [*samples_for(target.board, kinds), *([] if kinds else samples_alone(target.board))]
        measured = merged(list(pool.map(partial(measured_by, text), parts)))
    seconds = time.perf_counter() - begin
    kernels = kernels_of(measured, cache_of(target))
    if keys is not None:
        file = json.loads(estimates_file(target.board.cpu.name).read_text(encoding="utf-8"))
        kernels = dict(sorted(with_some(file["kernels"], kernels, keys).items()))
    write(target, kernels)
    print(f"{text}: {seconds:.0f} s of measuring, {time.perf_counter() - begin - seconds:.0f} s of fitting", flush=True)


def main() -> int:
    """Measure, fit and write."""
    parser = parser_of((__doc__ or "").splitlines()[0], ESTIMATED, "CHIP|BOARD/CPU")
    parser.add_argument("--kinds", nargs="+", help="only these kinds of layers are measured; needs --keys")
    parser.add_argument("--keys", nargs="+", help="only kernels of these patterns are written, others are kept")
    args = parser.parse_args()
    if args.kinds and not args.keys:
        parser.error("--kinds without --keys: kernels of other kinds would be lost")
    return each_target(args.targets, partial(fit_target, jobs=args.jobs, kinds=args.kinds, keys=args.keys))


if __name__ == "__main__":
    sys.exit(main())
