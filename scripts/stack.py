"""Compare the computed worst case of the stack with the painted mark, all sample models on four cores: `make stack`.

The bound must never lie below the mark and at most a quarter above it. A model that a board has no room for is left
out. `--board BOARD` and MODEL... choose others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from glowc.board import Board, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import BoardError, GlowcError, ToolError
from glowc.machine.execute import bundle_entry, execute, load_bundle, random_inputs
from glowc.machine.stack import stack_bounds

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
BOARDS = ("microbit", "mps2-an385", "mps2-an386", "mps3-an547")
ALLOWED = 1.25
SAMPLES = 16  # some paths are taken for few values only


def measure(path: Path, board: Board) -> tuple[int, int]:
    """Return (painted mark, bound) of the entry point that the sample-feeding program calls, in bytes."""
    with tempfile.TemporaryDirectory(prefix="glowc-stack-") as folder:
        bundle, work = Path(folder) / "bundle", Path(folder) / "work"
        work.mkdir()
        write_bundle(compile_model(path, board, CompileOptions()), bundle)
        info = load_bundle(bundle)
        done = execute(info, board, random_inputs(info, SAMPLES), keep=work)
        entry = bundle_entry(info)
        return done.stack_bytes, stack_bounds(done.elf.path, board, (entry,))[entry]


def rows(models: Iterable[Path], boards: Iterable[Board], table: Table) -> tuple[int, int]:
    """Fill the table; return how many pairs were measured and how many break the rule."""
    measured = wrong = 0
    for path in models:
        name = path.parent.name if path.name == "model.onnx" else path.stem
        for board in boards:
            try:
                mark, bound = measure(path, board)
            except (BoardError, ToolError) as error:
                table.add_row(name, board.name, "-", "-", "-", error.message.splitlines()[0])
                continue
            holds = mark <= bound <= ALLOWED * mark
            measured, wrong = measured + 1, wrong + (not holds)
            verdict = "" if holds else "BELOW THE MARK" if bound < mark else "TOO FAR ABOVE"
            table.add_row(name, board.name, f"{mark:,}", f"{bound:,}", f"{bound / mark:.2f}", verdict)
    return measured, wrong


def main() -> int:
    """Print the table; 1 when a bound lies below its mark or too far above it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="an .onnx file")
    parser.add_argument("--board", action="append", help=f"default: {' '.join(BOARDS)}")
    args = parser.parse_args()
    table = Table(title="stack, bytes")
    for column in ("model", "board", "painted", "bound", "ratio", ""):
        table.add_column(column, justify="right" if column in ("painted", "bound", "ratio") else "left")
    try:
        boards = [load_board(name) for name in args.board or BOARDS]
        measured, wrong = rows(args.models or sorted(MODELS.glob("*/model.onnx")), boards, table)
    except GlowcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    Console(width=140).print(table)
    print(f"{measured} measured, {wrong} outside of [mark, {ALLOWED} * mark]")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
