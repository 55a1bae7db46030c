"""The command `test-kit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glowc.app.measure import machine_for
from glowc.app.options import BoardOpt, CpuOpt, InputOpt, JsonOpt, ModelArg, NameOpt, compiles
from glowc.app.terminal import tell_written

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions


@compiles
def kit(
    model: ModelArg,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder for the kit")],
    input_: InputOpt,
    options: CompileOptions,
    board: BoardOpt = "mps2-an386",
    cpu: CpuOpt = None,
    name: NameOpt = None,
    force: Annotated[bool, typer.Option("--force", help="write also into a folder that holds files of others")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Write a regression test."""
    from dataclasses import replace
    from tempfile import TemporaryDirectory

    from glowc.board import load_board
    from glowc.compiler.pipeline import compile_model, write_bundle
    from glowc.machine.execute import load_bundle
    from glowc.machine.kit import kit_of, write_kit

    target = load_board(board, cpu)
    machine = machine_for(target)
    compiled = compile_model(model, target, replace(options, name=name, golden=input_))
    with TemporaryDirectory(prefix="glowc-") as temporary:
        write_bundle(compiled, Path(temporary))
        write_kit(kit_of(load_bundle(Path(temporary)), machine), folder, force=force)
    tell_written(folder, f"a test of {compiled.report['model']} on {machine.name}: make -C {folder} check", as_json)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "test-kit",
        help="Write a regression test that needs no glowc. Make, a compiler and QEMU run it.\n\n"
        "Example: glowc test-kit kws.onnx tests/kws --board mps2-an386 --input in.npz",
    )(kit)
