#!/usr/bin/env python3
"""Measure single layers on emulated boards and fit what kernels cost: boards/_costs/<cpu>.json. Runs as `make costs`.

    scripts/fit_costs.py
    scripts/fit_costs.py --targets stm32l4r5 linux-armhf/cortex-a7 --jobs 2
    scripts/fit_costs.py --targets stm32l4r5 --kinds conv fc
    scripts/fit_costs.py --targets stm32l4r5 --kinds fc_f32 --add
    scripts/fit_costs.py --targets stm32l4r5 --kinds mul mul_gate --keys "mul_s8.*"
    scripts/fit_costs.py --targets stm32l4r5 --keys "dwconv_s8*" "fc_s8*" --quick

A target is a chip, whose cycles stand for all chips with its CPU, or a board where no chip has the CPU; there
instructions alone are fitted. Every variant of every layer of scripts/cost_layers.py is counted under QEMU (exact),
once printed for each shape and once shared, by -O2 and by -Os. So are, by -O2, layers of random kind and shape
(scripts/drawn_layers.py, with a seed of their own). Per kernel, variant, path and way of printing a sum of few features
is fitted to layers of both kinds by non-negative least squares of the relative error (glowc/select/cost.py tells the
features); where a kernel differs from another one in its ending alone, that one's costs are a feature too. Prints the
error for layers that were left out of the fit. With `--keys` only layers that can have these kernels are counted, with
these alone. `--quick` counts a fifth of the chosen layers, and -O2 alone, and replaces costs of the file that say less
of these layers. Counts are kept in build/costs by a hash of the program: what did not change is not run again.
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
from cost_layers import SAMPLES, SIXTEEN_STEMS, cut, groups
from cost_sample import Sample
from cost_small_chips import measured_alone, measured_on
from cost_tflite import TFLITE, as_tflite
from count_costs import Measured, Samples, Taken, Target, measured_by, merged, target_of
from drawn_layers import Drawn, draw

from glowc.board import Board, Chip, find_tool
from glowc.errors import GlowcError
from glowc.kernels.features import FEATURES, OF_PASSES, OF_PLAN, WORK
from glowc.select.cost import MODES, cost_file, keys_like

TARGETS = (
    "nrf51822", "rp2040", "stm32f103", "stm32l4r5", "stm32u575", "stm32h7a3", "alif-e7", "rpi-zero2", "rpi5",
    "linux-aarch64/armv8.6-i8mm", "linux-armhf/cortex-a7",
)  # fmt: skip
LAYERS_PER_MODEL = 48
MOST_TERMS = 7  # of a fit
BEAM = 16  # sets of features that are tried further
USELESS = 0.25  # of an error: another way of printing says as much
SURE = 0.10  # of an error: a fit that replaces costs of another kernel, which stand in
TRUSTED = 0.20  # of an error: fits that are chosen by
LESS = 0.75  # of the error of what a file has: a fit of few layers that replaces it
SMALL = 1000  # cycles: errors of smaller layers are relative to this
SMALL_CACHE = 1024  # bytes
BYTE = 8  # bits
WORD = 4  # bytes that are read at once
ENOUGH = 5  # layers of a fit
DRAWN_SEED, DRAWN_COUNT = 1_000_000, 160  # layers as scripts/cliffs.py draws them, and as many with
WIDE_MACS = 1_000, 2_000_000  # so many multiply-accumulates
QUICK = 5  # chosen layers, one of which is counted by --quick
LIKE = "like"  # a feature: what the costs of a kernel with another ending say
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


def fit(
    samples: Sequence[Mapping[str, float]],
    taken: Sequence[float],
    weights: np.ndarray | float = 1.0,
    like: Mapping[str, float] | None = None,
) -> tuple[dict[str, float], float] | None:
    """Return the coefficients of few features, chosen one after another, and the error of a sample left out.

    None where there are no more samples than coefficients. With multiply-accumulates, one of the features counts them.
    `like` are the coefficients of a kernel alike, whose sum is one of the features.
    """
    counts = np.array(taken, float)
    weight = weights / np.maximum(counts, SMALL)
    columns = {f: np.array([v.get(f, 0.0) for v in samples]) * weight for f in FEATURES}
    if like:
        columns[LIKE] = sum(c * columns[f] for f, c in like.items()) + np.zeros(len(samples))
    target = counts * weight
    usable = [f for f in columns if columns[f].any()]
    if any(f in OF_PLAN for f in usable):
        usable = [f for f in usable if f in ("call", "weights", LIKE, *OF_PLAN)]
    if "passes" in usable:
        usable = [f for f in usable if f in (LIKE, *OF_PASSES)]
    most = min(MOST_TERMS, max(len(samples) // 3, 1), len(samples) - 1)  # more say nothing of other shapes
    if most < 1:
        return None

    works = {f for f in usable if f in (*WORK, LIKE)} if any(v.get("macs", 0.0) for v in samples) else set(usable)

    def rms(names: Sequence[str]) -> float:
        x, errors = left_out(np.stack([columns[f] for f in names], axis=1), target)
        counts_work = any(c > 0 and f in works for c, f in zip(x, names, strict=True))
        return float(np.sqrt(np.mean(errors**2))) if counts_work else np.inf

    first = [LIKE] if LIKE in usable else [f for f in usable if f in works]
    kept = sorted((rms([f]), (f,)) for f in first)[:BEAM]
    best, chosen = kept[0]
    for _ in range(most - 1):
        wider = {tuple(sorted((*names, f))) for _, names in kept for f in usable if f not in names}
        kept = sorted((rms(names), names) for names in wider)[:BEAM]
        if best <= GOOD or not kept or kept[0][0] > 0.97 * best:
            break
        best, chosen = kept[0]
    found = dict(zip(chosen, left_out(np.stack([columns[f] for f in chosen], axis=1), target)[0], strict=True))
    scale = found.pop(LIKE, 0.0)
    sums = {f: found.get(f, 0.0) + scale * (like or {}).get(f, 0.0) for f in columns}
    return {f: float(f"{c:.4g}") for f, c in sums.items() if c > 0}, round(best, 4)


def weights_of(layers: Sequence[Taken]) -> np.ndarray:
    """Return what an error of each layer counts, so that many layers of one kind do not outvote few of the other.

    The kinds are chosen and drawn ones.
    Squares of the weights of n layers of a kind have a sum that is proportional to the root of n; their mean is 1.
    """
    is_drawn = np.array([x.is_drawn for x in layers])
    squares = np.where(is_drawn, is_drawn.sum(), (~is_drawn).sum()) ** -0.5
    return np.asarray(np.sqrt(squares / squares.mean()))


def fit_layers(
    layers: Sequence[Taken], *, cycles: bool, like: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the fitted coefficients of one kernel as the file has them, None where too few layers were measured.

    `like` are those of a kernel that differs in its ending; its layers are samples, too.
    """
    like = like or {}
    samples = len(layers) + like.get("samples", 0)
    values, weights = [x.values for x in layers], weights_of(layers)
    insns = fit(values, [x.insns for x in layers], weights, like.get("insns"))
    if insns is None:
        return None
    if not cycles:
        return {"insns": insns[0], "error": insns[1], "samples": samples}
    found = fit(values, [x.cycles for x in layers], weights, like.get("cycles"))
    assert found is not None
    return {"insns": insns[0], "cycles": found[0], "error": found[1], "samples": samples}


def table_of(target: Target, measured: Measured, known: Mapping[str, Any], *, quick: bool = False) -> dict[str, Any]:
    """Return the file's contents; `known` are kernels that the file has.

    Of few layers, `quick`, a fit is what is known and few terms. It replaces what a file has where it takes a quarter
    off the error, and a stand-in where it can be chosen by, too, or is good.
    """
    board, kernels = target.board, dict[str, Any]()
    for key, mode in sorted(measured.taken, key=lambda entry: (keys_like(entry[0])[-1] != entry[0], entry)):
        layers, keys = measured.taken[key, mode], keys_like(key)
        own, others = _modes(known, key) if quick else {}, [k for k in keys if k != key]
        before = fit_of([own, *({**_modes(known, k), **_modes(kernels, k)} for k in others)], mode)
        found = fit_layers(layers, cycles=target.chip is not None, like=before)
        if found is None or found["error"] > USELESS:
            continue
        lowers = before is None or found["error"] < LESS * error_of(before, layers)
        improves = lowers if mode in own else found["error"] <= (TRUSTED if lowers else SURE)
        if not quick or (improves and len(layers) >= ENOUGH):
            kernels.setdefault(key, {})[mode] = found
    for modes in kernels.values():
        _leave_out_few(modes)
    compiler = subprocess.run([str(find_tool(board.cpu.cc)), "--version"], capture_output=True, text=True, check=True)
    return {
        "cpu": board.cpu.name, "family": board.cpu.family, "features": sorted(board.cpu.features), "board": board.name,
        "chip": None if target.chip is None else target.chip.name,
        "reread_cycles": reread_cycles(target.chip), "compiler": compiler.stdout.splitlines()[0],
        "kernels": dict(sorted(kernels.items())),
    }  # fmt: skip


def fit_of(found: Sequence[Mapping[str, Any]], mode: str) -> Mapping[str, Any] | None:
    """Return the fit of the first kernel that has any, of another way of printing by -O2 where it has no such."""
    modes = next(filter(None, found), {})
    return next((modes[m] for m in (mode, "shared", "literal") if m in modes), None)


def _leave_out_few(modes: dict[str, Any]) -> None:
    """Remove, in place, ways of printing with few samples where another one has enough, which counts then."""
    if any(fit["samples"] >= ENOUGH for fit in modes.values()):
        for mode in [mode for mode, fit in modes.items() if fit["samples"] < ENOUGH]:
            del modes[mode]


def reread_cycles(chip: Chip | None) -> float:
    """Return the cycles for a byte that is read from flash again, 0 where a cache of some size may have it."""
    if chip is None:
        return 0.0
    cache = chip.flash.instruction_cache if chip.flash.unified else chip.flash.data_cache
    if cache is not None and cache.size_bytes > SMALL_CACHE:
        return 0.0
    return chip.flash.data_miss_cycles / (WORD if cache is None else cache.line_bytes)


def write(table: Mapping[str, Any], path: Path) -> None:
    """Write the file, one line per kernel and way of printing."""
    text = partial(json.dumps, separators=(",", ":"))
    head = {k: v for k, v in table.items() if k != "kernels"}
    lines = [f" {text(k)}:{text(v)}," for k, v in head.items()]
    lines += [' "kernels":{']
    entries = []
    for key, modes in table["kernels"].items():
        fits = ",\n".join(f"   {text(m)}:{text(v)}" for m, v in modes.items())
        entries.append(f"  {text(key)}:{{\n{fits}}}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["{", *lines, ",\n".join(entries), " }", "}"]) + "\n", encoding="utf-8")


def show(table: Mapping[str, Any]) -> None:
    """Print the fits of one CPU."""
    print(f"{table['cpu']}: rms error of a layer that was left out; largest terms")
    for key, modes in table["kernels"].items():
        for mode, found in modes.items():
            terms = " ".join(f"{f}*{c:g}" for f, c in found.get("cycles", found["insns"]).items())
            print(f"  {key:34} {mode:8} {100 * found['error']:6.1f} % of {found['samples']:2}  {terms}")


def samples_for(board: Board, kinds: Sequence[str] | None, every: int = 1) -> list[list[Sample]]:
    """Return the layers that are measured on a board, or one of `every` few, cut into models."""
    wanted = measured_on(board.cpu.features, [s for s in SAMPLES if not kinds or s.kind in kinds])
    return groups(wanted[::every], arena_room(board), LAYERS_PER_MODEL)


def drawn_for(board: Board, kinds: Sequence[str] | None) -> list[list[Drawn]]:
    """Return layers of random kind and shape, and chosen ones of TensorFlow Lite, cut into models of one form."""
    rng, found = np.random.default_rng(DRAWN_SEED), list[list[Drawn]]()
    layers = draw(rng, DRAWN_COUNT) + draw(rng, DRAWN_COUNT, macs=WIDE_MACS)
    rare = [x for x in draw(rng, 2 * DRAWN_COUNT) if x.bits > BYTE or x.kind in ("pool", "stem")]
    for part in (layers, rare, as_tflite((*SAMPLES[:: QUICK - 1], *SIXTEEN_STEMS))):
        for form in ("onnx", "tflite"):
            wanted = [x for x in part if x.form == form and (not kinds or x.kind in kinds)]
            found += cut(wanted, arena_room(board), LAYERS_PER_MODEL // 2)
    return found


def arena_room(board: Board) -> int:
    """Return the bytes that the activations of a model may have."""
    rams = [r.size_bytes for r in board.memory.values() if r.kind == "ram"]
    arena = board.memory[board.arena_region].size_bytes // 3
    return min(arena, min(rams) // 2, 1 << 20)  # inputs may lie in another memory


def samples_alone(board: Board) -> list[list[Sample]]:
    """Return the layers that are also measured in programs of their own."""
    return [[sample] for sample in measured_alone(board.cpu.features)]


def with_new(
    known: Mapping[str, Any], table: Mapping[str, Any], keys: Sequence[str] = (), kept: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the contents of a file with the kernels of `table` that it lacks, or those that a pattern names.

    Their ways of printing that are `kept` stay as the file has them.
    """
    new = {
        key: {m: v for m, v in _modes(known["kernels"], key).items() if m in kept} | modes
        for key, modes in table["kernels"].items()
        if (any(fnmatchcase(key, k) for k in keys) if keys else key not in known["kernels"])
    }
    return {**known, "kernels": dict(sorted({**known["kernels"], **new}.items()))}


def error_of(fit: Mapping[str, Any], layers: Sequence[Taken]) -> float:
    """Return how far layers are from what a fit predicts: the root of the weighted mean square."""
    what = "cycles" if "cycles" in fit else "insns"
    predicted = np.array([sum(c * x.values.get(f, 0.0) for f, c in fit[what].items()) for x in layers])
    counted = np.array([getattr(x, what) for x in layers])
    return rms(weights_of(layers) * (predicted - counted) / np.maximum(counted, SMALL))


def _modes(kernels: Mapping[str, Any], key: str) -> dict[str, Any]:
    return dict(kernels.get(key, {}))


def parts_for(board: Board, kinds: Sequence[str] | None, *, quick: bool) -> list[Samples]:
    """Return the models that are measured on a board."""
    every = QUICK if quick else 1
    others = [s for s in TFLITE if not kinds or s.kind in kinds][::every]
    chosen = [*samples_for(board, kinds, every), *groups(others, 1 << 20, LAYERS_PER_MODEL // 2)]
    return [*chosen, *drawn_for(board, kinds)]


def fit_target(
    text: str, kinds: Sequence[str] | None, jobs: int, *, add: bool, keys: Sequence[str], quick: bool
) -> None:
    """Measure and fit one target; of some kinds only kernels that the file lacks, if `add`, or of `keys` are written.

    Those of `keys` replace what the file has of them.
    """
    begin, target = time.perf_counter(), target_of(text)
    with ProcessPoolExecutor(jobs) as pool:
        measure = partial(measured_by, text, keys or ("*",), quick)
        measured = merged(list(pool.map(measure, parts_for(target.board, kinds, quick=quick))))
    seconds = time.perf_counter() - begin
    file = cost_file(target.board.cpu.name)
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"kernels": {}}
    is_whole = not (kinds or keys or add or quick)
    table = table_of(target, measured, {} if is_whole else known["kernels"], quick=quick)
    show(table)
    print(f"  {seconds:.0f} s of measuring, {time.perf_counter() - begin - seconds:.0f} s of fitting", flush=True)
    if add or keys:
        write(with_new(known, table, keys, MODES if quick else ()), file)
    elif is_whole:
        others = {name: known[name] for name in ("code", "stack") if name in known}  # of fit_code.py and fit_stack.py
        write({**{k: v for k, v in table.items() if k != "kernels"}, **others, "kernels": table["kernels"]}, file)


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
    parser.add_argument("--quick", action="store_true", help="with --keys or --add: few chosen layers, by -O2")
    args = parser.parse_args()
    more = {"kinds": args.kinds, "jobs": args.jobs, "add": args.add, "keys": args.keys, "quick": args.quick}
    return each_target(args.targets, partial(fit_target, **more))


if __name__ == "__main__":
    sys.exit(main())
