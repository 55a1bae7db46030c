#!/usr/bin/env python3
"""List layers that matter and run on the reference kernels: `make ref-layers`.

    scripts/ref_layers.py
    scripts/ref_layers.py --boards mps2-an386 --share 0.5 MODEL...

Each model of ../shared/models is compiled for each board; a layer is listed that runs on a `__ref` kernel and takes
more than one percent of the cycles that report.json predicts. Nothing runs. Ends with 1 when there is one.
MODEL: a folder's name in ../shared/models, or an .onnx file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench import MODELS, model_file, target

from glowc.board import Board
from glowc.compiler.pipeline import compile_model
from glowc.compiler.report import LayerReport
from glowc.errors import GlowcError

BOARDS = ("mps2-an386", "mps2-an500", "mps3-an547", "linux-aarch64")
REF = "__ref"
SHARE = 1.0  # percent of a model's cycles


@dataclass(frozen=True)
class RefLayer:
    """A layer on a reference kernel, and its part of its model's cycles."""

    model: str
    layer: LayerReport
    share: float

    def line(self) -> str:
        """Return the layer as it is printed."""
        return f"{100 * self.share:6.1f} %  {self.layer['kernel']:<28} {self.model}  {self.layer['name'][:50]}"


def ref_layers(model: str, layers: Sequence[LayerReport], least: float) -> Iterator[RefLayer]:
    """Yield the layers on reference kernels that take more than `least` of all predicted cycles."""
    cycles = max(1, sum(layer["cycles_estimate"] for layer in layers))
    for layer in layers:
        share = layer["cycles_estimate"] / cycles
        if REF in layer["kernel"] and share > least:
            yield RefLayer(model, layer, share)


def show(board: Board, models: Sequence[str], least: float) -> int:
    """Print the layers of all models on a board, the largest shares first; return how many there are."""
    found: list[RefLayer] = []
    for model in models:
        try:
            layers = compile_model(model_file(model), board).report["layers"]
        except GlowcError as error:
            print(f"  {model}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        found += ref_layers(model, layers, least)
    print(f"{board.name}, {board.cpu.name}: {len(found)} layers on reference kernels above {100 * least:g} %")
    for layer in sorted(found, key=lambda x: -x.share):
        print(layer.line())
    sys.stdout.flush()
    return len(found)


def main() -> int:
    """Print the layers of all boards."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", default=sorted(path.parent.name for path in MODELS.glob("*/model.onnx")))
    parser.add_argument("--boards", nargs="+", default=BOARDS, metavar="BOARD", help="name, or name/cpu")
    parser.add_argument("--share", type=float, default=SHARE, help="percent of a model's cycles (default: %(default)s)")
    args = parser.parse_args()
    return 1 if sum(show(target(name), args.models, args.share / 100) for name in args.boards) else 0


if __name__ == "__main__":
    sys.exit(main())
