#!/usr/bin/env python3
"""Measure single layers on emulated boards and fit what kernels cost: boards/_costs/<cpu>.json. Runs as `make costs`.

    scripts/fit_costs.py
    scripts/fit_costs.py --boards mps2-an386 linux-aarch64/cortex-a53 --kinds conv fc

Every variant of every layer of scripts/cost_layers.py is counted under QEMU (exact), once printed for each shape and
once shared, by -O2 and by -Os; code is measured function by function. Per kernel, variant, path and way of printing a
sum of few features is fitted by non-negative least squares of the relative error (glowc/select/cost.py tells the
features).
Prints the error for layers that were left out of the fit.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cost_layers import SAMPLES, Sample, groups, model_of

from glowc.board import Board, find_tool, load_board
from glowc.codegen.kernels import args_struct, render_kernel
from glowc.codegen.view import family, literal_kernels
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.kernels.features import FEATURES, features
from glowc.machine.elf import sections
from glowc.machine.execute import build_bundle, count_layers, load_bundle, random_inputs
from glowc.program.ir import Instr
from glowc.program.lifetimes import strip_markers
from glowc.select.candidates import Layer, Order
from glowc.select.choose import count_lines
from glowc.select.cost import cost_file, key_of

BOARDS = (
    "microbit", "mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64/cortex-a53", "linux-aarch64/cortex-a76",
    "linux-aarch64/armv8.6-i8mm", "linux-armhf/cortex-a7",
)  # fmt: skip
OPTS = {"cortex-m": ("size", "balanced", "speed")}  # of a family; size stands for -Os
OTHER_OPTS = ("balanced", "speed")
LAYERS_PER_MODEL = 48
MOST_TERMS, FOLDS = 6, 6  # of a fit
GOOD = 0.002  # an error that needs no further term
CLONE = re.compile(r"\.(constprop|isra|part|cold|lto_priv)(\.\d+)?")


@dataclass
class Measured:
    """What was counted: per key and way of printing (features, instructions) and (lines, bytes); functions, callees."""

    insns: dict[tuple[str, str], list[tuple[dict[str, float], int]]] = field(default_factory=lambda: defaultdict(list))
    text: dict[tuple[str, str], set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    functions: dict[str, int] = field(default_factory=dict)
    uses: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    base: list[tuple[int, int]] = field(default_factory=list)  # (layers, bytes besides functions)


def nth(number: int) -> Callable[[Sequence[Layer]], Order]:
    """Return the order that puts the n-th variant of each layer first."""

    def order(layers: Sequence[Layer]) -> Order:
        names = {x.name: [f.variant for f in x.forms] for x in layers}
        return {name: (*found[number:], *found[:number]) for name, found in names.items()}

    return order


def measure(samples: Sequence[Sample], board: Board, measured: Measured) -> None:
    """Count the layers of one model with every variant and every way of printing."""
    with tempfile.TemporaryDirectory(prefix="glowc-costs-") as name:
        number, left = 0, list(samples)
        while left:
            folder = Path(name) / str(number)
            folder.mkdir()
            onnx.save(model_of(left), folder / "layers.onnx")
            layout = "exported" if left[0].planar else "nhwc"
            for opt in OPTS.get(board.cpu.family, OTHER_OPTS):
                # Buffers of the caller and no overlap: nothing to plan.
                options = CompileOptions(io_layout=layout, opt=opt, plan="plain", io_buffers="caller")
                compiled = compile_model(folder / "layers.onnx", board, options, order=nth(number))
                count(compiled, board, folder / opt, measured)
            number += 1
            choices = {int(m[1]): len(x.forms) for x in compiled.selection.layers
                       if len(x.forms) > number and (m := re.search(r"n_[xyz](\d+)", x.name))}  # fmt: skip
            left = [sample for at, sample in enumerate(left) if at in choices]


def count(compiled: Compiled, board: Board, folder: Path, measured: Measured) -> None:
    """Count one compiled model."""
    write_bundle(compiled, folder)
    info = load_bundle(folder)
    flags = ("-fno-inline-functions-called-once",)  # so that each function has a size
    counts = count_layers(info, board, random_inputs(info), folder, flags)
    program, opt = strip_markers(compiled.program), compiled.options.opt
    literal = literal_kernels(program, opt)
    calls = [layer.call.partition("(")[0] for layer in compiled.bundle.layers]
    path = folder / "model.obj" / f"{info.name}.o"
    own, uses = function_sizes(path, board, set(calls), measured)
    for instr, insns, fn in zip(program.instrs, counts, calls, strict=True):
        mode = "size" if opt == "size" else "literal" if family(instr) in literal else "shared"
        key = key_of(instr)
        sample = features(instr), insns
        if sample not in measured.insns[key, mode]:
            measured.insns[key, mode].append(sample)
        if fn in own:
            measured.text[key, mode].add((lines_of(instr, family(instr) in literal), own[fn]))
            measured.uses[key] |= uses[fn]
    if opt == "balanced":  # once more without profiling: what the calls take
        build_bundle(info, board, folder, link=False, extra_flags=flags)
        measured.base.append((len(calls), bytes_besides(path, set(calls))))


def lines_of(instr: Instr, literal: bool) -> int:
    """Return the lines of the function of an instruction."""
    return count_lines(render_kernel(instr, "fn", None if literal else args_struct(instr, "args_t")))


def function_sizes(
    path: Path, board: Board, names: set[str], measured: Measured
) -> tuple[dict[str, int], dict[str, set[str]]]:
    """Return bytes of the kernels' functions in the model's object, and the runtime's functions that each calls."""
    own: dict[str, int] = defaultdict(int)
    for fn, size in functions_in(path):
        owner = owner_of(fn, names)
        if owner is not None:
            own[owner] += size
        elif fn.startswith("glow_"):
            measured.functions[fn] = max(measured.functions.get(fn, 0), size)
    calls = call_graph(path, board)
    uses = {}
    for name in names:
        seen: set[str] = set()
        todo = [fn for fn in calls if owner_of(fn, {name}) is not None]
        while todo:
            new = calls.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        uses[name] = {fn for fn in seen if fn.startswith("glow_")}
    return dict(own), uses


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


def fit(samples: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, Any]:
    """Return the coefficients of few features, chosen one after another, and the error of samples left out."""
    insns = np.array([n for _, n in samples], float)
    columns = {f: np.array([v.get(f, 0.0) for v, _ in samples]) for f in FEATURES}
    usable = [f for f in FEATURES if columns[f].any()]

    def solve(names: Sequence[str], rows: np.ndarray) -> np.ndarray:
        matrix = np.stack([columns[f][rows] / insns[rows] for f in names], axis=1)
        scale = np.linalg.norm(matrix, axis=0) + 1e-300
        return nnls(matrix / scale, np.ones(rows.sum())) / scale

    fold = np.arange(len(insns)) % min(len(insns), FOLDS)

    def errors(names: Sequence[str]) -> np.ndarray:
        found = np.zeros(len(insns))
        for i in range(int(fold.max()) + 1):
            out = fold == i
            x = solve(names, ~out if len(insns) > 1 else out)
            found[out] = sum(c * columns[f][out] for c, f in zip(x, names, strict=True)) / insns[out] - 1
        return found

    def rms(names: Sequence[str]) -> float:
        return float(np.sqrt(np.mean(errors(names) ** 2)))

    def grow(chosen: list[str]) -> tuple[float, list[str]]:
        best = rms(chosen)
        while len(chosen) < min(MOST_TERMS, len(samples)) and best > GOOD:
            options = [(rms([*chosen, f]), i, f) for i, f in enumerate(usable) if f not in chosen]
            error, _, name = min(options, default=(np.inf, 0, ""))
            if error > 0.97 * best:
                break
            best, chosen = error, [*chosen, name]
        return best, chosen

    starts = sorted((rms([f]), i, f) for i, f in enumerate(usable))[:2]
    best, chosen = min(grow([f]) for _, _, f in starts)
    x = solve(chosen, np.ones(len(insns), bool))
    terms = {f: float(f"{c:.5g}") for f, c in zip(chosen, x, strict=True) if c > 0}
    return {"insns": terms, "error": round(best, 4), "samples": len(samples)}


def fit_text(points: set[tuple[int, int]]) -> list[float]:
    """Return (a, b) of bytes = a + b x lines, both at least 0."""
    if not points:
        return [0.0, 12.0]
    lines, size = (np.array(column, float) for column in zip(*sorted(points), strict=True))
    a, b = nnls(np.stack([np.ones(len(lines)), lines], axis=1), size)
    return [round(float(a), 1), round(float(b), 3)]


def table_of(board: Board, measured: Measured) -> dict[str, Any]:
    """Return the file's contents."""
    kernels: dict[str, Any] = {}
    for key, mode in sorted(measured.insns):
        entry = kernels.setdefault(key, {"modes": {}, "uses": sorted(measured.uses[key])})
        entry["modes"][mode] = fit(measured.insns[key, mode]) | {"text": fit_text(measured.text[key, mode])}
    base = nnls(np.array([(1.0, n) for n, _ in measured.base]), np.array([b for _, b in measured.base], float))
    compiler = subprocess.run([str(find_tool(board.cpu.cc)), "--version"], capture_output=True, text=True, check=True)
    return {
        "cpu": board.cpu.name, "family": board.cpu.family, "features": sorted(board.cpu.features), "board": board.name,
        "compiler": compiler.stdout.splitlines()[0], "base": [round(float(v), 1) for v in base],
        "functions": dict(sorted(measured.functions.items())), "kernels": kernels,
    }  # fmt: skip


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
            terms = " ".join(f"{f}*{c:g}" for f, c in found["insns"].items())
            print(f"  {key:34} {mode:8} {100 * found['error']:6.1f} % of {found['samples']:2}  {terms}")


def main() -> int:
    """Measure, fit and write; exit status 1 when a board cannot be measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--boards", nargs="+", default=BOARDS, metavar="BOARD[/CPU]")
    parser.add_argument("--kinds", nargs="+", help="only these kinds of layers; the file is not written")
    args = parser.parse_args()
    wanted = [s for s in SAMPLES if not args.kinds or s.kind in args.kinds]
    for name in args.boards:
        board_name, _, cpu = name.partition("/")
        begin = time.perf_counter()
        try:
            board = load_board(board_name, cpu or None)
            rams = [r.size_bytes for r in board.memory.values() if r.kind == "ram"]
            measured = Measured()
            two_forms = board.cpu.has("dsp") and not board.cpu.has("mve")  # of packed weights
            samples = [s for s in wanted if two_forms or not s.wide]
            for group in groups(samples, min([*(n // 2 for n in rams), 1 << 20]), LAYERS_PER_MODEL):
                measure(group, board, measured)
        except GlowcError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return 1
        seconds = time.perf_counter() - begin
        table = table_of(board, measured)
        show(table)
        print(f"  {seconds:.0f} s of measuring, {time.perf_counter() - begin - seconds:.0f} s of fitting", flush=True)
        if not args.kinds:
            write(table, cost_file(board.cpu.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
