"""Known networks: time on this machine compared with onnxruntime, and instructions on Cortex-A53 and A76.

    scripts/bench_opponents.py
    scripts/bench_opponents.py model.onnx --shape x=1x3x48x320 --threads 1

MODEL is a file, or a name of scripts/known_nets.py. `make bench-opponents` makes the table of docs/OPPONENTS.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench_host import Shapes, measure
from bench_wide import instructions_of
from known_nets import model_of

from glowc.board import load_board

_REAL = ("mobilenet_v2", "resnet50", "efficientnet_lite0", "bert_mini")
_MODELS = (*_REAL, *(f"{name}_fp32" for name in _REAL))
_CPUS = ("cortex-a53", "cortex-a76")


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.partition("=")
    return name, tuple(int(size) for size in sizes.split("x"))


def line(model: Path, threads: list[int], most: int, shapes: Shapes, work: Path) -> str:
    """Return what a model takes, as a row of a table."""
    cells = []
    for count in threads:
        own, theirs = measure(model, count, most, work / str(count), shapes)
        cells.append(f"{own * 1e3:.2f} / {theirs * 1e3:.2f} ms")
    for cpu in _CPUS:
        insns = instructions_of(model, load_board("linux-aarch64", cpu), work / cpu, shapes)
        cells.append(f"{insns / 1e6:.1f} M")
    return " | ".join(cells)


def main() -> None:
    """Print a row for each model: glowc / onnxruntime by number of threads, instructions by CPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", default=_MODELS)
    parser.add_argument("--shape", nargs="+", type=_shape, default=[], metavar="INPUT=1x3x48x320")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--most", type=int, default=3, help="level of the instruction set: 1 is AVX2 (glow_wide.h)")
    args = parser.parse_args()
    for name in args.models:
        with tempfile.TemporaryDirectory(prefix="glowc-opponents-") as folder:
            model, title = model_of(name, Path(folder))
            row = line(model, args.threads, args.most, dict(args.shape), Path(folder))
            print(f"| {title} | {row} |", flush=True)


if __name__ == "__main__":
    main()
