"""The command `debug`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glowc.app.layers import debugged
from glowc.app.measure import machine_for, target_of
from glowc.app.options import (
    CpuOpt,
    InputOpt,
    JsonOpt,
    RunBoardOpt,
    SourceArg,
    compiles,
)
from glowc.app.terminal import progress_line, say_json, tell
from glowc.errors import MISMATCH, InputError

if TYPE_CHECKING:
    import numpy as np

    from glowc.compiler.options import CompileOptions
    from glowc.machine.debug import DebugResult, ValueCheck


@compiles
def debug(
    source: SourceArg,
    input_: InputOpt,
    options: CompileOptions,
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    samples: Annotated[int, typer.Option("--samples", metavar="N", min=1, help="how many of the samples to run")] = 1,
    tap: Annotated[
        list[str] | None, typer.Option("--tap", metavar="NAME", help="write this value, or node's result; repeatable")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=".npz for --tap")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="FILE", help="of a bundle: the model that it was compiled from")
    ] = None,
    repro: Annotated[
        Path | None, typer.Option("--repro", metavar="DIR", help="write the first wrong layer as a separate model")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Compare layer by layer."""
    from glowc.compiler.files import check_output
    from glowc.machine.debug import write_repro

    if bool(tap) != (output is not None):
        raise InputError("--tap names values and --output the file for them: give both, or neither",
                         hint="--tap conv1 -o conv1.npz")  # fmt: skip
    if output is not None:
        check_output(output)
    target = target_of(source, board, cpu)
    machine = machine_for(target)
    with progress_line(as_json) as progress:
        found = debugged(source, model, (target, machine), options, input_, samples, progress)
    if tap and output is not None:
        _write(output, found.taps(tap))
    wrong = found.result["first_difference"]
    if as_json:
        say_json(found.result)
    else:
        _table(found.result)
    if wrong is None:
        return
    if repro is not None:
        write_repro(found, wrong, repro)
        tell(f"layer {wrong} as a separate model: {repro}", err=as_json)
    raise typer.Exit(MISMATCH)


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    import numpy as np

    from glowc.compiler.files import write_file

    write_file(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def _table(result: DebugResult) -> None:
    from glowc.app.show import plain_console, plain_table

    console = plain_console()
    columns = ("layer", "operator", "value", "kernel", "as the interpreter", "as onnxruntime")
    title = f"{result['model']} on {result['board']}, {result['samples']} sample{'s'[: result['samples'] != 1]}"
    table = plain_table(*columns, title=title, numbers=("layer",))
    for row in result["layers"]:
        other = row["onnxruntime"]
        table.add_row(str(row["layer"]), row["op"], row["value"], row["kernel"], _shown(row["interpreter"]),
                      "" if other is None else _shown(other))  # fmt: skip
    console.print(table)
    first = next((row for row in result["layers"] if not row["ok"]), None)
    if first is None:
        console.print("every layer gives what the interpreter says")
        return
    nodes = ", ".join(first["nodes"])
    console.print(f'first wrong: layer {first["layer"]}, {first["op"]} "{nodes}" ({first["kernel"]})')
    for step, count in first["interpreter"]["histogram"].items():
        console.print(f"  {count:>8,} elements off by {step}")


def _shown(check: ValueCheck) -> str:
    if check["equal_share"] == 1.0:
        return "equal"
    most = f"{check['max_steps']:g} steps" if check["max_steps"] is not None else f"{check['max_abs']:.3g}"
    return f"{100 * check['equal_share']:.1f} %, up to {most}, {check['sqnr_db']:.0f} dB"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        help="Find the layer that is wrong on a board. It compares each layer with the interpreter and onnxruntime.\n\n"
        "Example: glowc debug kws.onnx --board mps2-an386 --input in.npz"
    )(debug)
