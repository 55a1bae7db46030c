"""The command `report`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from glowc.app.measure import open_bundle, target_of
from glowc.app.options import (
    DEFAULT_BATTERY,
    DEFAULT_SLEEP_UA,
    BatteryOpt,
    CpuOpt,
    JsonOpt,
    PerHourOpt,
    RunBoardOpt,
    SleepOpt,
    compiles,
)
from glowc.app.terminal import progress_line, say_json, tell
from glowc.errors import InputError, ToolError

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.report import BenchReport


@compiles
def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="a model, a bundle, or what `glowc bench --json` printed", show_default=False
        ),
    ],
    options: CompileOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="the page")] = Path("report.html"),
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    chip: Annotated[
        str | None,
        typer.Option(
            "--chip", metavar="CHIP", help="cycles and ms on this chip (default: the board's); see `glowc chips`"
        ),
    ] = None,
    input_: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="FILE", help=".npz of inputs (default: random)")
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", metavar="FILE", help="a file of `glowc profile`: histograms of the values"),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option("--eval", metavar="FILE", help="what `glowc eval --json` printed: the error of each layer"),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="compare with another bundle, or `glowc bench --json` of it"),
    ] = None,
    per_hour: PerHourOpt = None,
    battery: BatteryOpt = DEFAULT_BATTERY,
    sleep_ua: SleepOpt = DEFAULT_SLEEP_UA,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="build and run it, where the tools are there")
    ] = True,
    as_json: JsonOpt = False,
) -> None:
    """Write a page about a model."""
    from glowc.compiler.files import check_output, write_file
    from glowc.machine.battery import add_battery, parse_duty
    from glowc.machine.page import checked_report, page_of, read_evaluation, read_report, render_page
    from glowc.quant.profile import read_profile

    check_output(output)
    duty = parse_duty(battery, per_hour, sleep_ua)
    values = read_profile(profile) if profile is not None else None
    errors = read_evaluation(evaluation) if evaluation is not None else None
    other = read_report(against) if against is not None else None
    if source.suffix == ".json":
        _refuse_options({"--board": board, "--cpu": cpu, "--chip": chip, "--input": input_})
        found, notes = read_report(source), list[str]()
    else:
        how = _How(board, cpu, chip, input_, measure, as_json)
        found, notes = _measured(source, options, how)
        checked_report(found, source)
    notes += filter(None, [add_battery(found, duty)])
    text = render_page(page_of(found, profile=values, evaluated=errors, against=other, notes=notes)).encode()
    write_file(output, lambda file: file.write(text))
    for note in notes:
        tell(f"note: {note}", err=True)
    if as_json:
        say_json({"output": str(output), "size_bytes": len(text), "notes": notes})
    else:
        tell(str(output))


def _refuse_options(given: Mapping[str, object | None]) -> None:
    wrong = [option for option, value in given.items() if value is not None]
    if wrong:
        raise InputError(f"a finished report is not measured again: {', '.join(wrong)}",
                         hint="name the model or the bundle instead of the .json file")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _How:
    """Where and on what a bundle is measured."""

    board: str | None
    cpu: str | None
    chip: str | None
    inputs: Path | None
    measure: bool
    quiet: bool


def _measured(source: Path, options: CompileOptions, how: _How) -> tuple[BenchReport, list[str]]:
    """Return the report of a bundle or model, with figures where this machine can measure them, and why there are none.

    Raises ToolError only where the user asked for what needs the tool.
    """
    from glowc.board import default_chip, load_chip, machine_of
    from glowc.machine.cycles.measure import add_cycles
    from glowc.machine.execute import add_emulated, bench, read_inputs

    wanted = load_chip(how.chip) if how.chip is not None else None
    plain = wanted is not None and how.board is None and source.is_file()
    target = machine_of(wanted) if wanted and plain else target_of(source, how.board, how.cpu)
    with open_bundle(source, target, options, how.quiet) as info:
        inputs = read_inputs(info, how.inputs) if how.inputs is not None else None
        if not how.measure:
            return cast("BenchReport", info.report), []
        with progress_line(how.quiet) as progress:
            progress(f"building and counting on {target.name}")
            try:
                found = bench(info, target, inputs)
                chip = wanted or default_chip(target)
                notes = [
                    add_emulated(found, info, target, inputs),
                    add_cycles(found, info, target, chip, inputs, required=wanted is not None),
                ]
            except ToolError as error:
                if wanted is not None:
                    raise
                return cast("BenchReport", info.report), [f"not measured: {error.message}"]
    return found, list(dict.fromkeys(filter(None, notes)))


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        help="Write a page about a model. One HTML file: graph, memory over time, layers, "
        "quantization, flash, comparison.\n\nExample: glowc report kws.onnx --chip stm32l4r5 -o kws.html"
    )(report)
