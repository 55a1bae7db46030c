#!/usr/bin/env python3
"""Cycles of small networks of many kinds on chips, and layers far from their bound: `make bench-small`.

    scripts/bench_small.py
    scripts/bench_small.py mcunet ../shared/tflite/tflm_person_detect_int8/model.tflite --chips stm32l4r5
    scripts/bench_small.py --against ../old

Networks are those of scripts/small_nets.py, or files. Printed are the cycles of each on each chip, and layers of more
than 3 % of it: cycles, cycles a multiply-accumulate, and how many times the bound they are, which is what the best
inner loop known takes, and the best ending. `--against` is another checkout of glowc: the same files go through it,
and the geometric mean of the ratios is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from math import exp, prod
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from small_nets import NETS, file_of

ROOT = Path(__file__).resolve().parent.parent
SHARE, FAR = 0.03, 2.5
BOUNDS = {
    "stm32l4r5": {"conv": 1.0, "dwconv": 1.33, "fc": 0.95, "float": 2.75, "result": 8.0},
    "alif-e7": {"conv": 0.2, "dwconv": 0.7, "fc": 0.2, "float": 0.5, "result": 1.5},
    "rpi-zero2": {"conv": 0.2, "dwconv": 0.4, "fc": 0.25, "float": 0.5, "result": 2.0},
}
"""Cycles a multiply-accumulate by kind of layer, and cycles a result besides; int16 takes twice as many."""


def bound(chip: str, kernel: str, macs: int, results: int) -> float:
    """Return the fewest cycles that a layer of this kind is known to take."""
    each, kind = BOUNDS[chip], kernel.partition("_")[0]
    mac = each["float"] if "_f32" in kernel else each.get(kind, each["fc"]) * (2 if "_s16" in kernel else 1)
    return mac * macs + each["result"] * results


def measured(path: Path, chip: str, checkout: Path) -> dict[str, Any] | None:
    """Return the report of a network on a chip by the glowc of a checkout, or nothing where it fails."""
    argv = [sys.executable, "-m", "glowc", "bench", str(path.resolve()), "--chip", chip, "--json"]
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
    done = subprocess.run(argv, cwd=checkout, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"{path.stem} on {chip}: {done.stderr.strip()}", file=sys.stderr)
        return None
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def lines(report: Mapping[str, Any], chip: str, *, only_far: bool) -> Iterator[str]:
    """Yield a line for each layer that matters."""
    elements = {tensor["name"]: prod(tensor["shape"]) for tensor in report["tensors"]}
    for layer in report["layers"]:
        cycles, kernel = layer["cycles"], layer["kernel"]
        times = cycles / bound(chip, kernel, layer["macs"], elements.get(layer["writes"][0], 1))
        if cycles < SHARE * report["cycles"] or (only_far and times <= FAR):
            continue
        each = f"{cycles / layer['macs']:6.2f} a MAC" if layer["macs"] else " " * 12
        share = cycles / report["cycles"]
        yield f"    {share:4.0%} {cycles:>11,.0f} {each} {times:5.1f} x bound  {kernel:28} {layer['name'][:50]}"


def main() -> None:
    """Print networks, their layers, and the mean of ratios by chip."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*NETS], help=f"files, or of {', '.join(NETS)} (default: these)")
    parser.add_argument("--chips", nargs="+", default=[*BOUNDS], choices=[*BOUNDS])
    parser.add_argument("--far", action="store_true", help=f"only layers of more than {FAR} times their bound")
    parser.add_argument("--against", type=Path, help="another checkout of glowc")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="glowc-small-") as folder:
        files = [file_of(name, Path(folder)) for name in args.models]
        for chip in args.chips:
            ratios = []
            for path, name in files:
                if (report := measured(path, chip, ROOT)) is None:
                    continue
                old = measured(path, chip, args.against) if args.against else None
                ratios += [report["cycles"] / old["cycles"]] if old else []
                compared = f", {ratios[-1]:.3f} times the other's" if old else ""
                print(f"{chip:10} {name:18} {report['cycles']:>13,.0f} cycles{compared}", flush=True)
                print("\n".join(lines(report, chip, only_far=args.far)))
            if ratios:
                print(f"{chip}: geometric mean {exp(mean(np.log(ratios))):.3f} of {len(ratios)} networks")


if __name__ == "__main__":
    main()
