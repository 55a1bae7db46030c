#!/usr/bin/env python3
"""Measure single layers on emulated boards and fit what kernels cost: boards/_costs/<cpu>.json. Runs as `make costs`.

    scripts/fit_costs.py
    scripts/fit_costs.py --targets stm32l4r5 linux-armhf/cortex-a7 --jobs 2
    scripts/fit_costs.py --targets stm32l4r5 --kinds conv fc
    scripts/fit_costs.py --targets stm32l4r5 --kinds fc_f32 --add
    scripts/fit_costs.py --targets stm32l4r5 --kinds mul mul_gate --keys "mul_s8.*"
    scripts/fit_costs.py --targets stm32l4r5 --drawn

A target is a chip, whose cycles stand for all chips with its CPU, or a board where no chip has the CPU; there
instructions alone are fitted. Every variant of every layer of scripts/cost_layers.py is counted under QEMU (exact),
once printed for each shape and once shared, by -O2 and by -Os; code is measured function by function. So are, by -O2,
layers of random kind and shape (scripts/drawn_layers.py, with a seed of their own); `--drawn` counts these alone, and
writes what many of them have. Per kernel, variant, path and way of printing a sum of few features is fitted by
non-negative least squares of the relative error (glowc/select/cost.py tells the features). Prints the error for layers
that were left out of the fit. Counts are kept in build/costs by a hash of the program: what did not change is not run
again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cost_layers import SAMPLES, cut, groups
from cost_sample import Sample
from cost_small_chips import measured_alone, measured_on
from cost_tflite import TFLITE
from count_costs import Measured, Samples, Taken, Target, measured_by, merged, target_of
from drawn_layers import Drawn, draw

from glowc.board import Board, Chip, find_tool
from glowc.errors import GlowcError
from glowc.kernels.features import FEATURES, OF_PLAN, WORK
from glowc.select.cost import cost_file

TARGETS = (
    "nrf51822", "stm32g0b1", "stm32f103", "stm32l4r5", "stm32u575", "stm32h7a3", "alif-e7", "rpi-zero2", "rpi5",
    "linux-aarch64/armv8.6-i8mm", "linux-armhf/cortex-a7",
)  # fmt: skip
LAYERS_PER_MODEL = 48
MOST_TERMS = 7  # of a fit
BEAM = 4  # sets of features that are tried further
USELESS = 0.30  # of an error: another way of printing says as much
FAR = 0.25  # of an error: fits of drawn layers, which know fewer shapes, replace what a file has
ROUGH = 0.10  # of an error: the file names the kernel
SMALL = 1000  # cycles: errors of smaller layers are relative to this
SMALL_CACHE = 1024  # bytes
BYTE = 8  # bits
WORD = 4  # bytes that are read at once
ENOUGH = 5  # layers of a fit
MANY, FEW = 10, 3  # drawn layers of a kernel whose costs they are, whatever the file has; where it has none
DRAWN_SEED, DRAWN_COUNT = 1_000_000, 160  # layers as scripts/cliffs.py draws them, and as many with
WIDE_MACS = 1_000, 2_000_000  # so many multiply-accumulates
GOOD = 0.002  # an error that needs no further term


def nnls(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return x >= 0 with the least |a x - b| (Lawson and Hanson's active set method)."""
    n = a.shape[1]
    x, active = np.zeros(n), np.zeros(n, bool)
    for _ in range(10 * n):
        gradient = a.T @ (b - a @ x)
        gradient[active] = -np.inf
        j = int(np.argmax(gradient))
        if gradient[j] <= 1e-9:
            break
        active[j] = True
        while True:
            full = np.zeros(n)
            full[active] = np.linalg.lstsq(a[:, active], b, rcond=None)[0]
            if (full[active] > 0).all():
                x = full
                break
            falling = active & (full <= 0)
            step = np.min(x[falling] / np.maximum(x[falling] - full[falling], 1e-300))
            x = x + step * (full - x)
            active &= x > 1e-12
            x[~active] = 0
    return x


def left_out(rows: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients that make `target` of rows, and each row's error when it is left out of the fit.

    The error of a row that is left out follows from the fit of all: residual / (1 - leverage).
    """
    scale = np.linalg.norm(rows, axis=0) + 1e-300
    x = nnls(rows / scale, target)
    active = (rows / scale)[:, x > 0]
    leverage = np.einsum("ij,ji->i", active, np.linalg.pinv(active))
    errors = (rows @ (x / scale) - target) / np.maximum(1 - leverage, 1e-3)
    return x / scale, errors


def rms(errors: np.ndarray) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def fit(samples: Sequence[Mapping[str, float]], taken: Sequence[float]) -> tuple[dict[str, float], float] | None:
    """Return the coefficients of few features, chosen one after another, and the error of a sample left out.

    None where there are no more samples than coefficients. With multiply-accumulates, one of the features counts them.
    """
    counts = np.array(taken, float)
    weight = 1 / np.maximum(counts, SMALL)
    columns = {f: np.array([v.get(f, 0.0) for v in samples]) * weight for f in FEATURES}
    target = counts * weight
    usable = [f for f in FEATURES if columns[f].any()]
    if any(f in OF_PLAN for f in usable):
        usable = [f for f in usable if f in ("call", *OF_PLAN)]
    most = min(MOST_TERMS, max(len(samples) // 3, 1), len(samples) - 1)  # more say nothing of other shapes
    if most < 1:
        return None

    works = {f for f in usable if f in WORK} if any(v.get("macs", 0.0) for v in samples) else set(usable)

    def rms(names: Sequence[str]) -> float:
        x, errors = left_out(np.stack([columns[f] for f in names], axis=1), target)
        counts_work = any(c > 0 and f in works for c, f in zip(x, names, strict=True))
        return float(np.sqrt(np.mean(errors**2))) if counts_work else np.inf

    kept = sorted((rms([f]), (f,)) for f in usable if f in works)[:BEAM]
    best, chosen = kept[0]
    for _ in range(most - 1):
        wider = {tuple(sorted((*names, f))) for _, names in kept for f in usable if f not in names}
        kept = sorted((rms(names), names) for names in wider)[:BEAM]
        if best <= GOOD or not kept or kept[0][0] > 0.97 * best:
            break
        best, chosen = kept[0]
    x = left_out(np.stack([columns[f] for f in chosen], axis=1), target)[0]
    return {f: float(f"{c:.5g}") for f, c in zip(chosen, x, strict=True) if c > 0}, round(best, 4)


def fit_layers(layers: Sequence[Taken], *, cycles: bool) -> dict[str, Any] | None:
    """Return the fitted coefficients of one kernel as the file has them, None where too few layers were measured."""
    values = [x.values for x in layers]
    insns = fit(values, [x.insns for x in layers])
    if insns is None:
        return None
    if not cycles:
        return {"insns": insns[0], "error": insns[1], "samples": len(layers)}
    found = fit(values, [x.cycles for x in layers])
    assert found is not None
    return {"insns": insns[0], "insns_error": insns[1], "cycles": found[0], "error": found[1], "samples": len(layers)}


def fit_text(points: set[tuple[int, int]]) -> list[float]:
    """Return (a, b) of bytes = a + b x lines, both at least 0."""
    if not points:
        return [0.0, 12.0]
    lines, size = (np.array(column, float) for column in zip(*sorted(points), strict=True))
    a, b = nnls(np.stack([np.ones(len(lines)), lines], axis=1), size)
    return [round(float(a), 1), round(float(b), 3)]


def table_of(target: Target, measured: Measured) -> dict[str, Any]:
    """Return the file's contents."""
    board, kernels = target.board, dict[str, Any]()
    for key, mode in sorted(measured.taken):
        found = fit_layers(measured.taken[key, mode], cycles=target.chip is not None)
        if found is not None and found["error"] <= USELESS:
            entry = kernels.setdefault(key, {"modes": {}, "uses": sorted(measured.uses[key])})
            entry["modes"][mode] = found | {"text": fit_text(measured.text[key, mode])}
    for entry in kernels.values():
        _leave_out_few(entry["modes"])
    base = nnls(np.array([(1.0, n) for n, _ in measured.base]), np.array([b for _, b in measured.base], float))
    compiler = subprocess.run([str(find_tool(board.cpu.cc)), "--version"], capture_output=True, text=True, check=True)
    return {
        "cpu": board.cpu.name, "family": board.cpu.family, "features": sorted(board.cpu.features), "board": board.name,
        "chip": None if target.chip is None else target.chip.name,
        "reread_cycles": reread_cycles(target.chip), "compiler": compiler.stdout.splitlines()[0],
        "base": [round(float(v), 1) for v in base],
        "functions": dict(sorted(measured.functions.items())), "rough": rough(kernels), "kernels": kernels,
    }  # fmt: skip


def _leave_out_few(modes: dict[str, Any]) -> None:
    """Remove, in place, ways of printing with few samples where another one has enough, which counts then."""
    if any(fit["samples"] >= ENOUGH for fit in modes.values()):
        for mode in [mode for mode, fit in modes.items() if fit["samples"] < ENOUGH]:
            del modes[mode]


def reread_cycles(chip: Chip | None) -> float:
    """Return the cycles for a byte that is read from flash again, 0 where a cache of some size may have it."""
    cache = None if chip is None else chip.flash.data_cache
    if chip is None or (cache is not None and cache.size_bytes > SMALL_CACHE):
        return 0.0
    return chip.flash.data_miss_cycles / (WORD if cache is None else cache.line_bytes)


def rough(kernels: Mapping[str, Any]) -> list[str]:
    """Return the kernels whose cycles depend on more than the features: a layer left out is off by more than ROUGH."""
    return [k for k, entry in kernels.items() if any(found["error"] > ROUGH for found in entry["modes"].values())]


def write(table: Mapping[str, Any], path: Path) -> None:
    """Write the file, one line per kernel and way of printing."""
    text = partial(json.dumps, separators=(",", ":"))
    head = {k: v for k, v in table.items() if k != "kernels"}
    lines = [f" {text(k)}:{text(v)}," for k, v in head.items()]
    lines += [' "kernels":{']
    entries = []
    for key, entry in table["kernels"].items():
        modes = ",\n".join(f"   {text(m)}:{text(v)}" for m, v in entry["modes"].items())
        entries.append(f'  {text(key)}:{{"uses":{text(entry["uses"])},"modes":{{\n{modes}}}}}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["{", *lines, ",\n".join(entries), " }", "}"]) + "\n", encoding="utf-8")


def show(table: Mapping[str, Any]) -> None:
    """Print the fits of one CPU."""
    print(f"{table['cpu']}: rms error of a layer that was left out; largest terms")
    for key, entry in table["kernels"].items():
        for mode, found in entry["modes"].items():
            terms = " ".join(f"{f}*{c:g}" for f, c in found.get("cycles", found["insns"]).items())
            print(f"  {key:34} {mode:8} {100 * found['error']:6.1f} % of {found['samples']:2}  {terms}")


def samples_for(board: Board, kinds: Sequence[str] | None) -> list[list[Sample]]:
    """Return the layers that are measured on a board, cut into models."""
    wanted = measured_on(board.cpu.features, [s for s in SAMPLES if not kinds or s.kind in kinds])
    return groups(wanted, arena_room(board), LAYERS_PER_MODEL)


def drawn_for(board: Board) -> list[list[Drawn]]:
    """Return layers of random kind and shape, cut into models of one form."""
    rng, found = np.random.default_rng(DRAWN_SEED), list[list[Drawn]]()
    layers = draw(rng, DRAWN_COUNT) + draw(rng, DRAWN_COUNT, macs=WIDE_MACS)
    rare = [x for x in draw(rng, 2 * DRAWN_COUNT) if x.bits > BYTE or x.kind == "pool"]
    for part in (layers, rare):
        for form in ("onnx", "tflite"):
            found += cut([x for x in part if x.form == form], arena_room(board), LAYERS_PER_MODEL // 2)
    return found


def arena_room(board: Board) -> int:
    """Return the bytes that the activations of a model may have."""
    rams = [r.size_bytes for r in board.memory.values() if r.kind == "ram"]
    arena = board.memory[board.arena_region].size_bytes // 3
    return min(arena, min(rams) // 2, 1 << 20)  # inputs may lie in another memory


def samples_alone(board: Board) -> list[list[Sample]]:
    """Return the layers that are also measured in programs of their own."""
    return [[sample] for sample in measured_alone(board.cpu.features)]


def with_new(known: Mapping[str, Any], table: Mapping[str, Any], keys: Sequence[str] = ()) -> dict[str, Any]:
    """Return the contents of a file with the kernels of `table` that it lacks, or those that a pattern names."""
    new = {
        key: entry
        for key, entry in table["kernels"].items()
        if (any(fnmatchcase(key, k) for k in keys) if keys else key not in known["kernels"])
    }
    kernels = dict(sorted({**known["kernels"], **new}.items()))
    used = {name for entry in new.values() for name in entry["uses"]}
    functions = {name: size for name, size in table["functions"].items() if name in used}
    parts = {"functions": dict(sorted((functions | known["functions"]).items())), "kernels": kernels}
    return {**known, **({"rough": rough(kernels)} if "rough" in known else {}), **parts}


def is_near(fit: Mapping[str, Any], layers: Sequence[Taken]) -> bool:
    """Say whether layers take what a fit predicts, but for FAR: the root of the mean square."""
    what = "cycles" if "cycles" in fit else "insns"
    predicted = np.array([sum(c * x.values.get(f, 0.0) for f, c in fit[what].items()) for x in layers])
    counted = np.array([getattr(x, what) for x in layers])
    return rms((predicted - counted) / np.maximum(counted, SMALL)) <= FAR


def with_drawn(
    known: Mapping[str, Any], table: Mapping[str, Any], taken: Mapping[Any, Sequence[Taken]]
) -> dict[str, Any]:
    """Return the contents of a file with the fits of drawn layers, those that the file lacks or many are far off from.

    A way of printing that few layers have takes what the other one does; for -Os the file's counts.
    """
    kernels = {}
    for key, entry in table["kernels"].items():
        modes, old = entry["modes"], known["kernels"].get(key, {}).get("modes", {})
        best = max(modes.values(), key=lambda fit: fit["samples"])
        far = [mode for mode in modes if mode not in old or not is_near(old[mode], taken[key, mode])]
        if far and best["samples"] >= (MANY if old else FEW):
            size = {"size": old["size"]} if "size" in old else {}  # which would count where another one is missing
            many = {mode: fit for mode, fit in modes.items() if fit["samples"] >= MANY} or modes
            lacking = [mode for mode in ("shared", "literal") if size and mode not in many]
            filled = {mode: {**best, "text": (old | modes).get(mode, best)["text"]} for mode in lacking}
            kernels[key] = {**entry, "modes": size | many | filled}
    return with_new(known, {**table, "kernels": kernels}, ["*"])


def parts_for(board: Board, kinds: Sequence[str] | None, *, drawn: bool) -> list[Samples]:
    """Return the models that are measured on a board."""
    if drawn:
        return [*drawn_for(board)]
    others = [s for s in TFLITE if not kinds or s.kind in kinds]
    parts: list[Samples] = [*samples_for(board, kinds), *groups(others, 1 << 20, LAYERS_PER_MODEL // 2)]
    return parts if kinds else [*parts, *drawn_for(board)]


def fit_target(
    text: str, kinds: Sequence[str] | None, jobs: int, *, add: bool, keys: Sequence[str], drawn: bool
) -> None:
    """Measure and fit one target; of some kinds only kernels that the file lacks, if `add`, or of `keys` are written.

    Those of `keys` replace what the file has of them; so do those of many `drawn` layers.
    """
    begin, target = time.perf_counter(), target_of(text)
    with ProcessPoolExecutor(jobs) as pool:
        parts = parts_for(target.board, kinds, drawn=drawn)
        measured = merged(list(pool.map(partial(measured_by, text), parts)))
    seconds = time.perf_counter() - begin
    table = table_of(target, measured)
    show(table)
    print(f"  {seconds:.0f} s of measuring, {time.perf_counter() - begin - seconds:.0f} s of fitting", flush=True)
    file = cost_file(target.board.cpu.name)
    if drawn:
        write(with_drawn(json.loads(file.read_text(encoding="utf-8")), table, measured.taken), file)
    elif add or keys:
        write(with_new(json.loads(file.read_text(encoding="utf-8")), table, keys), file)
    elif not kinds:
        stack = json.loads(file.read_text(encoding="utf-8")).get("stack") if file.is_file() else None  # fit_stack.py's
        kernels = table.pop("kernels")
        write({**table, **({"stack": stack} if stack else {}), "kernels": kernels}, file)


def parser_of(purpose: str, targets: Sequence[str], metavar: str) -> argparse.ArgumentParser:
    """Return the parser of a script that measures targets, these where none are named."""
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--targets", nargs="+", default=targets, metavar=metavar)
    parser.add_argument("--jobs", type=int, default=2, help="models that are measured at once")
    return parser


def each_target(targets: Sequence[str], fit_one: Callable[[str], None]) -> int:
    """Fit one target after another; exit status 1 when one cannot be measured."""
    for text in targets:
        try:
            fit_one(text)
        except GlowcError as error:
            print(f"{text}: {type(error).__name__}: {error}", file=sys.stderr)
            return 1
    return 0


def main() -> int:
    """Measure, fit and write."""
    parser = parser_of((__doc__ or "").splitlines()[0], TARGETS, "CHIP|BOARD/CPU")
    parser.add_argument("--kinds", nargs="+", help="only these kinds of layers; the file is not written")
    parser.add_argument("--add", action="store_true", help="write the kernels that the file lacks, and no others")
    parser.add_argument("--keys", nargs="+", default=(), help="write kernels of these patterns anew, and no others")
    parser.add_argument("--drawn", action="store_true", help="count drawn layers alone, write what many of them have")
    args = parser.parse_args()
    more = {"kinds": args.kinds, "jobs": args.jobs, "add": args.add, "keys": args.keys, "drawn": args.drawn}
    return each_target(args.targets, partial(fit_target, **more))


if __name__ == "__main__":
    sys.exit(main())
