"""Instructions of an inference with SVE2, for each vector length, compared with those of A64 with dot products.

MODEL is a file, or a name of scripts/known_nets.py. QEMU counts; `make bench-wide` takes ResNet-50.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from known_nets import model_of

from glowc.board import Board, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle, random_inputs

_BOARD = "linux-aarch64"


def instructions_of(model: Path, board: Board, work: Path, shapes: Mapping[str, tuple[int, ...]] | None = None) -> int:
    """Return the instructions of one inference; `shapes` are those of inputs that the file leaves open."""
    write_bundle(compile_model(model, board, CompileOptions(name="net", input_shapes=dict(shapes or {}))), work)
    info = load_bundle(work)
    marks = execute(info, board, random_inputs(info, 1), marks=True).marks
    return marks[3] - marks[2]


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--bits", type=int, nargs="+", default=[128, 256, 512], help="of a vector")
    args = parser.parse_args()
    plain, wide = load_board(_BOARD, "cortex-a76"), load_board(_BOARD, "armv9-sve2")
    for name in args.models:
        with tempfile.TemporaryDirectory(prefix="glowc-wide-") as folder:
            model, title = model_of(name, Path(folder))
            dot = instructions_of(model, plain, Path(folder) / "dot")
            line = f"{title}: dot {dot / 1e6:.2f} M instructions"
            for bits in args.bits:
                emulated = f"max,sve-default-vector-length={bits // 8}"
                board = replace(wide, cpu=replace(wide.cpu, qemu_cpu=emulated))
                line += (
                    f", SVE2 of {bits} bits {instructions_of(model, board, Path(folder) / str(bits)) / dot:.3f} of that"
                )
            print(line, flush=True)


if __name__ == "__main__":
    main()
