#!/usr/bin/env python3
"""Measure whole models on emulated boards and compare with the alternatives. Runs as `make bench`.

    scripts/bench.py
    scripts/bench.py --models mlperf_kws_dscnn --boards mps2-an386 linux-aarch64/cortex-a76
    scripts/bench.py --models examples/digits/digits.onnx --opt speed
    scripts/bench.py --boards --chips stm32l4r5 alif-e7 --portable --models $(ls ../shared/models)

Prints executed instructions (exact, counted by QEMU), arena, code and stack of each model on each board, with the
ratio to TensorFlow Lite Micro with CMSIS-NN (Cortex-M) or XNNPACK (Cortex-A) where ../shared/reference/baselines.json
knows it: below 1 is better. Then modelled cycles and milliseconds on chips (`--chips`), beside the best that others
have published for them (scripts/published.toml). Writes everything, per layer, to build/bench.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from glowc.board import Board, Chip, load_board, load_chip, machine_of
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.cycles.measure import add_cycles
from glowc.machine.execute import Port, bench, load_bundle

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT.parent / "shared" / "models"
BASELINES = ROOT.parent / "shared" / "reference" / "baselines.json"
MLPERF = ("mlperf_ic_resnet8", "mlperf_kws_dscnn", "mlperf_vww_mobilenetv1", "mlperf_ad_autoencoder")
PUBLISHED = ROOT / "scripts" / "published.toml"
CHIPS = ("stm32l4r5", "stm32u575", "stm32h7a3", "alif-e7", "rpi-zero2", "rpi5")
PORTABLE_SHARE = 0.01
BOARDS = ("mps2-an386", "mps3-an547", "linux-aarch64/cortex-a53", "linux-aarch64/cortex-a76")
# Where the baselines have the numbers of a CPU: (rival, its name of the CPU).
RIVALS = {
    "cortex-m3": ("tflm_cmsis_nn", "cortex-m3"),
    "cortex-m4": ("tflm_cmsis_nn", "cortex-m4"),
    "cortex-m7": ("tflm_cmsis_nn", "cortex-m7"),
    "cortex-m33": ("tflm_cmsis_nn", "cortex-m33"),
    "cortex-m55": ("tflm_cmsis_nn", "cortex-m55"),
    "cortex-a53": ("xnnpack", "cortex-a53"),
    "cortex-a76": ("xnnpack", "cortex-a76"),
    "armv8.6-i8mm": ("xnnpack", "armv8-i8mm"),
}
# Our measure -> the rival's.
COMPARED = {"insns": "insns", "arena_bytes": "arena_bytes", "text_bytes": "code_bytes", "stack_bytes": "stack_bytes"}


def model_file(text: str) -> Path:
    """Return the file of a model: a path, or a folder's name in ../shared/models."""
    path = Path(text)
    return path if path.suffix == ".onnx" else MODELS / text / "model.onnx"


def target(text: str) -> Board:
    """Return the board of `name` or `name/cpu`."""
    name, _, cpu = text.partition("/")
    return load_board(name, cpu or None)


def first_sample(path: Path, ports: Sequence[Port]) -> Mapping[str, np.ndarray] | None:
    """Return the first of the samples beside a model, by the names of its inputs, or by input_0, input_1 ..."""
    samples = path.with_name("inputs.npz")
    if not samples.is_file():
        return None
    with np.load(samples) as data:
        names = [p.name if p.name in data.files else f"input_{i}" for i, p in enumerate(ports)]
        return {p.name: p.to_bundle(data[name][:1]) for p, name in zip(ports, names, strict=True)}


def measure(name: str, path: Path, board: Board, opt: str, chip: Chip | None = None) -> dict[str, Any]:
    """Return the report of one model on one board, with the cycles on a chip."""
    start = time.perf_counter()
    compiled = compile_model(path, board, CompileOptions(name=name, opt=opt))
    compile_s = round(time.perf_counter() - start, 3)
    with tempfile.TemporaryDirectory(prefix="glowc-bench-") as folder:
        write_bundle(compiled, Path(folder))
        info = load_bundle(Path(folder))
        inputs = first_sample(path, info.inputs)
        report = bench(info, board, inputs)
        if chip is not None:
            add_cycles(report, info, board, chip, inputs, required=True)
    return {**report, "compile_s": compile_s}


def rival(baselines: Mapping[str, Any], model: str, cpu: str) -> dict[str, int]:
    """Return what the alternative needs, by our names; empty where it is not known."""
    name, its_cpu = RIVALS.get(cpu, ("", ""))
    values = baselines.get(model, {}).get(name, {}).get(its_cpu, {})
    return {ours: values[theirs] for ours, theirs in COMPARED.items() if values.get(theirs)}


def cell(value: int | None, other: int | None) -> str:
    """Return a number and its ratio to the alternative's."""
    if value is None:
        return "-"
    return f"{value:,}" + (f" [dim]{value / other:5.2f}[/]" if other else "")


def show(results: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print one table: numbers, and after each the ratio to the alternative."""
    table = Table("model", "board", "cpu", *(column.removesuffix("_bytes") for column in COMPARED), "insns/MAC")
    for column in table.columns[3:]:
        column.justify = "right"
    for result in results:
        report, other = result["report"], result["rival"]
        per_mac = f"{report['insns'] / report['macs']:.2f}" if report["insns"] and report["macs"] else "-"
        cells = (cell(report[key], other.get(key)) for key in COMPARED)
        table.add_row(result["model"], report["board"], report["run_cpu"], *cells, per_mac)
    console.print(table)
    console.print("after a number: its ratio to TFLM + CMSIS-NN (Cortex-M) or XNNPACK (Cortex-A); below 1 is better.")
    console.print("text is the code of the bundle; that of TFLM contains its interpreter and runtime")


def show_chips(results: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print modelled milliseconds on chips beside the published ones."""
    published = tomllib.loads(PUBLISHED.read_text())
    table = Table("model", "chip", "ms", "published ms", "engine", "M cycles", "without waits", "constants read")
    for column in (2, 3, 5, 6, 7):
        table.columns[column].justify = "right"
    for result in results:
        report, best = result["report"], published.get(result["report"]["chip"]["name"], {}).get(result["model"])
        waits = sum(report["cycles_by_cause"][cause] for cause in ("fetch", "data"))
        ratio = f" [dim]{report['ms'] / best['ms']:5.2f}[/]" if best else ""
        times = report["weights_read_bytes"] / report["weights_bytes"] if report["weights_bytes"] else 0
        table.add_row(
            result["model"], report["chip"]["name"], f"{report['ms']:.2f}{ratio}", str(best["ms"]) if best else "-",
            best["engine"] if best else "-", f"{report['cycles'] / 1e6:.3f}", f"{(report['cycles'] - waits) / 1e6:.3f}",
            f"{times:.1f} x",
        )  # fmt: skip
    console.print(table)
    console.print("ms are modeled from what ran under QEMU (docs/CYCLES.md); published ones are measured on the chip.")


def show_portable(results: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the layers that run portable C and take more than `PORTABLE_SHARE` of the cycles of their model."""
    table = Table("model", "chip", "layer", "kernel", "share")
    for result in results:
        report = result["report"]
        for layer in report["layers"]:
            share = layer["cycles"] / report["cycles"]
            if layer["kernel"].endswith("__ref") and share > PORTABLE_SHARE:
                chip = report["chip"]["name"]
                table.add_row(result["model"], chip, layer["name"], layer["kernel"], f"{100 * share:.1f} %")
    console.print(table)
    console.print(f"layers in portable C with more than {100 * PORTABLE_SHARE:.0f} % of their model's cycles")


def runs(names: Sequence[str], boards: Sequence[str], chips: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (model, board, "") and (model, "", chip) of everything that is measured."""
    for name in names:
        yield from ((name, board, "") for board in boards)
        yield from ((name, "", chip) for chip in chips)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure models on boards against the alternatives.")
    parser.add_argument("--models", nargs="+", default=MLPERF, help="names in ../shared/models, or .onnx files")
    parser.add_argument("--boards", nargs="*", default=BOARDS, help="names from `glowc boards`, or name/cpu")
    parser.add_argument("--chips", nargs="*", default=CHIPS, help="names from `glowc chips`")
    parser.add_argument("--opt", choices=("size", "balanced", "speed"), default="balanced")
    parser.add_argument("--portable", action="store_true", help="list the layers in portable C too")
    parser.add_argument("--output", "-o", type=Path, default=ROOT / "build" / "bench.json")
    options = parser.parse_args()
    baselines = json.loads(BASELINES.read_text())["models"] if BASELINES.is_file() else {}
    console, results, failed = Console(width=None if sys.stdout.isatty() else 140), [], 0
    for name, board_name, chip_name in runs(options.models, options.boards, options.chips):
        path = model_file(name)
        if not path.is_file():
            print(f"bench: skipped {name}: no file {path}", file=sys.stderr)
            continue
        label = path.stem if path.suffix == ".onnx" and path.stem != "model" else path.parent.name
        try:
            chip = load_chip(chip_name) if chip_name else None
            board = machine_of(chip) if chip is not None else target(board_name)
            report = measure(label, path, board, options.opt, chip)
        except GlowcError as error:
            print(f"bench: {label} on {chip_name or board_name}: {error}", file=sys.stderr)
            failed += 1
            continue
        results.append({"model": label, "report": report, "rival": rival(baselines, label, board.cpu.name)})
    on_chips = [result for result in results if "chip" in result["report"]]
    on_boards = [result for result in results if "chip" not in result["report"]]
    if on_boards:
        show(on_boards, console)
    if on_chips:
        show_chips(on_chips, console)
    if on_chips and options.portable:
        show_portable(on_chips, console)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    console.print(f"details per layer: {options.output}")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
