"""The commands that run what was compiled: `run`, `bench`, `tune` and `validate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glowc.app.layers import debugged
from glowc.app.options import (
    DEFAULT_BATTERY,
    DEFAULT_SLEEP_UA,
    BatteryOpt,
    BaudOpt,
    BoardOpt,
    CpuOpt,
    InputOpt,
    JsonOpt,
    ModelArg,
    PerHourOpt,
    PortOpt,
    RunBoardOpt,
    SleepOpt,
    SourceArg,
    chips,
    compiles,
)
from glowc.app.terminal import progress_line, say, say_json, tell
from glowc.errors import MISMATCH

if TYPE_CHECKING:
    import numpy as np

    from glowc.board import Board
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.report import BenchReport
    from glowc.machine.execute import BundleInfo
    from glowc.machine.history import Gate
    from glowc.machine.validate import Comparison, Runner


def target_of(source: Path, board: str | None, cpu: str | None) -> Board:
    """Return the board to run on: the one named, else that of a bundle, else the host."""
    from glowc.board import load_board
    from glowc.machine.execute import bundle_board, is_bundle, load_bundle

    if board is None and is_bundle(source):
        return bundle_board(load_bundle(source), cpu)
    return load_board(board or "host", cpu)


def machine_for(board: Board, port: str | None = None) -> Board:
    """Return the board itself, or, where it does not run from here, an emulated one of its core, and say so."""
    from glowc.board import emulated

    other = emulated(board) if port is None else None
    if other is None or other.name == board.name:
        return board
    tell(f"note: {board.name} cannot be run from here; {other.name} runs its code, for {board.cpu.name}", err=True)
    return other


@contextmanager
def open_bundle(source: Path, board: Board, options: CompileOptions, quiet: bool) -> Iterator[BundleInfo]:
    """Yield the bundle in a folder, or compile a model into a temporary one."""
    import tempfile

    from glowc.machine.execute import is_bundle, load_bundle

    if is_bundle(source):
        yield load_bundle(source)
        return
    from glowc.compiler.pipeline import compile_model, write_bundle

    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        with progress_line(quiet) as progress:
            write_bundle(compile_model(source, board, options, progress), Path(folder))
        yield load_bundle(Path(folder))


def note_core(info: BundleInfo, board: Board) -> None:
    """Say on standard error that a bundle runs on a core that its kernels are not made for."""
    made_for = info.report.get("cpu")
    if made_for != board.cpu.name:
        tell(f"note: {info.folder} is made for {made_for}; on {board.cpu.name} it runs, if at all, slower", err=True)


def note_nan(path: Path | None) -> None:
    """Say on standard error which inputs hold elements that are not a number: what comes of them says little."""
    from glowc.compiler.samples import nan_counts

    for name, count in (nan_counts(path) if path is not None else {}).items():
        tell(f"note: {count:,} elements of {name} in {path} are not a number (NaN)", err=True)


@compiles
def run(
    source: SourceArg,
    input_: InputOpt,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help=".npz with one array per output")],
    options: CompileOptions,
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    port: PortOpt = None,
    baud: BaudOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Run a bundle or model on samples."""

    from glowc.board.flags import native_cpu, native_flags
    from glowc.compiler.files import check_output
    from glowc.machine.execute import execute, is_bundle, read_inputs

    check_output(output)
    own = port is None and board in (None, "host") and not is_bundle(source)
    target = target_of(source, board, cpu or (native_cpu() if own else None))
    machine = machine_for(target, port)
    with open_bundle(source, target, options, as_json) as info:
        inputs = read_inputs(info, input_)
        with progress_line(as_json) as progress:
            if port is not None:
                progress(f"running on {port}")
                outputs, facts = _on_wire(info, port, baud, inputs)
            else:
                progress(f"building and running on {machine.name}")
                done = execute(info, machine, inputs, extra_flags=native_flags(machine.cpu))
                outputs, facts = done.outputs, {"stack_bytes": done.stack_bytes}
        arrays = {p.name: p.to_exported(outputs[p.name]) for p in info.outputs}
    note_core(info, target)
    note_nan(input_)
    _save(output, arrays)
    count = len(next(iter(arrays.values())))
    if as_json:
        say_json({"samples": count, **facts, "output": str(output)})
    else:
        shapes = ", ".join(f"{n} {a.dtype}{list(a.shape)}" for n, a in arrays.items())
        tell(f"{count} inferences on {machine.name} ({machine.cpu.name}); {output}: {shapes}")


def _on_wire(
    info: BundleInfo, port: str, baud: int | None, inputs: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, int | str | None]]:
    """Return the outputs of a board on a port, and what --json says of the run."""
    from glowc.machine.wire.session import Line, run_on_wire

    done = run_on_wire(info, Line(port, baud), inputs)
    return done.outputs, {
        "port": port,
        "cycles": done.typical,
        "counter": done.counter,
        "asked_again": done.asked_again,
    }


def _save(path: Path, arrays: dict[str, Any]) -> None:
    import numpy as np

    from glowc.compiler.files import write_file

    write_file(path, lambda file: np.savez(file, **arrays))


@compiles
def bench(
    source: SourceArg,
    options: CompileOptions,
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    chip: Annotated[
        str | None,
        typer.Option(
            "--chip",
            metavar="CHIP",
            autocompletion=chips,
            help="cycles and ms on this chip (default: the board's); see `glowc chips`",
        ),
    ] = None,
    input_: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="FILE", help=".npz of inputs (default: random)")
    ] = None,
    port: PortOpt = None,
    baud: BaudOpt = None,
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="append the figures to this file; --fail-if compares with it"),
    ] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option("--fail-if", metavar="GATE", help="'insns>+2%', 'arena_bytes>8000'; repeatable")
    ] = None,
    per_hour: PerHourOpt = None,
    battery: BatteryOpt = DEFAULT_BATTERY,
    sleep_ua: SleepOpt = DEFAULT_SLEEP_UA,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="FILE", help="layers for chrome://tracing or Perfetto, JSON")
    ] = None,
    metrics: Annotated[Path | None, typer.Option("--metrics", metavar="FILE", help="Prometheus' text format")] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option("--tensorboard", metavar="DIR", help="a folder of TensorBoard's events; steps count --history"),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Measure one inference."""
    import time
    from dataclasses import replace

    from glowc.board import default_chip, load_chip, machine_of
    from glowc.machine.battery import add_battery, parse_duty
    from glowc.machine.cycles.measure import add_cycles
    from glowc.machine.execute import add_emulated, is_bundle, read_inputs
    from glowc.machine.execute import bench as measure
    from glowc.machine.exports import write_tensorboard
    from glowc.machine.history import parse_gates, read_history
    from glowc.machine.wire.session import Line, measured_on_wire

    gates = parse_gates(fail_if or [])
    duty = parse_duty(battery, per_hour, sleep_ua)
    _check_files({"--trace": trace, "--metrics": metrics, "--history": history})
    wanted = load_chip(chip) if chip is not None else None
    target = machine_of(wanted) if wanted and board is None and source.is_file() else target_of(source, board, cpu)
    wanted = wanted or default_chip(target)
    start = time.perf_counter()
    with open_bundle(source, target, options, as_json) as info:
        compile_s = None if is_bundle(source) else round(time.perf_counter() - start, 3)
        inputs = read_inputs(info, input_) if input_ is not None else None
        with progress_line(as_json) as progress:
            progress(f"building and counting on {target.name}")
            report = measure(info, replace(target, run_argv=()) if port is not None else target, inputs)
            notes = []
            if port is not None:
                report["measured"] = measured_on_wire(info, Line(port, baud), inputs)
            else:
                notes.append(add_emulated(report, info, target, inputs))
                notes.append(add_cycles(report, info, target, wanted, inputs, required=chip is not None))
    notes.append(add_battery(report, duty))
    note_core(info, target)
    note_nan(input_)
    for note in dict.fromkeys(filter(None, notes)):
        tell(f"note: {note}", err=True)
    report["compile_s"] = compile_s
    if as_json:
        say_json(report)
    else:
        from glowc.app.show import bench_tables

        bench_tables(report)
        if (measured := report.get("measured")) is not None:
            cycles = f"{measured['cycles_median']:,} cycles" if measured["cycles_median"] is not None else "no counter"
            say(f"measured on {port}: {cycles} (median of {measured['inferences']}; counter: {measured['counter']})")
    _export(report, trace, metrics)
    if tensorboard is not None:
        write_tensorboard(report, tensorboard, len(read_history(history)) if history is not None else 0)
    if history is not None or gates:
        _gated(report, gates, history)


def _check_files(files: Mapping[str, Path | None]) -> None:
    from glowc.compiler.files import check_output

    for option, path in files.items():
        if path is not None:
            check_output(path, option)


def _export(report: BenchReport, trace: Path | None, metrics: Path | None) -> None:
    from glowc.compiler.files import write_file
    from glowc.machine.exports import metrics_text, trace_text

    for path, text_of, option in ((trace, trace_text, "--trace"), (metrics, metrics_text, "--metrics")):
        if path is not None:
            text = text_of(report).encode()
            write_file(path, lambda file, text=text: file.write(text), option)  # type: ignore[misc]


def _gated(report: BenchReport, gates: Sequence[Gate], history: Path | None) -> None:
    """Hold the figures to gates and append them; exit when a gate does not hold."""
    from glowc.machine.history import append_entry, broken_gates, entry_of, last_like, read_history

    entry = entry_of(report, gates)
    before = last_like(read_history(history), entry) if history is not None else None
    broken = broken_gates(gates, entry, before)
    if history is not None:
        append_entry(history, {**entry, "passed": not broken})
    for text in broken:
        say(f"{report['model']} on {report['board']}: {text}", err=True)
    if broken:
        raise typer.Exit(MISMATCH)


@compiles
def tune(
    model: ModelArg,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="file of measured layers; known ones are kept")
    ],
    board: BoardOpt,
    options: CompileOptions,
    cpu: CpuOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Measure kernels."""
    from dataclasses import asdict

    from glowc.board import load_board
    from glowc.compiler.files import check_output
    from glowc.machine.tune import tune_model

    check_output(output, makes_folders=True)
    try:
        with progress_line(as_json) as progress:
            choices = tune_model(model, load_board(board, cpu), options, output, progress)
    except KeyboardInterrupt:
        if output.is_file():
            say(f"what was measured is in {output}; the same command goes on from there", err=True)
        raise
    if as_json:
        say_json({"layers": [asdict(c) for c in choices], "output": str(output)})
        return
    from glowc.app.show import tuned_table

    tuned_table(choices, output)


@compiles
def validate(
    source: SourceArg,
    input_: InputOpt,
    options: CompileOptions,
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    port: PortOpt = None,
    baud: BaudOpt = None,
    golden: Annotated[Path | None, typer.Option("--golden", metavar="FILE", help=".npz of expected outputs")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="FILE", help="of a bundle: the model that it was compiled from")
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="find the first instruction that differs")] = False,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="the result as JUnit XML")] = None,
    as_json: JsonOpt = False,
) -> None:
    """Compare outputs."""
    from glowc.machine.execute import is_bundle
    from glowc.machine.validate import validate_bundle, validate_model

    _check_files({"--junit": junit})
    target = target_of(source, board, cpu)
    machine = machine_for(target, port)
    runner = _runner(port, baud, machine)
    with progress_line(as_json) as progress:
        if is_bundle(source):
            result = validate_bundle(source, target, options, input_, golden, model, progress, runner)
        else:
            result = validate_model(
                source, target, options, input_, golden, find_layer=layers, progress=progress, runner=runner
            )
    note_nan(input_)
    if layers and not result["ok"] and result.get("first_difference") is None and port is None:
        result["first_difference"] = _first_on_board(source, model, (target, machine), options, input_, as_json)
    if as_json:
        say_json(result)
    else:
        from glowc.app.show import validation_table

        validation_table(result)
    if junit is not None:
        _write_junit(result, junit)
    if not result["ok"]:
        raise typer.Exit(MISMATCH)


def _first_on_board(
    source: Path, model: Path | None, boards: tuple[Board, Board], options: CompileOptions, inputs: Path, quiet: bool
) -> str | None:
    """Return the first layer that leaves something else on a board than the interpreter says, of a bundle as it is."""
    with progress_line(quiet) as progress:
        found = debugged(source, model, boards, options, inputs, 1, progress).result
    first = next((row for row in found["layers"] if row["layer"] == found["first_difference"]), None)
    return first and f'layer {first["layer"]}, {first["op"]} "{", ".join(first["nodes"])}" ({first["kernel"]})'


def _runner(port: str | None, baud: int | None, machine: Board) -> Runner:
    """Return what runs samples: the board on a port, else the emulator or this machine."""
    from glowc.machine.validate import run_here

    if port is None:
        return lambda info, _, inputs: run_here(info, machine, inputs)
    return lambda info, board, inputs: _on_wire(info, port, baud, inputs)[0]


def _write_junit(result: Comparison, path: Path) -> None:
    from glowc.compiler.files import write_file
    from glowc.machine.exports import junit_text

    write_file(path, lambda file: file.write(junit_text(result).encode()), "--junit")


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        help="Run a model on the host or under QEMU.\n\n"
        "Example: glowc run build/kws --board mps2-an386 --input in.npz --output out.npz"
    )(run)
    app.command(
        help="Measure instructions, cycles, arena, flash and stack.\n\nExample: glowc bench kws.onnx --chip stm32l4r5"
    )(bench)
    app.command(
        help="Measure each layer's kernels, for `glowc compile --tuned`.\n\n"
        "Example: glowc tune kws.onnx --board mps2-an386 -o kws.tune.json"
    )(tune)
    app.command(
        help="Compare a model's outputs on a board with onnxruntime's. Without onnxruntime, and for TensorFlow Lite "
        "models, an interpreter computes them.\n\n"
        "Example: glowc validate kws.onnx --board mps2-an386 --input in.npz"
    )(validate)
