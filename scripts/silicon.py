#!/usr/bin/env python3
"""Compare the cycles that an instruction takes in the model with those counted on silicon (scripts/silicon.toml).

    scripts/silicon.py

The layers are the same: the first convolution and the first depthwise layer of the keyword model of MLPerf Tiny. The
kernels are not. Prints both and how far the model is off; exit status 1 when that is more than the core's error
(glowc/machine/cycles/pipeline.py).
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

from bench import measure
from known_nets import Net

from glowc.board import load_board, load_chip
from glowc.machine.cycles.pipeline import TRUST

DATA = Path(__file__).with_suffix(".toml")


def keyword_layers(path: Path) -> None:
    """Save the first convolution and the first depthwise layer of the keyword model of MLPerf Tiny."""
    net = Net("keyword", 1, 1, 49, 10)
    net.layer("Conv", (64, 1, 10, 4), strides=[2, 2], pads=[4, 1, 5, 1])
    net.layer("Conv", (64, 1, 3, 3), pads=[1, 1, 1, 1], group=64)
    net.save(path)


def main() -> int:
    """Print a row for each layer."""
    worst = 0.0
    for name, data in tomllib.loads(DATA.read_text()).items():
        chip = load_chip(data["like"])
        with tempfile.TemporaryDirectory(prefix="glowc-silicon-") as folder:
            model = Path(folder) / "keyword.onnx"
            keyword_layers(model)
            report = measure("keyword", model, load_board(chip.machine, chip.cpu), "balanced", chip)
        for layer, (kind, counted) in zip(report["layers"], data["layers"].items(), strict=False):  # a copy is last
            modeled, real = layer["cycles"] / layer["insns"], counted["cycles"] / counted["insns"]
            off = modeled / real - 1
            print(f"{name} {kind}: {real:.3f} cycles an instruction, modeled {modeled:.3f} ({100 * off:+.1f} %)")
            worst = max(worst, abs(off) - (TRUST[chip.core].percent or 0) / 100)
    return 1 if worst > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
