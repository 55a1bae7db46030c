#!/usr/bin/env python3
"""Measure single layers on emulated boards and fit what kernels cost: boards/_costs/<cpu>.json. Runs as `make costs`.

    scripts/fit_costs.py
    scripts/fit_costs.py --targets stm32l4r5 linux-armhf/cortex-a7 --jobs 2
    scripts/fit_costs.py --targets stm32l4r5 --kinds conv fc
    scripts/fit_costs.py --targets stm32l4r5 --kinds fc_f32 --add

A target is a chip, whose cycles stand for all chips with its CPU, or a board where no chip has the CPU; there
instructions alone are fitted. Every variant of every layer of scripts/cost_layers.py is counted under QEMU (exact),
once printed for each shape and once shared, by -O2 and by -Os; code is measured function by function. Per kernel,
variant, path and way of printing a sum of few features is fitted by non-negative least squares of the relative error
(glowc/select/cost.py tells the features). Prints the error for layers that were left out of the fit. Counts are kept in
build/costs by a hash of the program: what did not change is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cost_layers import SAMPLES, Sample, groups, model_of

from glowc.board import Board, Chip, chip_names, find_tool, load_board, load_chip, machine_of
from glowc.codegen.kernels import args_struct, render_kernel
from glowc.codegen.view import family, literal_kernels
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.kernels.choice import variant_of
from glowc.kernels.features import FEATURES, WORK, features
from glowc.machine.cycles.measure import measure_layers
from glowc.machine.elf import sections
from glowc.machine.execute import BundleInfo, build_bundle, count_layers, load_bundle, random_inputs
from glowc.paths import data_dir
from glowc.program.ir import Instr
from glowc.program.lifetimes import strip_markers
from glowc.select.candidates import Layer, Order
from glowc.select.choose import count_lines
from glowc.select.cost import cost_file, key_of

ROOT = Path(__file__).resolve().parent.parent
TARGETS = (
    "nrf51822", "stm32g0b1", "stm32f103", "stm32l4r5", "stm32u575", "stm32h7a3", "alif-e7", "rpi-zero2", "rpi5",
    "linux-aarch64/armv8.6-i8mm", "linux-armhf/cortex-a7",
)  # fmt: skip
OPTS = {"cortex-m": ("size", "balanced", "speed")}  # of a family; size stands for -Os
OTHER_OPTS = ("balanced", "speed")
LAYERS_PER_MODEL = 48
MOST_TERMS = 7  # of a fit
BEAM = 4  # sets of features that are tried further
ROUGH = 0.10  # of an error: the file names the kernel
SMALL = 1000  # cycles: errors of smaller layers are relative to this
GOOD = 0.002  # an error that needs no further term
SLOW_MACS = 50_000  # of a layer that portable C is not counted with
FLAGS = ("-fno-inline-functions-called-once",)  # so that each function has a size
CLONE = re.compile(r"\.(constprop|isra|part|cold|lto_priv)(\.\d+)?")


@dataclass(frozen=True)
class Target:
    """Where layers are counted: a board, and the chip whose cycles count, if any; `name` is what the user calls it."""

    name: str
    board: Board
    chip: Chip | None


def target_of(text: str) -> Target:
    """Return the target of a chip's name, or of `board/cpu`."""
    if text in chip_names():
        chip = load_chip(text)
        return Target(text, machine_of(chip), chip)
    name, _, cpu = text.partition("/")
    return Target(text, load_board(name, cpu or None), None)


@dataclass(frozen=True)
class Taken:
    """One layer as counted: features, instructions, and cycles where there is a chip."""

    values: Mapping[str, float]
    insns: float
    cycles: float


@dataclass
class Counts:
    """What a program gave: per layer instructions and cycles; bytes of functions, and of the runtime's by name."""

    insns: list[float]
    cycles: list[float]
    own: dict[str, int]
    functions: dict[str, int]
    uses: dict[str, list[str]]
    base: int | None = None


@dataclass
class Measured:
    """What was counted: per key and way of printing layers, and (lines, bytes); functions, callees."""

    taken: dict[tuple[str, str], list[Taken]] = field(default_factory=lambda: defaultdict(list))
    text: dict[tuple[str, str], set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    functions: dict[str, int] = field(default_factory=dict)
    uses: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    base: list[tuple[int, int]] = field(default_factory=list)  # (layers, bytes besides functions)

    def add(self, key: str, mode: str, taken: Taken) -> None:
        """Add a layer, unless one with the same features is known."""
        if all(taken.values != known.values for known in self.taken[key, mode]):
            self.taken[key, mode].append(taken)


def nth(number: int) -> Callable[[Sequence[Layer]], Order]:
    """Return the order that puts the n-th variant of each layer first."""

    def order(layers: Sequence[Layer]) -> Order:
        names = {x.name: [f.variant for f in x.forms] for x in layers}
        return {name: (*found[number:], *found[:number]) for name, found in names.items()}

    return order


Counted = tuple[Compiled, Counts]


def measure(target: Target, samples: Sequence[Sample]) -> list[Counted]:
    """Count the layers of one model with every variant and every way of printing."""
    found: list[Counted] = []
    with tempfile.TemporaryDirectory(prefix="glowc-costs-") as name:
        number, left = 0, list(samples)
        while left:
            folder = Path(name) / str(number)
            folder.mkdir()
            onnx.save(model_of(left), folder / "layers.onnx")
            layout = "exported" if left[0].planar else "nhwc"
            for opt in OPTS.get(target.board.cpu.family, OTHER_OPTS):
                # Buffers of the caller and no overlap: nothing to plan.
                options = CompileOptions(io_layout=layout, opt=opt, plan="plain", io_buffers="caller")
                compiled = compile_model(folder / "layers.onnx", target.board, options, order=nth(number))
                found.append((compiled, count(compiled, target, folder / opt)))
            number += 1
            choices = {int(m[1]) for x in compiled.selection.layers
                       if is_worth_it(x, number) and (m := re.search(r"n_[xyz](\d+)", x.name))}  # fmt: skip
            left = [sample for at, sample in enumerate(left) if at in choices]
    return found


def is_worth_it(layer: Layer, number: int) -> bool:
    """Say whether a layer has an n-th variant that is worth its time under QEMU."""
    if len(layer.forms) <= number:
        return False
    form = layer.forms[number]
    return variant_of(form).isa != "ref" or form.macs <= SLOW_MACS


def measured_by(name: str, samples: Sequence[Sample]) -> Measured:
    """Return what one model's layers take on a target, and their code."""
    measured = Measured()
    for compiled, counts in measure(target_of(name), samples):
        add(compiled, counts, measured)
    return measured


def add(compiled: Compiled, counts: Counts, measured: Measured) -> None:
    """Add the layers of one program."""
    program, opt = strip_markers(compiled.program), compiled.options.opt
    literal = literal_kernels(program, opt)
    calls = calls_of(compiled)
    for instr, insns, cycles, fn in zip(program.instrs, counts.insns, counts.cycles, calls, strict=True):
        mode = "size" if opt == "size" else "literal" if family(instr) in literal else "shared"
        key = key_of(instr)
        measured.add(key, mode, Taken(features(instr), insns, cycles))
        if fn in counts.own:
            measured.text[key, mode].add((lines_of(instr, family(instr) in literal), counts.own[fn]))
            measured.uses[key] |= set(counts.uses[fn])
    for fn, size in counts.functions.items():
        measured.functions[fn] = max(measured.functions.get(fn, 0), size)
    if counts.base is not None:
        measured.base.append((len(calls), counts.base))


def calls_of(compiled: Compiled) -> list[str]:
    """Return the function of each layer."""
    return [layer.call.partition("(")[0] for layer in compiled.bundle.layers]


def merged(parts: Sequence[Measured]) -> Measured:
    """Return what several models gave together."""
    whole = Measured()
    for part in parts:
        for (key, mode), found in part.taken.items():
            for taken in found:
                whole.add(key, mode, taken)
        for place, points in part.text.items():
            whole.text[place] |= points
        for fn, size in part.functions.items():
            whole.functions[fn] = max(whole.functions.get(fn, 0), size)
        for key, uses in part.uses.items():
            whole.uses[key] |= uses
        whole.base += part.base
    return whole


@cache
def rules_hash(name: str) -> str:
    """Return a hash of what decides the counts of a target besides the program: chip, compiler, rules."""
    target, cpu = target_of(name), target_of(name).board.cpu
    compiler = subprocess.run([str(find_tool(cpu.cc)), "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(repr((target.chip, target.board.name, cpu.name, cpu.cflags, FLAGS)).encode() + compiler)
    plugin = data_dir("boards") / "_common" / "plugin"
    for path in sorted([*(ROOT / "glowc" / "machine" / "cycles").glob("*.py"), *plugin.glob("*.c")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def count(compiled: Compiled, target: Target, folder: Path) -> Counts:
    """Count one compiled model, or return what is known of the same program."""
    write_bundle(compiled, folder)
    info, opt = load_bundle(folder), compiled.options.opt
    digest = hashlib.sha256(f"{rules_hash(target.name)} {opt}".encode())
    for name in sorted(info.report["files"]):
        if name.endswith((".c", ".h")):
            digest.update(name.encode() + (folder / name).read_bytes())
    known = ROOT / "build" / "costs" / f"{digest.hexdigest()[:32]}.json"
    if not known.is_file():
        counts = run(compiled, info, target, folder)
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(asdict(counts)), encoding="utf-8")
    return Counts(**json.loads(known.read_text(encoding="utf-8")))


def run(compiled: Compiled, info: BundleInfo, target: Target, folder: Path) -> Counts:
    """Build and run one program."""
    board, chip, inputs = target.board, target.chip, random_inputs(info)
    if chip is not None:
        layers = measure_layers(info, chip, inputs, folder, FLAGS)
        insns, cycles = [float(x.insns) for x in layers], [x.cycles for x in layers]
    else:
        insns = [float(n) for n in count_layers(info, board, inputs, folder, FLAGS)]
        cycles = insns
    calls = set(calls_of(compiled))
    path = folder / "model.obj" / f"{info.name}.o"
    own, functions, uses = function_sizes(path, board, calls)
    counts = Counts(insns, cycles, own, functions, uses)
    if compiled.options.opt == "balanced":  # once more without profiling: what the calls take
        build_bundle(info, board, folder, link=False, extra_flags=FLAGS)
        counts.base = bytes_besides(path, calls)
    return counts


def lines_of(instr: Instr, literal: bool) -> int:
    """Return the lines of the function of an instruction."""
    return count_lines(render_kernel(instr, "fn", None if literal else args_struct(instr, "args_t")))


def function_sizes(
    path: Path, board: Board, names: set[str]
) -> tuple[dict[str, int], dict[str, int], dict[str, list[str]]]:
    """Return bytes of the kernels' functions in the model's object, of the runtime's, and those that each calls."""
    own: dict[str, int] = defaultdict(int)
    runtime: dict[str, int] = {}
    for fn, size in functions_in(path):
        owner = owner_of(fn, names)
        if owner is not None:
            own[owner] += size
        elif fn.startswith("glow_"):
            runtime[fn] = max(runtime.get(fn, 0), size)
    calls = call_graph(path, board)
    uses = {}
    for name in names:
        seen: set[str] = set()
        todo = [fn for fn in calls if owner_of(fn, {name}) is not None]
        while todo:
            new = calls.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        uses[name] = sorted(fn for fn in seen if fn.startswith("glow_"))
    return dict(own), runtime, uses


def functions_in(path: Path) -> list[tuple[str, int]]:
    """Return the functions of an object file and their bytes."""
    return [(plain(s.name), s.size) for s in sections(path) if s.kind == "text"]


def bytes_besides(path: Path, names: set[str]) -> int:
    """Return the bytes of what is neither a kernel's function nor the runtime's."""
    return sum(size for fn, size in functions_in(path) if owner_of(fn, names) is None and not fn.startswith("glow_"))


def plain(section: str) -> str:
    """Return the function of a section `.text.<function>`, without what the compiler appends to a clone's name."""
    return CLONE.sub("", re.sub(r"^\.text\.(unlikely\.|startup\.|hot\.)?", "", section))


def owner_of(fn: str, names: set[str]) -> str | None:
    """Return the layer function that a function is or belongs to (`<function>_tile0`)."""
    words = fn.split("_")
    stems = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    return next((stem for stem in stems if stem in names), None)


def call_graph(path: Path, board: Board) -> dict[str, set[str]]:
    """Return which functions of an object each of its functions refers to, by the relocations."""
    tool = find_tool(f"{board.cpu.tool_prefix}objdump")
    text = subprocess.run([str(tool), "-r", str(path)], capture_output=True, text=True, check=True).stdout
    calls: dict[str, set[str]] = defaultdict(set)
    current = ""
    for line in text.splitlines():
        if match := re.match(r"RELOCATION RECORDS FOR \[\.text\.(\S+)\]", line):
            current = plain(f".text.{match[1]}")
        elif line.startswith("RELOCATION"):
            current = ""
        elif current and (match := re.match(r"[0-9a-f]+ \S+\s+(\S+?)(?:[+-]0x[0-9a-f]+)?$", line)):
            calls[current].add(plain(match[1]))
    return calls


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


def fit(samples: Sequence[Mapping[str, float]], taken: Sequence[float]) -> tuple[dict[str, float], float] | None:
    """Return the coefficients of few features, chosen one after another, and the error of a sample left out.

    None where there are no more samples than coefficients. With multiply-accumulates, one of the features counts them.
    """
    counts = np.array(taken, float)
    weight = 1 / np.maximum(counts, SMALL)
    columns = {f: np.array([v.get(f, 0.0) for v in samples]) * weight for f in FEATURES}
    target = counts * weight
    usable = [f for f in FEATURES if columns[f].any()]
    most = min(MOST_TERMS, max(2 * len(samples) // 3, 1), len(samples) - 1)
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
        if found is not None:
            entry = kernels.setdefault(key, {"modes": {}, "uses": sorted(measured.uses[key])})
            entry["modes"][mode] = found | {"text": fit_text(measured.text[key, mode])}
    base = nnls(np.array([(1.0, n) for n, _ in measured.base]), np.array([b for _, b in measured.base], float))
    compiler = subprocess.run([str(find_tool(board.cpu.cc)), "--version"], capture_output=True, text=True, check=True)
    return {
        "cpu": board.cpu.name, "family": board.cpu.family, "features": sorted(board.cpu.features), "board": board.name,
        "chip": None if target.chip is None else target.chip.name,
        "compiler": compiler.stdout.splitlines()[0], "base": [round(float(v), 1) for v in base],
        "functions": dict(sorted(measured.functions.items())), "rough": rough(kernels), "kernels": kernels,
    }  # fmt: skip


def rough(kernels: Mapping[str, Any]) -> list[str]:
    """Return the kernels whose cycles depend on more than the features: a layer left out is off by more than ROUGH."""
    return [k for k, entry in kernels.items() if any(found["error"] > ROUGH for found in entry["modes"].values())]


def write(table: Mapping[str, Any], path: Path) -> None:
    """Write the file, one line per kernel and way of printing."""
    head = {k: v for k, v in table.items() if k != "kernels"}
    lines = [f" {json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()]
    lines += [' "kernels": {']
    entries = []
    for key, entry in table["kernels"].items():
        modes = ",\n".join(f"   {json.dumps(m)}: {json.dumps(v)}" for m, v in entry["modes"].items())
        entries.append(f'  {json.dumps(key)}: {{"uses": {json.dumps(entry["uses"])}, "modes": {{\n{modes}}}}}')
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
    rams = [r.size_bytes for r in board.memory.values() if r.kind == "ram"]
    two_forms = board.cpu.has("dsp") and not board.cpu.has("mve")  # of packed weights
    wanted = [s for s in SAMPLES if (two_forms or not s.wide) and (not kinds or s.kind in kinds)]
    return groups(wanted, min([*(n // 3 for n in rams), 1 << 20]), LAYERS_PER_MODEL)


def with_new(known: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of a file with the kernels of `table` that it lacks."""
    new = {key: entry for key, entry in table["kernels"].items() if key not in known["kernels"]}
    kernels = dict(sorted({**known["kernels"], **new}.items()))
    used = {name for entry in new.values() for name in entry["uses"]}
    functions = {name: size for name, size in table["functions"].items() if name in used}
    parts = {"functions": dict(sorted((functions | known["functions"]).items())), "kernels": kernels}
    return {**known, **({"rough": rough(kernels)} if "rough" in known else {}), **parts}


def fit_target(text: str, kinds: Sequence[str] | None, jobs: int, *, add: bool) -> None:
    """Measure and fit one target; of some kinds only kernels that the file lacks are written, if `add`."""
    begin, target = time.perf_counter(), target_of(text)
    with ProcessPoolExecutor(jobs) as pool:
        measured = merged(list(pool.map(partial(measured_by, text), samples_for(target.board, kinds))))
    seconds = time.perf_counter() - begin
    table = table_of(target, measured)
    show(table)
    print(f"  {seconds:.0f} s of measuring, {time.perf_counter() - begin - seconds:.0f} s of fitting", flush=True)
    file = cost_file(target.board.cpu.name)
    if add:
        write(with_new(json.loads(file.read_text(encoding="utf-8")), table), file)
    elif not kinds:
        stack = json.loads(file.read_text(encoding="utf-8")).get("stack") if file.is_file() else None  # fit_stack.py's
        kernels = table.pop("kernels")
        write({**table, **({"stack": stack} if stack else {}), "kernels": kernels}, file)


def main() -> int:
    """Measure, fit and write; exit status 1 when a board cannot be measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", nargs="+", default=TARGETS, metavar="CHIP|BOARD/CPU")
    parser.add_argument("--kinds", nargs="+", help="only these kinds of layers; the file is not written")
    parser.add_argument("--add", action="store_true", help="write the kernels that the file lacks, and no others")
    parser.add_argument("--jobs", type=int, default=2, help="models that are measured at once")
    args = parser.parse_args()
    for text in args.targets:
        try:
            fit_target(text, args.kinds, args.jobs, add=args.add)
        except GlowcError as error:
            print(f"{text}: {type(error).__name__}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
