"""Tokens a second of the Llama of examples/llama, one token at a time, on one core of a chip: modeled cycles.

    scripts/bench_llama.py
    scripts/bench_llama.py --chip rp2350 --position 127 --layers

`--position` says how many rows the caches have before the token; attention takes longer the more there are. "In RAM":
the same without waiting for constants, as where the firmware has them in RAM (STEP_WEIGHTS_ATTR).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

from glowc.board import load_board, load_chip
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.graph.graph import State
from glowc.machine.cycles.measure import Measured, measure_cycles
from glowc.machine.execute import BundleInfo, load_bundle, random_inputs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "llama"))
from make_model import Sizes, llama  # type: ignore[import-not-found]

BOARDS = {"rp2350": "rpi-pico2", "alif-e7": "alif-e7"}
COUNTER = "glowc.passes.time.growing._counter"


def compiled(model: Path, board: str, position: int, folder: Path) -> BundleInfo:
    """Compile a step that begins at a position."""
    first = np.full(1, position, np.int32)
    symbols = {"sequence": 1, "past": Sizes().most - 1}
    options = CompileOptions(name="step", states={"past_*": "present_*"}, symbols=symbols)
    with mock.patch(COUNTER, lambda name: State(name, f"{name}.next", first)):
        write_bundle(compile_model(model, load_board(board), options), folder)
    return load_bundle(folder)


def kernels(info: BundleInfo, found: Measured) -> Counter[str]:
    """Return the cycles of each kernel."""
    cycles = Counter[str]()
    for layer, count in zip(info.report["layers"], found.layers, strict=True):
        cycles[layer["kernel"]] += round(count.cycles)
    return cycles


def main() -> None:
    """Print a line for each chip and position."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", nargs="+", choices=list(BOARDS), default=list(BOARDS))
    parser.add_argument("--position", type=int, nargs="+", default=[0, 64, 255])
    parser.add_argument("--layers", action="store_true", help="cycles of each kernel")
    args = parser.parse_args()
    table = Table("chip", "position", "cycles", "tokens/s", "in RAM", "arena", "constants")
    with tempfile.TemporaryDirectory(prefix="glowc-llama-") as work:
        model = Path(work) / "llama.onnx"
        onnx.save(llama(Sizes()), model)
        for name in args.chip:
            chip = load_chip(name)
            for position in args.position:
                info = compiled(model, BOARDS[name], position, Path(work) / f"{name}-{position}")
                found = measure_cycles(info, chip, random_inputs(info))
                cycles, report = found.whole.cycles, info.report
                speeds = [f"{chip.clock_mhz * 1e6 / n:.1f}" for n in (cycles, cycles - found.whole.data)]
                sizes = (f"{report['arena_bytes']:,}", f"{report['weights_bytes']:,}")
                table.add_row(name, str(position), f"{cycles:,.0f}", *speeds, *sizes)
                if args.layers:
                    for kernel, taken in kernels(info, found).most_common(8):
                        table.add_row("", kernel, f"{taken:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
