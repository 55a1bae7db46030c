#!/usr/bin/env python3
"""Measure the MLPerf Tiny .tflite files beside their ONNX twins, and a wake word. Runs as `make tflite-bench`.

    scripts/tflite_bench.py
    scripts/tflite_bench.py --boards mps2-an386 --pairs kws vww --layers

Prints executed instructions (exact, counted by QEMU) and arena of each model from both formats on each board, with the
ratio TFLite to ONNX; then those of a step of the wake word, with the instructions of a multiply-accumulate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from bench import MODELS, ROOT, measure, target
from rich.console import Console
from rich.table import Table

TFLITE = ROOT.parent / "shared" / "tflite"
TWINS = {
    "kws": ("mlperf_kws_int8", "mlperf_kws_dscnn"),
    "ic": ("mlperf_ic_int8", "mlperf_ic_resnet8"),
    "vww": ("mlperf_vww_int8", "mlperf_vww_mobilenetv1"),
    "ad": ("mlperf_ad_int8", "mlperf_ad_autoencoder"),
}
WAKE_WORD = "microwakeword_okay_nabu"
BOARDS = ("mps2-an386", "mps3-an547", "linux-aarch64/cortex-a53")

Report = dict[str, Any]


def compare(pairs: Sequence[str], boards: Sequence[str], opt: str, console: Console) -> list[Report]:
    """Print a row per model and board; return the reports of the .tflite files."""
    table = Table("model", "board", "insns", "of ONNX", "ratio", "arena", "of ONNX", "ratio")
    reports = []
    for pair in pairs:
        tflite, onnx = TWINS[pair]
        for name in boards:
            board = target(name)
            ours = measure(tflite, TFLITE / tflite / "model.tflite", board, opt)
            twin = measure(onnx, MODELS / onnx / "model.onnx", board, opt)
            cells = [text for key in ("insns", "arena_bytes") for text in against(ours[key], twin[key])]
            table.add_row(pair, name, *cells)
            reports.append(ours)
    right(table, 2)
    console.print(table)
    return reports


def against(ours: int, twins: int) -> tuple[str, str, str]:
    """Return both numbers and their ratio."""
    return f"{ours:,}", f"{twins:,}", f"{ours / twins:.3f}"


def steps(boards: Sequence[str], opt: str, console: Console) -> list[Report]:
    """Print what a step of the wake word takes on each board; return the reports."""
    table = Table("model", "board", "insns a step", "MACs", "insns/MAC", "arena and state", "of it state")
    reports = []
    for name in boards:
        report = measure(WAKE_WORD, TFLITE / WAKE_WORD / "model.tflite", target(name), opt)
        per_mac = f"{report['insns'] / report['macs']:.2f}"
        state_bytes = sum(state["size_bytes"] for state in report["states"])
        numbers = (report["insns"], report["macs"], report["arena_bytes"], state_bytes)
        insns, macs, arena, state = (f"{number:,}" for number in numbers)
        table.add_row(WAKE_WORD, name, insns, macs, per_mac, arena, state)
        reports.append(report)
    right(table, 2)
    console.print(table)
    return reports


def right(table: Table, first: int) -> None:
    """Align the columns from `first` on to the right."""
    for column in table.columns[first:]:
        column.justify = "right"


def show_layers(report: Report, console: Console) -> None:
    """Print the instructions of every layer of a model."""
    table = Table("#", "kernel", "insns", "MACs", title=f"{report['model']} on {report['board']}")
    for number, layer in enumerate(report["layers"]):
        table.add_row(str(number), layer["kernel"], f"{layer['insns']:,}", f"{layer['macs']:,}")
    right(table, 2)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure .tflite files beside their ONNX twins.")
    parser.add_argument("--pairs", nargs="*", choices=sorted(TWINS), default=list(TWINS), help="models of MLPerf Tiny")
    parser.add_argument("--boards", nargs="+", default=BOARDS, help="names from `glowc boards`, or name/cpu")
    parser.add_argument("--opt", choices=("size", "balanced", "speed"), default="balanced")
    parser.add_argument("--layers", action="store_true", help="the layers of the .tflite files too")
    options = parser.parse_args()
    if not TFLITE.is_dir():
        print(f"tflite-bench: no folder {TFLITE}", file=sys.stderr)
        return 1
    console = Console(width=None if sys.stdout.isatty() else 140)
    reports = compare(options.pairs, options.boards, options.opt, console) if options.pairs else []
    reports += steps(options.boards, options.opt, console)
    for report in reports if options.layers else ():
        show_layers(report, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
