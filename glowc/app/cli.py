"""The command line: parse, call the driver, print.

Imports of the compiler happen inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glowc import __version__
from glowc.app.evaluate import register as register_evaluate
from glowc.app.kit import register as register_kit
from glowc.app.options import (
    BoardOpt,
    CpuOpt,
    EntryOpt,
    InputOpt,
    InputStream,
    IoBuffers,
    JsonOpt,
    ModelArg,
    ModelsArg,
    NameOpt,
    OutOpt,
    RunBoardOpt,
    SourceArg,
    chain_first,
    compiles,
)
from glowc.app.quantize import (
    ChannelsOpt,
    LayoutOpt,
    MeanOpt,
    StdOpt,
    image_format,
    int8_saving,
    int8_source,
)
from glowc.app.quantize import register as register_quantize
from glowc.app.terminal import accept_any_text, say, visible
from glowc.errors import GlowcError, InputError, InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from glowc.board import Board
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.pipeline import Compiled
    from glowc.machine.execute import BundleInfo

app = typer.Typer(
    name="glowc",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Compile quantised ONNX models to portable C for Cortex-M and Cortex-A.",
)
_debug = False


def _version(value: bool) -> None:
    if value:
        say(f"glowc {__version__}")
        raise typer.Exit


@app.callback()
def _global(
    debug: Annotated[bool, typer.Option("--debug", help="show a traceback with an error")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="print it")] = False,
) -> None:
    global _debug
    _debug = debug


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current step on a terminal's standard error."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("starting") as status:
        yield lambda text: status.update(Text(visible(text)))


def _board(name: str, cpu: str | None) -> Board:
    from glowc.board import load_board

    return load_board(name, cpu)


def _target(source: Path, board: str | None, cpu: str | None) -> Board:
    """Return the board to run on: the one named, else that of a bundle, else the host."""
    if board is None and source.is_dir():
        from glowc.machine.execute import bundle_board, load_bundle

        return bundle_board(load_bundle(source), cpu)
    return _board(board or "host", cpu)


@app.command(
    "compile",
    help="Write C sources for a model.\n\nExample: glowc compile kws.onnx --board mps2-an386 -o build/kws",
)
@compiles
def compile_(
    model: ModelsArg,
    out: OutOpt,
    options: CompileOptions,
    board: BoardOpt = "host",
    cpu: CpuOpt = None,
    name: NameOpt = None,
    entry_name: EntryOpt = None,
    quantize_data: Annotated[
        list[Path] | None,
        typer.Option(
            "--quantize-data", help="sample data: quantise a float model first, as `glowc quantize`; repeatable"
        ),
    ] = None,
    mean: MeanOpt = "0",
    std: StdOpt = "255",
    layout: LayoutOpt = None,
    channels: ChannelsOpt = "rgb",
    golden: Annotated[
        Path | None,
        typer.Option("--golden", help=".npz of inputs: adds NAME_golden.c, test vectors for firmware"),
    ] = None,
    dump_ir: Annotated[Path | None, typer.Option("--dump-ir", help="folder for the IR after each pass")] = None,
    stop_after: Annotated[str | None, typer.Option("--stop-after", help="end after this graph pass")] = None,
    stateful: Annotated[
        bool, typer.Option("--stateful", help="keep the state of LSTM, GRU, RNN between calls; reset by NAME_reset()")
    ] = False,
    require_int8: Annotated[
        bool, typer.Option("--require-int8", help="fail when a layer between quantised parts would compute in float")
    ] = False,
    input_stream: Annotated[
        InputStream, typer.Option("--input-stream", help="rows: by NAME_push_rows(); time: the next steps at each call")
    ] = InputStream.WHOLE,
    hop: Annotated[int | None, typer.Option("--hop", min=1, help="new time steps of each call")] = None,
    time_axis: Annotated[int | None, typer.Option("--time-axis", help="axis of the input (default: what fits)")] = None,
    io_buffers: Annotated[
        IoBuffers, typer.Option("--io-buffers", help="caller: inputs and outputs stay in your own buffers")
    ] = IoBuffers.ARENA,
    verify_plan: Annotated[
        bool, typer.Option("--verify-plan", help="execute the memory plan byte by byte before anything is written")
    ] = False,
    memory_map: Annotated[
        bool, typer.Option("--memory-map", help="draw the arena over time: in the terminal, and NAME_memory.svg")
    ] = False,
    chain: Annotated[
        bool, typer.Option("--chain", help="several models, each fed by the one before, as one bundle")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="write also into a folder that holds files of others, and over them")
    ] = False,
    pareto: Annotated[
        bool, typer.Option("--pareto", help="also list the plans with less RAM and what they cost in instructions")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Compile a model."""
    from dataclasses import replace

    from glowc.compiler.bundle_folder import check_folder
    from glowc.compiler.pipeline import compile_model, write_bundle
    from glowc.place.regions import map_text

    source_model = chain_first(model, chain, quantize_data)
    options = replace(
        options, chain=tuple(model[1:]), name=name, entry_name=entry_name, golden=golden, dump_dir=dump_ir,
        stop_after=stop_after, stateful=stateful, require_int8=require_int8, input_stream=input_stream.value, hop=hop,
        time_axis=time_axis, io_buffers=io_buffers.value, verify_plan=verify_plan, memory_map=memory_map,
    )  # fmt: skip
    if stop_after is not None:
        _stop_after(source_model, options)
        return
    check_folder(out, force=force)
    images = image_format(mean, std, layout, channels) if quantize_data else None
    with int8_source(source_model, quantize_data, images, quiet=as_json) as source, _progress(as_json) as progress:
        compiled = compile_model(source, _board(board, cpu), options, progress)
        write_bundle(compiled, out, force=force)
    if as_json:
        say(json.dumps({**compiled.report, **({"pareto": _frontier(compiled)} if pareto else {})}))
        return
    from glowc.app.show import compile_summary

    say(compile_summary(compiled, out))
    if (saving := int8_saving(compiled, source_model)) is not None:
        say(saving)
    if pareto:
        say("plans, the cheapest first (instructions besides the layers' own, estimated):")
        for entry in _frontier(compiled):
            say(f"  {entry['arena_bytes']:>10,} bytes  {entry['extra_insns']:>+10,}  {entry['plan']}")
    if memory_map:
        say(map_text(compiled.planned), nl=False)


def _frontier(compiled: Compiled) -> list[dict[str, Any]]:
    from glowc.compiler.pipeline import plans_of

    return [
        {"plan": p.title, "arena_bytes": p.plan.arena_bytes, "extra_insns": p.extra_insns} for p in plans_of(compiled)
    ]


def _stop_after(model: Path, options: CompileOptions) -> None:
    from glowc.compiler.pipeline import optimise
    from glowc.graph.text import dump

    say(dump(optimise(model, options)), nl=False)


@contextmanager
def _bundle(source: Path, board: Board, options: CompileOptions, quiet: bool) -> Iterator[BundleInfo]:
    """Yield the bundle in a folder, or compile a model into a temporary one."""
    import tempfile

    from glowc.machine.execute import load_bundle

    if source.is_dir():
        yield load_bundle(source)
        return
    from glowc.compiler.pipeline import compile_model, write_bundle

    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        with _progress(quiet) as progress:
            write_bundle(compile_model(source, board, options, progress), Path(folder))
        yield load_bundle(Path(folder))


def _note_core(info: BundleInfo, board: Board) -> None:
    """Say on standard error that a bundle runs on a core that its kernels are not made for."""
    made_for = info.report.get("cpu")
    if made_for != board.cpu.name:
        say(f"note: {info.folder} is made for {made_for}; on {board.cpu.name} it runs, if at all, slower", err=True)


@app.command(
    help="Run a model on the host or under QEMU.\n\n"
    "Example: glowc run build/kws --board mps2-an386 --input in.npz --output out.npz"
)
@compiles
def run(
    source: SourceArg,
    input_: InputOpt,
    output: Annotated[Path, typer.Option("--output", "-o", help=".npz with one array per output")],
    options: CompileOptions,
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Run a bundle or model on samples."""

    from glowc.compiler.files import check_output
    from glowc.machine.execute import execute, read_inputs

    check_output(output)
    target = _target(source, board, cpu)
    with _bundle(source, target, options, as_json) as info:
        inputs = read_inputs(info, input_)
        with _progress(as_json) as progress:
            progress(f"building and running on {target.name}")
            done = execute(info, target, inputs)
        arrays = {p.name: p.to_exported(done.outputs[p.name]) for p in info.outputs}
    _note_core(info, target)
    _save(output, arrays)
    count = len(next(iter(arrays.values())))
    if as_json:
        say(json.dumps({"samples": count, "stack_bytes": done.stack_bytes, "output": str(output)}))
    else:
        shapes = ", ".join(f"{n} {a.dtype}{list(a.shape)}" for n, a in arrays.items())
        say(f"{count} inferences on {target.name} ({target.cpu.name}); {output}: {shapes}")


def _save(path: Path, arrays: dict[str, Any]) -> None:
    import numpy as np

    from glowc.compiler.files import write_file

    write_file(path, lambda file: np.savez(file, **arrays))


@app.command(
    help="Measure instructions, cycles, arena, flash and stack.\n\nExample: glowc bench kws.onnx --chip stm32l4r5"
)
@compiles
def bench(
    source: SourceArg,
    options: CompileOptions,
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    chip: Annotated[
        str | None, typer.Option("--chip", help="cycles and ms on this chip (default: the board's); see `glowc chips`")
    ] = None,
    input_: Annotated[Path | None, typer.Option("--input", "-i", help=".npz of inputs (default: random)")] = None,
    as_json: JsonOpt = False,
) -> None:
    """Measure one inference."""
    import time

    from glowc.board import default_chip, load_chip, machine_of
    from glowc.machine.cycles.measure import add_cycles
    from glowc.machine.execute import bench as measure
    from glowc.machine.execute import read_inputs

    wanted = load_chip(chip) if chip is not None else None
    target = machine_of(wanted) if wanted and board is None and source.is_file() else _target(source, board, cpu)
    wanted = wanted or default_chip(target)
    start = time.perf_counter()
    with _bundle(source, target, options, as_json) as info:
        compile_s = None if source.is_dir() else round(time.perf_counter() - start, 3)
        inputs = read_inputs(info, input_) if input_ is not None else None
        with _progress(as_json) as progress:
            progress(f"building and counting on {target.name}")
            report = measure(info, target, inputs)
            note = add_cycles(report, info, target, wanted, inputs, required=chip is not None)
    _note_core(info, target)
    if note:
        say(f"note: {note}", err=True)
    report["compile_s"] = compile_s
    if as_json:
        say(json.dumps(report))
    else:
        from glowc.app.show import bench_tables

        bench_tables(report)


@app.command(
    help="Measure the kernels that each layer may have, for `glowc compile --tuned`.\n\n"
    "Example: glowc tune kws.onnx --board mps2-an386 -o kws.tune.json"
)
@compiles
def tune(
    model: ModelArg,
    output: Annotated[Path, typer.Option("--output", "-o", help="file of measured layers; known ones are kept")],
    board: BoardOpt,
    options: CompileOptions,
    cpu: CpuOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Measure kernels."""
    from dataclasses import asdict

    from glowc.compiler.files import check_output
    from glowc.machine.tune import tune_model

    check_output(output, makes_folders=True)
    try:
        with _progress(as_json) as progress:
            choices = tune_model(model, _board(board, cpu), options, output, progress)
    except KeyboardInterrupt:
        if output.is_file():
            say(f"what was measured is in {output}; the same command goes on from there", err=True)
        raise
    if as_json:
        say(json.dumps({"layers": [asdict(c) for c in choices], "output": str(output)}))
        return
    from glowc.app.show import tuned_table

    tuned_table(choices, output)


@app.command(
    help="Compare a model or bundle on a board with onnxruntime, or with the interpreter.\n\n"
    "Example: glowc validate kws.onnx --board mps2-an386 --input in.npz"
)
@compiles
def validate(
    source: SourceArg,
    input_: InputOpt,
    options: CompileOptions,
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    golden: Annotated[Path | None, typer.Option("--golden", help=".npz of expected outputs")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="of a bundle: the ONNX file that it was compiled from")
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="find the first instruction that differs")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Compare outputs."""
    from glowc.machine.validate import validate_bundle, validate_model

    target = _target(source, board, cpu)
    with _progress(as_json) as progress:
        if source.is_dir():
            result = validate_bundle(source, target, options, input_, golden, model, progress)
        else:
            result = validate_model(source, target, options, input_, golden, find_layer=layers, progress=progress)
    if as_json:
        say(json.dumps(result))
    else:
        from glowc.app.show import validation_table

        validation_table(result)
    if not result["ok"]:
        raise typer.Exit(MISMATCH)


@app.command(help="List the boards.\n\nExample: glowc boards --json")
def boards(as_json: JsonOpt = False) -> None:
    """List the boards."""
    from glowc.app.show import board_table, boards_data

    data = boards_data()
    say(json.dumps(data)) if as_json else board_table(data)


@app.command(help="List the chips whose cycles `glowc bench --chip` counts.\n\nExample: glowc chips --json")
def chips(as_json: JsonOpt = False) -> None:
    """List the chips."""
    from glowc.app.show import chip_table, chips_data

    data = chips_data()
    say(json.dumps(data)) if as_json else chip_table(data)


@app.command(
    "make-include",
    help="Print where glowc.mk is: the rules that make models part of a Makefile project.\n\n"
    'Example: cp "$(glowc make-include)" build/glowc.mk',
)
def make_include() -> None:
    """Print the path of the Makefile fragment."""
    from glowc.paths import data_dir

    say(str(data_dir("runtime_c") / "make" / "glowc.mk"))


@app.command(help="List the supported operators and the kernels a CPU needs.\n\nExample: glowc ops --format tflite")
def ops(
    as_json: JsonOpt = False,
    format_: Annotated[str, typer.Option("--format", help="operators of models in this format: onnx, tflite")] = "onnx",
) -> None:
    """List operators and kernels."""
    from glowc.app.show import ops_data, ops_tables, tflite_ops_json, tflite_ops_table

    if format_ not in ("onnx", "tflite"):
        raise InputError(f"--format {format_}: neither onnx nor tflite")
    if format_ == "tflite":
        say(tflite_ops_json()) if as_json else tflite_ops_table()
        return
    data = ops_data()
    say(json.dumps(data)) if as_json else ops_tables(data)


@app.command(help="Show which tools are installed and how to install the rest.\n\nExample: glowc doctor")
def doctor(as_json: JsonOpt = False) -> None:
    """Check the installation."""
    from glowc.app.show import doctor_data, doctor_table

    data = doctor_data()
    say(json.dumps(data)) if as_json else doctor_table(data)
    if data["missing"]:
        raise typer.Exit(1)


register_quantize(app)
register_evaluate(app)
register_kit(app)
MISMATCH = 3  # a comparison, or a limit, says no (glowc.errors)
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


def main() -> None:
    """Run the command line; docs/OUTPUT.md lists the exit statuses."""
    accept_any_text()
    try:
        app()
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            say("interrupted", err=True)
        sys.exit(1 if stop.code == 2 else stop.code)  # typer's own 2: a wrong option, so the user's input
    except GlowcError as error:
        if _debug:
            raise
        kind = "internal error" if isinstance(error, InternalError) else "error"
        say(f"{kind}: {error}", err=True)
        sys.exit(error.exit_status)
    except OSError as error:
        if _debug:
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        say(f"error: {where}{error.strerror or error}\n  hint: look at the file, its folder and the disk", err=True)
        sys.exit(GlowcError.exit_status)
    except Exception as error:
        if _debug:
            raise
        say(f"internal error: {_bug(error)}", err=True)
        sys.exit(InternalError.exit_status)


def _bug(error: Exception) -> str:
    """Return what to say of an exception that nobody expected; a plugin that it comes from is named."""
    plugins = sys.modules.get("glowc.compiler.plugins")
    plugin = plugins.plugin_in(error) if plugins is not None else None
    whose = f"plugin {plugin}" if plugin is not None else "glowc"
    return f"{type(error).__name__}: {error}\n  hint: this is a bug in {whose}; run again with `glowc --debug ...`" + (
        " to see where" if plugin is not None else " and report what it prints"
    )
