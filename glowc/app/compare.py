"""The command `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glowc.app.options import BoardOpt, CpuOpt, JsonOpt, compiles
from glowc.app.terminal import progress_line, say_json
from glowc.errors import MISMATCH

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions


@compiles
def compare(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="a .tflite file", show_default=False)],
    options: CompileOptions,
    board: BoardOpt = "mps2-an386",
    cpu: CpuOpt = None,
    input_: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="FILE", help=".npz of inputs (default: random)")
    ] = None,
    tflm: Annotated[
        Path | None,
        typer.Option("--tflm", metavar="DIR", help="sources of TFLM with CMSIS-NN: count it on the same board"),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Compare with TensorFlow Lite Micro."""
    from glowc.board import load_board
    from glowc.machine.tflm import compare_engines

    with progress_line(as_json) as progress:
        result = compare_engines(model, load_board(board, cpu), options, input_, tflm, progress)
    if as_json:
        say_json(result)
    else:
        from glowc.app.show import engines_table

        engines_table(result)
    if not result["ok"]:
        raise typer.Exit(MISMATCH)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        help="Compare a .tflite model with TensorFlow Lite Micro.\n\n"
        "Package tflite-micro computes its outputs. --tflm counts it on the board, built from its sources; "
        "docs/FROM_TFLM.md says how to get them.\n\n"
        "Example: glowc compare kws.tflite --board mps2-an386"
    )(compare)
